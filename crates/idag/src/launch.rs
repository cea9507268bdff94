//! Last pass: kernels and host tasks, bound to the memory that earlier passes
//! have allocated and made current.

use celerity_tdag::Task;

use crate::buffer::BufferState;
use crate::emit::{Schedule, Stream, Waits};
use crate::graph::Buffers;
use crate::instruction::{BoundAccess, InstructionId, InstructionKind, MemoryId};
use crate::plan::{Launch, PlannedAccess};

pub(crate) fn launch(
    stream: &mut Stream,
    out: &mut Schedule,
    buffers: &mut Buffers,
    task: &Task,
    launch: &Launch,
) {
    let mut waits = stream.waits();
    let bind = |access: &PlannedAccess| {
        bind(buffers.get_mut(access.buffer), launch.memory, access, &mut waits)
    };
    let accesses: Box<[BoundAccess]> = launch.accesses.iter().map(bind).collect();
    let kind = match launch.device {
        Some(device) => {
            InstructionKind::Kernel { device, task: task.id, chunk: launch.chunk, accesses }
        }
        None => InstructionKind::HostTask { task: task.id, accesses },
    };
    let id = stream.emit(out, kind, waits);
    for access in &launch.accesses {
        record(buffers.get_mut(access.buffer), launch.memory, access, id);
    }
}

fn bind(
    buffer: &mut BufferState,
    memory: MemoryId,
    access: &PlannedAccess,
    waits: &mut Waits,
) -> BoundAccess {
    let region = access.region.clone();
    if region.is_empty() {
        return BoundAccess { buffer: access.buffer, placement: None, region };
    }
    let backing = buffer.backing(memory, &access.bounds);
    if access.mode.writes() {
        backing.before_write(&region, waits);
    } else {
        backing.before_read(&region, waits);
    }
    BoundAccess { buffer: access.buffer, placement: Some(backing.placement), region }
}

fn record(buffer: &mut BufferState, memory: MemoryId, access: &PlannedAccess, id: InstructionId) {
    if access.region.is_empty() {
        return;
    }
    let backing = buffer.backing(memory, &access.bounds);
    if access.mode.writes() {
        backing.note_write(id, &access.region);
        buffer.note_production(&access.region, id, memory);
    } else {
        backing.note_read(id, &access.region);
    }
}
