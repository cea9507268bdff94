//! The rules of one node's instruction graph, one instruction after the other:
//! shape, what each kind is called for, and that nothing called for is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use celerity_cdag::{NodeId, TransferId};
use celerity_idag::{AllocationId, DeviceId, DeviceMemory, Instruction, InstructionKind, MemoryId};
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

/// Enough of an instruction to draw it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InstructionLabel {
    Alloc { allocation: AllocationId, memory: MemoryId, buffer: BufferId },
    Reserve { allocation: AllocationId, memory: MemoryId, buffer: BufferId },
    Grow { allocation: AllocationId, memory: MemoryId, elements: Box3 },
    Free { allocation: AllocationId, memory: MemoryId },
    Copy { source: (MemoryId, AllocationId), target: (MemoryId, AllocationId), elements: Box3 },
    Send { to: NodeId, transfer: TransferId, elements: Box3 },
    Receive(TransferId),
    SplitReceive(TransferId),
    AwaitReceive(TransferId),
    Kernel { device: DeviceId, task: TaskId, chunk: Box3 },
    HostTask(TaskId),
    Horizon,
    Epoch,
}

impl InstructionLabel {
    fn of(kind: &InstructionKind) -> Self {
        match kind {
            InstructionKind::Alloc { allocation, memory, buffer, .. } => {
                Self::Alloc { allocation: *allocation, memory: *memory, buffer: *buffer }
            }
            InstructionKind::Reserve { allocation, memory, buffer, .. } => {
                Self::Reserve { allocation: *allocation, memory: *memory, buffer: *buffer }
            }
            InstructionKind::Grow { allocation, memory, elements, .. } => {
                Self::Grow { allocation: *allocation, memory: *memory, elements: *elements }
            }
            InstructionKind::Free { allocation, memory } => {
                Self::Free { allocation: *allocation, memory: *memory }
            }
            InstructionKind::Copy { source, target, elements, .. } => Self::Copy {
                source: (source.memory, source.allocation),
                target: (target.memory, target.allocation),
                elements: *elements,
            },
            InstructionKind::Send { to, transfer, elements, .. } => {
                Self::Send { to: *to, transfer: *transfer, elements: *elements }
            }
            InstructionKind::Receive(inbound) => Self::Receive(inbound.transfer),
            InstructionKind::SplitReceive(inbound) => Self::SplitReceive(inbound.transfer),
            InstructionKind::AwaitReceive { transfer, .. } => Self::AwaitReceive(*transfer),
            InstructionKind::Kernel { device, task, chunk, .. } => {
                Self::Kernel { device: *device, task: *task, chunk: *chunk }
            }
            InstructionKind::HostTask { task, .. } => Self::HostTask(*task),
            InstructionKind::Horizon { .. } => Self::Horizon,
            InstructionKind::Epoch { .. } => Self::Epoch,
        }
    }
}

impl fmt::Display for InstructionLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alloc { allocation, memory, buffer } => {
                write!(f, "alloc {memory}.{allocation} for {buffer}")
            }
            Self::Reserve { allocation, memory, buffer } => {
                write!(f, "reserve {memory}.{allocation} for {buffer}")
            }
            Self::Grow { allocation, memory, elements } => {
                write!(f, "grow {memory}.{allocation} by {elements}")
            }
            Self::Free { allocation, memory } => write!(f, "free {memory}.{allocation}"),
            Self::Copy { source, target, elements } => {
                let ((from, source), (to, target)) = (source, target);
                write!(f, "copy {elements} from {from}.{source} to {to}.{target}")
            }
            Self::Send { to, transfer, elements } => {
                write!(f, "send {elements} of {transfer} to {to}")
            }
            Self::Receive(transfer) => write!(f, "receive {transfer}"),
            Self::SplitReceive(transfer) => write!(f, "split receive {transfer}"),
            Self::AwaitReceive(transfer) => write!(f, "await receive {transfer}"),
            Self::Kernel { device, task, chunk } => write!(f, "{task} {chunk} on {device}"),
            Self::HostTask(task) => write!(f, "{task} on the host"),
            Self::Horizon => f.write_str("horizon"),
            Self::Epoch => f.write_str("epoch"),
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
