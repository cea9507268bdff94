//! Elements along one dimension of a buffer, with gaps between them in memory: a column.
#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::ops::{Index, IndexMut, Range};

use crate::bounds::Bounds;
use crate::outside::{RowOf, Scope, check_in_line, no_range};

/// Where elements along one dimension lie, by index along it: what both kinds of lines have.
#[derive(Debug)]
pub(crate) struct Strided<T> {
    /// The first element.
    start: *const T,
    stride: usize,
    part: Bounds<1>,
}

impl<T> Clone for Strided<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Strided<T> {}

impl<T> Strided<T> {
    /// The elements with the indices in `part`, the first of which is at `start`.
    ///
    /// # Safety
    /// All of them are in one allocation, with the stride in between.
    #[inline]
    pub(crate) unsafe fn new(start: *const T, stride: usize, part: Bounds<1>) -> Self {
        Self { start, stride, part: only_itself(part) }
    }

    #[inline]
    const fn indices(&self) -> Range<usize> {
        let ([first], [end]) = (self.part.min(), self.part.max());
        first..end
    }

    #[inline]
    fn len(&self) -> usize {
        self.part.volume()
    }

    /// Those with these indices. If there are none, not made the box without elements, so that a compiler sees in a loop over the same
    /// indices that all of them are there.
    ///
    /// # Panics
    /// If not all of them are there.
    #[inline]
    #[track_caller]
    fn narrowed(&self, scope: Scope, indices: Range<usize>) -> Self {
        let Range { start: first, end } = self.indices();
        if indices.start < indices.end && !(first <= indices.start && indices.end <= end) {
            no_range((scope, RowOf::Nothing), (indices.start, indices.end), false, &self.part);
        }
        let part = Bounds::from_corners([indices.start], [indices.end.max(indices.start)]);
        let skipped = indices.start.wrapping_sub(first).wrapping_mul(self.stride);
        Self { start: self.start.wrapping_add(skipped), part, ..*self }
    }

    /// The one with the index `at`, if there is one.
    #[inline]
    fn get(&self, at: usize) -> Option<*const T> {
        // SAFETY: there is.
        self.part.contains([at]).then(|| unsafe { self.address(at) })
    }

    /// # Panics
    /// If there is none with the index `at`.
    #[inline]
    #[track_caller]
    fn at(&self, scope: Scope, at: usize) -> *const T {
        check_in_line(scope, at, &self.part);
        // SAFETY: there is one.
        unsafe { self.address(at) }
    }

    /// All of them, by increasing index.
    #[inline]
    fn iter(&self) -> impl DoubleEndedIterator<Item = *const T> + ExactSizeIterator + use<T> {
        let all = *self;
        // SAFETY: there is one for each index.
        self.indices().map(move |at| unsafe { all.address(at) })
    }

    /// # Safety
    /// There is an element with the index `at`.
    #[inline]
    unsafe fn address(&self, at: usize) -> *const T {
        let [first] = self.part.min();
        // SAFETY: it is in the allocation, by `new`'s contract.
        unsafe { self.start.add((at - first) * self.stride) }
    }
}

/// The same indices. Where a loop goes along them, LLVM finds out that they cannot be none, and from where they come then; it
/// says so of one of their uses and not of the other, and compares in each turn. On GPUs it is told nothing of where they come from:
/// columns of tridiagonal systems had 0.63 of the rate by hand on an H200 when it was.
#[inline]
fn only_itself(part: Bounds<1>) -> Bounds<1> {
    #[cfg(target_arch = "nvptx64")]
    let part = Bounds::from_corners(
        part.min().map(crate::machine::only_itself),
        part.max().map(crate::machine::only_itself),
    );
    part
}

/// The declared elements along one dimension, by index along that dimension; see
/// [`PartView::along`](crate::PartView::along).
#[derive(Debug)]
pub struct Line<'a, T> {
    all: Strided<T>,
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
    /// The line of these elements.
    ///
    /// # Safety
    /// All of them are valid to read and not written during `'a`.
    #[inline]
    pub(crate) unsafe fn new(all: Strided<T>) -> Self {
        Self { all, elements: PhantomData }
    }

    /// The indices of all elements, along the line's dimension.
    #[must_use]
    #[inline]
    pub const fn indices(&self) -> Range<usize> {
        self.all.indices()
    }

    /// The number of elements.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.all.len()
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
    /// # use celerity_kernel::Module;
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
    /// # static MODULE: Module = Module::without_code("doc", "");
    /// # fn main() {}
    /// ```
    ///
    /// # Panics
    /// If not all of them were declared.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn narrowed(&self, indices: Range<usize>) -> Self {
        Self { all: self.all.narrowed(Scope::Line, indices), ..*self }
    }

    /// The element with the index `at`, or `None` if it was not declared.
    #[must_use]
    #[inline]
    pub fn get(&self, at: usize) -> Option<&'a T> {
        // SAFETY: `new`'s contract covers it.
        self.all.get(at).map(|address| unsafe { &*address })
    }

    /// All elements, by increasing index.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &'a T> + ExactSizeIterator + use<'a, T> {
        // SAFETY: `new`'s contract covers each.
        self.all.iter().map(|address| unsafe { &*address })
    }
}

impl<T> Index<usize> for Line<'_, T> {
    type Output = T;

    /// # Panics
    /// If the element was not declared.
    #[inline]
    #[track_caller]
    fn index(&self, at: usize) -> &T {
        // SAFETY: `new`'s contract covers it.
        unsafe { &*self.all.at(Scope::Line, at) }
    }
}

/// The elements along one dimension that are an item's own, by index along that dimension; see
/// [`PartViewMut::along_mut`](crate::PartViewMut::along_mut).
#[derive(Debug)]
pub struct LineMut<'a, T> {
    all: Strided<T>,
    elements: PhantomData<&'a mut [T]>,
}

// SAFETY: the line is a bundle of `&mut T`, spelt as a pointer and limits.
unsafe impl<T: Send> Send for LineMut<'_, T> {}
// SAFETY: as above; shared, it only reads.
unsafe impl<T: Sync> Sync for LineMut<'_, T> {}

impl<T> LineMut<'_, T> {
    /// The line of these elements.
    ///
    /// # Safety
    /// All of them are other elements, valid to read and write, and nobody else reads or writes them during the line's
    /// lifetime.
    #[inline]
    pub(crate) unsafe fn new(all: Strided<T>) -> Self {
        Self { all, elements: PhantomData }
    }

    /// The same elements, to read.
    #[must_use]
    #[inline]
    pub const fn as_line(&self) -> Line<'_, T> {
        // The line's elements, which stay as they are while it is borrowed.
        Line { all: self.all, elements: PhantomData }
    }

    /// The indices of all elements, along the line's dimension.
    #[must_use]
    #[inline]
    pub const fn indices(&self) -> Range<usize> {
        self.all.indices()
    }

    /// The number of elements.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.all.len()
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
        Self { all: self.all.narrowed(Scope::OwnLine, indices), ..self }
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
        // SAFETY: `new`'s contract covers it, and the line is borrowed exclusively.
        self.all.get(at).map(|address| unsafe { &mut *address.cast_mut() })
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
        // SAFETY: `new`'s contract covers each, they are different ones, and the line is borrowed exclusively.
        self.all.iter().map(|address| unsafe { &mut *address.cast_mut() })
    }
}

impl<T> Index<usize> for LineMut<'_, T> {
    type Output = T;

    /// # Panics
    /// If the line has no element with that index.
    #[inline]
    #[track_caller]
    fn index(&self, at: usize) -> &T {
        // SAFETY: `new`'s contract covers it.
        unsafe { &*self.all.at(Scope::OwnLine, at) }
    }
}

impl<T> IndexMut<usize> for LineMut<'_, T> {
    #[inline]
    #[track_caller]
    fn index_mut(&mut self, at: usize) -> &mut T {
        // SAFETY: `new`'s contract covers it, and the line is borrowed exclusively.
        unsafe { &mut *self.all.at(Scope::OwnLine, at).cast_mut() }
    }
}
