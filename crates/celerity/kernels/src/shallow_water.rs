//! Waves on shallow water: its height, and how it flows along rows and along columns. Three fields and five points of
//! each. Kernels and sequential programs share its functions, so that their results can be compared bit for bit.
#![allow(clippy::type_complexity, reason = "`#[kernel]` wants to see which views there are")]

use celerity_kernel::math::Float;
use celerity_kernel::{Item, NeighborhoodItem, NeighborhoodRow, Row, kernel};

/// The offsets of the cells that share a side with a cell: rows, columns.
pub const SIDES: [[isize; 2]; 4] = [[-1, 0], [1, 0], [0, -1], [0, 1]];

/// Height and flows of a cell at the start: still water, and blocks of 16² cells that are higher.
#[must_use]
pub fn initial<T: Float>([y, x]: [usize; 2]) -> [T; 3] {
    let is_high = (y / 16).is_multiple_of(4) && (x / 16).is_multiple_of(4);
    let height = if is_high { 0.5 + (y + x) as f32 % 16.0 / 64.0 } else { 0.0 };
    [T::from(height), T::from(0.0), T::from(0.0)]
}

/// What a cell has after a step: height, flow along its row, flow along its column. `around` is what its neighbours have
/// of each, in the order of [`SIDES`]; `rate` is half of the cells that a wave goes in a step, and `smooth` how much of the
/// difference to its neighbours is levelled out: 0.125 for both is stable.
#[inline]
#[must_use]
pub fn next<T: Float>([h, u, v]: [T; 3], around: [[T; 4]; 3], rate: T, smooth: T) -> [T; 3] {
    let level = |centre: T, [north, south, west, east]: [T; 4]| {
        centre + smooth * (north + south + west + east - T::from(4.0) * centre)
    };
    let [around_h, around_u, around_v] = around;
    let [h_north, h_south, h_west, h_east] = around_h;
    let ([_, _, u_west, u_east], [v_north, v_south, _, _]) = (around_u, around_v);
    [
        level(h, around_h) - rate * (u_east - u_west + v_south - v_north),
        level(u, around_u) - rate * (h_east - h_west),
        level(v, around_v) - rate * (h_south - h_north),
    ]
}

/// What a step sees of an item: its own elements of three fields that it writes, and what is around it in three others.
pub type OfThree<Own, Around> = (Own, Own, Own, Around, Around, Around);

/// All fields at the start.
#[kernel(instances(f32, f64))]
pub fn water_fill<T: Float>(item: Item<2>, (h, u, v): (&mut T, &mut T, &mut T)) {
    [*h, *u, *v] = initial(item.id());
}

/// One step, cell by cell.
#[kernel(registers(wide = 64), instances(f32, f64))]
pub fn water_step<T: Float>(
    _item: Item<2>,
    (next_h, next_u, next_v, h, u, v): (
        &mut T,
        &mut T,
        &mut T,
        NeighborhoodItem<'_, T, 2>,
        NeighborhoodItem<'_, T, 2>,
        NeighborhoodItem<'_, T, 2>,
    ),
    rate: T,
    smooth: T,
) {
    let around = [h.clamped_each(SIDES), u.clamped_each(SIDES), v.clamped_each(SIDES)];
    let cell = [h.clamped([0; 2]), u.clamped([0; 2]), v.clamped([0; 2])];
    [*next_h, *next_u, *next_v] = next(cell, around, rate, smooth);
}

/// The same for a run of cells.
#[kernel(registers(wide = 64), instances(f32, f64))]
pub fn water_step_row<T: Float>(
    _row: Row<2>,
    (next_h, next_u, next_v, h, u, v): (
        &mut [T],
        &mut [T],
        &mut [T],
        NeighborhoodRow<'_, T, 2>,
        NeighborhoodRow<'_, T, 2>,
        NeighborhoodRow<'_, T, 2>,
    ),
    rate: T,
    smooth: T,
) {
    // One visible length lets the compiler drop bounds checks and vectorise.
    let len = next_h.len();
    let (next_u, next_v) = (&mut next_u[..len], &mut next_v[..len]);
    let (around_h, around_u, around_v) = (
        h.clamped_each(SIDES).map(|side| &side[..len]),
        u.clamped_each(SIDES).map(|side| &side[..len]),
        v.clamped_each(SIDES).map(|side| &side[..len]),
    );
    let h = &h.clamped([0; 2])[..len];
    let (u, v) = (&u.clamped([0; 2])[..len], &v.clamped([0; 2])[..len]);
    for i in 0..len {
        let around = [
            around_h.map(|side| side[i]),
            around_u.map(|side| side[i]),
            around_v.map(|side| side[i]),
        ];
        [next_h[i], next_u[i], next_v[i]] = next([h[i], u[i], v[i]], around, rate, smooth);
    }
}

#[cfg(test)]
mod tests {
    use super::next;

    #[test]
    fn still_water_stays_and_slopes_flow_down() {
        let still = [[2.0; 4], [0.0; 4], [0.0; 4]];
        assert_eq!(next([2.0, 0.0, 0.0], still, 0.125, 0.125), [2.0, 0.0, 0.0]);
        // Higher to the east and to the north: it flows west, and south.
        let slope = [[3.0, 1.0, 1.0, 3.0], [0.0; 4], [0.0; 4]];
        assert_eq!(next([2.0, 0.0, 0.0], slope, 0.125, 0.125), [2.0, -0.25, 0.25]);
        // What flows in from the west and does not flow out rises.
        let inflow = [[2.0; 4], [0.0, 0.0, 1.0, 0.0], [0.0; 4]];
        assert_eq!(next([2.0, 0.5, 0.0], inflow, 0.125, 0.0), [2.125, 0.5, 0.0]);
    }
}
