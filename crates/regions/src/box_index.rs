//! Boxes by where they are.
//!
//! A list as long as they are few. From [`FEW`] boxes on, those that come all at once are sorted into a [`Sorted`] list, if they lie apart along a
//! dimension; an R*-tree if not, or once boxes come or go. Refuses to know what boxes are for, and to keep
//! apart those that share elements.

use rstar::{RTree, SelectionFunction};
use smallvec::SmallVec;

use crate::box3::Box3;
use crate::entry::Entry;
use crate::search::{Exactly, LyingInside, Sharing, Touching, load};
use crate::sorted::Sorted;

/// Boxes, each with a value, of which those around a place are found without a look at all others.
///
/// ```
/// use celerity_regions::{Box3, BoxIndex};
/// let mut rooms = BoxIndex::default();
/// rooms.insert(Box3::from_range([4, 4]), "kitchen");
/// rooms.insert(Box3::from_offset_range([0, 4], [4, 2]), "hall");
/// let table = Box3::from_offset_range([1, 2], [1, 3]);
/// assert_eq!(rooms.sharing(&table).count(), 2);
/// assert!(rooms.remove(&Box3::from_range([4, 4]), &"kitchen"));
/// assert!(rooms.sharing(&table).eq([(&Box3::from_offset_range([0, 4], [4, 2]), &"hall")]));
/// ```
#[derive(Clone, Debug)]
pub struct BoxIndex<V>(Form<V>);

#[derive(Clone, Debug)]
enum Form<V> {
    List(SmallVec<[Entry<V>; 1]>),
    Sorted(Box<Sorted<V>>),
    Tree(Box<RTree<Entry<V>>>),
}

/// Up to so many boxes, a look at each takes less than a tree does, where boxes come and go as often as they are looked for:
/// with 16 for 128, the instruction graphs of the benchmarks whose buffers have some hundred allocations took 1.2 to 1.5 times the
/// instructions. In the mutation proof, and under Miri, very few, as random programs have.
const FEW: usize = if cfg!(any(miri, feature = "mutants")) { 2 } else { 128 };

impl<V> Default for BoxIndex<V> {
    fn default() -> Self {
        Self(Form::List(SmallVec::new()))
    }
}

impl<V> FromIterator<(Box3, V)> for BoxIndex<V> {
    /// All at once, which takes less than one after the other, and without those that have no elements. O(n log n).
    fn from_iter<I: IntoIterator<Item = (Box3, V)>>(boxes: I) -> Self {
        let boxes = boxes.into_iter().filter(|(extent, _)| !extent.is_empty());
        let entries = boxes.map(|(extent, value)| Entry { extent, value });
        let list: SmallVec<[Entry<V>; 1]> = entries.collect();
        if list.len() <= FEW {
            return Self(Form::List(list));
        }
        Self(match Sorted::of(list.into_vec()) {
            Ok(sorted) => Form::Sorted(Box::new(sorted)),
            Err(entries) => Form::Tree(Box::new(load(entries))),
        })
    }
}

impl<V> BoxIndex<V> {
    /// How many boxes there are. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Form::List(list) => list.len(),
            Form::Sorted(sorted) => sorted.entries().len(),
            Form::Tree(tree) => tree.size(),
        }
    }

    /// Whether there are none. O(1).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All boxes, in no order. O(n).
    pub fn iter(&self) -> impl Iterator<Item = (&Box3, &V)> {
        let (list, tree): (&[Entry<V>], _) = match &self.0 {
            Form::List(list) => (list, None),
            Form::Sorted(sorted) => (sorted.entries(), None),
            Form::Tree(tree) => (&[], Some(tree.iter())),
        };
        list.iter().chain(tree.into_iter().flatten()).map(|entry| (&entry.extent, &entry.value))
    }

    /// Adds a box. One without elements has no place, and is not added. O(log n).
    #[inline]
    pub fn insert(&mut self, at: Box3, value: V) {
        if at.is_empty() {
            return;
        }
        let entry = Entry { extent: at, value };
        match &mut self.0 {
            Form::List(list) if list.len() < FEW => list.push(entry),
            Form::List(_) | Form::Sorted(_) => self.plant(Some(entry)),
            Form::Tree(tree) => tree.insert(entry),
        }
    }

    /// Removes a box with exactly these corners and this value, and says whether there was one. O(log n).
    #[inline]
    pub fn remove(&mut self, at: &Box3, value: &V) -> bool
    where
        V: PartialEq,
    {
        match &mut self.0 {
            Form::List(list) => {
                let is_it = |entry: &Entry<V>| entry.extent == *at && entry.value == *value;
                let position = list.iter().position(is_it);
                position.map(|position| list.swap_remove(position)).is_some()
            }
            Form::Sorted(_) => {
                self.plant(None);
                self.remove(at, value)
            }
            Form::Tree(tree) => {
                let removed = tree.remove_with_selection_function(Exactly::at(at, value));
                if tree.size() == 0 {
                    *self = Self::default();
                }
                removed.is_some()
            }
        }
    }

    /// Removes all boxes that lie inside of `part`. O(log n) for each of a few.
    pub fn remove_inside(&mut self, part: &Box3) {
        match &mut self.0 {
            Form::List(list) => list.retain(|entry| !part.contains(&entry.extent)),
            Form::Sorted(_) => {
                self.plant(None);
                self.remove_inside(part);
            }
            Form::Tree(tree) => {
                let inside = tree.locate_with_selection_function(Sharing::with(part));
                let inside = inside.filter(|entry| part.contains(&entry.extent)).count();
                for _ in 0..inside {
                    tree.remove_with_selection_function(LyingInside::of(part));
                }
                if tree.size() == 0 {
                    *self = Self::default();
                }
            }
        }
    }

    /// The boxes that share an element with `part`, in no order. O(log n) for each of a few.
    #[inline]
    pub fn sharing(&self, part: &Box3) -> impl Iterator<Item = (&Box3, &V)> {
        let part = *part;
        self.found(part, move |at| at.intersects(&part), Sharing::with(&part))
    }

    /// The boxes that share an element, a face, an edge or a corner with `part`, in no order: none, if that is empty. O(log n)
    /// for each of a few.
    #[inline]
    pub fn touching(&self, part: &Box3) -> impl Iterator<Item = (&Box3, &V)> {
        let is_there = !part.is_empty();
        let part = if is_there { *part } else { Box3::UNIT };
        let near = self.found(part, move |at| at.touches(&part), Touching::with(&part));
        near.filter(move |_| is_there)
    }

    /// Makes a tree of what is in a list, sorted or not, and of one more.
    #[inline(never)]
    fn plant(&mut self, more: Option<Entry<V>>) {
        let mut entries = match std::mem::take(self).0 {
            Form::List(list) => list.into_vec(),
            Form::Sorted(sorted) => sorted.into_entries(),
            Form::Tree(tree) => tree.into_iter().collect(),
        };
        entries.extend(more);
        self.0 = Form::Tree(Box::new(load(entries)));
    }

    /// Those around `part` of a list, sorted or not, that pass `is_one`, or those of a tree that `selection` selects, which are the same.
    #[inline]
    fn found(
        &self,
        part: Box3,
        is_one: impl Fn(&Box3) -> bool,
        selection: impl SelectionFunction<Entry<V>>,
    ) -> impl Iterator<Item = (&Box3, &V)> {
        let (list, tree): (&[Entry<V>], _) = match &self.0 {
            Form::List(list) => (list, None),
            Form::Sorted(sorted) => (sorted.around(&part), None),
            Form::Tree(tree) => (&[], Some(tree.locate_with_selection_function(selection))),
        };
        let near = list.iter().filter(move |entry| is_one(&entry.extent));
        near.chain(tree.into_iter().flatten()).map(|entry| (&entry.extent, &entry.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random, the same each time.
    fn numbers() -> impl FnMut(u64) -> u64 {
        let mut state = 7_u64;
        move |end| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % end
        }
    }

    #[test]
    fn nothing_has_no_place() {
        for many in [0, 1, 2 * FEW] {
            let boxes = |count: usize| (0..count).map(|i| (Box3::from_offset_range([i], [1]), i));
            let all = boxes(many).chain([(Box3::EMPTY, 7), (Box3::new([3; 3], [5, 3, 4]), 8)]);
            let mut index: BoxIndex<usize> = all.collect();
            index.insert(Box3::EMPTY, 9);
            assert_eq!(index.len(), many);
            assert!(!index.remove(&Box3::EMPTY, &9));
            assert_eq!(
                (index.touching(&Box3::EMPTY).count(), index.sharing(&Box3::EMPTY).count()),
                (0, 0)
            );
        }
    }

    #[test]
    fn an_index_finds_what_a_look_at_each_box_finds() {
        let steps = if cfg!(miri) { 60 } else { 8000 };
        let mut random = numbers();
        let (mut index, mut naive) = (BoxIndex::default(), Vec::<(Box3, u64)>::new());
        let (mut longest, mut emptied) = (0, 0);
        for step in 0..steps {
            let min = [random(40), random(40), random(3)];
            let part = Box3::new(min, min.map(|at| at + 1 + random(4)));
            // Many more come than go, and then the other way round.
            let comes = if step / (steps / 10) % 2 == 0 { 6 } else { 2 };
            if random(8) < comes {
                index.insert(part, step);
                naive.push((part, step));
            } else if !naive.is_empty() {
                let (at, value) = naive.swap_remove(random(naive.len() as u64) as usize);
                assert!(!index.remove(&at, &(value + 1)) && index.remove(&at, &value));
                assert!(!index.remove(&at, &value));
            }
            if random(50) == 0 {
                let wide = Box3::new(min, min.map(|at| at + 9));
                index.remove_inside(&wide);
                naive.retain(|(at, _)| !wide.contains(at));
            }
            longest = longest.max(naive.len());
            emptied += usize::from(naive.is_empty());
            assert_eq!((index.len(), index.is_empty()), (naive.len(), naive.is_empty()));
            let sorted = |found: &mut dyn Iterator<Item = (&Box3, &u64)>| {
                let mut found: Vec<u64> = found.map(|(_, value)| *value).collect();
                found.sort_unstable();
                found
            };
            assert_eq!(
                sorted(&mut index.iter()),
                sorted(&mut naive.iter().map(|(at, value)| (at, value)))
            );
            let mut sharing =
                naive.iter().filter(|(at, _)| at.intersects(&part)).map(|(at, value)| (at, value));
            assert_eq!(sorted(&mut index.sharing(&part)), sorted(&mut sharing));
            let mut touching =
                naive.iter().filter(|(at, _)| at.touches(&part)).map(|(at, value)| (at, value));
            assert_eq!(sorted(&mut index.touching(&part)), sorted(&mut touching));
        }
        assert!(longest > 2 * FEW && (cfg!(miri) || emptied > 3), "{longest}, {emptied}");
    }

    #[test]
    fn boxes_that_come_at_once_are_found_in_a_sorted_list_or_in_a_tree() {
        let many = if cfg!(miri) { 12 } else { 3 * FEW as u64 };
        let mut random = numbers();
        // Apart along each dimension, some of them longer than others; and all over the place.
        for dim in 0..4 {
            let mut boxes: Vec<(Box3, u64)> = (0..many)
                .map(|nth| {
                    let mut min = [random(20), random(20), random(20)];
                    let mut max = min.map(|at| at + 1 + random(2));
                    if dim < 3 {
                        (min[dim], max[dim]) = (7 * nth, 7 * nth + 3 + 9 * (random(9) / 8));
                    }
                    (Box3::new(min, max), nth)
                })
                .collect();
            let mut index: BoxIndex<u64> = boxes.iter().rev().copied().collect();
            // A few side by side are sorted as well.
            assert!(cfg!(miri) || matches!(index.0, Form::Sorted(_)) == (dim < 3));
            let sorted = |found: &mut dyn Iterator<Item = u64>| {
                let mut found: Vec<u64> = found.collect();
                found.sort_unstable();
                found
            };
            for round in 0..3 {
                for _ in 0..if cfg!(miri) { 5 } else { 200 } {
                    let mut min = [random(22), random(22), random(22)];
                    if dim < 3 {
                        min[dim] = random(7 * many + 20);
                    }
                    let part = Box3::new(min, min.map(|at| at + 1 + random(12)));
                    let near = |is_one: fn(&Box3, &Box3) -> bool| {
                        let near = boxes.iter().filter(|(at, _)| is_one(at, &part));
                        sorted(&mut near.map(|(_, nth)| *nth))
                    };
                    let mut sharing = index.sharing(&part).map(|(_, nth)| *nth);
                    assert_eq!(sorted(&mut sharing), near(Box3::intersects));
                    let mut touching = index.touching(&part).map(|(_, nth)| *nth);
                    assert_eq!(sorted(&mut touching), near(Box3::touches));
                }
                let all = sorted(&mut index.iter().map(|(_, nth)| *nth));
                assert_eq!(all, sorted(&mut boxes.iter().map(|(_, nth)| *nth)));
                assert_eq!(index.len(), boxes.len());
                // One goes, and comes again further on.
                let (at, nth) = boxes.swap_remove(round);
                assert!(index.remove(&at, &nth) && !index.remove(&at, &nth));
                let moved = Box3::new(at.min(), at.max().map(|end| end + 2));
                boxes.push((moved, nth));
                index.insert(moved, nth);
            }
        }
    }

    #[test]
    fn boxes_far_away_are_told_apart_where_floats_are_not() {
        let far = u64::MAX - 100;
        let mut index = BoxIndex::default();
        for at in 0..40 {
            index.insert(Box3::new([far + at, 0, 0], [far + at + 1, 1, 1]), at);
        }
        let part = Box3::new([far + 7, 0, 0], [far + 9, 1, 1]);
        let mut found: Vec<_> = index.sharing(&part).map(|(_, at)| *at).collect();
        found.sort_unstable();
        assert_eq!(found, [7, 8]);
        assert!(index.remove(&Box3::new([far + 7, 0, 0], [far + 8, 1, 1]), &7));
        assert_eq!(index.sharing(&part).count(), 1);
    }
}
