//! What the backtrace of a panic in a user's function leaves out: the runtime that calls it.

/// Calls `work`. The name is what the standard library looks for in backtraces: it leaves out
/// whoever calls a function that has it.
#[inline(never)]
pub(crate) fn __rust_begin_short_backtrace<R>(work: impl FnOnce() -> R) -> R {
    let result = work();
    // Not a tail call, or the frame would be gone.
    std::hint::black_box(());
    result
}
