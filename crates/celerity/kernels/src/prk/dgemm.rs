//! A product of dense matrices, added to a third. That and the second factor lie in bands of so many
//! columns, one behind the other: a band of the result needs a band of that factor, which is read from one
//! end to the other and stays in a cache for all rows.

use celerity_kernel::{Item, PartView, Reducer, Row, Sum, kernel};

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

/// The sum of all elements.
#[kernel]
pub fn sum_of_elements(_item: Item<3>, (c, sum): (&f64, Reducer<'_, f64, Sum>)) {
    sum.combine(*c);
}
