//! How the items of a group meet on a host. Who the items are, and who runs them, is not known here.

use core::cell::Cell;
use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

/// How a host lets the items of a group wait for each other.
pub trait GroupBarrier {
    /// Returns when every item of the group has called it. `at` is the barrier's
    /// place in the kernel.
    fn wait(&self, at: &'static Location<'static>);

    /// Hears that an item has come to the barrier at `at`, and is about to let go of the thread: it is a
    /// future, and goes on when it is polled again, after every item of the group has come.
    fn come(&self, at: &'static Location<'static>);

    /// A place for each item of the group, in which the others see what it passes, and one behind them, which says whether
    /// somebody has worked out what becomes of that. Of two boards, each time the other one: what an item has passed stays
    /// until all have come to the next exchange.
    fn board(&self) -> &[Cell<u64>];
}

/// A barrier on the way of an item that is a future: it lets go of the thread once, and then looks at what the
/// others have passed.
#[must_use = "an item waits at a barrier when it awaits it"]
pub(crate) struct Meeting<'g, L> {
    barrier: &'g dyn GroupBarrier,
    at: &'static Location<'static>,
    has_come: bool,
    look: Option<L>,
}

impl<'g, L> Meeting<'g, L> {
    #[inline]
    #[track_caller]
    pub(crate) fn new(barrier: &'g dyn GroupBarrier, look: L) -> Self {
        Self { barrier, at: Location::caller(), has_come: false, look: Some(look) }
    }
}

/// Nothing in it is pinned.
impl<L> Unpin for Meeting<'_, L> {}

impl<L: FnOnce() -> R, R> Future for Meeting<'_, L> {
    type Output = R;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<R> {
        if !self.has_come {
            self.has_come = true;
            self.barrier.come(self.at);
            return Poll::Pending;
        }
        // Who polls what is over waits for good.
        self.look.take().map_or(Poll::Pending, |look| Poll::Ready(look()))
    }
}

impl<L> fmt::Debug for Meeting<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meeting").field("at", &self.at).field("has_come", &self.has_come).finish()
    }
}

#[cfg(test)]
mod tests {
    use core::task::Waker;

    use super::*;

    /// Where somebody has come to.
    #[derive(Default)]
    struct Come(Cell<Option<&'static Location<'static>>>);

    impl GroupBarrier for Come {
        fn wait(&self, _: &'static Location<'static>) {
            panic!("nobody waits here");
        }

        fn come(&self, at: &'static Location<'static>) {
            self.0.set(Some(at));
        }

        fn board(&self) -> &[Cell<u64>] {
            &[]
        }
    }

    #[test]
    fn a_meeting_comes_first_and_looks_later() {
        let (come, looks) = (Come::default(), Cell::new(0));
        let mut meeting = Meeting::new(&come, || looks.replace(1));
        assert!(come.0.get().is_none());
        let context = &mut Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut meeting).poll(context).is_pending());
        assert!(come.0.take().is_some_and(|at| at.file().ends_with("barrier.rs")));
        assert_eq!((looks.get(), Pin::new(&mut meeting).poll(context)), (0, Poll::Ready(0)));
        assert!(looks.get() == 1 && come.0.get().is_none());
    }
}
