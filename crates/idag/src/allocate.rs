//! Pass: every box that an access, send or receive needs in one piece gets a
//! single allocation (002 §3.2, fig. 3). Existing allocations that overlap are
//! merged into the new one: *alloc*, *copy* of what is current, *free*. Those
//! that can grow where they are do that instead (see [`growth`](crate::growth)).
//! Nothing is ever made smaller, and nothing that no access covers allocated.

use celerity_regions::{Box3, Region};
use smallvec::SmallVec;

use crate::backing::Backing;
use crate::buffer::{BufferState, Identity};
use crate::coherence::copy;
use crate::emit::{Schedule, Stream};
use crate::growth::{Reservations, grow, is_contiguous, reserve};
use crate::instruction::{InstructionKind, MemoryId, Placement};
#[cfg(feature = "mutants")]
use crate::mistakes;
use crate::pieces::Boxes;

/// What one command needs of one buffer in one memory.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    /// Each of them in one piece.
    pub(crate) boxes: Boxes,
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
    reservations: &Reservations,
) {
    for extent in plan(buffer, memory, &needs.boxes) {
        buffer.fulfil(memory, &extent);
        let grows = reservations.cover(buffer, memory, &extent);
        let mut merged = take_overlapping(buffer, memory, &extent, grows);
        let mut backing = match grows {
            true => grown_to(stream, out, buffer, memory, &extent, &mut merged),
            false => create(stream, out, buffer.identity(), memory, extent),
        };
        for mut old in merged {
            #[cfg(feature = "mutants")]
            if celerity_mutants::Mutant::FreedBeforePreserved.is_active() {
                free(stream, out, &old);
                preserve(stream, out, buffer, &mut old, &mut backing, &needs.discarded);
                continue;
            }
            preserve(stream, out, buffer, &mut old, &mut backing, &needs.discarded);
            if keeps_the_rest(buffer, &mut old, &extent) {
                buffer.backings_mut(memory).push(old);
            } else {
                free(stream, out, &old);
            }
        }
        if grows {
            buffer.take_back(memory, &extent);
        }
        buffer.backings_mut(memory).push(backing);
    }
}

/// Lets an allocation give up `extent`. Whether it is still good for something.
fn keeps_the_rest(buffer: &mut BufferState, old: &mut Backing, extent: &Box3) -> bool {
    if !old.grows() {
        return false;
    }
    let memory = old.placement.memory;
    for part in old.held_in(extent) {
        buffer.leave_behind(memory, &part);
    }
    old.give_up(extent);
    let rest = !old.held().is_empty();
    if !rest {
        buffer.take_back(memory, &old.placement.extent);
    }
    rest
}

/// The allocation of the buffer that grows, taken out of the others, or a new
/// one, with memory for `extent`.
fn grown_to(
    stream: &mut Stream,
    out: &mut Schedule,
    buffer: &mut BufferState,
    memory: MemoryId,
    extent: &Box3,
    merged: &mut SmallVec<[Backing; 2]>,
) -> Backing {
    let mut backing = match merged.iter().position(Backing::grows) {
        Some(position) => merged.swap_remove(position),
        None => reserve(stream, out, buffer, memory),
    };
    grow(stream, out, buffer.identity(), &mut backing, extent);
    backing
}

/// Notes that `boxes` will be needed in one piece each, by a command that is
/// held back: the next allocation that overlaps them covers them (002 §4.3).
/// Whether any of them is neither allocated nor noted.
pub(crate) fn anticipate(buffer: &mut BufferState, memory: MemoryId, boxes: &[Box3]) -> bool {
    let mut news = false;
    for required in boxes {
        let known = required.is_empty()
            || buffer.backing_of(memory, required).is_some()
            || buffer.anticipated(memory).any(|known| known.contains(required));
        if !known {
            let extent = grown(*required, buffer, memory, &mut SmallVec::new());
            buffer.anticipate(memory, extent);
            news = true;
        }
    }
    news
}

/// The allocations to make: disjoint, each the bounding box of boxes and
/// existing allocations that overlap, or of boxes that are halves of it.
pub(crate) fn plan(buffer: &BufferState, memory: MemoryId, boxes: &[Box3]) -> SmallVec<[Box3; 2]> {
    let mut extents = SmallVec::<[Box3; 2]>::new();
    for required in boxes {
        let exists = required.is_empty() || buffer.backing_of(memory, required).is_some();
        if !exists {
            let extent = grown(*required, buffer, memory, &mut extents);
            extents.push(extent);
        }
    }
    extents
}

/// Grows `extent` by everything it overlaps, until that is nothing more: what
/// is allocated, what is anticipated, and `extents`, which lose what it takes in. What is
/// not there yet is also taken in where both are halves of a larger box.
fn grown(
    mut extent: Box3,
    buffer: &BufferState,
    memory: MemoryId,
    extents: &mut SmallVec<[Box3; 2]>,
) -> Box3 {
    loop {
        let before = extent;
        for backing in buffer.backings(memory) {
            // What grows need not be taken in where it can grow.
            if backing.grows() && is_contiguous(&extent, &backing.placement.extent) {
                continue;
            }
            for held in backing.held() {
                if held.intersects(&extent) {
                    extent = extent.bounding(&held);
                }
            }
        }
        for future in buffer.anticipated(memory) {
            if future.intersects(&extent) || are_halves(future, &extent) {
                extent = extent.bounding(future);
            }
        }
        extents.retain(|other| {
            let joins = other.intersects(&extent) || are_halves(other, &extent);
            if joins {
                extent = extent.bounding(other);
            }
            !joins
        });
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::GrowthStopsEarly.is_active() {
            return extent;
        }
        if extent == before {
            return extent;
        }
    }
}

/// Whether two boxes make up a third, one behind the other: one allocation for
/// both wastes nothing, serves whoever will need both at once, and each of them
/// still lies in it in one piece, which is what copies and messages like best.
fn are_halves(a: &Box3, b: &Box3) -> bool {
    let whole = a.bounding(b);
    let slowest = (0..3).find(|&dim| whole.max()[dim] - whole.min()[dim] > 1);
    whole.volume() == a.volume().saturating_add(b.volume())
        && slowest.is_some_and(|dim| a.min()[dim] != b.min()[dim])
}

/// Takes the allocations out of the buffer that hold some of `extent`; one that
/// grows also if the extent is to become a part of it.
fn take_overlapping(
    buffer: &mut BufferState,
    memory: MemoryId,
    extent: &Box3,
    grows: bool,
) -> SmallVec<[Backing; 2]> {
    let mut taken = SmallVec::new();
    let backings = buffer.backings_mut(memory);
    let mut position = 0;
    while position < backings.len() {
        let old = &backings[position];
        if grows && old.grows() || !old.held_in(extent).is_empty() {
            taken.push(backings.remove(position));
        } else {
            position += 1;
        }
    }
    taken
}

/// Allocates room for the elements of a buffer's box.
pub(crate) fn create(
    stream: &mut Stream,
    out: &mut Schedule,
    Identity { buffer, elem_size, elem_align }: Identity,
    memory: MemoryId,
    extent: Box3,
) -> Backing {
    let allocation = stream.new_allocation();
    let kind = InstructionKind::Alloc {
        allocation,
        memory,
        buffer,
        bytes: extent.volume().saturating_mul(elem_size),
        alignment: elem_align,
    };
    #[cfg(feature = "mutants")]
    let kind = mistakes::allocated(kind, &extent);
    let waits = stream.waits();
    let alloc = stream.emit(out, kind, waits);
    Backing::new(Placement { allocation, memory, extent }, alloc)
}

/// Copies what is current in `old` to its successor, but for what is there already.
fn preserve(
    stream: &mut Stream,
    out: &mut Schedule,
    buffer: &BufferState,
    old: &mut Backing,
    new: &mut Backing,
    discarded: &Region,
) {
    #[cfg(feature = "mutants")]
    if celerity_mutants::Mutant::ResizeForgetsContents.is_active() {
        return;
    }
    let memory = old.placement.memory;
    for held in old.held_in(&new.placement.extent) {
        let mut moved = buffer.region_current(memory, &held).difference(discarded);
        if let Some(left) = buffer.left_behind(memory).filter(|_| new.grows()) {
            moved.subtract(left);
        }
        for part in moved.boxes() {
            copy(stream, out, buffer.identity(), (old, new), *part);
        }
    }
}

/// Frees an allocation after its last use.
pub(crate) fn free(stream: &mut Stream, out: &mut Schedule, backing: &Backing) {
    let Placement { allocation, memory, .. } = backing.placement;
    let mut waits = stream.waits();
    backing.before_free(&mut waits);
    stream.emit(out, InstructionKind::Free { allocation, memory }, waits);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_lie_one_behind_the_other() {
        let (top, bottom) = (Box3::from_range([2, 8]), Box3::from_offset_range([2, 0], [6, 8]));
        assert!(are_halves(&top, &bottom));
        let (left, right) = (Box3::from_range([8, 2]), Box3::from_offset_range([0, 2], [8, 6]));
        assert!(!are_halves(&left, &right), "neither would lie in one piece");
        assert!(!are_halves(&top, &Box3::from_offset_range([3, 0], [5, 8])), "there is a gap");
        assert!(are_halves(&Box3::from_range([3]), &Box3::from_offset_range([3], [1])));
    }
}
