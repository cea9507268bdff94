//! A product of dense matrices, added to a third. That lies in bands of so many columns, one behind the
//! other: of the second factor, a band needs a band only, which stays in a cache for all rows.

use celerity_kernel::{Item, PartView, Reducer, Row, Sum, kernel};

/// Columns that are summed up together: as many as fit into registers.
const TOGETHER: usize = 16;

/// Both factors at the start: the column of each element.
#[kernel]
pub fn dgemm_fill(item: Item<2>, (a, b): (&mut f64, &mut f64)) {
    *a = item[1] as f64;
    *b = item[1] as f64;
}

/// `c += a b`, a run at once: band, row, and column in its band. Sums are in order of the index that
/// both factors share.
#[kernel]
pub fn dgemm_multiply(
    row: Row<3>,
    (c, a, b): (&mut [f64], PartView<'_, f64, 2>, PartView<'_, f64, 2>),
) {
    let ([band, y, start], [.., width]) = (row.start(), row.range());
    let (of_a, first) = (a.row([y]), band * width + start);
    let (whole, rest) = c.as_chunks_mut::<TOGETHER>();
    for (at, c) in whole.iter_mut().enumerate() {
        let left = first + at * TOGETHER;
        let mut sums = *c;
        for k in of_a.indices() {
            let (factor, of_b) = (of_a[k], b.row([k]));
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum += factor * of_b[left + i];
            }
        }
        *c = sums;
    }
    let left = first + whole.len() * TOGETHER;
    for (i, c) in rest.iter_mut().enumerate() {
        for k in of_a.indices() {
            *c += of_a[k] * b[[k, left + i]];
        }
    }
}

/// The sum of all elements.
#[kernel]
pub fn sum_of_elements(_item: Item<3>, (c, sum): (&f64, Reducer<'_, f64, Sum>)) {
    sum.combine(*c);
}
