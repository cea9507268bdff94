//! One allocation that backs a part of a buffer, and who uses it: the source
//! of all dependencies between instructions that touch memory.

use celerity_regions::{Box3, Region, RegionMap};
use celerity_tdag::{BufferId, Readers};

use crate::emit::Waits;
use crate::instruction::{InstructionId, Placement};
use crate::linearize::CopyEnd;
use crate::pieces::Boxes;

/// What instructions say of a buffer and its elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) buffer: BufferId,
    /// Bytes per element.
    pub(crate) elem_size: u64,
    /// Alignment of an element in bytes.
    pub(crate) elem_align: u64,
}

/// What of an allocation that grows is there already.
#[derive(Debug)]
struct Growth {
    /// What the buffer has here and in no other allocation of this memory.
    held: Region,
    /// What there is memory for: `held`, and what has moved elsewhere since.
    provided: Region,
}

/// An allocation with its last writers and the readers since.
#[derive(Debug)]
pub(crate) struct Backing {
    pub(crate) placement: Placement,
    /// How often what it holds has moved because more was needed.
    pub(crate) moves: u32,
    growth: Option<Box<Growth>>,
    writers: RegionMap<InstructionId>,
    readers: Readers<InstructionId>,
}

impl Backing {
    /// A backing whose memory `alloc` provides.
    pub(crate) fn new(placement: Placement, alloc: InstructionId) -> Self {
        Self {
            placement,
            moves: 0,
            growth: None,
            writers: RegionMap::new(placement.extent, alloc),
            readers: Readers::default(),
        }
    }

    /// A backing that holds nothing yet, of addresses that `reserve` provides.
    pub(crate) fn growing(placement: Placement, reserve: InstructionId) -> Self {
        let (held, provided) = (Region::empty(), Region::empty());
        let growth = Growth { held, provided };
        Self { growth: Some(Box::new(growth)), ..Self::new(placement, reserve) }
    }

    /// Where it lies, and which elements it holds in which order: what decides how they are
    /// copied.
    pub(crate) fn side(&self) -> CopyEnd<'_> {
        (self.placement.memory, &self.placement.extent)
    }

    /// Whether more of its extent can be made available.
    pub(crate) fn grows(&self) -> bool {
        self.growth.is_some()
    }

    /// Whether it holds all of `part`.
    #[inline]
    pub(crate) fn holds(&self, part: &Box3) -> bool {
        match &self.growth {
            None => self.placement.extent.contains(part),
            Some(growth) => growth.held.contains_box(part),
        }
    }

    /// Whether it holds some of `part`.
    #[inline]
    pub(crate) fn holds_some_of(&self, part: &Box3) -> bool {
        self.placement.extent.intersects(part)
            && self.growth.as_ref().is_none_or(|growth| growth.held.intersects_box(part))
    }

    /// What it holds of `part`.
    #[inline]
    pub(crate) fn held_in(&self, part: &Box3) -> Boxes {
        let common = self.placement.extent.intersection(part);
        match &self.growth {
            _ if common.is_empty() => Boxes::new(),
            None => Boxes::from_iter([common]),
            Some(growth) => growth.held.intersection_box(part).boxes().into(),
        }
    }

    /// A box around everything that it holds and that overlaps `part`, and around `part`.
    #[inline]
    pub(crate) fn around(&self, part: &Box3) -> Box3 {
        let held = match &self.growth {
            None => std::slice::from_ref(&self.placement.extent),
            Some(growth) => growth.held.boxes(),
        };
        let overlapping = held.iter().filter(|held| held.intersects(part));
        overlapping.fold(*part, |around, held| around.bounding(held))
    }

    /// Whether it holds nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.growth.as_ref().is_some_and(|growth| growth.held.is_empty())
    }

    /// Holds all of `part` from now on; returns what there is no memory for yet.
    pub(crate) fn hold(&mut self, part: &Box3) -> Region {
        let Some(growth) = &mut self.growth else { return Region::empty() };
        growth.held.union_box(part);
        Region::from(*part).difference(&growth.provided)
    }

    /// Notes that `provider` has made `region` available, too.
    pub(crate) fn provide(&mut self, region: &Region, provider: InstructionId) {
        if let Some(growth) = &mut self.growth {
            growth.provided.union_with(region);
        }
        self.writers.update(region, provider);
    }

    /// Notes that `part` has moved to another allocation.
    pub(crate) fn give_up(&mut self, part: &Box3) {
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::MovedStaysHeld.is_active() {
            return;
        }
        if let Some(growth) = &mut self.growth {
            growth.held.subtract(&Region::from(*part));
        }
    }

    /// What a reader of `region` waits for: its writers.
    pub(crate) fn before_read(&self, region: &Region, waits: &mut Waits) {
        self.writers.for_each_in_region(region, |_, &writer| waits.add(writer));
    }

    /// What a writer of `region` waits for: its readers, and the writers of what nobody has
    /// read. Readers are forgotten, since whoever comes next waits for this writer.
    pub(crate) fn before_write(&mut self, region: &Region, waits: &mut Waits) {
        let stand_ins = self.readers.stand_ins();
        self.writers.for_each_in_region(region, |part, &writer| {
            if !stand_ins.include(writer, &part, waits.point()) {
                waits.add(writer);
            }
        });
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::WriteSkipsReaders.is_active() {
            return self.readers.overwrite(region, |_| {});
        }
        self.readers.overwrite(region, |reader| waits.add(reader));
    }

    /// What the end of this allocation waits for: everybody, though not for who is waited for
    /// by others.
    pub(crate) fn before_free(&self, waits: &mut Waits) {
        let stand_ins = self.readers.stand_ins();
        for (part, &writer) in self.writers.iter() {
            if !stand_ins.include(writer, &part, waits.point()) {
                waits.add(writer);
            }
        }
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
        self.writers.compact(|&writer| writer.max(point));
    }
}
