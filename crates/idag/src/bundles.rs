//! Pass: of many small boxes that leave for one node, those that lie in one allocation go in one message, since a message costs
//! about as much as copying 64 KiB does. Owns which boxes go together; refuses to know who sends them.

use celerity_regions::{Box3, Region};

use crate::instruction::Pilot;
use crate::pieces::{Boxes, MOST_APART};

/// Larger boxes, in bytes, go by themselves: they would be copied twice more, and wait for others, for little.
const LARGEST: u64 = 1 << 10;

/// So many allocations are filled for at a time: parts that follow each other mostly lie in one, or each in one of its own.
const MOST_OPEN: usize = 8;

/// Boxes that are to leave together, by the positions of the allocations that they lie in, least recently begun first.
#[derive(Debug, Default)]
pub(crate) struct Bundles {
    open: Vec<(usize, Boxes)>,
}

impl Bundles {
    /// For what leaves of `region`: `None` if each of its boxes is better off alone.
    pub(crate) fn of(region: &Region) -> Option<Self> {
        (region.boxes().len() > MOST_APART).then(Self::default)
    }

    /// Adds `part`, which lies in the allocation at `position`; returns what is enough for a message, with the position of its
    /// allocation: `part` itself, if it is large.
    pub(crate) fn add(
        &mut self,
        position: usize,
        part: Box3,
        elem_size: u64,
    ) -> Option<(usize, Region)> {
        if part.volume().saturating_mul(elem_size) > LARGEST {
            return Some((position, Region::from(part)));
        }
        let known = self.open.iter().rposition(|(at, _)| *at == position);
        let known = known.unwrap_or_else(|| {
            self.open.push((position, Boxes::new()));
            self.open.len() - 1
        });
        self.open[known].1.push(part);
        let is_full = self.open[known].1.len() == Pilot::MOST_BOXES;
        let leaves = if is_full { known } else { 0 };
        (is_full || self.open.len() > MOST_OPEN).then(|| bundled(self.open.remove(leaves)))
    }

    /// What is left, with the positions of the allocations.
    pub(crate) fn into_rest(self) -> impl Iterator<Item = (usize, Region)> {
        let Self { open } = self;
        #[cfg(feature = "mutants")]
        let open = celerity_mutants::Mutant::LastBundleUnsent.alter(open, |_| Vec::new());
        open.into_iter().map(bundled)
    }
}

fn bundled((position, parts): (usize, Boxes)) -> (usize, Region) {
    (position, Region::from_boxes(parts))
}
