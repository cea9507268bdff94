//! Snapshots as views of `ndarray`. Views of kernels and host tasks have theirs beside them, in
//! `celerity_kernel`.

use celerity_kernel::ndarray::{ArrayView, Dim, Dimension};

use crate::fence::Snapshot;

impl<T, const D: usize> Snapshot<T, D>
where
    Dim<[usize; D]>: Dimension,
{
    /// All elements as a view of `ndarray`. Its index `[0, …]` is the first of them, at the offset
    /// of [`part`](Self::part) in the buffer. Feature `ndarray`.
    ///
    /// ```
    /// use celerity::ndarray::{Axis, array};
    /// use celerity::prelude::*;
    ///
    /// celerity::run(|queue| {
    ///     let a = queue.buffer_from([3, 4], (0..12).collect::<Vec<u32>>())?;
    ///     let whole = queue.fence(&a)?.wait()?;
    ///     assert_eq!(whole.as_array().sum_axis(Axis(1)), array![6, 22, 38]);
    ///
    ///     let below = queue.fence_part(&a, Subrange::new([1, 2], [2, 2]))?.wait()?;
    ///     assert_eq!(below.as_array(), array![[6, 7], [10, 11]]);
    ///     assert_eq!(below.as_array()[[1, 0]], below[[2, 2]]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), celerity::Error>(())
    /// ```
    #[must_use]
    pub fn as_array(&self) -> ArrayView<'_, T, Dim<[usize; D]>> {
        self.as_view().as_array()
    }
}
