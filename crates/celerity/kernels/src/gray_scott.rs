//! Gray and Scott's reaction of two substances that spread on a plane: `u` feeds `v`, which eats
//! it and decays. Two fields and five points of each. Kernels and sequential programs share its
//! functions, so that their results can be compared bit for bit.
#![allow(clippy::type_complexity, reason = "`#[kernel]` wants to see which views there are")]

use celerity_kernel::{Item, NeighborhoodItem, NeighborhoodRow, PlainData, Row, kernel};

/// What the reaction runs by.
#[derive(Clone, Copy, Debug, PlainData)]
#[repr(C)]
pub struct Rates {
    /// How fast `u` spreads, in cells² per step: at most 0.25 is stable.
    pub spread_u: f32,
    /// How fast `v` spreads.
    pub spread_v: f32,
    /// How much of the `u` that is missing is fed in a step.
    pub feed: f32,
    /// How much more of `v` than that is taken away in a step.
    pub kill: f32,
}

impl Rates {
    /// Spots that divide.
    pub const SPOTS: Self = Self { spread_u: 0.2, spread_v: 0.1, feed: 0.037, kill: 0.06 };
}

/// The offsets of the cells that share a side with a cell: rows, columns.
pub const SIDES: [[isize; 2]; 4] = [[-1, 0], [1, 0], [0, -1], [0, 1]];

/// How much there is of both in a cell at the start: `u` everywhere, and squares of `v`.
#[must_use]
pub const fn initial([y, x]: [usize; 2]) -> [f32; 2] {
    let is_seed = y % 64 / 8 == 3 && x % 64 / 8 == (y / 64) % 8;
    if is_seed { [0.5, 0.25] } else { [1.0, 0.0] }
}

/// What is in a cell after a step. `around` is what its neighbours have, in the order of [`SIDES`].
#[inline]
#[must_use]
pub fn next([u, v]: [f32; 2], [around_u, around_v]: [[f32; 4]; 2], rates: Rates) -> [f32; 2] {
    let more = |centre: f32, [north, south, west, east]: [f32; 4]| {
        north + south + west + east - 4.0 * centre
    };
    let reaction = u * v * v;
    [
        u + (rates.spread_u * more(u, around_u) - reaction + rates.feed * (1.0 - u)),
        v + (rates.spread_v * more(v, around_v) + reaction - (rates.feed + rates.kill) * v),
    ]
}

/// Both fields at the start.
#[kernel]
pub fn react_fill(item: Item<2>, (u, v): (&mut f32, &mut f32)) {
    [*u, *v] = initial(item.id());
}

/// One step, cell by cell.
#[kernel(registers(wide = 64))]
pub fn react(
    _item: Item<2>,
    (next_u, next_v, u, v): (
        &mut f32,
        &mut f32,
        NeighborhoodItem<'_, f32, 2>,
        NeighborhoodItem<'_, f32, 2>,
    ),
    rates: Rates,
) {
    let around = [u.clamped_each(SIDES), v.clamped_each(SIDES)];
    [*next_u, *next_v] = next([u.clamped([0; 2]), v.clamped([0; 2])], around, rates);
}

/// The same for a run of cells.
#[kernel(registers(wide = 64))]
pub fn react_row(
    _row: Row<2>,
    (next_u, next_v, u, v): (
        &mut [f32],
        &mut [f32],
        NeighborhoodRow<'_, f32, 2>,
        NeighborhoodRow<'_, f32, 2>,
    ),
    rates: Rates,
) {
    // One visible length lets the compiler drop bounds checks and vectorise.
    let len = next_u.len();
    let next_v = &mut next_v[..len];
    let (around_u, around_v) = (
        u.clamped_each(SIDES).map(|side| &side[..len]),
        v.clamped_each(SIDES).map(|side| &side[..len]),
    );
    let (u, v) = (&u.clamped([0; 2])[..len], &v.clamped([0; 2])[..len]);
    for i in 0..len {
        let around = [around_u.map(|side| side[i]), around_v.map(|side| side[i])];
        [next_u[i], next_v[i]] = next([u[i], v[i]], around, rates);
    }
}

#[cfg(test)]
mod tests {
    use super::{Rates, next};

    #[test]
    fn what_is_even_only_reacts() {
        let rates = Rates { spread_u: 0.2, spread_v: 0.1, feed: 0.25, kill: 0.25 };
        assert_eq!(next([1.0, 0.0], [[1.0; 4], [0.0; 4]], rates), [1.0, 0.0]);
        // 0.5 · 0.25 reacts; half of the 0.5 that is missing of `u` is fed, half of `v` decays.
        assert_eq!(next([0.5, 0.5], [[0.5; 4], [0.5; 4]], rates), [0.5, 0.375]);
    }
}
