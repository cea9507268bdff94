//! A loop that reduces in each step, and needs the result in the next one: numbers that are scaled
//! until their mean square is 1.

use std::time::Duration;

use celerity::Sum;
use celerity::prelude::*;
use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::CommunicatorCollectives;

use crate::turns::turns;
use crate::{WINDOWS, is_root, place, shortest};

/// In each measure.
const STEPS: usize = 20;

/// Squares that are summed side by side, for the compiler to vectorise.
const LANES: usize = 16;

/// A row of a table: how many processes and numbers there are, and what a step takes.
pub(crate) fn print(
    world: &SimpleCommunicator,
    count: usize,
    repetitions: usize,
) -> celerity::Result<()> {
    let times = repetitions.div_ceil(WINDOWS);
    let (hand, ours) = (|| by_hand(world, count), || ours(count));
    let (turns, [expected, found]) = turns(times, hand, ours)?;
    // By hand, numbers are added up in another order.
    let close = (found / expected - 1.0).abs() < 1e-4;
    assert!(close, "the squares add up to {found} instead of {expected}");
    if is_root(world) {
        let name = format!("a reduction per step, 2^{} numbers", count.ilog2());
        turns.print_steps(&name, place(world).1, STEPS);
    }
    Ok(())
}

/// What a number is in the beginning.
fn initial(index: usize) -> f32 {
    0.5 + (index % 1024) as f32 / 1024.0
}

/// What numbers are multiplied with whose squares add up to `squares`.
fn scale(squares: f32, count: usize) -> f32 {
    1.5 - 0.5 * squares / count as f32
}

/// Scales numbers, and returns the sum of their squares then.
fn advance(values: &mut [f32], scale: f32) -> f32 {
    let mut squares = [0.0; LANES];
    let mut parts = values.chunks_exact_mut(LANES);
    for part in &mut parts {
        for (value, sum) in part.iter_mut().zip(&mut squares) {
            *value *= scale;
            *sum += *value * *value;
        }
    }
    for (value, sum) in parts.into_remainder().iter_mut().zip(&mut squares) {
        *value *= scale;
        *sum += *value * *value;
    }
    squares.iter().sum()
}

fn by_hand(world: &SimpleCommunicator, count: usize) -> (Duration, f32) {
    let (rank, nodes) = place(world);
    assert_eq!(count % nodes, 0, "equal shares");
    let share = count / nodes;
    let mut values: Vec<f32> = (rank * share..(rank + 1) * share).map(initial).collect();
    let all = |own: f32| {
        let mut sum = 0.0_f32;
        world.all_reduce_into(&own, &mut sum, SystemOperation::sum());
        sum
    };
    let mut squares = all(advance(&mut values, 1.0));
    let time = shortest(WINDOWS, || {
        for _ in 0..STEPS {
            squares = all(advance(&mut values, scale(squares, count)));
        }
        world.barrier();
        Ok(())
    });
    (time.expect("nothing is refused"), squares)
}

fn ours(count: usize) -> celerity::Result<(Duration, f32)> {
    celerity::run(|queue| {
        let values = queue.buffer::<f32, 1>(count).named("values");
        let mut squares =
            ["squares", "earlier squares"].map(|name| queue.buffer::<f32, 0>([]).named(name));
        let accesses = (values.write(one_to_one()), squares[0].reduce(Sum));
        queue.task("fill").parallel_for(count, accesses, |item, (value, squares)| {
            *value = initial(item[0]);
            squares.combine(*value * *value);
        })?;
        let time = shortest(WINDOWS, || {
            for _ in 0..STEPS {
                squares.swap(0, 1);
                let [next, earlier] = &squares;
                let accesses =
                    (values.read_write(one_to_one()), earlier.read(all()), next.reduce(Sum));
                queue.task("scale").parallel_for_rows(
                    count,
                    accesses,
                    move |_, (values, earlier, next)| {
                        next.combine(advance(values, scale(earlier[[]], count)));
                    },
                )?;
            }
            queue.barrier()
        })?;
        Ok((time, queue.fence(&squares[0])?.wait()?[[]]))
    })
}
