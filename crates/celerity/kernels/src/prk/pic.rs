//! Particles that the charges at the corners of their cell push through a grid whose edges meet. All
//! have such charges that they move by the same distance in each step.

use celerity_kernel::{Item, PlainData, Reducer, Sum, WholeView, kernel, math};

/// A particle, and what it is verified by.
#[derive(Clone, Copy, Debug, Default, PartialEq, PlainData)]
#[repr(C)]
pub struct Particle {
    /// Where it is: to the right, and up.
    pub place: [f64; 2],
    /// How far it moves in a step.
    pub velocity: [f64; 2],
    /// How much it is charged.
    pub charge: f64,
    /// Where it was at the start.
    pub start: [f64; 2],
    /// It moves 2 `k` + 1 cells to the right in a step …
    pub k: f64,
    /// … and so many up.
    pub m: f64,
    /// Its number, from 1.
    pub number: f64,
}

impl Particle {
    /// The particle of this number in the middle of a cell, with a charge that makes it move 2 `k` + 1
    /// cells to the right and `m` up in each step.
    #[must_use]
    pub fn at_cell([x, y]: [u64; 2], k: f64, m: f64, number: f64) -> Self {
        let start = [x as f64 + 0.5, y as f64 + 0.5];
        // Both charges beside a particle in the middle are as far away, and pull alike.
        let square = 0.5 * 0.5 + 0.5 * 0.5;
        let cosine = 0.5 / math::sqrt(square);
        let base = 1.0 / (cosine / square + cosine / square);
        let sign = if x.is_multiple_of(2) { 1.0 } else { -1.0 };
        let charge = sign * (2.0 * k + 1.0) * base;
        Self { place: start, velocity: [0.0, m], charge, start, k, m, number }
    }
}

/// The charges of a grid: columns of positive and negative ones in turns.
#[kernel]
pub fn charge_fill(item: Item<2>, charge: &mut f64) {
    *charge = if item[1].is_multiple_of(2) { 1.0 } else { -1.0 };
}

/// The force between two charges at this distance.
#[inline]
fn coulomb([x, y]: [f64; 2], charges: f64) -> [f64; 2] {
    let square = x * x + y * y;
    let (distance, force) = (math::sqrt(square), charges / square);
    [force * x / distance, force * y / distance]
}

/// `place` in a grid of `size` cells around which there is another copy of it, and another.
#[inline]
fn around(place: f64, size: f64) -> f64 {
    let moved = place + size;
    moved - size * math::floor(moved / size)
}

/// A step of a particle.
#[kernel]
pub fn push(_item: Item<1>, (p, charges): (&mut Particle, WholeView<'_, f64, 2>), size: f64) {
    let [x, y] = p.place;
    let [left, bottom] = [math::floor(x), math::floor(y)];
    let ([right, up], [column, row]) = ([x - left, y - bottom], [left as usize, bottom as usize]);
    let corner = |up: usize, right: usize| p.charge * charges[[row + up, column + right]];
    let below = coulomb([right, up], corner(0, 0));
    let above = coulomb([right, 1.0 - up], corner(1, 0));
    let below_right = coulomb([1.0 - right, up], corner(0, 1));
    let above_right = coulomb([1.0 - right, 1.0 - up], corner(1, 1));
    let force = [
        below[0] + above[0] - below_right[0] - above_right[0],
        below[1] - above[1] + below_right[1] - above_right[1],
    ];
    p.place = [
        around(x + p.velocity[0] + 0.5 * force[0], size),
        around(y + p.velocity[1] + 0.5 * force[1], size),
    ];
    p.velocity = [p.velocity[0] + force[0], p.velocity[1] + force[1]];
}

/// How many particles are where they must be after so many steps, within 10⁻⁶, and the sum of all
/// numbers.
#[kernel]
pub fn check_particle(
    _item: Item<1>,
    (p, right, numbers): (&Particle, Reducer<'_, f64, Sum>, Reducer<'_, f64, Sum>),
    size: f64,
    steps: f64,
) {
    let end = [p.start[0] + steps * (2.0 * p.k + 1.0), p.start[1] + steps * p.m];
    let far = |place: f64, end: f64| (place - (end - size * math::floor(end / size))).abs() > 1e-6;
    let is_wrong = far(p.place[0], end[0]) || far(p.place[1], end[1]);
    right.combine(if is_wrong { 0.0 } else { 1.0 });
    numbers.combine(p.number);
}
