//! A matrix product as CPUs like it: small blocks of sums in registers, and a strip of the second factor that many of
//! them go through, packed.

use celerity_kernel::{Local, NdItem, PartView, PartViewMut, kernel};

/// Rows of the block that an item sums.
pub const ROWS: usize = 4;

/// Columns of it: with [`ROWS`], as many sums as half of the registers of any x86-64 hold.
pub const COLUMNS: usize = 8;

/// Items of a group, one below the other, which go through the same columns.
pub const STACK: usize = 8;

/// How many rows of the second factor a group packs at a time.
pub const DEPTH: usize = 256;

/// A block of a matrix product, `c = a b`: [`ROWS`] × [`COLUMNS`] elements for each item, in groups of [`STACK`]
/// that lie below each other. Items are counted by columns: index 0 is across, index 1 down.
/// `shared`, the size that `a` and `b` have in common, may be any.
///
/// Sums are in order of the index that both share.
#[kernel]
pub fn matmul_panels(
    item: NdItem<'_, 2>,
    (mut c, a, b): (PartViewMut<'_, f32, 2>, PartView<'_, f32, 2>, PartView<'_, f32, 2>),
    strip: Local<'_, f32, { DEPTH * COLUMNS }>,
    shared: usize,
) {
    let [_, at] = item.local_id();
    let [column, row] = item.id();
    let (row, column) = (row * ROWS, column * COLUMNS);
    let rows = [a.row([row]), a.row([row + 1]), a.row([row + 2]), a.row([row + 3])];
    let mut sums = [[0.0; COLUMNS]; ROWS];
    for first in (0..shared).step_by(DEPTH) {
        let depth = DEPTH.min(shared - first);
        for k in (at..depth).step_by(STACK) {
            strip.set_run::<COLUMNS>(k * COLUMNS, b.vector([first + k, column]));
        }
        item.group().barrier();
        let [s, t, u, v] = &rows;
        let part = first..first + depth;
        let a = [&s[part.clone()], &t[part.clone()], &u[part.clone()], &v[part]];
        sums = add_products(sums, a, strip, depth);
        item.group().barrier();
    }
    for (i, sums) in sums.into_iter().enumerate() {
        c.set_vector([row + i, column], sums);
    }
}

/// The sums with the products of `depth` columns of `a` and as many packed rows.
#[inline(always)]
fn add_products(
    mut sums: [[f32; COLUMNS]; ROWS],
    [s, t, u, v]: [&[f32]; ROWS],
    strip: Local<'_, f32, { DEPTH * COLUMNS }>,
    depth: usize,
) -> [[f32; COLUMNS]; ROWS] {
    let (s, t, u, v) = (&s[..depth], &t[..depth], &u[..depth], &v[..depth]);
    for k in 0..depth {
        let b: [f32; COLUMNS] = strip.run(k % DEPTH * COLUMNS);
        let a = [s[k], t[k], u[k], v[k]];
        for row in 0..ROWS {
            for column in 0..COLUMNS {
                sums[row][column] += a[row] * b[column];
            }
        }
    }
    sums
}
