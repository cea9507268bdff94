//! Allocations that grow where they are. For a buffer that is accessed in parts
//! which lie in one piece each in its row-major layout, addresses are reserved
//! for all of it, once, and memory is provided for what is accessed: nothing is
//! moved when that becomes more. The papers resize by copying (instruction-graph preprint, §3.2,
//! fig. 3), which is what remains for other parts, and for memories that cannot reserve.
//!
//! Decides which allocations grow, and says what an element's place is in one.
//! Refuses to know pages: how memory is provided is the backend's business.

use std::ops::Range;

use celerity_regions::Box3;

use crate::backing::Backing;
use crate::buffer::{BufferState, Identity};
use crate::emit::{Schedule, Stream};
use crate::instruction::{InstructionKind, MemoryId, Placement};

/// Sizes in bytes of the buffers that devices' allocations reserve addresses
/// for. The default reserves none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reservations(Range<u64>);

impl Default for Reservations {
    fn default() -> Self {
        Self(0..0)
    }
}

impl Reservations {
    pub(crate) const fn new(sizes: Range<u64>) -> Self {
        Self(sizes)
    }

    /// Whether an allocation of `extent`, which is to be made in `memory`, is
    /// a part of a reservation.
    pub(crate) fn cover(&self, buffer: &BufferState, memory: MemoryId, extent: &Box3) -> bool {
        let bytes = buffer.extent.volume().saturating_mul(buffer.elem_size);
        memory.device().is_some()
            && self.0.contains(&bytes)
            && is_contiguous(extent, &buffer.extent)
            && (*extent != buffer.extent || buffer.backings(memory).iter().any(Backing::grows))
    }
}

/// Whether `part` lies in one piece in a dense, row-major array of `extent`.
pub(crate) fn is_contiguous(part: &Box3, extent: &Box3) -> bool {
    elements_per_row(part, extent) == part.volume()
}

/// Elements of `part` that lie side by side in a dense allocation of `extent`.
pub(crate) fn elements_per_row(part: &Box3, extent: &Box3) -> u64 {
    let side = |of: &Box3, dim: usize| of.max()[dim] - of.min()[dim];
    let mut row = 1;
    for dim in (0..3).rev() {
        row *= side(part, dim);
        if side(part, dim) < side(extent, dim) {
            break;
        }
    }
    row
}

/// Where the elements of a contiguous `part` lie in an allocation of `extent`.
pub(crate) fn bytes_of(part: &Box3, extent: &Box3, elem_size: u64) -> Range<u64> {
    let (from, origin, end) = (part.min(), extent.min(), extent.max());
    let first =
        (0..3).fold(0, |offset, dim| offset * (end[dim] - origin[dim]) + (from[dim] - origin[dim]));
    first * elem_size..(first + part.volume()) * elem_size
}

/// Reserves addresses for all of a buffer. Nothing is provided yet.
pub(crate) fn reserve(
    stream: &mut Stream,
    out: &mut Schedule,
    buffer: &BufferState,
    memory: MemoryId,
) -> Backing {
    let Identity { buffer: id, elem_size, elem_align } = buffer.identity();
    let (allocation, extent) = (stream.new_allocation(), buffer.extent);
    let bytes = extent.volume() * elem_size;
    let kind =
        InstructionKind::Reserve { allocation, memory, buffer: id, bytes, alignment: elem_align };
    let waits = stream.waits();
    let reserve = stream.emit(out, kind, waits);
    Backing::growing(Placement { allocation, memory, extent }, reserve)
}

/// Provides memory for what a growing allocation lacks of a contiguous `part`.
pub(crate) fn grow(
    stream: &mut Stream,
    out: &mut Schedule,
    Identity { buffer, elem_size, .. }: Identity,
    backing: &mut Backing,
    part: &Box3,
) {
    let Placement { allocation, memory, extent } = backing.placement;
    let missing = backing.hold(part);
    if missing.is_empty() {
        return;
    }
    let bounds = missing.bounding_box();
    let elements = if is_contiguous(&bounds, &extent) { bounds } else { *part };
    let bytes = bytes_of(&elements, &extent, elem_size);
    #[cfg(feature = "mutants")]
    let bytes = celerity_mutants::Mutant::GrowsShort
        .alter(bytes, |bytes| bytes.start..(bytes.end - elem_size).max(bytes.start + 1));
    let mut waits = stream.waits();
    // Nobody uses these elements yet: whatever reserved the addresses.
    backing.before_read(&missing, &mut waits);
    let kind = InstructionKind::Grow { allocation, memory, buffer, elements, bytes };
    let id = stream.emit(out, kind, waits);
    backing.provide(&missing, id);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_goes_on_where_it_is_as_wide_as_its_allocation() {
        let cube = Box3::from_range([4, 4, 4]);
        assert_eq!(elements_per_row(&Box3::from_range([2, 3, 4]), &cube), 12);
        assert_eq!(elements_per_row(&Box3::from_range([2, 4, 4]), &cube), 32);
        assert_eq!(elements_per_row(&Box3::from_range([4, 4, 1]), &cube), 1);
        assert_eq!(elements_per_row(&Box3::from_range([3]), &Box3::from_range([8])), 3);
    }

    #[test]
    fn rows_and_parts_of_one_row_lie_in_one_piece() {
        let whole = Box3::from_range([4, 6]);
        let part = |offset, range| Box3::from_offset_range(offset, range);
        for (part, bytes) in [
            (part([1, 0], [2, 6]), Some(48..144)),
            (part([3, 2], [1, 3]), Some(160..184)),
            (part([0, 0], [4, 6]), Some(0..192)),
            (part([1, 0], [2, 5]), None),
            (part([0, 3], [4, 1]), None),
        ] {
            assert_eq!(is_contiguous(&part, &whole), bytes.is_some(), "{part}");
            assert!(bytes.is_none_or(|bytes| bytes_of(&part, &whole, 8) == bytes), "{part}");
        }
    }
}
