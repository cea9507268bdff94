//! Tiles: the fixed pieces that an index space with reductions is computed in, and the binary tree
//! over them. Both follow from the index space alone, so that a result has the same bits on any
//! number of nodes, devices and threads. Knows geometry only.
//!
//! A reduction is made of ordinary tasks over a hidden buffer, its *partial results*, with one
//! element per tile:
//!
//! 1. the kernel writes a value for each [tile](Tiling), by [`Mapper::Tiles`](crate::Mapper);
//! 2. [`Work::HostSplit`](crate::Work): on each node, the host folds what its chunk has left to the
//!    roots of the [largest aligned subtrees](Tiling::roots), O(log tiles) values, which take the
//!    first places of the chunk's tiles;
//! 3. [`Work::Combine`](crate::Work): every node reads the roots of all and finishes the same tree.
//!
//! ```
//! use celerity_regions::Box3;
//! use celerity_tdag::{IndexSpace, Tiling};
//!
//! let space = IndexSpace::new(1, Box3::from_range([1 << 20]));
//! let tiling = Tiling::of(&space, 8);
//! assert_eq!((tiling.tile(), tiling.tiles()), ([1024, 1, 1], 1024));
//! // The first 700 tiles: six subtrees, as 700 has six bits that are set.
//! let roots = tiling.roots(&Box3::from_range([700 * 1024]));
//! assert_eq!(roots.iter().map(|root| root.tiles()).collect::<Vec<_>>(), [512, 128, 32, 16, 8, 4]);
//! ```

use std::ops::Range;

use celerity_regions::{Box3, Coord3, Region};

use crate::space::{IndexSpace, Split};

/// A tile has so many items at least, if the index space has enough: what a tile costs besides its items
/// is then bearable. Few items may take long each, so there are [`ENOUGH_TILES`] before that.
const FEWEST_ITEMS: u64 = 32;

/// Enough tiles for the threads of a small machine: before they become more than these, tiles grow to …
const FEW_TILES: u64 = 256;

/// … so many items, which is as many as have a thread of a GPU each.
const WIDE_TILE: u64 = 256;

/// Enough for the devices of a small machine: before they become more than these, tiles grow to …
const MANY_TILES: u64 = 1024;

/// … so many items: more would cost a tile hardly less for each.
const FULL_TILE: u64 = 1024;

/// Enough for 128 devices of 128 units each. More would take longer to fold on a host than they
/// bring in balance.
const MOST_TILES: u64 = 1 << 14;

/// Partial results of a reduction into a large array take about so much, or …
const MOST_BYTES: u64 = 16 << 20;

/// … what so many tiles take. They never take more than …
const ENOUGH_TILES: u64 = 64;

/// … so much for each item: to clear a number and to combine it is as much work as to find one and add to it. But there are …
const BYTES_PER_ITEM: u64 = 4;

/// … so many tiles at least: with fewer, devices would have nothing to do.
const FEWEST_TILES: u64 = 16;

/// How an index space is cut into tiles, and in which order they are counted.
///
/// Tiles are boxes of equal size, but for those at the far edges. They are counted along the
/// dimension that the space is cut along last, so that the chunks of a band split hold consecutive
/// tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tiling {
    /// The whole index space.
    space: Box3,
    /// Items per tile and dimension; never 0.
    tile: Coord3,
    /// The dimension that is counted slowest, below 3; others keep their order.
    slowest: u8,
}

/// A node of the tree over tiles: the subtree over 2ᵏ consecutive tiles from a multiple of 2ᵏ on,
/// or over all that are left there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Subtree {
    first: u64,
    level: u32,
}

impl Tiling {
    /// The tiles of an index space, for partial results of `bytes` each. Never cuts a granule of
    /// the space; ends with its edges.
    #[must_use]
    pub fn of(space: &IndexSpace, bytes: u64) -> Self {
        Self::with_items(space, items_per_tile(space.extent.volume(), bytes))
    }

    /// The same in `most` tiles at most, but for what granules and the space's shape ask for, and in
    /// tiles of 32 items or of a 64th of all, whichever is less: for partial results that need not be the same on
    /// any cluster.
    ///
    /// ```
    /// use celerity_regions::Box3;
    /// use celerity_tdag::{IndexSpace, Tiling};
    ///
    /// let space = IndexSpace::new(1, Box3::from_range([1 << 20]));
    /// assert_eq!(Tiling::coarse(&space, 100).tiles(), 100);
    /// ```
    #[must_use]
    pub fn coarse(space: &IndexSpace, most: u64) -> Self {
        let all = space.extent.volume();
        Self::with_items(space, all.div_ceil(most.max(1)).max(fewest_items(all)))
    }

    /// How many tiles a space has room for, whose partial results of `bytes` each are to take `in_all` or so: 64, if that is
    /// more, but no more than leave 4 bytes of them for each item, and 16 at least.
    ///
    /// ```
    /// use celerity_regions::Box3;
    /// use celerity_tdag::{IndexSpace, Tiling};
    ///
    /// let space = IndexSpace::new(1, Box3::from_range([1 << 22]));
    /// let fitting = |bytes| Tiling::fitting(&space, bytes, 1 << 20);
    /// assert_eq!([4 << 10, 256 << 10, 512 << 10, 4 << 20].map(fitting), [256, 64, 32, 16]);
    /// ```
    #[must_use]
    pub fn fitting(space: &IndexSpace, bytes: u64, in_all: u64) -> u64 {
        fitting(space.extent.volume(), bytes, in_all)
    }

    /// Items per tile and dimension: what chunks must be multiples of.
    #[must_use]
    pub const fn tile(&self) -> Coord3 {
        self.tile
    }

    /// The whole index space.
    #[must_use]
    pub const fn space(&self) -> Box3 {
        self.space
    }

    /// The number of tiles: 0 for an empty index space.
    #[must_use]
    pub fn tiles(&self) -> u64 {
        self.grid().into_iter().product()
    }

    /// The buffer of partial results: one for each tile.
    #[must_use]
    pub fn partials(&self) -> Box3 {
        interval(&(0..self.tiles()))
    }

    /// The dimension that tiles are counted along last, below 3; others keep their order.
    #[must_use]
    pub const fn slowest(&self) -> u8 {
        self.slowest
    }

    /// The space with chunks that end where tiles do.
    #[must_use]
    pub fn of_whole_tiles(&self, space: IndexSpace) -> IndexSpace {
        IndexSpace { granularity: self.tile, ..space }
    }

    /// Whether no chunk of `space` ends within a tile.
    #[must_use]
    pub fn fits(&self, space: &IndexSpace) -> bool {
        let whole = |dim: usize| space.granularity[dim].is_multiple_of(self.tile[dim]);
        self.space == space.extent && (0..3).all(|dim| whole(dim) || !space.is_cut_along(dim))
    }

    /// Tiles along each dimension.
    #[must_use]
    pub fn grid(&self) -> Coord3 {
        let range = self.space.range();
        std::array::from_fn(|dim| range[dim].div_ceil(self.tile[dim]))
    }

    /// The dimensions from slowest to fastest.
    fn order(&self) -> [usize; 3] {
        match self.slowest {
            0 => [0, 1, 2],
            1 => [1, 0, 2],
            _ => [2, 0, 1],
        }
    }

    /// The items of tile `index`, which is below [`tiles`](Self::tiles).
    #[must_use]
    pub fn items(&self, index: u64) -> Box3 {
        self.walk().items(index)
    }

    /// For the items of many tiles.
    #[must_use]
    pub fn walk(&self) -> TileWalk {
        TileWalk { tiling: *self, grid: self.grid(), at: [0; 3], next: 0 }
    }

    /// The items of the tile at these coordinates in the [grid](Self::grid).
    fn items_at(&self, at: Coord3) -> Box3 {
        let origin = self.space.min();
        let min: Coord3 = std::array::from_fn(|dim| origin[dim] + at[dim] * self.tile[dim]);
        let end = self.space.max();
        // A tile begins in the space: only its end may be outside.
        let max = std::array::from_fn(|dim| min[dim].saturating_add(self.tile[dim]).min(end[dim]));
        Box3::new(min, max)
    }

    fn with_items(space: &IndexSpace, items: u64) -> Self {
        let slowest = match space.split {
            Split::OneDimensional | Split::Tiled => 0,
            Split::Along(dim) => dim,
        };
        Self { space: space.extent, tile: shape(space, items), slowest }
    }

    /// The tiles that have an item in `part`, as ranges of consecutive ones, ascending. One range
    /// for a chunk of a band split; O(ranges).
    #[must_use]
    pub fn touching(&self, part: &Box3) -> Vec<Range<u64>> {
        let part = part.intersection(&self.space);
        if part.is_empty() {
            return Vec::new();
        }
        let (grid, order, origin) = (self.grid(), self.order(), self.space.min());
        let along = |dim: usize| {
            let tile = |at: u64| (at - origin[dim]) / self.tile[dim];
            tile(part.min()[dim])..tile(part.max()[dim] - 1) + 1
        };
        let [slow, middle, fast] = order.map(along);
        let [_, middles, fasts] = order.map(|dim| grid[dim]);
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let mut add = |first: u64, last: u64| match ranges.last_mut() {
            Some(before) if before.end == first => before.end = last,
            _ => ranges.push(first..last),
        };
        if middle == (0..middles) && fast == (0..fasts) {
            add(slow.start * middles * fasts, slow.end * middles * fasts);
        } else {
            for row in slow.flat_map(|slow| middle.clone().map(move |at| slow * middles + at)) {
                add(row * fasts + fast.start, row * fasts + fast.end);
            }
        }
        ranges
    }

    /// The partial results of the tiles that have an item in `part`.
    #[must_use]
    pub fn partials_of(&self, part: &Box3) -> Region {
        Region::from_boxes(self.touching(part).iter().map(interval))
    }

    /// Where a node with the chunk `part` leaves what it has folded: the [roots](Self::roots) of
    /// each range of tiles take its first places.
    #[must_use]
    pub fn folded(&self, part: &Box3) -> Region {
        let all = self.tiles();
        Region::from_boxes(self.touching(part).into_iter().map(|Range { start, end }| {
            let roots = Subtree::covering(start..end, all).count() as u64;
            #[cfg(feature = "mutants")]
            let roots = celerity_mutants::Mutant::LastRootUnread
                .alter(roots, |roots| if roots > 1 { roots - 1 } else { roots });
            interval(&(start..start + roots))
        }))
    }

    /// The largest subtrees within the tiles of `part`, ascending: together all of these tiles,
    /// each once. At most 2·log₂(tiles) for each of the [ranges](Self::touching).
    #[must_use]
    pub fn roots(&self, part: &Box3) -> Vec<Subtree> {
        let all = self.tiles();
        self.touching(part).into_iter().flat_map(|tiles| Subtree::covering(tiles, all)).collect()
    }
}

/// The items of tiles, asked for one tile after the other.
///
/// ```
/// use celerity_regions::Box3;
/// use celerity_tdag::{IndexSpace, Tiling};
///
/// let tiling = Tiling::of(&IndexSpace::new(1, Box3::from_range([2100])), 8);
/// let mut walk = tiling.walk();
/// assert_eq!(walk.items(0), Box3::from_range([32]));
/// assert_eq!(walk.items(1), Box3::from_offset_range([32], [32]));
/// assert_eq!(walk.items(65), Box3::from_offset_range([2080], [20]));
/// ```
#[derive(Clone, Debug)]
pub struct TileWalk {
    tiling: Tiling,
    grid: Coord3,
    /// Of tile `next` in the grid.
    at: Coord3,
    next: u64,
}

impl TileWalk {
    /// The items of tile `index`, which is below [`Tiling::tiles`]. Takes divisions, half of what a
    /// tile of a cheap kernel costs, unless it is the tile behind the last one.
    pub fn items(&mut self, index: u64) -> Box3 {
        if index != self.next {
            self.find(index);
        }
        let items = self.tiling.items_at(self.at);
        self.advance();
        items
    }

    fn find(&mut self, index: u64) {
        let mut rest = index;
        for dim in self.tiling.order().into_iter().rev() {
            self.at[dim] = rest % self.grid[dim];
            rest /= self.grid[dim];
        }
        self.next = index;
    }

    fn advance(&mut self) {
        self.next += 1;
        for dim in self.tiling.order().into_iter().rev() {
            self.at[dim] += 1;
            if self.at[dim] < self.grid[dim] {
                return;
            }
            self.at[dim] = 0;
        }
    }
}

/// Items per tile: a power of two, so that accumulators divide them.
fn items_per_tile(items: u64, bytes: u64) -> u64 {
    let at_most = |tiles: u64| items.div_ceil(tiles).next_power_of_two();
    let few = at_most(FEW_TILES).clamp(fewest_items(items), WIDE_TILE);
    let many = at_most(MANY_TILES).min(FULL_TILE);
    few.max(many).max(at_most(fitting(items, bytes, MOST_BYTES)))
}

/// How many items a tile has at least, of so many in all.
fn fewest_items(items: u64) -> u64 {
    items.div_ceil(ENOUGH_TILES).next_power_of_two().min(FEWEST_ITEMS)
}

/// As [`Tiling::fitting`].
fn fitting(items: u64, bytes: u64, in_all: u64) -> u64 {
    let bytes = bytes.max(1);
    let worth = items.saturating_mul(BYTES_PER_ITEM) / bytes;
    (in_all / bytes).max(ENOUGH_TILES).min(worth).clamp(FEWEST_TILES, MOST_TILES)
}

/// The box that holds about so many items: whole rows of the fastest dimension first, but not
/// more than a cache line or two along a dimension that is cut.
fn shape(space: &IndexSpace, items: u64) -> Coord3 {
    let (range, granule) = (space.extent.range(), space.granularity);
    let mut tile = [1; 3];
    let mut rest = items;
    let mut take = |dim: usize, most: u64| {
        let wanted = rest.min(most).min(range[dim].max(1));
        tile[dim] = wanted.div_ceil(granule[dim]) * granule[dim];
        rest = rest.div_ceil(tile[dim]);
    };
    let fastest = usize::from(space.dims.max(1)) - 1;
    let is_cut = |dim: usize| space.is_cut_along(dim);
    let is_alone = (0..3).all(|dim| dim == fastest || range[dim] <= 1);
    take(fastest, if is_cut(fastest) && !is_alone { ACROSS } else { u64::MAX });
    let others = || (0..fastest).rev();
    others().filter(|&dim| !is_cut(dim)).for_each(|dim| take(dim, u64::MAX));
    others().filter(|&dim| is_cut(dim)).for_each(|dim| take(dim, u64::MAX));
    // What other dimensions have no room for.
    let wanted = tile[fastest].saturating_mul(rest).min(range[fastest].max(1));
    tile[fastest] = tile[fastest].max(wanted.div_ceil(granule[fastest]) * granule[fastest]);
    tile
}

/// Items of a tile along the fastest dimension, if the space is cut along it.
const ACROSS: u64 = 64;

impl Subtree {
    /// The subtree that is tile `tile` alone.
    #[must_use]
    pub const fn leaf(tile: u64) -> Self {
        Self { first: tile, level: 0 }
    }

    /// The largest subtree that begins with tile `first` and ends by `end`, of `all` tiles.
    fn largest(first: u64, end: u64, all: u64) -> Self {
        let mut largest = Self::leaf(first);
        loop {
            let Self { first, level } = largest;
            let next = Self { first, level: level + 1 };
            let is_aligned = first.trailing_zeros() >= next.level;
            // One whose second half would be empty is its first half.
            let has_both = first + (1 << level) < all;
            if !is_aligned || !has_both || next.end().min(all) > end {
                return largest;
            }
            largest = next;
        }
    }

    /// The largest subtrees that together are these of `all` tiles, ascending.
    pub fn covering(tiles: Range<u64>, all: u64) -> impl Iterator<Item = Self> {
        let next =
            move |first: u64| (first < tiles.end).then(|| Self::largest(first, tiles.end, all));
        std::iter::successors(next(tiles.start), move |root| next(root.end()))
    }

    /// The number of its first tile.
    #[must_use]
    pub const fn first(&self) -> u64 {
        self.first
    }

    /// The logarithm of the number of its tiles, had it all of them.
    #[must_use]
    pub const fn level(&self) -> u32 {
        self.level
    }

    /// Its tiles, if none are missing at the end.
    #[must_use]
    pub const fn tiles(&self) -> u64 {
        1 << self.level
    }

    /// Behind its last tile, if none are missing at the end.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.first + self.tiles()
    }

    /// Whether this and the subtree behind it are the two halves of one.
    #[must_use]
    pub const fn is_first_half_with(&self, next: &Self) -> bool {
        self.level == next.level
            && self.end() == next.first
            && self.first.trailing_zeros() > self.level
    }

    /// The subtree of which this is the first half.
    #[must_use]
    pub const fn whole(&self) -> Self {
        Self { first: self.first, level: self.level + 1 }
    }
}

/// Combines the values of consecutive subtrees, ascending, as the tree over them says: always the
/// same pairs in the same order, however the tiles are cut into subtrees. `None` of nothing.
/// O(subtrees), and O(log subtrees) values at a time.
pub fn fold<T>(
    subtrees: impl IntoIterator<Item = (Subtree, T)>,
    mut combine: impl FnMut(T, T) -> T,
) -> Option<T> {
    let mut stack: Vec<(Subtree, T)> = Vec::new();
    for (mut subtree, mut value) in subtrees {
        while let Some((before, earlier)) =
            stack.pop_if(|(top, _)| top.is_first_half_with(&subtree))
        {
            (subtree, value) = (before.whole(), combine(earlier, value));
        }
        stack.push((subtree, value));
    }
    // What has no second half is one: the tree ends there.
    let (_, mut value) = stack.pop()?;
    while let Some((_, earlier)) = stack.pop() {
        value = combine(earlier, value);
    }
    Some(value)
}

fn interval(tiles: &Range<u64>) -> Box3 {
    Box3::new([tiles.start, 0, 0], [tiles.end, 1, 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space<const D: usize>(range: [usize; D], split: Split) -> IndexSpace {
        IndexSpace { split, ..IndexSpace::new(D as u8, Box3::from_range(range)) }
    }

    /// Index spaces in all dimensions, cut along each. Miri, which takes long for each tile, is given few
    /// tiles.
    fn spaces() -> Vec<IndexSpace> {
        if cfg!(miri) {
            let offset = Box3::from_offset_range([7, 3], [10, 9]);
            return vec![
                space([], Split::OneDimensional),
                space([7, 60], Split::Along(1)),
                IndexSpace { granularity: [3, 16, 1], ..space([5, 50], Split::Tiled) },
                IndexSpace { extent: offset, ..space([0, 0], Split::OneDimensional) },
                space([3, 5, 8], Split::Tiled),
            ];
        }
        let offset = Box3::from_offset_range([7, 3], [100, 1000]);
        vec![
            space([], Split::OneDimensional),
            space([1], Split::OneDimensional),
            space([5000], Split::OneDimensional),
            space([300, 7], Split::OneDimensional),
            space([7, 60], Split::Along(1)),
            space([7, 3000], Split::Along(1)),
            space([90, 110], Split::Tiled),
            space([20, 30, 40], Split::Tiled),
            space([20, 30, 40], Split::Along(2)),
            space([20, 30, 40], Split::Along(1)),
            IndexSpace { granularity: [3, 16, 1], ..space([50, 500], Split::Tiled) },
            IndexSpace { extent: offset, ..space([0, 0], Split::OneDimensional) },
        ]
    }

    /// The tree by its definition, as text.
    fn naive(tiles: Range<u64>, all: u64) -> String {
        match tiles.end - tiles.start {
            1 => tiles.start.to_string(),
            len => {
                let middle = tiles.start + len / 2;
                match middle < all {
                    true => {
                        let halves = [tiles.start..middle, middle..tiles.end];
                        let [first, second] = halves.map(|half| naive(half, all));
                        format!("({first} {second})")
                    }
                    false => naive(tiles.start..middle, all),
                }
            }
        }
    }

    fn join(earlier: String, later: String) -> String {
        format!("({earlier} {later})")
    }

    #[test]
    fn tiles_are_a_partition_that_granules_respect() {
        for space in spaces() {
            let tiling = Tiling::of(&space, 8);
            let tiles: Vec<Box3> = (0..tiling.tiles()).map(|tile| tiling.items(tile)).collect();
            let volume: u64 = tiles.iter().map(Box3::volume).sum();
            assert_eq!(volume, space.extent.volume(), "{space:?}");
            assert_eq!(Region::from_boxes(tiles.iter().copied()), space.extent.into());
            for (index, tile) in tiles.iter().enumerate() {
                let index = index as u64;
                assert_eq!(tiling.touching(tile), vec![Range { start: index, end: index + 1 }]);
                let fits = |dim: usize| tiling.tile()[dim].is_multiple_of(space.granularity[dim]);
                assert!((0..3).all(fits), "{space:?} has tiles of {:?}", tiling.tile());
            }
        }
    }

    #[test]
    fn tiles_are_found_in_any_order() {
        for space in spaces() {
            let tiling = Tiling::of(&space, 8);
            let all: Vec<u64> = (0..tiling.tiles()).collect();
            let mut walk = tiling.walk();
            let jumps = all.iter().rev().chain(all.iter().step_by(3));
            for &tile in all.iter().chain(jumps).chain(&all) {
                assert_eq!(walk.items(tile), tiling.items(tile), "tile {tile} of {space:?}");
            }
        }
    }

    #[test]
    fn chunks_of_whole_tiles_partition_the_partial_results() {
        for space in spaces() {
            let tiling = Tiling::of(&space, 4);
            let space = tiling.of_whole_tiles(space);
            assert!(tiling.fits(&space));
            for parts in if cfg!(miri) { 3..5 } else { 1..9 } {
                let mut seen = Region::empty();
                for chunk in space.split(&space.extent, parts).iter() {
                    let partials = tiling.partials_of(&chunk);
                    assert!(!partials.intersects(&seen), "{space:?} in {parts} parts");
                    seen.union_with(&partials);
                }
                assert_eq!(seen, tiling.partials().into());
            }
        }
    }

    #[test]
    fn a_band_is_one_range_of_tiles_whatever_it_runs_along() {
        for split in [Split::OneDimensional, Split::Along(1), Split::Along(2)] {
            let space = space([40, 50, 300], split);
            let tiling = Tiling::of(&space, 8);
            let chunks = tiling.of_whole_tiles(space).split(&space.extent, 3);
            assert_eq!(chunks.len(), 3, "{split:?} has too few tiles");
            for chunk in chunks.iter() {
                assert_eq!(tiling.touching(&chunk).len(), 1, "{split:?}");
                assert!(tiling.roots(&chunk).len() <= 28, "{split:?}");
            }
        }
    }

    #[test]
    fn the_tree_is_the_same_however_tiles_are_cut() {
        let sizes = if cfg!(miri) { 1..6 } else { 1..40 };
        let more: &[usize] = if cfg!(miri) { &[13] } else { &[63, 64, 65, 100] };
        for items in sizes.chain(more.iter().copied()) {
            let tiling = Tiling { space: Box3::from_range([items]), tile: [1; 3], slowest: 0 };
            let all = items as u64;
            let expected = naive(0..all.next_power_of_two(), all);
            for parts in 1..=items.min(if cfg!(miri) { 3 } else { 7 }) {
                let space = IndexSpace::new(1, tiling.space);
                let mut roots = Vec::new();
                for chunk in space.split(&space.extent, parts).iter() {
                    let places = tiling.folded(&chunk);
                    assert_eq!(places.volume(), tiling.roots(&chunk).len() as u64);
                    assert!(tiling.partials_of(&chunk).contains(&places));
                    for root in tiling.roots(&chunk) {
                        let tiles = root.first()..root.end().min(all);
                        let leaves = tiles.map(|tile| (Subtree::leaf(tile), tile.to_string()));
                        roots.push((root, fold(leaves, join).unwrap()));
                    }
                }
                assert_eq!(fold(roots, join).unwrap(), expected, "{items} tiles on {parts} nodes");
            }
        }
        assert_eq!(fold([], join), None);
    }

    #[test]
    fn tiles_are_neither_few_nor_many() {
        let tiles =
            |items: usize, bytes| Tiling::of(&space([items], Split::OneDimensional), bytes).tiles();
        assert_eq!((tiles(1, 4), tiles(1000, 4), tiles(1 << 15, 4)), (1, 63, 256));
        // Few items may take long each.
        assert_eq!([40, 64, 65, 2048, 2049].map(|items| tiles(items, 4)), [40, 64, 33, 64, 65]);
        assert_eq!([1 << 13, 1 << 16, 1 << 18].map(|items| tiles(items, 4)), [256, 256, 1024]);
        assert_eq!((tiles(1 << 20, 4), tiles(1 << 24, 4), tiles(1 << 28, 4)), (1024, 16384, 16384));
        // Histograms of 64 Ki bins, of 512 Ki, of which 32 have as many as there are items, and of 16 Mi.
        assert_eq!([1 << 18, 1 << 21, 1 << 26].map(|bytes| tiles(1 << 24, bytes)), [64, 32, 16]);
        assert_eq!(tiles(1 << 24, 1 << 12), 4096);
        // Of few items, each tile's bins are not more than its items.
        assert_eq!([1 << 16, 1 << 10].map(|items| tiles(items, 4 << 10)), [64, 16]);
        assert_eq!(tiles(0, 4), 0);
        // Cut along the dimension that alone is long.
        let flat = Tiling::of(&space([8, 1 << 24], Split::Along(1)), 4);
        assert_eq!((flat.tile(), flat.tiles()), ([8, 1024, 1], 16384));
    }

    #[test]
    fn coarse_tiles_are_as_few_as_is_asked_for() {
        for space in spaces() {
            for most in [0, 1, 3, 64, 1000] {
                let tiling = Tiling::coarse(&space, most);
                let items: u64 = (0..tiling.tiles()).map(|tile| tiling.items(tile).volume()).sum();
                assert_eq!(items, space.extent.volume(), "{space:?} in {most}");
                let all = space.extent.volume();
                let least = FEWEST_ITEMS.min(all / ENOUGH_TILES).max(all / most.max(1));
                let tile: u64 = tiling.tile().iter().product();
                assert!(tile >= least, "{space:?} in {most}: {tile}");
                assert!(tiling.fits(&tiling.of_whole_tiles(space)));
            }
        }
        let line = space([1 << 20], Split::OneDimensional);
        assert_eq!([1, 3, 1024].map(|most| Tiling::coarse(&line, most).tiles()), [1, 3, 1024]);
        let empty = space([0], Split::OneDimensional);
        assert_eq!(Tiling::coarse(&empty, 8).tiles(), 0);
    }
}
