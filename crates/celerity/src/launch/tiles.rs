//! Kernels with reductions: a chunk is computed tile by tile, each on one thread and in one order.
#![allow(unsafe_code)]

use std::ops::Range;

use celerity_executor::BoundMemory;
use celerity_kernel::{Bounds, Row};
use celerity_regions::Box3;
use celerity_tdag::Tiling;

use super::compiled::tiles;
use super::{Grain, KernelSpec};
use crate::access::{KernelAccesses, Rows, rows_of};
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
        grain.cut(items, |least, clock| {
            let each = (items / tiles.len().max(1)).max(1);
            let piece = (least / each).max(1);
            in_pieces(&tiles, piece, &|tiles| clock.time(|| run_piece(tiles)));
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
            let mut position = 0;
            rows_of(tile, |start, len| {
                let row = Row::new(start, len, self.global);
                if run == TileTraversal::Rows {
                    A::begin_row(bound, 0);
                    return call(bound, &Rows::single(row), interior);
                }
                let mut begin = 0;
                while begin < len {
                    // Of a power of two: a division would take longer than a few items.
                    let part = (lanes - (position & (lanes - 1))).min(len - begin);
                    A::begin_row(bound, position);
                    call(bound, &Rows::single(row.segment(begin, part)), interior);
                    (begin, position) = (begin + part, position + part);
                }
            });
        };
        // SAFETY: passed on.
        unsafe { self.spread_tiles((tiling, grain), lanes, chunk, memory, rows) }
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
