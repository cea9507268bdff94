//! When jobs have run, on the run's clock: GPUs tell how much time is between
//! two events, so one event is needed of which the time is known.

use std::time::Duration;

use celerity_executor::{Clock, Time};

use super::lane::Epoch;
use crate::driver::{Driver, DriverError, Event, Stream};

/// Differences are told as 32-bit numbers of milliseconds, which are good to
/// half a microsecond up to this length.
const GOOD_FOR: Duration = Duration::from_secs(4);

pub(super) struct Timer {
    clock: Clock,
    /// The newest last. Jobs may still be compared with older ones.
    epochs: Vec<Epoch>,
}

impl Timer {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, epochs: Vec::new() }
    }

    /// What events of jobs that are started now are compared with. `None` if
    /// there is nothing, since the GPU has failed.
    ///
    /// Waits for the stream every few seconds.
    pub(super) fn epoch(&mut self, driver: &dyn Driver, stream: Stream) -> Option<Epoch> {
        let now = (self.clock)();
        let good = |epoch: &&Epoch| now.since(epoch.time) < GOOD_FOR;
        if let Some(epoch) = self.epochs.last().filter(good) {
            return Some(*epoch);
        }
        let epoch = new_epoch(&self.clock, driver, stream).ok()?;
        self.epochs.push(epoch);
        Some(epoch)
    }

    /// All events that have been made here.
    pub(super) fn events(&self) -> impl Iterator<Item = Event> {
        self.epochs.iter().map(|epoch| epoch.event)
    }
}

fn new_epoch(clock: &Clock, driver: &dyn Driver, stream: Stream) -> Result<Epoch, DriverError> {
    driver.synchronize(stream)?;
    let event = driver.create_event(stream.gpu, true)?;
    let before = clock();
    driver.record(event, stream)?;
    driver.synchronize(stream)?;
    Ok(Epoch { event, time: middle(before, clock()) })
}

fn middle(before: Time, after: Time) -> Time {
    before + after.since(before) / 2
}
