//! Waiting for all nodes: a barrier, and a fence on one element (IJPP 2022, fig. 5).

use std::time::Duration;

use celerity::prelude::*;
use mpi::topology::SimpleCommunicator;
use mpi::traits::CommunicatorCollectives;

use crate::turns::turns;
use crate::{WINDOWS, is_root, micros, place, shortest};

/// In each measure.
const ROUNDS: u32 = 20;

/// A row of a table: the number of nodes, and what each of these takes.
pub(crate) fn print(world: &SimpleCommunicator, repetitions: usize) -> celerity::Result<()> {
    let (_, nodes) = place(world);
    let times = repetitions.div_ceil(WINDOWS);
    let by_hand = || (by_hand(world), ());
    let [hand, ours] = turns(times, by_hand, || Ok((barriers()?, ())))?.0.least();
    let [_, fence] = turns(times, by_hand, || Ok((fences()?, ())))?.0.least();
    if is_root(world) {
        let [hand, ours, fence] = [hand, ours, fence].map(|time| micros(time / ROUNDS));
        println!("\n| nodes | MPI_Barrier [µs] | barrier [µs] | fence [µs] |");
        println!("| --- | --- | --- | --- |\n| {nodes} | {hand:.2} | {ours:.2} | {fence:.2} |");
    }
    Ok(())
}

fn by_hand(world: &SimpleCommunicator) -> Duration {
    let time = shortest(WINDOWS, || {
        (0..ROUNDS).for_each(|_| world.barrier());
        Ok(())
    });
    time.expect("nothing is refused")
}

fn barriers() -> celerity::Result<Duration> {
    celerity::run(|queue| shortest(WINDOWS, || (0..ROUNDS).try_for_each(|_| queue.barrier())))
}

/// One task per fence writes what it reads, so that all nodes wait for node 0.
fn fences() -> celerity::Result<Duration> {
    celerity::run(|queue| {
        let number = queue.buffer::<u64, 1>(1).named("number");
        let round = || {
            queue.task("write").parallel_for(1, number.write(one_to_one()), |_, n| *n = 1)?;
            queue.fence(&number)?.wait().map(drop)
        };
        shortest(WINDOWS, || (0..ROUNDS).try_for_each(|_| round()))
    })
}
