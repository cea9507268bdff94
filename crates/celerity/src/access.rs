//! Accesses: what a task says it touches, and the views that it gets for it.
//!
//! Owns the traits that tie the two together. An access goes through three
//! forms: the value in the user's tuple, a *plan* that lives as long as the
//! submitted kernel and holds no buffer handle, and a plan *bound* to the
//! memory of one chunk, from which views are cut. Knows nothing of threads.

mod body;
mod device;
mod elements;
mod host;
mod kernel;
mod lists;
mod lowering;
mod memories;
mod object;
mod reduce;
mod regions;
mod rows;
mod tuple;

use celerity_kernel::Atomic;
use celerity_tdag::AccessMode;

use crate::buffer::{Buffer, Element};
use crate::error::Result;
use crate::mapper::{ChunkMapper, MapperFor};

pub(crate) use body::{Closure, ItemBody, KernelFunction, RowBody};
pub use device::{CallAccess, CallAccesses, DeviceView, DeviceViewMut};
pub(crate) use elements::AccessedElements;
pub use host::{HostAccess, HostAccesses};
pub use kernel::KernelAccess;
pub(crate) use lowering::{Lowered, Lowering, Mapped, Settling};
pub use reduce::ReduceAccess;
pub(crate) use rows::{Rows, rows_of};
pub use tuple::KernelAccesses;

/// A read access; what [`Buffer::read`] returns.
///
/// What a kernel gets for it depends on the range mapper `M`: `&T` (per item)
/// or `&[T]` (per row) for `one_to_one`, [`NeighborhoodItem`] or
/// [`NeighborhoodRow`] for the neighbourhoods, [`PeriodicItem`] or [`PeriodicRow`] for those that
/// are periodic, [`WholeView`] for `all`, [`RegionView`] for mappers of several boxes, and
/// [`PartView`] for any other. The last three are indexed as the buffer is, however the task is
/// split. `docs/views.md` in the repository tells what each view costs.
///
/// [`NeighborhoodItem`]: celerity_kernel::NeighborhoodItem
/// [`NeighborhoodRow`]: celerity_kernel::NeighborhoodRow
/// [`PeriodicItem`]: celerity_kernel::PeriodicItem
/// [`PeriodicRow`]: celerity_kernel::PeriodicRow
/// [`WholeView`]: celerity_kernel::WholeView
/// [`PartView`]: celerity_kernel::PartView
/// [`RegionView`]: celerity_kernel::RegionView
#[derive(Debug)]
#[must_use = "an access does nothing until a task is submitted with it"]
pub struct ReadAccess<T, const D: usize, M> {
    buffer: Buffer<T, D>,
    mapper: M,
}

/// A writing access; what [`Buffer::write`] and [`Buffer::read_write`] return.
///
/// What a kernel gets for it depends on the range mapper `M`: `&mut T` (per
/// item) or `&mut [T]` (per row) for `one_to_one`, and for `slice`, `per_dimension` and disjoint
/// mappers a [`PartViewMut`] of what belongs to the item or row. A host task may
/// write through any mapper: [`WholeViewMut`] for `all`, [`PartViewMut`]
/// otherwise.
///
/// [`PartViewMut`]: celerity_kernel::PartViewMut
/// [`WholeViewMut`]: celerity_kernel::WholeViewMut
#[derive(Debug)]
#[must_use = "an access does nothing until a task is submitted with it"]
pub struct WriteAccess<T, const D: usize, M> {
    buffer: Buffer<T, D>,
    mode: AccessMode,
    mapper: M,
}

/// An access to elements that many items update; what [`Buffer::update`] returns.
///
/// Whatever the range mapper, a kernel gets an [`AtomicView`] of what its chunk
/// declares.
///
/// [`AtomicView`]: celerity_kernel::AtomicView
#[derive(Debug)]
#[must_use = "an access does nothing until a task is submitted with it"]
pub struct UpdateAccess<T, const D: usize, M> {
    buffer: Buffer<T, D>,
    mapper: M,
}

impl<T: Element, const D: usize> Buffer<T, D> {
    /// Reads the part that `mapper` names.
    pub fn read<M>(&self, mapper: M) -> ReadAccess<T, D, M> {
        ReadAccess { buffer: self.clone(), mapper }
    }

    /// Overwrites the part that `mapper` names, all of it. What the elements
    /// hold before the kernel writes them is unspecified.
    pub fn write<M>(&self, mapper: M) -> WriteAccess<T, D, M> {
        WriteAccess { buffer: self.clone(), mode: AccessMode::Write, mapper }
    }

    /// Reads and writes the part that `mapper` names.
    pub fn read_write<M>(&self, mapper: M) -> WriteAccess<T, D, M> {
        WriteAccess { buffer: self.clone(), mode: AccessMode::ReadWrite, mapper }
    }

    /// Updates elements of the part that `mapper` names, each in single steps: items of
    /// one chunk may meet at the same element.
    ///
    /// Items of different chunks may not, since chunks are computed in different
    /// memories. So the mapper must give chunks different elements: `slice(d)` in a task
    /// that is not cut along dimension `d`, `all` and `fixed` in one that is not cut at
    /// all ([`granularity`](crate::TaskBuilder::granularity) of the whole index space),
    /// or a mapper of your own, of which overlaps are reported when the task is
    /// scheduled.
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// let counts = celerity::run(|queue| {
    ///     let values = queue.buffer_from([2, 4], vec![0_u32, 1, 1, 2, 2, 2, 2, 0])?;
    ///     let counts = queue.buffer_from([2, 3], vec![0_u32; 6])?;
    ///     let accesses = (counts.update(slice(1)), values.read(one_to_one()));
    ///     queue.task("count").parallel_for([2, 4], accesses, |item, (counts, value)| {
    ///         counts.at([item[0], *value as usize]).fetch_add(1);
    ///     })?;
    ///     Ok(queue.fence(&counts)?.wait()?.as_slice().to_vec())
    /// })?;
    /// assert_eq!(counts, [1, 2, 1, 1, 0, 3]);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    pub fn update<M>(&self, mapper: M) -> UpdateAccess<T, D, M>
    where
        T: Atomic,
    {
        UpdateAccess { buffer: self.clone(), mapper }
    }
}

impl<T: Element, const D: usize, M> ReadAccess<T, D, M> {
    fn lower_to<const K: usize>(&self, lowering: &mut Lowering<'_>) -> Result<()>
    where
        M: MapperFor<K, D>,
    {
        lowering.push(&self.buffer, AccessMode::Read, &self.mapper)
    }
}

impl<T: Element, const D: usize, M> WriteAccess<T, D, M> {
    fn lower_to<const K: usize>(&self, lowering: &mut Lowering<'_>) -> Result<()>
    where
        M: MapperFor<K, D>,
    {
        lowering.push(&self.buffer, self.mode, &self.mapper)
    }
}

impl<T: Element, const D: usize, M> UpdateAccess<T, D, M> {
    fn lower_to<const K: usize>(&self, lowering: &mut Lowering<'_>) -> Result<()>
    where
        M: ChunkMapper<K, D>,
    {
        lowering.push(&self.buffer, AccessMode::Update, &self.mapper)
    }
}
