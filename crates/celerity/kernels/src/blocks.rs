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

/// From one column of a tile of `a`, or row of a tile of `b`, to the next: not an [`EDGE`], so that columns are
/// in other banks, and so that the compiler adds offsets instead of merging bits.
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
    tile_b: Local<'_, f32, { 2 * DEPTH * PITCH }>,
    shared: usize,
) {
    let [y, x] = item.local_id().map(|at| at % SIDE);
    let [row, column] = item.id().map(|at| at * BLOCK);
    let (first_row, first_column) = (row - y * BLOCK, column - x * BLOCK);
    let at = y * SIDE + x;
    // What an item brings: four elements of a row of `a`, and of one of `b`, in one step each where rows are
    // aligned.
    let (row_of_a, column_of_a) = (at / (DEPTH / RUN), at % (DEPTH / RUN) * RUN);
    let (row_of_b, run_of_b) = (at / (EDGE / RUN), at % (EDGE / RUN));
    let bring = |first: usize| {
        let a: [f32; RUN] = a.vector([first_row + row_of_a, first + column_of_a]);
        let b: [f32; RUN] = b.vector([first + row_of_b, first_column + RUN * run_of_b]);
        (a, b)
    };
    let keep = |tile: usize, (a, b): ([f32; RUN], [f32; RUN])| {
        // By columns, of which items need a run each.
        for (i, value) in a.into_iter().enumerate() {
            tile_a.set((tile * DEPTH + column_of_a + i) * PITCH + row_of_a, value);
        }
        // Even runs first: neighbours then read what lies side by side.
        let place = run_of_b / 2 + run_of_b % 2 * SIDE;
        tile_b.set_run((tile * DEPTH + row_of_b) * PITCH + place * RUN, b);
    };
    let mut sums: Sums = [[0.0; BLOCK]; BLOCK];
    keep(0, bring(0));
    item.group().barrier();
    let steps = (shared / DEPTH) as u32;
    // Not `for`: around what a range says of its end, the compiler keeps copies of the sums in memory.
    let mut step = 0;
    while step < steps {
        // What comes next is on its way while this is used. Behind the last comes the last again.
        let next = bring((step + 1).min(steps - 1) as usize * DEPTH);
        add_products(&mut sums, step as usize % 2, [y, x], [tile_a, tile_b]);
        keep((step as usize + 1) % 2, next);
        item.group().barrier();
        step += 1;
    }
    let mut put = |i: usize, [s, t, u, v, w, x, y, z]: [f32; BLOCK]| {
        c.set_vector([row + i, column], [s, t, u, v]);
        c.set_vector([row + i, column + RUN], [w, x, y, z]);
    };
    // One by one: sums that a loop goes through lie in memory if the compiler keeps the loop.
    put(0, sums[0]);
    put(1, sums[1]);
    put(2, sums[2]);
    put(3, sums[3]);
    put(4, sums[4]);
    put(5, sums[5]);
    put(6, sums[6]);
    put(7, sums[7]);
}

/// Two tiles, by columns of `a` and by rows of `b`.
type Tiles<'g> = [Local<'g, f32, { 2 * DEPTH * PITCH }>; 2];

/// Adds what a tile of both factors gives to the block at `y` and `x` of a group.
#[inline(always)]
fn add_products(sums: &mut Sums, tile: usize, at: [usize; 2], tiles: Tiles<'_>) {
    // One by one instead of a loop: what counts takes instructions, too, and places in a tile are then
    // constants behind its first.
    let k = tile % 2 * DEPTH;
    add_products_of(sums, k, at, tiles);
    add_products_of(sums, k + 1, at, tiles);
    add_products_of(sums, k + 2, at, tiles);
    add_products_of(sums, k + 3, at, tiles);
    add_products_of(sums, k + 4, at, tiles);
    add_products_of(sums, k + 5, at, tiles);
    add_products_of(sums, k + 6, at, tiles);
    add_products_of(sums, k + 7, at, tiles);
}

/// Adds the products of column `k` of `a` and row `k` of `b`.
#[inline(always)]
fn add_products_of(sums: &mut Sums, k: usize, [y, x]: [usize; 2], [a, b]: Tiles<'_>) {
    let (of_a, of_b) = (k * PITCH + y * BLOCK, k * PITCH + x * RUN);
    let a: [[f32; RUN]; 2] = [a.run(of_a), a.run(of_a + RUN)];
    let b: [[f32; RUN]; 2] = [b.run(of_b), b.run(of_b + SIDE * RUN)];
    for (sums, a) in sums.iter_mut().zip(a.as_flattened()) {
        for (sum, b) in sums.iter_mut().zip(b.as_flattened()) {
            *sum += a * b;
        }
    }
}
