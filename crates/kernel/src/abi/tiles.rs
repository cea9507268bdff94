//! Launches with reductions: one block for each tile of the chunk, and the order in which the
//! threads of a block take its items. Pure arithmetic, so that hosts can run it, too: tests do.
//!
//! A tile has [`lanes`](Tiles::lanes) accumulators. Item `p` of a tile, row-major, is combined into
//! accumulator `p` modulo their number; then halves are combined until one is left, accumulator `i`
//! with `i + n / 2`. A block has a thread for each, which keeps it in a register. Of a stencil, where rows are aligned
//! for it, a thread takes runs of items, as in a launch without tiles (see [`place`](super::place)), and has the
//! accumulators of as many neighbours.

use super::blocks::{LaunchBlock, first};
use super::place::{Chosen, Edges, Inside, Place, Seat, StackLevel, Thread, Traverse};

/// Accumulators of a tile, at most: threads of a block of a GPU, and few enough that those of several
/// reductions stay in the first-level cache of a CPU, and that to clear and to combine them is little beside
/// the items of a tile.
pub const LANES: usize = 256;

/// Items that a thread takes at once, where there are so many: their loads are on their way
/// together. All there is of a tile of 1,024 items is the smaller number of each thread's.
const BATCHES: [u32; 2] = [8, 4];

/// How the index space of a kernel that reduces is cut into tiles. In three dimensions, as
/// [`Chunk`](super::Chunk).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiles {
    /// The first item of the index space.
    pub origin: [usize; 3],
    /// Items of a tile, but for those at the far edges; nothing is 0.
    pub tile: [usize; 3],
    /// Tiles of the whole index space.
    pub grid: [usize; 3],
    /// The dimension along which tiles are counted last, below 3; others keep their order.
    pub slowest: usize,
}

/// What all threads of a launch with reductions are told about tiles. Dimensions as in
/// [`LaunchBlock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct TileBlock {
    /// Items of a tile.
    pub tile: [u64; 3],
    /// Tiles of the chunk. Its blocks are counted row-major.
    pub chunk: [u64; 3],
    /// How far tiles that are neighbours are apart in the count of all tiles.
    pub strides: [u64; 3],
    /// The number of the chunk's first tile among all.
    pub first: u64,
}

const _: () = assert!(size_of::<TileBlock>() == 80 && align_of::<TileBlock>() == 8);

/// The tile of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileSeat<const K: usize> {
    /// Its number among all tiles.
    pub number: u64,
    /// The index of its first item in each dimension.
    pub min: [usize; K],
    /// The same, counted from the chunk's first item.
    pub from: [usize; K],
    /// Its items in each dimension.
    pub range: [u32; K],
}

impl Tiles {
    /// How many accumulators a tile has: as many as items, rounded up to a power of two, and not
    /// more than [`LANES`].
    #[must_use]
    pub fn lanes(&self) -> usize {
        let items = self.tile.iter().fold(1, |items: usize, &size| items.saturating_mul(size));
        items.min(LANES).next_power_of_two()
    }

    /// Whether the tiles of a chunk that ends at `end`, of so many dimensions, are whole runs of so many items, side by
    /// side: but for the last one, where tiles are single rows.
    pub(super) fn are_runs(&self, run: usize, dims: usize, end: [usize; 3]) -> bool {
        let Some(fastest) = dims.checked_sub(1) else { return false };
        let begin_with_runs = self.tile[fastest].is_multiple_of(run) || self.grid[fastest] == 1;
        let is_row = self.tile[..fastest].iter().all(|&size| size == 1);
        let ends_with_runs = (end[fastest] - self.origin[fastest]).is_multiple_of(run);
        self.lanes() >= run && begin_with_runs && (is_row || ends_with_runs)
    }

    /// How far neighbours are apart in the count of tiles, per dimension.
    fn strides(&self) -> [u64; 3] {
        let order = match self.slowest {
            0 => [0, 1, 2],
            1 => [1, 0, 2],
            _ => [2, 0, 1],
        };
        let (mut strides, mut stride) = ([0; 3], 1);
        for dim in order.into_iter().rev() {
            strides[dim] = stride;
            stride *= self.grid[dim] as u64;
        }
        strides
    }

    /// What threads are told of the tiles of `range` items from `offset` on; `None` if that are not
    /// whole tiles, or a tile has more items than a thread counts.
    pub(super) fn block(&self, offset: [usize; 3], range: [usize; 3]) -> Option<TileBlock> {
        let items = self.tile.iter().try_fold(1, |items: usize, &size| items.checked_mul(size))?;
        let (strides, mut first) = (self.strides(), 0);
        for dim in 0..3 {
            let (from, tile) = (offset[dim].checked_sub(self.origin[dim])?, self.tile[dim]);
            let (at, last) = (from / tile, (from + range[dim]).div_ceil(tile));
            let ends = from + range[dim];
            let is_whole =
                from.is_multiple_of(tile) && (ends.is_multiple_of(tile) || last == self.grid[dim]);
            if !is_whole || items > 1 << 30 {
                return None;
            }
            first += at as u64 * strides[dim];
        }
        let chunk = core::array::from_fn(|dim| range[dim].div_ceil(self.tile[dim]) as u64);
        let tile = self.tile.map(|size| size as u64);
        Some(TileBlock { tile, chunk, strides, first })
    }
}

impl TileBlock {
    /// The block as a device reads it.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; size_of::<Self>()] {
        let Self { tile, chunk, strides, first } = *self;
        let mut bytes = [0; size_of::<Self>()];
        super::blocks::put(&mut bytes, [tile, chunk, strides].as_flattened());
        super::blocks::put(&mut bytes[72..], &[first]);
        bytes
    }

    /// The tile that a block computes.
    #[inline]
    #[must_use]
    pub fn seat<const K: usize>(&self, launch: &LaunchBlock, block: u32) -> TileSeat<K> {
        let chunk: [usize; K] = first(self.chunk);
        let at = delinearize(block, chunk.map(|tiles| tiles as u32));
        let (mut number, mut start, mut range) = (self.first, [0; K], [0; K]);
        for dim in 0..K {
            let from = u64::from(at[dim]) * self.tile[dim];
            number += u64::from(at[dim]) * self.strides[dim];
            start[dim] = from as usize;
            range[dim] = self.tile[dim].min(launch.range[dim] - from) as u32;
        }
        let min = core::array::from_fn(|dim| launch.offset[dim] as usize + start[dim]);
        TileSeat { number, min, from: start, range }
    }
}

impl<const K: usize> TileSeat<K> {
    fn items(&self) -> u32 {
        self.range.iter().product()
    }
}

/// The items that a thread takes, so many apart, as indices in the tile.
struct Walk<const K: usize> {
    at: [u32; K],
    step: [u32; K],
    range: [u32; K],
}

impl<const K: usize> Walk<K> {
    #[inline(always)]
    fn new(range: [u32; K], thread: u32, threads: u32) -> Self {
        Self { at: delinearize(thread, range), step: delinearize(threads, range), range }
    }

    /// The item it is at, counted from the chunk's first.
    #[inline(always)]
    fn item(&self, tile: &TileSeat<K>) -> [usize; K] {
        core::array::from_fn(|dim| tile.from[dim] + self.at[dim] as usize)
    }

    /// Goes on to the next. No division: this is done for each item.
    #[inline(always)]
    fn advance(&mut self) {
        let mut carry = 0;
        for dim in (0..K).rev() {
            let at = self.at[dim] + self.step[dim] + carry;
            // The slowest one ends beyond the tile, and is not looked at then.
            carry = u32::from(dim > 0 && at >= self.range[dim]);
            self.at[dim] = if carry > 0 { at - self.range[dim] } else { at };
        }
    }
}

/// The index at a row-major position. Of one dimension, the position.
#[inline(always)]
fn delinearize<const K: usize>(mut position: u32, range: [u32; K]) -> [u32; K] {
    let mut at = [0; K];
    for dim in (0..K).rev() {
        if dim == 0 {
            at[dim] = position;
        } else {
            let size = range[dim].max(1);
            (at[dim], position) = (position % size, position / size);
        }
    }
    at
}

/// How many accumulators a thread has of a tile, which are neighbours.
#[inline(always)]
pub fn lanes_per_thread<const K: usize, By: Traverse>(launch: &LaunchBlock) -> usize {
    let run = const { By::TRAVERSAL.run };
    if run > 1 && K > 0 && launch.run > 1 { run } else { 1 }
}

/// Calls `call` for the items of a tile that one of its threads takes, with which of the thread's accumulators each is
/// combined into.
#[inline(always)]
pub fn visit_tile<const K: usize, By: Traverse>(
    launch: &LaunchBlock,
    tile: &TileSeat<K>,
    (thread, threads): (u32, u32),
    mut call: impl FnMut(Place<K>, usize),
) {
    if lanes_per_thread::<K, By>(launch) > 1 {
        visit_runs::<K, By>(launch, tile, (thread, threads), call);
    } else {
        let bordered = const { !matches!(By::TRAVERSAL.edges, Edges::Unseen) };
        visit_items(launch, tile, (thread, threads), bordered, |place| call(place, 0));
    }
}

/// The same in runs. An accumulator is a number that compilers see: so it stays in a register.
#[inline(always)]
fn visit_runs<const K: usize, By: Traverse>(
    launch: &LaunchBlock,
    tile: &TileSeat<K>,
    (thread, threads): (u32, u32),
    mut call: impl FnMut(Place<K>, usize),
) {
    let run = const { By::TRAVERSAL.run as u32 };
    let inner = launch.inner_min[K - 1] as usize..launch.inner_max[K - 1] as usize;
    let (items, mut position) = (tile.items(), thread * run);
    let mut walk = Walk::new(tile.range, position, threads * run);
    while position < items {
        let at: [usize; K] = walk.item(tile);
        let first = Chosen::at_item(launch, at);
        let mut item = |place: Place<K>| call(place, place.within);
        if inner.contains(&at[K - 1]) {
            first.run::<K, By>(StackLevel::ONLY, &mut item);
        } else {
            let mut one = |within: u32| {
                if within < run && position + within < items {
                    let mut at = at;
                    at[K - 1] += within as usize;
                    call(Place::single(launch, at), within as usize);
                }
            };
            one(0);
            one(1);
            one(2);
            one(3);
        }
        walk.advance();
        position += threads * run;
    }
}

/// The same, one item after the other. `bordered`: whether there is a neighbourhood.
#[inline(always)]
fn visit_items<const K: usize>(
    launch: &LaunchBlock,
    tile: &TileSeat<K>,
    (thread, threads): (u32, u32),
    bordered: bool,
    mut call: impl FnMut(Place<K>),
) {
    let mut walk = Walk::new(tile.range, thread, threads);
    let mut take = || {
        let at = walk.item(tile);
        let is_inner = !bordered || launch.is_inner(at);
        let inside = if is_inner { Inside::All } else { Inside::Unknown };
        call(Place { inside, ..Place::single(launch, at) });
        walk.advance();
    };
    let (items, mut position) = (tile.items(), thread);
    let [many, some] = BATCHES;
    while position + (many - 1) * threads < items {
        for _ in 0..many {
            take();
        }
        position += many * threads;
    }
    if position + (some - 1) * threads < items {
        for _ in 0..some {
            take();
        }
        position += some * threads;
    }
    while position < items {
        take();
        position += threads;
    }
}

/// Calls `call` for the items of a tile that one of its threads takes, where blocks are groups: one
/// item of each group, group by group. All threads make equally many calls, and `meet` is called by
/// all of them between two.
#[inline(always)]
pub fn visit_groups<const K: usize>(
    launch: &LaunchBlock,
    tile: &TileSeat<K>,
    thread: &Thread,
    mut meet: impl FnMut(),
    mut call: impl FnMut(Seat<K>),
) {
    let along = |axes: [u32; 3]| -> [u32; K] { core::array::from_fn(|dim| axes[K - 1 - dim]) };
    let (local, size) = (along(thread.thread), along(thread.threads));
    let groups: [u32; K] = core::array::from_fn(|dim| tile.range[dim] / size[dim].max(1));
    for number in 0..groups.iter().product() {
        if number > 0 {
            meet();
        }
        let at = delinearize(number, groups);
        let from: [usize; K] =
            core::array::from_fn(|dim| tile.from[dim] + (at[dim] * size[dim]) as usize);
        let place =
            Place::single(launch, core::array::from_fn(|dim| from[dim] + local[dim] as usize));
        let first: [usize; K] = first(launch.offset);
        let group =
            core::array::from_fn(|dim| (first[dim] + from[dim]) / size[dim].max(1) as usize);
        let [local, size] = [local, size].map(|sizes| sizes.map(|size| size as usize));
        call(Seat { place, local, group, size });
    }
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use super::super::place::Traversal;
    use super::*;

    fn launch(offset: [usize; 3], range: [usize; 3]) -> LaunchBlock {
        let [offset, range] = [offset, range].map(|sizes| sizes.map(|size| size as u64));
        LaunchBlock::one_by_one(offset, range)
    }

    /// A stencil that takes runs of so many items.
    struct InRuns<const RUN: usize>;

    impl<const RUN: usize> Traverse for InRuns<RUN> {
        const TRAVERSAL: Traversal =
            Traversal { run: RUN, by_item: true, edges: Edges::Apart, stack: 1, is_joined: true };
    }

    /// Every item of an index space in one chunk, with its tile and its accumulator there. Neighbourhoods reach one item far.
    fn visited<const K: usize, By: Traverse>(
        tiles: &Tiles,
        offset: [usize; 3],
        range: [usize; 3],
    ) -> Vec<(u64, [usize; K], usize)> {
        let (block, mut launch) = (tiles.block(offset, range).unwrap(), launch(offset, range));
        let run = By::TRAVERSAL.run;
        if K > 0 && tiles.are_runs(run, K, core::array::from_fn(|dim| offset[dim] + range[dim])) {
            launch.run = run as u16;
            launch.inner_min[K - 1] = run as u64;
            launch.inner_max[K - 1] = (range[K - 1].saturating_sub(1) / run * run) as u64;
        }
        let each = lanes_per_thread::<K, By>(&launch);
        let mut visited = Vec::new();
        for number in 0..block.chunk.iter().product::<u64>() {
            let seat = block.seat::<K>(&launch, number as u32);
            let threads = (tiles.lanes() / each) as u32;
            for thread in 0..threads {
                visit_tile::<K, By>(&launch, &seat, (thread, threads), |place, nth| {
                    assert_eq!(place.len, 1);
                    visited.push((seat.number, place.start, thread as usize * each + nth));
                });
            }
        }
        visited.sort_unstable();
        visited
    }

    /// The same by the definition.
    fn expected<const K: usize>(
        tiles: &Tiles,
        offset: [usize; 3],
        range: [usize; 3],
    ) -> Vec<(u64, [usize; K], usize)> {
        let strides = tiles.strides();
        let mut seen = vec![0; tiles.grid.iter().product()];
        let mut expected = Vec::new();
        for z in offset[0]..offset[0] + range[0] {
            for y in offset[1]..offset[1] + range[1] {
                for x in offset[2]..offset[2] + range[2] {
                    let item = [z, y, x];
                    let tile = (0..3).map(|dim| {
                        ((item[dim] - tiles.origin[dim]) / tiles.tile[dim]) as u64 * strides[dim]
                    });
                    let tile: u64 = tile.sum();
                    // Row-major over all items is row-major within each tile.
                    let position = seen[tile as usize];
                    seen[tile as usize] += 1;
                    let item = core::array::from_fn(|dim| item[dim]);
                    expected.push((tile, item, position % tiles.lanes()));
                }
            }
        }
        expected.sort_unstable();
        expected
    }

    fn check<const K: usize>(origin: [usize; 3], range: [usize; 3], tile: [usize; 3]) {
        for slowest in 0..K.max(1) {
            let grid = core::array::from_fn(|dim| range[dim].div_ceil(tile[dim]));
            let tiles = Tiles { origin, tile, grid, slowest };
            check_chunk::<K>(&tiles, origin, range);
            // All but the first tiles along one dimension.
            let (mut offset, mut rest) = (origin, range);
            let dim = slowest.min(K.saturating_sub(1));
            if grid[dim] > 1 {
                (offset[dim], rest[dim]) = (origin[dim] + tile[dim], range[dim] - tile[dim]);
                check_chunk::<K>(&tiles, offset, rest);
            }
        }
    }

    fn check_chunk<const K: usize>(tiles: &Tiles, offset: [usize; 3], range: [usize; 3]) {
        let expected = expected::<K>(tiles, offset, range);
        assert_eq!(visited::<K, InRuns<1>>(tiles, offset, range), expected);
        assert_eq!(visited::<K, InRuns<2>>(tiles, offset, range), expected);
        assert_eq!(visited::<K, InRuns<4>>(tiles, offset, range), expected);
    }

    #[test]
    fn every_item_is_combined_once_and_where_it_belongs() {
        check::<0>([0; 3], [1; 3], [1; 3]);
        let long = if cfg!(miri) { (20, 8) } else { (100, 32) };
        for (range, tile) in [(1, 1), (2, 2), (3, 2), long] {
            check::<1>([0; 3], [range, 1, 1], [tile, 1, 1]);
        }
        check::<2>([3, 5, 0], [5, 9, 1], [4, 4, 1]);
        check::<3>([1, 2, 3], [4, 3, 5], [2, 2, 4]);
        // Many items take minutes under Miri.
        if cfg!(miri) {
            return;
        }
        for (range, tile) in [(5000, 1024), (20_000, 7000)] {
            check::<1>([0; 3], [range, 1, 1], [tile, 1, 1]);
        }
        check::<1>([77, 0, 0], [3000, 1, 1], [999, 1, 1]);
        check::<2>([0; 3], [50, 70, 1], [7, 70, 1]);
        check::<2>([3, 5, 0], [50, 300, 1], [64, 64, 1]);
        check::<2>([0; 3], [5000, 1, 1], [4096, 1, 1]);
        check::<3>([0; 3], [9, 10, 33], [2, 10, 33]);
        check::<3>([1, 2, 3], [20, 13, 40], [8, 4, 32]);
    }

    #[test]
    fn groups_of_a_tile_come_one_after_the_other() {
        let tiles = Tiles { origin: [0; 3], tile: [8, 12, 1], grid: [2, 2, 1], slowest: 1 };
        let range = [12, 24, 1];
        let (block, launch) = (tiles.block([0; 3], range).unwrap(), launch([0; 3], range));
        let mut seen = vec![0; 12 * 24];
        for number in 0..4 {
            let tile = block.seat::<2>(&launch, number);
            for (y, x) in (0..4).flat_map(|y| (0..3).map(move |x| (y, x))) {
                let thread =
                    Thread { block: [number, 0, 0], thread: [x, y, 0], threads: [3, 4, 1] };
                let (mut calls, mut meetings) = (0, 0);
                visit_groups(
                    &launch,
                    &tile,
                    &thread,
                    || meetings += 1,
                    |seat| {
                        let [row, column] = seat.place.start;
                        assert_eq!((row % 4, column % 3), (y as usize, x as usize));
                        assert_eq!(
                            (seat.group, seat.local),
                            ([row / 4, column / 3], [row % 4, column % 3])
                        );
                        seen[row * 24 + column] += 1;
                        calls += 1;
                    },
                );
                assert_eq!((calls, meetings), (tile.items() / 12, tile.items() / 12 - 1));
            }
        }
        assert!(seen.iter().all(|&count| count == 1));
    }

    #[test]
    fn chunks_that_cut_tiles_are_refused() {
        let tiles = Tiles { origin: [10, 0, 0], tile: [8, 1, 1], grid: [3, 1, 1], slowest: 0 };
        let block = |offset, range| tiles.block([offset, 0, 0], [range, 1, 1]);
        assert!(block(10, 20).is_some() && block(18, 8).is_some() && block(26, 4).is_some());
        assert_eq!([block(11, 8), block(10, 9), block(2, 8)], [None; 3]);
        let huge = Tiles { tile: [1 << 31, 1, 1], grid: [1; 3], ..tiles };
        assert_eq!(huge.block([10, 0, 0], [5, 1, 1]), None);
    }

    #[test]
    fn bytes_follow_the_layout_of_the_tile_block() {
        let block = TileBlock { tile: [1, 2, 3], chunk: [4, 5, 6], strides: [7, 8, 9], first: 10 };
        for (index, word) in block.to_bytes().chunks_exact(8).enumerate() {
            assert_eq!(word, (index as u64 + 1).to_ne_bytes());
        }
    }
}
