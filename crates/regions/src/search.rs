//! How boxes come into R*-trees, and are found there.
//!
//! Trees index boxes by envelopes of floating-point coordinates, because their area
//! arithmetic would overflow with 64-bit integers. Rounding preserves order, so a search by
//! envelopes misses nothing, and exact comparisons of the boxes sort out the rest. All
//! envelopes have three dimensions; a tree of two-dimensional ones would need a second type
//! of entry.

use rstar::{AABB, Envelope, ParentNode, RTree, RTreeNode, RTreeObject, SelectionFunction};

use crate::box3::Box3;
use crate::entry::Entry;

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
pub(crate) struct Sharing {
    at: Box3,
    bounds: Bounds,
}

/// Selects the entries with exactly the corners of a box, and a value.
pub(crate) struct Exactly<'v, V> {
    at: Sharing,
    value: &'v V,
}

impl<'v, V> Exactly<'v, V> {
    pub(crate) fn at(at: &Box3, value: &'v V) -> Self {
        Self { at: Sharing::with(at), value }
    }
}

impl<V: PartialEq> SelectionFunction<Entry<V>> for Exactly<'_, V> {
    fn should_unpack_parent(&self, envelope: &Bounds) -> bool {
        envelope.intersects(&self.at.bounds)
    }

    fn should_unpack_leaf(&self, leaf: &Entry<V>) -> bool {
        leaf.extent == self.at.at && leaf.value == *self.value
    }
}

/// Selects the entries that lie inside of a box.
pub(crate) struct LyingInside(Sharing);

impl LyingInside {
    pub(crate) fn of(part: &Box3) -> Self {
        Self(Sharing::with(part))
    }
}

impl<V> SelectionFunction<Entry<V>> for LyingInside {
    fn should_unpack_parent(&self, envelope: &Bounds) -> bool {
        envelope.intersects(&self.0.bounds)
    }

    fn should_unpack_leaf(&self, leaf: &Entry<V>) -> bool {
        self.0.at.contains(&leaf.extent)
    }
}

impl Sharing {
    /// Envelopes are closed: shrunk by half an element on each side, that of the box misses
    /// mere neighbours. Where half an element is beyond the precision it stays as it is.
    pub(crate) fn with(at: &Box3) -> Self {
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
pub(crate) struct Touching {
    at: Box3,
    bounds: Bounds,
}

impl Touching {
    pub(crate) fn with(at: &Box3) -> Self {
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

/// The tree of these entries, all of whose leaves are equally deep.
///
/// Where `rstar` 0.12 loads all at once, of some numbers of entries (49 to 55, 385 to 447, and so on,
/// eight times as many each) some leaves lie a level deeper than others. Once enough has been inserted
/// into such a tree, it panics ("This is a bug in rstar"). So it loads as many as come out even, and
/// gets the others one by one.
pub(crate) fn load<V>(mut entries: Vec<Entry<V>>) -> RTree<Entry<V>> {
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
            return (0..60).step_by(15).collect();
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
        let many: &[usize] =
            if cfg!(miri) { &[0, 1, 49] } else { &[0, 1, 48, 49, 55, 56, 385, 447] };
        for &count in many {
            let tree = load(tiles(count));
            assert!(is_even(tree.root()), "{count}");
        }
    }
}
