//! What is known of an allocation for which there is no room: who wanted it, and who
//! has the memory. Looked up when it has failed, so that nobody pays for it before.

use celerity_idag::{AllocationId, DeviceId, InstructionKind, MemoryId, Placement};
use celerity_regions::Box3;
use celerity_tdag::{BufferId, TaskId};

use super::Executor;
use super::open::Stage;
use crate::backend::AllocError;
use crate::error::{NoRoom, RunError};

/// Memory that an instruction asks for.
pub(super) struct Wanted {
    pub(super) allocation: AllocationId,
    pub(super) memory: MemoryId,
    pub(super) buffer: BufferId,
    pub(super) bytes: u64,
    /// The elements that it is for; all that the allocation will hold, if not given.
    pub(super) part: Option<Box3>,
}

impl Executor {
    /// The error for an allocation that the backend has refused.
    pub(super) fn out_of_memory(
        &self,
        wanted: &Wanted,
        AllocError { resident, free }: AllocError,
    ) -> RunError {
        let Wanted { allocation, memory, buffer, bytes, part } = *wanted;
        let mut users = self.unissued().filter(|kind| placed_in(kind, allocation).is_some());
        let task = users.find_map(|kind| kind.effects().task());
        let placement = || self.unissued().find_map(|kind| placed_in(kind, allocation));
        let error = Box::new(NoRoom {
            memory: describe(memory),
            task: task.map(|task| self.described(task)),
            buffer: self.store.buffer_name(buffer),
            extent: part.or_else(|| placement().map(|placement| placement.extent)),
            bytes,
            resident,
            free,
            residents: self.store.residents(memory),
        });
        RunError::OutOfMemory { node: self.id(), error }
    }

    /// What has not been issued, in ascending order: users of an allocation are among
    /// it for as long as that has not been made.
    fn unissued(&self) -> impl Iterator<Item = &InstructionKind> {
        self.open.iter().filter_map(|(_, open)| match &open.stage {
            Stage::Waiting(kind) => Some(kind),
            Stage::Issued(..) => None,
        })
    }

    fn described(&self, task: TaskId) -> String {
        let running = self.tasks.get(task.index());
        running.map_or_else(|| task.to_string(), |running| running.task.to_string())
    }
}

/// How an instruction uses an allocation, if it does.
fn placed_in(kind: &InstructionKind, allocation: AllocationId) -> Option<&Placement> {
    let mut placements = kind.effects().touches().map(|touch| touch.placement);
    placements.find(|placement| placement.allocation == allocation)
}

fn describe(memory: MemoryId) -> String {
    let device = |device: DeviceId| format!("{memory}, the memory of {device}");
    memory.device().map_or_else(|| format!("{memory}, host memory"), device)
}
