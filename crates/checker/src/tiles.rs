//! A value for every element of a box: disjoint boxes with a value each.
//!
//! Owns splitting, joining and finding tiles; refuses to know what a value
//! means. It replaces the graphs' region maps here, so that a bug in those is
//! found: a sorted list instead of a tree, and no canonical form.

use std::ops::Range;

use celerity_regions::Box3;
use smallvec::SmallVec;

use crate::geometry::{cut, holds, join, overlap};

/// How far back [`coalesce`] looks for a tile to join with.
const JOIN_WITHIN: usize = 16;

/// Disjoint boxes that cover an extent, each with a value.
///
/// Tiles are sorted by where they begin along one axis, the longest of the
/// extent. No tile is longer along it than `longest`, so a query looks at those
/// that begin between `longest` before it and its end: all of them in a short
/// list, few in a long one. Changes cost that many moves besides.
#[derive(Clone, Debug)]
pub(crate) struct BoxMap<V> {
    tiles: Vec<Tile<V>>,
    axis: usize,
    longest: u64,
    /// Changes since `longest` was last measured.
    changes: usize,
}

#[derive(Clone, Debug)]
struct Tile<V> {
    part: Box3,
    value: V,
}

impl<V: Clone + PartialEq> BoxMap<V> {
    /// One value for all of `extent`.
    pub(crate) fn new(extent: Box3, value: V) -> Self {
        let side = |dim: usize| extent.max()[dim] - extent.min()[dim];
        let axis = (0..3).rev().max_by_key(|&dim| side(dim)).unwrap_or(0);
        let tiles = match extent.is_empty() {
            true => Vec::new(),
            false => vec![Tile { part: extent, value }],
        };
        Self { tiles, axis, longest: side(axis), changes: 0 }
    }

    /// Number of tiles.
    pub(crate) fn len(&self) -> usize {
        self.tiles.len()
    }

    /// Calls `each` with the parts of `query` that have a value of their own,
    /// until one call fails.
    pub(crate) fn visit<E>(
        &self,
        query: &Box3,
        mut each: impl FnMut(Box3, &V) -> Result<(), E>,
    ) -> Result<(), E> {
        for tile in &self.tiles[self.near(query)] {
            if let Some(part) = overlap(&tile.part, query) {
                each(part, &tile.value)?;
            }
        }
        Ok(())
    }

    /// Calls `each` with every tile, until one call fails.
    pub(crate) fn visit_all<E>(
        &self,
        mut each: impl FnMut(Box3, &V) -> Result<(), E>,
    ) -> Result<(), E> {
        self.tiles.iter().try_for_each(|tile| each(tile.part, &tile.value))
    }

    /// Gives all of `query` one value. `query` must lie inside the extent.
    pub(crate) fn set(&mut self, query: &Box3, value: V) {
        if query.is_empty() {
            return;
        }
        let near = self.near(query);
        if let Some(same) = self.tiles[near].iter_mut().find(|tile| tile.part == *query) {
            same.value = value;
            return;
        }
        self.replace(query, |pieces| cut_off(pieces, query));
        self.insert(query, value);
    }

    /// Changes the values of all of `query`.
    pub(crate) fn modify(&mut self, query: &Box3, mut change: impl FnMut(&mut V)) {
        let near = self.near(query);
        let mut splits = false;
        for tile in &mut self.tiles[near] {
            match overlap(&tile.part, query) {
                Some(part) if part == tile.part => change(&mut tile.value),
                Some(_) => splits = true,
                None => {}
            }
        }
        if splits {
            self.replace(query, |pieces| split(pieces, query, &mut change));
        }
    }

    /// Changes all values, then joins tiles that have become equal.
    pub(crate) fn compact(&mut self, mut change: impl FnMut(&mut V)) {
        self.tiles.iter_mut().for_each(|tile| change(&mut tile.value));
        let axis = self.axis;
        self.tiles.sort_by_key(|tile| (tile.part.min()[axis], tile.part.corners()));
        coalesce(&mut self.tiles);
        self.sort_and_measure();
    }

    /// The tiles that may overlap or touch `query`.
    fn near(&self, query: &Box3) -> Range<usize> {
        if self.tiles.len() <= 8 {
            return 0..self.tiles.len();
        }
        let first = query.min()[self.axis].saturating_sub(self.longest);
        let begins = |tile: &Tile<V>| tile.part.min()[self.axis];
        let start = self.tiles.partition_point(|tile| begins(tile) < first);
        let end = self.tiles.partition_point(|tile| begins(tile) <= query.max()[self.axis]);
        start..end
    }

    /// Replaces the tiles near `query` by what `change` makes of them.
    fn replace(&mut self, query: &Box3, change: impl FnOnce(&mut Vec<Tile<V>>)) {
        let near = self.near(query);
        let start = near.start;
        let mut pieces: Vec<Tile<V>> = self.tiles.drain(near).collect();
        change(&mut pieces);
        coalesce(&mut pieces);
        let axis = self.axis;
        pieces.sort_by_key(|tile| tile.part.min()[axis]);
        self.longest = pieces.iter().map(|tile| length(tile, axis)).fold(self.longest, u64::max);
        self.changes += 1;
        self.tiles.splice(start..start, pieces);
        if self.changes > self.tiles.len() {
            self.sort_and_measure();
        }
    }

    /// Adds a tile where there is none, joined with an equal neighbour.
    fn insert(&mut self, query: &Box3, value: V) {
        let mut tile = Tile { part: *query, value };
        let near = self.near(query);
        let neighbour = self.tiles[near.clone()]
            .iter()
            .position(|other| other.value == tile.value && join(&other.part, query).is_some());
        if let Some(position) = neighbour {
            let other = self.tiles.remove(near.start + position);
            tile.part = join(&other.part, query).unwrap_or(*query);
        }
        let (axis, begin) = (self.axis, tile.part.min()[self.axis]);
        self.longest = self.longest.max(length(&tile, axis));
        let at = self.tiles.partition_point(|other| other.part.min()[axis] < begin);
        self.tiles.insert(at, tile);
    }

    fn sort_and_measure(&mut self) {
        let axis = self.axis;
        self.tiles.sort_by_key(|tile| tile.part.min()[axis]);
        self.longest = self.tiles.iter().map(|tile| length(tile, axis)).max().unwrap_or(0);
        self.changes = 0;
    }
}

fn length<V>(tile: &Tile<V>, axis: usize) -> u64 {
    tile.part.max()[axis] - tile.part.min()[axis]
}

/// Takes `query` out of all tiles.
fn cut_off<V: Clone>(pieces: &mut Vec<Tile<V>>, query: &Box3) {
    let mut position = 0;
    while position < pieces.len() {
        if overlap(&pieces[position].part, query).is_none() {
            position += 1;
            continue;
        }
        let Tile { part, value } = pieces.swap_remove(position);
        // What is appended does not overlap `query` any more.
        cut(&part, query, |rest| pieces.push(Tile { part: rest, value: value.clone() }));
    }
}

/// Splits the tiles that lie partly in `query`, and changes the inner parts.
fn split<V: Clone>(pieces: &mut Vec<Tile<V>>, query: &Box3, change: &mut impl FnMut(&mut V)) {
    let mut fresh = SmallVec::<[Tile<V>; 8]>::new();
    for tile in pieces.iter_mut().filter(|tile| !holds(query, &tile.part)) {
        let Some(inner) = overlap(&tile.part, query) else { continue };
        cut(&tile.part, query, |part| fresh.push(Tile { part, value: tile.value.clone() }));
        tile.part = inner;
        change(&mut tile.value);
    }
    pieces.extend(fresh);
}

/// Joins neighbours of equal value: each tile with one of the few before it.
fn coalesce<V: PartialEq>(tiles: &mut Vec<Tile<V>>) {
    let mut kept = 0_usize;
    for position in 0..tiles.len() {
        let from = kept.saturating_sub(JOIN_WITHIN);
        let (before, rest) = tiles.split_at_mut(position);
        let tile = &rest[0];
        let joined = before[from..kept].iter_mut().rev().find_map(|other| {
            let part = (other.value == tile.value).then(|| join(&other.part, &tile.part))??;
            Some((other, part))
        });
        match joined {
            Some((other, part)) => other.part = part,
            None => {
                tiles.swap(kept, position);
                kept += 1;
            }
        }
    }
    tiles.truncate(kept);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    const SIDE: u64 = 6;

    fn part() -> impl Strategy<Value = Box3> {
        prop::array::uniform3((0..SIDE, 1..=SIDE)).prop_map(|sides| {
            let min = sides.map(|(min, _)| min);
            Box3::new(min, sides.map(|(min, length)| (min + length).min(SIDE)))
        })
    }

    fn slots(part: &Box3) -> impl Iterator<Item = usize> {
        let (min, max) = (part.min(), part.max());
        let all = (0..SIDE.pow(3)).map(|n| [n / (SIDE * SIDE), n / SIDE % SIDE, n % SIDE]);
        all.filter(move |at| (0..3).all(|dim| min[dim] <= at[dim] && at[dim] < max[dim]))
            .map(|at| ((at[0] * SIDE + at[1]) * SIDE + at[2]) as usize)
    }

    fn values(tiles: &BoxMap<u32>, query: &Box3) -> Vec<Option<u32>> {
        let mut found = vec![None; SIDE.pow(3) as usize];
        let collected: Result<(), Infallible> = tiles.visit(query, |part, &value| {
            for slot in slots(&part) {
                assert_eq!(found[slot], None, "no element has two values");
                found[slot] = Some(value);
            }
            Ok(())
        });
        collected.expect("collecting cannot fail");
        found
    }

    fn expected(bitmap: &[u32], query: &Box3) -> Vec<Option<u32>> {
        let mut wanted = vec![None; bitmap.len()];
        slots(query).for_each(|slot| wanted[slot] = Some(bitmap[slot]));
        wanted
    }

    #[derive(Clone, Debug)]
    enum Step {
        Set(Box3, u32),
        Add(Box3),
        Compact,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            5 => (part(), 0..3u32).prop_map(|(part, value)| Step::Set(part, value)),
            3 => part().prop_map(Step::Add),
            1 => Just(Step::Compact),
        ]
    }

    proptest! {
        #[test]
        fn tiles_equal_a_bitmap(steps in prop::collection::vec(step(), 1..60), query in part()) {
            let extent = Box3::new([0; 3], [SIDE; 3]);
            let mut tiles = BoxMap::new(extent, 0);
            let mut bitmap = vec![0; SIDE.pow(3) as usize];
            for step in steps {
                match step {
                    Step::Set(part, value) => {
                        tiles.set(&part, value);
                        slots(&part).for_each(|slot| bitmap[slot] = value);
                    }
                    Step::Add(part) => {
                        tiles.modify(&part, |value| *value = (*value + 1) % 4);
                        slots(&part).for_each(|slot| bitmap[slot] = (bitmap[slot] + 1) % 4);
                    }
                    Step::Compact => {
                        tiles.compact(|value| *value /= 2);
                        bitmap.iter_mut().for_each(|value| *value /= 2);
                    }
                }
                prop_assert_eq!(values(&tiles, &extent), expected(&bitmap, &extent));
                prop_assert_eq!(values(&tiles, &query), expected(&bitmap, &query));
            }
        }
    }

    #[test]
    fn rows_of_equal_value_become_one_tile() {
        let mut tiles = BoxMap::new(Box3::new([0; 3], [1000, 8, 1]), 0);
        for row in 0..1000 {
            tiles.set(&Box3::new([row, 0, 0], [row + 1, 8, 1]), 1);
            assert!(tiles.len() <= 2, "{} tiles after row {row}", tiles.len());
        }
        tiles.compact(|_| {});
        assert_eq!(tiles.len(), 1);
    }

    #[test]
    fn compaction_joins_what_has_become_equal() {
        let mut tiles = BoxMap::new(Box3::new([0; 3], [64, 64, 1]), 0);
        for tile in 0..64u64 {
            let min = [tile / 8 * 8, tile % 8 * 8, 0];
            tiles.set(&Box3::new(min, [min[0] + 8, min[1] + 8, 1]), tile as u32 + 1);
        }
        assert_eq!(tiles.len(), 64);
        tiles.compact(|value| *value = 0);
        tiles.compact(|_| {});
        assert!(tiles.len() <= 8, "{} tiles are left", tiles.len());
    }

    #[test]
    fn an_empty_extent_has_no_tiles() {
        let mut tiles = BoxMap::new(Box3::EMPTY, 0);
        tiles.set(&Box3::EMPTY, 1);
        assert_eq!(tiles.len(), 0);
    }
}
