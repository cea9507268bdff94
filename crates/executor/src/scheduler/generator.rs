//! From tasks to instructions: the two graph generators of one node, with the
//! lookahead between them. Knows nothing of execution.

use std::sync::Arc;

use celerity_cdag::{Command, CommandGraph, CommandGraphConfig};
use celerity_cpd::Weighed;
use celerity_idag::{InstructionGraph, Lookahead, LookaheadQueue, Placement, Released};
use celerity_tdag::{BufferId, BufferInfo, Task};

use super::Batch;
use crate::error::ScheduleError;
use crate::observe::{Observer, Observers, Shown};

/// The two graph generators and their scratch memory.
pub(super) struct Generator {
    commands: CommandGraph,
    instructions: LookaheadQueue,
    observers: Observers,
    command_batch: Vec<Command>,
    /// Empty ones, to be filled.
    batches: Vec<Batch>,
}

impl Generator {
    pub(super) fn new(commands: CommandGraphConfig, instructions: InstructionGraph) -> Self {
        Self {
            commands: CommandGraph::new(commands),
            instructions: LookaheadQueue::new(instructions, Lookahead::None),
            observers: Observers::default(),
            command_batch: Vec::new(),
            batches: Vec::new(),
        }
    }

    pub(super) fn set_lookahead(&mut self, lookahead: Lookahead) {
        self.instructions.set_lookahead(lookahead);
    }

    pub(super) fn limit_member_sets(&mut self, most: usize) {
        self.commands.limit_member_sets(most);
    }

    pub(super) fn observe(&mut self, observer: Box<dyn Observer>) {
        self.observers.add(observer);
    }

    pub(super) fn weighed(&mut self, weighed: &Weighed) {
        self.observers.weighed(weighed);
    }

    /// Adds a buffer, or renames a known one. Returns where its initial contents have to be, if it
    /// has any.
    pub(super) fn register_buffer(&mut self, info: &Arc<BufferInfo>) -> Option<Placement> {
        self.commands.register_buffer(info);
        let user_data = self.instructions.register_buffer(info);
        self.observers.buffer(info, user_data.map(|placed| placed.allocation));
        user_data
    }

    /// The instructions that give a buffer's memory back, behind those of all
    /// that was held back.
    pub(super) fn drop_buffer(&mut self, buffer: BufferId) -> Result<Batch, Box<ScheduleError>> {
        self.commands.drop_buffer(buffer);
        self.instructions.drop_buffer(buffer);
        self.release(None)
    }

    /// The instructions of a task and of what was held back before it, as far
    /// as they may go; or what is wrong.
    pub(super) fn generate(&mut self, task: &Arc<Task>) -> Result<Batch, Box<ScheduleError>> {
        let mut complaints = Vec::new();
        self.commands.schedule(task, &mut self.command_batch, &mut complaints);
        self.instructions.push(task, &mut self.command_batch);
        self.release(complaints.into_iter().next().map(ScheduleError::from))
    }

    /// Lets go of everything that is held back.
    pub(super) fn flush(&mut self) -> Result<Batch, Box<ScheduleError>> {
        self.instructions.flush();
        self.release(None)
    }

    /// What may go, unless there is a complaint, or one comes of it: the first counts.
    fn release(
        &mut self,
        mut complaint: Option<ScheduleError>,
    ) -> Result<Batch, Box<ScheduleError>> {
        let mut batch = self.batches.pop().unwrap_or_default();
        let Batch { schedule, ended, held_horizons, answers } = &mut batch;
        let (mut diagnostics, mut shown) = (Vec::new(), Shown::default());
        while let Some(released) = self.instructions.release(schedule, &mut diagnostics) {
            complaint = complaint.or_else(|| diagnostics.drain(..).next().map(ScheduleError::from));
            if complaint.is_none() {
                let allowed = self.observers.released(released, schedule, &mut shown);
                allowed.map_err(|error| Box::new(ScheduleError::Observed(error)))?;
            }
            if let Released::TaskEnd(task) = released {
                ended.push(task.id);
            }
        }
        *held_horizons = self.instructions.held_horizons() as u64;
        *answers = self.commands.answers();
        complaint.map_or(Ok(batch), |complaint| Err(Box::new(complaint)))
    }

    /// Takes an empty batch's memory back.
    pub(super) fn recycle(&mut self, batch: Batch) {
        self.batches.push(batch);
    }
}
