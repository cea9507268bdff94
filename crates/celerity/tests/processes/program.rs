//! What is disturbed: steps of a stencil, so that all neighbours exchange elements in
//! each of them, and its sequential twin.

use celerity::prelude::*;

/// Of the undisturbed program. Something happens before the middle one.
pub(crate) const STEPS: usize = 200;
pub(crate) const MIDDLE: usize = STEPS / 2;

/// Elements per node.
const SHARE: usize = 32;

/// The program that every node runs. `before` is called before each step.
pub(crate) fn steps(
    queue: &Queue,
    steps: usize,
    before: impl Fn(&Queue, usize) -> celerity::Result<()>,
) -> celerity::Result<Vec<u64>> {
    let items = SHARE * queue.nodes();
    let mut from = queue.buffer_from(items, start(items))?.named("from");
    let mut to = queue.buffer::<u64, 1>(items).named("to");
    for step in 0..steps {
        before(queue, step)?;
        let accesses = (to.write(one_to_one()), from.read(neighborhood([1])));
        queue.task("mix").parallel_for(items, accesses, |_, (to, from)| {
            *to = mix([-1, 0, 1].map(|offset| from.clamped([offset])));
        })?;
        std::mem::swap(&mut from, &mut to);
        if step % 32 == 0 {
            queue.barrier()?;
        }
    }
    Ok(queue.fence(&from)?.wait()?.as_slice().to_vec())
}

/// Checks the result on every node.
pub(crate) fn undisturbed() {
    let (rank, values) = celerity::run(|queue| Ok((queue.node(), steps(queue, STEPS, calm)?)))
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(values, twin(values.len(), STEPS));
    if rank == 0 {
        crate::passed();
    }
}

/// Nothing happens.
pub(crate) fn calm(_: &Queue, _: usize) -> celerity::Result<()> {
    Ok(())
}

/// What [`steps`] computes, in sequence.
pub(crate) fn twin(items: usize, steps: usize) -> Vec<u64> {
    let mut values = start(items);
    for _ in 0..steps {
        let next = |at: usize| {
            mix([at.saturating_sub(1), at, (at + 1).min(items - 1)].map(|at| values[at]))
        };
        values = (0..items).map(next).collect();
    }
    values
}

fn start(items: usize) -> Vec<u64> {
    (0..items as u64).collect()
}

/// Depends on each of its arguments and their order.
fn mix(values: [u64; 3]) -> u64 {
    values.into_iter().fold(1, |mixed: u64, value| {
        (mixed ^ value).wrapping_mul(6_364_136_223_846_793_005).rotate_left(29)
    })
}
