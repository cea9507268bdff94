//! Where accesses are checked and collected on their way into a task, and what has to be done
//! about reductions when it is submitted.

use std::ops::Range;
use std::sync::Arc;

use celerity_executor::NodeFrontend;
use celerity_kernel::Operator;
use celerity_regions::Box3;
use celerity_tdag::{
    Access, AccessMode, BufferId, DeclareError, IndexSpace, Mapper, MapperInput, SideEffectOrder,
    Split, Tiling,
};

use super::ReduceAccess;
use crate::buffer::{Buffer, BufferHandle, Element};
use crate::error::{Error, Result};
use crate::mapper::{MapperFor, Unfit};
use crate::object::{HostObject, ObjectCell};
use crate::origin::Origin;
use crate::pending::Pending;
use crate::reduction::{Partials, ReductionTarget, Title, pending, tiling};

/// Where accesses are checked and collected on their way into a task.
pub struct Lowering<'q> {
    origin: &'q Origin<'q>,
    /// All items.
    space: Box3,
    /// Whether the task has an item for each node, however many there are.
    is_per_node: bool,
    lowered: Lowered,
    reductions: Vec<Lowerable>,
}

/// A reduction before it is known how the index space is tiled.
struct Lowerable {
    /// Which of the accesses it is.
    position: usize,
    /// Size and alignment of a partial result.
    bytes: (u64, u64),
    result: Arc<BufferHandle>,
    /// Of the result.
    name: String,
    includes_current: bool,
    is_ordered: bool,
    steps: Box<dyn FnOnce(Partials) -> Pending>,
}

/// What submitting a task does to buffers that it touches or reduces into.
#[derive(Debug, Default)]
pub(crate) struct Settling {
    /// Those that the task needs the contents of.
    needed: Vec<Arc<BufferHandle>>,
    /// Those of which it leaves nothing as it was.
    replaced: Vec<Arc<BufferHandle>>,
    /// Those that it reduces into.
    reduced: Vec<(Arc<BufferHandle>, Pending)>,
}

/// What one access maps to.
#[derive(Debug)]
pub(crate) struct Mapped {
    pub(crate) mapper: Mapper,
    /// The extent of its buffer; of a reduction, of the buffer that is reduced into.
    pub(crate) buffer: Box3,
    pub(crate) mode: AccessMode,
}

/// A task's accesses.
#[derive(Debug, Default)]
pub(crate) struct Lowered {
    pub(crate) accesses: Vec<Access>,
    /// The mapper of each, and its buffer.
    pub(crate) mappers: Vec<Mapped>,
    pub(crate) settling: Settling,
    /// Those that are reductions in any order.
    pub(crate) unordered: Vec<usize>,
}

impl Mapped {
    /// Whether chunks of this space are known to be as far apart as the task's accesses need them to be. What is written
    /// is apart for each item, in any space.
    fn allows(&self, space: &IndexSpace) -> bool {
        let is_believed = matches!(self.mapper, Mapper::User(_));
        self.mode != AccessMode::Update || !is_believed && self.mapper.keeps_chunks_apart(space)
    }
}

impl Settling {
    /// Before the task is submitted: makes what it needs.
    ///
    /// # Errors
    /// As submitting a task.
    pub(crate) fn before(&mut self, frontend: &Arc<NodeFrontend>) -> Result<()> {
        self.needed.drain(..).try_for_each(|buffer| buffer.settle(frontend))
    }

    /// When the task has been submitted.
    pub(crate) fn after(self) {
        self.replaced.iter().for_each(|buffer| buffer.set_pending(None));
        for (buffer, pending) in self.reduced {
            buffer.set_pending(Some(pending));
        }
    }
}

impl<'q> Lowering<'q> {
    /// For a task that is not split.
    pub(crate) fn new(origin: &'q Origin<'q>) -> Self {
        let (lowered, reductions) = (Lowered::default(), Vec::new());
        Self { origin, space: Box3::UNIT, is_per_node: false, lowered, reductions }
    }

    /// The same for a task with an item for each node: what is wrong with several nodes is wrong
    /// with one.
    pub(crate) fn per_node(mut self) -> Self {
        self.is_per_node = true;
        self
    }

    /// The same for a task over an index space.
    pub(crate) fn over(mut self, space: IndexSpace) -> Self {
        self.space = space.extent;
        self
    }

    /// Where the index space begins.
    pub(super) fn offset(&self) -> [usize; 3] {
        self.space.min().map(|index| index as usize)
    }

    /// Makes room for so many accesses, all that the task has.
    pub(super) fn reserve(&mut self, accesses: usize) {
        self.lowered.accesses.reserve_exact(accesses);
        self.lowered.mappers.reserve_exact(accesses);
    }

    /// Adds a side effect on a host object; returns where the value is.
    pub(super) fn push_object<T>(
        &mut self,
        object: &HostObject<T>,
        order: SideEffectOrder,
    ) -> Result<Arc<ObjectCell<T>>> {
        if !object.belongs_to(self.origin.frontend) {
            return Err(object.foreign(self.origin.describe(), order));
        }
        self.lowered.accesses.push(Access::object(object.id(), order));
        Ok(object.cell().clone())
    }

    pub(crate) fn finish(self) -> Lowered {
        debug_assert!(self.reductions.is_empty(), "only kernels reduce");
        self.lowered
    }

    /// The space as it is cut if nobody has said how: where it has no room for two chunks along the slowest dimension,
    /// along the first that has, as far as that is known to keep what the accesses write apart. O(accesses).
    pub(crate) fn where_wide(&self, space: IndexSpace) -> IndexSpace {
        let along = |dim: u8| IndexSpace { split: Split::Along(dim), ..space };
        let mut cuts =
            (0..space.dims).map(along).zip(0..).filter(|(cut, dim)| cut.is_cut_along(*dim));
        match cuts.next() {
            Some((cut, 1..)) if self.lowered.mappers.iter().all(|it| it.allows(&cut)) => cut,
            _ => space,
        }
    }

    /// The accesses of a kernel. If it reduces, its tiles, and its index space with chunks of whole
    /// ones.
    ///
    /// # Errors
    /// If a buffer that is reduced into is touched otherwise, or is to be included without having been
    /// written.
    pub(crate) fn finish_kernel(
        self,
        space: IndexSpace,
    ) -> Result<(Lowered, IndexSpace, Option<Tiling>)> {
        let Self { origin, mut lowered, reductions, .. } = self;
        if reductions.is_empty() {
            return Ok((lowered, space, None));
        }
        for one in &reductions {
            let buffer = one.result.id();
            let is_shared = lowered.accesses.iter().enumerate().any(|(position, access)| {
                position != one.position && access.as_buffer().is_some_and(|it| it.buffer == buffer)
            });
            if is_shared {
                let (task, buffer) = (origin.describe(), one.name.clone());
                return Err(Error::SharedReduction { task, buffer });
            }
            // What a pending reduction makes is all of it.
            if one.includes_current && !one.result.is_pending() {
                origin.frontend.check_written(buffer, || origin.describe())?;
            }
        }
        let bytes = reductions.iter().map(|one| one.bytes.0).max().unwrap_or(0);
        let unordered = reductions.iter().filter(|one| !one.is_ordered);
        lowered.unordered = unordered.map(|one| one.position).collect();
        let is_ordered = lowered.unordered.len() < reductions.len();
        let tiling = tiling(&space, bytes, (!is_ordered).then(|| origin.frontend.nodes()));
        let space = tiling.of_whole_tiles(space);
        for Lowerable { position, bytes, result, name, includes_current, steps, .. } in reductions {
            let partials =
                Partials::new(origin.frontend, result.spares(), (tiling, space), &name, bytes);
            let access = partials.access();
            lowered.mappers[position].mapper = Mapper::Tiles(Arc::new(tiling));
            lowered.accesses[position] = access;
            if includes_current {
                lowered.settling.needed.push(result.clone());
            }
            lowered.settling.reduced.push((result, steps(partials)));
        }
        Ok((lowered, space, Some(tiling)))
    }

    /// Adds a reduction.
    pub(super) fn push_reduction<T: Element, O: Operator<T>, const D: usize>(
        &mut self,
        access: &ReduceAccess<T, D, O>,
    ) -> Result<()> {
        let &ReduceAccess { ref buffer, operator, includes_current, is_ordered } = access;
        self.check_origin(buffer)?;
        let elements = buffer.range().iter().fold(1, |all: usize, &size| all.saturating_mul(size));
        let (size, align) = (partial_bytes::<T>(elements), align_of::<T>() as u64);
        if UNSENDABLE.contains(&size) && self.origin.frontend.nodes() > 1 {
            let (task, buffer) = (self.origin.describe(), buffer.name());
            return Err(Error::PartialResults { task, buffer, bytes: size });
        }
        let reduction =
            ReductionTarget { result: buffer.id(), elements, operator, includes_current };
        let name = format!("{} of {}", buffer.name(), self.origin.name).into();
        let title = Title { name, location: self.origin.location.clone() };
        self.reductions.push(Lowerable {
            position: self.lowered.accesses.len(),
            bytes: (size, align),
            result: buffer.handle().clone(),
            name: buffer.name(),
            includes_current,
            is_ordered,
            steps: Box::new(move |partials| pending::<T, O>(title, partials, reduction)),
        });
        // Stands for the partial results, of which there is no buffer yet.
        self.push_raw(buffer.id(), AccessMode::Write, Mapper::All, buffer.extent());
        Ok(())
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

    pub(super) fn push<T, M: MapperFor<K, D>, const K: usize, const D: usize>(
        &mut self,
        buffer: &Buffer<T, D>,
        mode: AccessMode,
        mapper: &M,
    ) -> Result<()> {
        let mapper = self.checked(buffer, mapper)?;
        if self.is_per_node && mode.writes() && !mapper.is_disjoint(&Box3::from_range([2])) {
            let (task, buffer) = (self.origin.describe(), buffer.name().into());
            let mapper = mapper.of_dims(D as u8).to_string();
            return Err(DeclareError::OverlappingWrites { task, buffer, mapper }.into());
        }
        self.add(buffer, mode, mapper);
        Ok(())
    }

    fn checked<T, M: MapperFor<K, D>, const K: usize, const D: usize>(
        &self,
        buffer: &Buffer<T, D>,
        mapper: &M,
    ) -> Result<Mapper> {
        self.check_origin(buffer)?;
        mapper.lower().map_err(|unfit| {
            let (task, buffer, dims) = (self.origin.describe(), buffer.name(), D);
            match unfit {
                Unfit::SliceAlong { dim } => Error::SliceDimension { task, buffer, dim, dims },
                Unfit::PeriodicAlong { dim } => {
                    Error::PeriodicDimension { task, buffer, dim, dims }
                }
                Unfit::Gaps { stride, window } => Error::Gaps { task, buffer, stride, window },
            }
        })
    }

    fn check_origin<T, const D: usize>(&self, buffer: &Buffer<T, D>) -> Result<()> {
        match buffer.belongs_to(self.origin.frontend) {
            true => Ok(()),
            false => {
                let (task, buffer) = (self.origin.describe(), buffer.name());
                Err(Error::ForeignBuffer { task, buffer })
            }
        }
    }

    fn add<T, const D: usize>(&mut self, buffer: &Buffer<T, D>, mode: AccessMode, mapper: Mapper) {
        if buffer.handle().is_pending() {
            let Settling { needed, replaced, .. } = &mut self.lowered.settling;
            let replaces =
                mode == AccessMode::Write && covers(&mapper, self.space, buffer.extent());
            if replaces { replaced } else { needed }.push(buffer.handle().clone());
        }
        self.push_raw(buffer.id(), mode, mapper, buffer.extent());
    }

    fn push_raw(&mut self, buffer: BufferId, mode: AccessMode, mapper: Mapper, extent: Box3) {
        self.lowered.mappers.push(Mapped { mapper: mapper.clone(), buffer: extent, mode });
        self.lowered.accesses.push(Access::buffer(buffer, mode, mapper));
    }
}

/// Whether a task over `space` is known to touch all of a buffer.
fn covers(mapper: &Mapper, space: Box3, buffer: Box3) -> bool {
    let input = MapperInput { chunk: space, global: space, buffer };
    !matches!(mapper, Mapper::User(_)) && mapper.map(&input) == buffer.into()
}

/// Partial results of so many bytes nodes cannot send: each is an element as others, and MPI counts the bytes of one in 31
/// bits. Of more there is no memory anywhere, which says so.
const UNSENDABLE: Range<u64> = 1 << 31..1 << 48;

/// Bytes of so many elements. Of more than can be counted the largest number of whole elements: no memory is so large, so
/// that the task says that there is none.
fn partial_bytes<T>(elements: usize) -> u64 {
    let most = u64::MAX - u64::MAX % align_of::<T>() as u64;
    (elements as u64).checked_mul(size_of::<T>() as u64).unwrap_or(most)
}
