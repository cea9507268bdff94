//! What is kept of an instruction once it has been checked: enough to draw it, a few words each.

use std::fmt;

use celerity_cdag::{NodeId, TransferId};
use celerity_idag::{
    AllocationId, DeviceId, Effects, Exchange, ExchangePart, InstructionKind, LaneKind,
    LifetimeChange, MemoryId, TaskPart,
};
use celerity_regions::Box3;
use celerity_tdag::{BufferId, TaskId};

/// What is left of an instruction that has been checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InstructionSketch {
    /// Whether it is a copy.
    pub(crate) copies: bool,
    drawn: Drawn,
}

/// Enough of an instruction to draw it. Taken from its [`Effects`], since nothing is judged by it:
/// rules look at instructions themselves.
#[derive(Clone, Copy, Debug)]
enum Drawn {
    Made {
        verb: &'static str,
        place: (MemoryId, AllocationId),
        buffer: BufferId,
    },
    Grown {
        verb: &'static str,
        place: (MemoryId, AllocationId),
        elements: Box3,
    },
    Ended {
        verb: &'static str,
        place: (MemoryId, AllocationId),
    },
    Moved {
        verb: &'static str,
        source: (MemoryId, AllocationId),
        target: (MemoryId, AllocationId),
        elements: Box3,
    },
    Sent {
        verb: &'static str,
        to: NodeId,
        transfer: TransferId,
        elements: Box3,
    },
    Arrives {
        verb: &'static str,
        transfer: TransferId,
    },
    Kernel {
        device: DeviceId,
        task: TaskId,
        chunk: Box3,
    },
    HostTask(TaskId),
    Other(&'static str),
}

impl InstructionSketch {
    pub(crate) fn of(kind: &InstructionKind) -> Self {
        let copies = matches!(kind, InstructionKind::Copy { .. });
        Self { copies, drawn: Drawn::of(&kind.effects()) }
    }
}

impl fmt::Display for InstructionSketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.drawn.fmt(f)
    }
}

impl Drawn {
    fn of(effects: &Effects<'_>) -> Self {
        let verb = effects.verb;
        if let Some(lifetime) = &effects.lifetime {
            let place = (lifetime.memory, lifetime.allocation);
            return match lifetime.change {
                LifetimeChange::Made { buffer, .. } => Self::Made { verb, place, buffer },
                LifetimeChange::Grown { elements, .. } => Self::Grown { verb, place, elements },
                LifetimeChange::Ended => Self::Ended { verb, place },
            };
        }
        if let Some(Exchange { transfer, elements, part }) = effects.exchange {
            return match part {
                ExchangePart::Send { to, .. } => {
                    Self::Sent { verb, to, transfer, elements: elements.bounding_box() }
                }
                ExchangePart::Receive
                | ExchangePart::Begin
                | ExchangePart::Await
                | ExchangePart::Collective { .. } => Self::Arrives { verb, transfer },
            };
        }
        match (effects.runs, effects.lane, effects.source, effects.target) {
            (Some(TaskPart { task, chunk: Some(chunk), .. }), LaneKind::Kernel(device), ..) => {
                Self::Kernel { device, task, chunk }
            }
            (Some(TaskPart { task, .. }), ..) => Self::HostTask(task),
            (None, _, Some(source), Some(target)) => Self::Moved {
                verb,
                source: (source.placement.memory, source.placement.allocation),
                target: (target.placement.memory, target.placement.allocation),
                elements: source.elements.bounding_box(),
            },
            (None, ..) => Self::Other(verb),
        }
    }
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Made { verb, place: (memory, allocation), buffer } => {
                write!(f, "{verb} {memory}.{allocation} for {buffer}")
            }
            Self::Grown { verb, place: (memory, allocation), elements } => {
                write!(f, "{verb} {memory}.{allocation} by {elements}")
            }
            Self::Ended { verb, place: (memory, allocation) } => {
                write!(f, "{verb} {memory}.{allocation}")
            }
            Self::Moved { verb, source, target, elements } => {
                let ((from, source), (to, target)) = (source, target);
                write!(f, "{verb} {elements} from {from}.{source} to {to}.{target}")
            }
            Self::Sent { verb, to, transfer, elements } => {
                write!(f, "{verb} {elements} of {transfer} to {to}")
            }
            Self::Arrives { verb, transfer } => write!(f, "{verb} {transfer}"),
            Self::Kernel { device, task, chunk } => write!(f, "{task} {chunk} on {device}"),
            Self::HostTask(task) => write!(f, "{task} on the host"),
            Self::Other(verb) => f.write_str(verb),
        }
    }
}
