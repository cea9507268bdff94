//! Host tasks as the executor runs them, and what their functions may return.
#![allow(unsafe_code)]

use std::error::Error;
use std::sync::{Mutex, PoisonError};

use celerity_executor::{HostCall, HostFunction, HostKernel, TaskError};

use crate::access::HostAccesses;
use crate::backtrace::__rust_begin_short_backtrace;

/// What the function of a host task may return: nothing, or a [`Result`] whose error can be
/// any, so that `?` works in it; sealed.
///
/// An error ends the run on all nodes with [`RunError::TaskFailed`], which names the task,
/// its source line and the node.
///
/// [`RunError::TaskFailed`]: crate::RunError::TaskFailed
// Of the types `Result<(), _>` exactly one, or a function that uses `?` would have to name
// the error that it converts to.
#[diagnostic::on_unimplemented(
    message = "a host task cannot return `{Self}`",
    label = "returns neither `()` nor `Result<(), Box<dyn Error + Send + Sync>>`",
    note = "let the function end with `Ok(())`, and add `?` to what fails: any error is converted",
    note = "a host task hands results on by writing a buffer, or through a channel"
)]
pub trait HostOutcome: sealed::Sealed {
    #[doc(hidden)]
    fn into_result(self) -> Result<(), TaskError>;
}

impl HostOutcome for () {
    fn into_result(self) -> Result<(), TaskError> {
        Ok(())
    }
}

impl HostOutcome for Result<(), Box<dyn Error + Send + Sync>> {
    fn into_result(self) -> Result<(), TaskError> {
        self.map_err(TaskError::new)
    }
}

/// Of a function that always panics, say.
impl HostOutcome for Never {
    fn into_result(self) -> Result<(), TaskError> {
        self
    }
}

/// The type `!`, which has no name yet where types are spelt.
type Never = <fn() -> ! as sealed::Returning>::Output;

mod sealed {
    use std::error::Error;

    pub trait Sealed {}
    impl Sealed for () {}
    impl Sealed for Result<(), Box<dyn Error + Send + Sync>> {}
    impl Sealed for super::Never {}

    pub trait Returning {
        type Output;
    }

    impl<R> Returning for fn() -> R {
        type Output = R;
    }
}

/// `function` with its part of the work and its views, as something that takes the executor's
/// memory: called for each chunk.
pub(crate) fn call_per_chunk<A, F, R, const K: usize>(plan: A::Plan, function: F) -> HostKernel
where
    A: HostAccesses<K>,
    F: for<'a> Fn(HostCall, A::Views<'a>) -> R + Send + Sync + 'static,
    R: HostOutcome,
{
    HostKernel::new(move |call, memory| {
        __rust_begin_short_backtrace(|| {
            let function = |views: A::Views<'_>| function(call, views);
            // SAFETY: this is called as `HostFunction::call` asks, with what the accesses of its
            // task are bound to for the chunk, in order; who submits it has made the plan of
            // those.
            unsafe { A::call(plan.clone(), memory, function) }.into_result()
        })
    })
}

/// The same of a function that is called once on each node.
pub(crate) fn call_once_per_node<A, F, R>(plan: A::Plan, function: F) -> HostKernel
where
    A: HostAccesses<1>,
    F: for<'a> FnOnce(HostCall, A::Views<'a>) -> R + Send + 'static,
    R: HostOutcome,
{
    let function = Mutex::new(Some(function));
    HostKernel::new(move |call, memory| {
        let taken = function.lock().unwrap_or_else(PoisonError::into_inner).take();
        let function = taken.expect("each node has one item of the task");
        __rust_begin_short_backtrace(|| {
            let function = |views: A::Views<'_>| function(call, views);
            // SAFETY: as in `call_per_chunk`.
            unsafe { A::call(plan.clone(), memory, function) }.into_result()
        })
    })
}

/// `function` with its views, as something that takes the executor's memory.
pub(crate) fn call_with_views<A, F, R>(plan: A::Plan, function: F) -> HostFunction
where
    A: HostAccesses,
    F: for<'a> FnOnce(A::Views<'a>) -> R + Send + 'static,
    R: HostOutcome,
{
    HostFunction::new(move |memory| {
        __rust_begin_short_backtrace(|| {
            // SAFETY: this is called as `HostFunction::call` asks, with what the accesses of its
            // task are bound to, in order; `HostTask::submit` has made the plan of those.
            unsafe { A::call(plan, memory, function) }.into_result()
        })
    })
}
