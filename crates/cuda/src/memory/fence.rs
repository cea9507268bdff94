//! When new memory of a GPU may be used: the event behind all allocations so far. Shared by all who put
//! work on streams that uses such memory.
#![allow(unsafe_code)]

use std::sync::{Arc, Mutex, PoisonError};

use crate::driver::{Driver, DriverError, Event, Gpu, Stream};

/// The stream on which a GPU's memory is allocated, and the event behind it.
pub(crate) struct AllocationStream {
    driver: Arc<dyn Driver>,
    stream: Stream,
    /// Recorded behind the last allocation that somebody has asked after.
    ready: Event,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How often `ready` has been recorded.
    recorded: u64,
    /// Whether there is an allocation behind `ready`.
    stale: bool,
}

impl AllocationStream {
    pub(super) fn new(driver: &Arc<dyn Driver>, gpu: Gpu) -> Result<Arc<Self>, DriverError> {
        let (stream, ready) = (driver.create_stream(gpu)?, driver.create_event(gpu, false)?);
        Ok(Arc::new(Self { driver: driver.clone(), stream, ready, state: Mutex::default() }))
    }

    /// Where memory is allocated.
    pub(super) fn stream(&self) -> Stream {
        self.stream
    }

    /// Notes that something was put on the stream that users of memory wait for.
    pub(super) fn moved(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).stale = true;
    }

    /// The event behind all allocations so far, and how many such events there
    /// have been: whoever has waited for a number has waited for smaller ones.
    /// `None` if nothing has been allocated.
    pub(crate) fn ready(&self) -> Result<Option<(u64, Event)>, DriverError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.stale {
            self.driver.record(self.ready, self.stream)?;
            state.stale = false;
            state.recorded += 1;
        }
        Ok((state.recorded > 0).then_some((state.recorded, self.ready)))
    }
}

impl Drop for AllocationStream {
    fn drop(&mut self) {
        // SAFETY: both were made here, and this is their last use.
        unsafe {
            self.driver.destroy_event(self.ready);
            self.driver.destroy_stream(self.stream);
        }
    }
}
