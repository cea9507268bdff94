//! A collective operation as one node takes part in it: the operation, which is the same on all members,
//! and this node's memory. Owns how elements that move are found in memory, and in which order they
//! are packed. Knows no network.
#![allow(unsafe_code)]

use std::sync::Arc;

use celerity_cdag::TransferId;
use celerity_cpd::Collective;
use celerity_regions::{Box3, Region};

use crate::copy::{ElementArray, copy_elements};
use crate::memory::BasePtr;

/// One node's part in a collective operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectiveExchange {
    /// Names the operation; the same on all members.
    pub transfer: TransferId,
    /// Who takes part, and who provides and who gets what; the same on all members.
    pub collective: Arc<Collective>,
    /// Bytes per element; the same on all members.
    pub elem_size: u64,
    /// All that this node provides: disjoint parts.
    pub sources: Box<[MemoryPart]>,
    /// All that arrives at this node: disjoint parts, which are no sources.
    pub targets: Box<[MemoryPart]>,
}

/// Elements in one node's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryPart {
    /// The memory that the elements lie in.
    pub memory: ElementArray,
    /// Which elements: inside the extent of the memory.
    pub region: Region,
}

impl CollectiveExchange {
    /// Whether another node's part is one in the same operation.
    #[must_use]
    pub fn agrees_with(&self, other: &Self) -> bool {
        let same = || {
            Arc::ptr_eq(&self.collective, &other.collective) || self.collective == other.collective
        };
        self.transfer == other.transfer && self.elem_size == other.elem_size && same()
    }

    /// Bytes that this node reads and writes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let parts = self.sources.iter().chain(&self.targets);
        let elements: u64 = parts.map(|part| part.region.volume()).sum();
        elements.saturating_mul(self.elem_size)
    }
}

/// Where the elements of a box lie that `parts` hold: arrays, each with the boxes of it.
pub fn find_in<'a>(
    parts: &'a [MemoryPart],
    elements: &'a Box3,
) -> impl Iterator<Item = (ElementArray, Box3)> + 'a {
    parts.iter().flat_map(move |part| {
        let found = part.region.intersection_box(elements);
        let boxes: Vec<_> = found.boxes().into();
        boxes.into_iter().map(move |found| (part.memory, found))
    })
}

/// Copies elements to dense memory: box by box in the order of the region, each of them row-major.
///
/// # Safety
/// `sources` hold all of `region`, are live, and nobody writes these elements meanwhile; `target` has
/// room for as many, which nobody else touches.
pub unsafe fn pack(sources: &[MemoryPart], region: &Region, elem_size: u64, target: BasePtr) {
    for (elements, dense) in dense_boxes(region, elem_size, target) {
        for (source, part) in find_in(sources, &elements) {
            // SAFETY: passed on; the dense box is a part of the target's memory.
            unsafe { copy_elements(source, dense, &part, elem_size) };
        }
    }
}

/// Copies elements from dense memory that [`pack`] has filled, or would have, on some node.
///
/// # Safety
/// `source` holds the elements of `region`, which nobody writes meanwhile; `targets` hold all of the
/// region, are live, and nobody else touches these elements.
pub unsafe fn unpack(targets: &[MemoryPart], region: &Region, elem_size: u64, source: BasePtr) {
    for (elements, dense) in dense_boxes(region, elem_size, source) {
        for (target, part) in find_in(targets, &elements) {
            // SAFETY: passed on; the dense box is a part of the source's memory.
            unsafe { copy_elements(dense, target, &part, elem_size) };
        }
    }
}

/// The boxes of a region, one behind the other in dense memory.
fn dense_boxes(
    region: &Region,
    elem_size: u64,
    base: BasePtr,
) -> impl Iterator<Item = (Box3, ElementArray)> {
    let mut at = base.as_ptr();
    region.boxes().iter().map(move |elements| {
        let base = BasePtr::of_raw(at).expect("an address behind one that is not null");
        let bytes = elements.volume() * elem_size;
        at = at.wrapping_add(usize::try_from(bytes).expect("live memory fits the address space"));
        (*elements, ElementArray { base, extent: *elements })
    })
}
