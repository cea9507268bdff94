//! Says which data moves in collective operations and which does not, as it is decided: one line for
//! each decision that has not been told before. Decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use celerity_cdag::{Command, CommandKind};
use celerity_executor::{Observer, Weighed};
use celerity_idag::{AllocationId, Instruction, Pilot};
use celerity_tdag::{BufferId, BufferInfo, Task, TaskId, Work};

use crate::log::LogLevel;

/// Watches the schedule of one node: all nodes decide alike.
pub(crate) struct Explanations {
    names: BTreeMap<BufferId, Arc<str>>,
    /// What has been weighed for tasks that have not been shown, by these.
    weighed: BTreeMap<TaskId, Vec<Weighed>>,
    /// What becomes of the forwards in front of the next task.
    decided: Vec<String>,
    told: BTreeSet<String>,
    tell: Box<dyn FnMut(&str) + Send>,
}

/// A program that makes no two decisions alike must not fill memory: later ones are not told.
const MOST_TOLD: usize = 1024;

impl Explanations {
    /// Logs at level [`Info`](LogLevel::Info).
    pub(crate) fn at(level: LogLevel) -> Self {
        Self::to(move |line| level.print(LogLevel::Info, || line.to_owned()))
    }

    fn to(tell: impl FnMut(&str) + Send + 'static) -> Self {
        let (names, weighed, decided) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        Self { names, weighed, decided, told: BTreeSet::new(), tell: Box::new(tell) }
    }

    /// What a forward has become, by its commands.
    fn decide(&mut self, forward: &Task, commands: &[Command]) {
        let found = commands.iter().find_map(|command| match &command.kind {
            CommandKind::Collective { collective, .. } => Some(collective),
            _ => None,
        });
        for access in forward.buffer_accesses() {
            let weighed = self.weighed_for(forward, access.buffer);
            let how = match (found, weighed) {
                (Some(_), Some(weighed)) => weighed.to_string(),
                (Some(found), None) => match found.members.are_all() {
                    true => format!("in one {}", found.pattern()),
                    false => format!("in one {} among {}", found.pattern(), found.members),
                },
                (None, _) => "between pairs of nodes".to_owned(),
            };
            self.decided.push(format!("{} moves {how}", self.name(access.buffer)));
        }
    }

    /// What has been weighed for a forward.
    fn weighed_for(&mut self, forward: &Task, buffer: BufferId) -> Option<Weighed> {
        let ends = forward.forward.as_ref()?;
        let weighed = self.weighed.get_mut(&ends.consumer.task)?;
        let is_it = |one: &Weighed| (one.producer, one.buffer) == (ends.producer.task, buffer);
        let position = weighed.iter().position(is_it)?;
        Some(weighed.swap_remove(position))
    }

    /// A buffer's id, and the name that its user gave it.
    fn name(&self, buffer: BufferId) -> String {
        match self.names.get(&buffer) {
            Some(name) if **name != *buffer.to_string() => format!("{buffer} \"{name}\""),
            _ => buffer.to_string(),
        }
    }

    /// Tells what has been decided for a consumer.
    fn tell(&mut self, consumer: &Task) {
        // What has become a forward is among what has been decided.
        for weighed in self.weighed.remove(&consumer.id).into_iter().flatten() {
            self.decided.push(format!("{} moves {weighed}", self.name(weighed.buffer)));
        }
        let at = consumer.location.as_ref().map_or_else(String::new, |at| format!(" at {at}"));
        for decided in self.decided.drain(..) {
            let line = format!("for \"{}\"{at}, {decided}", consumer.name);
            if self.told.len() < MOST_TOLD && self.told.insert(line.clone()) {
                (self.tell)(&line);
            }
        }
    }
}

impl Observer for Explanations {
    fn buffer(&mut self, info: &Arc<BufferInfo>, _: Option<AllocationId>) {
        self.names.insert(info.id, info.name.clone());
    }

    fn weighed(&mut self, weighed: &Weighed) {
        self.weighed.entry(weighed.consumer).or_default().push(weighed.clone());
    }

    fn task(
        &mut self,
        task: &Arc<Task>,
        commands: &[Command],
        _: &[Instruction],
        _: &[Pilot],
    ) -> Result<(), String> {
        match task.work {
            Work::Forward => self.decide(task, commands),
            _ => self.tell(task),
        }
        Ok(())
    }

    fn buffer_end(&mut self, buffer: BufferId, _: &[Instruction]) -> Result<(), String> {
        self.names.remove(&buffer);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use celerity_cdag::{CommandId, NodeId, TransferId};
    use celerity_cpd::{Collective, Ends, Estimate, Members, Movement, Pattern};
    use celerity_regions::Box3;
    use celerity_tdag::{
        Access, AccessMode, Conflicts, Dependencies, Forward, ForwardEnd, IndexSpace, Mapper,
        SourceLocation, TaskId,
    };

    use super::*;

    fn buffer(name: &str) -> Arc<BufferInfo> {
        let (id, extent) = (BufferId::from_index(2), Box3::from_range([8]));
        let name = name.into();
        let (dims, elem_size, elem_align, host_initialized) = (1, 4, 4, false);
        Arc::new(BufferInfo { id, name, dims, extent, elem_size, elem_align, host_initialized })
    }

    fn task(id: u64, work: Work) -> Arc<Task> {
        let access = Access::buffer(BufferId::from_index(2), AccessMode::ReadWrite, Mapper::All);
        Arc::new(Task {
            id: TaskId::from_index(id),
            name: "attract".into(),
            work,
            accesses: [access].into(),
            dependencies: Dependencies::default(),
            conflicts: Conflicts::default(),
            location: Some(SourceLocation { file: "main.rs".into(), line: 12 }),
            forward: None,
        })
    }

    fn broadcast(task: &Task) -> Command {
        let (consumer, buffer) = (task.id, BufferId::from_index(2));
        let from = Ends::One(NodeId::from_index(0));
        let region = Box3::from_range([8]).into();
        let collective =
            Arc::new(Collective { members: Members::all(), region, from, to: Ends::All });
        let transfer = TransferId { consumer, buffer };
        Command {
            id: CommandId::from_index(1),
            task: task.id,
            kind: CommandKind::Collective { transfer, collective },
            dependencies: Dependencies::default(),
            conflicts: Conflicts::default(),
        }
    }

    /// As discovery weighs what `forward` is about.
    fn weighed(forward: &Task, estimate: Estimate) -> Weighed {
        let Forward { producer, consumer } = forward.forward.as_deref().expect("it has ends");
        let (pattern, buffer) = (Pattern::Broadcast, BufferId::from_index(2));
        let movement = Movement { pattern, nodes: 2, from: 1, to: 2, bytes: 32 };
        let (producer, consumer, members) = (producer.task, consumer.task, Members::all());
        Weighed { producer, consumer, buffer, movement, members, estimate }
    }

    fn forward(id: u64) -> Arc<Task> {
        let [producer, consumer] = [1, id + 1].map(|id| {
            let (task, work) = (TaskId::from_index(id), Work::Fence);
            ForwardEnd { task, work, accesses: Box::default() }
        });
        let forward = Some(Arc::new(Forward { producer, consumer }));
        Arc::new(Task { forward, ..(*task(id, Work::Forward)).clone() })
    }

    #[test]
    fn what_has_been_weighed_is_told_with_what_was_chosen_first() {
        let (lines, told) = mpsc::channel();
        let mut explanations =
            Explanations::to(move |line| lines.send(line.to_owned()).expect("the test listens"));
        let dear = Estimate { collective: 9000, pairs: 1500 };
        let cheap = Estimate { collective: 1500, pairs: 9000 };
        let consumer = |id: u64| task(id + 1, Work::Fence);
        // Told of two tasks before the first one is shown: work is held back.
        explanations.weighed(&weighed(&forward(3), cheap));
        explanations.weighed(&weighed(&forward(5), dear));
        explanations.weighed(&weighed(&forward(7), cheap));
        let mut show = |forward: Option<&Arc<Task>>, commands: &[Command], id| {
            if let Some(forward) = forward {
                explanations.task(forward, commands, &[], &[]).expect("it only watches");
            }
            explanations.task(&consumer(id), &[], &[], &[]).expect("it only watches");
        };
        show(Some(&forward(3)), &[broadcast(&forward(3))], 3);
        show(None, &[], 5);
        // Chunks have told that nothing fits.
        show(Some(&forward(7)), &[], 7);
        assert!(explanations.weighed.is_empty());
        drop(explanations);
        assert_eq!(
            told.into_iter().collect::<Vec<_>>(),
            [
                "for \"attract\" at main.rs:12, B2 moves in one broadcast: 1.5 µs, 9.0 µs between \
                 pairs of nodes",
                "for \"attract\" at main.rs:12, B2 moves between pairs of nodes: 1.5 µs, 9.0 µs in \
                 one broadcast",
                "for \"attract\" at main.rs:12, B2 moves between pairs of nodes",
            ]
        );
    }

    #[test]
    fn each_decision_is_told_once_with_the_consumer_and_its_line() {
        let (lines, told) = mpsc::channel();
        let mut explanations =
            Explanations::to(move |line| lines.send(line.to_owned()).expect("the test listens"));
        let line = Work::Device(IndexSpace::new(1, Box3::from_range([8])));
        let mut step = |id: u64, is_collective: bool| {
            let forward = task(id, Work::Forward);
            let commands: Vec<Command> =
                is_collective.then(|| broadcast(&forward)).into_iter().collect();
            explanations.task(&forward, &commands, &[], &[]).expect("it only watches");
            explanations.task(&task(id + 1, line), &[], &[], &[]).expect("it only watches");
        };
        step(1, true);
        step(3, true);
        step(5, false);
        explanations.buffer(&buffer("B2"), None);
        let forward = task(7, Work::Forward);
        explanations.task(&forward, &[], &[], &[]).expect("it only watches");
        explanations.task(&task(8, line), &[], &[], &[]).expect("it only watches");
        explanations.buffer(&buffer("positions"), None);
        explanations.task(&forward, &[broadcast(&forward)], &[], &[]).expect("it only watches");
        explanations.task(&task(8, line), &[], &[], &[]).expect("it only watches");
        drop(explanations);
        assert_eq!(
            told.into_iter().collect::<Vec<_>>(),
            [
                "for \"attract\" at main.rs:12, B2 moves in one broadcast",
                "for \"attract\" at main.rs:12, B2 moves between pairs of nodes",
                "for \"attract\" at main.rs:12, B2 \"positions\" moves in one broadcast",
            ]
        );
    }

    #[test]
    fn who_takes_part_is_told_where_not_all_do() {
        let (lines, told) = mpsc::channel();
        let mut explanations =
            Explanations::to(move |line| lines.send(line.to_owned()).expect("the test listens"));
        let forward = task(1, Work::Forward);
        let mut command = broadcast(&forward);
        if let CommandKind::Collective { collective, .. } = &mut command.kind {
            Arc::make_mut(collective).members = Members::range(0, 3, 5);
        }
        explanations.task(&forward, &[command], &[], &[]).expect("it only watches");
        explanations.task(&task(2, Work::Fence), &[], &[], &[]).expect("it only watches");
        drop(explanations);
        let expected = "for \"attract\" at main.rs:12, B2 moves in one broadcast among N0 to N2";
        assert_eq!(told.into_iter().collect::<Vec<_>>(), [expected]);
    }
}
