//! A pendulum over a board with magnets: rows of the board over processes, which need nothing of each
//! other.

use std::f32::consts::TAU;
use std::time::Duration;

use celerity::prelude::*;
use celerity_example_kernels::pendulum::{Rest, Swing, pendulum, place as point, swing};
use mpi::topology::SimpleCommunicator;

use crate::spread::{compare, gathered, share, timed};
use crate::{PROGRAM_WINDOWS, place, shortest};

/// Points along each side of the board.
const SIZE: usize = 120;
const MAGNETS: usize = 3;
/// Steps after which a pendulum is left where it is.
const STEPS: u32 = 4000;
/// How far the board reaches from the centre.
const REACH: f32 = 2.0;

/// A row of a table: the number of processes, and from how many points both ways let go.
pub(crate) fn print(world: &SimpleCommunicator, repetitions: usize) -> celerity::Result<()> {
    let name = format!("pendulum, {SIZE}×{SIZE} [kpoint/s]");
    let thousands = (SIZE * SIZE) as f64 / 1e3;
    compare(world, repetitions, (&name, thousands), || by_hand(world), ours)
}

/// Where magnets stand, the first to the right of the centre.
fn magnets() -> [[f32; 2]; MAGNETS] {
    std::array::from_fn(|magnet| (TAU * magnet as f32 / MAGNETS as f32).sin_cos().into())
}

fn by_hand(world: &SimpleCommunicator) -> (Duration, Vec<u32>) {
    let (rank, nodes) = place(world);
    let (first, share) = (rank * share(SIZE, nodes) * SIZE, share(SIZE, nodes) * SIZE);
    let places = magnets();
    let [mut rest, mut after] = [(); 2].map(|()| vec![0; share]);
    let time = timed(world, || {
        for (at, (rest, after)) in (first..).zip(rest.iter_mut().zip(&mut after)) {
            let from = point([at / SIZE, at % SIZE], SIZE, REACH);
            let found = swing(from, Swing::USUAL, STEPS, MAGNETS, |magnet| places[magnet]);
            Rest { magnet: *rest, steps: *after } = found;
        }
    });
    (time, [rest, after].iter().flat_map(|own| gathered(world, own)).collect())
}

fn ours() -> celerity::Result<(Duration, Vec<u32>)> {
    celerity::run(|queue| {
        let range = [SIZE; 2];
        let magnets = queue.buffer_from(MAGNETS, magnets().to_vec())?.named("magnets");
        let [rest, after] = ["rest", "after"].map(|name| queue.buffer::<u32, 2>(range).named(name));
        let time = shortest(PROGRAM_WINDOWS, || {
            let results = (rest.write(one_to_one()), after.write(one_to_one()));
            let kernel = pendulum { reach: REACH, parameters: Swing::USUAL, steps: STEPS };
            let accesses = (results.0, results.1, magnets.read(all()));
            queue.task("swing").launch(range, accesses, kernel)?;
            queue.barrier()
        })?;
        let (rest, after) = (queue.fence(&rest)?.wait()?, queue.fence(&after)?.wait()?);
        Ok((time, [rest.as_slice(), after.as_slice()].concat()))
    })
}
