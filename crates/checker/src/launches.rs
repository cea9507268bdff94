//! Kernels and host tasks: they run the node's chunk, once, where they should,
//! bound to exactly what their mappers say.

use celerity_idag::{BoundAccess, DeviceId, MemoryId};
use celerity_regions::Box3;
use celerity_tdag::{BufferAccess, TaskId, Work};

use crate::batch::TaskCheck;
use crate::buffers::{Buffers, TrackedBuffer};
use crate::commands::check_chunk_of;
use crate::geometry::{first_difference, subtract};
use crate::image::image;
use crate::instructions::Instructions;
use crate::ledger::AbstractValues;
use crate::violation::{AbstractValue, Check, Vertex, Violation};

impl Instructions {
    pub(crate) fn kernel(
        &mut self,
        buffers: &mut Buffers,
        batch: &mut TaskCheck<'_>,
        me: u64,
        (device, task): (DeviceId, TaskId),
        chunk: Box3,
        bindings: &[BoundAccess],
    ) -> Check {
        let vertex = self.window.vertex(me);
        batch.check_task(vertex, task)?;
        let Work::Device(space) = &batch.task.work else {
            let why = "the task is no kernel";
            return Err(Violation::Uncalled { vertex, why }.into());
        };
        if device.index() >= self.devices as u64 {
            let why = "there is no such device";
            return Err(Violation::Uncalled { vertex, why }.into());
        }
        check_chunk_of(batch, vertex, space, chunk)?;
        if !subtract(&mut batch.unlaunched, &chunk) {
            return Err(Violation::ItemsTwice { vertex, task, part: chunk }.into());
        }
        self.launch(buffers, batch, me, self.device_memory.of(device), chunk, bindings)
    }

    pub(crate) fn host_task(
        &mut self,
        buffers: &mut Buffers,
        batch: &mut TaskCheck<'_>,
        me: u64,
        (task, chunk): (TaskId, Box3),
        bindings: &[BoundAccess],
    ) -> Check {
        let vertex = self.window.vertex(me);
        batch.check_task(vertex, task)?;
        let uncalled = |why| Err(Violation::Uncalled { vertex, why }.into());
        self.groups.check(&self.window, batch.task.work.group(), me)?;
        match &batch.task.work {
            Work::HostSplit { space, .. } => {
                check_chunk_of(batch, vertex, space, chunk)?;
                if !subtract(&mut batch.unlaunched, &chunk) {
                    return Err(Violation::ItemsTwice { vertex, task, part: chunk }.into());
                }
                return self.launch(buffers, batch, me, MemoryId::HOST, chunk, bindings);
            }
            Work::HostOnce { .. } | Work::Fence | Work::Combine { .. } if chunk == Box3::UNIT => {}
            Work::HostOnce { .. } | Work::Fence | Work::Combine { .. } => {
                return uncalled("the task has one item");
            }
            _ => return uncalled("the task does not run on the host"),
        }
        if !batch.executed || batch.host_task.is_some() {
            return uncalled("the node does not run this task, or has done so already");
        }
        batch.host_task = Some(vertex);
        let chunk = batch.chunk.unwrap_or(Box3::EMPTY);
        self.launch(buffers, batch, me, MemoryId::HOST, chunk, bindings)
    }

    fn launch(
        &mut self,
        buffers: &mut Buffers,
        batch: &TaskCheck<'_>,
        me: u64,
        memory: MemoryId,
        chunk: Box3,
        bindings: &[BoundAccess],
    ) -> Check {
        let vertex = self.window.vertex(me);
        let accesses = batch.task.buffer_accesses();
        if bindings.len() != accesses.clone().count() {
            let why = "it is bound to more or fewer accesses than the task has";
            return Err(Violation::Uncalled { vertex, why }.into());
        }
        for (position, (access, bound)) in accesses.zip(bindings).enumerate() {
            let buffer = buffers.get_mut(vertex, access.buffer)?;
            let global = batch.task.work.extent();
            let expected = image(&access.mapper, chunk, global, buffer.info.extent);
            check_binding(buffer, vertex, (position, access), memory, &expected, bound)?;
            self.touch(buffer, batch, me, access, bound)?;
        }
        Ok(())
    }

    fn touch(
        &mut self,
        buffer: &mut TrackedBuffer,
        batch: &TaskCheck<'_>,
        me: u64,
        access: &BufferAccess,
        bound: &BoundAccess,
    ) -> Check {
        let Some(placement) = &bound.placement else { return Ok(()) };
        let vertex = self.window.vertex(me);
        self.place(buffer, vertex, placement, bound.region.boxes())?;
        for part in bound.region.boxes() {
            if access.mode.reads() {
                self.check_current(buffer, me, placement, part)?;
                self.read(buffer, me, placement, part)?;
            }
            if access.mode.writes() {
                let written =
                    AbstractValues::from_iter([(*part, AbstractValue::Task(batch.task.id))]);
                self.write(buffer, batch, me, placement, part, &written)?;
            }
        }
        Ok(())
    }
}

/// A binding names the access's buffer, its exact elements, and an allocation
/// in the right memory, unless nothing is touched.
fn check_binding(
    buffer: &TrackedBuffer,
    vertex: Vertex,
    (position, access): (usize, &BufferAccess),
    memory: MemoryId,
    expected: &[Box3],
    bound: &BoundAccess,
) -> Check {
    let wrong = |part, why| {
        let place = buffer.place(part);
        Err(Violation::WrongBinding { vertex, access: position, place, why }.into())
    };
    let bounds = bound.region.boxes().first().copied().unwrap_or(Box3::EMPTY);
    if bound.buffer != access.buffer {
        return wrong(bounds, "should be bound, not another buffer");
    }
    match first_difference(expected, bound.region.boxes()) {
        Some((part, true)) => return wrong(part, "is touched, but not bound"),
        Some((part, false)) => return wrong(part, "is bound, but not touched"),
        None => {}
    }
    match &bound.placement {
        None if !bounds.is_empty() => wrong(bounds, "is bound to no memory"),
        Some(_) if bounds.is_empty() => wrong(bounds, "is nothing, but bound to memory"),
        Some(placement) if placement.memory != memory => {
            wrong(bounds, "is bound to another memory than the one it runs beside")
        }
        _ => Ok(()),
    }
}
