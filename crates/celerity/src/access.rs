//! Accesses: what a task says it touches, and the views that it gets for it.
//!
//! Owns the traits that tie the two together. An access goes through three
//! forms: the value in the user's tuple, a *plan* that lives as long as the
//! submitted kernel and holds no buffer handle, and a plan *bound* to the
//! memory of one chunk, from which views are cut. Knows nothing of threads.

mod elements;
mod host;
mod kernel;
mod tuple;

use celerity_regions::Box3;
use celerity_tdag::{Access, AccessMode, Mapper};

use crate::buffer::{Buffer, Element};
use crate::error::{Error, Result};
use crate::mapper::{MapperFor, NoSuchDimension};
use crate::queue::Queue;

pub(crate) use elements::{Elements, rows_of};
pub use host::{HostAccess, HostAccesses};
pub use kernel::KernelAccess;
pub use tuple::KernelAccesses;

/// A read access; what [`Buffer::read`] returns.
///
/// What a kernel gets for it depends on the range mapper `M`: `&T` (per item)
/// or `&[T]` (per row) for `one_to_one`, [`NeighborhoodItem`] or
/// [`NeighborhoodRow`] for the neighbourhoods, [`WholeView`] for `all`, and
/// [`PartView`] for any other.
///
/// [`NeighborhoodItem`]: celerity_kernel::NeighborhoodItem
/// [`NeighborhoodRow`]: celerity_kernel::NeighborhoodRow
/// [`WholeView`]: celerity_kernel::WholeView
/// [`PartView`]: celerity_kernel::PartView
#[derive(Debug)]
#[must_use = "an access does nothing until a task is submitted with it"]
pub struct ReadAccess<T, const D: usize, M> {
    buffer: Buffer<T, D>,
    mapper: M,
}

/// A writing access; what [`Buffer::write`] and [`Buffer::read_write`] return.
///
/// What a kernel gets for it depends on the range mapper `M`: `&mut T` (per
/// item) or `&mut [T]` (per row) for `one_to_one`, and for `slice` and disjoint
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

/// Where accesses are checked and collected on their way into a task.
pub struct Lowering<'q> {
    queue: &'q Queue,
    task: &'q str,
    /// Where the index space begins.
    offset: [usize; 3],
    lowered: Lowered,
}

/// A task's accesses, each with the extent of its buffer.
#[derive(Debug, Default)]
pub(crate) struct Lowered(Vec<(Access, Box3)>);

impl<'q> Lowering<'q> {
    pub(crate) fn new(queue: &'q Queue, task: &'q str) -> Self {
        Self { queue, task, offset: [0; 3], lowered: Lowered::default() }
    }

    /// The same for an index space that begins elsewhere than at the origin.
    pub(crate) fn beginning_at<const K: usize>(mut self, offset: [usize; K]) -> Self {
        self.offset[..K].copy_from_slice(&offset);
        self
    }

    fn offset(&self) -> [usize; 3] {
        self.offset
    }

    pub(crate) fn finish(self) -> Lowered {
        self.lowered
    }

    /// Adds a read that no mapper marker stands for.
    pub(crate) fn push_read<T, const D: usize>(
        &mut self,
        buffer: &Buffer<T, D>,
        mapper: Mapper,
    ) -> Result<()> {
        self.check_origin(buffer)?;
        self.add(buffer, AccessMode::Read, mapper);
        Ok(())
    }

    fn push<T, M: MapperFor<K, D>, const K: usize, const D: usize>(
        &mut self,
        buffer: &Buffer<T, D>,
        mode: AccessMode,
        mapper: &M,
    ) -> Result<()> {
        self.check_origin(buffer)?;
        let mapper = mapper.lower().map_err(|NoSuchDimension { dim }| Error::SliceDimension {
            task: self.task.to_owned(),
            buffer: buffer.name(),
            dim,
            dims: D,
        })?;
        self.add(buffer, mode, mapper);
        Ok(())
    }

    fn check_origin<T, const D: usize>(&self, buffer: &Buffer<T, D>) -> Result<()> {
        match buffer.belongs_to(self.queue) {
            true => Ok(()),
            false => {
                let (task, buffer) = (self.task.to_owned(), buffer.name());
                Err(Error::ForeignBuffer { task, buffer })
            }
        }
    }

    fn add<T, const D: usize>(&mut self, buffer: &Buffer<T, D>, mode: AccessMode, mapper: Mapper) {
        self.lowered.0.push((Access { buffer: buffer.id(), mode, mapper }, buffer.extent()));
    }
}

impl Lowered {
    /// Each access's mapper and buffer extent.
    pub(crate) fn mappers(&self) -> Vec<(Mapper, Box3)> {
        self.0.iter().map(|(access, extent)| (access.mapper.clone(), *extent)).collect()
    }

    pub(crate) fn into_accesses(self) -> Vec<Access> {
        self.0.into_iter().map(|(access, _)| access).collect()
    }
}
