//! Direct N-body gravity: bodies over processes, which all know all places after each step.

use std::time::Duration;

use celerity::prelude::*;
use mpi::topology::SimpleCommunicator;
use mpi::traits::CommunicatorCollectives;

use crate::spread::{compare, share, timed};
use crate::{PROGRAM_WINDOWS, place, shortest};

const BODIES: usize = 4096;

/// In each measure.
const STEPS: usize = 2;
const DT: f64 = 1e-3;
const SOFTENING2: f64 = 1e-4;

/// Bodies whose pulls are summed side by side, for the compiler to vectorise.
const LANES: usize = 8;

/// Where a body is, and its mass.
type Position = [f64; 4];
type Velocity = [f64; 3];

/// A row of a table: the number of processes, and how many pairs both ways compute.
pub(crate) fn print(world: &SimpleCommunicator, repetitions: usize) -> celerity::Result<()> {
    let name = format!("nbody, {BODIES} bodies [Mpair/s]");
    let millions = (BODIES * BODIES * STEPS) as f64 / 1e6;
    compare(world, repetitions, (&name, millions), || by_hand(world), ours)
}

fn by_hand(world: &SimpleCommunicator) -> (Duration, Vec<Position>) {
    let (rank, nodes) = place(world);
    let share = share(BODIES, nodes);
    let mut places: Vec<Position> = (0..BODIES).map(start_of).collect();
    let mut velocities = vec![[0.0; 3]; share];
    let time = timed(world, || {
        for _ in 0..STEPS {
            let mut own = places[rank * share..(rank + 1) * share].to_vec();
            kick(&mut velocities, &own, &places);
            drift(&mut own, &velocities);
            world.all_gather_into(own.as_flattened(), places.as_flattened_mut());
        }
    });
    (time, places)
}

fn ours() -> celerity::Result<(Duration, Vec<Position>)> {
    celerity::run(|queue| {
        let places = queue.buffer_from(BODIES, (0..BODIES).map(start_of).collect::<Vec<_>>())?;
        let velocities = queue.buffer_from(BODIES, vec![[0.0; 3]; BODIES])?;
        let time = shortest(PROGRAM_WINDOWS, || {
            (0..STEPS).try_for_each(|_| step(queue, &places, &velocities))?;
            queue.barrier()
        })?;
        Ok((time, queue.fence(&places)?.wait()?.into_vec()))
    })
}

fn step(
    queue: &Queue,
    places: &Buffer<Position, 1>,
    velocities: &Buffer<Velocity, 1>,
) -> celerity::Result<()> {
    let accesses =
        (velocities.read_write(one_to_one()), places.read(one_to_one()), places.read(all()));
    queue.task("kick").parallel_for_rows(BODIES, accesses, |_, (v, own, places)| {
        kick(v, own, places.as_slice());
    })?;
    let accesses = (places.read_write(one_to_one()), velocities.read(one_to_one()));
    queue.task("drift").parallel_for_rows(BODIES, accesses, |_, (p, v)| drift(p, v))?;
    Ok(())
}

/// Somewhere in a cube, of some mass.
fn start_of(body: usize) -> Position {
    let digit = |prime: usize| ((body + 1) * prime % 8191) as f64 / 8191.0;
    [digit(31), digit(1009), digit(4243), 1.0 + digit(73)]
}

fn kick(velocities: &mut [Velocity], own: &[Position], all: &[Position]) {
    for (velocities, own) in velocities.chunks_mut(LANES).zip(own.chunks(LANES)) {
        let lanes = |axis: usize| std::array::from_fn(|lane| own[lane.min(own.len() - 1)][axis]);
        let at: [[f64; LANES]; 3] = std::array::from_fn(lanes);
        let mut pull = [[0.0; LANES]; 3];
        for other in all {
            for lane in 0..LANES {
                let apart: [f64; 3] = std::array::from_fn(|axis| other[axis] - at[axis][lane]);
                let distance2 = apart.iter().fold(SOFTENING2, |sum, d| sum + d * d);
                let strength = other[3] / (distance2 * distance2.sqrt());
                (0..3).for_each(|axis| pull[axis][lane] += strength * apart[axis]);
            }
        }
        for (lane, velocity) in velocities.iter_mut().enumerate() {
            (0..3).for_each(|axis| velocity[axis] += DT * pull[axis][lane]);
        }
    }
}

fn drift(places: &mut [Position], velocities: &[Velocity]) {
    for (place, velocity) in places.iter_mut().zip(velocities) {
        (0..3).for_each(|axis| place[axis] += DT * velocity[axis]);
    }
}
