//! How long a step takes that is repeated many times, in the fastest of several rounds: others are
//! disturbed by what else the machine does. Knows nothing of what is computed.

use std::time::Instant;

use celerity::prelude::*;

/// Seconds of a step.
///
/// # Errors
/// As the step, or [`Queue::barrier`].
pub(crate) fn fastest(
    queue: &Queue,
    (rounds, steps): (u32, u32),
    step: impl Fn() -> celerity::Result<()>,
) -> celerity::Result<f64> {
    // What is moved and allocated for the first time is not the step's cost.
    step()?;
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        queue.barrier()?;
        let start = Instant::now();
        for _ in 0..steps {
            step()?;
        }
        queue.barrier()?;
        best = best.min(start.elapsed().as_secs_f64() / f64::from(steps));
    }
    Ok(best)
}
