//! Streams beside those of lanes, for what goes to other processes: each behind the memory that its GPU has
//! allocated; and events that are used again. Knows nothing of what is put there.

use crate::driver::{Driver, DriverError, Event, Gpu, Stream};
use crate::memory::AllocationStream;

/// A stream, and the last event of its GPU's memory that it has waited for.
pub(crate) struct OrderedStream {
    pub(crate) stream: Stream,
    seen: u64,
}

/// Events of a GPU, of which those that have been given back are recorded again.
pub(crate) struct Events {
    gpu: Gpu,
    spare: Vec<Event>,
}

impl OrderedStream {
    pub(crate) fn new(driver: &dyn Driver, gpu: Gpu) -> Result<Self, DriverError> {
        Ok(Self { stream: driver.create_stream(gpu)?, seen: 0 })
    }

    /// Lets what is put on it from now on come behind all that has been allocated so far.
    pub(crate) fn follow(
        &mut self,
        driver: &dyn Driver,
        memory: &AllocationStream,
    ) -> Result<(), DriverError> {
        if let Some((number, ready)) = memory.ready()?
            && self.seen < number
        {
            driver.wait(self.stream, ready)?;
            self.seen = number;
        }
        Ok(())
    }
}

impl Events {
    pub(crate) fn new(gpu: Gpu) -> Self {
        Self { gpu, spare: Vec::new() }
    }

    /// An event behind all that is on a stream of the GPU.
    pub(crate) fn record(
        &mut self,
        driver: &dyn Driver,
        stream: Stream,
    ) -> Result<Event, DriverError> {
        let event = match self.spare.pop() {
            Some(event) => event,
            None => driver.create_event(self.gpu, false)?,
        };
        driver.record(event, stream)?;
        Ok(event)
    }

    /// Nobody waits for an event any more.
    pub(crate) fn give_back(&mut self, event: Event) {
        self.spare.push(event);
    }

    /// Those that nobody waits for, to be ended.
    pub(crate) fn spare(&self) -> impl Iterator<Item = Event> + '_ {
        self.spare.iter().copied()
    }
}
