//! Read access to a declared part of a buffer, by index into the buffer. Knows which box was
//! declared, not why.
#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::ops::{Index, Range};

use crate::bounds::{Bounds, Layout, OuterIndex, distance, is_contiguous, next_row};
use crate::index::ViewIndex;
use crate::line::{Line, Strided};
use crate::outside::{RowOf, Scope, no_vector};
use crate::vector;

/// Read access to the part of a buffer that a chunk declared, by index into the buffer. Anything
/// else in the buffer is out of bounds.
///
/// In one dimension it is a slice that keeps the buffer's indices: `view[i]` and `view[a..b]` are
/// the same elements on every split of the task, and cost what they cost of a slice. In more, take
/// [`row`](Self::row)s, which are such slices, out of the loop along them.
///
/// ```
/// use celerity_kernel::{Item, PartView, kernel};
/// # use celerity_kernel::Module;
///
/// /// A row of a sparse matrix times a vector. `ends` holds where rows end in `values`.
/// #[kernel]
/// fn multiply_row(
///     item: Item<1>,
///     (out, ends, columns, values, x): (
///         &mut f64,
///         PartView<'_, usize, 1>,
///         PartView<'_, u32, 1>,
///         PartView<'_, f64, 1>,
///         PartView<'_, f64, 1>,
///     ),
/// ) {
///     let mut sum = 0.0;
///     for at in ends[item[0]]..ends[item[0] + 1] {
///         sum += values[at] * x[columns[at] as usize];
///     }
///     *out = sum;
/// }
/// # static MODULE: Module = Module::without_code("doc", "");
/// # fn main() {}
/// ```
#[derive(Debug)]
pub struct PartView<'a, T, const D: usize> {
    /// The first element of the part.
    start: *const T,
    strides: [usize; D],
    part: Bounds<D>,
    row: RowOf,
    elements: PhantomData<&'a [T]>,
}

impl<T, const D: usize> Clone for PartView<'_, T, D> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const D: usize> Copy for PartView<'_, T, D> {}

// SAFETY: the view is a bundle of `&[T]`, spelt as a pointer and limits.
unsafe impl<T: Sync, const D: usize> Send for PartView<'_, T, D> {}
// SAFETY: as above.
unsafe impl<T: Sync, const D: usize> Sync for PartView<'_, T, D> {}

impl<'a, T, const D: usize> PartView<'a, T, D> {
    /// The view of the elements in `part`, in memory that lies at `base` as
    /// `layout` says.
    ///
    /// # Safety
    /// Every element of `part` is in the layout, valid to read and not
    /// written during `'a`. `base` is aligned and not null, even if there are none.
    #[must_use]
    #[inline]
    pub unsafe fn new(base: *const T, layout: Layout<D>, part: Bounds<D>) -> Self {
        // SAFETY: the part's first element, if there is one, is in the layout; the rest is passed on.
        unsafe {
            let start = base.add(layout.beginning(&part));
            Self::from_parts(start, layout.strides(), (part, RowOf::Nothing))
        }
    }

    /// The view of a part, or of a row's part, of which the first element lies at `start`.
    ///
    /// # Safety
    /// As [`new`](Self::new), for elements that have these strides.
    #[inline]
    pub(crate) const unsafe fn from_parts(
        start: *const T,
        strides: [usize; D],
        (part, row): (Bounds<D>, RowOf),
    ) -> Self {
        Self { start, strides, part, row, elements: PhantomData }
    }

    /// The box of elements that the access declares of the buffer: all of a chunk's, where a kernel reads it, and so another on
    /// another split.
    #[must_use]
    #[inline]
    pub const fn bounds(&self) -> Bounds<D> {
        self.part
    }

    /// Where the first declared element lies, and how far apart neighbours are.
    #[cfg(all(feature = "ndarray", not(target_arch = "nvptx64")))]
    pub(crate) const fn as_strided(&self) -> (*const T, [usize; D]) {
        (self.start, self.strides)
    }

    /// The number of elements, in [`bounds`](Self::bounds).
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

    /// The element, or in one dimension the slice, at `index`, or `None` if not all of it was
    /// declared.
    #[must_use]
    #[inline]
    pub fn get<I: ViewIndex<D>>(&self, index: I) -> Option<&'a I::Output<T>> {
        // SAFETY: all of it was declared.
        index.is_in(&self.part).then(|| unsafe { self.at(&index) })
    }

    /// What is at `index`.
    ///
    /// # Safety
    /// All of it was declared.
    #[inline]
    unsafe fn at<I: ViewIndex<D>>(&self, index: &I) -> &'a I::Output<T> {
        let distance = || distance(self.strides, self.part.min(), index.first());
        // SAFETY: `new`'s contract covers the part, and `start` leads to its first element.
        unsafe { index.shared(|| self.start.offset(distance())) }
    }

    /// Of which row it is a part.
    #[inline]
    pub(crate) const fn row_of(&self) -> RowOf {
        self.row
    }

    /// The same view, or one of the same box that begins at `address`, if that is without elements.
    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    pub(crate) fn or_of(self, address: *const T) -> Self {
        match self.part.is_empty() {
            true => Self { start: address, strides: [0; D], ..self },
            false => self,
        }
    }

    /// Where the element at `index` lies, if it was declared; any address otherwise.
    #[inline]
    pub(crate) fn address(&self, index: [usize; D]) -> *const T {
        self.start.wrapping_offset(distance(self.strides, self.part.min(), index))
    }

    /// The declared elements of one row, along the fastest dimension: a view by index along that
    /// dimension. It is empty if nothing of the row was declared.
    #[must_use]
    #[inline]
    pub fn row(&self, outer: impl OuterIndex<D>) -> PartView<'a, T, 1> {
        let part = self.part.row(outer);
        let distance = self.part.distance_of_row(self.strides, outer);
        // SAFETY: `new`'s contract covers the row; its elements lie side by side.
        unsafe {
            let start = self.start.offset(distance);
            PartView::from_parts(start, [1], (part, self.row.through(outer.with_fastest(0))))
        }
    }

    /// All rows of the part, in order.
    #[inline]
    pub fn rows(&self) -> impl Iterator<Item = PartView<'a, T, 1>> + use<'a, T, D> {
        let (view, len) = (*self, self.part.range().last().copied().unwrap_or(1));
        let first = self.part.min().last().copied().unwrap_or(0);
        let starts =
            core::iter::successors((!self.is_empty()).then(|| self.part.min()), move |start| {
                next_row(&view.part, *start)
            });
        starts.map(move |start| {
            let part = Bounds::from_corners([first], [first + len]);
            // SAFETY: as in `row`.
            unsafe {
                PartView::from_parts(view.address(start), [1], (part, view.row.through(start)))
            }
        })
    }

    /// The `len` elements from `start` on along the fastest dimension: a part of a row, whatever the
    /// number of dimensions. Without dimensions `len` is 1.
    ///
    /// # Panics
    /// If not all of them were declared.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn run(&self, start: [usize; D], len: usize) -> &'a [T] {
        let mut last = start;
        if let Some(last) = last.last_mut() {
            *last = last.saturating_add(len.saturating_sub(1));
        }
        let is_here = self.part.contains(start) && self.part.contains(last) && (D > 0 || len < 2);
        if len == 0 {
            // Of an index that is nowhere there is no address: it might be null.
            return &[];
        }
        if !is_here {
            no_vector(Scope::Declared, (len, start), &self.part);
        }
        // SAFETY: all of them are in the part, side by side along the fastest dimension.
        unsafe { core::slice::from_raw_parts(self.address(start), len) }
    }

    /// The `L` elements from `start` on along the fastest dimension, by value. Devices load them by 16
    /// bytes where they begin at a multiple of 16 bytes in memory and their size is a multiple of it (by
    /// 8 bytes likewise), and one by one elsewhere: the result is the same.
    ///
    /// They do begin so if `start` does along its row, counted from where the memory's first row
    /// begins, and if rows are as long as a multiple of `L`. Rows of whole buffers on one device are.
    ///
    /// ```
    /// use celerity_kernel::{Item, PartView, kernel};
    /// # use celerity_kernel::Module;
    ///
    /// /// Launched over an item for each row of a matrix, whose rows are as long as a multiple of 4.
    /// #[kernel]
    /// fn sum_of_row(item: Item<1>, (sum, matrix): (&mut f32, PartView<'_, f32, 2>)) {
    ///     let row = matrix.row([item[0]]);
    ///     let mut sums = [0.0; 4];
    ///     for x in row.indices().step_by(4) {
    ///         let values = row.vector::<4>([x]);
    ///         for lane in 0..4 {
    ///             sums[lane] += values[lane];
    ///         }
    ///     }
    ///     *sum = sums[0] + sums[1] + sums[2] + sums[3];
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
    pub fn vector<const L: usize>(&self, start: [usize; D]) -> [T; L]
    where
        T: Copy,
    {
        vector::check::<L, D>(Scope::Declared, start, &self.part);
        // SAFETY: all of them are in the part, side by side along the fastest dimension.
        unsafe { vector::load(self.address(start)) }
    }

    /// The declared elements along dimension `dim` through `index`, by index along that dimension:
    /// in two dimensions `along(0, [0, x])` is column `x`. What `index` has in that dimension does
    /// not matter. It is empty if nothing of it was declared.
    ///
    /// # Panics
    /// If there is no such dimension.
    #[must_use]
    #[inline]
    pub fn along(&self, dim: usize, index: [usize; D]) -> Line<'a, T> {
        // SAFETY: `new`'s contract covers them.
        unsafe { Line::new(self.strided(dim, index)) }
    }

    /// Where the elements along `dim` through `index` lie.
    #[inline]
    pub(crate) fn strided(&self, dim: usize, mut index: [usize; D]) -> Strided<T> {
        let (first, end) = (self.part.min()[dim], self.part.max()[dim]);
        index[dim] = first;
        let run = match self.part.contains(index) {
            true => Bounds::from_corners([first], [end]),
            false => Bounds::EMPTY,
        };
        let stride = if dim + 1 == D { 1 } else { self.strides[dim] };
        // SAFETY: the run is of the part, all of which is in the layout.
        unsafe { Strided::new(self.address(index), stride, run) }
    }

    /// All elements, row-major, if they lie side by side. Positions in the slice count from the
    /// first declared element, so they are others on another split.
    ///
    /// What lies side by side depends on the allocation, except that it is always so in one
    /// dimension. [`row`](Self::row) works everywhere.
    #[must_use]
    #[inline]
    pub fn try_as_relative_slice(&self) -> Option<&'a [T]> {
        let side_by_side = is_contiguous(self.strides, &self.part);
        // SAFETY: `new`'s contract covers the part, and its elements lie side by side.
        side_by_side.then(|| unsafe { core::slice::from_raw_parts(self.start, self.len()) })
    }
}

impl<'a, T> PartView<'a, T, 1> {
    /// The indices of all elements.
    #[must_use]
    #[inline]
    pub const fn indices(&self) -> Range<usize> {
        let ([first], [end]) = (self.part.min(), self.part.max());
        first..end
    }

    /// All elements, in order: those of the whole chunk, where a kernel reads it. What an item has of them, `view[a..b]` is.
    #[inline]
    pub fn iter(&self) -> core::slice::Iter<'a, T> {
        self.as_relative_slice().iter()
    }

    /// All elements. Positions in the slice count from the first of them, which is
    /// [`indices`](Self::indices)`.start` in the buffer, so they are others on another split, as is the length: to
    /// find an element, or those of an item, index the view.
    #[must_use]
    #[inline]
    pub fn as_relative_slice(&self) -> &'a [T] {
        // SAFETY: `new`'s contract covers the part; in one dimension elements lie side by side.
        unsafe { core::slice::from_raw_parts(self.start, self.len()) }
    }
}

impl<'a, T> IntoIterator for PartView<'a, T, 1> {
    type Item = &'a T;
    type IntoIter = core::slice::Iter<'a, T>;

    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T, I: ViewIndex<D>, const D: usize> Index<I> for PartView<'_, T, D> {
    type Output = I::Output<T>;

    /// # Panics
    /// If not all that is at the index was declared.
    #[inline]
    #[track_caller]
    fn index(&self, index: I) -> &I::Output<T> {
        // Not by way of `get`: an address that may be none is chosen, and looked at, each time.
        index.check((Scope::Declared, self.row), &self.part);
        // SAFETY: all of it was declared.
        unsafe { self.at(&index) }
    }
}

#[cfg(test)]
mod tests;
