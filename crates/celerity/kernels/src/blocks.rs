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

/// From one column of a tile of `a` to the next: not an [`EDGE`], so that they are in other banks.
const PITCH: usize = EDGE + RUN;

/// What an item sums.
type Sums = [[f32; BLOCK]; BLOCK];

/// A block of a matrix product, `c = a b`: [`BLOCK`]² elements for each item, in groups of [`SIDE`]². A
/// group brings [`DEPTH`] columns of its rows of `a` and as many rows of its columns of `b` at a time, and
/// each item keeps the sums of its block in registers. `shared`, the size that `a` and `b` have in
/// common, is a multiple of [`DEPTH`].
///
/// Sums are in order of the index that both share; on devices they are fused. With 128 registers for each
/// thread two groups are at work on a multiprocessor: while one waits, the other computes.
#[kernel(fast, registers = 128)]
pub fn matmul_blocks(
    item: NdItem<'_, 2>,
    (mut c, a, b): (PartViewMut<'_, f32, 2>, PartView<'_, f32, 2>, PartView<'_, f32, 2>),
    tile_a: Local<'_, f32, { 2 * DEPTH * PITCH }>,
    tile_b: Local<'_, f32, { 2 * DEPTH * EDGE }>,
    shared: usize,
) {
    let [y, x] = item.local_id().map(|at| at % SIDE);
    let [row, column] = item.id().map(|at| at * BLOCK);
    let (first_row, first_column) = (row - y * BLOCK, column - x * BLOCK);
    let at = y * SIDE + x;
    // What an item brings: a run of a row of `a`, and one of `b`.
    let (row_of_a, column_of_a) = (at / (DEPTH / RUN), at % (DEPTH / RUN) * RUN);
    let (row_of_b, run_of_b) = (at / (EDGE / RUN), at % (EDGE / RUN));
    let a = a.row([first_row + row_of_a]);
    let bring = |first: usize| {
        let a = a.run([first + column_of_a], RUN);
        let b = b.run([first + row_of_b, first_column + RUN * run_of_b], RUN);
        ([a[0], a[1], a[2], a[3]], [b[0], b[1], b[2], b[3]])
    };
    let keep = |tile: usize, (a, b): ([f32; RUN], [f32; RUN])| {
        // By columns, of which items need a run each.
        for (i, value) in a.into_iter().enumerate() {
            tile_a.set((tile * DEPTH + column_of_a + i) * PITCH + row_of_a, value);
        }
        // Even runs first: neighbours then read what lies side by side.
        let place = run_of_b / 2 + run_of_b % 2 * SIDE;
        tile_b.set_run((tile * DEPTH + row_of_b) * EDGE + place * RUN, b);
    };
    let mut sums: Sums = [[0.0; BLOCK]; BLOCK];
    keep(0, bring(0));
    item.group().barrier();
    for step in 1..shared / DEPTH {
        // What comes next is on its way while this is used.
        let next = bring(step * DEPTH);
        add_products(&mut sums, (step - 1) % 2, [y, x], (tile_a, tile_b));
        keep(step % 2, next);
        item.group().barrier();
    }
    add_products(&mut sums, (shared / DEPTH - 1) % 2, [y, x], (tile_a, tile_b));
    for (i, sums) in sums.iter().enumerate() {
        for (j, sum) in sums.iter().enumerate() {
            c[[row + i, column + j]] = *sum;
        }
    }
}

/// Two tiles, by columns of `a` and by rows of `b`.
type Tiles<'g> = (Local<'g, f32, { 2 * DEPTH * PITCH }>, Local<'g, f32, { 2 * DEPTH * EDGE }>);

/// Adds what a tile of both factors gives to the block at `y` and `x` of a group.
#[inline(always)]
fn add_products(sums: &mut Sums, tile: usize, at: [usize; 2], tiles: Tiles<'_>) {
    // Two at a time, since what counts takes instructions, too; of more, compilers load all first, and
    // run out of registers.
    for pair in 0..DEPTH / 2 {
        let k = tile % 2 * DEPTH + 2 * pair;
        add_products_of(sums, k, at, tiles);
        add_products_of(sums, k + 1, at, tiles);
    }
}

/// Adds the products of column `k` of `a` and row `k` of `b`.
#[inline(always)]
fn add_products_of(sums: &mut Sums, k: usize, [y, x]: [usize; 2], (a, b): Tiles<'_>) {
    let (of_a, of_b) = (k * PITCH + y * BLOCK, k * EDGE + x * RUN);
    let a: [[f32; RUN]; 2] = [a.run(of_a), a.run(of_a + RUN)];
    let b: [[f32; RUN]; 2] = [b.run(of_b), b.run(of_b + SIDE * RUN)];
    for (sums, a) in sums.iter_mut().zip(a.as_flattened()) {
        for (sum, b) in sums.iter_mut().zip(b.as_flattened()) {
            *sum += a * b;
        }
    }
}
