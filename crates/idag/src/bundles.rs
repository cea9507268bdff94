//! Pass: of many small boxes that leave for one node, those that lie in one allocation go in one message, since a message costs
//! about as much as copying 64 KiB does. Owns which boxes go together; refuses to know who sends them.

use celerity_regions::{Box3, Region};

use crate::instruction::Pilot;
use crate::pieces::{Boxes, MOST_APART};

/// Larger boxes, in bytes, go by themselves: they would be copied twice more, and wait for others, for little.
const LARGEST: u64 = 1 << 10;

/// So many allocations are filled for at a time: parts that follow each other mostly lie in one, or each in one of its own.
const MOST_OPEN: usize = 8;

/// What leaves together, and the position of the allocation that it lies in.
pub(crate) type Bundle = (usize, Region);

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

    /// Adds `part`, which lies in the allocation at `position`; returns what is enough for a message: `part` itself, if it is large.
    pub(crate) fn add(&mut self, position: usize, part: Box3, elem_size: u64) -> Option<Bundle> {
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

    /// What is left.
    pub(crate) fn into_rest(self) -> impl Iterator<Item = Bundle> {
        let Self { open } = self;
        #[cfg(feature = "mutants")]
        let open = celerity_mutants::Mutant::LastBundleUnsent.alter(open, |_| Vec::new());
        open.into_iter().map(bundled)
    }
}

/// A region in as many parts as it takes messages: together, boxes of different producers may be more boxes than before.
pub(crate) fn messages(region: &Region) -> impl Iterator<Item = Region> {
    let parts = region.boxes().chunks(Pilot::MOST_BOXES);
    parts.map(|boxes| Region::from_boxes(boxes.iter().copied()))
}

fn bundled((position, parts): (usize, Boxes)) -> Bundle {
    (position, Region::from_boxes(parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(row: u64, rows: u64, column: u64) -> Box3 {
        Box3::new([row, column, 0], [row + rows, column + 1, 1])
    }

    #[test]
    fn what_is_enough_for_a_message_leaves() {
        let mut bundles = Bundles::default();
        for row in 0..63 {
            assert_eq!(bundles.add(3, at(2 * row, 1, 0), 8), None);
        }
        let large = at(200, 129, 0);
        assert_eq!(bundles.add(3, large, 8), Some((3, large.into())));
        let (position, region) = bundles.add(3, at(126, 1, 0), 8).unwrap();
        assert_eq!((position, region.boxes().len()), (3, 64));
        assert_eq!(bundles.into_rest().count(), 0);
    }

    #[test]
    fn what_lies_in_many_allocations_leaves_as_it_comes() {
        let mut bundles = Bundles::default();
        let leaving: Vec<_> =
            (0..20).filter_map(|nth| bundles.add(nth, at(9, 1, nth as u64), 1)).collect();
        assert_eq!(leaving.len(), 20 - MOST_OPEN);
        let all = leaving.into_iter().chain(bundles.into_rest());
        assert!(all.eq((0..20).map(|nth| (nth, at(9, 1, nth as u64).into()))));
    }

    #[test]
    fn boxes_that_cut_each_other_leave_in_several_messages() {
        let mut bundles = Bundles::default();
        assert_eq!(bundles.add(0, at(0, 127, 0), 1), None);
        let teeth = (0..63).filter_map(|nth| bundles.add(0, at(2 * nth + 1, 1, 1), 1));
        let (_, comb) = teeth.last().unwrap();
        assert_eq!(comb.boxes().len(), 127, "rows with a tooth, and those between");
        let parts: Vec<_> = messages(&comb).collect();
        assert_eq!(parts.iter().map(|part| part.boxes().len()).collect::<Vec<_>>(), [64, 63]);
        assert_eq!(Region::from_boxes(parts.iter().flat_map(Region::boxes).copied()), comb);
    }
}
