//! An alloy that separates, by Cahn and Hilliard's equation: slabs of a box over processes. Planes at
//! the borders are computed first, and travel while those inside are computed.

mod ours;

use std::time::Duration;

use celerity_example_kernels::cahn_hilliard::{energy, evolved, initial, potential};
use mpi::request::multiple_scope;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Destination, Source};

use crate::place;
use crate::spread::{at_rank, compare, gathered, share, timed};

/// Cells along each edge of the box.
const SIZE: usize = 96;

type Plane = [[f64; SIZE]; SIZE];

/// In each measure.
const STEPS: usize = 40;

const MEAN: f64 = 0.0;
const SEED: u64 = 1;
/// What a border between the metals costs.
const GAMMA: f64 = 0.5;
/// How far a step goes.
const RATE: f64 = 0.015;

/// Which way a plane travels.
const UP: i32 = 0;
const DOWN: i32 = 1;

/// A row of a table for each of our ways, with the kernels of the example and with the loops by hand:
/// the number of processes, and how many cells both ways update.
pub(crate) fn print(world: &SimpleCommunicator, repetitions: usize) -> celerity::Result<()> {
    let millions = (SIZE * SIZE * SIZE * STEPS) as f64 / 1e6;
    let name = format!("cahn_hilliard, {SIZE}³ [Mcell/s]");
    compare(world, repetitions, (&name, millions), || by_hand(world), ours::with_example)?;
    let name = format!("cahn_hilliard, {SIZE}³, one kernel [Mcell/s]");
    compare(world, repetitions, (&name, millions), || by_hand(world), ours::with_loops)
}

fn by_hand(world: &SimpleCommunicator) -> (Duration, Vec<f64>) {
    let (rank, nodes) = place(world);
    let planes = share(SIZE, nodes);
    assert!(planes > 1, "two borders");
    // With a plane more above and below.
    let [mut c, mut mu] = [(); 2].map(|()| vec![[[0.0; SIZE]; SIZE]; planes + 2]);
    let mut energies = vec![[[0.0; SIZE]; SIZE]; planes];
    update(world, &mut c, |z, plane| *plane = start(rank * planes + z));
    let time = timed(world, || {
        for _ in 0..STEPS {
            update(world, &mut mu, |z, mu| potentials(mu, around(&c, z)));
            update(world, &mut c, |z, c| evolve(c, around(&mu, z)));
            energies.iter_mut().enumerate().for_each(|(z, f)| energies_of(f, around(&c, z)));
        }
    });
    let own = [&c[1..=planes], &energies].map(|planes| planes.as_flattened().as_flattened());
    (time, own.into_iter().flat_map(|own| gathered(world, own)).collect())
}

/// A plane at the start.
fn start(z: usize) -> Plane {
    std::array::from_fn(|y| std::array::from_fn(|x| initial([z, y, x], MEAN, SEED)))
}

/// A plane of a slab, by its place behind the one above the slab, between its neighbours.
fn around(slab: &[Plane], z: usize) -> [&Plane; 3] {
    [0, 1, 2].map(|behind| &slab[z + behind])
}

fn potentials(mu: &mut Plane, c: [&Plane; 3]) {
    sweep(mu, c, |_, c, sides| potential(c, sides, GAMMA));
}

fn evolve(c: &mut Plane, mu: [&Plane; 3]) {
    sweep(c, mu, |c, mu, sides| evolved(c, mu, sides, RATE));
}

fn energies_of(f: &mut Plane, c: [&Plane; 3]) {
    sweep(f, c, |_, c, sides| energy(c, sides, GAMMA));
}

/// Lets `compute` change each plane of a slab, which it is told the place of, and gets the planes next
/// to it. Opposite faces of the box meet.
fn update(world: &SimpleCommunicator, slab: &mut [Plane], compute: impl Fn(usize, &mut Plane)) {
    let (rank, nodes) = place(world);
    let [above, first, inside @ .., last, below] = slab else { unreachable!("two borders") };
    compute(0, first);
    compute(1 + inside.len(), last);
    let mut compute_inside = || (1..).zip(&mut *inside).for_each(|(z, plane)| compute(z, plane));
    if nodes == 1 {
        (*above, *below) = (*last, *first);
        return compute_inside();
    }
    let upper = at_rank(world, (rank + nodes - 1) % nodes);
    let lower = at_rank(world, (rank + 1) % nodes);
    multiple_scope(4, |scope, requests| {
        let [above, below] = [above, below].map(|plane| plane.as_flattened_mut());
        requests.add(upper.immediate_receive_into_with_tag(scope, above, DOWN));
        requests.add(lower.immediate_receive_into_with_tag(scope, below, UP));
        requests.add(upper.immediate_send_with_tag(scope, first.as_flattened(), UP));
        requests.add(lower.immediate_send_with_tag(scope, last.as_flattened(), DOWN));
        compute_inside();
        requests.wait_all(&mut Vec::with_capacity(4));
    });
}

/// Changes each cell of a plane to what `next` makes of itself, and of a cell of another plane, which is
/// given between its neighbours, and its six sides.
#[inline(always)]
fn sweep(
    plane: &mut Plane,
    [above, centre, below]: [&Plane; 3],
    next: impl Fn(f64, f64, [f64; 6]) -> f64,
) {
    for (y, out) in plane.iter_mut().enumerate() {
        let (north, south) = (&centre[(y + SIZE - 1) % SIZE], &centre[(y + 1) % SIZE]);
        let (above, centre, below) = (&above[y], &centre[y], &below[y]);
        let mut at = |x: usize, west: usize, east: usize| {
            let sides = [above[x], below[x], north[x], south[x], centre[west], centre[east]];
            out[x] = next(out[x], centre[x], sides);
        };
        at(0, SIZE - 1, 1);
        at(SIZE - 1, SIZE - 2, 0);
        (1..SIZE - 1).for_each(|x| at(x, x - 1, x + 1));
    }
}
