//! The kernels of the program, for CPUs and GPUs.

#![no_std]
#![forbid(unsafe_code)]

use celerity_kernel::{Item, NeighborhoodItem, kernel};

celerity_kernel::module!();

/// Still water, but for one cell in the middle.
#[kernel]
pub fn still_water(item: Item<2>, u: &mut f32, middle: f32) {
    let ([y, x], [rows, columns]) = (item.id(), item.range());
    *u = if y == rows / 2 && x == columns / 2 { middle } else { 0.0 };
}

/// A step of the wave equation. `up` holds the heights of two steps ago, `u` those of the last.
#[kernel]
pub fn wave_step(_item: Item<2>, (up, u): (&mut f32, NeighborhoodItem<'_, f32, 2>), c: f32) {
    let here = u.clamped([0, 0]);
    let beside = u.clamped([0, -1]) + u.clamped([0, 1]);
    let above = u.clamped([-1, 0]) + u.clamped([1, 0]);
    *up = 2.0 * here - *up + c * (beside + above - 4.0 * here);
}
