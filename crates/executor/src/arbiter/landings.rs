//! The receives of one transfer. Owns how the one is found that a message is for, where each of thousands of elements has an allocation
//! of its own; refuses to know of other transfers.

use celerity_cdag::NodeId;
use celerity_idag::{Inbound, InstructionId, Pilot};
use celerity_regions::{Box3, PositionIndex, Positions, Region};
use smallvec::SmallVec;

use super::ArbiterError;
use super::outstanding::Outstanding;

/// A receive or split receive that has begun.
#[derive(Debug)]
pub(super) struct Landing {
    /// The receive to complete; `None` if it is split.
    pub(super) receive: Option<InstructionId>,
    pub(super) inbound: Inbound,
    /// What no pilot has announced yet.
    pub(super) unannounced: Outstanding,
    /// What has not arrived yet.
    pub(super) missing: Outstanding,
}

/// Receives of different elements.
#[derive(Debug, Default)]
pub(super) struct Landings {
    all: SmallVec<[Landing; 1]>,
    by_place: PositionIndex<FEW>,
}

/// Up to so many receives are looked at one by one. In tests, few, as those have.
const FEW: usize = if cfg!(any(test, miri, feature = "mutants")) { 1 } else { 32 };

impl Landings {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Landing> {
        self.all.iter()
    }

    pub(super) fn at(&mut self, position: usize) -> &mut Landing {
        &mut self.all[position]
    }

    /// Adds one, of elements that no other is for.
    pub(super) fn push(&mut self, landing: Landing) {
        self.all.push(landing);
        self.by_place.pushed(&self.all, Landing::bounds);
    }

    /// The position of the one that `elements` are for: if they have come before, one that has had them.
    pub(super) fn of(&self, elements: &Box3) -> Option<usize> {
        let expects = |&at: &usize| self.all[at].unannounced.intersects_box(elements);
        let is_for = |&at: &usize| self.all[at].inbound.region.intersects_box(elements);
        let near = self.near(elements);
        near.iter().copied().find(expects).or_else(|| near.iter().copied().find(is_for))
    }

    /// [The one](Self::of) for each box of a region.
    pub(super) fn of_all(&self, region: &Region) -> SmallVec<[Option<usize>; 1]> {
        region.boxes().iter().map(|part| self.of(part)).collect()
    }

    /// Whether some of `region` is expected already.
    pub(super) fn expect_some_of(&self, region: &Region) -> bool {
        let near = self.near(&region.bounding_box());
        near.iter().any(|&at| self.all[at].inbound.region.intersects(region))
    }

    /// Counts `arrived` in. `complete` gets the receives that have all, which are forgotten. A split receive stays until its transfer is closed:
    /// awaits may begin after all has arrived.
    pub(super) fn land(&mut self, arrived: &Box3, mut complete: impl FnMut(InstructionId)) {
        // From the last one on, as the last one takes the place of what is removed.
        for at in self.near(arrived).into_iter().rev() {
            let landing = &mut self.all[at];
            landing.missing.take(arrived);
            if let Some(receive) = landing.receive.filter(|_| landing.missing.is_empty()) {
                complete(receive);
                self.remove(at);
            }
        }
    }

    /// The positions of those that some of `part` may be for, ascending.
    fn near(&self, part: &Box3) -> Positions {
        self.by_place.near(part).unwrap_or_else(|| (0..self.all.len()).collect())
    }

    fn remove(&mut self, at: usize) {
        let removed = self.all.swap_remove(at).bounds();
        self.by_place.swap_removed(at, &removed, &self.all, Landing::bounds);
    }
}

impl Landing {
    fn bounds(&self) -> Box3 {
        self.inbound.region.bounding_box()
    }

    /// Takes notice of a pilot for `elements`, which some of what is expected here is.
    pub(super) fn announce(
        &mut self,
        from: NodeId,
        pilot: &Pilot,
        elements: &Box3,
    ) -> Result<(), ArbiterError> {
        let (&Pilot { message, transfer, .. }, elements) = (pilot, *elements);
        if !self.unannounced.contains_box(&elements) {
            if self.inbound.region.contains_box(&elements) {
                return Err(ArbiterError::Duplicate { from, transfer, elements, message });
            }
            let expected = Box::new(self.inbound.region.clone());
            return Err(ArbiterError::OutsideRegion { from, transfer, elements, expected });
        }
        self.unannounced.take(&elements);
        Ok(())
    }
}
