//! Kernels of `#[kernel]` as tasks: one method for all forms, and what a kernel of each form is
//! launched over.

use celerity_kernel::abi::check_groups;
use celerity_kernel::{Kernel, KernelForm, PerGroup, PerItem, PerRow};
use celerity_tdag::TaskId;

use super::TaskBuilder;
use crate::access::{KernelAccesses, KernelFunction};
use crate::error::{Error, Result};
use crate::launch::{GroupKernel, ItemKernel, RowKernel};
use crate::range::{IntoRange, NdRange, check_dimensions};

impl TaskBuilder<'_> {
    /// Submits a kernel that `#[kernel]` has made of a function, for all kinds of devices. Its first
    /// parameter says what it is called with, and what `space` is:
    ///
    /// | first parameter | called with | `space` |
    /// | --- | --- | --- |
    /// | [`Item`](crate::Item) | each item | the size of the index space: `[256, 256]` |
    /// | [`Row`](crate::Row) | runs of items along the fastest dimension | the same |
    /// | [`NdItem`](crate::NdItem) | each item, as one of a group | [`nd_range`](crate::nd_range): the same, and the size of a group, which divides it |
    ///
    /// Kernels over items and rows are otherwise as those of [`parallel_for`](Self::parallel_for)
    /// and [`parallel_for_rows`](Self::parallel_for_rows). One over rows that reduces gets rows of one
    /// item, so that its results have the bits of a kernel over items. The items of a group run on
    /// one device, share local memory and can wait for each other.
    ///
    /// ```
    /// use celerity::prelude::*;
    /// use celerity_example_kernels::groups::{SUMMANDS, group_sum}; // from a crate of kernels
    /// use celerity_example_kernels::linear::saxpy;
    ///
    /// let (y, sums) = celerity::run(|queue| {
    ///     let x = queue.buffer_from(4, vec![1.0_f32, 2.0, 3.0, 4.0])?;
    ///     let y = queue.buffer_from(4, vec![1.0_f32; 4])?;
    ///     let accesses = (y.read_write(one_to_one()), x.read(one_to_one()));
    ///     queue.task("saxpy").launch(4, accesses, saxpy::<f32>::new(2.0))?;
    ///
    ///     let values = queue.buffer_from(2 * SUMMANDS, vec![1.0; 2 * SUMMANDS])?;
    ///     let sums = queue.buffer::<f64, 1>(2 * SUMMANDS);
    ///     let accesses = (sums.write(one_to_one()), values.read(one_to_one()));
    ///     queue.task("sum").launch(nd_range(2 * SUMMANDS, SUMMANDS), accesses, group_sum)?;
    ///     Ok((queue.fence(&y)?.wait()?.into_vec(), queue.fence(&sums)?.wait()?.into_vec()))
    /// })?;
    /// assert_eq!(y, [3.0, 5.0, 7.0, 9.0]);
    /// assert_eq!(sums, vec![SUMMANDS as f64; 2 * SUMMANDS]);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    ///
    /// A kernel over items in groups is not launched without the size of a group:
    ///
    /// ```compile_fail,E0277
    /// # use celerity::prelude::*;
    /// # use celerity_example_kernels::groups::group_sum;
    /// # celerity::run(|queue| {
    /// let values = queue.buffer_from(512, vec![1.0; 512])?;
    /// let sums = queue.buffer::<f64, 1>(512);
    /// let accesses = (sums.write(one_to_one()), values.read(one_to_one()));
    /// queue.task("sum").launch(512, accesses, group_sum)?;
    /// # Ok(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`parallel_for`](Self::parallel_for); [`Error::Kernel`] if the devices cannot run the
    /// kernel; [`Error::Groups`] if there are no such groups. A kernel whose items do not all come
    /// to the same barriers ends the run on CPUs.
    pub fn launch<A, W, const K: usize>(
        self,
        space: impl LaunchSpace<W::Form, K>,
        accesses: A,
        kernel: W,
    ) -> Result<TaskId>
    where
        A: KernelAccesses<K> + 'static,
        W: Kernel + KernelForm,
        W::Form: LaunchForm<A, W, K>,
    {
        const { check_dimensions(K) };
        W::Form::submit(self, space.into_nd_range(), accesses, kernel)
    }

    fn check_groups<W: Kernel, const K: usize>(
        &self,
        range: [usize; K],
        group: [usize; K],
    ) -> Result<()> {
        let wide = |sizes: [usize; K], missing| {
            let mut wide = [missing; 3];
            wide[..K].copy_from_slice(&sizes);
            wide
        };
        let offset = wide(self.beginning(range)?, 0);
        check_groups(K, offset, wide(range, 1), wide(group, 1)).map_err(|error| Error::Groups {
            task: self.origin.describe(),
            kernel: W::DESCRIPTION.name,
            range: range.to_vec(),
            group: group.to_vec(),
            error,
        })
    }

    /// Lets chunks end where groups do, and where the task asks for it.
    fn keep_groups_whole<const K: usize>(&mut self, group: [usize; K]) {
        if self.granularity.is_empty() {
            self.granularity = group.to_vec();
            return;
        }
        for (size, group) in self.granularity.iter_mut().zip(group) {
            *size = *size / gcd(*size, group) * group;
        }
    }
}

/// How a kernel `W` of one form is launched with the accesses `A`; sealed. Its form is
/// [`KernelForm::Form`].
pub trait LaunchForm<A, W, const K: usize>: sealed::SealedForm {
    #[doc(hidden)]
    fn submit(task: TaskBuilder<'_>, space: NdRange<K>, accesses: A, kernel: W) -> Result<TaskId>;
}

impl<A, W, const K: usize> LaunchForm<A, W, K> for PerItem
where
    A: KernelAccesses<K> + 'static,
    W: for<'a> celerity_kernel::ItemKernel<K, A::ItemViews<'a>>,
{
    fn submit(task: TaskBuilder<'_>, space: NdRange<K>, accesses: A, kernel: W) -> Result<TaskId> {
        task.submit_compiled(space.range(), accesses, kernel, |launch| {
            ItemKernel::new(launch, KernelFunction(kernel))
        })
    }
}

impl<A, W, const K: usize> LaunchForm<A, W, K> for PerRow
where
    A: KernelAccesses<K> + 'static,
    W: for<'a> celerity_kernel::RowKernel<K, A::RowViews<'a>>,
{
    fn submit(task: TaskBuilder<'_>, space: NdRange<K>, accesses: A, kernel: W) -> Result<TaskId> {
        task.submit_compiled(space.range(), accesses, kernel, |launch| {
            RowKernel::<_, _, true, K>::new(launch, KernelFunction(kernel))
        })
    }
}

impl<A, W, const K: usize> LaunchForm<A, W, K> for PerGroup
where
    A: KernelAccesses<K> + 'static,
    W: for<'a> celerity_kernel::GroupKernel<K, A::ItemViews<'a>>,
{
    fn submit(
        mut task: TaskBuilder<'_>,
        space: NdRange<K>,
        accesses: A,
        kernel: W,
    ) -> Result<TaskId> {
        let (range, group) = (space.range(), space.group());
        task.check_groups::<W, K>(range, group)?;
        task.keep_groups_whole(group);
        task.submit_compiled(range, accesses, kernel, |launch| {
            GroupKernel::new(launch, group, kernel)
        })
    }
}

/// What a kernel of form `F` is launched over, in `K` dimensions; sealed: a size for
/// [`PerItem`] and [`PerRow`], an [`NdRange`] for [`PerGroup`].
#[diagnostic::on_unimplemented(
    message = "a kernel of form `{F}` is not launched over `{Self}`",
    label = "not what this kernel is launched over",
    note = "a kernel over an `Item` or a `Row` is launched over the size of its index space, as in \
            `[256, 256]`; one over an `NdItem` over `nd_range([256, 256], [16, 16])`, which also says the \
            size of a group"
)]
pub trait LaunchSpace<F, const K: usize>: sealed::SealedSpace<F, K> {
    #[doc(hidden)]
    fn into_nd_range(self) -> NdRange<K>;
}

impl<R: IntoRange<K>, const K: usize> LaunchSpace<PerItem, K> for R {
    fn into_nd_range(self) -> NdRange<K> {
        NdRange::new(self.into_range(), [1; K])
    }
}

impl<R: IntoRange<K>, const K: usize> LaunchSpace<PerRow, K> for R {
    fn into_nd_range(self) -> NdRange<K> {
        NdRange::new(self.into_range(), [1; K])
    }
}

impl<const K: usize> LaunchSpace<PerGroup, K> for NdRange<K> {
    fn into_nd_range(self) -> Self {
        self
    }
}

mod sealed {
    use celerity_kernel::{PerGroup, PerItem, PerRow};

    use crate::range::{IntoRange, NdRange};

    pub trait SealedForm {}
    impl SealedForm for PerItem {}
    impl SealedForm for PerRow {}
    impl SealedForm for PerGroup {}

    pub trait SealedSpace<F, const K: usize> {}
    impl<R: IntoRange<K>, const K: usize> SealedSpace<PerItem, K> for R {}
    impl<R: IntoRange<K>, const K: usize> SealedSpace<PerRow, K> for R {}
    impl<const K: usize> SealedSpace<PerGroup, K> for NdRange<K> {}
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
