//! Kernels with reductions: a chunk is computed tile by tile, each on one thread and in one order.
#![allow(unsafe_code)]

use std::ops::Range;

use celerity_executor::BoundMemory;
use celerity_kernel::Bounds;
use celerity_regions::Box3;
use celerity_tdag::Tiling;

use super::compiled::tiles;
use super::{Grain, KernelSpec};
use crate::access::{KernelAccesses, Rows};
use crate::item_context;
use crate::range::bounds;

/// How a kernel wants the items of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TileTraversal {
    /// In runs that begin and end with the accumulators.
    Items,
    /// In rows as long as the tile.
    Rows,
}

impl<A: KernelAccesses<K>, const K: usize> KernelSpec<A, K> {
    /// Calls `call` for all tiles of a chunk, each with the accesses of the thread that it is on, and
    /// so many accumulators.
    ///
    /// # Safety
    /// As [`DeviceKernel::run`](celerity_executor::DeviceKernel::run).
    pub(super) unsafe fn spread_tiles(
        &self,
        (tiling, grain): (&Tiling, &Grain),
        lanes: usize,
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
        call: impl Fn(&A::Bound<'_>, &Range<usize>, &Bounds<K>) + Sync,
    ) {
        let tiles: Vec<u64> = tiling.touching(chunk).into_iter().flatten().collect();
        let items = usize::try_from(chunk.volume()).unwrap_or(usize::MAX);
        let run_piece = |piece: &[u64]| {
            // SAFETY: passed on; pieces have no tile in common, so no item, and none of them is
            // on two threads.
            let (bound, interior) = unsafe { self.bind(chunk, memory) };
            item_context::named(|| {
                let mut walk = tiling.walk();
                for &tile in piece {
                    A::begin_tile(&bound, tile, lanes);
                    call(&bound, &interior, &bounds(&walk.items(tile)));
                    A::end_tile(&bound);
                }
            });
        };
        grain.cut(items, |least, course| {
            let each = (items / tiles.len().max(1)).max(1);
            let piece = (least / each).max(1);
            let place = |tiles: &[u64]| tiles.first().map_or(0, |&tile| tile as usize);
            in_pieces(&tiles, piece, &|tiles| course.run(place(tiles), || run_piece(tiles)));
        });
    }

    /// Calls `call` for the rows of all tiles of a chunk, tile by tile in their order.
    ///
    /// # Safety
    /// As [`DeviceKernel::run`](celerity_executor::DeviceKernel::run).
    pub(super) unsafe fn run_tiles(
        &self,
        (tiling, run, grain): (&Tiling, TileTraversal, &Grain),
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
        call: impl Fn(&A::Bound<'_>, &Rows<K>, &Range<usize>) + Sync,
    ) {
        // All of a row goes to one accumulator: to reset others would cost as much as its items.
        let lanes = if run == TileTraversal::Items { tiles(tiling).lanes() } else { 1 };
        let rows = |bound: &A::Bound<'_>, interior: &Range<usize>, tile: &Bounds<K>| {
            let call = |position: usize, rows: Rows<K>| {
                if A::joins(bound, &rows) {
                    A::begin_row(bound, position);
                    return call(bound, &rows, interior);
                }
                for (n, row) in rows.singles().enumerate() {
                    A::begin_row(bound, position + n * row.first().len());
                    call(bound, &row, interior);
                }
            };
            let mut laps = Laps { lanes, position: 0 };
            Rows::of(tile, self.global, |rows| match run {
                TileTraversal::Rows => call(0, rows),
                TileTraversal::Items => laps.cut(&rows, call),
            });
        };
        // SAFETY: passed on.
        unsafe { self.spread_tiles((tiling, grain), lanes, chunk, memory, rows) }
    }
}

/// How far the items of a tile have gone around its accumulators.
struct Laps {
    /// How many these are: a power of two.
    lanes: usize,
    /// Items so far.
    position: usize,
}

impl Laps {
    /// Cuts rows into such that end with a lap or before: as many whole ones as there is room for, or a part of one. `visit` is told how
    /// many items came before them.
    fn cut<const K: usize>(&mut self, rows: &Rows<K>, mut visit: impl FnMut(usize, Rows<K>)) {
        let (len, mut n) = (rows.first().len(), 0);
        while n < rows.count() {
            let whole = (self.room() / len).min(rows.count() - n);
            if whole > 0 {
                visit(self.position, rows.some(n, whole));
                self.position += whole * len;
                n += whole;
                continue;
            }
            let (row, mut begin) = (rows.row(n), 0);
            while begin < len {
                let part = self.room().min(len - begin);
                visit(self.position, Rows::single(row.segment(begin, part)));
                self.position += part;
                begin += part;
            }
            n += 1;
        }
    }

    /// Items that are left of the lap.
    fn room(&self) -> usize {
        // Of a power of two: a division would take longer than a few items.
        self.lanes - (self.position & (self.lanes - 1))
    }
}

/// Runs `work` on pieces of so many tiles at most.
fn in_pieces(tiles: &[u64], most: usize, work: &(impl Fn(&[u64]) + Sync)) {
    if tiles.len() <= most {
        return work(tiles);
    }
    let (left, right) = tiles.split_at(tiles.len() / 2);
    rayon::join(|| in_pieces(left, most, work), || in_pieces(right, most, work));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_end_with_laps_or_before() {
        for (range, lanes) in
            [([7, 3], 4), ([5, 1], 4), ([3, 9], 4), ([2, 4], 4), ([9, 3], 1), ([40, 5], 16)]
        {
            let (mut laps, mut items) = (Laps { lanes, position: 0 }, Vec::new());
            for _ in 0..2 {
                Rows::of(&Bounds::from_range(range), range, |rows| {
                    laps.cut(&rows, |position, rows| {
                        assert_eq!(position, items.len(), "{range:?} {rows:?}");
                        let (begin, len) = (items.len() % lanes, rows.first().len());
                        assert!(begin + rows.count() * len <= lanes, "{range:?} {rows:?}");
                        assert!(rows.count() == 1 || len == range[1], "{range:?} {rows:?}");
                        for n in 0..rows.count() {
                            items.extend((0..len).map(|i| rows.row(n).id(i)));
                        }
                    });
                });
            }
            let all = (0..range[0]).flat_map(|y| (0..range[1]).map(move |x| [y, x]));
            assert_eq!(items, all.clone().chain(all).collect::<Vec<_>>(), "{range:?}");
        }
    }
}
