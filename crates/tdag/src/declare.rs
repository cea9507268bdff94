//! The first of the two steps in which a task enters the graph: check it, and
//! find out which elements of which buffers it reads and writes as a whole.
//! Changes nothing.

use celerity_regions::{Box3, Region};

use crate::access::{AccessMode, BufferAccess};
use crate::error::DeclareError;
use crate::footprint::{Footprint, Touched};
use crate::id::{BufferId, TaskId};
use crate::mapper::{Mapper, MapperInput, ask};
use crate::space::IndexSpace;
use crate::task::{BufferInfo, TaskSpec, Work};

/// A task that has been checked, with what it touches. Between this and
/// [`TaskGraph::commit`](crate::TaskGraph::commit) other tasks may be inserted:
/// dependencies are found at commitment.
#[derive(Debug)]
#[must_use = "a declared task enters the graph when it is committed"]
pub struct Declared {
    pub(crate) spec: TaskSpec,
    pub(crate) footprint: Footprint,
    pub(crate) warnings: Vec<DeclareError>,
}

impl Declared {
    /// What was found and tolerated.
    #[must_use]
    pub fn warnings(&self) -> &[DeclareError] {
        &self.warnings
    }

    /// The task as it was declared.
    #[must_use]
    pub fn spec(&self) -> &TaskSpec {
        &self.spec
    }

    /// What the task reads and writes, one entry per buffer and mode.
    #[must_use]
    pub fn touched(&self) -> &[Touched] {
        &self.footprint
    }
}

/// Checks `spec` against everything that does not depend on earlier tasks, and
/// evaluates its mappers on the whole index space. Adds to `footprint`, which is
/// empty, what it touches.
/// Returns whether the task has other accesses than those to buffers.
///
/// A user's mapper that panics is an error if `USERS` are asked, and unwinds otherwise: images of
/// tasks without any are not moved through a `Result`, which takes 4 % of a small task.
pub(crate) fn trace<'a, const USERS: bool>(
    spec: &TaskSpec,
    next: TaskId,
    buffer_of: impl Fn(BufferId) -> Option<&'a BufferInfo>,
    footprint: &mut Footprint,
) -> Result<bool, DeclareError> {
    let mut of_buffers = 0;
    let space = spec.work.space();
    check_work(spec, next)?;
    let all = space.map_or(Box3::UNIT, |space| space.extent);
    // Filled in for each buffer: boxes are the most there is to copy.
    let mut input = MapperInput { chunk: all, global: all, buffer: Box3::EMPTY };
    for (position, access) in spec.buffer_accesses().enumerate() {
        let Some(buffer) = buffer_of(access.buffer) else {
            let task = describe(spec, next);
            return Err(DeclareError::UnknownBuffer { task, buffer: access.buffer });
        };
        input.buffer = buffer.extent;
        let subject = Subject { spec, space, next, access, buffer };
        subject.check_dimensions(&all)?;
        // Once: a user's mapper may be slow, or answer differently next time.
        let image = match &access.mapper {
            Mapper::User(_) if USERS => subject.ask_user(&input)?,
            mapper => mapper.map_unclamped(&input),
        };
        subject.check_bounds(&image)?;
        subject.check_disjoint()?;
        subject.check_apart(position, footprint, &image)?;
        record(footprint, access, image);
        of_buffers += 1;
    }
    Ok(of_buffers < spec.accesses.len())
}

/// A task is of a kind that is declared, and its index space is one.
#[inline]
fn check_work(spec: &TaskSpec, next: TaskId) -> Result<(), DeclareError> {
    match &spec.work {
        Work::Device(space) | Work::HostSplit { space, .. } if space.is_one() => Ok(()),
        Work::HostOnce { .. } | Work::Combine { .. } => Ok(()),
        _ => check_rare_work(spec, next),
    }
}

/// As [`check_work`]. A fence does not write: it is taken by every node for itself.
#[cold]
fn check_rare_work(spec: &TaskSpec, next: TaskId) -> Result<(), DeclareError> {
    let task = || describe(spec, next);
    let made_by_graph = |kind| Err(DeclareError::MadeByGraph { task: task(), kind });
    match &spec.work {
        Work::Device(space) | Work::HostSplit { space, .. } => match space.flaw() {
            None => Ok(()),
            Some(flaw) => Err(DeclareError::Space { task: task(), flaw }),
        },
        Work::HostOnce { .. } | Work::Combine { .. } => Ok(()),
        Work::Fence => match spec.buffer_accesses().find(|access| access.mode.writes()) {
            None => Ok(()),
            Some(access) => {
                let (buffer, access) = (access.buffer, access.to_string());
                Err(DeclareError::FenceWrites { task: task(), buffer, access })
            }
        },
        Work::Forward => made_by_graph("a forward"),
        Work::Horizon => made_by_graph("a horizon"),
        Work::Epoch(_) => made_by_graph("an epoch"),
    }
}

/// Adds one access to the footprint.
fn record(footprint: &mut Footprint, access: &BufferAccess, image: Region) {
    #[cfg(feature = "mutants")]
    if crate::mistakes::forgets_read(footprint, access) {
        return;
    }
    let alike = |entry: &&mut Touched| entry.buffer == access.buffer && entry.mode == access.mode;
    match footprint.iter_mut().find(alike) {
        Some(earlier) => earlier.region.union_with(&image),
        None => {
            footprint.push(Touched { buffer: access.buffer, mode: access.mode, region: image });
        }
    }
}

/// One access of a task, with all that a message about it needs.
struct Subject<'a> {
    spec: &'a TaskSpec,
    /// The index space, if the task is split.
    space: Option<&'a IndexSpace>,
    next: TaskId,
    access: &'a BufferAccess,
    buffer: &'a BufferInfo,
}

impl Subject<'_> {
    /// What one access writes, no other of the task touches, the `earlier` ones with that
    /// `footprint` or later ones. The images of the whole index space say so for every chunk
    /// and item of it, since mappers are additive. Whether a user's mapper is, generators
    /// check for the chunks that they make.
    fn check_apart(
        &self,
        earlier: usize,
        footprint: &Footprint,
        image: &Region,
    ) -> Result<(), DeclareError> {
        let shares = |entry: &&Touched| {
            self.conflicts_with(entry.buffer, entry.mode) && entry.region.intersects(image)
        };
        let Some(entry) = footprint.iter().find(shares) else { return Ok(()) };
        let region = entry.region.intersection(image);
        let other = self.sharing(earlier, entry.mode, &region);
        Err(DeclareError::ConflictingAccesses {
            task: describe(self.spec, self.next),
            buffer: self.buffer.name.clone(),
            region: Box::new(region),
            dims: self.buffer.dims,
            accesses: Box::new(
                [other, self.access].map(|access| access.in_words(self.buffer.dims)),
            ),
        })
    }

    /// Whether this access and another must not share elements.
    fn conflicts_with(&self, buffer: BufferId, mode: AccessMode) -> bool {
        buffer == self.access.buffer && (mode.writes() || self.access.mode.writes())
    }

    /// Which of the `earlier` accesses, in `mode`, touches `region`. There is one, unless a
    /// user's mapper changes its mind: then the first in that mode.
    fn sharing(&self, earlier: usize, mode: AccessMode, region: &Region) -> &BufferAccess {
        let space = self.spec.work.extent();
        let input = MapperInput { chunk: space, global: space, buffer: self.buffer.extent };
        let earlier = self.spec.buffer_accesses().take(earlier);
        let mut alike =
            earlier.filter(|other| other.buffer == self.access.buffer && other.mode == mode);
        let touches = |other: &&BufferAccess| other.mapper.map(&input).intersects(region);
        alike.clone().find(touches).or_else(|| alike.next()).unwrap_or(self.access)
    }

    /// What a user's mapper says, which may panic.
    #[inline(never)]
    fn ask_user(&self, input: &MapperInput) -> Result<Region, DeclareError> {
        ask(&self.access.mapper, input).map_err(|violation| DeclareError::UnlawfulMapper {
            task: describe(self.spec, self.next),
            buffer: self.buffer.name.clone(),
            violation,
        })
    }

    fn check_dimensions(&self, all: &Box3) -> Result<(), DeclareError> {
        let task_dims = self.space.map_or(0, |space| space.dims);
        let needs_equal = matches!(
            self.access.mapper,
            Mapper::OneToOne
                | Mapper::Slice { .. }
                | Mapper::Neighborhood { .. }
                | Mapper::Periodic { .. }
        );
        if !needs_equal || task_dims == self.buffer.dims {
            return self.check_fit(task_dims, all);
        }
        Err(DeclareError::DimensionMismatch {
            task: describe(self.spec, self.next),
            buffer: self.buffer.name.clone(),
            mapper: self.mapper_in_words(),
            task_dims,
            buffer_dims: self.buffer.dims,
        })
    }

    /// A built-in mapper has what it relates.
    #[inline]
    fn check_fit(&self, task_dims: u8, all: &Box3) -> Result<(), DeclareError> {
        let BufferAccess { mapper, .. } = self.access;
        let buffer = self.buffer;
        match mapper.flaw((task_dims, all), (buffer.dims, &buffer.extent)) {
            None => Ok(()),
            Some(flaw) => Err(DeclareError::Mapper {
                task: describe(self.spec, self.next),
                buffer: buffer.name.clone(),
                mapper: self.mapper_in_words(),
                flaw,
            }),
        }
    }

    /// With a border in as many dimensions as the buffer has.
    fn mapper_in_words(&self) -> String {
        self.access.mapper.of_dims(self.buffer.dims).to_string()
    }

    fn check_bounds(&self, image: &Region) -> Result<(), DeclareError> {
        if image.is_within(&self.buffer.extent) {
            return Ok(());
        }
        Err(DeclareError::OutOfBounds {
            task: describe(self.spec, self.next),
            buffer: self.buffer.name.clone(),
            mapper: self.mapper_in_words(),
            image: Box::new(image.clone()),
            extent: Box::new(self.buffer.extent.into()),
            dims: self.buffer.dims,
        })
    }

    /// Items, or chunks if their items update elements together, write apart.
    fn check_disjoint(&self) -> Result<(), DeclareError> {
        let Some(space) = self.space else { return Ok(()) };
        let BufferAccess { mode, mapper, .. } = self.access;
        if mode.allows(mapper, space) {
            return Ok(());
        }
        let (task, buffer) = (describe(self.spec, self.next), self.buffer.name.clone());
        let mapper = self.mapper_in_words();
        Err(match mode {
            AccessMode::Update => DeclareError::UpdatesMeet { task, buffer, mapper },
            _ => DeclareError::OverlappingWrites { task, buffer, mapper },
        })
    }
}

/// `T3 "wave_step" at src/main.rs:40`, for a task that may get id `T3`.
pub(crate) fn describe(spec: &TaskSpec, next: TaskId) -> String {
    match &spec.location {
        Some(location) => format!("{next} \"{}\" at {location}", spec.name),
        None => format!("{next} \"{}\"", spec.name),
    }
}
