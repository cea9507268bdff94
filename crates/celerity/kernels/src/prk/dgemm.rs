//! A product of dense matrices, added to a third. That and the second factor lie in bands of so many
//! columns, one behind the other: a band of the result needs a band of that factor, which is read from one
//! end to the other and stays in a cache for all rows.

use celerity_kernel::{Item, Local, NdItem, PartView, PartViewMut, Reducer, Row, Sum, kernel};

/// Columns that are summed up together: as many as fit into registers.
const TOGETHER: usize = 16;

/// The first factor at the start: the column of each element.
#[kernel]
pub fn dgemm_fill(item: Item<2>, a: &mut f64) {
    *a = item[1] as f64;
}

/// The second factor at the start, likewise: band, row, and column in its band.
#[kernel]
pub fn dgemm_fill_bands(item: Item<3>, b: &mut f64) {
    let [.., width] = item.range();
    *b = (item[0] * width + item[2]) as f64;
}

/// `c += a b`, a run at once: band, row, and column in its band. Sums are in order of the index that
/// both factors share.
#[kernel]
pub fn dgemm_multiply(
    row: Row<3>,
    (c, a, b): (&mut [f64], PartView<'_, f64, 2>, PartView<'_, f64, 3>),
) {
    let [band, y, start] = row.start();
    let of_a = a.row([y]);
    let (whole, rest) = c.as_chunks_mut::<TOGETHER>();
    for (at, c) in whole.iter_mut().enumerate() {
        let left = start + at * TOGETHER;
        let mut sums = *c;
        for k in of_a.indices() {
            let (factor, of_b) = (of_a[k], b.run([band, k, left], TOGETHER));
            for (sum, of_b) in sums.iter_mut().zip(of_b) {
                *sum += factor * *of_b;
            }
        }
        *c = sums;
    }
    let left = start + whole.len() * TOGETHER;
    for (i, c) in rest.iter_mut().enumerate() {
        for k in of_a.indices() {
            *c += of_a[k] * b[[band, k, left + i]];
        }
    }
}

/// Rows and columns of the result that an item of a group has.
pub const BLOCK: usize = 4;

/// Items along each side of a group.
pub const SIDE: usize = 16;

/// Rows and columns of the result that a group has: order and bands are multiples of it.
pub const TILE: usize = BLOCK * SIDE;

/// Columns of the first factor, and rows of the second, that a group brings at a time.
const DEPTH: usize = 16;

/// From one column of the first factor, or row of the second, in memory of the group to the next: not a [`TILE`], so that
/// columns are in other banks.
const PITCH: usize = TILE + 2;

/// What an item sums up.
type Sums = [[f64; BLOCK]; BLOCK];

/// What a group brings, by columns of the first factor, or by rows of the second.
type Brought<'g> = Local<'g, f64, { DEPTH * PITCH }>;

/// `c += a b`, by groups that have a tile of [`TILE`]² elements, [`BLOCK`]² for each item, and bring what they need of
/// both factors in steps. Sums are in the order of [`dgemm_multiply`]'s. `order` is a multiple of a tile.
#[kernel(registers = 128)]
pub fn dgemm_tiles(
    item: NdItem<'_, 3>,
    (mut c, a, b): (PartViewMut<'_, f64, 3>, PartView<'_, f64, 2>, PartView<'_, f64, 3>),
    columns_of_a: Local<'_, f64, { DEPTH * PITCH }>,
    rows_of_b: Local<'_, f64, { DEPTH * PITCH }>,
    order: usize,
) {
    let ([band, row, column], [_, y, x]) = (item.id(), item.local_id());
    // The remainders say that all of this is inside of the tile.
    let (row, column, y, x) = (row * BLOCK, column * BLOCK, y % SIDE, x % SIDE);
    let at = y * SIDE + x;
    // Four elements of a row of either factor, which are 32 bytes.
    let (row_of_a, column_of_a) = (at / (DEPTH / BLOCK), at % (DEPTH / BLOCK) * BLOCK);
    let (row_of_b, column_of_b) = (at / (TILE / BLOCK), at % (TILE / BLOCK) * BLOCK);
    let bring = |first: usize| -> [[f64; BLOCK]; 2] {
        let a = a.vector([row - y * BLOCK + row_of_a, first + column_of_a]);
        let b = b.vector([band, first + row_of_b, column - x * BLOCK + column_of_b]);
        [a, b]
    };
    let keep = |nth: usize, of_a: f64| {
        columns_of_a.set((column_of_a + nth) * PITCH + row_of_a, of_a);
    };
    let mut sums: Sums = [0, 1, 2, 3].map(|down| c.vector([band, row + down, column]));
    let steps = order / DEPTH;
    let mut next = bring(0);
    // Not `for`, and one by one what an array holds: around what a range or an array says of its end, the compiler keeps both in memory.
    let mut step = 0;
    while step < steps {
        let [of_a, of_b] = next;
        keep(0, of_a[0]);
        keep(1, of_a[1]);
        keep(2, of_a[2]);
        keep(3, of_a[3]);
        let [b0, b1, b2, b3] = of_b;
        rows_of_b.set_run(row_of_b * PITCH + pair(column_of_b / 2), [b0, b1]);
        rows_of_b.set_run(row_of_b * PITCH + pair(column_of_b / 2 + 1), [b2, b3]);
        item.group().barrier();
        step += 1;
        // On its way while this is used. Behind the last comes the last again.
        next = bring(if step < steps { step } else { step - 1 } * DEPTH);
        let mut k = 0;
        while k < DEPTH {
            add_products(&mut sums, k, [y, x], [columns_of_a, rows_of_b]);
            k += 1;
        }
        item.group().barrier();
    }
    let mut put = |down: usize, sums: [f64; BLOCK]| c.set_vector([band, row + down, column], sums);
    put(0, sums[0]);
    put(1, sums[1]);
    put(2, sums[2]);
    put(3, sums[3]);
}

/// Where in a row of the second factor a pair of elements is: even ones first, so that neighbours read what lies side by side.
const fn pair(nth: usize) -> usize {
    (nth / 2 + nth % 2 * SIDE) * 2
}

/// Adds the products of column `k` of the first factor and row `k` of the second that are brought.
#[inline(always)]
fn add_products(sums: &mut Sums, k: usize, [y, x]: [usize; 2], [a, b]: [Brought<'_>; 2]) {
    let row = k % DEPTH * PITCH;
    let a: [[f64; 2]; 2] = [a.run(row + y * BLOCK), a.run(row + y * BLOCK + 2)];
    let b: [[f64; 2]; 2] = [b.run(row + pair(2 * x)), b.run(row + pair(2 * x + 1))];
    for (sums, a) in sums.iter_mut().zip(a.as_flattened()) {
        for (sum, b) in sums.iter_mut().zip(b.as_flattened()) {
            *sum += a * b;
        }
    }
}

/// The sum of all elements.
#[kernel]
pub fn sum_of_elements(_item: Item<3>, (c, sum): (&f64, Reducer<'_, f64, Sum>)) {
    sum.combine(*c);
}
