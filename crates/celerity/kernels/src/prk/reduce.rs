//! The sum of vectors, of which each device has one, for the first of them.

use celerity_kernel::{Item, PartView, Row, kernel};

/// Sets every element of a run of rows.
#[kernel]
pub fn fill_rows(_row: Row<2>, out: &mut [f64], value: f64) {
    out.fill(value);
}

/// `vectors += ones`.
#[kernel]
pub fn add_ones(_row: Row<2>, (vectors, ones): (&mut [f64], &[f64])) {
    for (element, one) in vectors.iter_mut().zip(ones) {
        *element += *one;
    }
}

/// The sum of all vectors' elements at an item's index, in order.
#[kernel]
pub fn sum_vectors(item: Item<1>, (sum, vectors): (&mut f64, PartView<'_, f64, 2>), ranks: usize) {
    *sum = 0.0;
    for rank in 0..ranks {
        *sum += vectors[[rank, item[0]]];
    }
}

/// The first vector becomes the sum.
#[kernel]
pub fn take_sum(item: Item<2>, (vector, sum): (&mut f64, PartView<'_, f64, 1>)) {
    *vector = sum[item[1]];
}

/// Sets every element of a run in three dimensions.
#[kernel]
pub fn fill_cube(_row: Row<3>, out: &mut [f64], value: f64) {
    out.fill(value);
}
