//! One allocation that backs a part of a buffer, and who uses it: the source
//! of all dependencies between instructions that touch memory.

use celerity_regions::{Region, RegionMap};
use celerity_tdag::Readers;

use crate::emit::Waits;
use crate::instruction::{InstructionId, Placement};

/// An allocation with its last writers and the readers since.
#[derive(Debug)]
pub(crate) struct Backing {
    pub(crate) placement: Placement,
    writers: RegionMap<InstructionId>,
    readers: Readers<InstructionId>,
}

impl Backing {
    /// A backing whose memory `alloc` provides.
    pub(crate) fn new(placement: Placement, alloc: InstructionId) -> Self {
        Self {
            placement,
            writers: RegionMap::new(placement.extent, alloc),
            readers: Readers::default(),
        }
    }

    /// What a reader of `region` waits for: its writers.
    pub(crate) fn before_read(&self, region: &Region, waits: &mut Waits) {
        self.writers.for_each_in_region(region, |_, &writer| waits.add(writer));
    }

    /// What a writer of `region` waits for: its writers and their readers, who
    /// are forgotten, since whoever comes next waits for this writer.
    pub(crate) fn before_write(&mut self, region: &Region, waits: &mut Waits) {
        self.writers.for_each_in_region(region, |_, &writer| waits.add(writer));
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::WriteSkipsReaders.is_active() {
            return self.readers.overwrite(region, |_| {});
        }
        self.readers.overwrite(region, |reader| waits.add(reader));
    }

    /// What the end of this allocation waits for: everybody.
    pub(crate) fn before_free(&self, waits: &mut Waits) {
        self.writers.iter().for_each(|(_, &writer)| waits.add(writer));
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::FreedWhileRead.is_active() {
            return;
        }
        self.readers.for_each_in(&self.placement.extent, |reader| waits.add(reader));
    }

    pub(crate) fn note_read(&mut self, reader: InstructionId, region: &Region) {
        self.readers.add(reader, region);
    }

    pub(crate) fn note_write(&mut self, writer: InstructionId, region: &Region) {
        self.writers.update(region, writer);
    }

    /// Merges what the synchronisation point `point` stands in for.
    pub(crate) fn compact(&mut self, point: InstructionId) {
        self.readers.compact(point);
        if self.writers.len() > crate::buffer::COMPACT_ABOVE {
            self.writers.modify_all(|&writer| writer.max(point));
        }
    }
}
