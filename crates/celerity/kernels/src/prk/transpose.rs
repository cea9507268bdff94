//! A matrix that is added to another one with its indices exchanged. The result lies in bands of so many
//! columns, one behind the other, so that a run of it is as wide as a tile.

use celerity_kernel::{Item, PartView, Reducer, Row, Sum, kernel};

/// The matrix at the start: each element its own number.
#[kernel]
pub fn transpose_fill(item: Item<2>, a: &mut f64) {
    *a = item.linear_id() as f64;
}

/// `b += aᵀ`, a run at once: band, row, and column in its band.
#[kernel]
pub fn transpose_add(row: Row<3>, (b, a): (&mut [f64], PartView<'_, f64, 2>)) {
    let ([band, y, first], [.., width]) = (row.start(), row.range());
    let column = a.along(0, [0, y]);
    for (i, b) in b.iter_mut().enumerate() {
        *b += column[band * width + first + i];
    }
}

/// How far all elements of `b` are from what they must be after so many iterations and one, in sum.
#[kernel]
pub fn transpose_error(item: Item<3>, (b, sum): (&f64, Reducer<'_, f64, Sum>), iterations: usize) {
    let [_, order, width] = item.range();
    let added = (iterations + 1) as f64 * iterations as f64 / 2.0;
    let element = ((item[0] * width + item[2]) * order + item[1]) as f64;
    let expected = element * (iterations + 1) as f64 + added;
    sum.combine((*b - expected).abs());
}
