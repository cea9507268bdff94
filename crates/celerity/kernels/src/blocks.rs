//! A matrix product by items that have a block of elements each.

use celerity_kernel::{Local, NdItem, PartView, PartViewMut, kernel};

/// Elements along each side of an item's block.
pub const BLOCK: usize = 8;

/// Items along each side of a group.
pub const SIDE: usize = 16;

/// Elements along each side of what a group computes.
pub const EDGE: usize = BLOCK * SIDE;

/// How many columns of `a` and rows of `b` a group goes through at a time.
pub const DEPTH: usize = 8;

/// Elements that are moved at once.
const RUN: usize = 4;

/// Runs of an [`EDGE`], and one more, so that those of different columns are in different banks.
const PITCH: usize = EDGE / RUN + 1;

/// Of two tiles, so that one is filled while the other is used.
const TILES: usize = 2 * DEPTH * PITCH;

/// A block of a matrix product, `c = a b`: [`BLOCK`]² elements for each item, in groups of [`SIDE`]². A
/// group brings [`DEPTH`] columns of its rows of `a` and as many rows of its columns of `b` at a time, and
/// each item keeps the sums of its block in registers. `shared`, the size that `a` and `b` have in
/// common, is a multiple of [`DEPTH`].
///
/// Sums are in order of the index that both share; on devices they are fused.
#[kernel(fast)]
pub fn matmul_blocks(
    item: NdItem<'_, 2>,
    (mut c, a, b): (PartViewMut<'_, f32, 2>, PartView<'_, f32, 2>, PartView<'_, f32, 2>),
    tile_a: Local<'_, [f32; RUN], { TILES }>,
    tile_b: Local<'_, [f32; RUN], { TILES }>,
    shared: usize,
) {
    let [y, x] = item.local_id().map(|at| at % SIDE);
    let [row, column] = item.id().map(|at| at * BLOCK);
    let (first_row, first_column) = (row - y * BLOCK, column - x * BLOCK);
    let at = y * SIDE + x;
    // Of `a` an item brings a column of four rows, of `b` a row of four columns.
    let (of_a, of_b) = ((at / DEPTH, at % DEPTH), (at / (EDGE / RUN), at % (EDGE / RUN)));
    // By name: an array of them would be looked up in memory.
    let row_of_a = |i: usize| a.row([first_row + RUN * of_a.0 + i]);
    let (row_0, row_1, row_2, row_3) = (row_of_a(0), row_of_a(1), row_of_a(2), row_of_a(3));
    let column_of_b = first_column + RUN * of_b.1;
    let bring = |first: usize| {
        let (at, b) = (first + of_a.1, b.run([first + of_b.0, column_of_b], RUN));
        ([row_0[at], row_1[at], row_2[at], row_3[at]], [b[0], b[1], b[2], b[3]])
    };
    let keep = |tile: usize, (a, b)| {
        tile_a.set((tile * DEPTH + of_a.1) * PITCH + of_a.0, a);
        // Even runs first, so that neighbours read neighbours.
        let place = of_b.1 / 2 + of_b.1 % 2 * SIDE;
        tile_b.set((tile * DEPTH + of_b.0) * PITCH + place, b);
    };
    let mut sums = [[0.0; BLOCK]; BLOCK];
    keep(0, bring(0));
    item.group().barrier();
    for step in 1..=shared / DEPTH {
        let is_last = step * DEPTH >= shared;
        let next = if is_last { None } else { Some(bring(step * DEPTH)) };
        let tile = (step - 1) % 2;
        for k in 0..DEPTH {
            let start = (tile * DEPTH + k) * PITCH;
            let a = [tile_a.get(start + 2 * y), tile_a.get(start + 2 * y + 1)];
            let b = [tile_b.get(start + x), tile_b.get(start + SIDE + x)];
            add_products(&mut sums, a.as_flattened(), b.as_flattened());
        }
        if let Some(next) = next {
            keep(1 - tile, next);
        }
        item.group().barrier();
    }
    for (i, sums) in sums.iter().enumerate() {
        for (j, sum) in sums.iter().enumerate() {
            c[[row + i, column + j]] = *sum;
        }
    }
}

/// Adds the products of a column of `a` and a row of `b`.
#[inline(always)]
fn add_products(sums: &mut [[f32; BLOCK]; BLOCK], a: &[f32], b: &[f32]) {
    for (sums, a) in sums.iter_mut().zip(a) {
        for (sum, b) in sums.iter_mut().zip(b) {
            *sum += a * b;
        }
    }
}
