//! Elements along one dimension of a buffer, with gaps between them in memory: a column.
#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::ops::{Index, Range};

use crate::bounds::Bounds;
use crate::outside::{RowOf, Scope, check_element};

/// The declared elements along one dimension, by index along that dimension; see
/// [`PartView::along`](crate::PartView::along).
#[derive(Debug)]
pub struct Line<'a, T> {
    /// The first element.
    start: *const T,
    stride: usize,
    part: Bounds<1>,
    elements: PhantomData<&'a [T]>,
}

impl<T> Clone for Line<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Line<'_, T> {}

// SAFETY: the line is a bundle of `&T`, spelt as a pointer and limits.
unsafe impl<T: Sync> Send for Line<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Line<'_, T> {}

impl<'a, T> Line<'a, T> {
    /// The line of the elements with the indices in `part`, the first of which is at `start`.
    ///
    /// # Safety
    /// All of them have the stride in between, are valid to read and not written during `'a`.
    #[inline]
    pub(crate) unsafe fn new(start: *const T, stride: usize, part: Bounds<1>) -> Self {
        Self { start, stride, part, elements: PhantomData }
    }

    /// The indices of all elements, along the line's dimension.
    #[must_use]
    #[inline]
    pub const fn indices(&self) -> Range<usize> {
        let ([first], [end]) = (self.part.min(), self.part.max());
        first..end
    }

    /// The number of elements.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.part.volume()
    }

    /// Whether there are none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.part.is_empty()
    }

    /// The element with the index `at`, or `None` if it was not declared.
    #[must_use]
    #[inline]
    pub fn get(&self, at: usize) -> Option<&'a T> {
        // SAFETY: it was declared.
        self.part.contains([at]).then(|| unsafe { self.element(at) })
    }

    /// All elements, by increasing index.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a T> + use<'a, T> {
        let line = *self;
        // SAFETY: all of these were declared.
        self.indices().map(move |at| unsafe { line.element(at) })
    }

    /// # Safety
    /// The element with the index `at` was declared.
    #[inline]
    unsafe fn element(&self, at: usize) -> &'a T {
        let [first] = self.part.min();
        // SAFETY: `new`'s contract covers it.
        unsafe { &*self.start.add((at - first) * self.stride) }
    }
}

impl<T> Index<usize> for Line<'_, T> {
    type Output = T;

    /// # Panics
    /// If the element was not declared.
    #[inline]
    #[track_caller]
    fn index(&self, at: usize) -> &T {
        check_element((Scope::Line, RowOf::Nothing), [at], &self.part);
        // SAFETY: it was declared.
        unsafe { self.element(at) }
    }
}
