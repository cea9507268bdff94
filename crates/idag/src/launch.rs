//! Last pass: kernels and host tasks, bound to the memory that earlier passes
//! have allocated and made current.

use celerity_tdag::Task;

use crate::buffer::BufferState;
use crate::emit::{Schedule, Stream, Waits};
use crate::graph::Buffers;
use crate::instruction::{BoundAccess, InstructionId, InstructionKind, MemoryId};
use crate::plan::{Launch, Place, PlannedAccess};

pub(crate) fn launch(
    stream: &mut Stream,
    out: &mut Schedule,
    buffers: &mut Buffers,
    task: &Task,
    launch: Launch<'_>,
) {
    let Launch { place: Place { device, memory, chunk }, accesses: planned } = launch;
    // Noted as the reader or writer at once: accesses of a task do not wait for each other.
    let id = stream.frontier.next_id();
    let mut waits = stream.waits();
    let bind = |access: &PlannedAccess| {
        bind(buffers.get_mut(access.buffer), memory, access, id, &mut waits)
    };
    let accesses: Box<[BoundAccess]> = planned.iter().map(bind).collect();
    let kind = match device {
        Some(device) => InstructionKind::Kernel { device, task: task.id, chunk, accesses },
        None => InstructionKind::HostTask { task: task.id, accesses },
    };
    stream.emit(out, kind, waits);
}

fn bind(
    buffer: &mut BufferState,
    memory: MemoryId,
    access: &PlannedAccess,
    id: InstructionId,
    waits: &mut Waits,
) -> BoundAccess {
    let region = access.region.clone();
    if region.is_empty() {
        return BoundAccess { buffer: access.buffer, placement: None, region };
    }
    let backing = buffer.backing(memory, &access.bounds);
    let placement = Some(backing.placement);
    if access.mode.writes() {
        backing.before_write(&region, waits);
        backing.note_write(id, &region);
        buffer.note_production(&region, id, memory);
    } else {
        backing.before_read(&region, waits);
        backing.note_read(id, &region);
    }
    BoundAccess { buffer: access.buffer, placement, region }
}
