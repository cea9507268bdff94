//! A triad of vectors, for the bandwidth of memory.

use celerity_kernel::{Row, kernel};

/// `a += b + scalar · c`.
#[kernel]
pub fn triad(_row: Row<1>, (a, b, c): (&mut [f64], &[f64], &[f64]), scalar: f64) {
    // By index: of three zipped slices, the compiler keeps the loop on GPUs.
    for (i, a) in a.iter_mut().enumerate() {
        *a += b[i] + scalar * c[i];
    }
}
