//! A host task as a program spells it.

use celerity_executor::Payload;
use celerity_tdag::{TaskId, Work};

use super::{LoweredTask, Origin};
use crate::access::{HostAccesses, Lowered, Lowering};
use crate::error::Result;
use crate::host::call_with_views;

/// A host task before its function is known.
#[derive(Debug)]
#[must_use = "a host task is submitted by `once`"]
pub struct HostTaskBuilder<'q> {
    origin: Origin<'q>,
}

impl<'q> HostTaskBuilder<'q> {
    pub(super) fn new(origin: Origin<'q>) -> Self {
        Self { origin }
    }

    /// Submits a function that runs once in the cluster, on node 0, when the
    /// contents that it reads are there. It gets the views of `accesses`, in
    /// order, and must own what it captures.
    ///
    /// # Errors
    /// As [`TaskBuilder::parallel_for`](crate::TaskBuilder::parallel_for).
    pub fn once<A, F>(self, accesses: A, function: F) -> Result<TaskId>
    where
        A: HostAccesses,
        F: for<'a> FnOnce(A::Views<'a>) + Send + 'static,
    {
        let mut lowering = Lowering::new(&self.origin);
        let plan = accesses.lower(&mut lowering)?;
        let Lowered { accesses, .. } = lowering.finish();
        let payload = Payload::Host(call_with_views::<A, F>(plan, function));
        LoweredTask { origin: self.origin, work: Work::HostOnce, accesses }.submit(payload)
    }
}
