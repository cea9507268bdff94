//! A value for every element of an extent.
//!
//! Owns the choice between three representations, and clipping to the extent, so that the
//! representations see only non-empty boxes inside of it:
//!
//! - `slices`: entries that cut the extent along one dimension only, in order. One value for
//!   the whole extent is the special case that every map starts as; 1-D extents never leave
//!   this form, and buffers that are split by rows, or by columns, stay in it.
//! - `flat`: an unordered list of boxes, for up to [`FLAT_MAX`] entries.
//! - `tree`: an R*-tree, for more.
//!
//! It refuses to know what the values mean.

mod flat;
mod overlay;
mod slices;
mod tree;

use std::fmt;

use smallvec::SmallVec;

use crate::box3::{Box3, Coord3};
use crate::entry::{Entry, coalesce, coalesce_anew};
use crate::region::{Region, RegionBuilder};
use flat::Flat;
use overlay::overlay;
use slices::{Fit, Slices};
use tree::Tree;

/// Beyond how many entries a list is slower than a tree. Measured on tiles of a 2-D extent
/// ("region map" in the benchmarks), list against tree, in ns: to replace one of 64 tiles
/// 140 and 300, of 256 tiles 310 and 670, of 1024 tiles 1,300 and 900 to 1,300; to query one of
/// 256 tiles 100 and 170. Cutting and merging entries, which scan the list several times,
/// favour the tree a little earlier.
/// Miri, for which each of them is slow, comes to trees sooner.
const FLAT_MAX: usize = if cfg!(miri) { 16 } else { 512 };

/// Below how many entries a tree becomes a list again; well below [`FLAT_MAX`], so that a
/// map whose size oscillates does not convert each time.
const TREE_MIN: usize = FLAT_MAX / 2;

/// Fewer boxes than that are changed one by one.
const MANY: usize = 8;

/// Maps of fewer entries cost nothing to leave as they are.
const COMPACT_ABOVE: usize = 16;

/// Maps every element of an extent to a value.
///
/// The map stores entries: disjoint boxes that cover the extent, each with its value. Two
/// entries of equal value that together are a box are always merged. The order in which
/// entries are visited is unspecified, but depends only on the operations performed so far,
/// never on addresses or hashes.
///
/// In the complexities below, n is the number of entries, k the number that intersect the
/// box or region in question, counted for each box of a region. Maps of a single value, and maps cut along one dimension only ("sliced"),
/// are searched in O(log n); other maps in O(n) for up to a few hundred entries, and in
/// O(log n + k) on average beyond.
///
/// ```
/// use celerity_regions::{Box3, RegionMap};
///
/// let mut writer = RegionMap::new(Box3::from_range([8, 8]), "nobody");
/// writer.update_box(&Box3::from_offset_range([0, 0], [4, 8]), "T1");
/// writer.update_box(&Box3::from_offset_range([2, 2], [4, 4]), "T2");
/// assert_eq!(writer.get([1, 1, 0]), &"T1");
/// assert_eq!(writer.get([3, 3, 0]), &"T2");
///
/// let stale = writer.region_where(&Box3::from_range([8, 8]), |task| *task == "T1");
/// assert_eq!(stale.to_string(), "{[0..2, 0..8], [2..4, 0..2], [2..4, 6..8]}");
/// ```
#[derive(Clone)]
pub struct RegionMap<V: Clone + PartialEq> {
    extent: Box3,
    store: Store<V>,
    /// How many entries were left when it was last compacted, or fewer.
    compacted: usize,
}

#[derive(Clone)]
enum Store<V> {
    Slices(Slices<V>),
    Flat(Flat<V>),
    Tree(Box<Tree<V>>),
}

impl<V: Clone + PartialEq> RegionMap<V> {
    /// Maps every element of `extent` to `default`. Does not allocate.
    pub fn new(extent: Box3, default: V) -> Self {
        RegionMap { extent, store: Store::Slices(Slices::single(&extent, default)), compacted: 0 }
    }

    /// The elements that have a value.
    pub fn extent(&self) -> Box3 {
        self.extent
    }

    /// The number of entries; zero only if the extent is empty.
    pub fn len(&self) -> usize {
        match &self.store {
            Store::Slices(slices) => slices.len(),
            Store::Flat(flat) => flat.len(),
            Store::Tree(tree) => tree.len(),
        }
    }

    /// Whether the extent has no elements.
    pub fn is_empty(&self) -> bool {
        self.extent.is_empty()
    }

    /// Maps every element of the box to `value`, ignoring what lies outside the extent.
    /// O(k) plus the search, and O(n) to move later entries if a sliced map grows or shrinks.
    pub fn update_box(&mut self, at: &Box3, value: V) {
        let at = at.clamped(&self.extent);
        #[cfg(feature = "mutants")]
        let at = celerity_mutants::Mutant::UpdateLeavesRim.alter(at, |at| {
            Box3::new(at.min(), [at.max()[0], at.max()[1].max(2) - 1, at.max()[2]])
        });
        if at.is_empty() {
            return;
        }
        if let Store::Slices(slices) = &mut self.store {
            match slices.turn_to(&self.extent, &at) {
                Fit::Whole => return slices.fill(value),
                Fit::Slice => return slices.update(&self.extent, &at, value),
                Fit::None => {}
            }
            if *slices.get(at.min()) == value && slices.covers_with_one(&self.extent, &at) {
                return;
            }
            self.store = Store::Flat(Flat::new(slices.take_entries(&self.extent)));
        }
        match &mut self.store {
            Store::Slices(_) => unreachable!("a sliced map was just converted"),
            Store::Flat(flat) if at != self.extent => flat.update(&at, value),
            Store::Tree(tree) if at != self.extent => tree.update(&at, value),
            Store::Flat(_) | Store::Tree(_) => return *self = RegionMap::new(self.extent, value),
        }
        self.adapt();
    }

    /// Maps every element of the region to `value`, ignoring what lies outside the extent.
    /// As many updates as the region has boxes, or if these are many, O(n + b) for b of them in a sliced map and
    /// O((n + k) log (n + k)) in others.
    pub fn update(&mut self, at: &Region, value: V) {
        if self.takes_a_pass(at.boxes().len()) {
            return self.update_many(at, value);
        }
        if let Some((last, others)) = at.boxes().split_last() {
            for part in others {
                self.update_box(part, value.clone());
            }
            self.update_box(last, value);
        }
    }

    #[cold]
    fn update_many(&mut self, at: &Region, value: V) {
        let boxes = self.inside(at);
        if let Store::Slices(slices) = &mut self.store
            && slices.turn_to_all(&self.extent, &boxes)
        {
            return slices.modify_each(&self.extent, &boxes, |_| value.clone());
        }
        let parts = boxes.into_iter().map(|extent| Entry { extent, value: value.clone() });
        self.lay_over(parts.collect());
    }

    /// Whether so many boxes are better changed in one pass over all entries than one by one.
    #[inline]
    fn takes_a_pass(&self, boxes: usize) -> bool {
        boxes >= MANY
            && match &self.store {
                Store::Slices(slices) => boxes >= slices.len() / 128,
                Store::Flat(_) => boxes >= FLAT_MAX / 8,
                Store::Tree(tree) => boxes >= tree.len() / 8,
            }
    }

    /// The boxes of a region, as far as they are in the extent.
    fn inside(&self, region: &Region) -> Vec<Box3> {
        let boxes = region.boxes().iter().map(|part| part.clamped(&self.extent));
        boxes.filter(|part| !part.is_empty()).collect()
    }

    /// Gives disjoint boxes inside of the extent their values, all at once.
    #[cold]
    fn lay_over(&mut self, parts: Vec<Entry<V>>) {
        if parts.is_empty() {
            return;
        }
        let entries = match &mut self.store {
            Store::Slices(slices) => slices.take_entries(&self.extent),
            Store::Flat(flat) => flat.take_entries(),
            Store::Tree(tree) => tree.take_entries(),
        };
        self.store = Store::Flat(Flat::new(overlay(entries, parts)));
        self.adapt();
    }

    /// Visits all entries that intersect the box, clipped to it. O(k) plus the search; does
    /// not allocate, except perhaps for the path through the tree of a large map.
    #[inline]
    pub fn for_each_in(&self, within: &Box3, mut visit: impl FnMut(Box3, &V)) {
        let within = within.clamped(&self.extent);
        if within.is_empty() {
            return;
        }
        match &self.store {
            Store::Slices(slices) => slices.for_each_in(&within, visit),
            Store::Flat(flat) => flat.for_each_in(&within, visit),
            Store::Tree(tree) => tree.for_each_in(&within, &mut visit),
        }
    }

    /// Visits all entries that intersect the region, clipped to each of its boxes in turn.
    /// As many searches as the region has boxes.
    pub fn for_each_in_region(&self, within: &Region, mut visit: impl FnMut(Box3, &V)) {
        for part in within.boxes() {
            self.for_each_in(part, &mut visit);
        }
    }

    /// All entries that intersect the box, clipped to it; see
    /// [`for_each_in`](Self::for_each_in) for the form without a list.
    pub fn query(&self, within: &Box3) -> Vec<(Box3, V)> {
        let mut found = Vec::new();
        self.for_each_in(within, |part, value| found.push((part, value.clone())));
        found
    }

    /// The value of one element.
    ///
    /// # Panics
    /// If `at` is outside the extent.
    pub fn get(&self, at: Coord3) -> &V {
        assert!(
            self.extent.contains_point(at),
            "no value at {at:?}, which is outside the map's extent {}",
            self.extent
        );
        match &self.store {
            Store::Slices(slices) => slices.get(at),
            Store::Flat(flat) => flat.get(at),
            Store::Tree(tree) => tree.get(at),
        }
    }

    /// Replaces the values inside the region, and only there, by what `change` makes of
    /// them: entries on its edge are split. `change` is called once per entry and box of
    /// the region that intersect. As many updates as there are such pairs whose value
    /// changes, or if they are many, O(n + b) for a region of b boxes in a sliced map and
    /// O((n + k) log (n + k)) in others.
    pub fn modify(&mut self, within: &Region, mut change: impl FnMut(&V) -> V) {
        if self.takes_a_pass(within.boxes().len()) {
            return self.modify_many(within, change);
        }
        for part in within.boxes() {
            self.modify_box(&part.clamped(&self.extent), &mut change);
        }
    }

    #[cold]
    fn modify_many(&mut self, within: &Region, mut change: impl FnMut(&V) -> V) {
        let boxes = self.inside(within);
        if let Store::Slices(slices) = &mut self.store
            && slices.turn_to_all(&self.extent, &boxes)
        {
            return slices.modify_each(&self.extent, &boxes, change);
        }
        let mut changed = Vec::new();
        for part in &boxes {
            self.note_changed(part, &mut change, |entry| changed.push(entry));
        }
        self.lay_over(changed);
    }

    /// What of the box gets another value, which is not written yet.
    fn note_changed(
        &self,
        within: &Box3,
        mut change: impl FnMut(&V) -> V,
        mut note: impl FnMut(Entry<V>),
    ) {
        self.for_each_in(within, |extent, old| {
            let value = change(old);
            if value != *old {
                note(Entry { extent, value });
            }
        });
    }

    fn modify_box(&mut self, within: &Box3, change: impl FnMut(&V) -> V) {
        if within.is_empty() {
            return;
        }
        match &mut self.store {
            Store::Slices(slices) => match slices.turn_to(&self.extent, within) {
                Fit::Whole => return slices.modify_all(change),
                Fit::Slice => return slices.modify(&self.extent, within, change),
                Fit::None => {}
            },
            Store::Flat(_) | Store::Tree(_) if *within == self.extent => {
                return self.modify_all(change);
            }
            Store::Flat(flat) => {
                flat.modify(within, change);
                return self.adapt();
            }
            Store::Tree(_) => {}
        }
        let mut changed = SmallVec::<[Entry<V>; 4]>::new();
        self.note_changed(within, change, |entry| changed.push(entry));
        if self.takes_a_pass(changed.len()) {
            return self.lay_over(changed.into_vec());
        }
        for Entry { extent, value } in changed {
            self.update_box(&extent, value);
        }
    }

    /// Replaces all values by what `change` makes of them, calling it once per entry.
    /// O(n), plus O(n log n) to merge entries if the map is not sliced and a value changed.
    pub fn modify_all(&mut self, change: impl FnMut(&V) -> V) {
        self.change_all(change, coalesce);
    }

    /// Lets values become alike that need not be told apart any more, by what `change` makes of them, if
    /// there are more than twice as many entries as were left the last time. Entries of one value
    /// are merged then, and what many of them hold is cut into boxes anew, where that takes fewer.
    ///
    /// O(n log n) and the cost of [`Region::from_boxes`] for up to 15 values, but so seldom that it is
    /// as if each entry that has been added since had paid for a few.
    pub fn compact(&mut self, change: impl FnMut(&V) -> V) {
        self.compacted = self.compacted.min(self.len());
        if self.len() > COMPACT_ABOVE.max(2 * self.compacted) {
            self.change_all(change, coalesce_anew);
            self.compacted = self.len();
        }
    }

    fn change_all(&mut self, change: impl FnMut(&V) -> V, merge: impl Fn(&mut Vec<Entry<V>>)) {
        match &mut self.store {
            Store::Slices(slices) => return slices.modify_all(change),
            Store::Flat(flat) => flat.modify_all(change, merge),
            Store::Tree(tree) => tree.modify_all(change, merge),
        }
        self.adapt();
    }

    /// The elements of the box whose value satisfies the predicate. As
    /// [`for_each_in`](Self::for_each_in) and then [`Region::from_boxes`].
    pub fn region_where(&self, within: &Box3, wanted: impl FnMut(&V) -> bool) -> Region {
        self.select(&Region::from(*within), wanted)
    }

    /// The elements of the region whose value satisfies the predicate; see
    /// [`region_where`](Self::region_where).
    pub fn select(&self, within: &Region, mut wanted: impl FnMut(&V) -> bool) -> Region {
        let mut found = RegionBuilder::default();
        self.for_each_in_region(within, |part, value| {
            if wanted(value) {
                found.push(part);
            }
        });
        found.finish()
    }

    /// All entries: disjoint boxes, each with its value, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (Box3, &V)> {
        let (slices, flat, tree) = match &self.store {
            Store::Slices(slices) => (Some(slices.iter(&self.extent)), None, None),
            Store::Flat(flat) => (None, Some(flat.iter()), None),
            Store::Tree(tree) => (None, None, Some(tree.iter())),
        };
        let boxes = flat.into_iter().flatten().chain(tree.into_iter().flatten());
        slices.into_iter().flatten().chain(boxes.map(|entry| (entry.extent, &entry.value)))
    }

    /// Changes to the representation that suits the number of entries.
    fn adapt(&mut self) {
        match &mut self.store {
            Store::Flat(flat) if flat.len() > FLAT_MAX => {
                self.store = Store::Tree(Box::new(Tree::new(flat.take_entries())));
            }
            Store::Tree(tree) if tree.len() < TREE_MIN => {
                self.store = Store::Flat(Flat::new(tree.take_entries()));
                self.adapt();
            }
            Store::Flat(flat) => {
                if let Some(value) = flat.take_single() {
                    *self = RegionMap::new(self.extent, value);
                }
            }
            Store::Slices(_) | Store::Tree(_) => {}
        }
    }
}

impl<V: Clone + PartialEq + fmt::Debug> fmt::Debug for RegionMap<V> {
    /// `{[0..4]: 1, [4..8]: 2}`, in row-major order.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut entries: Vec<_> = self.iter().collect();
        entries.sort_unstable_by_key(|(extent, _)| extent.corners());
        f.debug_map().entries(entries).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of the representation, which no user can tell.
    fn form<V: Clone + PartialEq>(map: &RegionMap<V>) -> &'static str {
        match map.store {
            Store::Slices(_) => "slices",
            Store::Flat(_) => "flat",
            Store::Tree(_) => "tree",
        }
    }

    #[test]
    fn rows_stay_slices_and_tiles_move_on() {
        let side = if cfg!(miri) { 6 } else { 32 };
        let extent = Box3::from_range([side, side]);
        let mut map = RegionMap::new(extent, 0);
        for row in 0..side {
            map.update_box(&Box3::from_offset_range([row, 0], [1, side]), row);
        }
        assert_eq!((form(&map), map.len()), ("slices", side));
        map.update_box(&Box3::from_range([1, 1]), side);
        assert_eq!((form(&map), map.len()), ("flat", side + 1));
        for at in 0..side * side {
            map.update_box(&Box3::from_offset_range([at / side, at % side], [1, 1]), at);
        }
        assert_eq!((form(&map), map.len()), ("tree", side * side));
        map.update_box(&Box3::from_range([side, side - 1]), 0);
        assert_eq!((form(&map), map.len()), ("flat", side + 1));
        map.modify_all(|_| 7);
        assert_eq!(format!("{map:?}"), format!("{{[0..{side}, 0..{side}]: 7}}"));
        assert_eq!(form(&map), "slices");
    }

    #[test]
    fn columns_stay_slices_until_a_row_crosses_them() {
        let extent = Box3::from_range([8, 8]);
        let mut map = RegionMap::new(extent, 0);
        for column in [5, 1, 2] {
            map.update_box(&Box3::from_offset_range([0, column], [8, 1]), column);
        }
        assert_eq!((form(&map), map.len()), ("slices", 6));
        assert_eq!((map.get([7, 2, 0]), map.get([7, 3, 0])), (&2, &0));
        assert_eq!(map.query(&Box3::from_offset_range([3, 1], [2, 2])).len(), 2);
        map.update_box(&Box3::from_offset_range([3, 1], [1, 1]), 1);
        assert_eq!((form(&map), map.len()), ("slices", 6));
        map.update_box(&Box3::from_range([1, 8]), 9);
        assert_eq!((form(&map), map.len()), ("flat", 7));
        map.update_box(&extent, 3);
        map.update_box(&Box3::from_range([4, 8]), 4);
        assert_eq!((form(&map), map.len()), ("slices", 2));
    }

    #[test]
    fn an_equal_value_changes_nothing() {
        let mut map = RegionMap::new(Box3::from_range([8, 8]), 1);
        map.update_box(&Box3::from_offset_range([2, 2], [2, 2]), 1);
        assert_eq!((form(&map), map.len()), ("slices", 1));
    }

    #[test]
    fn modify_changes_only_what_is_inside() {
        let mut map = RegionMap::new(Box3::from_range([4, 4]), 1);
        map.modify(&Region::from(Box3::from_offset_range([2, 2], [9, 9])), |value| value + 1);
        assert_eq!(format!("{map:?}"), "{[0..2, 0..4]: 1, [2..4, 0..2]: 1, [2..4, 2..4]: 2}");
    }

    #[test]
    fn an_empty_extent_has_no_entries() {
        let mut map = RegionMap::new(Box3::EMPTY, 1);
        map.update_box(&Box3::UNIT, 2);
        map.modify_all(|_| 3);
        assert_eq!((map.is_empty(), map.len(), map.iter().count()), (true, 0, 0));
        assert_eq!(map.query(&Box3::UNIT), []);
    }

    #[test]
    fn a_zero_dimensional_extent_has_one_element() {
        let mut map = RegionMap::new(Box3::UNIT, 1);
        map.update_box(&Box3::UNIT, 2);
        assert_eq!((map.get([0; 3]), map.len()), (&2, 1));
    }

    #[test]
    fn coordinates_beyond_floating_point_precision() {
        const END: u64 = u64::MAX;
        const SIDE: u64 = if cfg!(miri) { 6 } else { 64 };
        let extent = Box3::new([END - SIDE, END - SIDE, 0], [END, END, 1]);
        let mut map = RegionMap::new(extent, 0);
        for i in 0..SIDE * SIDE {
            let min = [END - SIDE + i / SIDE, END - SIDE + i % SIDE, 0];
            map.update_box(&Box3::new(min, [min[0] + 1, min[1] + 1, 1]), i);
        }
        assert_eq!((form(&map), map.len() as u64), ("tree", SIDE * SIDE));
        assert_eq!(map.get([END - SIDE + 2, END - SIDE + 3, 0]), &(2 * SIDE + 3));
        assert_eq!(map.query(&Box3::new([END - 1, END - 2, 0], [END, END, 1])).len(), 2);
    }

    #[test]
    #[should_panic(expected = "outside the map's extent [0..4]")]
    fn elements_outside_have_no_value() {
        RegionMap::new(Box3::from_range([4]), 0).get([4, 0, 0]);
    }
}
