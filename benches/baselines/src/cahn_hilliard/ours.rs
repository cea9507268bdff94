//! The same through Celerity, twice: what the kernels of the example take, and what those by hand take
//! where it does the rest.

use std::time::Duration;

use celerity::PeriodicRow;
use celerity::prelude::*;
use celerity_example_kernels::cahn_hilliard::{
    alloy_energy_row, alloy_evolve_row, alloy_fill, alloy_potential_row,
};

use super::{GAMMA, MEAN, Plane, RATE, SEED, SIZE, STEPS, energies_of, evolve, potentials, start};
use crate::{PROGRAM_WINDOWS, shortest};

/// With the kernels of the example.
pub(super) fn with_example() -> celerity::Result<(Duration, Vec<f64>)> {
    celerity::run(|queue| {
        let range = [SIZE; 3];
        let [c, mu, energies] =
            ["c", "mu", "energy"].map(|name| queue.buffer::<f64, 3>(range).named(name));
        let fill = alloy_fill { mean: MEAN, seed: SEED };
        queue.task("fill").launch(range, c.write(one_to_one()), fill)?;
        let time = shortest(PROGRAM_WINDOWS, || {
            (0..STEPS).try_for_each(|_| step(queue, &c, &mu, &energies))?;
            queue.barrier()
        })?;
        let (c, energies) = (queue.fence(&c)?.wait()?, queue.fence(&energies)?.wait()?);
        Ok((time, [c.as_slice(), energies.as_slice()].concat()))
    })
}

fn step(
    queue: &Queue,
    c: &Buffer<f64, 3>,
    mu: &Buffer<f64, 3>,
    energies: &Buffer<f64, 3>,
) -> celerity::Result<()> {
    let around = || neighborhood_along_axes([1; 3]).periodic();
    let (range, own) = (c.range(), one_to_one());
    let kernel = alloy_potential_row { gamma: GAMMA };
    queue.task("potential").launch(range, (mu.write(own), c.read(around())), kernel)?;
    let kernel = alloy_evolve_row { rate: RATE };
    queue.task("evolve").launch(range, (c.read_write(own), mu.read(around())), kernel)?;
    let kernel = alloy_energy_row { gamma: GAMMA };
    queue.task("energy").launch(range, (energies.write(own), c.read(around())), kernel)?;
    Ok(())
}

/// With the loops by hand as kernels, which are called for planes.
pub(super) fn with_loops() -> celerity::Result<(Duration, Vec<f64>)> {
    celerity::run(|queue| {
        let planes: Vec<Plane> = (0..SIZE).map(start).collect();
        let c = queue.buffer_from(SIZE, planes)?.named("c");
        let [mu, energies] = ["mu", "energy"].map(|name| queue.buffer(SIZE).named(name));
        let around = || neighborhood([1]).periodic();
        let own = one_to_one();
        let time = shortest(PROGRAM_WINDOWS, || {
            for _ in 0..STEPS {
                let accesses = (mu.write(own), c.read(around()));
                queue.task("potential").parallel_for_rows(SIZE, accesses, |_, (mu, c)| {
                    each(mu, c, potentials);
                })?;
                let accesses = (c.read_write(own), mu.read(around()));
                queue.task("evolve").parallel_for_rows(SIZE, accesses, |_, (c, mu)| {
                    each(c, mu, evolve);
                })?;
                let accesses = (energies.write(own), c.read(around()));
                queue.task("energy").parallel_for_rows(SIZE, accesses, |_, (f, c)| {
                    each(f, c, energies_of);
                })?;
            }
            queue.barrier()
        })?;
        let (c, energies) = (queue.fence(&c)?.wait()?, queue.fence(&energies)?.wait()?);
        let both = [c.as_slice(), energies.as_slice()].concat();
        Ok((time, both.as_flattened().as_flattened().to_vec()))
    })
}

fn each(
    planes: &mut [Plane],
    around: PeriodicRow<'_, Plane, 1>,
    compute: impl Fn(&mut Plane, [&Plane; 3]),
) {
    let [above, centre, below] = [-1, 0, 1].map(|behind| around.at([behind]));
    for (z, plane) in planes.iter_mut().enumerate() {
        compute(plane, [&above[z], &centre[z], &below[z]]);
    }
}
