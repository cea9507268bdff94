//! A host task as a program spells it.

use celerity_executor::Payload;
use celerity_tdag::{TaskId, Work};

use super::LoweredTask;
use crate::access::{HostAccesses, Lowered, Lowering};
use crate::error::Result;
use crate::host::{HostOutcome, call_with_views};
use crate::origin::Origin;

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
    /// The function returns nothing, or a result. An error ends the run on all nodes with
    /// [`RunError::TaskFailed`](crate::RunError::TaskFailed): it names the task, its source
    /// line and the node, and the error that the function has returned is its source.
    ///
    /// ```
    /// use std::io::Write as _;
    /// use celerity::prelude::*;
    ///
    /// # let path = std::env::temp_dir().join(format!("celerity-squares-{}", std::process::id()));
    /// celerity::run(|queue| {
    ///     let squares = queue.buffer::<u64, 1>(10);
    ///     queue.task("square").parallel_for(10, squares.write(one_to_one()), |item, square| {
    ///         *square = (item[0] * item[0]) as u64;
    ///     })?;
    ///     let path = path.clone();
    ///     queue.host_task("save").once(squares.read(all()), move |squares| {
    ///         let mut file = std::fs::File::create(path)?;
    ///         for square in squares.as_slice() {
    ///             writeln!(file, "{square}")?;
    ///         }
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// })?;
    /// assert!(std::fs::read_to_string(&path)?.ends_with("64\n81\n"));
    /// # std::fs::remove_file(&path)?;
    ///
    /// let failed = celerity::run(|queue| {
    ///     queue.host_task("load").once((), |()| {
    ///         let _ = std::fs::read("/no/such/file")?;
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// });
    /// let message = failed.unwrap_err().to_string();
    /// assert!(message.contains("\"load\" at") && message.contains("failed on N0: No such file"));
    /// # Ok::<(), celerity::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`TaskBuilder::parallel_for`](crate::TaskBuilder::parallel_for).
    pub fn once<A, F, R>(self, accesses: A, function: F) -> Result<TaskId>
    where
        A: HostAccesses,
        F: for<'a> FnOnce(A::Views<'a>) -> R + Send + 'static,
        R: HostOutcome,
    {
        let mut lowering = Lowering::new(&self.origin);
        let plan = accesses.lower(&mut lowering)?;
        let Lowered { accesses, .. } = lowering.finish();
        let payload = Payload::Host(call_with_views::<A, F, R>(plan, function));
        LoweredTask { origin: self.origin, work: Work::HostOnce, accesses }.submit(payload)
    }
}
