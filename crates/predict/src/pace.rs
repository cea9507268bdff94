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
    /// The pace that the trace of a dry run tells. Times are the medians of submissions and
    /// scheduling steps of tasks of one name, so that what interrupted a thread does not count; times
    /// between submissions those of the same two names. All are `percent` of what was measured.
    #[must_use]
    pub fn of(schedule: &NodeSchedule, run: &RecordedRun, percent: f64) -> Self {
        let by_id: HashMap<_, _> =
            schedule.tasks.iter().enumerate().map(|(position, task)| (task.id, position)).collect();
        Self {
            acts: acts(schedule, &run.program, &by_id, percent),
            scheduling: scheduling(schedule, &run.scheduling, percent),
        }
    }

    /// A program that submits everything at once, and a scheduler that takes no time.
    #[must_use]
    pub fn immediate(schedule: &NodeSchedule) -> Self {
        let tasks = schedule.tasks.len();
        let acts = vec![Act::Submit { took: 0, until: tasks }, Act::Wait { until: tasks }];
        Self { acts, scheduling: vec![0; tasks] }
    }
}

fn acts(
    schedule: &NodeSchedule,
    stretches: &[Stretch],
    by_id: &HashMap<u64, usize>,
    percent: f64,
) -> Vec<Act> {
    let submissions = typical(stretches.iter().map(|it| (it.name.as_str(), it.took)));
    let gaps: Vec<_> = gaps(stretches).collect();
    let between = typical(gaps.iter().map(|(names, took)| (*names, *took)));
    let tasks = schedule.tasks.len();
    // The start is there before the program is.
    let (mut acts, mut done) = (Vec::new(), 0);
    for (stretch, (names, _)) in stretches.iter().zip(&gaps) {
        let own = between[names];
        let position = stretch.task.and_then(|task| by_id.get(&task).copied());
        let waits = stretch.name.starts_with("wait for ");
        let took = if waits { own } else { own + submissions[stretch.name.as_str()] };
        if let Some(position) = position.filter(|position| *position >= done) {
            done = past_horizons(schedule, position + 1);
        }
        acts.push(Act::Submit { took: scaled(took, percent), until: done });
        if waits && stretch.name != "wait for horizons" {
            acts.push(Act::Wait { until: done });
        }
    }
    acts.push(Act::Submit { took: 0, until: tasks });
    acts.push(Act::Wait { until: tasks });
    acts
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

fn scheduling(schedule: &NodeSchedule, steps: &[Stretch], percent: f64) -> Vec<Nanos> {
    let named = steps.iter().filter(|step| step.task.is_some());
    let times = typical(named.map(|step| (step.name.as_str(), step.took)));
    let of_task = |name: &str| times.get(name).copied().unwrap_or(0);
    schedule.tasks.iter().map(|task| scaled(of_task(&task.name), percent)).collect()
}

/// The median of each name's times.
fn typical<K: Eq + std::hash::Hash + Copy>(
    all: impl Iterator<Item = (K, Nanos)>,
) -> HashMap<K, Nanos> {
    let mut by_name = HashMap::<K, Vec<f64>>::new();
    all.for_each(|(name, took)| by_name.entry(name).or_default().push(took as f64));
    by_name.into_iter().map(|(name, all)| (name, whole(median(all)))).collect()
}

fn scaled(took: Nanos, percent: f64) -> Nanos {
    whole(took as f64 * percent / 100.0)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn whole(nanos: f64) -> Nanos {
    nanos.round() as Nanos
}
