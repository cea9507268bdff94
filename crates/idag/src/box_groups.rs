//! Boxes that are joined where they meet. Owns how those that meet are found among many; refuses to know what they are.

use std::cmp::Reverse;

use celerity_regions::{Box3, PositionIndex, separating_dimension};
use smallvec::SmallVec;

/// Joins things whose bounds `meet`, as [`BoxGroups`] do, where all of them are known: `join` gets two and makes the first one
/// both. To meet, bounds must share a coordinate in every dimension. O(n log n) for each of a few rounds, where only few
/// lie side by side along the dimension that separates them best.
pub(crate) fn join_all<T>(
    mut groups: Vec<(Box3, T)>,
    meet: impl Fn(&Box3, &Box3) -> bool,
    join: impl Fn(&mut (Box3, T), (Box3, T)),
) -> Vec<(Box3, T)> {
    loop {
        let dim = separating_dimension(groups.iter().map(|(bounds, _)| bounds));
        let before = groups.len();
        groups.sort_by_key(|(bounds, _)| (bounds.min()[dim], Reverse(bounds.max()[dim])));
        // What lies wholly before the next one meets none of those to come in this round.
        let (mut open, mut closed): (Vec<(Box3, T)>, _) = (Vec::new(), Vec::with_capacity(before));
        for mut next in groups {
            let mut at = 0;
            while let Some((bounds, _)) = open.get(at) {
                if bounds.max()[dim] < next.0.min()[dim] {
                    closed.push(open.swap_remove(at));
                } else if meet(bounds, &next.0) {
                    let first = std::mem::replace(&mut next, open.swap_remove(at));
                    join(&mut next, first);
                    at = 0;
                } else {
                    at += 1;
                }
            }
            open.push(next);
        }
        closed.append(&mut open);
        // What has grown may meet others.
        if closed.len() == before {
            return closed;
        }
        groups = closed;
    }
}

/// Things with bounds, of which those are joined whose bounds meet, until none do.
pub(crate) struct BoxGroups<T, M> {
    /// Whether two bounds meet: if so, they share an element or a face.
    meet: M,
    groups: SmallVec<[(Box3, T); 3]>,
    by_place: PositionIndex<FEW>,
}

/// Up to so many groups, a look at all for each takes less than to bring them into an index: a thousand pieces took half as long
/// to be sent.
pub(crate) const FEW: usize = if cfg!(any(miri, feature = "mutants")) { 2 } else { 4096 };

impl<T, M: Fn(&Box3, &Box3) -> bool> BoxGroups<T, M> {
    pub(crate) fn new(meet: M) -> Self {
        Self { meet, groups: SmallVec::new(), by_place: PositionIndex::default() }
    }

    /// Whether one of the groups has bounds around `part`.
    #[inline]
    pub(crate) fn hold(&self, part: &Box3) -> bool {
        match self.by_place.get() {
            None => self.groups.iter().any(|(bounds, _)| bounds.contains(part)),
            Some(by_place) => by_place.sharing(part).any(|(bounds, _)| bounds.contains(part)),
        }
    }

    /// Adds something, joined with all groups that it meets, and that it meets when it is joined.
    pub(crate) fn add(&mut self, mut bounds: Box3, mut value: T, join: impl Fn(&mut T, T)) {
        self.take_in(&mut bounds, &mut value, join);
        self.add_apart(bounds, value);
    }

    /// Takes out all groups that `bounds` meet, and that they meet when these are joined with them.
    pub(crate) fn take_in(&mut self, bounds: &mut Box3, value: &mut T, join: impl Fn(&mut T, T)) {
        while let Some(near) = self.near(bounds) {
            let (other, of_other) = self.take(near);
            *bounds = bounds.bounding(&other);
            join(value, of_other);
        }
    }

    /// Adds what meets none of the groups.
    pub(crate) fn add_apart(&mut self, bounds: Box3, value: T) {
        self.groups.push((bounds, value));
        self.by_place.pushed(&self.groups, |(bounds, _)| *bounds);
    }

    /// The position of a group whose bounds meet these.
    #[inline]
    fn near(&self, bounds: &Box3) -> Option<usize> {
        match self.by_place.get() {
            None => self.groups.iter().position(|(other, _)| (self.meet)(other, bounds)),
            Some(by_place) => {
                let mut near = by_place.touching(bounds);
                near.find_map(|(other, at)| (self.meet)(other, bounds).then_some(*at))
            }
        }
    }

    /// Takes out the group at a position, which the last one gets.
    fn take(&mut self, at: usize) -> (Box3, T) {
        let taken = self.groups.swap_remove(at);
        self.by_place.swap_removed(at, &taken.0, &self.groups, |(bounds, _)| *bounds);
        taken
    }

    pub(crate) fn into_groups(self) -> impl Iterator<Item = (Box3, T)> {
        self.groups.into_iter()
    }
}
