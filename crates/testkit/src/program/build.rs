//! Builds lawful programs: tracks what has been written and refuses what a
//! correct program could not do. Takes accesses to large buffers at their word.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use celerity_regions::{Box3, Coord3};
use celerity_tdag::{AccessMode, BufferId, IndexSpace, Split};

use super::{
    AccessSpec, BufferSpec, MapperSpec, MapperTable, Op, Program, TaskKind, TaskOp, buffer_slot,
};
use crate::element;

/// Assembles a [`Program`], statement by statement.
///
/// ```
/// use celerity_regions::Box3;
/// use celerity_tdag::{AccessMode, IndexSpace};
/// use celerity_testkit::program::{MapperSpec, ProgramBuilder};
///
/// let mut program = ProgramBuilder::default();
/// let squares = program.buffer([8]);
/// let space = IndexSpace::new(1, Box3::from_range([8]));
/// program.kernel("fill", space, &[(squares, AccessMode::Write, MapperSpec::OneToOne)]);
/// assert_eq!(program.finish().ops.len(), 3); // a fence observes the result
/// ```
#[derive(Clone, Debug, Default)]
pub struct ProgramBuilder {
    ops: Vec<Op>,
    buffers: Vec<BufferState>,
}

#[derive(Clone, Debug)]
struct BufferState {
    spec: BufferSpec,
    alive: bool,
    /// Slots that have a defined value; `None` if they are too many to look at.
    written: Option<BTreeSet<usize>>,
}

/// A buffer of more elements is for measurements of schedules. What is lawful does not depend on
/// sizes that much, and it costs O(items · elements) to find out.
const LOOKED_AT: u64 = 4096;

/// Why a task would not be lawful.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The buffer does not exist or has been dropped.
    DeadBuffer,
    /// Another access touches the same elements and one of them writes.
    Conflict,
    /// A built-in mapper between spaces of different dimensionality.
    Dimensions,
    /// The mapper leaves the buffer.
    OutOfBounds,
    /// Two items may write one element, or two chunks update it.
    Overlap,
    /// An element is read that was never written.
    Unwritten,
}

impl ProgramBuilder {
    /// Creates an unwritten buffer of one-word elements.
    pub fn buffer<const D: usize>(&mut self, range: [usize; D]) -> BufferId {
        let dims = u8::try_from(D).expect("buffers have at most three dimensions");
        let extent = Box3::from_range(range);
        self.create(BufferSpec { dims, extent, words: 1, host_initialized: false })
    }

    /// Creates a buffer of one-word elements with initial contents.
    pub fn initialized<const D: usize>(&mut self, range: [usize; D]) -> BufferId {
        let dims = u8::try_from(D).expect("buffers have at most three dimensions");
        let extent = Box3::from_range(range);
        self.create(BufferSpec { dims, extent, words: 1, host_initialized: true })
    }

    /// Creates a buffer.
    pub fn create(&mut self, spec: BufferSpec) -> BufferId {
        let id = BufferId::from_index(self.buffers.len() as u64);
        let initial = if spec.host_initialized { element::volume(&spec.extent) } else { 0 };
        let written = (spec.extent.volume() <= LOOKED_AT).then(|| (0..initial).collect());
        self.buffers.push(BufferState { spec, alive: true, written });
        self.ops.push(Op::Create(spec));
        id
    }

    /// Submits a kernel.
    ///
    /// # Panics
    /// If the task is not lawful.
    pub fn kernel(
        &mut self,
        name: &str,
        space: IndexSpace,
        accesses: &[(BufferId, AccessMode, MapperSpec)],
    ) {
        self.submit(name, TaskKind::Device(space), accesses);
    }

    /// Submits a host task that runs once.
    ///
    /// # Panics
    /// If the task is not lawful.
    pub fn host_once(&mut self, name: &str, accesses: &[(BufferId, AccessMode, MapperSpec)]) {
        self.submit(name, TaskKind::HostOnce { node: 0 }, accesses);
    }

    /// Takes a snapshot of all that has been written to a buffer.
    ///
    /// # Panics
    /// If the buffer has been dropped.
    pub fn fence(&mut self, buffer: BufferId) {
        let everything = self.written_part(buffer);
        self.submit("fence", TaskKind::Fence, &[(buffer, AccessMode::Read, everything)]);
    }

    /// Waits for everything.
    pub fn barrier(&mut self) {
        self.ops.push(Op::Barrier);
    }

    /// Drops a buffer.
    ///
    /// # Panics
    /// If it has been dropped before.
    pub fn drop_buffer(&mut self, buffer: BufferId) {
        assert!(self.is_alive(buffer), "{buffer} is dropped twice");
        self.buffers[buffer_slot(buffer)].alive = false;
        self.ops.push(Op::Drop(buffer));
    }

    /// Ends the program with fences that observe everything that is alive.
    #[must_use]
    pub fn finish(mut self) -> Program {
        for buffer in self.alive() {
            self.fence(buffer);
        }
        Program { ops: self.ops }
    }

    /// Adds a task.
    ///
    /// # Errors
    /// Its first flaw, and the program stays as it was.
    pub fn try_task(&mut self, task: TaskOp) -> Result<(), Flaw> {
        for (position, access) in task.accesses.iter().enumerate() {
            self.check_access(&task.accesses[..position], access, &task.kind)?;
        }
        for access in task.accesses.iter().filter(|access| access.mode.writes()) {
            let BufferState { spec, written, .. } = &mut self.buffers[buffer_slot(access.buffer)];
            if let Some(written) = written {
                let touched = access.mapper.images(&task.space(), &spec.extent);
                written.extend(touched.iter().flatten());
            }
        }
        self.ops.push(Op::Task(task));
        Ok(())
    }

    /// Submits the last `count` tasks once more, as a loop would, leaving out
    /// those whose buffers are gone.
    pub fn repeat(&mut self, count: usize) {
        let tasks = self.ops.iter().rev().filter_map(|op| match op {
            Op::Task(task) => Some(task.clone()),
            _ => None,
        });
        let mut latest: Vec<TaskOp> = tasks.take(count).collect();
        latest.reverse();
        for task in latest {
            let dead = task.accesses.iter().any(|access| !self.is_alive(access.buffer));
            if !dead {
                self.try_task(task).expect("what was lawful once stays so");
            }
        }
    }

    /// Whether `access` may join the `earlier` accesses of a task.
    ///
    /// # Errors
    /// Its first flaw.
    pub fn check_access(
        &self,
        earlier: &[AccessSpec],
        access: &AccessSpec,
        kind: &TaskKind,
    ) -> Result<(), Flaw> {
        if !self.is_alive(access.buffer) {
            return Err(Flaw::DeadBuffer);
        }
        let BufferSpec { dims, extent: buffer, .. } = *self.spec(access.buffer);
        if !access.mapper.fits(kind.dims(), dims) {
            return Err(Flaw::Dimensions);
        }
        let Some(written) = &self.buffers[buffer_slot(access.buffer)].written else {
            return Ok(());
        };
        let space = kind.space();
        if !access.mapper.stays_inside(&space, &buffer) {
            return Err(Flaw::OutOfBounds);
        }
        if self.shares(earlier, access, &space) {
            return Err(Flaw::Conflict);
        }
        let images = access.mapper.images(&space, &buffer);
        if let Some(space) = kind.split()
            && !stays_apart(access, space, &images)
        {
            return Err(Flaw::Overlap);
        }
        match access.mode.reads() && images.iter().flatten().any(|slot| !written.contains(slot)) {
            true => Err(Flaw::Unwritten),
            false => Ok(()),
        }
    }

    /// Whether `access` touches what one of the `earlier` accesses does, and one of the two
    /// writes.
    fn shares(&self, earlier: &[AccessSpec], access: &AccessSpec, space: &Box3) -> bool {
        let mut others = earlier.iter().filter(|other| {
            other.buffer == access.buffer && (other.mode.writes() || access.mode.writes())
        });
        others.any(|other| {
            let theirs = self.whole_image(other, space);
            !theirs.is_disjoint(&self.whole_image(access, space))
        })
    }

    /// The slots that all items touch through an access.
    fn whole_image(&self, access: &AccessSpec, space: &Box3) -> BTreeSet<usize> {
        let buffer = self.spec(access.buffer).extent;
        access.mapper.images(space, &buffer).into_iter().flatten().collect()
    }

    /// All buffers that have not been dropped.
    #[must_use]
    pub fn alive(&self) -> Vec<BufferId> {
        let ids = (0..self.buffers.len()).map(|slot| BufferId::from_index(slot as u64));
        ids.filter(|&id| self.is_alive(id)).collect()
    }

    /// A buffer's description.
    ///
    /// # Panics
    /// If there is no such buffer.
    #[must_use]
    pub fn spec(&self, buffer: BufferId) -> &BufferSpec {
        &self.buffers[buffer_slot(buffer)].spec
    }

    /// A mapper for everything that has been written to a buffer so far.
    ///
    /// # Panics
    /// If there is no such buffer.
    #[must_use]
    pub fn written_part(&self, buffer: BufferId) -> MapperSpec {
        let BufferState { spec, written, .. } = &self.buffers[buffer_slot(buffer)];
        match written {
            Some(slots) if slots.len() < element::volume(&spec.extent) => {
                MapperSpec::Fixed(runs(&spec.extent, slots))
            }
            _ => MapperSpec::All,
        }
    }

    /// Boxes of everything that a task with these accesses may access as well, in this mode;
    /// `None` of a buffer that is too large to look at.
    ///
    /// # Panics
    /// If there is no such buffer.
    #[must_use]
    pub fn rest_of(
        &self,
        buffer: BufferId,
        mode: AccessMode,
        accesses: &[AccessSpec],
        space: &Box3,
    ) -> Option<Vec<Box3>> {
        let BufferState { spec, written, .. } = &self.buffers[buffer_slot(buffer)];
        let mut rest = written.clone()?;
        if !mode.reads() {
            rest.extend(0..element::volume(&spec.extent));
        }
        for access in accesses.iter().filter(|access| access.buffer == buffer) {
            self.whole_image(access, space).iter().for_each(|slot| _ = rest.remove(slot));
        }
        Some(runs(&spec.extent, &rest))
    }

    fn is_alive(&self, buffer: BufferId) -> bool {
        self.buffers.get(buffer_slot(buffer)).is_some_and(|state| state.alive)
    }

    pub(crate) fn submit(
        &mut self,
        name: &str,
        kind: TaskKind,
        accesses: &[(BufferId, AccessMode, MapperSpec)],
    ) {
        let accesses = accesses.iter().cloned();
        let accesses = accesses.map(|(buffer, mode, mapper)| AccessSpec { buffer, mode, mapper });
        let accesses = accesses.collect();
        let task = TaskOp { name: name.into(), kind, accesses, effects: Vec::new() };
        let text = task.to_string();
        if let Err(flaw) = self.try_task(task) {
            panic!("{text}: {flaw}");
        }
    }
}

/// Whether items that write one element may do so, and the runtime can know it: none may, but for
/// those that update, if they are never in different chunks.
fn stays_apart(access: &AccessSpec, space: &IndexSpace, images: &[Vec<usize>]) -> bool {
    let lowered = || MapperTable::default().lower(&access.mapper, access.mode);
    let is_user = access.mapper.is_user();
    match access.mode {
        AccessMode::Read => true,
        AccessMode::Write | AccessMode::ReadWrite => {
            let mut seen = BTreeSet::new();
            let apart = images.iter().flatten().all(|slot| seen.insert(slot));
            apart && (is_user || lowered().is_disjoint(&space.extent))
        }
        AccessMode::Update => {
            let mut owners = BTreeMap::new();
            let items = element::points(&space.extent).zip(images);
            let apart = items.flat_map(|(item, slots)| slots.iter().map(move |slot| (item, slot)));
            let mut apart = apart.map(|(item, slot)| (granule(space, item), slot));
            let apart =
                apart.all(|(granule, slot)| *owners.entry(slot).or_insert(granule) == granule);
            apart && (is_user || lowered().keeps_chunks_apart(space))
        }
    }
}

/// Which items are in one chunk with `item` however the task is split, as a number per dimension
/// that they have in common.
fn granule(space: &IndexSpace, item: Coord3) -> Coord3 {
    std::array::from_fn(|dim| {
        let is_cut = match space.split {
            Split::OneDimensional => dim == 0,
            Split::Tiled => dim < 2,
            Split::Along(only) => dim == usize::from(only),
        };
        if is_cut { (item[dim] - space.extent.min()[dim]) / space.granularity[dim] } else { 0 }
    })
}

/// Boxes along the fastest dimension that cover exactly the given slots.
fn runs(extent: &Box3, slots: &BTreeSet<usize>) -> Vec<Box3> {
    let mut runs: Vec<Box3> = Vec::new();
    for at in slots.iter().map(|&slot| element::point(extent, slot)) {
        let unit = Box3::new(at, at.map(|coordinate| coordinate + 1));
        match runs.last_mut() {
            Some(run) if run.volume() + 1 == run.bounding(&unit).volume() => {
                *run = run.bounding(&unit);
            }
            _ => runs.push(unit),
        }
    }
    runs
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DeadBuffer => "a buffer does not exist or has been dropped",
            Self::Conflict => "what an access writes is accessed once more",
            Self::Dimensions => "a mapper needs equal numbers of dimensions",
            Self::OutOfBounds => "a mapper leaves its buffer",
            Self::Overlap => "two items may write one element, or two chunks update it",
            Self::Unwritten => "an element is read that was never written",
        })
    }
}

impl std::error::Error for Flaw {}

#[cfg(test)]
mod tests {
    use super::*;
    use celerity_tdag::AccessMode::{Read, ReadWrite, Write};
    use celerity_tdag::NeighborhoodShape;

    fn access(buffer: BufferId, mode: AccessMode, mapper: MapperSpec) -> AccessSpec {
        AccessSpec { buffer, mode, mapper }
    }

    /// What is wrong with a kernel over four items that has these accesses.
    fn flaw(program: &mut ProgramBuilder, accesses: Vec<AccessSpec>) -> Option<Flaw> {
        let kind = TaskKind::Device(IndexSpace::new(1, Box3::from_range([4])));
        let effects = Vec::new();
        program.try_task(TaskOp { name: "task".into(), kind, accesses, effects }).err()
    }

    #[test]
    fn each_flaw_is_named() {
        let mut program = ProgramBuilder::default();
        let (full, empty) = (program.initialized([4]), program.buffer([4]));
        let (short, long) = (program.initialized([3]), program.initialized([9]));
        let square = program.initialized([4, 4]);
        let dead = program.initialized([4]);
        program.drop_buffer(dead);
        let one = || MapperSpec::OneToOne;
        let mut flaw_of = |accesses| flaw(&mut program, accesses);
        assert_eq!(flaw_of(vec![access(dead, Read, one())]), Some(Flaw::DeadBuffer));
        assert_eq!(flaw_of(vec![access(square, Read, one())]), Some(Flaw::Dimensions));
        assert_eq!(flaw_of(vec![access(short, Read, one())]), Some(Flaw::OutOfBounds));
        assert_eq!(flaw_of(vec![access(full, Write, MapperSpec::All)]), Some(Flaw::Overlap));
        assert_eq!(flaw_of(vec![access(empty, ReadWrite, one())]), Some(Flaw::Unwritten));
        let twice = vec![access(full, Read, one()), access(full, Write, one())];
        assert_eq!(flaw_of(twice), Some(Flaw::Conflict));
        let beyond = MapperSpec::Fixed(vec![Box3::from_offset_range([4], [2])]);
        let beside = vec![access(long, Write, one()), access(long, Read, beyond.clone())];
        assert_eq!(flaw_of(beside), None);
        let around =
            MapperSpec::Neighborhood { border: [1, 0, 0], shape: NeighborhoodShape::BoundingBox };
        let overlapping = vec![access(long, Read, around), access(long, Write, one())];
        assert_eq!(flaw_of(overlapping), Some(Flaw::Conflict));
        let sound = vec![access(full, Read, MapperSpec::All), access(full, Read, one())];
        assert_eq!(flaw_of(sound), None);
    }

    #[test]
    fn only_what_has_been_written_can_be_read() {
        let mut program = ProgramBuilder::default();
        let buffer = program.buffer([2, 4]);
        let left = Box3::from_range([2, 3]);
        program.kernel("fill", IndexSpace::new(2, left), &[(buffer, Write, MapperSpec::OneToOne)]);
        let rows = [Box3::from_range([1, 3]), Box3::from_offset_range([1, 0], [1, 3])];
        assert_eq!(program.written_part(buffer), MapperSpec::Fixed(rows.to_vec()));
    }

    #[test]
    fn every_live_buffer_is_observed_at_the_end() {
        let mut program = ProgramBuilder::default();
        let (_, dropped) = (program.initialized([2]), program.initialized([2]));
        program.drop_buffer(dropped);
        let fences = program
            .finish()
            .ops
            .into_iter()
            .filter(|op| matches!(op, Op::Task(TaskOp { kind: TaskKind::Fence, .. })));
        assert_eq!(fences.count(), 1);
    }
}
