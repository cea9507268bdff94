//! What a node hands to its trace, if it has one; without one, each of these is a
//! branch. Changes nothing but the trace.

use std::sync::Arc;

use celerity_cdag::NodeId;
use celerity_idag::{Effects, InstructionId, InstructionKind, MemoryId, MessageId};
use celerity_tdag::TaskId;

use super::Executor;
use crate::arbiter::PostReceive;
use crate::engine::LaneId;
use crate::profile::{Label, NodeProfile};
use crate::time::Span;

impl Executor {
    /// Records everything that is executed.
    pub(crate) fn record(&mut self, profile: NodeProfile) {
        self.time_jobs(profile.clock());
        self.profile = Some(Box::new(profile));
    }

    pub(super) fn record_issue(
        &mut self,
        instruction: InstructionId,
        lane: Option<LaneId>,
        kind: &InstructionKind,
    ) {
        if self.profile.is_none() {
            return;
        }
        let effects = kind.effects();
        let label = Label::new(&effects, self.subject(&effects));
        if let Some(profile) = &mut self.profile {
            profile.issued(instruction, lane, &effects, label);
        }
    }

    pub(super) fn record_span(&mut self, instruction: InstructionId, span: Option<Span>) {
        if let (Some(profile), Some(span)) = (&mut self.profile, span) {
            profile.timed(instruction, span);
        }
    }

    pub(super) fn record_retired(&mut self, instruction: InstructionId) {
        if let Some(profile) = &mut self.profile {
            profile.retired(instruction);
        }
    }

    pub(super) fn record_post(&mut self, post: &PostReceive) {
        if let Some(profile) = &mut self.profile {
            profile.posted(post, self.store.user_name(post.transfer.buffer));
        }
    }

    pub(super) fn record_arrival(&mut self, from: NodeId, message: MessageId) {
        if let Some(profile) = &mut self.profile {
            profile.arrived(from, message);
        }
    }

    pub(super) fn record_alloc(&mut self, memory: MemoryId, bytes: u64) {
        if let Some(profile) = &mut self.profile {
            profile.allocated(memory, bytes);
        }
    }

    pub(super) fn record_free(&mut self, (memory, bytes): (MemoryId, u64)) {
        if let Some(profile) = &mut self.profile {
            profile.freed(memory, bytes);
        }
    }

    pub(super) fn record_poll(&mut self) {
        if let Some(profile) = &mut self.profile {
            let held_back = self.scheduling.done - self.scheduling.released;
            profile.polled(self.engine.incomplete(), held_back);
        }
    }

    /// What an instruction works on: the name of a task, or of a buffer.
    fn subject(&self, effects: &Effects<'_>) -> Arc<str> {
        match (effects.runs, effects.buffer()) {
            (Some(run), _) => self.task_name(run.task),
            (None, Some(buffer)) => self.store.user_name(buffer),
            (None, None) => Arc::default(),
        }
    }

    fn task_name(&self, task: TaskId) -> Arc<str> {
        let running = self.tasks.get(task.index());
        running.map_or_else(|| task.to_string().into(), |running| running.task.name.clone())
    }
}
