//! Pass: every box that an access, send or receive needs in one piece gets a
//! single allocation (002 §3.2, fig. 3). Existing allocations that overlap are
//! merged into the new one: *alloc*, *copy* of what is current, *free*.
//! Nothing is ever made smaller, and nothing that no access covers allocated.

use celerity_regions::{Box3, Region};
use smallvec::SmallVec;

use crate::backing::Backing;
use crate::buffer::BufferState;
use crate::coherence::copy;
use crate::emit::{Schedule, Stream};
use crate::instruction::{InstructionKind, MemoryId, Placement};

/// What one command needs of one buffer in one memory.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    /// Each of them in one piece.
    pub(crate) boxes: SmallVec<[Box3; 3]>,
    /// Overwritten unread before anybody else looks at it: not preserved.
    pub(crate) discarded: Region,
}

/// Makes each box that is needed contiguous in `memory`. All needs of a memory
/// come in one call, or an allocation could be outgrown before its first use.
pub(crate) fn allocate(
    stream: &mut Stream,
    out: &mut Schedule,
    buffer: &mut BufferState,
    memory: MemoryId,
    needs: &Needs,
) {
    for extent in plan(buffer, memory, &needs.boxes) {
        let merged = take_overlapping(buffer, memory, &extent);
        let mut backing = create(stream, out, buffer, memory, extent);
        for mut old in merged {
            preserve(stream, out, buffer, &mut old, &mut backing, &needs.discarded);
            free(stream, out, &old);
        }
        buffer.backings_mut(memory).push(backing);
    }
}

/// The allocations to make: disjoint, each the bounding box of boxes and
/// existing allocations that overlap.
fn plan(buffer: &BufferState, memory: MemoryId, boxes: &[Box3]) -> SmallVec<[Box3; 2]> {
    let mut extents = SmallVec::<[Box3; 2]>::new();
    for required in boxes {
        let exists = required.is_empty() || buffer.backing_of(memory, required).is_some();
        if !exists {
            insert_merged(&mut extents, *required, buffer, memory);
        }
    }
    extents
}

/// Grows `extent` by everything it overlaps, until that is nothing more.
fn insert_merged(
    extents: &mut SmallVec<[Box3; 2]>,
    mut extent: Box3,
    buffer: &BufferState,
    memory: MemoryId,
) {
    loop {
        let before = extent;
        for backing in buffer.backings(memory) {
            if backing.placement.extent.intersects(&extent) {
                extent = extent.bounding(&backing.placement.extent);
            }
        }
        extents.retain(|other| {
            let overlaps = other.intersects(&extent);
            if overlaps {
                extent = extent.bounding(other);
            }
            !overlaps
        });
        if extent == before {
            extents.push(extent);
            return;
        }
    }
}

fn take_overlapping(
    buffer: &mut BufferState,
    memory: MemoryId,
    extent: &Box3,
) -> SmallVec<[Backing; 1]> {
    let mut taken = SmallVec::new();
    let backings = buffer.backings_mut(memory);
    let mut position = 0;
    while position < backings.len() {
        if backings[position].placement.extent.intersects(extent) {
            taken.push(backings.remove(position));
        } else {
            position += 1;
        }
    }
    taken
}

fn create(
    stream: &mut Stream,
    out: &mut Schedule,
    buffer: &BufferState,
    memory: MemoryId,
    extent: Box3,
) -> Backing {
    let allocation = stream.new_allocation();
    let kind = InstructionKind::Alloc {
        allocation,
        memory,
        buffer: buffer.id,
        bytes: extent.volume().saturating_mul(buffer.elem_size),
        alignment: buffer.elem_align,
    };
    let waits = stream.waits();
    let alloc = stream.emit(out, kind, waits);
    Backing::new(Placement { allocation, memory, extent }, alloc)
}

/// Copies what is current in `old` to its successor.
fn preserve(
    stream: &mut Stream,
    out: &mut Schedule,
    buffer: &BufferState,
    old: &mut Backing,
    new: &mut Backing,
    discarded: &Region,
) {
    let memory = old.placement.memory;
    let current = buffer.versions.region_where(&old.placement.extent, |version| {
        version.holders.contains(memory) && !version.is_void()
    });
    for part in current.difference(discarded).boxes() {
        copy(stream, out, (buffer.id, buffer.elem_size), (old, new), *part);
    }
}

/// Frees an allocation after its last use.
pub(crate) fn free(stream: &mut Stream, out: &mut Schedule, backing: &Backing) {
    let Placement { allocation, memory, .. } = backing.placement;
    let mut waits = stream.waits();
    backing.before_free(&mut waits);
    stream.emit(out, InstructionKind::Free { allocation, memory }, waits);
}
