//! How a program and a scheduler proceed: what they do one after the other, and how long each takes, as
//! the trace of a dry run tells. Knows nothing of what is executed.

use std::collections::HashMap;

use crate::cluster::Nanos;
use crate::costs::median;
use crate::recorded::{RecordedRun, Stretch};
use crate::schedule::{NodeSchedule, ScheduledKind};

/// What a node's program does, and what scheduling its tasks takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pace {
    /// What the program does, in order.
    pub acts: Vec<Act>,
    /// By task, in the schedule's order: what the scheduler takes, in ns.
    pub scheduling: Vec<Nanos>,
}

/// Something that a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Computes by itself and submits tasks, up to this position of the schedule's tasks, excluded.
    Submit {
        /// How long that takes, in ns.
        took: Nanos,
        /// Tasks in all that have been submitted afterwards.
        until: usize,
    },
    /// Waits until all tasks up to this position that deliver to the program have completed: epochs
    /// that are no start, and fences.
    Wait {
        /// The position of the first task that is not waited for.
        until: usize,
    },
}

impl Pace {
    /// The paces of all nodes that the traces of their dry runs tell. Times are the medians of
    /// submissions and scheduling steps of tasks of one name on all nodes, so that what interrupted a thread
    /// does not count; times between submissions those of the same two names. All are `percent` of what was
    /// measured. More runs than there are schedules add to what medians are made from.
    #[must_use]
    pub fn of_all(schedules: &[NodeSchedule], runs: &[RecordedRun], percent: f64) -> Vec<Self> {
        let times = Times::of(runs, percent);
        let both = schedules.iter().zip(runs);
        both.map(|(schedule, run)| Self {
            acts: times.acts(schedule, &run.program),
            scheduling: times.scheduling(schedule),
        })
        .collect()
    }

    /// A program that submits everything at once, and a scheduler that takes no time.
    #[must_use]
    pub fn immediate(schedule: &NodeSchedule) -> Self {
        let tasks = schedule.tasks.len();
        let acts = vec![Act::Submit { took: 0, until: tasks }, Act::Wait { until: tasks }];
        Self { acts, scheduling: vec![0; tasks] }
    }
}

/// What things take, in ns, by name.
struct Times<'r> {
    submissions: HashMap<&'r str, Nanos>,
    /// Between two, by the names of both.
    between: HashMap<(&'r str, &'r str), Nanos>,
    scheduling: HashMap<&'r str, Nanos>,
}

impl<'r> Times<'r> {
    fn of(runs: &'r [RecordedRun], percent: f64) -> Self {
        let program = || runs.iter().flat_map(|run| &run.program);
        let steps = runs.iter().flat_map(|run| &run.scheduling);
        let named = steps.filter(|step| step.task.is_some());
        let gaps = runs.iter().flat_map(|run| gaps(&run.program));
        let took = |stretch: &'r Stretch| (stretch.name.as_str(), stretch.took);
        Self {
            submissions: typical(program().map(took), percent),
            between: typical(gaps, percent),
            scheduling: typical(named.map(took), percent),
        }
    }

    fn acts(&self, schedule: &NodeSchedule, stretches: &[Stretch]) -> Vec<Act> {
        let by_id: HashMap<_, _> =
            schedule.tasks.iter().enumerate().map(|(position, task)| (task.id, position)).collect();
        let (mut acts, mut done) = (Vec::new(), 0);
        for (stretch, (names, _)) in stretches.iter().zip(gaps(stretches)) {
            let own = self.between.get(&names).copied().unwrap_or(0);
            let waits = stretch.name.starts_with("wait for ");
            let submitting = self.submissions.get(stretch.name.as_str()).filter(|_| !waits);
            let position = stretch.task.and_then(|task| by_id.get(&task).copied());
            if let Some(position) = position.filter(|position| *position >= done) {
                done = past_horizons(schedule, position + 1);
            }
            let took = own + submitting.copied().unwrap_or(0);
            acts.push(Act::Submit { took, until: done });
            if waits && stretch.name != "wait for horizons" {
                acts.push(Act::Wait { until: done });
            }
        }
        let tasks = schedule.tasks.len();
        acts.push(Act::Submit { took: 0, until: tasks });
        acts.push(Act::Wait { until: tasks });
        acts
    }

    fn scheduling(&self, schedule: &NodeSchedule) -> Vec<Nanos> {
        let of_task = |name: &str| self.scheduling.get(name).copied().unwrap_or(0);
        schedule.tasks.iter().map(|task| of_task(&task.name)).collect()
    }
}

/// Horizons are inserted behind the task that makes them due.
fn past_horizons(schedule: &NodeSchedule, position: usize) -> usize {
    let later = schedule.tasks[position..].iter();
    position + later.take_while(|task| task.kind == ScheduledKind::Horizon).count()
}

/// For each stretch, the names of the one before and of itself, and the time between them.
fn gaps(stretches: &[Stretch]) -> impl Iterator<Item = ((&str, &str), Nanos)> {
    let before = std::iter::once(("", 0)).chain(
        stretches.iter().map(|stretch| (stretch.name.as_str(), stretch.start + stretch.took)),
    );
    before.zip(stretches).map(|((name, end), stretch)| {
        ((name, stretch.name.as_str()), stretch.start.saturating_sub(end))
    })
}

/// The median of each name's times, scaled.
fn typical<K: Eq + std::hash::Hash + Copy>(
    all: impl Iterator<Item = (K, Nanos)>,
    percent: f64,
) -> HashMap<K, Nanos> {
    let mut by_name = HashMap::<K, Vec<f64>>::new();
    all.for_each(|(name, took)| by_name.entry(name).or_default().push(took as f64));
    let scaled = |all| whole(median(all) * percent / 100.0);
    by_name.into_iter().map(|(name, all)| (name, scaled(all))).collect()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn whole(nanos: f64) -> Nanos {
    nanos.round() as Nanos
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(name: &str, task: Option<u64>, start: Nanos, took: Nanos) -> Stretch {
        Stretch { name: name.to_owned(), task, start, took }
    }

    #[test]
    fn programs_submit_and_wait_as_their_traces_tell() {
        let text = "celerity-schedule 1\nnode 0 of 1, 1 devices\ntask T0 epoch \"epoch\"\n\
                    task T1 kernel \"a\"\ntask T2 horizon \"horizon\"\ntask T3 forward \"a\"\n\
                    task T4 kernel \"a\"\ntask T5 epoch \"epoch\"\nend\n";
        let schedule = NodeSchedule::parse(text, "s.txt".as_ref()).unwrap();
        let program = vec![
            stretch("a", Some(1), 100, 10),
            stretch("a", Some(4), 130, 14),
            stretch("wait for horizons", None, 150, 900),
            stretch("wait for epoch", Some(5), 1060, 500),
        ];
        let scheduling = vec![stretch("a", Some(1), 0, 6), stretch("a", Some(4), 0, 8)];
        let run = RecordedRun { program, scheduling, ..RecordedRun::default() };
        let paces = Pace::of_all(&[schedule], &[run], 50.0);
        let submit = |took, until| Act::Submit { took, until };
        let expected = [
            submit(50 + 7, 3),
            submit(10 + 7, 5),
            submit(3, 5),
            submit(5, 6),
            Act::Wait { until: 6 },
            submit(0, 6),
            Act::Wait { until: 6 },
        ];
        assert_eq!(paces[0].acts, expected);
        // A forward bears the name of the task that it is for.
        assert_eq!(paces[0].scheduling, [0, 4, 0, 4, 4, 0]);
    }
}
