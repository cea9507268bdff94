//! The 2-D wave equation: rows over processes, with a row exchanged at each border in each
//! step.

use std::time::Duration;

use celerity::prelude::*;
use celerity_example_kernels::wave::{
    Star, first, initial, next, wave_fill, wave_first, wave_step_row,
};
use mpi::point_to_point::send_receive_into;
use mpi::topology::{Communicator, SimpleCommunicator};
use mpi::traits::{CommunicatorCollectives, Root};

use crate::turns::turns;
use crate::{PROGRAM_WINDOWS, is_root, place, shortest};

/// In each measure: so many that its begin and its end weigh little, as with messages.
const STEPS: usize = 20;

/// The square of the Courant number.
const C: f32 = 0.25;

/// A row of a table: the number of processes, and how many cells of a square field both ways
/// update.
pub(crate) fn print(
    world: &SimpleCommunicator,
    size: usize,
    repetitions: usize,
) -> celerity::Result<()> {
    let (hand, ours) = (|| by_hand(world, size), || ours(size));
    let (turns, [expected, field]) = turns(repetitions, hand, ours)?;
    let same = field.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits());
    if is_root(world) {
        assert!(same && field.len() == size * size, "the fields differ");
        let millions = (size * size * STEPS) as f64 / 1e6;
        let name = format!("wave_sim, {size}×{size} [Mcell/s]");
        turns.print_program(&name, place(world).1, millions);
    }
    Ok(())
}

/// The rows of one process, with one more above and below.
struct Band {
    first: usize,
    rows: usize,
    /// Cells in a row.
    size: usize,
    /// Heights after the last step, and after the one before.
    now: Vec<f32>,
    before: Vec<f32>,
}

fn by_hand(world: &SimpleCommunicator, size: usize) -> (Duration, Vec<f32>) {
    let (rank, nodes) = place(world);
    assert_eq!(size % nodes, 0, "equal bands");
    let rows = size / nodes;
    let blank = || vec![0.0; (rows + 2) * size];
    let mut band = Band { first: rank * rows, rows, size, now: blank(), before: blank() };
    for (at, height) in band.now[size..(rows + 1) * size].iter_mut().enumerate() {
        *height = initial([band.first + at / size, at % size], size);
    }
    band.step(world, true);
    let time = shortest(PROGRAM_WINDOWS, || {
        (0..STEPS).for_each(|_| band.step(world, false));
        world.barrier();
        Ok(())
    });
    let time = time.expect("nothing is refused");
    let own = &band.now[size..(rows + 1) * size];
    let mut field = vec![0.0; if rank == 0 { size * size } else { 0 }];
    match rank {
        0 => world.this_process().gather_into_root(own, &mut field[..]),
        _ => world.process_at_rank(0).gather_into(own),
    }
    (time, field)
}

impl Band {
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
        let at_rank = |rank: usize| world.process_at_rank(i32::try_from(rank).expect("small"));
        let (head, tail) = self.now.split_at_mut(size);
        // Up, then down; even processes begin at the other side, so that nobody waits in a row.
        for side in [rank % 2, 1 - rank % 2] {
            match side {
                0 if rank > 0 => {
                    send_receive_into(&tail[..size], &at_rank(rank - 1), head, &at_rank(rank - 1));
                }
                1 if rank + 1 < nodes => {
                    let (own, below) = tail.split_at_mut(last);
                    let peer = at_rank(rank + 1);
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
        Ok((time, if queue.is_root() { field.as_slice().to_vec() } else { Vec::new() }))
    })
}
