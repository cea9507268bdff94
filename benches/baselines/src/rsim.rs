//! A flash of light in a closed room: patches over processes, which all know after each step what all
//! patches have sent.

use std::time::Duration;

use celerity::prelude::*;
use celerity_example_kernels::radiosity::{
    Patch, arriving, build_room, flash, patch, patches, radiosity, send_flash,
};
use mpi::topology::SimpleCommunicator;
use mpi::traits::CommunicatorCollectives;

use crate::spread::{compare, share, timed};
use crate::{PROGRAM_WINDOWS, place, shortest};

/// Patches along each edge of the room.
const EDGE: usize = 12;
const PATCHES: usize = patches(EDGE);

/// In each measure, from the flash on.
const STEPS: usize = 40;

/// A row of a table: the number of processes, and how many pairs of patches both ways look at.
pub(crate) fn print(world: &SimpleCommunicator, repetitions: usize) -> celerity::Result<()> {
    let name = format!("rsim, {PATCHES} patches [Mpair/s]");
    let millions = (PATCHES * PATCHES * STEPS) as f64 / 1e6;
    compare(world, repetitions, (&name, millions), || by_hand(world), ours)
}

fn by_hand(world: &SimpleCommunicator) -> (Duration, Vec<f32>) {
    let (rank, nodes) = place(world);
    let share = share(PATCHES, nodes);
    let room: Vec<Patch> = (0..PATCHES).map(|number| patch(number, EDGE)).collect();
    let mut own = vec![0.0; share];
    let mut history = Vec::new();
    let time = timed(world, || {
        history = vec![0.0; (STEPS + 1) * PATCHES];
        (0..PATCHES).for_each(|number| history[number] = flash(number, EDGE));
        for step in 1..=STEPS {
            let (earlier, rest) = history.split_at_mut(step * PATCHES);
            let sent = |step: usize, patch: usize| earlier[step * PATCHES + patch];
            for (own, here) in own.iter_mut().zip(&room[rank * share..]) {
                *own = arriving(here, &room, step, EDGE, sent);
            }
            world.all_gather_into(&own[..], &mut rest[..PATCHES]);
        }
    });
    (time, history)
}

/// A measure has a buffer of its own, which grows with every step.
fn ours() -> celerity::Result<(Duration, Vec<f32>)> {
    celerity::run(|queue| {
        let room = queue.buffer::<Patch, 1>(PATCHES).named("patches");
        queue.task("room").launch(PATCHES, room.write(one_to_one()), build_room { edge: EDGE })?;
        let mut last = None;
        let time = shortest(PROGRAM_WINDOWS, || {
            let history = queue.buffer::<f32, 2>([STEPS + 1, PATCHES]).named("history");
            let first = history.write(one_to_one());
            queue.task("flash").launch([1, PATCHES], first, send_flash { edge: EDGE })?;
            (1..=STEPS).try_for_each(|number| step(queue, &history, &room, number))?;
            last = Some(history);
            queue.barrier()
        })?;
        let history = last.expect("something has been measured");
        Ok((time, queue.fence(&history)?.wait()?.into_vec()))
    })
}

/// Reads all rows before `step`, and writes that one.
fn step(
    queue: &Queue,
    history: &Buffer<f32, 2>,
    room: &Buffer<Patch, 1>,
    step: usize,
) -> celerity::Result<()> {
    let earlier = fixed(Subrange::new([0, 0], [step, PATCHES]));
    let accesses = (history.write(one_to_one()), room.read(all()), history.read(earlier));
    // The space is one row: its columns are what devices share.
    let task = queue.task("radiosity").offset([step, 0]).hint(Hint::SplitAlong(1));
    task.launch([1, PATCHES], accesses, radiosity { edge: EDGE })?;
    Ok(())
}
