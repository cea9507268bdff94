//! Second pass: what the local chunk of a task touches, per buffer. Pure
//! evaluation of mappers; knows nothing of who holds what.

use celerity_regions::{Box3, Region};
use celerity_tdag::{BufferAccess, BufferId, DimRelation, Mapper, MapperInput, Task};
use smallvec::SmallVec;

use crate::answers::Answers;

/// What a task does to one buffer, seen from one node.
#[derive(Debug)]
pub(crate) struct Requirement<'a> {
    pub(crate) buffer: BufferId,
    pub(crate) extent: Box3,
    /// The reading accesses; remote chunks are mapped through them when needed.
    readers: SmallVec<[&'a BufferAccess; 2]>,
    /// What the local chunk reads.
    pub(crate) reads: Region,
    /// What the local chunk writes.
    pub(crate) writes: Region,
    /// What all chunks write.
    pub(crate) writes_of_all: Region,
    /// The writing accesses.
    writers: SmallVec<[&'a BufferAccess; 2]>,
    /// What users' mappers have said.
    answers: &'a Answers<'a>,
}

/// A chunk of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Which: that of the node of this index.
    pub(crate) position: usize,
    pub(crate) chunk: Box3,
    /// The task's index space.
    pub(crate) global: Box3,
}

/// One entry per buffer of a task.
pub(crate) type Requirements<'a> = SmallVec<[Requirement<'a>; 4]>;

/// Adds all buffers of a task to `found`, which is empty: a list that is worth leaving
/// where it is. The chunk of `local` is empty if this node runs nothing.
#[inline]
pub(crate) fn requirements<'a>(
    task: &'a Task,
    answers: &'a Answers<'a>,
    local: &Part,
    extent_of: impl Fn(BufferId) -> Box3,
    found: &mut Requirements<'a>,
) {
    for access in task.buffer_accesses() {
        let extent = extent_of(access.buffer);
        let slot = found.iter().position(|entry| entry.buffer == access.buffer);
        let slot = slot.unwrap_or_else(|| {
            found.push(Requirement::untouched(access.buffer, extent, answers));
            found.len() - 1
        });
        found[slot].add(access, local);
    }
}

impl<'a> Requirement<'a> {
    fn untouched(buffer: BufferId, extent: Box3, answers: &'a Answers<'a>) -> Self {
        Self {
            buffer,
            extent,
            readers: SmallVec::new(),
            reads: Region::empty(),
            writes: Region::empty(),
            writes_of_all: Region::empty(),
            writers: SmallVec::new(),
            answers,
        }
    }

    fn add(&mut self, access: &'a BufferAccess, local: &Part) {
        let image = self.image(access, local);
        if access.mode.reads() {
            self.reads.union_with(&image);
            self.readers.push(access);
        }
        if access.mode.writes() {
            let global = local.global;
            let of_all = match local.chunk == global {
                true => image.clone(),
                false => access.mapper.map(&self.input(global, global)),
            };
            // One access that writes is the rule.
            let is_first = self.writers.is_empty();
            #[cfg(feature = "mutants")]
            let is_first =
                celerity_mutants::Mutant::LastWriterReplacesOthers.alter(is_first, |_| true);
            match is_first {
                true => (self.writes_of_all, self.writes) = (of_all, image),
                false => {
                    self.writes_of_all.union_with(&of_all);
                    self.writes.union_with(&image);
                }
            }
            self.writers.push(access);
        }
    }

    /// What a chunk touches through an access.
    #[inline]
    pub(crate) fn image(&self, access: &BufferAccess, part: &Part) -> Region {
        if access.is_on_trust()
            && let Some(answer) = self.answers.of(access, part.position)
        {
            return answer.clone();
        }
        access.mapper.map(&self.input(part.chunk, part.global))
    }

    fn input(&self, chunk: Box3, global: Box3) -> MapperInput {
        MapperInput { chunk, global, buffer: self.extent }
    }

    /// Whether any chunk may read the buffer.
    pub(crate) fn is_read(&self) -> bool {
        !self.readers.is_empty()
    }

    /// Whether any chunk may write the buffer.
    pub(crate) fn is_written(&self) -> bool {
        !self.writers.is_empty()
    }

    /// A box around all items that read any of `part`.
    pub(crate) fn readers_of(&self, part: &Box3) -> Box3 {
        if part.is_empty() {
            return Box3::EMPTY;
        }
        let readers = self.readers.iter().map(|access| items_around(&access.mapper, part));
        readers.fold(Box3::EMPTY, |all, one| all.bounding(&one))
    }

    /// What another chunk of the task reads.
    pub(crate) fn reads_of(&self, part: &Part) -> Region {
        self.images(&self.readers, part)
    }

    /// Whether only a user's word stands for what chunks write.
    pub(crate) fn is_written_on_trust(&self) -> bool {
        self.writers.iter().any(|access| access.is_on_trust())
    }

    /// What another chunk of the task writes.
    pub(crate) fn writes_of(&self, part: &Part) -> Region {
        self.images(&self.writers, part)
    }

    /// What a chunk touches through all of these.
    fn images(&self, accesses: &[&BufferAccess], part: &Part) -> Region {
        match accesses {
            [only] => self.image(only, part),
            several => several.iter().fold(Region::empty(), |mut all, access| {
                all.union_with(&self.image(access, part));
                all
            }),
        }
    }
}

/// A box around all items whose image under `mapper` touches `part`, which is
/// not empty: the mapper backwards, as far as its structure is known.
fn items_around(mapper: &Mapper, part: &Box3) -> Box3 {
    let (mut min, mut max) = (part.min(), part.max());
    for dim in 0..3 {
        match mapper.relation(dim) {
            DimRelation::Identity => {}
            DimRelation::Padded(border) => {
                #[cfg(feature = "mutants")]
                let border = celerity_mutants::Mutant::ReadersWithoutBorder.alter(border, |_| 0);
                min[dim] = min[dim].saturating_sub(border);
                max[dim] = max[dim].saturating_add(border);
            }
            DimRelation::Constant | DimRelation::Opaque => (min[dim], max[dim]) = (0, u64::MAX),
        }
    }
    Box3::new(min, max)
}
