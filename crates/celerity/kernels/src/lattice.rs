//! A fluid as a lattice Boltzmann method in two dimensions sees it (D2Q9): in each cell so much moves in each
//! of nine directions, of which each has a buffer. Opposite edges meet. A step takes eighteen views, in two lists. In three dimensions (D3Q19) it takes 38.

use celerity_kernel::{Item, PeriodicItem, WholeView, kernel};

/// Where what moves in each direction goes: rows down, columns to the right.
pub const DIRECTIONS: [[isize; 2]; 9] =
    [[0, 0], [0, 1], [1, 0], [0, -1], [-1, 0], [1, 1], [1, -1], [-1, -1], [-1, 1]];

/// How much of a fluid at rest moves in each direction.
pub const WEIGHTS: [f32; 9] = [
    4.0 / 9.0,
    1.0 / 9.0,
    1.0 / 9.0,
    1.0 / 9.0,
    1.0 / 9.0,
    1.0 / 36.0,
    1.0 / 36.0,
    1.0 / 36.0,
    1.0 / 36.0,
];

/// Directions of a fluid over `D` dimensions, of which there are `Q`, and how much of it moves in each at rest.
struct Lattice<const D: usize, const Q: usize> {
    directions: [[isize; D]; Q],
    weights: [f32; Q],
}

const ON_PLANE: Lattice<2, 9> = Lattice { directions: DIRECTIONS, weights: WEIGHTS };

impl<const D: usize, const Q: usize> Lattice<D, Q> {
    /// What moves in each direction in a cell of so dense a fluid with so much velocity.
    #[inline]
    fn equilibrium(&self, density: f32, velocity: [f32; D]) -> [f32; Q] {
        let square = 1.5 * dot(velocity, velocity);
        core::array::from_fn(|at| {
            let along = 3.0 * dot(self.directions[at].map(|steps| steps as f32), velocity);
            self.weights[at] * density * (1.0 + along + 0.5 * along * along - square)
        })
    }

    /// What moves on from a cell in which so much has arrived: `rate` of the way to the equilibrium (Bhatnagar,
    /// Gross and Krook).
    #[inline]
    fn collide(&self, arrived: [f32; Q], rate: f32) -> [f32; Q] {
        let (mut density, mut velocity) = (0.0, [0.0; D]);
        for (at, amount) in arrived.into_iter().enumerate() {
            density += amount;
            let steps = self.directions[at];
            velocity = core::array::from_fn(|dim| velocity[dim] + steps[dim] as f32 * amount);
        }
        let rest = self.equilibrium(density, velocity.map(|amount| amount / density));
        core::array::from_fn(|at| arrived[at] + rate * (rest[at] - arrived[at]))
    }
}

/// The sum of products, from the first on.
#[inline]
fn dot<const D: usize>(a: [f32; D], b: [f32; D]) -> f32 {
    let mut sum = a[0] * b[0];
    for dim in 1..D {
        sum += a[dim] * b[dim];
    }
    sum
}

/// What moves in each direction in a cell of so dense a fluid with so much velocity, down and to the right.
#[inline]
#[must_use]
pub fn equilibrium(density: f32, velocity: [f32; 2]) -> [f32; 9] {
    ON_PLANE.equilibrium(density, velocity)
}

/// What moves on from a cell in which so much has arrived: `rate` of the way to the equilibrium.
#[inline]
#[must_use]
pub fn collide(arrived: [f32; 9], rate: f32) -> [f32; 9] {
    ON_PLANE.collide(arrived, rate)
}

/// A fluid at rest that is denser in one place.
#[must_use]
pub fn initial([y, x]: [usize; 2], middle: [usize; 2]) -> [f32; 9] {
    let distance = y.abs_diff(middle[0]).pow(2) + x.abs_diff(middle[1]).pow(2);
    equilibrium(1.0 + 0.1 / (1.0 + distance as f32), [0.0; 2])
}

/// The fluid at the start.
#[kernel]
pub fn lattice_fill(item: Item<2>, to: [&mut f32; 9]) {
    let [rows, columns] = item.range();
    let amounts = initial(item.id(), [rows / 2, columns / 3]);
    for at in 0..9 {
        *to[at] = amounts[at];
    }
}

/// A step: everything moves by a cell, and collides there with what else arrives.
#[kernel]
pub fn lattice_step(
    _item: Item<2>,
    (to, from): ([&mut f32; 9], [PeriodicItem<'_, f32, 2>; 9]),
    rate: f32,
) {
    let mut arrived = [0.0; 9];
    for at in 0..9 {
        let [y, x] = DIRECTIONS[at];
        arrived[at] = from[at].at([-y, -x]);
    }
    let left = collide(arrived, rate);
    for at in 0..9 {
        *to[at] = left[at];
    }
}

/// Where what moves in each of nineteen directions in space goes (D3Q19): not at all, along an axis, or along two.
pub const IN_SPACE: [[isize; 3]; 19] = {
    let (mut directions, mut next, mut at) = ([[0; 3]; 19], 0, 0);
    while at < 27 {
        let direction = [at / 9 - 1, at / 3 % 3 - 1, at % 3 - 1];
        let [z, y, x] = direction;
        if z * y * x == 0 {
            directions[next] = direction;
            next += 1;
        }
        at += 1;
    }
    directions
};

/// How much of a fluid at rest moves in each of these.
const WEIGHTS_IN_SPACE: [f32; 19] = {
    let (mut weights, mut at) = ([0.0; 19], 0);
    while at < 19 {
        let [z, y, x] = IN_SPACE[at];
        weights[at] = [1.0 / 3.0, 1.0 / 18.0, 1.0 / 36.0][(z * z + y * y + x * x) as usize];
        at += 1;
    }
    weights
};

const SPACE: Lattice<3, 19> = Lattice { directions: IN_SPACE, weights: WEIGHTS_IN_SPACE };

/// [`equilibrium`] in space.
#[inline]
#[must_use]
pub fn equilibrium_in_space(density: f32, velocity: [f32; 3]) -> [f32; 19] {
    SPACE.equilibrium(density, velocity)
}

/// [`collide`] in space.
#[inline]
#[must_use]
pub fn collide_in_space(arrived: [f32; 19], rate: f32) -> [f32; 19] {
    SPACE.collide(arrived, rate)
}

/// The fluid at the start, at rest and denser in one place.
#[kernel]
pub fn space_fill(item: Item<3>, to: [&mut f32; 19]) {
    let middle = item.range().map(|size| size / 2);
    let distance: usize = (0..3).map(|dim| item[dim].abs_diff(middle[dim]).pow(2)).sum();
    let amounts = equilibrium_in_space(1.0 + 0.1 / (1.0 + distance as f32), [0.0; 3]);
    for at in 0..19 {
        *to[at] = amounts[at];
    }
}

/// A step as [`lattice_step`], in space. Each direction has a buffer: 38 views, in two lists.
#[kernel]
pub fn space_step(
    _item: Item<3>,
    (to, from): ([&mut f32; 19], [PeriodicItem<'_, f32, 3>; 19]),
    rate: f32,
) {
    let mut arrived = [0.0; 19];
    for at in 0..19 {
        let [z, y, x] = IN_SPACE[at];
        arrived[at] = from[at].at([-z, -y, -x]);
    }
    let left = collide_in_space(arrived, rate);
    for at in 0..19 {
        *to[at] = left[at];
    }
}

/// What a buffer holds, all of which each device needs.
#[kernel]
pub fn copy_of_whole(item: Item<3>, (to, from): (&mut f32, WholeView<'_, f32, 3>)) {
    *to = from[item.id()];
}

/// What arrives in each cell. What moves in all directions lies side by side, and is looked for in a loop.
#[kernel]
pub fn arrive(_item: Item<3>, (to, from): (&mut [f32; 19], PeriodicItem<'_, [f32; 19], 3>)) {
    for at in 0..19 {
        let [z, y, x] = IN_SPACE[at];
        to[at] = from.at([-z, -y, -x])[at];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collisions_lose_nothing() {
        let arrived = [0.4, 0.1, 0.2, 0.15, 0.05, 0.02, 0.04, 0.03, 0.01];
        let sum = |of: [f32; 9], part: fn([isize; 2]) -> isize| -> f32 {
            of.iter().zip(DIRECTIONS).map(|(amount, at)| part(at) as f32 * amount).sum()
        };
        let parts: [fn([isize; 2]) -> isize; 3] = [|_| 1, |[y, _]| y, |[_, x]| x];
        for part in parts {
            let after = sum(collide(arrived, 1.3), part);
            assert!((after - sum(arrived, part)).abs() < 1e-6, "{after}");
        }
        let rest = equilibrium(1.2, [0.0; 2]);
        assert!(rest.iter().zip(collide(rest, 0.7)).all(|(a, b)| (a - b).abs() < 1e-7));
    }
}
