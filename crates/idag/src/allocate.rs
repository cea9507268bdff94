//! Pass: every box that an access, send or receive needs in one piece gets a
//! single allocation (instruction-graph preprint, §3.2, fig. 3). Existing allocations that overlap
//! are merged into the new one: *alloc*, *copy* of what is current, *free*. Those
//! that can grow where they are do that instead (see [`growth`](crate::growth)).
//! Nothing is ever made smaller, and nothing that no access covers allocated; unless allocations
//! have grown several times, as where a program goes through a buffer step by step: then they grow ahead, so that what
//! they hold moves a few times and not in each step.

use celerity_regions::{Box3, Positions, Region};
use smallvec::SmallVec;

use crate::backing::Backing;
use crate::box_groups::BoxGroups;
use crate::buffer::BufferState;
use crate::emitter::Emitter;
use crate::growth::{Reservations, grow};
use crate::instruction::MemoryId;
use crate::layout::is_contiguous;
use crate::pieces::{Boxes, apart_or_together};

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
    emitter: &mut Emitter<'_>,
    buffer: &mut BufferState,
    memory: MemoryId,
    needs: &Needs,
    reservations: &Reservations,
) {
    for extent in plan(buffer, memory, &needs.boxes) {
        buffer.anticipated.fulfil(memory, &extent);
        let grows = reservations.cover(buffer, memory, &extent);
        let new = match grows {
            true => grown_to(emitter, buffer, memory, &extent),
            false => {
                let new = emitter.create(buffer.identity(), memory, extent);
                buffer.add_backing(memory, new)
            }
        };
        merge(emitter, buffer, (memory, new), &extent, &needs.discarded);
        if grows {
            buffer.take_back(memory, &extent);
        }
    }
}

/// The position of the buffer's allocation that grows, or of a new one, with memory for
/// `extent`.
fn grown_to(
    emitter: &mut Emitter<'_>,
    buffer: &mut BufferState,
    memory: MemoryId,
    extent: &Box3,
) -> usize {
    let identity = buffer.identity();
    let position = buffer.backings(memory).as_slice().iter().position(Backing::grows);
    let position = position.unwrap_or_else(|| {
        let new = emitter.reserve(identity, memory, buffer.extent);
        buffer.add_backing(memory, new)
    });
    grow(emitter, identity, &mut buffer.backings_mut(memory)[position], extent);
    position
}

/// Lets the allocation at position `new`, which holds all of `extent`, take over what others
/// have of it, and frees those that are not needed any more.
fn merge(
    emitter: &mut Emitter<'_>,
    buffer: &mut BufferState,
    (memory, new): (MemoryId, usize),
    extent: &Box3,
    discarded: &Region,
) {
    let mut outgrown = Positions::new();
    let overlapping = buffer.backings(memory).holding_some_of(extent);
    for old in overlapping.into_iter().filter(|&old| old != new) {
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::FreedBeforePreserved.is_active() {
            emitter.free(&buffer.backings(memory)[old]);
            preserve(emitter, buffer, memory, (old, new), discarded);
            outgrown.push(old);
            continue;
        }
        if preserve(emitter, buffer, memory, (old, new), discarded) {
            let backings = buffer.backings_mut(memory);
            let moves = backings[new].moves.max(backings[old].moves + 1);
            backings[new].moves = moves;
            buffer.most_moves = buffer.most_moves.max(moves);
        }
        if !keeps_the_rest(buffer, memory, old, extent) {
            emitter.free(&buffer.backings(memory)[old]);
            outgrown.push(old);
        }
    }
    buffer.backings_mut(memory).remove(&outgrown);
}

/// Lets an allocation give up `extent`. Whether it is still good for something.
fn keeps_the_rest(buffer: &mut BufferState, memory: MemoryId, old: usize, extent: &Box3) -> bool {
    if !buffer.backings(memory)[old].grows() {
        return false;
    }
    for part in buffer.backings(memory)[old].held_in(extent) {
        buffer.leave_behind(memory, &part);
    }
    let backing = &mut buffer.backings_mut(memory)[old];
    backing.give_up(extent);
    if backing.is_empty() {
        let all = backing.placement.extent;
        buffer.take_back(memory, &all);
        return false;
    }
    true
}

/// Notes that `boxes` will be needed in one piece each, by a command that is
/// held back: the next allocation that overlaps them covers them (instruction-graph preprint,
/// §4.3). Whether any of them is neither allocated nor noted.
pub(crate) fn anticipate(buffer: &mut BufferState, memory: MemoryId, boxes: &[Box3]) -> bool {
    let mut news = false;
    for required in boxes {
        let known = required.is_empty()
            || buffer.backing_of(memory, required).is_some()
            || buffer.anticipated.around_all_of(memory, required).is_some();
        if !known {
            let extent = grown(*required, buffer, memory, &mut none_planned());
            buffer.anticipated.add(memory, extent);
            news = true;
        }
    }
    news
}

/// The allocations to make: disjoint, each the bounding box of boxes and
/// existing allocations that overlap, or of boxes that are halves of it.
pub(crate) fn plan(buffer: &BufferState, memory: MemoryId, boxes: &[Box3]) -> SmallVec<[Box3; 2]> {
    let mut missing = boxes
        .iter()
        .filter(|required| !required.is_empty() && buffer.backing_of(memory, required).is_none());
    // Nearly always there is none.
    missing.next().map_or_else(SmallVec::new, |first| {
        plan_for(buffer, memory, std::iter::once(first).chain(missing))
    })
}

#[inline(never)]
fn plan_for<'a>(
    buffer: &BufferState,
    memory: MemoryId,
    missing: impl Iterator<Item = &'a Box3>,
) -> SmallVec<[Box3; 2]> {
    let mut planned = none_planned();
    for required in missing {
        if !planned.hold(required) {
            let mut extent = grown(*required, buffer, memory, &mut planned);
            if let Some(ahead) = ahead_of(&extent, buffer, memory) {
                extent = grown(ahead, buffer, memory, &mut planned);
            }
            planned.add_apart(extent, ());
        }
    }
    planned.into_groups().map(|(extent, ())| extent).collect()
}

/// Allocations that have moved so often grow ahead from then on. Those of programs whose accesses repeat move once or twice.
const MOVES_IN_STEPS: u32 = 4;

/// They grow ahead by so many bytes on a side at most: memory that nothing may ever be written to.
const MOST_AHEAD: u64 = 256 << 20;

/// What to allocate instead of `extent` if what that takes over has moved step by step: half as much again on each side
/// that it grows to, within the buffer. So n steps move O(n) elements in all, not O(n²), up to half a gigabyte; a larger one
/// moves each time that it has grown by a quarter of a gigabyte.
fn ahead_of(extent: &Box3, buffer: &BufferState, memory: MemoryId) -> Option<Box3> {
    // Of nearly all buffers nothing has.
    if buffer.most_moves < MOVES_IN_STEPS {
        return None;
    }
    let backings = buffer.backings(memory);
    let outgrown = backings.holding_some_of(extent).into_iter().map(|position| &backings[position]);
    let moved = |old: &&Backing| !old.grows() && old.moves >= MOVES_IN_STEPS;
    let old = outgrown.filter(moved).max_by_key(|old| old.moves)?;
    let (old, within) = (old.placement.extent, buffer.extent);
    let ahead = |dim: usize| {
        let slab = (extent.volume() / extent.range()[dim]).saturating_mul(buffer.elem_size);
        old.range()[dim].div_ceil(2).min(MOST_AHEAD / slab.max(1))
    };
    let min = std::array::from_fn(|dim| match extent.min()[dim] < old.min()[dim] {
        true => extent.min()[dim].saturating_sub(ahead(dim)).max(within.min()[dim]),
        false => extent.min()[dim],
    });
    let max = std::array::from_fn(|dim| match extent.max()[dim] > old.max()[dim] {
        true => extent.max()[dim].saturating_add(ahead(dim)).min(within.max()[dim]),
        false => extent.max()[dim],
    });
    Some(Box3::new(min, max))
}

/// Allocations to make, of which two that meet become one.
type Planned = BoxGroups<(), fn(&Box3, &Box3) -> bool>;

fn none_planned() -> Planned {
    BoxGroups::new(|a, b| a.intersects(b) || are_halves(a, b))
}

/// Grows `extent` by everything it overlaps, until that is nothing more: what
/// is allocated, what is anticipated, and what is planned, which loses what it takes in. What is
/// not there yet is also taken in where both are halves of a larger box.
fn grown(mut extent: Box3, buffer: &BufferState, memory: MemoryId, planned: &mut Planned) -> Box3 {
    loop {
        let before = extent;
        // What grows need not be taken in where it can grow.
        let joins = |backing: &Backing, extent: &Box3| {
            !(backing.grows() && is_contiguous(extent, &backing.placement.extent))
        };
        extent = buffer.backings(memory).around(&extent, joins);
        extent = buffer.anticipated.around(memory, &extent, are_halves);
        planned.take_in(&mut extent, &mut (), |(), ()| {});
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

/// Copies what is current in the allocation at position `old` to its successor at position
/// `new`, but for what is there already. Whether there is any.
fn preserve(
    emitter: &mut Emitter<'_>,
    buffer: &mut BufferState,
    memory: MemoryId,
    (old, new): (usize, usize),
    discarded: &Region,
) -> bool {
    #[cfg(feature = "mutants")]
    if celerity_mutants::Mutant::ResizeForgetsContents.is_active() {
        return false;
    }
    let identity = buffer.identity();
    let successor = &buffer.backings(memory)[new];
    let (extent, grows) = (successor.placement.extent, successor.grows());
    let mut has_moved = false;
    for held in buffer.backings(memory)[old].held_in(&extent) {
        let mut moved = buffer.region_current(memory, &held);
        moved.subtract(discarded);
        if let Some(left) = buffer.left_behind(memory).filter(|_| grows) {
            moved.subtract(left);
        }
        let ends = buffer.backings_mut(memory).as_mut_slice().get_disjoint_mut([old, new]);
        let Ok([old, new]) = ends else { unreachable!("no allocation succeeds itself") };
        has_moved |= !moved.is_empty();
        for part in apart_or_together(moved) {
            emitter.copy(identity, (&mut *old, &mut *new), part);
        }
    }
    has_moved
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
