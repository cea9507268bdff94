//! The sequential twin of the simulation. It shares the kernels' functions, which is why cells can
//! be compared bit for bit. Knows nothing of the runtime.

use celerity_example_kernels::cahn_hilliard::{energy, evolved, initial, potential};
use celerity_example_kernels::heat::SIDES;

use crate::Options;

/// How much sums may differ, relative to the sum of their terms' sizes: a plain loop adds up in
/// another order than a reduction does.
const ROUNDING: f64 = 1e-12;

/// What differs from the sequential program, or from what the equation promises.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Mismatch {
    #[error(
        "verification failed: {count} of {cells} cells differ from the sequential program, first \
         the {what} at {place:?}: {actual:e} instead of {expected:e}"
    )]
    Cells {
        what: &'static str,
        count: usize,
        cells: usize,
        place: [usize; 3],
        actual: f64,
        expected: f64,
    },
    #[error("verification failed: {what} is {actual:e} instead of {expected:e}")]
    Sum { what: &'static str, actual: f64, expected: f64 },
    #[error("verification failed: the free energy has risen from {first:e} to {last:e}")]
    Risen { first: f64, last: f64 },
}

/// Compares with the same by plain loops, and with what the equation promises: as much of each metal
/// as before, and no more energy. O(size³ · steps).
///
/// # Errors
/// The first number that differs.
pub(crate) fn compare(
    options: &Options,
    energies: [f64; 2],
    [c, energies_of_cells]: &[Vec<f64>; 2],
) -> Result<(), Mismatch> {
    let mut twin = Twin::new(options);
    let (mixed, first) = (twin.c.clone(), twin.energies());
    for _ in 0..options.steps {
        twin.step(options.rate);
    }
    let last = twin.energies();
    check_cells("mixture", twin.size, c, &twin.c)?;
    check_cells("energy", twin.size, energies_of_cells, &last)?;
    check_sum("the free energy before the first step", energies[0], &first)?;
    check_sum("the free energy after the last step", energies[1], &last)?;
    check_metal(options.steps, c, &mixed)?;
    match energies[1] <= energies[0] * (1.0 + ROUNDING) {
        true => Ok(()),
        false => Err(Mismatch::Risen { first: energies[0], last: energies[1] }),
    }
}

struct Twin {
    size: usize,
    gamma: f64,
    c: Vec<f64>,
}

impl Twin {
    fn new(options: &Options) -> Self {
        let size = options.size as usize;
        let c = places(size).map(|place| initial(place, options.mean, options.seed)).collect();
        Self { size, gamma: options.gamma, c }
    }

    fn step(&mut self, rate: f64) {
        let mu = self.for_each_cell(&self.c, |_, c, sides| potential(c, sides, self.gamma));
        self.c = self.for_each_cell(&mu, |i, mu, sides| evolved(self.c[i], mu, sides, rate));
    }

    fn energies(&self) -> Vec<f64> {
        self.for_each_cell(&self.c, |_, c, sides| energy(c, sides, self.gamma))
    }

    /// What a function makes of each cell: its number, its value and those of its neighbours.
    fn for_each_cell(&self, of: &[f64], make: impl Fn(usize, f64, [f64; 6]) -> f64) -> Vec<f64> {
        let size = self.size;
        let at = |place: [usize; 3], offset: [isize; 3]| {
            let [z, y, x] = std::array::from_fn(|dim| {
                (place[dim] as isize + offset[dim]).rem_euclid(size as isize) as usize
            });
            of[(z * size + y) * size + x]
        };
        let cell = |(i, place)| make(i, of[i], SIDES.map(|offset| at(place, offset)));
        places(size).enumerate().map(cell).collect()
    }
}

/// All places, in the order of memory.
fn places(size: usize) -> impl Iterator<Item = [usize; 3]> {
    (0..size.pow(3)).map(move |i| [i / size / size, i / size % size, i % size])
}

fn check_cells(
    what: &'static str,
    size: usize,
    actual: &[f64],
    expected: &[f64],
) -> Result<(), Mismatch> {
    let differs = |&i: &usize| actual[i].to_bits() != expected[i].to_bits();
    let mut different = (0..expected.len()).filter(differs);
    match different.next() {
        None => Ok(()),
        Some(first) => Err(Mismatch::Cells {
            what,
            count: 1 + different.count(),
            cells: expected.len(),
            place: places(size).nth(first).expect("a place per cell"),
            actual: actual[first],
            expected: expected[first],
        }),
    }
}

fn check_sum(what: &'static str, actual: f64, terms: &[f64]) -> Result<(), Mismatch> {
    let expected: f64 = terms.iter().sum();
    let size: f64 = terms.iter().map(|term| term.abs()).sum();
    match (actual - expected).abs() <= ROUNDING * size {
        true => Ok(()),
        false => Err(Mismatch::Sum { what, actual, expected }),
    }
}

/// Whether there is as much of each metal as at the beginning. Each step rounds each cell.
fn check_metal(steps: u64, c: &[f64], mixed: &[f64]) -> Result<(), Mismatch> {
    let (actual, expected): (f64, f64) = (c.iter().sum(), mixed.iter().sum());
    match (actual - expected).abs() <= 1e-15 * (steps + 1) as f64 * c.len() as f64 {
        true => Ok(()),
        false => Err(Mismatch::Sum { what: "how much there is of a metal", actual, expected }),
    }
}
