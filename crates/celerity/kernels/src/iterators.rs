//! Iterators over arrays by value, of which the elements are arrays: as one writes them at first, and what stays in registers
//! only if loops are seen to end with them.

use celerity_kernel::{Item, NeighborhoodItem, kernel};

/// A colour.
pub type Pixel = [u8; 3];

/// Of the nine pixels around one, by rows; their sum is 16.
const WEIGHTS: [u32; 9] = [1, 2, 1, 2, 4, 2, 1, 2, 1];

/// The weighted mean of nine pixels.
pub fn mean_colour(pixels: [Pixel; 9]) -> Pixel {
    let mut sums = [0; 3];
    for (pixel, weight) in pixels.into_iter().zip(WEIGHTS) {
        for (sum, channel) in sums.iter_mut().zip(pixel) {
            *sum += weight * u32::from(channel);
        }
    }
    sums.map(|sum| (sum / 16) as u8)
}

/// A blur of an image, which goes on beyond its edges as it ends there.
#[kernel]
pub fn blur(_item: Item<2>, (out, image): (&mut Pixel, NeighborhoodItem<'_, Pixel, 2>)) {
    *out = mean_colour([
        image.clamped([-1, -1]),
        image.clamped([-1, 0]),
        image.clamped([-1, 1]),
        image.clamped([0, -1]),
        image.clamped([0, 0]),
        image.clamped([0, 1]),
        image.clamped([1, -1]),
        image.clamped([1, 0]),
        image.clamped([1, 1]),
    ]);
}

/// A matrix with three rows.
pub type Matrix = [[f64; 3]; 3];

/// The product of two, row by row.
pub fn product(left: Matrix, right: Matrix) -> Matrix {
    let mut out = [[0.0; 3]; 3];
    for (row, out) in left.into_iter().zip(&mut out) {
        for (column, out) in out.iter_mut().enumerate() {
            *out = row.into_iter().zip(right).map(|(x, row)| x * row[column]).sum();
        }
    }
    out
}

/// Squares matrices.
#[kernel]
pub fn square(_item: Item<1>, matrix: &mut Matrix) {
    *matrix = product(*matrix, *matrix);
}
