//! The rules of one node's instruction graph, one instruction after the other: which of them hold
//! for which kind, and that nothing called for is missing.

use celerity_idag::{Instruction, InstructionKind};
use celerity_tdag::{TaskId, Work};
use smallvec::SmallVec;

use crate::allocations::Asked;
use crate::batch::{Owed, TaskCheck};
use crate::buffers::Buffers;
use crate::instructions::Instructions;
use crate::violation::{Check, Vertex, Violation};

impl Instructions {
    /// Checks one instruction of the task in hand.
    pub(crate) fn check(
        &mut self,
        buffers: &mut Buffers,
        batch: &mut TaskCheck<'_>,
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
            InstructionKind::Copy { buffer, source, target, region, elem_size } => {
                let buffer = buffers.get_mut(vertex, *buffer)?;
                self.copy(buffer, batch, me, (source, target), region, *elem_size)
            }
            InstructionKind::Send { .. } => self.send(buffers, batch, me, &instruction.kind),
            InstructionKind::Receive(inbound) => self.receive(buffers, batch, me, inbound, false),
            InstructionKind::SplitReceive(inbound) => {
                self.receive(buffers, batch, me, inbound, true)
            }
            InstructionKind::Collective(participation) => {
                self.participate(buffers, batch, me, participation)
            }
            InstructionKind::AwaitReceive { transfer, region } => {
                self.await_receive(buffers, batch, me, *transfer, region)
            }
            InstructionKind::Kernel { device, task, chunk, accesses } => {
                self.kernel(buffers, batch, me, (*device, *task), *chunk, accesses)
            }
            InstructionKind::HostTask { task, chunk, accesses, conflicts } => {
                let conflicts = conflicts.as_slice().iter();
                let conflicts: SmallVec<[u64; 4]> = conflicts.map(|with| with.index()).collect();
                self.objects.check(&self.window, me, batch.task, &conflicts)?;
                self.host_task(buffers, batch, me, (*task, *chunk), accesses)
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
    pub(crate) fn finish(&self, buffers: &Buffers, batch: &TaskCheck<'_>) -> Check {
        let (node, task) = (self.node, batch.task.id);
        if let Some(&part) = batch.unlaunched.first() {
            let among = format!("on {node}");
            return Err(Violation::ItemsNever { among, task, part }.into());
        }
        let missing = |what| Err(Violation::Missing { node, task, what }.into());
        if batch.is_synchronization() && !batch.synchronized[1] {
            return missing("instruction");
        }
        let is_single =
            matches!(batch.task.work, Work::HostOnce { .. } | Work::Fence | Work::Combine { .. });
        if is_single && batch.executed && batch.host_task.is_none() {
            return missing("host task");
        }
        if batch.collective.is_some() {
            return missing("collective instruction");
        }
        check_kept(buffers, &batch.awaited, "no instruction receives it")?;
        check_kept(buffers, &batch.arriving, "no instruction awaits it")?;
        if let Some(pilot) = batch.pilots.first() {
            return Err(Violation::NeverSent {
                node,
                message: pilot.message,
                transfer: pilot.transfer,
                to: pilot.to,
                elements: pilot.region.bounding_box(),
            }
            .into());
        }
        self.check_sizes(buffers, batch)
    }
}

fn check_kept(buffers: &Buffers, promises: &[Owed], why: &'static str) -> Check {
    let broken = promises.iter().find_map(|promise| Some((promise, *promise.rest.first()?)));
    let Some((promise, part)) = broken else { return Ok(()) };
    let place = buffers.get(promise.by, promise.transfer.buffer)?.place(part);
    Err(Violation::NeverArrives { vertex: promise.by, place, why }.into())
}

fn synchronize(
    batch: &mut TaskCheck<'_>,
    vertex: Vertex,
    task: TaskId,
    fits: impl FnOnce(&Work) -> bool,
) -> Check {
    batch.check_task(vertex, task)?;
    if !fits(&batch.task.work) || std::mem::replace(&mut batch.synchronized[1], true) {
        let why = "the task in hand is no such synchronisation, or has been reached";
        return Err(Violation::Uncalled { vertex, why }.into());
    }
    Ok(())
}
