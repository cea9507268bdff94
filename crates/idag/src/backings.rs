//! The allocations of a buffer in one memory. Owns how they are found; refuses to know why they are made and freed.

use std::ops::{Index, IndexMut};

use celerity_regions::{Box3, BoxIndex, PositionIndex, Positions};
use smallvec::SmallVec;

use crate::backing::Backing;

/// Allocations that hold different elements: by their positions, which are theirs until one is removed, and by where
/// they are.
#[derive(Debug, Default)]
pub(crate) struct Backings {
    all: SmallVec<[Backing; 1]>,
    by_place: PositionIndex<FEW>,
}

/// If more than one in so many goes, the index is made anew.
const MOST_REMOVED: usize = if cfg!(feature = "mutants") { 1 } else { 16 };

/// Up to so many are looked at one by one, as [`BoxIndex`] does. In the mutation proof, and under Miri, very few: random programs have no more.
const FEW: usize = if cfg!(any(miri, feature = "mutants")) { 2 } else { 128 };

impl Backings {
    pub(crate) fn as_slice(&self) -> &[Backing] {
        &self.all
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [Backing] {
        &mut self.all
    }

    /// Adds an allocation; returns its position.
    pub(crate) fn add(&mut self, backing: Backing) -> usize {
        self.all.push(backing);
        self.by_place.pushed(&self.all, extent_of);
        self.all.len() - 1
    }

    /// Forgets the allocations at `positions`, ascending. Others change places.
    pub(crate) fn remove(&mut self, positions: &[usize]) {
        // Of many, it is less to begin anew.
        let begins_anew = positions.len() > self.all.len() / MOST_REMOVED;
        if begins_anew {
            self.by_place.forget();
        }
        for &position in positions.iter().rev() {
            let removed = self.all.swap_remove(position).placement.extent;
            self.by_place.swap_removed(position, &removed, &self.all, extent_of);
        }
        if begins_anew {
            self.by_place.made_anew(&self.all, extent_of);
        }
    }

    /// The position of the one that holds all of `part`.
    #[inline]
    pub(crate) fn holding(&self, part: &Box3) -> Option<usize> {
        match self.by_place.get() {
            None => self.all.iter().rposition(|backing| backing.holds(part)),
            Some(index) => self.holding_among(index, part),
        }
    }

    // Of many; by itself, so that whoever has few is not made larger by it.
    #[inline(never)]
    fn holding_among(&self, index: &BoxIndex<usize>, part: &Box3) -> Option<usize> {
        // Nothing is everywhere, and so has no place.
        if part.is_empty() {
            return Some(0);
        }
        let mut near = index.sharing(part).map(|(_, &position)| position);
        near.find(|&position| self.all[position].holds(part))
    }

    /// The positions of those that hold some of `part`.
    #[inline]
    pub(crate) fn holding_some_of(&self, part: &Box3) -> Positions {
        let holds_some = |&position: &usize| self.all[position].holds_some_of(part);
        match self.by_place.near(part) {
            None => (0..self.all.len()).filter(holds_some).collect(),
            Some(mut near) => {
                near.retain(|position| holds_some(position));
                near
            }
        }
    }

    /// Visits those that hold some of `part`.
    #[inline]
    pub(crate) fn each_holding_some_of(&mut self, part: &Box3, visit: impl FnMut(&mut Backing)) {
        match self.by_place.get() {
            None => {
                self.all.iter_mut().filter(|backing| backing.holds_some_of(part)).for_each(visit);
            }
            Some(_) => self.each_among_many(part, visit),
        }
    }

    #[inline(never)]
    fn each_among_many(&mut self, part: &Box3, mut visit: impl FnMut(&mut Backing)) {
        self.holding_some_of(part).into_iter().for_each(|position| visit(&mut self.all[position]));
    }

    /// `part`, and a box around what those that pass `joins` hold and that overlaps it.
    #[inline]
    pub(crate) fn around(&self, part: &Box3, joins: impl Fn(&Backing, &Box3) -> bool) -> Box3 {
        let wider = |around: Box3, backing: &Backing| match joins(backing, &around) {
            true => backing.around(&around),
            false => around,
        };
        match self.by_place.near(part) {
            None => self.all.iter().fold(*part, wider),
            Some(near) => near.iter().map(|&at| &self.all[at]).fold(*part, wider),
        }
    }
}

fn extent_of(backing: &Backing) -> Box3 {
    backing.placement.extent
}

impl Index<usize> for Backings {
    type Output = Backing;

    #[inline]
    fn index(&self, position: usize) -> &Backing {
        &self.all[position]
    }
}

impl IndexMut<usize> for Backings {
    #[inline]
    fn index_mut(&mut self, position: usize) -> &mut Backing {
        &mut self.all[position]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruction::{AllocationId, InstructionId, MemoryId, Placement};

    /// An allocation of one element, of many that lie apart.
    fn single(nth: u64) -> Backing {
        let extent = Box3::new(
            [2 * (nth / 10), 2 * (nth % 10), 0],
            [2 * (nth / 10) + 1, 2 * (nth % 10) + 1, 1],
        );
        let placement =
            Placement { allocation: AllocationId::from_index(nth), memory: MemoryId::HOST, extent };
        Backing::new(placement, InstructionId::from_index(0))
    }

    #[test]
    fn many_are_found_as_few_are() {
        const MANY: u64 = FEW as u64 + 20;
        let mut backings = Backings::default();
        for nth in 0..MANY {
            assert_eq!(backings.add(single(nth)), nth as usize);
        }
        assert!(backings.by_place.get().is_some());
        let mut all: Vec<u64> = (0..MANY).collect();
        let check = |backings: &Backings, all: &[u64]| {
            for nth in (0..MANY).step_by(if cfg!(miri) { 31 } else { 1 }) {
                let extent = single(nth).placement.extent;
                let found = backings.holding(&extent);
                assert_eq!(found, all.iter().position(|it| *it == nth), "{nth} of {all:?}");
                let wide = Box3::new(extent.min(), extent.max().map(|end| end + 2));
                let some = backings.holding_some_of(&wide);
                let overlapping = |it: &u64| single(*it).placement.extent.intersects(&wide);
                let expected: Vec<_> = (0..all.len()).filter(|&at| overlapping(&all[at])).collect();
                assert_eq!(some.as_slice(), expected, "{nth} of {all:?}");
                let around = expected
                    .iter()
                    .fold(wide, |around, &at| around.bounding(&single(all[at]).placement.extent));
                assert_eq!(backings.around(&wide, |_, _| true), around);
                assert_eq!(backings.around(&wide, |_, _| false), wide);
            }
        };
        check(&backings, &all);
        // A few at a time, from both ends and from the middle, and then most of them.
        for _ in 0..5 {
            let positions = [0, all.len() / 2, all.len() - 1];
            for &at in positions.iter().rev() {
                all.swap_remove(at);
            }
            backings.remove(&positions);
            assert!(backings.by_place.get().is_some());
            check(&backings, &all);
        }
        let most: Vec<usize> = (2..all.len()).collect();
        backings.remove(&most);
        all.truncate(2);
        assert!(backings.by_place.get().is_none());
        check(&backings, &all);
    }
}
