//! The instructions of a node that have not completed: what waits to be issued,
//! and what has been handed to somebody. Decides nothing.

use celerity_cdag::{NodeId, TransferId};
use celerity_idag::{
    AllocationId, DeviceId, Effects, Exchange, ExchangePart, InstructionId, InstructionKind,
    Lifetime, LifetimeChange, MemoryId, MessageId, Synchronization, TaskPart,
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
    /// Makes or extends an allocation.
    Alloc {
        allocation: AllocationId,
        memory: MemoryId,
        buffer: BufferId,
    },
    Free {
        allocation: AllocationId,
        memory: MemoryId,
    },
    Send {
        to: NodeId,
        message: MessageId,
        transfer: TransferId,
    },
    Receive {
        transfer: TransferId,
    },
    /// Takes part in a collective operation.
    Collective {
        verb: &'static str,
        transfer: TransferId,
    },
    Copy {
        buffer: BufferId,
        from: MemoryId,
        to: MemoryId,
    },
    /// Runs the function of a task, on a device or on the host.
    Run {
        task: TaskId,
        device: Option<DeviceId>,
    },
    Horizon {
        task: TaskId,
    },
    Epoch {
        task: TaskId,
        action: EpochAction,
    },
    /// None of these; to be told by its verb.
    Other(&'static str),
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
        let issued = Stage::Issued(Summary::of(&kind.effects()), lane);
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
            Stage::Issued(Summary::Run { task, device }, _) => Some((task, device)),
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
    pub(super) fn of(effects: &Effects<'_>) -> Self {
        if let Some(lifetime) = effects.lifetime {
            return Self::of_lifetime(&lifetime);
        }
        if let Some(Exchange { transfer, part, .. }) = effects.exchange {
            return match part {
                ExchangePart::Send { to, message } => Self::Send { to, message, transfer },
                ExchangePart::Receive | ExchangePart::Begin | ExchangePart::Await => {
                    Self::Receive { transfer }
                }
                ExchangePart::Collective { .. } => {
                    Self::Collective { verb: effects.verb, transfer }
                }
            };
        }
        match (effects.runs, effects.synchronizes, effects.source, effects.target) {
            (Some(TaskPart { task, .. }), ..) => Self::Run { task, device: effects.lane.device() },
            (_, Some(Synchronization::Horizon { task }), ..) => Self::Horizon { task },
            (_, Some(Synchronization::Epoch { task, action }), ..) => Self::Epoch { task, action },
            (.., Some(source), Some(target)) => {
                let (from, to) = (source.placement.memory, target.placement.memory);
                Self::Copy { buffer: source.buffer, from, to }
            }
            _ => Self::Other(effects.verb),
        }
    }

    fn of_lifetime(lifetime: &Lifetime<'_>) -> Self {
        let Lifetime { allocation, memory, change } = *lifetime;
        match change {
            LifetimeChange::Made { buffer, .. } | LifetimeChange::Grown { buffer, .. } => {
                Self::Alloc { allocation, memory, buffer }
            }
            LifetimeChange::Ended => Self::Free { allocation, memory },
        }
    }
}
