//! Views as views of `ndarray`, on hosts: the same elements under another type. Indices count from
//! the first element that is there, not from the buffer's.
#![allow(unsafe_code)]

use ndarray::{ArrayView, ArrayViewMut, Dim, Dimension, ShapeBuilder, StrideShape};

use crate::part::PartView;
use crate::part_mut::PartViewMut;
use crate::whole::{WholeView, WholeViewMut};

impl<'a, T, const D: usize> WholeView<'a, T, D>
where
    Dim<[usize; D]>: Dimension,
{
    /// All elements as a view of `ndarray` with the buffer's shape and indices. Feature `ndarray`.
    ///
    /// ```
    /// use celerity_kernel::WholeView;
    /// let view = WholeView::new(&[1, 2, 3, 4, 5, 6], [2, 3]).as_array();
    /// assert_eq!(view.column(1).sum(), 2 + 5);
    /// ```
    #[must_use]
    pub fn as_array(&self) -> ArrayView<'a, T, Dim<[usize; D]>> {
        let shape = shape(self.range());
        ArrayView::from_shape(shape, self.as_slice()).expect("as many elements as the shape says")
    }
}

impl<T, const D: usize> WholeViewMut<'_, T, D>
where
    Dim<[usize; D]>: Dimension,
{
    /// All elements as a view of `ndarray` with the buffer's shape and indices. Feature `ndarray`.
    #[must_use]
    pub fn as_array_mut(&mut self) -> ArrayViewMut<'_, T, Dim<[usize; D]>> {
        let shape = shape(self.range());
        let elements = self.as_mut_slice();
        ArrayViewMut::from_shape(shape, elements).expect("as many elements as the shape says")
    }
}

impl<'a, T, const D: usize> PartView<'a, T, D>
where
    Dim<[usize; D]>: Dimension,
{
    /// The declared elements as a view of `ndarray`. Its index `[0, …]` is the first of them, at
    /// [`bounds`](Self::bounds)`().min()` in the buffer: another one on another split. Feature
    /// `ndarray`.
    ///
    /// ```
    /// use celerity_kernel::{Bounds, Layout, PartView};
    ///
    /// // Rows 2 and 3 of a buffer, of which columns 1 and 2 were declared.
    /// let here = [10, 11, 12, 13, 20, 21, 22, 23];
    /// let layout = Layout::row_major(&Bounds::new([2, 0], [4, 4]));
    /// let part = Bounds::new([2, 1], [4, 3]);
    /// // SAFETY: the layout is that of `here`, which the view borrows.
    /// let view = unsafe { PartView::new(here.as_ptr(), layout, part) };
    /// assert_eq!(view.as_array(), ndarray::array![[11, 12], [21, 22]]);
    /// assert_eq!(view.as_array()[[1, 0]], view[[3, 1]]);
    /// ```
    #[must_use]
    pub fn as_array(&self) -> ArrayView<'a, T, Dim<[usize; D]>> {
        if self.is_empty() {
            return nothing(self.bounds().range());
        }
        let (start, strides) = self.as_strided();
        let shape = strided(self.bounds().range(), strides);
        // SAFETY: the declared elements lie there with these strides, valid to read and not written
        // during `'a`, by the contract of `PartView::new`; there are some, in one allocation.
        unsafe { ArrayView::from_shape_ptr(shape, start) }
    }
}

impl<T, const D: usize> PartViewMut<'_, T, D>
where
    Dim<[usize; D]>: Dimension,
{
    /// The box as a view of `ndarray`. Its index `[0, …]` is the first element, at
    /// [`bounds`](Self::bounds)`().min()` in the buffer: another one on another split. Feature
    /// `ndarray`.
    ///
    /// ```
    /// use celerity_kernel::{Bounds, Layout, PartViewMut};
    ///
    /// let mut here = [0; 6];
    /// let part = Bounds::new([5, 1], [7, 3]);
    /// let layout = Layout::row_major(&Bounds::new([5, 0], [7, 3]));
    /// // SAFETY: the layout is that of `here`, which nobody else touches.
    /// let mut view = unsafe { PartViewMut::new(here.as_mut_ptr(), layout, part) };
    /// view.as_array_mut().row_mut(1).fill(7);
    /// assert_eq!(here, [0, 0, 0, 0, 7, 7]);
    /// ```
    #[must_use]
    pub fn as_array_mut(&mut self) -> ArrayViewMut<'_, T, Dim<[usize; D]>> {
        if self.is_empty() {
            let shape = shape(self.bounds().range());
            return ArrayViewMut::from_shape(shape, &mut []).expect("there are none");
        }
        let (start, strides) = self.as_strided();
        let shape = strided(self.bounds().range(), strides);
        // SAFETY: the box's elements lie there with these strides, valid to read and write, by the
        // contract of `PartViewMut::new`, and nobody else touches them while this view is borrowed.
        unsafe { ArrayViewMut::from_shape_ptr(shape, start) }
    }
}

fn nothing<'a, T, const D: usize>(range: [usize; D]) -> ArrayView<'a, T, Dim<[usize; D]>>
where
    Dim<[usize; D]>: Dimension,
{
    ArrayView::from_shape(shape(range), &[]).expect("there are none")
}

fn strided<const D: usize>(range: [usize; D], strides: [usize; D]) -> StrideShape<Dim<[usize; D]>>
where
    Dim<[usize; D]>: Dimension,
{
    shape(range).strides(shape(strides))
}

/// So many numbers as `ndarray` has them.
fn shape<const D: usize>(range: [usize; D]) -> Dim<[usize; D]>
where
    Dim<[usize; D]>: Dimension,
{
    let mut shape = Dim::<[usize; D]>::zeros(D);
    shape.slice_mut().copy_from_slice(&range);
    shape
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::bounds::{Bounds, Layout};

    fn agrees<const D: usize>(extent: Bounds<D>, part: Bounds<D>)
    where
        Dim<[usize; D]>: Dimension,
    {
        let mut here: Vec<usize> = (0..extent.volume()).collect();
        let layout = Layout::row_major(&extent);
        // SAFETY: the layout is that of `here`.
        let view = unsafe { PartView::new(here.as_ptr(), layout, part) };
        let expected: Vec<usize> =
            view.rows().flat_map(|row| row.as_relative_slice().to_vec()).collect();
        let array = view.as_array();
        assert_eq!(array.shape(), part.range(), "{part:?} of {extent:?}");
        assert_eq!(array.iter().copied().collect::<Vec<_>>(), expected, "{part:?} of {extent:?}");
        // SAFETY: the layout is that of `here`, which nobody else touches.
        let mut view = unsafe { PartViewMut::new(here.as_mut_ptr(), layout, part) };
        view.as_array_mut().fill(usize::MAX);
        let touched = (0..).zip(&here).filter(|(_, element)| **element == usize::MAX);
        assert_eq!(touched.map(|(index, _)| index).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn parts_have_their_shape_in_every_dimensionality() {
        agrees::<0>(Bounds::EMPTY, Bounds::EMPTY);
        agrees(Bounds::new([10], [15]), Bounds::new([11], [14]));
        agrees(Bounds::new([10, 3], [12, 8]), Bounds::new([11, 4], [12, 7]));
        agrees(Bounds::new([10, 3], [12, 8]), Bounds::new([10, 4], [12, 5]));
        agrees(Bounds::new([1, 2, 3], [4, 6, 8]), Bounds::new([2, 2, 4], [4, 5, 8]));
        agrees(Bounds::new([1, 2, 3], [4, 6, 8]), Bounds::new([1, 2, 3], [4, 6, 8]));
        agrees(Bounds::new([1, 2, 3], [4, 6, 8]), Bounds::EMPTY);
        agrees(Bounds::new([1], [4]), Bounds::EMPTY);
    }

    #[test]
    fn whole_buffers_have_their_shape() {
        let mut elements: Vec<usize> = (0..24).collect();
        let view = WholeView::new(&elements, [2, 3, 4]);
        assert_eq!(view.as_array()[[1, 2, 3]], view[[1, 2, 3]]);
        assert_eq!(WholeView::new(&elements[..0], [3, 0]).as_array().shape(), [3, 0]);
        assert_eq!(WholeView::new(&elements[5..6], []).as_array()[[]], 5);
        WholeViewMut::new(&mut elements, [4, 6]).as_array_mut().column_mut(5).fill(0);
        let columns: Vec<usize> = elements.iter().copied().skip(5).step_by(6).collect();
        assert_eq!(columns, [0; 4]);
    }
}
