//! Elements along one dimension of a buffer, with gaps between them in memory: a column.
#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::ops::{Index, IndexMut, Range};

use crate::bounds::Bounds;
use crate::outside::{RowOf, Scope, check_in_line, no_range};

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
        self.len() == 0
    }

    /// Those of the elements that have these indices.
    ///
    /// What a loop over the same indices reads of it is not checked in each turn, as it is in a line of which nothing is known:
    ///
    /// ```
    /// use celerity_kernel::{Item, PartView, PartViewMut, kernel};
    /// # use celerity_kernel::{Code, Module};
    ///
    /// /// What has rained into each layer of a column of air and the layers above. Launched over `[1, columns]` items,
    /// /// with `slice(0)` for both.
    /// #[kernel]
    /// fn fallen(
    ///     item: Item<2>,
    ///     (mut total, rain): (PartViewMut<'_, f32, 2>, PartView<'_, f32, 2>),
    /// ) {
    ///     let mut total = total.along_mut(0, item.id());
    ///     let rain = rain.along(0, item.id()).narrowed(total.indices());
    ///     let mut sum = 0.0;
    ///     for layer in total.indices() {
    ///         sum += rain[layer];
    ///         total[layer] = sum;
    ///     }
    /// }
    /// # static MODULE: Module = Module { name: "doc", code: Code::Missing("") };
    /// # fn main() {}
    /// ```
    ///
    /// # Panics
    /// If not all of them were declared.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn narrowed(&self, indices: Range<usize>) -> Self {
        let (part, start) = narrowed((self.start, self.stride, Scope::Line), &self.part, indices);
        Self { start, part, ..*self }
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
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &'a T> + ExactSizeIterator + use<'a, T> {
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
        check_in_line(Scope::Line, at, &self.part);
        // SAFETY: it was declared.
        unsafe { self.element(at) }
    }
}

/// The elements along one dimension that are an item's own, by index along that dimension; see
/// [`PartViewMut::along_mut`](crate::PartViewMut::along_mut).
#[derive(Debug)]
pub struct LineMut<'a, T> {
    /// The first element.
    start: *mut T,
    stride: usize,
    part: Bounds<1>,
    elements: PhantomData<&'a mut [T]>,
}

// SAFETY: the line is a bundle of `&mut T`, spelt as a pointer and limits.
unsafe impl<T: Send> Send for LineMut<'_, T> {}
// SAFETY: as above; shared, it only reads.
unsafe impl<T: Sync> Sync for LineMut<'_, T> {}

impl<T> LineMut<'_, T> {
    /// The line of the elements with the indices in `part`, the first of which is at `start`.
    ///
    /// # Safety
    /// All of them have the stride in between, which is not 0, are valid to read and write, and nobody else reads or writes
    /// them during the line's lifetime.
    #[inline]
    pub(crate) unsafe fn new(start: *mut T, stride: usize, part: Bounds<1>) -> Self {
        Self { start, stride, part, elements: PhantomData }
    }

    /// The same elements, to read.
    #[must_use]
    #[inline]
    pub const fn as_line(&self) -> Line<'_, T> {
        // The line's elements, which stay as they are while it is borrowed.
        Line { start: self.start, stride: self.stride, part: self.part, elements: PhantomData }
    }

    /// The indices of all elements, along the line's dimension.
    #[must_use]
    #[inline]
    pub const fn indices(&self) -> Range<usize> {
        self.as_line().indices()
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
        self.len() == 0
    }

    /// Those of the elements that have these indices, as of [`Line::narrowed`].
    ///
    /// # Panics
    /// If the line does not have all of them.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn narrowed(self, indices: Range<usize>) -> Self {
        let whole = (self.start.cast_const(), self.stride, Scope::OwnLine);
        let (part, start) = narrowed(whole, &self.part, indices);
        Self { start: start.cast_mut(), part, ..self }
    }

    /// The element with the index `at`, or `None` if the line has none there.
    #[must_use]
    #[inline]
    pub fn get(&self, at: usize) -> Option<&T> {
        self.as_line().get(at)
    }

    /// The element with the index `at`, to write, or `None` if the line has none there.
    #[must_use]
    #[inline]
    pub fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        // SAFETY: it is in the line.
        self.part.contains([at]).then(|| unsafe { self.element_mut(at) })
    }

    /// Overwrites one element.
    ///
    /// # Panics
    /// If the line has no element with the index `at`.
    #[inline]
    #[track_caller]
    pub fn set(&mut self, at: usize, value: T) {
        self[at] = value;
    }

    /// All elements, by increasing index.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator + use<'_, T> {
        self.as_line().iter()
    }

    /// All elements, by increasing index, to write.
    #[inline]
    pub fn iter_mut(
        &mut self,
    ) -> impl DoubleEndedIterator<Item = &mut T> + ExactSizeIterator + use<'_, T> {
        let (start, stride, [first]) = (self.start, self.stride, self.part.min());
        // SAFETY: `new`'s contract covers each, they are different ones, and the line is borrowed exclusively.
        self.indices().map(move |at| unsafe { &mut *start.add((at - first) * stride) })
    }

    /// # Safety
    /// The element with the index `at` is in the line.
    #[inline]
    unsafe fn element_mut(&mut self, at: usize) -> &mut T {
        let [first] = self.part.min();
        // SAFETY: `new`'s contract covers it, and the line is borrowed exclusively.
        unsafe { &mut *self.start.add((at - first) * self.stride) }
    }
}

impl<T> Index<usize> for LineMut<'_, T> {
    type Output = T;

    /// # Panics
    /// If the line has no element with that index.
    #[inline]
    #[track_caller]
    fn index(&self, at: usize) -> &T {
        check_in_line(Scope::OwnLine, at, &self.part);
        // SAFETY: it is in the line.
        unsafe { self.as_line().element(at) }
    }
}

impl<T> IndexMut<usize> for LineMut<'_, T> {
    #[inline]
    #[track_caller]
    fn index_mut(&mut self, at: usize) -> &mut T {
        check_in_line(Scope::OwnLine, at, &self.part);
        // SAFETY: it is in the line.
        unsafe { self.element_mut(at) }
    }
}

/// The part of a line that has these indices, and where it begins: anywhere if there are none. Not made the box without elements then,
/// so that a compiler sees in a loop over the same indices that all of them are there.
#[inline]
#[track_caller]
fn narrowed<T>(
    (start, stride, scope): (*const T, usize, Scope),
    part: &Bounds<1>,
    indices: Range<usize>,
) -> (Bounds<1>, *const T) {
    let ([first], [end]) = (part.min(), part.max());
    if indices.start < indices.end && !(first <= indices.start && indices.end <= end) {
        no_range((scope, RowOf::Nothing), (indices.start, indices.end), false, part);
    }
    let narrow = Bounds::from_corners([indices.start], [indices.end.max(indices.start)]);
    (narrow, start.wrapping_add(indices.start.wrapping_sub(first).wrapping_mul(stride)))
}
