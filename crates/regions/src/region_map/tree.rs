//! Entries in an R*-tree, for maps of many boxes.
//!
//! The tree indexes boxes by envelopes of floating-point coordinates, because its area
//! arithmetic would overflow with 64-bit integers. Rounding preserves order, so a search by
//! envelopes misses nothing, and exact comparisons of the boxes sort out the rest. All
//! envelopes have three dimensions; a tree of two-dimensional ones would need a second type
//! of entry.

use rstar::{AABB, Envelope, ParentNode, RTree, RTreeNode, RTreeObject, SelectionFunction};
use smallvec::SmallVec;

use super::entry::Entry;
use crate::box3::{Box3, Coord3};

#[derive(Clone)]
pub(super) struct Tree<V> {
    tree: RTree<Entry<V>>,
}

type Bounds = AABB<[f64; 3]>;

impl<V> RTreeObject for Entry<V> {
    type Envelope = Bounds;

    fn envelope(&self) -> Bounds {
        bounds(&self.extent)
    }
}

fn bounds(extent: &Box3) -> Bounds {
    AABB::from_corners(extent.min().map(|c| c as f64), extent.max().map(|c| c as f64))
}

/// Selects the entries that share an element with a box.
struct Sharing {
    at: Box3,
    bounds: Bounds,
}

impl Sharing {
    /// Envelopes are closed: shrunk by half an element on each side, that of the box misses
    /// mere neighbours. Where half an element is beyond the precision it stays as it is.
    fn with(at: &Box3) -> Self {
        let (min, max) = at.corners();
        let bounds = AABB::from_corners(min.map(|c| c as f64 + 0.5), max.map(|c| c as f64 - 0.5));
        Sharing { at: *at, bounds }
    }
}

impl<V> SelectionFunction<Entry<V>> for Sharing {
    fn should_unpack_parent(&self, envelope: &Bounds) -> bool {
        envelope.intersects(&self.bounds)
    }

    fn should_unpack_leaf(&self, leaf: &Entry<V>) -> bool {
        leaf.extent.intersects(&self.at)
    }
}

/// Selects the entries that share an element, a face, an edge or a corner with a box.
struct Touching {
    at: Box3,
    bounds: Bounds,
}

impl Touching {
    fn with(at: &Box3) -> Self {
        Touching { at: *at, bounds: bounds(at) }
    }
}

impl<V> SelectionFunction<Entry<V>> for Touching {
    fn should_unpack_parent(&self, envelope: &Bounds) -> bool {
        envelope.intersects(&self.bounds)
    }

    fn should_unpack_leaf(&self, leaf: &Entry<V>) -> bool {
        leaf.extent.touches(&self.at)
    }
}

/// What an update has to do to the entries around it.
struct Survey<V> {
    /// The parts of entries that are only partly covered.
    kept: SmallVec<[Entry<V>; 8]>,
    /// The update changes nothing: one entry of the same value covers it.
    is_void: bool,
    /// A neighbour has to be merged with the new entry.
    has_partner: bool,
}

impl<V: Clone + PartialEq> Tree<V> {
    pub(super) fn new(entries: Vec<Entry<V>>) -> Self {
        Tree { tree: load(entries) }
    }

    pub(super) fn len(&self) -> usize {
        self.tree.size()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry<V>> {
        self.tree.iter()
    }

    pub(super) fn take_entries(&mut self) -> Vec<Entry<V>> {
        std::mem::take(&mut self.tree).drain().collect()
    }

    pub(super) fn get(&self, at: Coord3) -> &V {
        // The element as a box; its end cannot overflow, as it is within the extent.
        let single = Box3::new(at, at.map(|c| c + 1));
        let mut found = self.tree.locate_with_selection_function(Sharing::with(&single));
        &found.next().expect("entries cover the extent").value
    }

    pub(super) fn for_each_in(&self, within: &Box3, visit: &mut impl FnMut(Box3, &V)) {
        for entry in self.tree.locate_with_selection_function(Sharing::with(within)) {
            visit(entry.extent.overlap(within), &entry.value);
        }
    }

    pub(super) fn update(&mut self, at: &Box3, value: V) {
        let new = Entry { extent: *at, value };
        let Survey { kept, is_void, has_partner } = self.survey(&new);
        #[cfg(feature = "mutants")]
        let is_void = celerity_mutants::Mutant::TreeIgnoresUpdate
            .alter(is_void, |is_void| is_void || (kept.is_empty() && !has_partner));
        if is_void || (kept.is_empty() && !has_partner && self.replace_exactly(&new)) {
            return;
        }
        self.tree.drain_with_selection_function(Sharing::with(at)).for_each(drop);
        for entry in kept {
            self.insert_merging(entry);
        }
        self.insert_merging(new);
    }

    /// As [`Flat::modify_all`](super::flat::Flat::modify_all).
    pub(super) fn modify_all(
        &mut self,
        mut change: impl FnMut(&V) -> V,
        merge: impl Fn(&mut Vec<Entry<V>>),
    ) {
        let mut changed = false;
        for entry in self.tree.iter_mut() {
            let new = change(&entry.value);
            changed |= new != entry.value;
            entry.value = new;
        }
        if changed {
            let mut entries = self.take_entries();
            merge(&mut entries);
            self.tree = load(entries);
        }
    }

    fn survey(&self, new: &Entry<V>) -> Survey<V> {
        let mut survey = Survey { kept: SmallVec::new(), is_void: false, has_partner: false };
        for entry in self.tree.locate_with_selection_function(Touching::with(&new.extent)) {
            let hole = entry.extent.intersection(&new.extent);
            if hole.is_empty() {
                survey.has_partner |= entry.joined(new).is_some();
                continue;
            }
            survey.is_void |= hole == new.extent && entry.value == new.value;
            entry.extent.for_each_outside(&hole, |extent| {
                survey.kept.push(Entry { extent, value: entry.value.clone() });
            });
        }
        survey
    }

    /// Changes the value of the entry with exactly the box of `new`, if there is one.
    fn replace_exactly(&mut self, new: &Entry<V>) -> bool {
        let mut found = self.tree.locate_with_selection_function_mut(Sharing::with(&new.extent));
        match found.next() {
            Some(entry) if entry.extent == new.extent => {
                entry.value = new.value.clone();
                true
            }
            _ => false,
        }
    }

    /// Inserts an entry, merged with others for as long as there is one that fits.
    fn insert_merging(&mut self, mut new: Entry<V>) {
        while let Some((partner, extent)) = self.partner(&new) {
            self.tree.remove_with_selection_function(Sharing::with(&partner));
            new.extent = extent;
        }
        self.tree.insert(new);
    }

    /// The box of an entry that together with `new` is a box of one value, and that box.
    fn partner(&self, new: &Entry<V>) -> Option<(Box3, Box3)> {
        let mut near = self.tree.locate_with_selection_function(Touching::with(&new.extent));
        near.find_map(|entry| Some((entry.extent, entry.joined(new)?)))
    }
}

/// The tree of these entries, all of whose leaves are equally deep.
///
/// Where `rstar` 0.12 loads all at once, of some numbers of entries (49 to 55, 385 to 447, and so on,
/// eight times as many each) some leaves lie a level deeper than others. Once enough has been inserted
/// into such a tree, it panics ("This is a bug in rstar"). So it loads as many as come out even, and
/// gets the others one by one.
fn load<V>(mut entries: Vec<Entry<V>>) -> RTree<Entry<V>> {
    let even = evenly_loaded(entries.len());
    let others = entries.split_off(even);
    let mut tree = RTree::bulk_load(entries);
    if !is_even(tree.root()) {
        let entries: Vec<_> = std::mem::take(&mut tree).drain().collect();
        entries.into_iter().for_each(|entry| tree.insert(entry));
    }
    others.into_iter().for_each(|entry| tree.insert(entry));
    tree
}

/// How many of so many entries are loaded at once: 6 · 8ᵏ of up to 7 · 8ᵏ, else all.
fn evenly_loaded(entries: usize) -> usize {
    let mut even = 6;
    while even <= entries / 8 {
        even *= 8;
    }
    if (even..even / 6 * 7).contains(&entries) { even } else { entries }
}

/// Whether all leaves are equally deep. O(nodes).
fn is_even<V>(root: &ParentNode<Entry<V>>) -> bool {
    depth(root).is_some()
}

/// How deep all leaves are.
fn depth<V>(node: &ParentNode<Entry<V>>) -> Option<usize> {
    let mut depths = node.children().iter().map(|child| match child {
        RTreeNode::Leaf(_) => Some(0),
        RTreeNode::Parent(node) => depth(node).map(|depth| depth + 1),
    });
    let first = depths.next().unwrap_or(Some(0))?;
    depths.all(|depth| depth == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many boxes beside each other, in rows.
    fn tiles(count: usize) -> Vec<Entry<usize>> {
        let tile = |at: usize| Box3::from_offset_range([at / 40, at % 40], [1, 1]);
        (0..count).map(|at| Entry { extent: tile(at), value: at }).collect()
    }

    /// Numbers of entries, among them those that `rstar` would load unevenly.
    fn counts() -> Vec<usize> {
        if cfg!(miri) {
            return (0..60).step_by(5).collect();
        }
        let many = (3060..3600).step_by(7).chain((24_500..28_700).step_by(1399));
        (0..600).chain(many).collect()
    }

    #[test]
    fn all_leaves_are_equally_deep() {
        for count in counts() {
            let even = evenly_loaded(count);
            assert!(even <= count, "{even} of {count}");
            assert!(is_even(RTree::bulk_load(tiles(even)).root()), "{even} of {count}");
        }
        for count in [0, 1, 48, 49, 55, 56, 385, 447] {
            let tree = load(tiles(if cfg!(miri) { count.min(60) } else { count }));
            assert!(is_even(tree.root()), "{count}");
        }
    }
}
