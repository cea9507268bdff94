//! Time as state machines see it: an argument. Reads no clock.

use std::fmt;
use std::time::{Duration, Instant};

/// A point in time, counted from the start of a run. Whoever drives a node
/// chooses the clock: a real one, or that of a simulation.
///
/// ```
/// use std::time::Duration;
/// use celerity_executor::Time;
/// let later = Time::START + Duration::from_micros(7);
/// assert_eq!(later.since(Time::START), Duration::from_micros(7));
/// assert_eq!(Time::START.since(later), Duration::ZERO);
/// assert_eq!(later.to_string(), "7µs");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(Duration);

impl Time {
    /// When the run starts.
    pub const START: Self = Self(Duration::ZERO);

    /// Now, in a run that has started at `start`: the one way from a real clock.
    #[must_use]
    pub fn elapsed(start: Instant) -> Self {
        Self(start.elapsed())
    }

    /// Time that has passed since `earlier`; none if that is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl std::ops::Add<Duration> for Time {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0 + duration)
    }
}

impl fmt::Display for Time {
    /// As durations print: `7µs`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}
