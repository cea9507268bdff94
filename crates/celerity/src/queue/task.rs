//! A kernel task as a program spells it: hints, the index space, and the way in which its kernel is
//! called. Owns nothing but what was said.

use celerity_executor::Payload;
use celerity_kernel::{Item, Row};
use celerity_tdag::{Split, TaskId};

use crate::access::KernelAccesses;
use crate::error::Result;
use crate::origin::Origin;
use crate::range::{IntoRange, check_dimensions};

mod bulk;
pub(crate) mod by_hand;
mod call;
mod compiled;
mod lower;

pub use compiled::{LaunchForm, LaunchSpace};

/// How to cut an index space over nodes and devices (CCGrid 2023, §III-E).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// Into bands along the slowest dimension. That is the default, but for spaces that cannot be cut there,
    /// such as a row, `[1, n]`: kernels have those cut along the first dimension that is wide enough, unless
    /// they [update](crate::Buffer::update) elements that its chunks might share.
    BandSplit,
    /// Into tiles over the two slowest dimensions, which exchange less at their
    /// edges when there are many.
    TiledSplit,
    /// Into bands along this dimension, counted from 0, the slowest.
    SplitAlong(usize),
    /// So many chunks per device, at least 1, so that a device computes on some
    /// while others wait for data. Goes together with any split. GPUs get fewer chunks of a kernel
    /// where each would have less than 65,536 items, and one if a single GPU is all that there is:
    /// nothing could overlap.
    Oversubscribe(usize),
}

/// A kernel task before its kernel is known.
///
/// One method submits each form of kernel:
///
/// | kernel | called per | runs on | submitted by |
/// | --- | --- | --- | --- |
/// | `#[kernel]` function | item, row or item of a group, as its first parameter says | CPUs, GPUs | [`launch`](Self::launch) |
/// | closure | item | CPUs | [`parallel_for`](Self::parallel_for) |
/// | closure | row: a run of items | CPUs | [`parallel_for_rows`](Self::parallel_for_rows) |
/// | call of a library | chunk | CPUs, GPUs | [`device_call`](Self::device_call) |
#[derive(Debug)]
#[must_use = "a task is submitted by `launch`, `parallel_for`, `parallel_for_rows` or `device_call`"]
pub struct TaskBuilder<'q> {
    pub(super) origin: Origin<'q>,
    /// As a hint says, if one does.
    split: Option<Split>,
    /// A hint that nothing can be split along, if there is one.
    impossible_dim: Option<usize>,
    oversubscription: usize,
    granularity: Vec<usize>,
    /// Threads of a block of GPUs; empty to leave it to a rule.
    block: Vec<usize>,
    /// Where the index space begins; empty for the origin.
    offset: Vec<usize>,
}

impl<'q> TaskBuilder<'q> {
    pub(super) fn new(origin: Origin<'q>) -> Self {
        Self {
            origin,
            split: None,
            impossible_dim: None,
            oversubscription: 1,
            granularity: Vec::new(),
            block: Vec::new(),
            offset: Vec::new(),
        }
    }

    /// Says how to cut the index space. Of several splits the last counts.
    pub fn hint(mut self, hint: Hint) -> Self {
        match hint {
            Hint::BandSplit => self.split = Some(Split::OneDimensional),
            Hint::TiledSplit => self.split = Some(Split::Tiled),
            Hint::SplitAlong(dim @ 0..3) => self.split = Some(Split::Along(dim as u8)),
            Hint::SplitAlong(dim) => self.impossible_dim = Some(dim),
            Hint::Oversubscribe(chunks) => self.oversubscription = chunks,
        }
        self
    }

    /// Cuts the index space only at multiples of this size in each dimension.
    pub fn granularity<const G: usize>(mut self, granularity: impl IntoRange<G>) -> Self {
        self.granularity = granularity.into_range().to_vec();
        self
    }

    /// Asks GPUs for blocks of so many threads along each dimension, 1,024 in all at the most, of which a thread
    /// may take several items in a row. For kernels over items and rows; those over groups have a block for
    /// each group, those that reduce one for each tile, and CPUs have none.
    ///
    /// What is computed does not depend on it, only how fast. By itself a block has, of kernels whose
    /// threads take items in runs (stencils, and kernels over rows), 128 threads in up to 4 rows, and of
    /// others 256 in up to 8, fewer where rows are narrow: `docs/gpus.md` has what that was measured with. A
    /// kernel that gathers elements around each item from a whole view, as of a list of neighbours or a sparse
    /// matrix, may be faster in blocks of 512: what items near each other read lies in one cache then. A
    /// chunk that is smaller than a block has smaller ones, one for which a device had not as many
    /// blocks others, and a kernel for as many threads of which there are no registers blocks of a half or a
    /// quarter.
    ///
    /// ```
    /// use celerity::prelude::*;
    /// use celerity_example_kernels::life::{initial, life_fill}; // from a crate of kernels
    ///
    /// let world = celerity::run(|queue| {
    ///     let world = queue.buffer::<u8, 2>([64, 512]);
    ///     let task = queue.task("fill").block([1, 256]);
    ///     task.launch([64, 512], world.write(one_to_one()), life_fill { seed: 7 })?;
    ///     Ok(queue.fence(&world)?.wait()?.into_vec())
    /// })?;
    /// assert_eq!(world[512 + 3], initial([1, 3], 7));
    /// # Ok::<(), celerity::Error>(())
    /// ```
    ///
    /// That there cannot be such blocks is an [error](crate::Error::Block) when the task is submitted, on CPUs,
    /// too.
    pub fn block<const G: usize>(mut self, block: impl IntoRange<G>) -> Self {
        self.block = block.into_range().to_vec();
        self
    }

    /// Lets the index space begin at this index instead of the origin: the items of
    /// `range` have indices from `offset` on, for range mappers, too.
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// let rows = celerity::run(|queue| {
    ///     let rows = queue.buffer_from([3, 2], vec![0; 6])?;
    ///     // The last row alone.
    ///     let task = queue.task("last").offset([2, 0]);
    ///     task.parallel_for([1, 2], rows.write(one_to_one()), |item, x| *x = item[0])?;
    ///     Ok(queue.fence(&rows)?.wait()?.as_slice().to_vec())
    /// })?;
    /// assert_eq!(rows, [0, 0, 0, 0, 2, 2]);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    pub fn offset<const G: usize>(mut self, offset: impl IntoRange<G>) -> Self {
        self.offset = offset.into_range().to_vec();
        self
    }

    /// Submits a kernel that is called once per item of the index space `range`.
    ///
    /// The kernel gets the item and the views of `accesses`, in order. It must
    /// own what it captures. An empty index space is no task: the kernel is not
    /// called.
    ///
    /// # Errors
    /// If an access cannot be (the error names task, buffer and part), if 64 bits
    /// cannot count the items of the index space, or if the run has failed. The
    /// task is not submitted then.
    pub fn parallel_for<A, F, const K: usize>(
        self,
        range: impl IntoRange<K>,
        accesses: A,
        kernel: F,
    ) -> Result<TaskId>
    where
        A: KernelAccesses<K> + 'static,
        F: for<'a> Fn(Item<K>, A::ItemViews<'a>) + Send + Sync + 'static,
    {
        const { check_dimensions(K) };
        let (task, kernel) = self.lower_items(range.into_range(), accesses, kernel)?;
        task.submit(Payload::Kernel(kernel))
    }

    /// Submits a kernel that is called with runs of items along the fastest
    /// dimension, which together cover the index space `range` once.
    ///
    /// The kernel gets the run and the views of `accesses`, in order. A run may be a whole row of the
    /// index space or a part of one: that follows from devices, threads and the size of the space, and no kernel
    /// may rely on it. Otherwise as [`parallel_for`](Self::parallel_for), by which whole rows are items that own
    /// one each:
    ///
    /// ```
    /// use celerity::Side;
    /// use celerity::prelude::*;
    ///
    /// let sums = celerity::run(|queue| {
    ///     let values = queue.buffer_from([2, 3], vec![1, 2, 3, 4, 5, 6])?;
    ///     let row = per_dimension([Side::along(0), Side::all()]);
    ///     queue.task("sums").parallel_for(2, values.read_write(row), |item, mut values| {
    ///         let mut row = values.row_mut([item[0]]);
    ///         let sum = row.iter().sum();
    ///         row.fill(sum);
    ///     })?;
    ///     Ok(queue.fence(&values)?.wait()?.as_slice().to_vec())
    /// })?;
    /// assert_eq!(sums, [6, 6, 6, 15, 15, 15]);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`parallel_for`](Self::parallel_for).
    pub fn parallel_for_rows<A, F, const K: usize>(
        self,
        range: impl IntoRange<K>,
        accesses: A,
        kernel: F,
    ) -> Result<TaskId>
    where
        A: KernelAccesses<K> + 'static,
        F: for<'a> Fn(Row<K>, A::RowViews<'a>) + Send + Sync + 'static,
    {
        const { check_dimensions(K) };
        let (task, kernel) = self.lower_rows(range.into_range(), accesses, kernel)?;
        task.submit(Payload::Kernel(kernel))
    }
}
