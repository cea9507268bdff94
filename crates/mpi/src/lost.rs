//! Whether this process has given MPI up, for ever. Global state, because it is MPI's.

use std::sync::atomic::{AtomicBool, Ordering};

/// A node is lost, or MPI does not answer: no more calls.
static LOST: AtomicBool = AtomicBool::new(false);

/// Gives MPI up, for this process and for ever: what is open stays open, and
/// MPI is not finalised at the end.
pub(crate) fn lose() {
    LOST.store(true, Ordering::Release);
}

/// Whether this process has given MPI up. It then must not call MPI, and exits
/// without finalising it.
#[must_use]
pub fn is_lost() -> bool {
    LOST.load(Ordering::Acquire)
}
