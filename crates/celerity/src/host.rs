//! Host tasks as the executor runs them.
#![allow(unsafe_code)]

use celerity_executor::HostFunction;

use crate::access::HostAccesses;

/// `function` with its views, as something that takes the executor's memory.
pub(crate) fn call_with_views<A, F>(plan: A::Plan, function: F) -> HostFunction
where
    A: HostAccesses,
    F: for<'a> FnOnce(A::Views<'a>) + Send + 'static,
{
    Box::new(move |memory| {
        // SAFETY: the executor keeps its promise for the accesses that the plan
        // was lowered with, which are the task's, in order.
        unsafe { A::call(plan, memory, function) }
    })
}
