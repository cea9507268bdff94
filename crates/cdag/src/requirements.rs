//! Second pass: what the local chunk of a task touches, per buffer. Pure
//! evaluation of mappers; knows nothing of who holds what.

use celerity_regions::{Box3, Region};
use celerity_tdag::{Access, BufferId, DimRelation, Mapper, MapperInput, Task};
use smallvec::SmallVec;

/// What a task does to one buffer, seen from one node.
#[derive(Debug)]
pub(crate) struct Requirement<'a> {
    pub(crate) buffer: BufferId,
    pub(crate) extent: Box3,
    /// The reading accesses; remote chunks are mapped through them when needed.
    readers: SmallVec<[&'a Access; 2]>,
    /// What the local chunk reads.
    pub(crate) reads: Region,
    /// What the local chunk writes.
    pub(crate) writes: Region,
    /// What all chunks write.
    pub(crate) writes_of_all: Region,
    writer: Option<&'a Access>,
}

/// One entry per buffer of a task.
pub(crate) type Requirements<'a> = SmallVec<[Requirement<'a>; 4]>;

/// Adds all buffers of a task to `found`, which is empty: a list that is worth leaving
/// where it is. `local` is empty if this node runs nothing.
#[inline]
pub(crate) fn requirements<'a>(
    task: &'a Task,
    local: Box3,
    extent_of: impl Fn(BufferId) -> Box3,
    found: &mut Requirements<'a>,
) {
    let global = task.work.extent();
    for access in &task.accesses {
        let extent = extent_of(access.buffer);
        let slot = found.iter().position(|entry| entry.buffer == access.buffer);
        let slot = slot.unwrap_or_else(|| {
            found.push(Requirement::untouched(access.buffer, extent));
            found.len() - 1
        });
        found[slot].add(access, local, global);
    }
}

impl<'a> Requirement<'a> {
    fn untouched(buffer: BufferId, extent: Box3) -> Self {
        Self {
            buffer,
            extent,
            readers: SmallVec::new(),
            reads: Region::empty(),
            writes: Region::empty(),
            writes_of_all: Region::empty(),
            writer: None,
        }
    }

    fn add(&mut self, access: &'a Access, local: Box3, global: Box3) {
        let image = access.mapper.map(&self.input(local, global));
        if access.mode.reads() {
            self.reads.union_with(&image);
            self.readers.push(access);
        }
        if access.mode.writes() {
            self.writes_of_all = match local == global {
                true => image.clone(),
                false => access.mapper.map(&self.input(global, global)),
            };
            self.writes = image;
            self.writer = Some(access);
        }
    }

    fn input(&self, chunk: Box3, global: Box3) -> MapperInput {
        MapperInput { chunk, global, buffer: self.extent }
    }

    /// Whether any chunk may read the buffer.
    pub(crate) fn is_read(&self) -> bool {
        !self.readers.is_empty()
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
    pub(crate) fn reads_of(&self, chunk: Box3, global: Box3) -> Region {
        let input = self.input(chunk, global);
        match self.readers.split_first() {
            Some((first, [])) => first.mapper.map(&input),
            _ => self.readers.iter().fold(Region::empty(), |mut reads, access| {
                reads.union_with(&access.mapper.map(&input));
                reads
            }),
        }
    }

    /// Whether only a user's word stands for what chunks write.
    pub(crate) fn is_written_on_trust(&self) -> bool {
        self.writer.is_some_and(|access| matches!(access.mapper, Mapper::User(_)))
    }

    /// What another chunk of the task writes.
    pub(crate) fn writes_of(&self, chunk: Box3, global: Box3) -> Region {
        let input = self.input(chunk, global);
        self.writer.map_or_else(Region::empty, |access| access.mapper.map(&input))
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
