//! The sum of vectors, of which each device has one, for the first of them.

use celerity_kernel::{PartView, Row, kernel};

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

/// Elements that are taken from all vectors before the next ones: few enough to stay in a cache.
const AT_ONCE: usize = 1024;

/// Adds all other vectors to the first, in order.
#[kernel]
pub fn sum_vectors(row: Row<2>, (first, others): (&mut [f64], PartView<'_, f64, 2>), ranks: usize) {
    let [_, mut start] = row.start();
    for first in first.chunks_mut(AT_ONCE) {
        for rank in 1..ranks {
            let others = others.run([rank, start], first.len());
            for (sum, element) in first.iter_mut().zip(others) {
                *sum += *element;
            }
        }
        start += first.len();
    }
}

/// Sets every element of a run in three dimensions.
#[kernel]
pub fn fill_cube(_row: Row<3>, out: &mut [f64], value: f64) {
    out.fill(value);
}
