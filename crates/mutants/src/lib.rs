#![doc = include_str!("../README.md")]

mod catalogue;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use catalogue::{Layer, Mutant};

/// The position of the active bug in [`Mutant::ALL`], or [`NONE`]. One for the whole process,
/// because schedules are made on other threads than the one that chooses. `Relaxed` is enough:
/// whoever hands work to those threads synchronises with them.
static ACTIVE: AtomicUsize = AtomicUsize::new(NONE);

const NONE: usize = usize::MAX;

/// Held while a bug is active, or while none must be.
static CHOICE: Mutex<()> = Mutex::new(());

impl Mutant {
    /// Whether the program shall make this mistake now. One atomic load.
    #[inline]
    #[must_use]
    pub fn is_active(self) -> bool {
        ACTIVE.load(Ordering::Relaxed) == self as usize
    }

    /// `value`, or what the mistake makes of it.
    #[inline]
    #[must_use]
    pub fn alter<T>(self, value: T, mistake: impl FnOnce(T) -> T) -> T {
        if self.is_active() { mistake(value) } else { value }
    }
}

/// Runs `body` with a bug, in the whole process. Others that want a bug, or none, wait until then.
/// Panics of `body` are passed on; the bug goes with them.
pub fn with<R>(mutant: Mutant, body: impl FnOnce() -> R) -> R {
    let _choice = Choice::make(mutant as usize);
    body()
}

/// Runs `body` and makes sure that there is no bug meanwhile.
pub fn without<R>(body: impl FnOnce() -> R) -> R {
    let _choice = Choice::make(NONE);
    body()
}

/// The current choice; with its end, there is no bug any more.
struct Choice {
    _only: MutexGuard<'static, ()>,
}

impl Choice {
    fn make(choice: usize) -> Self {
        // A panic under a bug is what tests are after, not a reason to stop.
        let only = CHOICE.lock().unwrap_or_else(PoisonError::into_inner);
        ACTIVE.store(choice, Ordering::Relaxed);
        Self { _only: only }
    }
}

impl Drop for Choice {
    fn drop(&mut self) {
        ACTIVE.store(NONE, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::panic::catch_unwind;

    use super::{Mutant, with, without};

    #[test]
    fn one_bug_at_a_time_and_none_afterwards() {
        let active = || Mutant::ALL.iter().copied().filter(|mutant| mutant.is_active());
        for &mutant in Mutant::ALL {
            with(mutant, || assert!(active().eq([mutant])));
        }
        without(|| assert_eq!(active().count(), 0));
    }

    #[test]
    fn a_panic_ends_the_bug() {
        let outcome = catch_unwind(|| with(Mutant::OrphanTask, || panic!("found")));
        assert!(outcome.is_err());
        without(|| assert!(!Mutant::OrphanTask.is_active()));
    }

    #[test]
    fn a_bug_alters_values_and_its_absence_does_not() {
        let double = || Mutant::OrphanTask.alter(2, |value| 2 * value);
        assert_eq!(with(Mutant::OrphanTask, double), 4);
        assert_eq!(with(Mutant::LeakOnDrop, double), 2);
    }

    #[test]
    fn positions_are_those_of_the_list_and_descriptions_differ() {
        assert!(Mutant::ALL.iter().enumerate().all(|(at, &mutant)| mutant as usize == at));
        let descriptions: BTreeSet<_> =
            Mutant::ALL.iter().map(|mutant| mutant.description()).collect();
        assert_eq!(descriptions.len(), Mutant::ALL.len());
    }
}
