//! Stages: dense copies of single boxes, beside the allocations that back a
//! buffer. Short rows are gathered there (`gather`), and messages leave from
//! there that would make the host's allocations grow beyond all need (`send`).
//! Owns their life and what they hold; nobody but the next copy or send relies
//! on it. Refuses to know how they are filled.

use celerity_regions::{Box3, Region};

use crate::backing::Backing;
use crate::instruction::{MemoryId, Placement};

/// A stage that nobody has used at so many synchronisations in a row is given
/// back: more than there are in one step of most programs.
const IDLE_AT_MOST: u32 = 8;

/// The stages of one buffer, which are kept, because programs repeat.
#[derive(Debug, Default)]
pub(crate) struct Stages(Vec<Stage>);

/// An allocation that holds one box and nothing else.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) backing: Backing,
    /// The part of the box that need not be copied again.
    current: Region,
    /// Synchronisations since the last use.
    idle: u32,
}

impl Stages {
    /// Takes the stage for `elements` out of the list, if there is one.
    pub(crate) fn take(&mut self, memory: MemoryId, elements: &Box3) -> Option<Stage> {
        let position = self.0.iter().position(|stage| stage.is(memory, elements))?;
        let mut stage = self.0.swap_remove(position);
        stage.idle = 0;
        Some(stage)
    }

    /// Puts a stage into the list, which has all of its box from now on.
    pub(crate) fn put(&mut self, mut stage: Stage) -> &mut Backing {
        stage.current = stage.backing.placement.extent.into();
        self.0.push(stage);
        let last = self.0.len() - 1;
        &mut self.0[last].backing
    }

    /// Whether there is a stage in `memory` that holds all of `elements`.
    pub(crate) fn have(&self, memory: MemoryId, elements: &Box3) -> bool {
        self.0.iter().any(|stage| stage.is(memory, elements) && stage.missing().is_empty())
    }

    /// Notes that there is, or will be, a newer version of `region`.
    pub(crate) fn outdate(&mut self, region: &Region) {
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::StageStaysCurrent.is_active() {
            return;
        }
        self.0.iter_mut().for_each(|stage| stage.current.subtract(region));
    }

    /// Notes a synchronisation, and hands out what has not been used for long.
    pub(crate) fn retire(&mut self) -> impl Iterator<Item = Backing> {
        self.0.iter_mut().for_each(|stage| stage.idle += 1);
        let retired = self.0.extract_if(.., |stage| stage.idle > IDLE_AT_MOST);
        retired.map(|stage| stage.backing)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn backings(&self) -> impl Iterator<Item = &Backing> {
        self.0.iter().map(|stage| &stage.backing)
    }

    pub(crate) fn backings_mut(&mut self) -> impl Iterator<Item = &mut Backing> {
        self.0.iter_mut().map(|stage| &mut stage.backing)
    }
}

impl Stage {
    /// A new one, which has nothing of its box yet.
    pub(crate) fn new(backing: Backing) -> Self {
        Self { backing, current: Region::empty(), idle: 0 }
    }

    fn is(&self, memory: MemoryId, elements: &Box3) -> bool {
        let Placement { memory: at, extent, .. } = self.backing.placement;
        at == memory && extent == *elements
    }

    /// What has to be copied before somebody reads from it.
    pub(crate) fn missing(&self) -> Region {
        Region::from(self.backing.placement.extent).difference(&self.current)
    }
}
