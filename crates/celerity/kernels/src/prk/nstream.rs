//! A triad of vectors, for the bandwidth of memory.

use celerity_kernel::{Row, kernel};

/// `a += b + scalar · c`.
#[kernel]
pub fn triad(_row: Row<1>, (a, b, c): (&mut [f64], &[f64], &[f64]), scalar: f64) {
    for (a, (b, c)) in a.iter_mut().zip(b.iter().zip(c)) {
        *a += b + scalar * c;
    }
}
