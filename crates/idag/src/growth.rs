//! Allocations that grow where they are. For a buffer that is accessed in parts
//! which lie in one piece each in its row-major layout, addresses are reserved
//! for all of it, once, and memory is provided for what is accessed: nothing is
//! moved when that becomes more. The papers resize by copying (instruction-graph preprint, §3.2,
//! fig. 3), which is what remains for other parts, and for memories that cannot reserve.
//!
//! Decides which allocations grow, and by what.
//! Refuses to know pages: how memory is provided is the backend's business.

use std::ops::Range;

use celerity_regions::Box3;

use crate::backing::{Backing, Identity};
use crate::buffer::BufferState;
use crate::emitter::Emitter;
use crate::instruction::MemoryId;
use crate::layout::is_contiguous;

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
            && (*extent != buffer.extent
                || buffer.backings(memory).as_slice().iter().any(Backing::grows))
    }
}

/// Provides memory for what a growing allocation lacks of a contiguous `part`.
pub(crate) fn grow(
    emitter: &mut Emitter<'_>,
    identity: Identity,
    backing: &mut Backing,
    part: &Box3,
) {
    let missing = backing.hold(part);
    if missing.is_empty() {
        return;
    }
    let bounds = missing.bounding_box();
    let in_one_piece = is_contiguous(&bounds, &backing.placement.extent);
    let elements = if in_one_piece { bounds } else { *part };
    emitter.grow(identity, backing, &missing, elements);
}
