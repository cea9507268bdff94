//! Cahn and Hilliard's equation: how an alloy of two metals, well mixed and then quenched, separates.
//! `c` is their mixture in a cell, from -1 (all of one) to 1 (all of the other); opposite faces of
//! the box meet. Seven points, three kernels per step. Kernels and sequential programs share its
//! functions, so that their results can be compared bit for bit.
//!
//! The potential is `μ = c³ - c - γ ∇²c`, and the mixture follows `∂c/∂t = M ∇²μ`. That never creates
//! or destroys any of either metal, and the free energy, the sum over all cells of
//! `(1 - c²)² / 4 + γ |∇c|² / 2`, only falls. Cells have sides of length 1.

use celerity_kernel::{Item, PeriodicItem, PeriodicRow, Reducer, Row, Sum, kernel};

use crate::hash::{mix, unit};
use crate::heat::SIDES;

/// How far the mixture is from even at most, at the start.
const NOISE: f32 = 0.1;

/// The mixture in a cell at the start: noise around `mean`. Other seeds give other noise.
#[must_use]
pub fn initial([z, y, x]: [usize; 3], mean: f64, seed: u64) -> f64 {
    let place = (z as u64) << 42 | (y as u64) << 21 | x as u64;
    mean + f64::from((2.0 * unit(mix(place) ^ mix(seed)) - 1.0) * NOISE)
}

/// How much more the neighbours have than the centre, in sum: the Laplacian. `sides` are in the
/// order of [`SIDES`].
#[inline]
fn laplacian(centre: f64, [above, below, north, south, west, east]: [f64; 6]) -> f64 {
    (above + below) + (north + south) + (west + east) - 6.0 * centre
}

/// The potential of a cell. `gamma` says how much a border between the metals costs.
#[inline]
#[must_use]
pub fn potential(centre: f64, sides: [f64; 6], gamma: f64) -> f64 {
    centre * centre * centre - centre - gamma * laplacian(centre, sides)
}

/// The free energy of a cell; half of each side belongs to it.
#[inline]
#[must_use]
pub fn energy(centre: f64, sides: [f64; 6], gamma: f64) -> f64 {
    let apart = 1.0 - centre * centre;
    let [above, below, north, south, west, east] = sides;
    let square = |side: f64| (side - centre) * (side - centre);
    let around = (square(above) + square(below))
        + (square(north) + square(south))
        + (square(west) + square(east));
    0.25 * (apart * apart + gamma * around)
}

/// The mixture of a cell after a step, from the potentials around it. `rate` is `M Δt`.
#[inline]
#[must_use]
pub fn evolved(mixture: f64, centre: f64, sides: [f64; 6], rate: f64) -> f64 {
    mixture + rate * laplacian(centre, sides)
}

/// Slices of one visible length, which lets the compiler drop bounds checks and vectorise.
#[inline]
fn of_len([above, below, north, south, west, east]: [&[f64]; 6], len: usize) -> [&[f64]; 6] {
    [&above[..len], &below[..len], &north[..len], &south[..len], &west[..len], &east[..len]]
}

/// The mixture at the start.
#[kernel]
pub fn alloy_fill(item: Item<3>, c: &mut f64, mean: f64, seed: u64) {
    *c = initial(item.id(), mean, seed);
}

/// Potentials, cell by cell.
#[kernel(registers(wide = 64))]
pub fn alloy_potential(_item: Item<3>, (mu, c): (&mut f64, PeriodicItem<'_, f64, 3>), gamma: f64) {
    *mu = potential(c.at([0; 3]), c.at_each(SIDES), gamma);
}

/// The same for a run of cells.
#[kernel(registers(wide = 64))]
pub fn alloy_potential_row(
    _row: Row<3>,
    (mu, c): (&mut [f64], PeriodicRow<'_, f64, 3>),
    gamma: f64,
) {
    let len = mu.len();
    let (centre, sides) = (&c.at([0; 3])[..len], of_len(c.at_each(SIDES), len));
    let [above, below, north, south, west, east] = sides;
    for (i, mu) in mu.iter_mut().enumerate() {
        *mu =
            potential(centre[i], [above[i], below[i], north[i], south[i], west[i], east[i]], gamma);
    }
}

/// Free energies, cell by cell.
#[kernel(registers(wide = 64))]
pub fn alloy_energy(_item: Item<3>, (f, c): (&mut f64, PeriodicItem<'_, f64, 3>), gamma: f64) {
    *f = energy(c.at([0; 3]), c.at_each(SIDES), gamma);
}

/// The same for a run of cells.
#[kernel(registers(wide = 64))]
pub fn alloy_energy_row(_row: Row<3>, (f, c): (&mut [f64], PeriodicRow<'_, f64, 3>), gamma: f64) {
    let len = f.len();
    let (centre, sides) = (&c.at([0; 3])[..len], of_len(c.at_each(SIDES), len));
    let [above, below, north, south, west, east] = sides;
    for (i, f) in f.iter_mut().enumerate() {
        *f = energy(centre[i], [above[i], below[i], north[i], south[i], west[i], east[i]], gamma);
    }
}

/// A step of the mixture, cell by cell.
#[kernel(registers(wide = 64))]
pub fn alloy_evolve(_item: Item<3>, (c, mu): (&mut f64, PeriodicItem<'_, f64, 3>), rate: f64) {
    *c = evolved(*c, mu.at([0; 3]), mu.at_each(SIDES), rate);
}

/// The same for a run of cells.
#[kernel(registers(wide = 64))]
pub fn alloy_evolve_row(_row: Row<3>, (c, mu): (&mut [f64], PeriodicRow<'_, f64, 3>), rate: f64) {
    let len = c.len();
    let (centre, sides) = (&mu.at([0; 3])[..len], of_len(mu.at_each(SIDES), len));
    let [above, below, north, south, west, east] = sides;
    for (i, c) in c.iter_mut().enumerate() {
        *c = evolved(
            *c,
            centre[i],
            [above[i], below[i], north[i], south[i], west[i], east[i]],
            rate,
        );
    }
}

/// The free energy of all cells.
#[kernel]
pub fn alloy_total(_item: Item<3>, (f, sum): (&f64, Reducer<'_, f64, Sum>)) {
    sum.combine(*f);
}

#[cfg(test)]
mod tests {
    use super::{energy, evolved, initial, potential};

    #[test]
    fn pure_metal_stays_as_it_is() {
        for pure in [-1.0, 1.0] {
            assert_eq!(potential(pure, [pure; 6], 0.5), 0.0);
            assert_eq!(energy(pure, [pure; 6], 0.5), 0.0);
            assert_eq!(evolved(pure, 0.0, [0.0; 6], 0.01), pure);
        }
    }

    #[test]
    fn a_cell_amid_the_other_metal_pays_for_its_sides() {
        // Six sides of height 2, half of whose cost is the cell's: γ/2 · 6 · 4 / 2.
        assert_eq!(energy(1.0, [-1.0; 6], 0.5), 3.0);
        assert_eq!(potential(1.0, [-1.0; 6], 0.5), 6.0);
        assert_eq!(evolved(0.5, 1.0, [2.0; 6], 0.125), 1.25);
    }

    #[test]
    fn noise_is_small_around_its_mean() {
        let cells = (0..1000).map(|x| initial([x % 7, x % 11, x], 0.25, 3));
        assert!(cells.clone().all(|c| (c - 0.25).abs() <= 0.1 + 1e-7));
        assert!(cells.clone().any(|c| c < 0.2) && cells.clone().any(|c| c > 0.3));
    }
}
