//! How the items of a group meet on a host. Who the items are, and who runs them, is not known here.

use core::cell::Cell;
use core::panic::Location;

/// How a host lets the items of a group wait for each other.
pub trait GroupBarrier {
    /// Returns when every item of the group has called it. `at` is the barrier's
    /// place in the kernel.
    fn wait(&self, at: &'static Location<'static>);

    /// A place for each item of the group, in which the others see what it passes. Of two boards, each time the other one:
    /// what an item has passed stays until all have come to the next exchange.
    fn board(&self) -> &[Cell<u64>];
}
