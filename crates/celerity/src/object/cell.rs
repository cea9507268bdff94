//! Where the value of a host object is. The runtime keeps tasks apart that must not meet there; the
//! cell counts who is in it, too, so that a mistake of the runtime is a panic and no data race.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A value that one thread changes or several look at, and nobody waits for.
#[derive(Debug)]
pub struct ObjectCell<T> {
    /// How many look at it, or [`CHANGING`].
    users: AtomicUsize,
    /// `None` once it has been taken out.
    value: UnsafeCell<Option<T>>,
}

const CHANGING: usize = usize::MAX;

// SAFETY: `T: Send` lets the value move between threads and be changed on one at a time, which
// `borrow_mut` sees to. Several threads get `&T` at once by `borrow` alone, which asks for
// `T: Sync`.
unsafe impl<T: Send> Sync for ObjectCell<T> {}

/// The right to look at the value.
pub struct Borrowed<T>(Arc<ObjectCell<T>>);

/// The right to change the value.
pub struct BorrowedMut<T>(Arc<ObjectCell<T>>);

impl<T> ObjectCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { users: AtomicUsize::new(0), value: UnsafeCell::new(Some(value)) }
    }

    /// Looks at the value, while others may.
    ///
    /// # Panics
    /// If a task changes it, or it has been taken out: mistakes of the runtime.
    pub(crate) fn borrow(self: Arc<Self>) -> Borrowed<T>
    where
        T: Sync,
    {
        let enter = |users| if users < CHANGING - 1 { Some(users + 1) } else { None };
        let entered = self.users.fetch_update(Ordering::Acquire, Ordering::Relaxed, enter);
        assert!(entered.is_ok(), "{MET}");
        let borrowed = Borrowed(self);
        assert!(borrowed.value().is_some(), "{GONE}");
        borrowed
    }

    /// Changes the value, while nobody else is at it.
    ///
    /// # Panics
    /// As [`borrow`](Self::borrow).
    pub(crate) fn borrow_mut(self: Arc<Self>) -> BorrowedMut<T> {
        let mut borrowed = self.enter();
        assert!(borrowed.value().is_some(), "{GONE}");
        borrowed
    }

    /// Takes the value out, if it is there.
    ///
    /// # Panics
    /// If a task is at it: a mistake of the runtime.
    pub(crate) fn take(self: Arc<Self>) -> Option<T> {
        self.enter().value().take()
    }

    fn enter(self: Arc<Self>) -> BorrowedMut<T> {
        let entered =
            self.users.compare_exchange(0, CHANGING, Ordering::Acquire, Ordering::Relaxed);
        assert!(entered.is_ok(), "{MET}");
        BorrowedMut(self)
    }
}

const MET: &str = "a defect of the runtime: tasks meet at a host object that must not";
const GONE: &str = "a defect of the runtime: a task comes to a host object after its end";

impl<T> Borrowed<T> {
    fn value(&self) -> Option<&T> {
        // SAFETY: `users` counts this borrow from `borrow` to its drop, and is not `CHANGING`
        // meanwhile: there is no `BorrowedMut`.
        unsafe { &*self.0.value.get() }.as_ref()
    }
}

impl<T> BorrowedMut<T> {
    fn value(&mut self) -> &mut Option<T> {
        // SAFETY: `users` is `CHANGING` from `enter` to this borrow's drop, so that there is no
        // other borrow, and `self` is borrowed exclusively.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Deref for Borrowed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value().expect("checked when it was borrowed")
    }
}

impl<T> Deref for BorrowedMut<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: as in `value`; `self` is borrowed, so nobody changes the value through it.
        unsafe { &*self.0.value.get() }.as_ref().expect("checked when it was borrowed")
    }
}

impl<T> DerefMut for BorrowedMut<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value().as_mut().expect("checked when it was borrowed")
    }
}

impl<T> Drop for Borrowed<T> {
    fn drop(&mut self) {
        self.0.users.fetch_sub(1, Ordering::Release);
    }
}

impl<T> Drop for BorrowedMut<T> {
    fn drop(&mut self) {
        self.0.users.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn is_refused<R>(borrow: impl FnOnce() -> R) -> bool {
        catch_unwind(AssertUnwindSafe(|| drop(borrow()))).is_err()
    }

    #[test]
    fn many_look_or_one_changes() {
        let cell = Arc::new(ObjectCell::new(1));
        let (one, other) = (cell.clone().borrow(), cell.clone().borrow());
        assert!(is_refused(|| cell.clone().borrow_mut()) && is_refused(|| cell.clone().take()));
        assert_eq!(*one + *other, 2);
        drop((one, other));
        let mut changing = cell.clone().borrow_mut();
        assert!(is_refused(|| cell.clone().borrow()) && is_refused(|| cell.clone().borrow_mut()));
        *changing += 1;
        drop(changing);
        assert_eq!(*cell.clone().borrow(), 2);
    }

    #[test]
    fn what_has_been_taken_is_gone() {
        let cell = Arc::new(ObjectCell::new("value".to_owned()));
        assert_eq!(cell.clone().take().as_deref(), Some("value"));
        assert_eq!(cell.clone().take(), None);
        assert!(is_refused(|| cell.clone().borrow()) && is_refused(|| cell.clone().borrow_mut()));
        assert_eq!(cell.users.load(Ordering::Relaxed), 0, "a refused borrow ends");
    }
}
