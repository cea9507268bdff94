//! Time as state machines see it: an argument. Reads no clock.

use std::fmt;
use std::sync::Arc;
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

/// What time it is, for those who measure while a state machine is being polled.
/// Nothing may be decided by it. It agrees with the times that the machine is
/// polled at, and may be read from any thread.
pub type Clock = Arc<dyn Fn() -> Time + Send + Sync>;

/// The real clock of a run that has started at `start`.
pub(crate) fn real_clock(start: Instant) -> Clock {
    Arc::new(move || Time::elapsed(start))
}

/// From when to when something went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When it began.
    pub start: Time,
    /// When it was over; not before `start`.
    pub end: Time,
}

impl std::ops::Add<Duration> for Time {
    type Output = Self;

    /// The last point in time if it would be later.
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

impl fmt::Display for Time {
    /// As durations print: `7µs`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}
