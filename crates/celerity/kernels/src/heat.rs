//! Heat that spreads in a box whose walls let nothing through: the stencil of seven points in three
//! dimensions. Kernels and sequential programs share its functions, so that their results can be
//! compared bit for bit.

use celerity_kernel::math::Float;
use celerity_kernel::{Item, NeighborhoodItem, NeighborhoodRow, Row, kernel};

/// The offsets of the cells that share a side with a cell: planes, rows, columns.
pub const SIDES: [[isize; 3]; 6] =
    [[-1, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0], [0, 0, -1], [0, 0, 1]];

/// The temperature of a cell at the start, from 0 to 1: blocks of 8³ cells, of which every other
/// one is warm, the warmer the larger their indices.
#[must_use]
pub fn initial<T: Float>([z, y, x]: [usize; 3], [planes, rows, columns]: [usize; 3]) -> T {
    let is_warm = (z / 8 + y / 8 + x / 8).is_multiple_of(2);
    let place = (z + y + x) as f32 / (planes + rows + columns) as f32;
    T::from(if is_warm { place } else { 0.0 })
}

/// A cell's temperature after a step. `sides` are those of its neighbours, in the order of
/// [`SIDES`]; `rate` is `a Δt / Δx²`, and at most 1/6 is stable.
#[inline]
#[must_use]
pub fn next<T: Float>(centre: T, sides: [T; 6], rate: T) -> T {
    let [above, below, north, south, west, east] = sides;
    centre + rate * (above + below + north + south + west + east - T::from(6.0) * centre)
}

/// The box at the start.
#[kernel(instances(f32, f64))]
pub fn heat_fill<T: Float>(item: Item<3>, u: &mut T, size: [usize; 3]) {
    *u = initial(item.id(), size);
}

/// One step, cell by cell: from the temperatures `u` to those after it.
#[kernel(instances(f32, f64))]
pub fn heat_step<T: Float>(
    _item: Item<3>,
    (after, u): (&mut T, NeighborhoodItem<'_, T, 3>),
    rate: T,
) {
    *after = next(u.clamped([0; 3]), u.clamped_each(SIDES), rate);
}

/// The same for a run of cells.
#[kernel(instances(f32, f64))]
pub fn heat_step_row<T: Float>(
    _row: Row<3>,
    (after, u): (&mut [T], NeighborhoodRow<'_, T, 3>),
    rate: T,
) {
    let len = after.len();
    let (centre, [above, below, north, south, west, east]) =
        (&u.clamped([0; 3])[..len], u.clamped_each(SIDES));
    let (above, below) = (&above[..len], &below[..len]);
    let (north, south) = (&north[..len], &south[..len]);
    let (west, east) = (&west[..len], &east[..len]);
    for (i, after) in after.iter_mut().enumerate() {
        let sides = [above[i], below[i], north[i], south[i], west[i], east[i]];
        *after = next(centre[i], sides, rate);
    }
}

#[cfg(test)]
mod tests {
    use super::next;

    #[test]
    fn heat_flows_from_warm_cells_to_cold_ones() {
        assert_eq!(next(0.0_f32, [1.0; 6], 0.125), 0.75);
        assert_eq!(next(1.0_f64, [0.0; 6], 0.125), 0.25);
        assert_eq!(next(0.5_f64, [0.5; 6], 0.125), 0.5);
        assert_eq!(next(0.0_f32, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0], 0.125), 0.125);
    }
}
