//! Exclusive access to one declared box of a buffer, by index into the buffer.
#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::ops::{Index, IndexMut, Range};

use crate::bounds::{Bounds, Layout, OuterIndex, distance, is_contiguous, next_row};
use crate::fail::{stop, three};
use crate::index::ViewIndex;
use crate::line::{Line, LineMut};
use crate::outside::{RowOf, Scope};
use crate::part::PartView;
use crate::vector;

/// Exclusive access to the box of a buffer that is an item's own, by index into
/// the buffer. Anything else in the buffer is out of bounds.
///
/// In one dimension it is a slice that keeps the buffer's indices, as [`PartView`] is; in more,
/// its [`row_mut`](Self::row_mut)s are.
///
/// ```
/// use celerity_kernel::{Item, PartView, PartViewMut, kernel};
/// # use celerity_kernel::Module;
///
/// /// Divides the elements of a row by the largest. Launched over an item for each row, with
/// /// `slice(1)` for both.
/// #[kernel]
/// fn scale(
///     item: Item<2>,
///     (mut out, u): (PartViewMut<'_, f32, 2>, PartView<'_, f32, 2>),
/// ) {
///     let (mut out, u) = (out.row_mut([item[0]]), u.row([item[0]]));
///     let mut largest = 0.0;
///     for x in u.indices() {
///         largest = u[x].max(largest);
///     }
///     for x in u.indices() {
///         out[x] = u[x] / largest;
///     }
/// }
/// # static MODULE: Module = Module::without_code("doc", "");
/// # fn main() {}
/// ```
#[derive(Debug)]
pub struct PartViewMut<'a, T, const D: usize> {
    /// The box's first element.
    start: *mut T,
    strides: [usize; D],
    part: Bounds<D>,
    row: RowOf,
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
    /// nobody else reads or writes it during the view's lifetime. `base` is aligned and not null,
    /// even if there are none.
    #[must_use]
    #[inline]
    pub unsafe fn new(base: *mut T, layout: Layout<D>, part: Bounds<D>) -> Self {
        // SAFETY: the box's first element, if there is one, is in the layout.
        let start = unsafe { base.add(layout.beginning(&part)) };
        let row = RowOf::Nothing;
        Self { start, strides: layout.strides(), part, row, elements: PhantomData }
    }

    /// The box that may be written.
    #[must_use]
    #[inline]
    pub const fn bounds(&self) -> Bounds<D> {
        self.part
    }

    /// Where the box's first element lies, and how far apart neighbours are.
    #[cfg(all(feature = "ndarray", not(target_arch = "nvptx64")))]
    pub(crate) const fn as_strided(&mut self) -> (*mut T, [usize; D]) {
        (self.start, self.strides)
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

    /// The same elements, to read.
    #[must_use]
    #[inline]
    pub const fn as_view(&self) -> PartView<'_, T, D> {
        // SAFETY: the box's elements, which stay as they are while this view is borrowed.
        unsafe { PartView::from_parts(self.start, self.strides, (self.part, self.row)) }
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
            not_inside(part, self.part);
        }
        let distance = if part.is_empty() { 0 } else { self.distance(part.min()) };
        // SAFETY: the part's first element, if there is one, is in the box.
        let start = unsafe { self.start.offset(distance) };
        PartViewMut { start, strides: self.strides, part, row: self.row, elements: PhantomData }
    }

    /// How far the element at `index` lies behind the box's first.
    #[inline]
    fn distance(&self, index: [usize; D]) -> isize {
        distance(self.strides, self.part.min(), index)
    }

    /// The element, or in one dimension the slice, at `index`, or `None` if not all of it is in
    /// the box.
    #[must_use]
    #[inline]
    pub fn get<I: ViewIndex<D>>(&self, index: I) -> Option<&I::Output<T>> {
        // SAFETY: it is in the box.
        index.is_in(&self.part).then(|| unsafe { self.at(&index) })
    }

    /// The element, or in one dimension the slice, at `index`, or `None` if not all of it is in
    /// the box.
    #[must_use]
    #[inline]
    pub fn get_mut<I: ViewIndex<D>>(&mut self, index: I) -> Option<&mut I::Output<T>> {
        // SAFETY: it is in the box.
        index.is_in(&self.part).then(|| unsafe { self.at_mut(&index) })
    }

    /// What is at `index`.
    ///
    /// # Safety
    /// It is in the box.
    #[inline]
    unsafe fn at<I: ViewIndex<D>>(&self, index: &I) -> &I::Output<T> {
        let distance = || self.distance(index.first());
        // SAFETY: `new`'s contract covers the elements of the box, and `start` leads to its first.
        unsafe { index.shared(|| self.start.offset(distance())) }
    }

    /// What is at `index`.
    ///
    /// # Safety
    /// It is in the box.
    #[inline]
    unsafe fn at_mut<I: ViewIndex<D>>(&mut self, index: &I) -> &mut I::Output<T> {
        let distance = || self.distance(index.first());
        // SAFETY: as in `at`, and the view is borrowed exclusively.
        unsafe { index.exclusive(|| self.start.offset(distance())) }
    }

    /// Overwrites one element.
    ///
    /// # Panics
    /// If `index` is outside of the box.
    #[inline]
    #[track_caller]
    pub fn set(&mut self, index: impl ViewIndex<D, Output<T> = T>, value: T) {
        self[index] = value;
    }

    /// The `L` elements from `start` on along the fastest dimension, as
    /// [`PartView::vector`] gets them.
    ///
    /// # Panics
    /// If not all of them are in the box.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn vector<const L: usize>(&self, start: [usize; D]) -> [T; L]
    where
        T: Copy,
    {
        vector::check::<L, D>(Scope::Own, start, &self.part);
        // SAFETY: all of them are in the box, side by side along the fastest dimension.
        unsafe { vector::load(self.start.offset(self.distance(start))) }
    }

    /// Overwrites the `L` elements from `start` on along the fastest dimension, by as wide steps as
    /// [`PartView::vector`] gets them.
    ///
    /// # Panics
    /// If not all of them are in the box.
    #[inline]
    #[track_caller]
    pub fn set_vector<const L: usize>(&mut self, start: [usize; D], values: [T; L])
    where
        T: Copy,
    {
        vector::check::<L, D>(Scope::Own, start, &self.part);
        // SAFETY: as in `vector`, and the view is borrowed exclusively.
        unsafe { vector::store(self.start.offset(self.distance(start)), values) };
    }

    /// Sets all elements of the part to `value`.
    #[inline]
    pub fn fill(&mut self, value: T)
    where
        T: Clone,
    {
        self.for_each_row(|row| row.fill(value.clone()));
    }

    fn for_each_row(&mut self, mut call: impl FnMut(&mut [T])) {
        let part = self.part;
        let len = part.range().last().copied().unwrap_or(1);
        let mut start = (!part.is_empty()).then(|| part.min());
        while let Some(row) = start {
            // SAFETY: a row of the box, and the view is borrowed exclusively.
            call(unsafe {
                let first = self.start.offset(self.distance(row));
                core::slice::from_raw_parts_mut(first, len)
            });
            start = next_row(&part, row);
        }
    }

    /// The elements of one row of the box, along the fastest dimension, to read: a view by index
    /// along that dimension. It is empty if the box has no such row.
    #[must_use]
    #[inline]
    pub fn row(&self, outer: impl OuterIndex<D>) -> PartView<'_, T, 1> {
        self.as_view().row(outer)
    }

    /// The elements of one row of the box, along the fastest dimension: a view by index along
    /// that dimension. It is empty if the box has no such row.
    #[must_use]
    #[inline]
    pub fn row_mut(&mut self, outer: impl OuterIndex<D>) -> PartViewMut<'_, T, 1> {
        let (part, row) = (self.part.row(outer), self.row.through(outer.with_fastest(0)));
        let distance = self.part.distance_of_row(self.strides, outer);
        // SAFETY: the row's first element, if there is one, is in the box.
        let start = unsafe { self.start.offset(distance) };
        PartViewMut { start, strides: [1], part, row, elements: PhantomData }
    }

    /// The elements of the box along dimension `dim` through `index`, to read, by index along that dimension; see
    /// [`along_mut`](Self::along_mut).
    ///
    /// # Panics
    /// If there is no such dimension.
    #[must_use]
    #[inline]
    pub fn along(&self, dim: usize, index: [usize; D]) -> Line<'_, T> {
        self.as_view().along(dim, index)
    }

    /// The elements of the box along dimension `dim` through `index`, by index along that dimension: in two dimensions
    /// `along_mut(0, [0, x])` is column `x`. What `index` has in that dimension does not matter. It is empty if nothing of it is
    /// in the box.
    ///
    /// [`Line::narrowed`] has an example.
    ///
    /// # Panics
    /// If there is no such dimension.
    #[must_use]
    #[inline]
    pub fn along_mut(&mut self, dim: usize, index: [usize; D]) -> LineMut<'_, T> {
        // SAFETY: `new`'s contract covers them, a layout has each in another place, and the view is borrowed exclusively.
        unsafe { LineMut::new(self.as_view().strided(dim, index)) }
    }

    /// All elements of the box, row-major, if they lie side by side, as those
    /// of a one-dimensional buffer always do. Positions in the slice count from the box's first
    /// element.
    #[must_use]
    #[inline]
    pub fn try_as_relative_mut_slice(&mut self) -> Option<&mut [T]> {
        let part = self.part;
        is_contiguous(self.strides, &part).then(|| {
            // SAFETY: all of the box, side by side, and the view is borrowed exclusively.
            unsafe { core::slice::from_raw_parts_mut(self.start, part.volume()) }
        })
    }
}

impl<T> PartViewMut<'_, T, 1> {
    /// The indices of the elements.
    #[must_use]
    #[inline]
    pub const fn indices(&self) -> Range<usize> {
        let ([first], [end]) = (self.part.min(), self.part.max());
        first..end
    }

    /// All elements. Positions in the slice count from the first of them, which is
    /// [`indices`](Self::indices)`.start` in the buffer.
    #[must_use]
    #[inline]
    pub fn as_relative_slice(&self) -> &[T] {
        // SAFETY: the elements of a box of one dimension lie side by side.
        unsafe { core::slice::from_raw_parts(self.start, self.len()) }
    }

    /// All elements, to write. Positions in the slice count from the first of them, which is
    /// [`indices`](Self::indices)`.start` in the buffer.
    #[must_use]
    #[inline]
    pub fn as_relative_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as in `as_relative_slice`, and the view is borrowed exclusively.
        unsafe { core::slice::from_raw_parts_mut(self.start, self.len()) }
    }

    /// All elements, in order.
    #[inline]
    pub fn iter(&self) -> core::slice::Iter<'_, T> {
        self.as_relative_slice().iter()
    }

    /// All elements, in order, to write.
    #[inline]
    pub fn iter_mut(&mut self) -> core::slice::IterMut<'_, T> {
        self.as_relative_mut_slice().iter_mut()
    }
}

impl<T, I: ViewIndex<D>, const D: usize> Index<I> for PartViewMut<'_, T, D> {
    type Output = I::Output<T>;

    /// # Panics
    /// If not all that is at the index is in the box.
    #[inline]
    #[track_caller]
    fn index(&self, index: I) -> &I::Output<T> {
        index.check((Scope::Own, self.row), &self.part);
        // SAFETY: it is in the box.
        unsafe { self.at(&index) }
    }
}

impl<T, I: ViewIndex<D>, const D: usize> IndexMut<I> for PartViewMut<'_, T, D> {
    #[inline]
    #[track_caller]
    fn index_mut(&mut self, index: I) -> &mut I::Output<T> {
        index.check((Scope::Own, self.row), &self.part);
        // SAFETY: it is in the box.
        unsafe { self.at_mut(&index) }
    }
}

#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[cfg_attr(not(target_arch = "nvptx64"), cold, inline(never))]
#[track_caller]
fn not_inside<const D: usize>(part: Bounds<D>, whole: Bounds<D>) -> ! {
    let text = "the part {part} is not inside of the box that it is taken from, {part}; if a range \
                mapper named both, r(A ∪ B) = r(A) ∪ r(B) must hold";
    let ([[z0, y0, x0], [z1, y1, x1]], [[z2, y2, x2], [z3, y3, x3]]) =
        ([part.min(), part.max()].map(three), [whole.min(), whole.max()].map(three));
    stop(text, D, [z0, y0, x0, z1, y1, x1, z2, y2, x2, z3, y3, x3])
}

#[cfg(test)]
mod tests;
