//! Exclusive access to one declared box of a buffer, by absolute index.
#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::ops::{Index, IndexMut};

use crate::bounds::{Bounds, Layout, OuterIndex};

/// Exclusive access to the box of a buffer that is an item's own, by index into
/// the buffer. Anything else in the buffer is out of bounds.
#[derive(Debug)]
pub struct PartViewMut<'a, T, const D: usize> {
    base: *mut T,
    layout: Layout<D>,
    part: Bounds<D>,
    elements: PhantomData<&'a mut [T]>,
}

// SAFETY: the view is a bundle of `&mut [T]`, spelt as a pointer and limits.
unsafe impl<T: Send, const D: usize> Send for PartViewMut<'_, T, D> {}
// SAFETY: as above; shared, it only reads.
unsafe impl<T: Sync, const D: usize> Sync for PartViewMut<'_, T, D> {}

impl<T, const D: usize> PartViewMut<'_, T, D> {
    /// The view of the elements in `part`, in memory that lies at `base` as
    /// `layout` says.
    ///
    /// # Safety
    /// Every element of `part` is in the layout, valid to read and write, and
    /// nobody else reads or writes it during the view's lifetime.
    #[must_use]
    #[inline]
    pub unsafe fn new(base: *mut T, layout: Layout<D>, part: Bounds<D>) -> Self {
        Self { base, layout, part, elements: PhantomData }
    }

    /// The box that may be written.
    #[must_use]
    #[inline]
    pub const fn bounds(&self) -> Bounds<D> {
        self.part
    }

    /// A view of a part of this one, which is unusable meanwhile. The part
    /// without elements is inside of every box.
    ///
    /// # Panics
    /// If `part` is not inside of this view's box.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn narrowed(&mut self, part: Bounds<D>) -> PartViewMut<'_, T, D> {
        if !self.part.contains_all(&part) {
            not_inside(&part, &self.part);
        }
        // SAFETY: the elements are this view's, borrowed exclusively.
        unsafe { PartViewMut::new(self.base, self.layout, part) }
    }

    /// The element at `index`, or `None` outside of the box.
    #[must_use]
    #[inline]
    pub fn get(&self, index: [usize; D]) -> Option<&T> {
        // SAFETY: `new`'s contract covers the elements of the box.
        self.part.contains(index).then(|| unsafe { &*self.base.add(self.layout.position(index)) })
    }

    /// The element at `index`, or `None` outside of the box.
    #[must_use]
    #[inline]
    pub fn get_mut(&mut self, index: [usize; D]) -> Option<&mut T> {
        let inside = self.part.contains(index);
        // SAFETY: `new`'s contract covers the elements of the box, and the view
        // is borrowed exclusively.
        inside.then(|| unsafe { &mut *self.base.add(self.layout.position(index)) })
    }

    /// Overwrites one element.
    ///
    /// # Panics
    /// If `index` is outside of the box.
    #[inline]
    #[track_caller]
    pub fn set(&mut self, index: [usize; D], value: T) {
        self[index] = value;
    }

    /// The elements of one row of the box, along the fastest dimension.
    ///
    /// # Panics
    /// If the box has no such row.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn row_mut(&mut self, outer: impl OuterIndex<D>) -> &mut [T] {
        let start = outer.with_fastest(self.part.min()[D - 1]);
        if !self.part.contains(start) {
            not_own(&start, &self.part);
        }
        self.run_mut(start, self.part.range()[D - 1])
    }

    /// All elements of the box, row-major, if they lie side by side, as those
    /// of a one-dimensional buffer always do.
    #[must_use]
    #[inline]
    pub fn try_as_mut_slice(&mut self) -> Option<&mut [T]> {
        let (part, side_by_side) = (self.part, self.layout.is_contiguous(&self.part));
        side_by_side.then(|| self.run_mut(part.min(), part.volume()))
    }

    /// The `len` elements from `start`, known to lie side by side in the box.
    #[inline]
    fn run_mut(&mut self, start: [usize; D], len: usize) -> &mut [T] {
        if len == 0 {
            return &mut [];
        }
        // SAFETY: the callers pass runs of the box, and the view is borrowed
        // exclusively.
        unsafe { core::slice::from_raw_parts_mut(self.base.add(self.layout.position(start)), len) }
    }
}

impl<T, const D: usize> Index<[usize; D]> for PartViewMut<'_, T, D> {
    type Output = T;

    /// # Panics
    /// If `index` is outside of the box.
    #[inline]
    #[track_caller]
    fn index(&self, index: [usize; D]) -> &T {
        match self.get(index) {
            Some(element) => element,
            None => not_own(&index, &self.part),
        }
    }
}

impl<T, const D: usize> IndexMut<[usize; D]> for PartViewMut<'_, T, D> {
    #[inline]
    #[track_caller]
    fn index_mut(&mut self, index: [usize; D]) -> &mut T {
        let part = self.part;
        match self.get_mut(index) {
            Some(element) => element,
            None => not_own(&index, &part),
        }
    }
}

impl<T> Index<usize> for PartViewMut<'_, T, 1> {
    type Output = T;

    /// # Panics
    /// If `index` is outside of the box.
    #[inline]
    #[track_caller]
    fn index(&self, index: usize) -> &T {
        &self[[index]]
    }
}

impl<T> IndexMut<usize> for PartViewMut<'_, T, 1> {
    #[inline]
    #[track_caller]
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self[[index]]
    }
}

#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[cfg_attr(not(target_arch = "nvptx64"), cold, inline(never))]
#[track_caller]
fn not_own<const D: usize>(index: &[usize; D], part: &Bounds<D>) -> ! {
    stop_on_device!("an index is outside of what this item may write");
    panic!(
        "index {index:?} is outside of what this item may write: {:?} to {:?}",
        part.min(),
        part.max()
    )
}

#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[cfg_attr(not(target_arch = "nvptx64"), cold, inline(never))]
#[track_caller]
fn not_inside<const D: usize>(part: &Bounds<D>, whole: &Bounds<D>) -> ! {
    stop_on_device!("a part is not inside of the box that it is taken from");
    panic!(
        "the part {:?} to {:?} is not inside of the box that it is taken from, {:?} to {:?}; if a \
         range mapper named both, r(A ∪ B) = r(A) ∪ r(B) must hold",
        part.min(),
        part.max(),
        whole.min(),
        whole.max()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: Bounds<2> = Bounds::new([1, 2], [3, 4]);

    fn view(elements: &mut [i32; 20]) -> PartViewMut<'_, i32, 2> {
        let layout = Layout::row_major(&Bounds::from_range([4, 5]));
        // SAFETY: the layout covers the whole array, all of it borrowed.
        unsafe { PartViewMut::new(elements.as_mut_ptr(), layout, PART) }
    }

    #[test]
    fn only_the_box_can_be_written() {
        let mut elements = [0; 20];
        let mut view = view(&mut elements);
        view.row_mut([1]).fill(1);
        view.set([2, 3], 2);
        view.narrowed(Bounds::new([2, 2], [3, 3]))[[2, 2]] = 3;
        assert_eq!(view.get_mut([0, 2]), None);
        assert_eq!(view.get([1, 4]), None);
        assert_eq!(view[[2, 2]], 3);
        assert_eq!(view.try_as_mut_slice(), None);
        assert_eq!((elements[7], elements[8], elements[12], elements[13]), (1, 1, 3, 2));
        assert_eq!(elements.iter().sum::<i32>(), 7);
    }

    #[test]
    #[should_panic(expected = "index [1, 4] is outside of what this item may write")]
    fn writing_elsewhere_names_the_index() {
        view(&mut [0; 20])[[1, 4]] = 1;
    }

    #[test]
    fn narrowing_to_nothing_reaches_nothing() {
        let mut elements = [0; 20];
        let mut view = view(&mut elements);
        for (min, max) in [([3, 3], [2, 2]), ([2, 3], [2, 4]), ([usize::MAX; 2], [0; 2])] {
            let mut nothing = view.narrowed(Bounds::new(min, max));
            assert_eq!(nothing.bounds(), Bounds::EMPTY);
            assert_eq!(nothing.try_as_mut_slice(), Some(&mut [][..]));
            assert_eq!(
                (nothing.get([2, 3]), nothing.get(min), nothing.get(max)),
                (None, None, None)
            );
        }
    }

    #[test]
    #[should_panic(expected = "is not inside of the box")]
    fn a_volume_beyond_64_bits_is_not_nothing() {
        let _ = view(&mut [0; 20]).narrowed(Bounds::from_range([1 << 32, 1 << 32]));
    }

    #[test]
    #[should_panic(expected = "is not inside of the box")]
    fn narrowing_cannot_widen() {
        let _ = view(&mut [0; 20]).narrowed(Bounds::new([1, 2], [2, 5]));
    }
}
