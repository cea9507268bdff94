//! The 2-D wave equation: rows over processes, with a row exchanged at each border in each
//! step.

use std::time::Duration;

use celerity::prelude::*;
use celerity_example_kernels::wave::{
    Star, first, initial, next, wave_fill, wave_first, wave_step_row,
};
use mpi::point_to_point::send_receive_into;
use mpi::topology::SimpleCommunicator;

use crate::spread::{at_rank, compare, gathered, share, timed};
use crate::{PROGRAM_WINDOWS, place, shortest};

/// In each measure: so many that its begin and its end weigh little, as with messages.
const STEPS: usize = 20;

/// The square of the Courant number.
const C: f32 = 0.25;

/// Cells along each side. Two fields, as one that just fits into caches tells little about
/// those that do not.
const SIZES: [usize; 2] = [2048, 4096];

/// Cells by which one array begins later in its page than the other: where both begin alike, processors
/// take loads from one of them for loads of what has just been stored to the other.
const APART: usize = 272;

/// A row of a table for each field: the number of processes, and how many cells both ways update.
pub(crate) fn print(world: &SimpleCommunicator, repetitions: usize) -> celerity::Result<()> {
    SIZES.into_iter().try_for_each(|size| {
        let name = format!("wave_sim, {size}×{size} [Mcell/s]");
        let millions = (size * size * STEPS) as f64 / 1e6;
        compare(world, repetitions, (&name, millions), || by_hand(world, size), || ours(size))
    })
}

/// The rows of one process, with one more above and below.
struct Band<'a> {
    first: usize,
    rows: usize,
    /// Cells in a row.
    size: usize,
    /// Heights after the last step, and after the one before.
    now: &'a mut [f32],
    before: &'a mut [f32],
}

fn by_hand(world: &SimpleCommunicator, size: usize) -> (Duration, Vec<f32>) {
    let (rank, nodes) = place(world);
    let rows = share(size, nodes);
    let [mut now, mut before] = [0, APART].map(|apart| vec![0.0; apart + (rows + 2) * size]);
    let (now, before) = (&mut now[..], &mut before[APART..]);
    let mut band = Band { first: rank * rows, rows, size, now, before };
    for (at, height) in band.now[size..(rows + 1) * size].iter_mut().enumerate() {
        *height = initial([band.first + at / size, at % size], size);
    }
    band.step(world, true);
    let time = timed(world, || (0..STEPS).for_each(|_| band.step(world, false)));
    (time, gathered(world, &band.now[size..(rows + 1) * size]))
}

impl Band<'_> {
    fn step(&mut self, world: &SimpleCommunicator, is_first: bool) {
        self.exchange(world);
        (1..=self.rows).for_each(|row| self.update(row, is_first));
        std::mem::swap(&mut self.now, &mut self.before);
    }

    /// Gets the rows next to this band; at the edge of the field, its own last row.
    fn exchange(&mut self, world: &SimpleCommunicator) {
        let Self { rows, size, .. } = *self;
        let last = rows * size;
        let (rank, nodes) = place(world);
        let (head, tail) = self.now.split_at_mut(size);
        // Up, then down; even processes begin at the other side, so that nobody waits in a row.
        for side in [rank % 2, 1 - rank % 2] {
            match side {
                0 if rank > 0 => {
                    let peer = at_rank(world, rank - 1);
                    send_receive_into(&tail[..size], &peer, head, &peer);
                }
                1 if rank + 1 < nodes => {
                    let (own, below) = tail.split_at_mut(last);
                    let peer = at_rank(world, rank + 1);
                    send_receive_into(&own[last - size..], &peer, below, &peer);
                }
                0 => head.copy_from_slice(&tail[..size]),
                _ => tail.copy_within(last - size..last, last),
            }
        }
    }

    /// The next heights of a row, in place of those before the last.
    fn update(&mut self, row: usize, is_first: bool) {
        let size = self.size;
        let line = |row: usize| row * size..(row + 1) * size;
        let (north, south) = (&self.now[line(row - 1)], &self.now[line(row + 1)]);
        let (centre, up) = (&self.now[line(row)], &mut self.before[line(row)]);
        let star = |column: usize, west: usize, east: usize| Star {
            centre: centre[column],
            north: north[column],
            south: south[column],
            west: centre[west],
            east: centre[east],
        };
        let new = |before: f32, star| if is_first { first(star, C) } else { next(before, star, C) };
        up[0] = new(up[0], star(0, 0, 1));
        up[size - 1] = new(up[size - 1], star(size - 1, size - 2, size - 1));
        if is_first {
            return (1..size - 1).for_each(|x| up[x] = first(star(x, x - 1, x + 1), C));
        }
        // Slices of one length each, for the compiler to vectorise.
        let inner = 1..size - 1;
        let (north, south, up) = (&north[inner.clone()], &south[inner.clone()], &mut up[inner]);
        let (west, middle, east) = (&centre[..size - 2], &centre[1..size - 1], &centre[2..]);
        for x in 0..size - 2 {
            let star = Star {
                centre: middle[x],
                north: north[x],
                south: south[x],
                west: west[x],
                east: east[x],
            };
            up[x] = next(up[x], star, C);
        }
    }
}

fn ours(size: usize) -> celerity::Result<(Duration, Vec<f32>)> {
    celerity::run(|queue| {
        let range = [size, size];
        let mut now = queue.buffer::<f32, 2>(range).named("now");
        let mut before = queue.buffer::<f32, 2>(range).named("before");
        queue.task("fill").launch(range, now.write(one_to_one()), wave_fill { size })?;
        let star = || neighborhood_along_axes([1, 1]);
        let accesses = (before.write(one_to_one()), now.read(star()));
        queue.task("first").launch(range, accesses, wave_first { c: C })?;
        std::mem::swap(&mut now, &mut before);
        let time = shortest(PROGRAM_WINDOWS, || {
            for _ in 0..STEPS {
                let accesses = (before.read_write(one_to_one()), now.read(star()));
                queue.task("step").launch(range, accesses, wave_step_row { c: C })?;
                std::mem::swap(&mut now, &mut before);
            }
            queue.barrier()
        })?;
        let field = queue.fence(&now)?.wait()?;
        Ok((time, field.into_vec()))
    })
}
