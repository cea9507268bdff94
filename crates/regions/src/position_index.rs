//! Which entries of a list lie around a place. Owns when that is worth an index, and how positions follow as entries come and
//! go; refuses to know what the entries are.

use smallvec::SmallVec;

use crate::box_index::BoxIndex;
use crate::box3::Box3;

/// Positions in a list.
pub type Positions = SmallVec<[usize; 8]>;

/// The positions of a list by the bounds of what is there, once it has more than `FEW` entries. Up to so many, a look at each takes
/// less.
///
/// It follows a list to whose end entries are pushed, and of which the last takes the place of one that is removed.
///
/// ```
/// use celerity_regions::{Box3, PositionIndex};
/// let mut rooms = vec![];
/// let mut by_place = PositionIndex::<1>::default();
/// for (at, name) in [(0, "kitchen"), (4, "hall"), (8, "attic")] {
///     rooms.push((Box3::from_offset_range([at], [4]), name));
///     by_place.pushed(&rooms, |(bounds, _)| *bounds);
/// }
/// let gone = rooms.swap_remove(0);
/// by_place.swap_removed(0, &gone.0, &rooms, |(bounds, _)| *bounds);
/// let at_nine = by_place.get().unwrap().sharing(&Box3::from_offset_range([9], [1])).next();
/// assert_eq!(at_nine.map(|(_, &position)| rooms[position].1), Some("attic"));
/// ```
#[derive(Clone, Debug)]
pub struct PositionIndex<const FEW: usize>(Option<Box<BoxIndex<usize>>>);

impl<const FEW: usize> Default for PositionIndex<FEW> {
    fn default() -> Self {
        Self(None)
    }
}

impl<const FEW: usize> PositionIndex<FEW> {
    /// The positions by place; `None` as long as all are to be looked at. O(1).
    #[must_use]
    #[inline]
    pub fn get(&self) -> Option<&BoxIndex<usize>> {
        self.0.as_deref()
    }

    /// The positions of the entries that share an element with `part`, ascending; `None` as long as all are to be looked at. O(log n)
    /// for each of a few.
    #[must_use]
    #[inline]
    pub fn near(&self, part: &Box3) -> Option<Positions> {
        self.get().map(|by_place| near(by_place, part))
    }

    /// The last entry has been pushed. O(log n), and O(n log n) once it is one more than `FEW`.
    #[inline]
    pub fn pushed<T>(&mut self, list: &[T], bounds: impl Fn(&T) -> Box3) {
        match (&mut self.0, list) {
            (Some(by_place), [.., last]) => by_place.insert(bounds(last), list.len() - 1),
            _ => self.made_anew(list, bounds),
        }
    }

    /// The entry at `position`, whose bounds were `removed`, has been removed, and the last one is there now, unless it was that
    /// itself. O(log n).
    pub fn swap_removed<T>(
        &mut self,
        position: usize,
        removed: &Box3,
        list: &[T],
        bounds: impl Fn(&T) -> Box3,
    ) {
        let Some(by_place) = &mut self.0 else { return };
        by_place.remove(removed, &position);
        if let Some(moved) = list.get(position) {
            let moved = bounds(moved);
            by_place.remove(&moved, &list.len());
            by_place.insert(moved, position);
        }
    }

    /// Forgets what it knows of the list, which has changed in many places or is over. O(1).
    pub fn forget(&mut self) {
        self.0 = None;
    }

    /// Indexes the list as it is, if that is worth it. O(n log n).
    #[inline]
    pub fn made_anew<T>(&mut self, list: &[T], bounds: impl Fn(&T) -> Box3) {
        self.0 = (list.len() > FEW).then(|| Box::new(list.iter().map(bounds).zip(0..).collect()));
    }
}

// Of many; by itself, so that whoever has few is not made larger by it.
#[inline(never)]
fn near(by_place: &BoxIndex<usize>, part: &Box3) -> Positions {
    let mut near: Positions = by_place.sharing(part).map(|(_, &position)| position).collect();
    near.sort_unstable();
    near
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_follow_a_list_that_grows_and_shrinks() {
        let mut state = 9_u64;
        let mut random = move |end: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % end
        };
        let (mut list, mut by_place) = (Vec::<Box3>::new(), PositionIndex::<4>::default());
        let (mut longest, mut is_known) = (0, false);
        for step in 0..if cfg!(miri) { 80 } else { 4000 } {
            let min = [random(30), random(3), 0];
            let part = Box3::new(min, min.map(|at| at + 1 + random(3)));
            match random(if step / 40 % 2 == 0 { 4 } else { 2 }) {
                0 if !list.is_empty() => {
                    let at = random(list.len() as u64) as usize;
                    let removed = list.swap_remove(at);
                    by_place.swap_removed(at, &removed, &list, |part| *part);
                }
                _ => {
                    list.push(part);
                    by_place.pushed(&list, |part| *part);
                }
            }
            if random(200) == 0 {
                list.truncate(6);
                by_place.forget();
                assert!(by_place.get().is_none());
                by_place.made_anew(&list, |part| *part);
            }
            longest = longest.max(list.len());
            let Some(found) = by_place.near(&part) else {
                assert!(list.len() <= 4, "{list:?}");
                continue;
            };
            is_known = true;
            let near = (0..list.len()).filter(|&at| list[at].intersects(&part));
            assert_eq!(found.to_vec(), near.collect::<Vec<_>>());
            assert_eq!(by_place.get().map(BoxIndex::len), Some(list.len()));
        }
        assert!(is_known && longest > 4);
    }
}
