//! Fences of host objects: the value on this node, copied at one point of the program.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::arrival::Arrival;
use crate::error::{Error, Result};

/// A copy of a host object's value to come: wait for it, or await it. What
/// [`Queue::fence_object`](crate::Queue::fence_object) returns.
///
/// If the run fails before the fence is reached, both return the run's error.
#[must_use = "a fence delivers the value only to who waits"]
pub struct ObjectFence<T> {
    arrival: Arrival<T>,
    object: String,
}

impl<T> ObjectFence<T> {
    pub(crate) fn new(arrival: Arrival<T>, object: String) -> Self {
        Self { arrival, object }
    }

    /// Blocks until the value is there.
    ///
    /// # Errors
    /// The run's first error if it fails before the fence is reached, for example since
    /// `T::clone` panics; [`RunError::Misplaced`](crate::RunError::Misplaced) in a kernel, a range mapper, or a destructor that the runtime runs.
    pub fn wait(mut self) -> Result<T> {
        let value = self.arrival.wait(|| format!("wait for {}", self.object))?;
        self.value(value)
    }

    fn value(&self, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| Error::ObjectAbandoned { object: self.object.clone() })
    }
}

impl<T> Future for ObjectFence<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let arrived = self.arrival.poll(context);
        arrived.map(|value| self.value(value?))
    }
}

impl<T> fmt::Debug for ObjectFence<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectFence").field("object", &self.object).finish()
    }
}
