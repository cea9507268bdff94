//! Who is at the host objects of each node, exactly, as simulated jobs start and end: the naive
//! twin of what orders and excludes them. Told of tasks by an observer of each node's schedule.

use std::collections::BTreeMap;
use std::sync::Arc;

use celerity_cdag::Command;
use celerity_executor::Observer;
use celerity_idag::{AllocationId, Instruction, InstructionId, Pilot};
use celerity_tdag::{BufferId, BufferInfo, ObjectAccess, SideEffectOrder, Task, TaskId};

use super::Shared;

/// The host tasks with side effects of all nodes.
#[derive(Debug)]
pub(in crate::sim) struct Objects {
    /// By node.
    stays: Vec<BTreeMap<InstructionId, Stay>>,
}

/// What one host task does to objects, and how far it is.
#[derive(Debug)]
struct Stay {
    task: TaskId,
    effects: Vec<ObjectAccess>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Ahead,
    There,
    Over,
}

impl Objects {
    pub(in crate::sim) fn new(nodes: usize) -> Self {
        Self { stays: std::iter::repeat_with(BTreeMap::new).take(nodes).collect() }
    }

    /// A job starts. Says what is wrong with that.
    pub(in crate::sim) fn start(
        &mut self,
        node: usize,
        instruction: InstructionId,
    ) -> Option<String> {
        let stays = &self.stays[node];
        let me = stays.get(&instruction)?;
        let wrong =
            stays.iter().filter(|(other, _)| **other != instruction).find_map(|(id, stay)| {
                let what = me.clashes(stay, *id < instruction)?;
                Some(format!("{instruction} of {} starts {what} {id} of {}", me.task, stay.task))
            });
        self.set(node, instruction, Stage::There);
        wrong
    }

    /// A job ends.
    pub(in crate::sim) fn end(&mut self, node: usize, instruction: InstructionId) {
        self.set(node, instruction, Stage::Over);
    }

    fn set(&mut self, node: usize, instruction: InstructionId, stage: Stage) {
        if let Some(stay) = self.stays[node].get_mut(&instruction) {
            stay.stage = stage;
        }
    }
}

impl Stay {
    /// Why this one must not start now, because of another one. Chunks of one task have turns, in
    /// order of their instructions, unless all that they do is relaxed.
    fn clashes(&self, other: &Self, is_older: bool) -> Option<&'static str> {
        use SideEffectOrder::{Relaxed, Sequential};
        let mut shared = self.effects.iter().flat_map(|mine| {
            let same = other.effects.iter().filter(|theirs| theirs.object == mine.object);
            same.map(|theirs| [mine.order, theirs.order])
        });
        shared.find_map(|orders| {
            let is_same = other.task == self.task;
            let is_ordered =
                orders.contains(&Sequential) || is_same && orders != [Relaxed, Relaxed];
            let is_late = is_older && other.stage != Stage::Over;
            let is_early = !is_older && other.stage != Stage::Ahead;
            if is_ordered && is_late {
                Some("at a host object before")
            } else if is_ordered && is_early {
                Some("at a host object after")
            } else if orders != [Relaxed, Relaxed] && other.stage == Stage::There {
                Some("at a host object at the same time as")
            } else {
                None
            }
        })
    }
}

/// Tells the world of one node's host tasks.
pub(in crate::sim) struct Watch {
    pub(in crate::sim) node: usize,
    pub(in crate::sim) world: Shared,
}

impl Observer for Watch {
    fn buffer(&mut self, _: &Arc<BufferInfo>, _: Option<AllocationId>) {}

    fn task(
        &mut self,
        task: &Arc<Task>,
        _: &[Command],
        instructions: &[Instruction],
        _: &[Pilot],
    ) -> Result<(), String> {
        if !task.has_side_effects() {
            return Ok(());
        }
        let stays = &mut self.world.lock().objects.stays[self.node];
        for instruction in instructions.iter().filter(|one| one.effects().runs.is_some()) {
            let effects = task.side_effects().copied().collect();
            stays.insert(instruction.id, Stay { task: task.id, effects, stage: Stage::Ahead });
        }
        Ok(())
    }

    fn buffer_end(&mut self, _: BufferId, _: &[Instruction]) -> Result<(), String> {
        Ok(())
    }
}
