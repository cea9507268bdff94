//! The rules of one node's instruction graph, one instruction after the other:
//! shape, what each kind is called for, and that nothing called for is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use celerity_cdag::{NodeId, TransferId};
use celerity_idag::{
    AllocationId, DeviceId, DeviceMemory, Effects, Exchange, ExchangePart, Instruction,
    InstructionKind, LaneKind, LifetimeChange, MemoryId, Run,
};
use celerity_regions::Box3;
use celerity_tdag::{BufferId, TaskId, Work};
use smallvec::SmallVec;

use crate::allocations::{Allocation, Asked};
use crate::batch::{Batch, Promise};
use crate::buffers::Buffers;
use crate::violation::{Check, Vertex, Violation, Waste};
use crate::window::{Role, Window};

/// One node's instructions and memories.
#[derive(Clone, Debug)]
pub(crate) struct Instructions {
    pub(crate) node: NodeId,
    pub(crate) nodes: usize,
    pub(crate) devices: usize,
    /// What kernels are bound to.
    pub(crate) device_memory: DeviceMemory,
    /// Whether allocations may be made before they are needed.
    pub(crate) eager: bool,
    pub(crate) window: Window<InstructionLabel>,
    /// Those that live.
    pub(crate) allocations: BTreeMap<AllocationId, Allocation>,
    /// The same by buffer.
    pub(crate) owned: BTreeSet<(BufferId, AllocationId)>,
    /// Ids below have been used; so memory is bounded by what lives.
    pub(crate) next_allocation: u64,
    pub(crate) next_message: u64,
    pub(crate) waste: Waste,
}

/// What is left of an instruction that has been checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InstructionLabel {
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

impl InstructionLabel {
    fn of(kind: &InstructionKind) -> Self {
        let copies = matches!(kind, InstructionKind::Copy { .. });
        Self { copies, drawn: Drawn::of(&kind.effects()) }
    }
}

impl fmt::Display for InstructionLabel {
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
                ExchangePart::Receive | ExchangePart::Begin | ExchangePart::Await => {
                    Self::Arrives { verb, transfer }
                }
            };
        }
        match (effects.runs, effects.lane, effects.source, effects.target) {
            (Some(Run { task, chunk: Some(chunk), .. }), LaneKind::Kernel(device), ..) => {
                Self::Kernel { device, task, chunk }
            }
            (Some(Run { task, .. }), ..) => Self::HostTask(task),
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

impl Instructions {
    /// Appends an instruction to the window.
    pub(crate) fn enter(&mut self, instruction: &Instruction) -> Check {
        let role = match instruction.kind {
            InstructionKind::Horizon { .. } => Role::Horizon,
            InstructionKind::Epoch { .. } => Role::Epoch,
            _ => Role::Work,
        };
        let edges: SmallVec<[u64; 4]> =
            instruction.dependencies.iter().map(|dep| dep.index()).collect();
        let label = InstructionLabel::of(&instruction.kind);
        self.window.push(instruction.id.index(), edges, role, label)
    }

    /// Checks one instruction of the task in hand.
    pub(crate) fn check(
        &mut self,
        buffers: &mut Buffers,
        batch: &mut Batch<'_>,
        instruction: &Instruction,
    ) -> Check {
        self.enter(instruction)?;
        let me = instruction.id.index();
        let vertex = self.window.vertex(me);
        match &instruction.kind {
            InstructionKind::Alloc { allocation, memory, buffer, bytes, alignment } => {
                let asked = Asked { bytes: *bytes, alignment: *alignment, grows: false };
                self.alloc(buffers, batch, me, (*allocation, *memory), *buffer, asked)
            }
            InstructionKind::Reserve { allocation, memory, buffer, bytes, alignment } => {
                let asked = Asked { bytes: *bytes, alignment: *alignment, grows: true };
                self.alloc(buffers, batch, me, (*allocation, *memory), *buffer, asked)
            }
            InstructionKind::Grow { allocation, memory, buffer, elements, bytes } => {
                let buffer = buffers.get_mut(vertex, *buffer)?;
                self.grow(buffer, me, (*allocation, *memory), elements, bytes)
            }
            InstructionKind::Free { allocation, memory } => {
                self.free(buffers, Some(batch), me, *allocation, *memory)
            }
            InstructionKind::Copy { buffer, source, target, elements, elem_size } => {
                let buffer = buffers.get_mut(vertex, *buffer)?;
                self.copy(buffer, batch, me, (source, target), *elements, *elem_size)
            }
            InstructionKind::Send { .. } => self.send(buffers, batch, me, &instruction.kind),
            InstructionKind::Receive(inbound) => self.receive(buffers, batch, me, inbound, false),
            InstructionKind::SplitReceive(inbound) => {
                self.receive(buffers, batch, me, inbound, true)
            }
            InstructionKind::AwaitReceive { transfer, region } => {
                self.await_receive(buffers, batch, me, *transfer, region)
            }
            InstructionKind::Kernel { device, task, chunk, accesses } => {
                self.kernel(buffers, batch, me, (*device, *task), *chunk, accesses)
            }
            InstructionKind::HostTask { task, accesses } => {
                self.host_task(buffers, batch, me, *task, accesses)
            }
            InstructionKind::Horizon { task } => {
                synchronize(batch, vertex, *task, |work| *work == Work::Horizon)
            }
            InstructionKind::Epoch { task, action } => {
                synchronize(batch, vertex, *task, |work| *work == Work::Epoch(*action))
            }
        }
    }

    /// Checks that nothing is missing once all instructions have been seen.
    pub(crate) fn finish(&self, buffers: &Buffers, batch: &Batch<'_>) -> Check {
        let (node, task) = (self.node, batch.task.id);
        if let Some(&part) = batch.unlaunched.first() {
            let among = format!("on {node}");
            return Err(Violation::ItemsNever { among, task, part }.into());
        }
        let missing = |what| Err(Violation::Missing { node, task, what }.into());
        if batch.is_synchronization() && !batch.synchronized[1] {
            return missing("instruction");
        }
        let on_host = matches!(batch.task.work, Work::HostOnce | Work::Fence);
        if on_host && batch.executed && batch.host_task.is_none() {
            return missing("host task");
        }
        check_kept(buffers, &batch.awaited, "no instruction receives it")?;
        check_kept(buffers, &batch.arriving, "no instruction awaits it")?;
        if let Some(pilot) = batch.pilots.first() {
            return Err(Violation::NeverSent {
                node,
                message: pilot.message,
                transfer: pilot.transfer,
                to: pilot.to,
                elements: pilot.elements,
            }
            .into());
        }
        self.check_sizes(buffers, batch)
    }
}

/// Whoever is called for a task serves that task.
pub(crate) fn check_task(batch: &Batch<'_>, vertex: Vertex, found: TaskId) -> Check {
    let task = batch.task.id;
    match found == task {
        true => Ok(()),
        false => Err(Violation::WrongTask { vertex, found, task }.into()),
    }
}

fn check_kept(buffers: &Buffers, promises: &[Promise], why: &'static str) -> Check {
    let broken = promises.iter().find_map(|promise| Some((promise, *promise.rest.first()?)));
    let Some((promise, part)) = broken else { return Ok(()) };
    let place = buffers.get(promise.by, promise.transfer.buffer)?.place(part);
    Err(Violation::NeverArrives { vertex: promise.by, place, why }.into())
}

fn synchronize(
    batch: &mut Batch<'_>,
    vertex: Vertex,
    task: TaskId,
    fits: impl FnOnce(&Work) -> bool,
) -> Check {
    check_task(batch, vertex, task)?;
    if !fits(&batch.task.work) || std::mem::replace(&mut batch.synchronized[1], true) {
        let why = "the task in hand is no such synchronisation, or has been reached";
        return Err(Violation::Uncalled { vertex, why }.into());
    }
    Ok(())
}
