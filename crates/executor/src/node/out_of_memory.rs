//! What is known of an allocation for which there is no room: who wanted it, and who
//! has the memory. Looked up when it has failed, so that nobody pays for it before.

use celerity_idag::{AllocationId, DeviceId, Inbound, InstructionKind, MemoryId, Placement};
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
        let task = users.find_map(beneficiary);
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
    let placements: [Option<&Placement>; 2] = match kind {
        InstructionKind::Kernel { accesses, .. } | InstructionKind::HostTask { accesses, .. } => {
            let mut placements = accesses.iter().filter_map(|access| access.placement.as_ref());
            return placements.find(|placement| placement.allocation == allocation);
        }
        InstructionKind::Copy { source, target, .. } => [Some(source), Some(target)],
        InstructionKind::Send { source, .. } => [Some(source), None],
        InstructionKind::Receive(Inbound { target, .. })
        | InstructionKind::SplitReceive(Inbound { target, .. }) => [Some(target), None],
        _ => [None, None],
    };
    placements.into_iter().flatten().find(|placement| placement.allocation == allocation)
}

/// The task that an instruction is there for.
fn beneficiary(kind: &InstructionKind) -> Option<TaskId> {
    match kind {
        InstructionKind::Kernel { task, .. } | InstructionKind::HostTask { task, .. } => {
            Some(*task)
        }
        InstructionKind::Send { transfer, .. }
        | InstructionKind::Receive(Inbound { transfer, .. })
        | InstructionKind::SplitReceive(Inbound { transfer, .. }) => Some(transfer.consumer),
        _ => None,
    }
}

fn describe(memory: MemoryId) -> String {
    let device = |device: DeviceId| format!("{memory}, the memory of {device}");
    memory.device().map_or_else(|| format!("{memory}, host memory"), device)
}
