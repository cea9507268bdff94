//! The wave equation on a square with reflecting edges, cell by cell. The kernels
//! and sequential programs share its functions, so that their results can be
//! compared bit for bit.

use celerity_kernel::{Item, NeighborhoodItem, NeighborhoodRow, Row, kernel, math};

/// Where drops fall into the resting water, in fractions of the side: row,
/// column, height.
const DROPS: [[f32; 3]; 3] = [[0.30, 0.36, 1.0], [0.62, 0.70, -0.8], [0.72, 0.24, 0.6]];

/// A drop's radius as a fraction of the side.
const DROP_RADIUS: f32 = 1.0 / 48.0;

/// A cell and its neighbours along both axes: heights, or rows of heights.
#[derive(Clone, Copy, Debug)]
pub struct Star<T> {
    /// The cell itself.
    pub centre: T,
    /// One row up.
    pub north: T,
    /// One row down.
    pub south: T,
    /// One column to the left.
    pub west: T,
    /// One column to the right.
    pub east: T,
}

impl<T> Star<T> {
    /// What `at` finds at each offset (rows down, columns right) from the centre.
    #[inline]
    pub fn around(at: impl Fn([isize; 2]) -> T) -> Self {
        Self {
            centre: at([0, 0]),
            north: at([-1, 0]),
            south: at([1, 0]),
            west: at([0, -1]),
            east: at([0, 1]),
        }
    }
}

/// The height of the water at a cell of the field, `size` cells along each side,
/// at the start.
#[must_use]
pub fn initial([y, x]: [usize; 2], size: usize) -> f32 {
    let side = size as f32;
    let mut height = 0.0;
    for [row, column, drop] in DROPS {
        let (dy, dx) = (y as f32 / side - row, x as f32 / side - column);
        height += drop * math::exp(-(dy * dy + dx * dx) / (2.0 * DROP_RADIUS * DROP_RADIUS));
    }
    height
}

/// A cell's height after the first step: the water starts at rest. `c` is
/// `(c Δt / Δx)²`, the square of the Courant number; at most 0.5 is stable.
#[inline]
#[must_use]
pub fn first(star: Star<f32>, c: f32) -> f32 {
    star.centre + 0.5 * acceleration(star, c)
}

/// A cell's height after a step, from those after the previous two steps.
#[inline]
#[must_use]
pub fn next(before: f32, star: Star<f32>, c: f32) -> f32 {
    2.0 * star.centre - before + acceleration(star, c)
}

#[inline]
fn acceleration(star: Star<f32>, c: f32) -> f32 {
    let Star { centre, north, south, west, east } = star;
    c * (north + south + west + east - 4.0 * centre)
}

/// The field at the start.
#[kernel]
pub fn wave_fill(item: Item<2>, u: &mut f32, size: usize) {
    *u = initial(item.id(), size);
}

/// The first step.
#[kernel]
pub fn wave_first(_item: Item<2>, (up, u): (&mut f32, NeighborhoodItem<'_, f32, 2>), c: f32) {
    *up = first(Star::around(|offset| u.clamped(offset)), c);
}

/// The heights of a run of cells after a step: [`next`] of each.
#[inline(always)]
pub(crate) fn next_row(up: &mut [f32], star: Star<&[f32]>, c: f32) {
    let Star { centre, north, south, west, east } = star;
    // One visible length lets the compiler drop bounds checks and vectorise.
    let len = up.len();
    let (centre, north, south) = (&centre[..len], &north[..len], &south[..len]);
    let (west, east) = (&west[..len], &east[..len]);
    for (i, up) in up.iter_mut().enumerate() {
        let star = Star {
            centre: centre[i],
            north: north[i],
            south: south[i],
            west: west[i],
            east: east[i],
        };
        *up = next(*up, star, c);
    }
}

/// One step, cell by cell. `up` holds the heights of two steps ago, `u` those of
/// the last.
#[kernel]
pub fn wave_step(_item: Item<2>, (up, u): (&mut f32, NeighborhoodItem<'_, f32, 2>), c: f32) {
    *up = next(*up, Star::around(|offset| u.clamped(offset)), c);
}

/// The same for a run of cells.
#[kernel(registers(wide = 64))]
pub fn wave_step_row(_row: Row<2>, (up, u): (&mut [f32], NeighborhoodRow<'_, f32, 2>), c: f32) {
    next_row(up, Star::around(|offset| u.clamped(offset)), c);
}
