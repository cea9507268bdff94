//! Second pass: what chunks of a task touch, per buffer: the local one at once, those of other
//! nodes when they are asked for. Pure evaluation of mappers; knows nothing of who holds what.

use celerity_regions::{Box3, Region};
#[cfg(feature = "mutants")]
use celerity_tdag::Mapper;
use celerity_tdag::{BufferAccess, BufferId, MapperInput, StreamHash, Task};
use smallvec::SmallVec;

/// What a task does to one buffer, seen from one node.
#[derive(Debug)]
pub(crate) struct Requirement<'a> {
    pub(crate) buffer: BufferId,
    extent: Box3,
    /// The task's index space.
    global: Box3,
    accesses: SmallVec<[&'a BufferAccess; 2]>,
    /// What the local chunk reads.
    pub(crate) reads: Region,
    /// What the local chunk writes.
    pub(crate) writes: Region,
    /// What all chunks write.
    pub(crate) writes_of_all: Region,
}

/// What a chunk touches of a buffer.
#[derive(Debug)]
pub(crate) enum Images {
    /// The image under the only access, which may read, write or both.
    One(Region),
    /// What several accesses read together, and what they write.
    Several { reads: Region, writes: Region },
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
    for access in task.buffer_accesses() {
        let slot = found.iter().position(|entry| entry.buffer == access.buffer);
        let slot = slot.unwrap_or_else(|| {
            let extent = extent_of(access.buffer);
            found.push(Requirement::untouched(access.buffer, extent, global));
            found.len() - 1
        });
        found[slot].add(access, local);
    }
}

impl<'a> Requirement<'a> {
    fn untouched(buffer: BufferId, extent: Box3, global: Box3) -> Self {
        Self {
            buffer,
            extent,
            global,
            accesses: SmallVec::new(),
            reads: Region::empty(),
            writes: Region::empty(),
            writes_of_all: Region::empty(),
        }
    }

    fn add(&mut self, access: &'a BufferAccess, local: Box3) {
        let image = self.image(access, local);
        if access.mode.reads() {
            self.reads.union_with(&image);
        }
        if access.mode.writes() {
            let of_all = match local == self.global {
                true => image.clone(),
                false => self.image(access, self.global),
            };
            // One access that writes is the rule.
            let is_first = !self.is_written();
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
        }
        self.accesses.push(access);
    }

    /// What a chunk touches through one of the accesses.
    #[inline]
    pub(crate) fn image(&self, access: &BufferAccess, chunk: Box3) -> Region {
        access.mapper.map(&MapperInput { chunk, global: self.global, buffer: self.extent })
    }

    /// What a chunk touches. Each mapper is asked once.
    #[inline]
    pub(crate) fn images(&self, chunk: Box3) -> Images {
        match &self.accesses[..] {
            [only] => Images::One(self.image(only, chunk)),
            several => self.images_of(several, chunk),
        }
    }

    #[inline(never)]
    fn images_of(&self, accesses: &[&BufferAccess], chunk: Box3) -> Images {
        let (mut reads, mut writes) = (Region::empty(), Region::empty());
        for access in accesses {
            let image = self.image(access, chunk);
            if access.mode.reads() {
                reads.union_with(&image);
            }
            if access.mode.writes() {
                writes.union_with(&image);
            }
        }
        Images::Several { reads, writes }
    }

    /// Adds what the local chunk touches to a hash, as [`Images::add_to`] does for other chunks.
    pub(crate) fn add_to(&self, hash: &mut StreamHash) {
        match &self.accesses[..] {
            [only] => hash.image(if only.mode.reads() { &self.reads } else { &self.writes }),
            _ => [&self.reads, &self.writes].into_iter().for_each(|image| hash.image(image)),
        }
    }

    /// Whether any chunk may read the buffer.
    #[inline]
    pub(crate) fn is_read(&self) -> bool {
        self.accesses.iter().any(|access| access.mode.reads())
    }

    /// Whether any chunk may write the buffer.
    #[inline]
    pub(crate) fn is_written(&self) -> bool {
        self.accesses.iter().any(|access| access.mode.writes())
    }

    /// Whether only a user's word stands for what chunks touch.
    #[inline]
    pub(crate) fn is_on_trust(&self) -> bool {
        self.accesses.iter().any(|access| access.is_on_trust())
    }

    /// The same for what they write.
    #[inline]
    pub(crate) fn is_written_on_trust(&self) -> bool {
        self.accesses.iter().any(|access| access.mode.writes() && access.is_on_trust())
    }

    /// A box around all items that read any of `part`.
    pub(crate) fn readers_of(&self, part: &Box3) -> Box3 {
        if part.is_empty() {
            return Box3::EMPTY;
        }
        let readers = self.accesses.iter().filter(|access| access.mode.reads());
        let readers = readers.map(|access| {
            let mapper = &access.mapper;
            #[cfg(feature = "mutants")]
            let mapper =
                celerity_mutants::Mutant::ReadersWithoutBorder.alter(mapper, without_border);
            mapper.items_around(part, &self.extent, &self.global)
        });
        readers.fold(Box3::EMPTY, |all, one| all.bounding(&one))
    }
}

impl Images {
    /// What the chunk reads, of a buffer that is read.
    #[inline]
    pub(crate) fn reads(&self) -> &Region {
        match self {
            Self::One(reads) | Self::Several { reads, .. } => reads,
        }
    }

    /// What the chunk writes, of a buffer that is written.
    #[inline]
    pub(crate) fn writes(&self) -> &Region {
        match self {
            Self::One(writes) | Self::Several { writes, .. } => writes,
        }
    }

    #[inline]
    pub(crate) fn add_to(&self, hash: &mut StreamHash) {
        match self {
            Self::One(image) => hash.image(image),
            Self::Several { reads, writes } => {
                [reads, writes].into_iter().for_each(|image| hash.image(image));
            }
        }
    }
}

/// A mapper that tells nobody of its border.
#[cfg(feature = "mutants")]
fn without_border(mapper: &Mapper) -> &Mapper {
    match mapper {
        Mapper::Neighborhood { .. } | Mapper::Periodic { .. } => &Mapper::OneToOne,
        other => other,
    }
}
