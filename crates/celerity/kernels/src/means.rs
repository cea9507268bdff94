//! Means over a cell and all that touch it, in two dimensions and in three: stencils of 9 and 27 points.
//! Kernels and sequential programs share its functions, so that their results can be compared bit for
//! bit.

use celerity_kernel::{Item, NeighborhoodItem, NeighborhoodRow, Row, kernel};

/// The offsets of a cell and those around it, row by row.
pub const SQUARE: [[isize; 2]; 9] = {
    let mut square = [[0; 2]; 9];
    let mut n = 0;
    while n < 9 {
        square[n] = [n as isize / 3 - 1, n as isize % 3 - 1];
        n += 1;
    }
    square
};

/// The same in space, plane by plane.
pub const CUBE: [[isize; 3]; 27] = {
    let mut cube = [[0; 3]; 27];
    let mut n = 0;
    while n < 27 {
        cube[n] = [n as isize / 9 - 1, n as isize / 3 % 3 - 1, n as isize % 3 - 1];
        n += 1;
    }
    cube
};

/// The mean of some cells, which are added up in their order.
#[inline]
#[must_use]
pub fn mean<const N: usize>(cells: [f32; N]) -> f32 {
    cells.iter().sum::<f32>() * (1.0 / N as f32)
}

/// The sum of so much and of three cells, which are side by side in `rows`, from `i` on.
#[inline]
fn and_three(sum: f32, rows: [&[f32]; 3], i: usize) -> f32 {
    sum + rows[0][i] + rows[1][i] + rows[2][i]
}

/// One step in two dimensions, cell by cell.
#[kernel]
pub fn mean_of_9(_item: Item<2>, (to, from): (&mut f32, NeighborhoodItem<'_, f32, 2>)) {
    *to = mean(from.clamped_each(SQUARE));
}

/// The same for a run of cells.
#[kernel]
pub fn mean_of_9_row(_row: Row<2>, (to, from): (&mut [f32], NeighborhoodRow<'_, f32, 2>)) {
    let [a, b, c, d, e, f, g, h, k] = from.clamped_each(SQUARE);
    for (i, to) in to.iter_mut().enumerate() {
        let sum = and_three(and_three(and_three(0.0, [a, b, c], i), [d, e, f], i), [g, h, k], i);
        *to = sum * (1.0 / 9.0);
    }
}

/// One step in three dimensions, cell by cell.
#[kernel]
pub fn mean_of_27(_item: Item<3>, (to, from): (&mut f32, NeighborhoodItem<'_, f32, 3>)) {
    *to = mean(from.clamped_each(CUBE));
}

/// The same for a run of cells. Not [`mean`] of `near.map(..)`: what an array of 27 is mapped by is no part of the loop
/// over cells any more, which then takes one cell at a time.
#[kernel]
pub fn mean_of_27_row(_row: Row<3>, (to, from): (&mut [f32], NeighborhoodRow<'_, f32, 3>)) {
    let near = from.clamped_each(CUBE);
    let three = |n: usize| [near[n], near[n + 1], near[n + 2]];
    let [a, b, c, d] = [three(0), three(3), three(6), three(9)];
    let [e, f, g, h, k] = [three(12), three(15), three(18), three(21), three(24)];
    for (i, to) in to.iter_mut().enumerate() {
        let above = and_three(and_three(and_three(0.0, a, i), b, i), c, i);
        let here = and_three(and_three(and_three(above, d, i), e, i), f, i);
        *to = and_three(and_three(and_three(here, g, i), h, i), k, i) * (1.0 / 27.0);
    }
}
