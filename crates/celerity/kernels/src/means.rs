//! Means over a cell and all that touch it, in two dimensions and in three: stencils of 9 and 27 points.
//! Kernels and sequential programs share its functions, so that their results can be compared bit for
//! bit.
#![allow(
    clippy::inline_always,
    reason = "what is not joined with a kernel gets 27 slices in memory: by rows that took six times as long"
)]

use celerity_kernel::math::Float;
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
#[inline(always)]
#[must_use]
pub fn mean<T: Float, const N: usize>(cells: [T; N]) -> T {
    cells.iter().fold(T::from(0.0), |sum, &cell| sum + cell) * share(N)
}

/// What each of so many counts.
#[inline(always)]
fn share<T: Float>(cells: usize) -> T {
    T::from(1.0) / T::from(cells as f32)
}

/// The mean of what is at `i` in rows, three slices for each: its cells to the left, those in the middle, and those to the
/// right. In the same order as [`mean`].
#[inline(always)]
#[must_use]
pub fn mean_at<T: Float, const N: usize>(rows: &[[&[T]; 3]; N], i: usize) -> T {
    let sum = rows.iter().fold(T::from(0.0), |sum, row| sum + row[0][i] + row[1][i] + row[2][i]);
    sum * share(3 * N)
}

/// What surrounds the cells of a row in space, as [`mean_at`] wants it.
///
/// Written out: what an array of 27 is mapped by is no part of a loop over cells, which then loads all addresses for each.
#[inline(always)]
#[must_use]
pub fn in_threes<T>(near: [&[T]; 27]) -> [[&[T]; 3]; 9] {
    let three = |n: usize| [near[n], near[n + 1], near[n + 2]];
    [three(0), three(3), three(6), three(9), three(12), three(15), three(18), three(21), three(24)]
}

/// Cells of a plane at the start: blocks of 8² cells, of which every other one is warm.
#[kernel(instances(f32, f64))]
pub fn plane_fill<T: Float>(item: Item<2>, u: &mut T) {
    let [y, x] = item.id();
    let is_warm = (y / 8 + x / 8).is_multiple_of(2);
    *u = T::from(if is_warm { 0.25 + ((y + x) % 64) as f32 } else { 0.0 });
}

/// One step in two dimensions, cell by cell.
#[kernel(instances(f32, f64))]
pub fn mean_of_9<T: Float>(_item: Item<2>, (to, from): (&mut T, NeighborhoodItem<'_, T, 2>)) {
    *to = mean(from.clamped_each(SQUARE));
}

/// The same for a run of cells.
#[kernel(registers = 64, instances(f32, f64))]
pub fn mean_of_9_row<T: Float>(_row: Row<2>, (to, from): (&mut [T], NeighborhoodRow<'_, T, 2>)) {
    let [a, b, c, d, e, f, g, h, k] = from.clamped_each(SQUARE);
    let rows = [[a, b, c], [d, e, f], [g, h, k]];
    for (i, to) in to.iter_mut().enumerate() {
        *to = mean_at(&rows, i);
    }
}

/// One step in three dimensions, cell by cell.
#[kernel(instances(f32, f64))]
pub fn mean_of_27<T: Float>(_item: Item<3>, (to, from): (&mut T, NeighborhoodItem<'_, T, 3>)) {
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
#[kernel(instances(f32, f64))]
pub fn mean_of_27_row<T: Float>(_row: Row<3>, (to, from): (&mut [T], NeighborhoodRow<'_, T, 3>)) {
    let rows = in_threes(from.clamped_each(CUBE));
    for (i, to) in to.iter_mut().enumerate() {
        *to = mean_at(&rows, i);
    }
}
