//! Locks that outlive panics. User code never runs under one of ours, and what
//! they protect is consistent between statements, so poisoning tells nothing. And the atomics of
//! what is made of them by hand: tests under `--cfg loom` run it in all orders there are, and
//! once more with each ordering weakened, since a test that cannot fail proves nothing.

#[cfg(all(loom, test))]
pub(crate) use loom::sync::atomic;
#[cfg(not(all(loom, test)))]
pub(crate) use std::sync::atomic;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The places where an ordering carries what one thread tells another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handover {
    /// A lane counts a job that has run, and publishes what it has written.
    JobCounted,
    /// A lane notes that it has news.
    LaneRings,
    /// The node takes notice of lanes that have news.
    NewsTaken,
    /// Somebody rings, who has published what there is to poll.
    WakeUpRung,
    /// The reactor takes a wake-up out of its channel, and polls what was published.
    WakeUpAnswered,
}

impl Handover {
    /// The ordering of this place: `needed`, unless a test under `--cfg loom` has
    /// weakened it (`weakened::run`).
    #[inline(always)]
    pub(crate) fn ordering(self, needed: atomic::Ordering) -> atomic::Ordering {
        #[cfg(all(loom, test))]
        if weakened::is(self) {
            return atomic::Ordering::Relaxed;
        }
        needed
    }
}

/// Deliberate bugs for the tests under `--cfg loom`. They are not in the catalogue of
/// `celerity-mutants`: a processor of the x86 family keeps the order that they give up, so no
/// other check can see them.
#[cfg(all(loom, test))]
pub(crate) mod weakened {
    use std::cell::Cell;

    use super::Handover;

    thread_local! {
        // Loom runs all threads of a model on the thread of the test.
        static HERE: Cell<Option<Handover>> = const { Cell::new(None) };
    }

    /// Whether one place has no ordering at present.
    pub(super) fn is(place: Handover) -> bool {
        HERE.get() == Some(place)
    }

    /// Runs a test with no ordering at one place; returns what it says if it fails.
    pub(crate) fn run(place: Handover, test: fn()) -> Option<String> {
        HERE.set(Some(place));
        let outcome = std::panic::catch_unwind(test);
        HERE.set(None);
        let panic = outcome.err()?;
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn wait_while<'a, T>(
    changed: &Condvar,
    guard: MutexGuard<'a, T>,
    condition: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'a, T> {
    changed.wait_while(guard, condition).unwrap_or_else(PoisonError::into_inner)
}
