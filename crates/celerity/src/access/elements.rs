//! The one place where the executor's untyped memory becomes typed elements.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use celerity_executor::BoundMemory;
use celerity_kernel::{
    Atomic, AtomicView, Bounds, Layout, NeighborhoodRow, PartView, PartViewMut, PeriodicRow, Reach,
    RegionView, WholeView, WholeViewMut, box_around,
};
use celerity_regions::Box3;

use super::Rows;
use crate::buffer::Element;
use crate::range::bounds;

/// The memory that one access of a chunk may touch, as elements.
///
/// Views may be cut from it on several threads at once; each method says what
/// the caller must keep apart. All of them check that a view stays inside of
/// what was declared, so a wrong range mapper ends in a panic, not in a race.
pub struct AccessedElements<'m, T, const D: usize> {
    base: *mut T,
    layout: Layout<D>,
    extent: Bounds<D>,
    /// What was declared, inside of the extent, unless that is no box, as surroundings along axes
    /// are none.
    part: Option<Bounds<D>>,
    /// All that was declared.
    boxes: &'m [Box3],
    memory: PhantomData<&'m mut [T]>,
}

// SAFETY: a pointer to elements that may be sent and shared, and plain data.
// Which thread may touch which element is the contract of each method.
unsafe impl<T: Element, const D: usize> Send for AccessedElements<'_, T, D> {}
// SAFETY: as above.
unsafe impl<T: Element, const D: usize> Sync for AccessedElements<'_, T, D> {}

impl<'m, T: Element, const D: usize> AccessedElements<'m, T, D> {
    /// The elements in `memory`.
    ///
    /// # Safety
    /// `memory` keeps the executor's promise (see [`BoundMemory`]) during `'m`,
    /// for a buffer of `D` dimensions with elements of type `T`.
    pub unsafe fn new(memory: &BoundMemory<'m>) -> Self {
        let whole = memory.extent();
        let extent = if whole.is_empty() { Bounds::EMPTY } else { bounds(whole) };
        debug_assert!(memory.region().boxes().iter().all(|part| whole.contains(part)));
        debug_assert!(whole.is_empty() || memory.base().cast::<T>().is_aligned());
        Self {
            base: memory.base().cast(),
            layout: Layout::row_major(&extent),
            extent,
            part: single_box(memory.region().boxes()),
            boxes: memory.region().boxes(),
            memory: PhantomData,
        }
    }

    pub(crate) fn check_declared(&self, part: &Bounds<D>) {
        if !self.is_declared(part) {
            not_declared(part.min(), part.max());
        }
    }

    /// Whether all of `part` was declared.
    pub(crate) fn is_declared(&self, part: &Bounds<D>) -> bool {
        match &self.part {
            Some(declared) => declared.contains_all(part),
            None => self.is_in_a_box(part),
        }
    }

    /// Whether a box is inside of one of several that were declared.
    fn is_in_a_box(&self, part: &Bounds<D>) -> bool {
        // Ascending by their first elements, as the boxes of a region are.
        let around = box_around(self.boxes, bounds, part.min());
        part.is_empty() || around.is_some_and(|one| bounds(one).contains_all(part))
    }

    /// All boxes that were declared, as a [`RegionView`] wants them.
    pub fn all_boxes(&self) -> Vec<Bounds<D>> {
        self.boxes.iter().map(bounds).collect()
    }

    /// Everything in `boxes`.
    ///
    /// # Safety
    /// They are [all](Self::all_boxes) that were declared, and nobody writes it while the result lives.
    #[inline]
    pub unsafe fn region<'a>(&self, boxes: &'a [Bounds<D>]) -> RegionView<'a, T, D>
    where
        'm: 'a,
    {
        // SAFETY: declared elements are in the layout and valid to read.
        unsafe { RegionView::new(self.base, self.layout, boxes) }
    }

    /// The `len` elements from `start` along the fastest dimension.
    ///
    /// # Safety
    /// They were declared, and nobody writes them while the result lives.
    #[inline]
    pub unsafe fn run(&self, start: [usize; D], len: usize) -> &[T] {
        // SAFETY: declared elements are inside of the allocation, and valid to
        // read; elements that are neighbours in the fastest dimension are dense.
        unsafe { std::slice::from_raw_parts(self.base.add(self.layout.position(start)), len) }
    }

    /// The `len` elements from `start` along the fastest dimension.
    ///
    /// # Safety
    /// They were declared for writing, and nobody else touches them while the result lives.
    #[expect(clippy::mut_from_ref, reason = "the caller keeps runs apart")]
    #[inline]
    pub unsafe fn run_mut(&self, start: [usize; D], len: usize) -> &mut [T] {
        // SAFETY: as in `run`, and exclusive by this function's contract.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(self.layout.position(start)), len) }
    }

    /// Whether the elements of each of `rows` begin behind those of the one before.
    #[inline]
    pub fn are_side_by_side(&self, rows: &Rows<D>) -> bool {
        let apart = D.checked_sub(2).map(|dim| self.layout.strides()[dim]);
        rows.count() == 1 || apart == Some(rows.first().len())
    }

    /// The surroundings of the first of `rows` in a buffer of `range`.
    ///
    /// # Panics
    /// If not all of `rows` are inside of the buffer.
    ///
    /// # Safety
    /// What `reach` allows from each item of all of them was declared, and nobody
    /// writes it while the result lives.
    #[inline]
    pub unsafe fn neighborhood(
        &self,
        reach: &Reach<D>,
        range: [usize; D],
        rows: &Rows<D>,
    ) -> NeighborhoodRow<'_, T, D> {
        rows.check_inside(range);
        let (start, len) = (rows.first().start(), rows.first().len());
        // SAFETY: declared elements are in the layout and valid to read.
        unsafe { NeighborhoodRow::new(self.base, &self.layout, reach, range, start, len) }
    }

    /// The surroundings of the first of `rows` in a buffer of `range`, of which opposite
    /// edges meet along the dimensions that the second part of `reach` names.
    ///
    /// # Panics
    /// If not all of `rows` are inside of the buffer.
    ///
    /// # Safety
    /// What `reach` allows from each item of all of them was declared, and nobody
    /// writes it while the result lives.
    #[inline]
    pub unsafe fn periodic(
        &self,
        (reach, along): &(Reach<D>, [bool; D]),
        range: [usize; D],
        rows: &Rows<D>,
    ) -> PeriodicRow<'_, T, D> {
        rows.check_inside(range);
        let (start, len) = (rows.first().start(), rows.first().len());
        // SAFETY: declared elements are in the layout and valid to read; a border that is wider
        // than the buffer is refused when the task is submitted (`MapperFlaw::BorderTooWide`).
        unsafe { PeriodicRow::new(self.base, &self.layout, (reach, *along), range, start, len) }
    }

    /// Everything that was declared, one box.
    ///
    /// # Safety
    /// Nobody writes it while the result lives.
    #[inline]
    pub unsafe fn part(&self) -> PartView<'m, T, D> {
        // SAFETY: declared elements are in the layout and valid to read.
        unsafe { PartView::new(self.base, self.layout, self.single_box()) }
    }

    /// The box around everything that was declared.
    ///
    /// # Safety
    /// As [`part`](Self::part); and nothing is read through the result but what was declared.
    #[inline]
    pub unsafe fn around(&self) -> PartView<'m, T, D> {
        let all = self.boxes.iter().fold(Box3::EMPTY, |all, part| all.bounding(part));
        let around = if all.is_empty() { Bounds::EMPTY } else { bounds(&all) };
        // SAFETY: the allocation holds the box; the rest is passed on.
        unsafe { PartView::new(self.base, self.layout, around) }
    }

    /// The elements of `part`.
    ///
    /// # Safety
    /// `part` was declared for writing, and nobody else touches it while the result lives.
    #[inline]
    pub unsafe fn part_mut(&self, part: Bounds<D>) -> PartViewMut<'_, T, D> {
        debug_assert!(self.is_declared(&part));
        // SAFETY: declared elements are in the layout; exclusive by contract.
        unsafe { PartViewMut::new(self.base, self.layout, part) }
    }

    /// The same, of all that there is: for a single view, which outlives this.
    ///
    /// # Panics
    /// If `part` was not declared.
    ///
    /// # Safety
    /// As [`part_mut`](Self::part_mut), if it was declared.
    pub unsafe fn into_part_mut(self, part: Bounds<D>) -> PartViewMut<'m, T, D> {
        self.check_declared(&part);
        // SAFETY: as in `part_mut`; the memory lives as long as `'m`.
        unsafe { PartViewMut::new(self.base, self.layout, part) }
    }

    /// The declared box, for all items at once.
    ///
    /// # Safety
    /// It was declared for writing, and is touched through results of this alone while
    /// one lives.
    #[inline]
    pub unsafe fn shared(&self) -> AtomicView<'m, T, D>
    where
        T: Atomic,
    {
        // SAFETY: declared elements are in the layout; the rest is passed on.
        unsafe { AtomicView::new(self.base, self.layout, self.single_box()) }
    }

    /// All elements of a buffer of size `range`.
    ///
    /// # Safety
    /// Nobody writes them while the result lives.
    pub unsafe fn whole(&self, range: [usize; D]) -> WholeView<'m, T, D> {
        match self.check_whole(range) {
            0 => WholeView::new(&[], range),
            // SAFETY: all elements of the allocation were declared.
            len => WholeView::new(unsafe { std::slice::from_raw_parts(self.base, len) }, range),
        }
    }

    /// All elements of a buffer of size `range`.
    ///
    /// # Safety
    /// They were declared for writing, and nobody else touches them while the result lives.
    pub unsafe fn whole_mut(&self, range: [usize; D]) -> WholeViewMut<'_, T, D> {
        let elements: &mut [T] = match self.check_whole(range) {
            0 => &mut [],
            // SAFETY: all elements of the allocation were declared; exclusive by
            // contract.
            len => unsafe { std::slice::from_raw_parts_mut(self.base, len) },
        };
        WholeViewMut::new(elements, range)
    }

    /// The declared box, or an empty one: what a subrange is.
    #[inline]
    pub fn single_box(&self) -> Bounds<D> {
        self.part.unwrap_or_else(|| unreachable!("a subrange is one box"))
    }

    /// The volume of a whole buffer, after a check that all of it is here.
    fn check_whole(&self, range: [usize; D]) -> usize {
        let whole = Bounds::from_range(range);
        let complete = whole.is_empty() || (self.extent == whole && self.part == Some(whole));
        assert!(complete, "the executor bound a part of a buffer that was accessed as a whole");
        whole.volume()
    }
}

fn single_box<const D: usize>(boxes: &[Box3]) -> Option<Bounds<D>> {
    match boxes {
        [] => Some(Bounds::EMPTY),
        [only] => Some(bounds(only)),
        _ => None,
    }
}

#[cold]
#[inline(never)]
fn not_declared<const D: usize>(min: [usize; D], max: [usize; D]) -> ! {
    panic!(
        "a part of the chunk maps to {min:?} to {max:?}, which is not inside of what the range \
         mapper said for the whole chunk: r(A ∪ B) = r(A) ∪ r(B) must hold"
    )
}

#[cfg(test)]
mod tests {
    use celerity_regions::Region;

    use super::*;

    /// Whether the first rows of `part` are side by side in an allocation of all of `extent`.
    fn joined<const K: usize>(extent: Box3, part: Bounds<K>) -> bool {
        let (region, mut memory) = (Region::from(extent), vec![0_u8; 64]);
        // SAFETY: the elements outlive the binding, are all of the extent, and nobody else's.
        let elements = unsafe {
            let memory = BoundMemory::new(memory.as_mut_ptr().cast(), extent, &region);
            AccessedElements::<u8, K>::new(&memory)
        };
        let mut joined = Vec::new();
        Rows::of(&part, part.max(), |rows| joined.push(elements.are_side_by_side(&rows)));
        joined[0]
    }

    #[test]
    fn rows_are_side_by_side_if_nothing_lies_between_them() {
        let plane = Box3::from_range([4, 6]);
        assert!(joined(plane, Bounds::new([1, 0], [3, 6])));
        assert!(!joined(plane, Bounds::new([1, 0], [3, 5])));
        assert!(!joined(plane, Bounds::new([1, 1], [3, 6])));
        // One row has nothing beside it.
        assert!(joined(plane, Bounds::new([1, 1], [2, 5])));
        assert!(joined(Box3::from_offset_range([0, 1], [4, 4]), Bounds::new([1, 1], [3, 5])));
        let space = Box3::from_range([2, 3, 4]);
        assert!(joined(space, Bounds::new([0, 1, 0], [2, 3, 4])));
        assert!(!joined(space, Bounds::new([0, 1, 1], [2, 3, 3])));
        assert!(joined(Box3::from_range([9]), Bounds::new([2], [5])));
    }
}
