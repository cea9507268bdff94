//! Kernels over items in groups, as tasks.

use celerity_kernel::Kernel;
use celerity_kernel::abi::check_groups;
use celerity_tdag::TaskId;

use super::TaskBuilder;
use crate::access::KernelAccesses;
use crate::error::{Error, Result};
use crate::launch::GroupKernel;
use crate::range::{IntoRange, check_dimensions};

impl TaskBuilder<'_> {
    /// Submits a kernel that `#[kernel]` has made of a function over items in groups:
    /// as [`launch`](Self::launch), for groups of `group` items, which divide the
    /// index space. The items of a group run on one device, share local memory and
    /// can wait for each other.
    ///
    /// ```
    /// use celerity::prelude::*;
    /// use celerity_example_kernels::groups::{SUMMANDS, group_sum};
    ///
    /// let sums = celerity::run(|queue| {
    ///     let values = queue.buffer_from(2 * SUMMANDS, vec![1.0; 2 * SUMMANDS])?;
    ///     let sums = queue.buffer::<f64, 1>(2 * SUMMANDS);
    ///     let accesses = (sums.write(one_to_one()), values.read(one_to_one()));
    ///     queue.task("sum").launch_groups(2 * SUMMANDS, SUMMANDS, accesses, group_sum)?;
    ///     Ok(queue.fence(&sums)?.wait()?.as_slice().to_vec())
    /// })?;
    /// assert_eq!(sums, vec![SUMMANDS as f64; 2 * SUMMANDS]);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`launch`](Self::launch), and [`Error::Groups`] if there are no such groups.
    /// A kernel whose items do not all come to the same barriers ends the run on CPUs.
    pub fn launch_groups<A, W, const K: usize>(
        mut self,
        range: impl IntoRange<K>,
        group: impl IntoRange<K>,
        accesses: A,
        kernel: W,
    ) -> Result<TaskId>
    where
        A: KernelAccesses<K> + 'static,
        W: for<'a> celerity_kernel::GroupKernel<K, A::ItemViews<'a>>,
    {
        const { check_dimensions(K) };
        let (range, group) = (range.into_range(), group.into_range());
        self.check_groups::<W, K>(range, group)?;
        self.keep_groups_whole(group);
        self.submit_compiled(range, accesses, kernel, |launch| GroupKernel {
            launch,
            group,
            kernel,
        })
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

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
