//! A collective operation as one node takes part in it: the operation, which is the same on all members,
//! and this node's memory. Owns how elements that move are found in memory, and in which order they
//! are packed. Knows no network.
#![allow(unsafe_code)]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use celerity_cdag::TransferId;
use celerity_cpd::{Collective, Ends};
use celerity_idag::MemoryId;
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
    /// Which memory of this node its part is in: `M1`, or, if the network reaches those of devices, that of
    /// the first device, on all members.
    pub at: MemoryId,
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
        let on_device = |one: &Self| one.at.device().is_some();
        self.transfer == other.transfer
            && self.elem_size == other.elem_size
            && on_device(self) == on_device(other)
            && same()
    }

    /// A number that is the same on members that have the same operation in mind, and another one, but by
    /// bad luck, on those that have not. Tasks are not in it, nor where parts lie. O(members).
    #[must_use]
    pub fn digest(&self) -> u64 {
        let Self { transfer, collective, elem_size, .. } = self;
        let mut hasher = DefaultHasher::new();
        (transfer.buffer.index(), elem_size).hash(&mut hasher);
        let Collective { members, region, from, to } = &**collective;
        members.hash(&mut hasher);
        hash_region(region, &mut hasher);
        [from, to].into_iter().for_each(|ends| hash_ends(ends, &mut hasher));
        hasher.finish()
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

fn hash_ends(ends: &Ends, hasher: &mut DefaultHasher) {
    match ends {
        Ends::All => 0.hash(hasher),
        Ends::One(node) => (1, node.index()).hash(hasher),
        Ends::Each(parts) => {
            (2, parts.len()).hash(hasher);
            parts.iter().for_each(|part| hash_region(part, hasher));
        }
    }
}

fn hash_region(region: &Region, hasher: &mut DefaultHasher) {
    region.boxes().len().hash(hasher);
    region.boxes().iter().for_each(|part| part.corners().hash(hasher));
}

/// Copies elements to dense memory: box by box in the order of the region, each of them row-major.
///
/// # Safety
/// `sources` hold all of `region`, are live, and nobody writes these elements meanwhile; `target` has
/// room for as many, which nobody else touches.
pub unsafe fn pack(sources: &[MemoryPart], region: &Region, elem_size: u64, target: BasePtr) {
    for (elements, dense) in dense_boxes(region.boxes(), elem_size, target) {
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
    for (elements, dense) in dense_boxes(region.boxes(), elem_size, source) {
        for (target, part) in find_in(targets, &elements) {
            // SAFETY: passed on; the dense box is a part of the source's memory.
            unsafe { copy_elements(dense, target, &part, elem_size) };
        }
    }
}

/// Boxes, one behind the other in dense memory.
pub(crate) fn dense_boxes(
    boxes: &[Box3],
    elem_size: u64,
    base: BasePtr,
) -> impl Iterator<Item = (Box3, ElementArray)> {
    let mut at = base.as_ptr();
    boxes.iter().map(move |elements| {
        let base = BasePtr::of_raw(at).expect("an address behind one that is not null");
        let bytes = elements.volume() * elem_size;
        at = at.wrapping_add(usize::try_from(bytes).expect("live memory fits the address space"));
        (*elements, ElementArray { base, extent: *elements })
    })
}
