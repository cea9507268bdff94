//! Everything a node knows about one buffer: which memories hold which
//! version of which part (instruction-graph preprint, §3.3), in which allocations.

use std::sync::Arc;

use celerity_cdag::TransferId;
use celerity_regions::{Box3, Region, RegionMap};
use celerity_tdag::{BufferId, BufferInfo, BufferTable};
use smallvec::SmallVec;

use crate::anticipation::Anticipation;
use crate::backing::{Backing, Identity};
use crate::backings::Backings;
use crate::instruction::{InstructionId, MemoryId, Placement};
#[cfg(feature = "mutants")]
use crate::mistakes;
use crate::stages::Stages;
use crate::version::{MemorySet, Version};

/// Data that an await-push command has announced and no command has used yet.
#[derive(Debug)]
pub(crate) struct AnnouncedData {
    pub(crate) transfer: TransferId,
    pub(crate) region: Region,
}

/// One buffer on one node.
#[derive(Debug)]
pub(crate) struct BufferState {
    pub(crate) id: BufferId,
    pub(crate) name: Arc<str>,
    pub(crate) extent: Box3,
    pub(crate) elem_size: u64,
    pub(crate) elem_align: u64,
    pub(crate) versions: RegionMap<Version>,
    pub(crate) awaited: SmallVec<[AnnouncedData; 1]>,
    /// Dense copies of boxes that are on their way.
    pub(crate) stages: Stages,
    /// Per memory: allocations that do not overlap.
    memories: Box<[Backings]>,
    /// What commands that are held back will need in one piece.
    pub(crate) anticipated: Anticipation,
    /// Per memory: what the allocation that grows has given up, and still contains as it
    /// is now. Almost always none.
    left_behind: SmallVec<[(MemoryId, Region); 1]>,
    /// How often what any of the allocations holds has moved, the most.
    pub(crate) most_moves: u32,
    /// With more versions than so many, it is worth a look which of them are outdated.
    many_versions: usize,
}

/// Fewer versions cost less than to look for those that are outdated.
const MANY_VERSIONS: usize = 256;

/// The node's buffers by id.
#[derive(Debug, Default)]
pub(crate) struct Buffers(pub(crate) BufferTable<BufferState>);

impl Buffers {
    pub(crate) fn get(&self, buffer: BufferId) -> &BufferState {
        self.0.get(buffer).unwrap_or_else(|| panic!("{buffer} is not registered"))
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, buffer: BufferId) -> &mut BufferState {
        self.0.get_mut(buffer).unwrap_or_else(|| panic!("{buffer} is not registered"))
    }
}

impl BufferState {
    pub(crate) fn new(info: &BufferInfo, memories: usize, epoch: InstructionId) -> Self {
        Self {
            id: info.id,
            name: info.name.clone(),
            extent: info.extent,
            elem_size: info.elem_size,
            elem_align: info.elem_align,
            versions: RegionMap::new(info.extent, Version::void(epoch)),
            awaited: SmallVec::new(),
            stages: Stages::default(),
            memories: (0..memories).map(|_| Backings::default()).collect(),
            anticipated: Anticipation::default(),
            left_behind: SmallVec::new(),
            most_moves: 0,
            many_versions: MANY_VERSIONS,
        }
    }

    pub(crate) fn identity(&self) -> Identity {
        let Self { id, elem_size, elem_align, .. } = *self;
        Identity { buffer: id, elem_size, elem_align }
    }

    /// Initial contents of the whole buffer, provided before `epoch`.
    pub(crate) fn initialize(&mut self, placement: Placement, epoch: InstructionId) {
        let version = Version::produced(epoch, placement.memory);
        self.add_backing(placement.memory, Backing::new(placement, epoch));
        self.versions.update_box(&self.extent.clone(), version);
    }

    pub(crate) fn backings(&self, memory: MemoryId) -> &Backings {
        &self.memories[memory.slot()]
    }

    pub(crate) fn backings_mut(&mut self, memory: MemoryId) -> &mut Backings {
        &mut self.memories[memory.slot()]
    }

    /// Adds an allocation; returns its position among those in `memory`.
    pub(crate) fn add_backing(&mut self, memory: MemoryId, backing: Backing) -> usize {
        self.memories[memory.slot()].add(backing)
    }

    /// The allocations in two different memories, and what is on its way.
    pub(crate) fn two_memories(
        &mut self,
        first: MemoryId,
        second: MemoryId,
    ) -> (&mut Backings, &mut Backings, &mut Stages) {
        match self.memories.get_disjoint_mut([first.slot(), second.slot()]) {
            Ok([first, second]) => (first, second, &mut self.stages),
            Err(_) => unreachable!("{first} and {second} are two memories of this node"),
        }
    }

    /// The allocations in one memory, and what is on its way.
    pub(crate) fn memory_and_stages(&mut self, memory: MemoryId) -> (&mut Backings, &mut Stages) {
        (&mut self.memories[memory.slot()], &mut self.stages)
    }

    /// All allocations in all memories.
    pub(crate) fn all_backings(&self) -> impl Iterator<Item = &Backing> {
        self.memories.iter().flat_map(Backings::as_slice).chain(self.stages.backings())
    }

    /// The position of the allocation that holds all of `part`.
    #[inline]
    pub(crate) fn backing_of(&self, memory: MemoryId, part: &Box3) -> Option<usize> {
        self.backings(memory).holding(part)
    }

    /// The allocation that holds all of `part`, which must have been allocated.
    pub(crate) fn backing(&mut self, memory: MemoryId, part: &Box3) -> &mut Backing {
        let Some(position) = self.backing_of(memory, part) else {
            unreachable!("{part} of {} is not allocated in {memory}", self.id)
        };
        &mut self.memories[memory.slot()][position]
    }

    /// Notes that another node has written `region`, and will send it for
    /// `transfer`: what this node holds of it is not worth keeping.
    pub(crate) fn expect(&mut self, transfer: TransferId, region: &Region) {
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::ExpectedStaysHeld.is_active() {
            return self.awaited.push(AnnouncedData { transfer, region: region.clone() });
        }
        self.outdate_copies(region);
        self.versions.modify(region, |version| version.outdated());
        self.awaited.push(AnnouncedData { transfer, region: region.clone() });
    }

    /// Whether there are so many versions that those that other nodes have overwritten should go.
    #[inline]
    pub(crate) fn has_many_versions(&self) -> bool {
        self.versions.len() > self.many_versions
    }

    /// Notes that other nodes have written `region`, before `point` or without it: it is nowhere here until they send it.
    /// There are many versions only once there are twice as many.
    pub(crate) fn overwrite_elsewhere(&mut self, region: &Region, point: InstructionId) {
        self.outdate_copies(region);
        self.versions.update(region, Version::elsewhere(point));
        self.many_versions = (2 * self.versions.len()).max(MANY_VERSIONS);
    }

    /// Notes that `memories` have received copies of what they lacked of `region`.
    pub(crate) fn note_current(&mut self, region: &Region, memories: MemorySet) {
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::CopyRepeated.is_active() {
            return;
        }
        self.versions.modify(region, |version| version.also_in(memories));
    }

    /// Notes that `producer` has written a new version of `region` to `memory`.
    pub(crate) fn note_production(
        &mut self,
        region: &Region,
        producer: InstructionId,
        memory: MemoryId,
    ) {
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::HoldersOutliveWrite.is_active() {
            let version = Version::produced(producer, memory);
            return mistakes::produce(&mut self.versions, region, version);
        }
        self.outdate_copies(region);
        self.versions.update(region, Version::produced(producer, memory));
    }

    /// Notes that the allocation in `memory` that grows gives up what it has of `part`. What
    /// is current there will be there when it takes the part back.
    pub(crate) fn leave_behind(&mut self, memory: MemoryId, part: &Box3) {
        let current = self.region_current(memory, part);
        match self.left_behind.iter_mut().find(|(at, _)| *at == memory) {
            Some((_, left)) => left.union_with(&current),
            None => self.left_behind.push((memory, current)),
        }
    }

    /// What the allocation in `memory` that grows has left behind.
    pub(crate) fn left_behind(&self, memory: MemoryId) -> Option<&Region> {
        self.left_behind.iter().find(|(at, _)| *at == memory).map(|(_, left)| left)
    }

    /// Notes that the allocation in `memory` that grows has taken `part` back, or is gone.
    pub(crate) fn take_back(&mut self, memory: MemoryId, part: &Box3) {
        self.forget_left_behind(&Region::from(*part), |at| at == memory);
    }

    /// What of `part` is current in `memory`, and not void.
    pub(crate) fn region_current(&self, memory: MemoryId, part: &Box3) -> Region {
        let current = |version: &Version| version.holders.contains(memory) && !version.is_void();
        self.versions.region_where(part, current)
    }

    /// Forgets copies of `region` that no version map tells of.
    fn outdate_copies(&mut self, region: &Region) {
        self.stages.outdate(region);
        self.forget_left_behind(region, |_| true);
    }

    fn forget_left_behind(&mut self, region: &Region, concerns: impl Fn(MemoryId) -> bool) {
        self.left_behind.retain(|(at, left)| {
            if concerns(*at) {
                left.subtract(region);
            }
            !left.is_empty()
        });
    }

    /// Merges what the synchronisation point `point` stands in for.
    pub(crate) fn compact(&mut self, point: InstructionId) {
        let backings = self.memories.iter_mut().flat_map(Backings::as_mut_slice);
        for backing in backings.chain(self.stages.backings_mut()) {
            backing.compact(point);
        }
        self.versions
            .compact(|version| Version { producer: version.producer.max(point), ..*version });
    }
}
