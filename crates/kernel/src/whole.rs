//! Views of a whole buffer: one slice and its shape.
#![allow(unsafe_code)]

use core::ops::{Deref, DerefMut, Index, IndexMut};

use crate::bounds::{Bounds, OuterIndex};
use crate::index::ViewIndex;
use crate::outside::{RowOf, Scope};
use crate::vector;

/// Read access to all elements of a buffer, row-major.
///
/// Dereferences to a slice, so a loop over all elements costs no more than a
/// loop over a slice. An index is checked once in every dimension, so in one dimension
/// `view[i]` costs what it costs of a slice.
///
/// ```
/// use celerity_kernel::WholeView;
/// let view = WholeView::new(&[1, 2, 3, 4, 5, 6], [2, 3]);
/// assert_eq!(view[[1, 0]], 4);
/// assert_eq!(view.row([1]), [4, 5, 6]);
/// assert_eq!(view.iter().sum::<i32>(), 21);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct WholeView<'a, T, const D: usize> {
    elements: &'a [T],
    range: [usize; D],
}

impl<'a, T, const D: usize> WholeView<'a, T, D> {
    /// The view of a buffer of the given size.
    ///
    /// # Panics
    /// If there are not exactly as many elements as the buffer has.
    #[must_use]
    #[inline]
    pub fn new(elements: &'a [T], range: [usize; D]) -> Self {
        check_len(elements.len(), range);
        Self { elements, range }
    }

    /// As [`new`](Self::new), for a length that is known to be right.
    #[inline]
    pub(crate) const fn from_parts(elements: &'a [T], range: [usize; D]) -> Self {
        Self { elements, range }
    }

    /// Elements of the buffer in each dimension.
    #[must_use]
    #[inline]
    pub const fn range(&self) -> [usize; D] {
        self.range
    }

    /// All elements, row-major.
    #[must_use]
    #[inline]
    pub const fn as_slice(&self) -> &'a [T] {
        self.elements
    }

    /// The element, or in one dimension the slice, at `index`, or `None` if not all of it is in
    /// the buffer.
    #[must_use]
    #[inline]
    pub fn get<I: ViewIndex<D>>(&self, index: I) -> Option<&'a I::Output<T>> {
        // SAFETY: it is in the buffer.
        index.is_in(&all(self.range)).then(|| unsafe { self.at(&index) })
    }

    /// What is at `index`.
    ///
    /// # Safety
    /// It is in the buffer.
    #[inline]
    unsafe fn at<I: ViewIndex<D>>(&self, index: &I) -> &'a I::Output<T> {
        let position = || position(index.first(), self.range);
        // SAFETY: there are as many elements as the range says, which `new` has checked. Not by an
        // index into the slice: another check, which is a call, and costs kernels on devices
        // speed, called or not.
        unsafe { index.shared(|| self.elements.as_ptr().add(position())) }
    }

    /// The `L` elements from `start` on along the fastest dimension, by value, as
    /// [`PartView::vector`](crate::PartView::vector) gets them.
    ///
    /// # Panics
    /// If not all of them are in the buffer's row.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn vector<const L: usize>(&self, start: [usize; D]) -> [T; L]
    where
        T: Copy,
    {
        vector::check::<L, D>(Scope::Buffer, start, &all(self.range));
        // SAFETY: all of them are in the row, side by side, and there are as many elements as the range
        // says.
        unsafe { vector::load(self.elements.as_ptr().add(position(start, self.range))) }
    }

    /// The elements of one row, all along the fastest dimension.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn row(&self, outer: impl OuterIndex<D>) -> &'a [T] {
        &self.elements[row_at(outer, self.range)]
    }

    /// All rows, in order.
    #[inline]
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &'a [T]> + use<'a, T, D> {
        self.elements.chunks_exact(row_len(self.range))
    }
}

impl<T, const D: usize> Deref for WholeView<'_, T, D> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.elements
    }
}

impl<T, I: ViewIndex<D>, const D: usize> Index<I> for WholeView<'_, T, D> {
    type Output = I::Output<T>;

    /// # Panics
    /// If not all that is at `index` is in the buffer.
    #[inline]
    #[track_caller]
    fn index(&self, index: I) -> &I::Output<T> {
        // Not by way of `get`: an address that may be none is chosen, and looked at, each time.
        index.check(OUTSIDE, &all(self.range));
        // SAFETY: it is in the buffer.
        unsafe { self.at(&index) }
    }
}

/// Exclusive access to all elements of a buffer, row-major.
///
/// ```
/// use celerity_kernel::WholeViewMut;
/// let mut elements = [0; 6];
/// let mut view = WholeViewMut::new(&mut elements, [2, 3]);
/// view[[1, 0]] = 4;
/// view.row_mut([0]).fill(7);
/// view.set([1, 2], 5);
/// assert_eq!(elements, [7, 7, 7, 4, 0, 5]);
/// ```
#[derive(Debug)]
pub struct WholeViewMut<'a, T, const D: usize> {
    elements: &'a mut [T],
    range: [usize; D],
}

impl<'a, T, const D: usize> WholeViewMut<'a, T, D> {
    /// The view of a buffer of the given size.
    ///
    /// # Panics
    /// If there are not exactly as many elements as the buffer has.
    #[must_use]
    #[inline]
    pub fn new(elements: &'a mut [T], range: [usize; D]) -> Self {
        check_len(elements.len(), range);
        Self { elements, range }
    }

    /// Elements of the buffer in each dimension.
    #[must_use]
    #[inline]
    pub const fn range(&self) -> [usize; D] {
        self.range
    }

    /// The same elements, to read.
    #[must_use]
    #[inline]
    pub const fn as_view(&self) -> WholeView<'_, T, D> {
        WholeView { elements: self.elements, range: self.range }
    }

    /// All elements, row-major.
    #[must_use]
    #[inline]
    pub const fn as_mut_slice(&mut self) -> &mut [T] {
        self.elements
    }

    /// Overwrites one element.
    ///
    /// # Panics
    /// If `index` is outside of the buffer.
    #[inline]
    #[track_caller]
    pub fn set(&mut self, index: impl ViewIndex<D, Output<T> = T>, value: T) {
        self[index] = value;
    }

    /// The elements of one row, all along the fastest dimension.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn row_mut(&mut self, outer: impl OuterIndex<D>) -> &mut [T] {
        &mut self.elements[row_at(outer, self.range)]
    }

    /// All rows, in order.
    #[inline]
    pub fn rows_mut(&mut self) -> impl ExactSizeIterator<Item = &mut [T]> {
        self.elements.chunks_exact_mut(row_len(self.range))
    }
}

impl<T, const D: usize> Deref for WholeViewMut<'_, T, D> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.elements
    }
}

impl<T, const D: usize> DerefMut for WholeViewMut<'_, T, D> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        self.elements
    }
}

impl<T, I: ViewIndex<D>, const D: usize> Index<I> for WholeViewMut<'_, T, D> {
    type Output = I::Output<T>;

    /// # Panics
    /// If not all that is at `index` is in the buffer.
    #[inline]
    #[track_caller]
    fn index(&self, index: I) -> &I::Output<T> {
        index.check(OUTSIDE, &all(self.range));
        // SAFETY: it is in the buffer.
        unsafe { self.as_view().at(&index) }
    }
}

impl<T, I: ViewIndex<D>, const D: usize> IndexMut<I> for WholeViewMut<'_, T, D> {
    #[inline]
    #[track_caller]
    fn index_mut(&mut self, index: I) -> &mut I::Output<T> {
        index.check(OUTSIDE, &all(self.range));
        let position = || position(index.first(), self.range);
        // SAFETY: it is in the buffer, there are as many elements as the range says, and the view
        // is borrowed exclusively.
        unsafe { index.exclusive(|| self.elements.as_mut_ptr().add(position())) }
    }
}

/// All of a buffer. Nothing is in a box with a size of 0, whatever its others, so it may be spelt
/// as it is.
#[inline]
const fn all<const D: usize>(range: [usize; D]) -> Bounds<D> {
    Bounds::from_corners([0; D], range)
}

const OUTSIDE: (Scope, RowOf) = (Scope::Buffer, RowOf::Nothing);

/// Where an element is, if the range contains it; otherwise any number.
#[inline]
fn position<const D: usize>(index: [usize; D], range: [usize; D]) -> usize {
    (0..D).fold(0, |outer: usize, dim| outer.wrapping_mul(range[dim]).wrapping_add(index[dim]))
}

#[inline]
#[track_caller]
fn row_at<const D: usize>(outer: impl OuterIndex<D>, range: [usize; D]) -> core::ops::Range<usize> {
    let first = outer.with_fastest(0);
    let len = range[D - 1];
    if len == 0 {
        return 0..0;
    }
    first.check(OUTSIDE, &all(range));
    let start = position(first, range);
    start..start + len
}

/// Never 0, so that an empty buffer has no rows instead of a division by zero.
fn row_len<const D: usize>(range: [usize; D]) -> usize {
    range.last().map_or(1, |&len| len.max(1))
}

#[inline]
fn check_len<const D: usize>(len: usize, range: [usize; D]) {
    assert!(
        Bounds::from_range(range).volume() == len,
        "a buffer of range {range:?} does not have {len} elements"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_checked_in_every_dimension() {
        let elements = [0; 6];
        let view = WholeView::new(&elements, [2, 3]);
        assert_eq!(view.get([0, 3]), None);
        assert_eq!(view.get([2, 0]), None);
        assert_eq!(view.get([1, 2]), Some(&0));
    }

    #[test]
    #[should_panic(expected = "index [0, 3] is outside of the buffer's range [2, 3]")]
    fn an_index_outside_names_itself_and_the_range() {
        let _ = WholeView::new(&[0; 6], [2, 3])[[0, 3]];
    }

    #[test]
    #[should_panic(expected = "index [18446744073709551615, 3] is outside")]
    fn an_index_outside_whose_position_is_inside_is_refused() {
        let index = [usize::MAX, 3];
        assert_eq!(position(index, [2, 3]), 0);
        WholeViewMut::new(&mut [0; 6], [2, 3])[index] = 1;
    }

    #[test]
    fn vectors_of_all_dimensionalities() {
        let elements = [0, 1, 2, 3, 4, 5, 6, 7];
        assert_eq!(WholeView::new(&elements, [8]).vector([3]), [3, 4, 5, 6]);
        assert_eq!(WholeView::new(&elements, [2, 2, 2]).vector([1, 0, 0]), [4, 5]);
        assert_eq!(WholeView::new(&elements[..1], []).vector([]), [0]);
    }

    #[test]
    #[should_panic(expected = "2 elements from [0, 3] on are not all in the buffer's range [2, 4]")]
    fn a_vector_stays_in_its_row() {
        let _ = WholeView::new(&[0; 8], [2, 4]).vector::<2>([0, 3]);
    }

    #[test]
    #[should_panic(expected = "are not all in the buffer")]
    fn an_empty_buffer_has_no_vectors() {
        let _ = WholeView::<u8, 2>::new(&[], [3, 0]).vector::<1>([0, 0]);
    }

    #[test]
    fn rows_of_all_dimensionalities() {
        let elements = [0, 1, 2, 3, 4, 5, 6, 7];
        assert_eq!(WholeView::new(&elements, [8]).row([]), elements);
        assert_eq!(WholeView::new(&elements, [2, 2, 2]).row([1, 0]), [4, 5]);
        assert!(WholeView::new(&elements, [4, 2]).rows().eq([[0, 1], [2, 3], [4, 5], [6, 7]]));
        assert_eq!(WholeView::new(&elements[..1], []).rows().len(), 1);
    }

    #[test]
    fn an_empty_buffer_has_no_rows() {
        let view = WholeView::<u8, 2>::new(&[], [3, 0]);
        assert_eq!(view.rows().len(), 0);
        assert!(view.row([1]).is_empty());
        assert_eq!(view.get([0, 0]), None);
    }
}
