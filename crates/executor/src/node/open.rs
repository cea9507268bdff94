//! The instructions of a node that have not completed: what waits to be issued,
//! and what has been handed to somebody. Decides nothing.

use celerity_cdag::{NodeId, TransferId};
use celerity_idag::{
    AllocationId, DeviceId, Inbound, InstructionId, InstructionKind, MemoryId, MessageId,
};
use celerity_tdag::{BufferId, EpochAction, TaskId};

use crate::engine::LaneId;
use crate::time::Time;
use crate::window::Window;

/// All incomplete instructions. Every operation is O(1), amortised.
#[derive(Default)]
pub(super) struct OpenInstructions {
    table: Window<Open>,
}

/// An incomplete instruction.
pub(super) struct Open {
    /// When it entered its stage.
    pub(super) since: Time,
    pub(super) stage: Stage,
}

pub(super) enum Stage {
    /// Not issued yet.
    Waiting(InstructionKind),
    /// Somebody is at it: a lane, or the node itself.
    Issued(Summary, Option<LaneId>),
}

/// What is left to know of an instruction once it has been issued.
#[derive(Clone, Copy)]
pub(super) enum Summary {
    Alloc { allocation: AllocationId, memory: MemoryId, buffer: BufferId },
    Free { allocation: AllocationId, memory: MemoryId },
    Copy { buffer: BufferId, from: MemoryId, to: MemoryId },
    Send { to: NodeId, message: MessageId, transfer: TransferId },
    Receive { transfer: TransferId },
    Kernel { task: TaskId, device: DeviceId },
    HostTask { task: TaskId },
    Horizon { task: TaskId },
    Epoch { task: TaskId, action: EpochAction },
}

impl OpenInstructions {
    /// Adds an instruction that has not been issued.
    pub(super) fn admit(&mut self, instruction: InstructionId, kind: InstructionKind, now: Time) {
        self.table.insert(instruction.index(), Open { since: now, stage: Stage::Waiting(kind) });
    }

    /// Marks an instruction as issued, and hands out what it was.
    pub(super) fn issue(
        &mut self,
        instruction: InstructionId,
        lane: Option<LaneId>,
        now: Time,
    ) -> InstructionKind {
        let open = self.table.get_mut(instruction.index());
        let open = open.expect("an instruction is issued before it completes");
        let Stage::Waiting(kind) = &open.stage else {
            unreachable!("{instruction} is issued twice")
        };
        let issued = Stage::Issued(Summary::of(kind), lane);
        open.since = now;
        match std::mem::replace(&mut open.stage, issued) {
            Stage::Waiting(kind) => kind,
            Stage::Issued(..) => unreachable!("checked above"),
        }
    }

    /// The task, and the device if there is one, whose payload an issued
    /// instruction runs.
    pub(super) fn task_of(&self, instruction: InstructionId) -> Option<(TaskId, Option<DeviceId>)> {
        match self.table.get(instruction.index())?.stage {
            Stage::Issued(Summary::Kernel { task, device }, _) => Some((task, Some(device))),
            Stage::Issued(Summary::HostTask { task }, _) => Some((task, None)),
            _ => None,
        }
    }

    /// Forgets an instruction that has completed; returns the lane that it was on.
    pub(super) fn retire(&mut self, instruction: InstructionId) -> Option<LaneId> {
        let Stage::Issued(_, lane) = self.table.get(instruction.index())?.stage else {
            unreachable!("{instruction} completes before it is issued")
        };
        self.table.discard(instruction.index());
        lane
    }

    /// All of them, in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (InstructionId, &Open)> {
        let entries = self.table.iter();
        entries.map(|(index, open)| (InstructionId::from_index(index), open))
    }
}

impl Summary {
    pub(super) fn of(kind: &InstructionKind) -> Self {
        match *kind {
            InstructionKind::Alloc { allocation, memory, buffer, .. }
            | InstructionKind::Reserve { allocation, memory, buffer, .. }
            | InstructionKind::Grow { allocation, memory, buffer, .. } => {
                Self::Alloc { allocation, memory, buffer }
            }
            InstructionKind::Free { allocation, memory } => Self::Free { allocation, memory },
            InstructionKind::Copy { buffer, source, target, .. } => {
                Self::Copy { buffer, from: source.memory, to: target.memory }
            }
            InstructionKind::Send { to, message, transfer, .. } => {
                Self::Send { to, message, transfer }
            }
            InstructionKind::Receive(Inbound { transfer, .. })
            | InstructionKind::SplitReceive(Inbound { transfer, .. })
            | InstructionKind::AwaitReceive { transfer, .. } => Self::Receive { transfer },
            InstructionKind::Kernel { task, device, .. } => Self::Kernel { task, device },
            InstructionKind::HostTask { task, .. } => Self::HostTask { task },
            InstructionKind::Horizon { task } => Self::Horizon { task },
            InstructionKind::Epoch { task, action } => Self::Epoch { task, action },
        }
    }
}
