//! Host objects: from what orders commands with side effects to what orders the instructions that
//! run them. Owns which instructions run which command; who conflicts, the command graph has said.

use std::collections::BTreeMap;

use celerity_cdag::{Command, CommandId};
use celerity_tdag::{Conflicts, ObjectId, SideEffectOrder, Task};
use smallvec::SmallVec;

use crate::emit::Waits;
use crate::instruction::InstructionId;

/// The instructions of one command.
type Instructions = SmallVec<[InstructionId; 1]>;

/// The objects of one task.
type Objects = SmallVec<[ObjectId; 2]>;

/// The instructions of recent commands with side effects.
#[derive(Debug, Default)]
pub(crate) struct ObjectOrder(BTreeMap<CommandId, Ran>);

/// What a command was, and is now.
#[derive(Debug)]
struct Ran {
    objects: Objects,
    instructions: Instructions,
}

/// What side effects mean to the launches of one command, in order.
#[derive(Debug, Default)]
pub(crate) struct LaunchOrder(Option<Box<Affecting>>);

#[derive(Debug)]
struct Affecting {
    command: CommandId,
    objects: Objects,
    /// What all of them wait for.
    after: Instructions,
    /// What none of them may meet.
    conflicts: Instructions,
    /// Whether each waits for the one before: in ascending order of their chunks.
    in_turn: bool,
    launched: Instructions,
}

impl ObjectOrder {
    /// What the launches of `command` wait for and conflict with: the instructions of the commands
    /// that it waits for and conflicts with, and those of its own before. O(1) without side effects.
    #[inline]
    pub(crate) fn order_of(&self, command: &Command, task: &Task) -> LaunchOrder {
        match task.has_side_effects() {
            true => LaunchOrder(Some(Box::new(self.affecting(command, task)))),
            false => LaunchOrder::default(),
        }
    }

    fn affecting(&self, command: &Command, task: &Task) -> Affecting {
        let objects: Objects = task.side_effects().map(|effect| effect.object).collect();
        // Buffers, through which commands depend on each other, too, are the business of memory.
        let of = |id: CommandId| {
            let ran = self.0.get(&id).filter(|ran| ran.share(&objects));
            ran.into_iter().flat_map(|ran| &ran.instructions).copied()
        };
        let relaxed = |order| order == SideEffectOrder::Relaxed;
        let in_turn = !task.side_effects().all(|effect| relaxed(effect.order));
        let conflicts = command.conflicts.as_slice().iter();
        #[cfg(feature = "mutants")]
        let conflicts =
            conflicts.skip(usize::from(celerity_mutants::Mutant::ConflictLost.is_active()));
        Affecting {
            command: command.id,
            after: command.dependencies.iter().flat_map(|edge| of(edge.on)).collect(),
            conflicts: conflicts.flat_map(|&id| of(id)).collect(),
            in_turn,
            objects: objects.clone(),
            launched: Instructions::new(),
        }
    }

    /// Remembers what has been launched.
    #[inline]
    pub(crate) fn note(&mut self, LaunchOrder(order): LaunchOrder) {
        if let Some(order) = order {
            let Affecting { command, objects, launched: instructions, .. } = *order;
            self.0.insert(command, Ran { objects, instructions });
        }
    }

    /// Forgets commands that the synchronisation point stands in for.
    #[inline]
    pub(crate) fn forget_before(&mut self, point: InstructionId) {
        if !self.0.is_empty() {
            self.0.retain(|_, ran| ran.instructions.iter().any(|&id| id >= point));
        }
    }
}

impl Ran {
    fn share(&self, objects: &[ObjectId]) -> bool {
        self.objects.iter().any(|object| objects.contains(object))
    }
}

impl LaunchOrder {
    /// Lets the next launch wait for what comes before it. Side effects that have been forgotten
    /// came before the synchronisation point.
    pub(crate) fn wait(&self, waits: &mut Waits) {
        let Some(order) = &self.0 else { return };
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::SideEffectUnordered.is_active() {
            return;
        }
        waits.add(waits.point());
        order.after.iter().for_each(|&id| waits.add(id));
        if order.in_turn {
            order.launched.last().into_iter().for_each(|&id| waits.add(id));
        }
    }

    /// What the next launch, which `waits`, must not meet.
    pub(crate) fn conflicts(&self, waits: &Waits) -> Conflicts<InstructionId> {
        let conflicts = self.0.iter().flat_map(|order| &order.conflicts).copied();
        Conflicts::of(conflicts.filter(|&id| !waits.contains(id)))
    }

    /// The next one has been launched.
    #[inline]
    pub(crate) fn launched(&mut self, id: InstructionId) {
        if let Some(order) = &mut self.0 {
            order.launched.push(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use celerity_cdag::{CommandGraph, CommandGraphConfig};
    use celerity_cdag::{CommandKind, NodeId};
    use celerity_tdag::{Access, TaskGraph, TaskGraphConfig, TaskSpec, Work};

    use super::*;
    use crate::emit::InstructionStream;

    /// Host tasks with these effects on one object each, and the commands that execute them.
    fn commands(orders: &[SideEffectOrder]) -> (Vec<Arc<Task>>, Vec<Command>) {
        let mut graph = TaskGraph::new(TaskGraphConfig { horizon_step: 99, ..Default::default() });
        let mut tasks = vec![graph.start()];
        let object = graph.create_object(None);
        for &order in orders {
            let accesses = vec![Access::object(object, order)];
            let (name, work) = ("t".into(), Work::HostOnce { node: 0 });
            let spec = TaskSpec { name, work, accesses, location: None };
            graph.submit(spec, &mut tasks).expect("a lawful task");
        }
        let local = NodeId::from_index(0);
        let mut node = CommandGraph::new(CommandGraphConfig { nodes: 1, local });
        let mut commands = Vec::new();
        tasks.iter().for_each(|task| node.schedule(task, &mut commands, &mut Vec::new()));
        commands.retain(|command| matches!(command.kind, CommandKind::Execute { .. }));
        tasks.remove(0);
        (tasks, commands)
    }

    fn id(index: u64) -> InstructionId {
        InstructionId::from_index(index)
    }

    /// Gives each command three launches; returns what each of them waits for beside the point,
    /// and conflicts with.
    fn launches(orders: &[SideEffectOrder]) -> Vec<(Vec<u64>, Vec<u64>)> {
        let (tasks, commands) = commands(orders);
        let (mut objects, mut edges, mut next) = (ObjectOrder::default(), Vec::new(), 1);
        for (task, command) in tasks.iter().zip(&commands) {
            let mut order = objects.order_of(command, task);
            for _ in 0..3 {
                let mut waits = InstructionStream::default().waits();
                order.wait(&mut waits);
                let on = (1..next).filter(|&on| waits.contains(id(on))).collect();
                let with = order.conflicts(&waits);
                edges.push((on, with.as_slice().iter().map(|with| with.index()).collect()));
                order.launched(id(next));
                next += 1;
            }
            objects.note(order);
        }
        edges
    }

    #[test]
    fn launches_of_one_command_run_in_turn_unless_they_are_relaxed() {
        use SideEffectOrder::{Exclusive, Relaxed, Sequential};
        let none = Vec::new;
        let expected = [(none(), none()), (vec![1], none()), (vec![2], none())];
        assert_eq!(launches(&[Sequential]), expected);
        assert_eq!(launches(&[Exclusive]), expected);
        assert_eq!(launches(&[Relaxed]), [(none(), none()), (none(), none()), (none(), none())]);
    }

    #[test]
    fn all_launches_of_a_command_come_after_or_apart_from_those_of_another() {
        use SideEffectOrder::{Exclusive, Sequential};
        let all = || vec![1, 2, 3];
        let in_order = launches(&[Sequential, Sequential]);
        assert_eq!(
            in_order[3..],
            [(all(), vec![]), (vec![1, 2, 3, 4], vec![]), (vec![1, 2, 3, 5], vec![])]
        );
        let apart = launches(&[Exclusive, Exclusive]);
        assert_eq!(apart[3..], [(vec![], all()), (vec![4], all()), (vec![5], all())]);
    }
}
