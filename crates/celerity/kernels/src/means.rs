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

/// The mean of what is at `i` in rows, three slices for each: its cells to the left, those in the middle, and those to the
/// right. In the same order as [`mean`].
#[inline]
#[must_use]
pub fn mean_at<const N: usize>(rows: &[[&[f32]; 3]; N], i: usize) -> f32 {
    let sum = rows.iter().fold(0.0, |sum, row| sum + row[0][i] + row[1][i] + row[2][i]);
    sum * (1.0 / (3 * N) as f32)
}

/// What surrounds the cells of a row in space, as [`mean_at`] wants it.
///
/// Written out: what an array of 27 is mapped by is no part of a loop over cells, which then loads all addresses for each.
#[inline]
#[must_use]
pub fn in_threes(near: [&[f32]; 27]) -> [[&[f32]; 3]; 9] {
    let three = |n: usize| [near[n], near[n + 1], near[n + 2]];
    [three(0), three(3), three(6), three(9), three(12), three(15), three(18), three(21), three(24)]
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
    let rows = [[a, b, c], [d, e, f], [g, h, k]];
    for (i, to) in to.iter_mut().enumerate() {
        *to = mean_at(&rows, i);
    }
}

/// One step in three dimensions, cell by cell.
#[kernel]
pub fn mean_of_27(_item: Item<3>, (to, from): (&mut f32, NeighborhoodItem<'_, f32, 3>)) {
    *to = mean(from.clamped_each(CUBE));
}

/// As [`mean_of_27`], looking around in loops.
#[kernel]
pub fn mean_of_27_in_loops(_item: Item<3>, (to, from): (&mut f32, NeighborhoodItem<'_, f32, 3>)) {
    let mut sum = 0.0;
    for z in -1..=1 {
        for y in -1..=1 {
            for x in -1..=1 {
                sum += from.clamped([z, y, x]);
            }
        }
    }
    *to = sum * (1.0 / 27.0);
}

/// The same for a run of cells.
#[kernel]
pub fn mean_of_27_row(_row: Row<3>, (to, from): (&mut [f32], NeighborhoodRow<'_, f32, 3>)) {
    let rows = in_threes(from.clamped_each(CUBE));
    for (i, to) in to.iter_mut().enumerate() {
        *to = mean_at(&rows, i);
    }
}
