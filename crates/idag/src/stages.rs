//! Stages: dense copies of single boxes, beside the allocations that back a
//! buffer. Short rows are gathered there (`linearize`), and messages leave from
//! there that would make the host's allocations grow beyond all need (`send`).
//! Owns their life and what they hold; nobody but the next copy or send relies
//! on it.

use celerity_regions::{Box3, Region};

use crate::allocate::create;
use crate::backing::Backing;
use crate::buffer::Identity;
use crate::coherence::copy;
use crate::emit::{Schedule, Stream};
use crate::instruction::{MemoryId, Placement};
use crate::linearize::Stops;
#[cfg(feature = "mutants")]
use crate::mistakes;
use crate::pieces::Boxes;
use crate::staging::Links;

/// A stage that nobody has used at so many synchronisations in a row is given
/// back: more than there are in one step of most programs.
const IDLE_AT_MOST: u32 = 8;

/// The stages of one buffer, which are kept, because programs repeat.
#[derive(Debug, Default)]
pub(crate) struct Stages(Vec<Stage>);

/// An allocation that holds one box and nothing else.
#[derive(Debug)]
struct Stage {
    backing: Backing,
    /// The part of the box that need not be copied again.
    current: Region,
    /// Synchronisations since the last use.
    idle: u32,
}

impl Stages {
    /// Copies `elements` from one allocation to another by way of `stops`. What
    /// a stage has already, since another device asked for it, is not gathered
    /// twice.
    pub(crate) fn copy_through(
        &mut self,
        stream: &mut Stream,
        out: &mut Schedule,
        identity: Identity,
        stops: &Stops,
        (source, target): (&mut Backing, &mut Backing),
        elements: Box3,
    ) {
        let first = stops.iter().rposition(|&memory| self.have(memory, &elements)).unwrap_or(0);
        let mut last: Option<Stage> = None;
        for &memory in &stops[first..] {
            let mut stage = self.take(stream, out, identity, memory, elements);
            let from = last.as_mut().map_or(&mut *source, |stage| &mut stage.backing);
            for part in stage.missing().boxes() {
                copy(stream, out, identity, (&mut *from, &mut stage.backing), *part);
            }
            stage.current = elements.into();
            self.0.extend(last.replace(stage));
        }
        let from = last.as_mut().map_or(source, |stage| &mut stage.backing);
        copy(stream, out, identity, (from, target), elements);
        self.0.extend(last);
    }

    /// The stage on the host that holds `elements`, which the allocations
    /// `sources` of one memory have.
    pub(crate) fn pack(
        &mut self,
        stream: &mut Stream,
        out: &mut Schedule,
        identity: Identity,
        links: &Links,
        sources: &mut [Backing],
        elements: Box3,
    ) -> &mut Backing {
        let mut stage = self.take(stream, out, identity, MemoryId::HOST, elements);
        let missing = stage.missing();
        for source in sources {
            let held: Boxes =
                missing.boxes().iter().flat_map(|part| source.held_in(part)).collect();
            for part in held {
                let ends = (source.side(), stage.backing.side());
                let stops = links.stops(ends, &part, identity.elem_size);
                let ends = (&mut *source, &mut stage.backing);
                self.copy_through(stream, out, identity, &stops, ends, part);
            }
        }
        stage.current = elements.into();
        self.0.push(stage);
        let last = self.0.len() - 1;
        &mut self.0[last].backing
    }

    /// Takes the stage for `elements` out of the list, or a new one.
    fn take(
        &mut self,
        stream: &mut Stream,
        out: &mut Schedule,
        identity: Identity,
        memory: MemoryId,
        elements: Box3,
    ) -> Stage {
        let Some(position) = self.0.iter().position(|stage| stage.is(memory, &elements)) else {
            let backing = create(stream, out, identity, memory, elements);
            return Stage { backing, current: Region::empty(), idle: 0 };
        };
        let mut stage = self.0.swap_remove(position);
        stage.idle = 0;
        #[cfg(feature = "mutants")]
        mistakes::refill(stream, &mut stage.backing);
        stage
    }

    /// Whether there is a stage in `memory` that holds all of `elements`.
    fn have(&self, memory: MemoryId, elements: &Box3) -> bool {
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
    fn is(&self, memory: MemoryId, elements: &Box3) -> bool {
        let Placement { memory: at, extent, .. } = self.backing.placement;
        at == memory && extent == *elements
    }

    /// What has to be copied before somebody reads from it.
    fn missing(&self) -> Region {
        Region::from(self.backing.placement.extent).difference(&self.current)
    }
}
