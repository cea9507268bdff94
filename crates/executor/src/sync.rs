//! Locks that outlive panics. User code never runs under one of ours, and what
//! they protect is consistent between statements, so poisoning tells nothing. And the atomics of
//! what is made of them by hand: tests under `--cfg loom` run it in all orders there are.

#[cfg(all(loom, test))]
pub(crate) use loom::sync::atomic;
#[cfg(not(all(loom, test)))]
pub(crate) use std::sync::atomic;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

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
