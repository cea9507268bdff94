//! How long this process waits for the others when they first meet. Before they have, nobody
//! can tell one that is late from one that is dead.

use std::time::{Duration, Instant};

use crate::error::StartError;
use crate::lost;

/// A point in time by which all processes must have come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    start: Instant,
    timeout: Duration,
}

impl Deadline {
    /// From now on, so long.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { start: Instant::now(), timeout }
    }

    /// How long it is until then.
    pub(crate) fn left(&self) -> Duration {
        self.timeout.saturating_sub(self.start.elapsed())
    }

    /// It has passed, in this step. MPI, which still waits, cannot be used any more.
    pub(crate) fn missed(&self, step: &'static str) -> StartError {
        lost::lose();
        StartError::Alone { step, timeout: self.timeout }
    }
}
