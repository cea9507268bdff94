//! What views are indexed by: the index of an element in its buffer or, in one dimension, a range
//! of such indices. Knows boxes, and no memory but the run of elements that it is handed.
//!
//! Indices count from the buffer's first element whatever the chunk, so a kernel means the same
//! elements by them however its task has been split.
#![allow(unsafe_code)]
#![allow(clippy::inline_always, reason = "what fails takes plain numbers, see `outside`")]

use core::ops::{Range, RangeInclusive};

use crate::bounds::Bounds;
use crate::outside::{RowOf, Scope, check_element, no_range};

/// What a view of a buffer with `D` dimensions can be indexed by: `[usize; D]`, and in one
/// dimension a plain `usize`, `a..b` and `a..=b`; sealed.
///
/// All of them are indices into the buffer. A range without elements is inside of every view, as
/// it is of the whole buffer, so that what a split leaves empty need not be looked for. Ranges
/// with an open end are left out: where they would end depends on the chunk.
///
/// ```
/// use celerity_kernel::{Bounds, Layout, PartView};
///
/// // Elements 10 to 14 of a buffer: all that a chunk has declared, and all that is here.
/// let here = [0.5, 1.0, 1.5, 2.0];
/// let part = Bounds::new([10], [14]);
/// // SAFETY: the layout is that of `here`, which the view borrows.
/// let view = unsafe {
///     PartView::new(here.as_ptr(), Layout::row_major(&part), part)
/// };
/// assert_eq!((view[11], view[[11]]), (1.0, 1.0));
/// assert_eq!(view[12..14], [1.5, 2.0]);
/// assert_eq!(view.get(10..=11), Some(&[0.5, 1.0][..]));
/// assert_eq!((view.get(9), view.get(13..15)), (None, None));
/// assert!(view[3..3].is_empty());
/// ```
#[diagnostic::on_unimplemented(
    message = "a view of a {D}-dimensional buffer cannot be indexed by `{Self}`",
    label = "neither the index of an element nor a range of indices",
    note = "indices are those of the buffer: `[usize; {D}]`, in one dimension also `usize`, `a..b` and \
            `a..=b`; in more dimensions take a row first, `view.row([y])[a..b]`",
    note = "a range needs both ends: where an open one ends depends on the chunk"
)]
pub trait ViewIndex<const D: usize>: Clone + sealed::Sealed {
    /// What there is at the index: an element, or a slice of them.
    type Output<T>: ?Sized;

    /// The index of the first element in each dimension.
    #[doc(hidden)]
    fn first(&self) -> [usize; D];

    /// Whether all of it is in a box, as nothing is in every box.
    #[doc(hidden)]
    fn is_in(&self, part: &Bounds<D>) -> bool;

    /// What is there. `first` says where, and is asked only if there is something.
    ///
    /// # Safety
    /// All elements of the index lie from that place on, valid to read and not written during
    /// `'a`.
    #[doc(hidden)]
    unsafe fn shared<'a, T>(&self, first: impl FnOnce() -> *const T) -> &'a Self::Output<T>;

    /// As [`shared`](Self::shared).
    ///
    /// # Safety
    /// As [`shared`](Self::shared), and nobody else touches them during `'a`.
    #[doc(hidden)]
    unsafe fn exclusive<'a, T>(&self, first: impl FnOnce() -> *mut T) -> &'a mut Self::Output<T>;

    /// Panics unless all of it is in `part`, which is all there is of the row.
    #[doc(hidden)]
    #[track_caller]
    fn check(&self, scope: (Scope, RowOf), part: &Bounds<D>);
}

impl<const D: usize> ViewIndex<D> for [usize; D] {
    type Output<T> = T;

    #[inline]
    fn first(&self) -> [usize; D] {
        *self
    }

    #[inline]
    fn is_in(&self, part: &Bounds<D>) -> bool {
        part.contains(*self)
    }

    #[inline]
    unsafe fn shared<'a, T>(&self, first: impl FnOnce() -> *const T) -> &'a T {
        // SAFETY: this function's contract.
        unsafe { &*first() }
    }

    #[inline]
    unsafe fn exclusive<'a, T>(&self, first: impl FnOnce() -> *mut T) -> &'a mut T {
        // SAFETY: this function's contract.
        unsafe { &mut *first() }
    }

    #[inline(always)]
    #[track_caller]
    fn check(&self, scope: (Scope, RowOf), part: &Bounds<D>) {
        check_element(scope, *self, part);
    }
}

impl ViewIndex<1> for usize {
    type Output<T> = T;

    #[inline]
    fn first(&self) -> [usize; 1] {
        [*self]
    }

    #[inline]
    fn is_in(&self, part: &Bounds<1>) -> bool {
        part.contains([*self])
    }

    #[inline]
    unsafe fn shared<'a, T>(&self, first: impl FnOnce() -> *const T) -> &'a T {
        // SAFETY: this function's contract.
        unsafe { &*first() }
    }

    #[inline]
    unsafe fn exclusive<'a, T>(&self, first: impl FnOnce() -> *mut T) -> &'a mut T {
        // SAFETY: this function's contract.
        unsafe { &mut *first() }
    }

    #[inline(always)]
    #[track_caller]
    fn check(&self, scope: (Scope, RowOf), part: &Bounds<1>) {
        check_element(scope, [*self], part);
    }
}

impl ViewIndex<1> for Range<usize> {
    type Output<T> = [T];

    #[inline]
    fn first(&self) -> [usize; 1] {
        [self.start]
    }

    #[inline]
    fn is_in(&self, part: &Bounds<1>) -> bool {
        let [[min], [max]] = [part.min(), part.max()];
        let inside = min <= self.start && self.start < self.end && self.end <= max;
        inside || self.start == self.end
    }

    #[inline]
    unsafe fn shared<'a, T>(&self, first: impl FnOnce() -> *const T) -> &'a [T] {
        match self.is_empty() {
            true => &[],
            // SAFETY: this function's contract.
            false => unsafe { core::slice::from_raw_parts(first(), self.end - self.start) },
        }
    }

    #[inline]
    unsafe fn exclusive<'a, T>(&self, first: impl FnOnce() -> *mut T) -> &'a mut [T] {
        match self.is_empty() {
            true => &mut [],
            // SAFETY: this function's contract.
            false => unsafe { core::slice::from_raw_parts_mut(first(), self.end - self.start) },
        }
    }

    #[inline(always)]
    #[track_caller]
    fn check(&self, scope: (Scope, RowOf), part: &Bounds<1>) {
        if !self.is_in(part) {
            no_range(scope, (self.start, self.end), false, part);
        }
    }
}

impl ViewIndex<1> for RangeInclusive<usize> {
    type Output<T> = [T];

    #[inline]
    fn first(&self) -> [usize; 1] {
        [*self.start()]
    }

    #[inline]
    fn is_in(&self, part: &Bounds<1>) -> bool {
        half_open(self).is_some_and(|range| range.is_in(part))
    }

    #[inline]
    unsafe fn shared<'a, T>(&self, first: impl FnOnce() -> *const T) -> &'a [T] {
        // SAFETY: passed on.
        half_open(self).map_or(&[], |range| unsafe { range.shared(first) })
    }

    #[inline]
    unsafe fn exclusive<'a, T>(&self, first: impl FnOnce() -> *mut T) -> &'a mut [T] {
        // SAFETY: passed on.
        half_open(self).map_or(&mut [], |range| unsafe { range.exclusive(first) })
    }

    #[inline(always)]
    #[track_caller]
    fn check(&self, scope: (Scope, RowOf), part: &Bounds<1>) {
        if !self.is_in(part) {
            no_range(scope, (*self.start(), *self.end()), true, part);
        }
    }
}

/// The same indices, unless there is no number behind the last.
#[inline]
fn half_open(range: &RangeInclusive<usize>) -> Option<Range<usize>> {
    Some(*range.start()..range.end().checked_add(1)?)
}

mod sealed {
    use core::ops::{Range, RangeInclusive};

    pub trait Sealed {}
    impl<const D: usize> Sealed for [usize; D] {}
    impl Sealed for usize {}
    impl Sealed for Range<usize> {}
    impl Sealed for RangeInclusive<usize> {}
}
