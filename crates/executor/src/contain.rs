//! Where panics of user code end.
//!
//! What a user has written may panic wherever the runtime touches it: a kernel and a range
//! mapper when they are called, what they have captured when it is dropped, and even the value
//! that they panicked with. Here are the ways to call, to drop and to read such things that let
//! nothing unwind into the runtime. Refuses to know what becomes of the message.
//!
//! ```
//! use celerity_executor::contain::{caught, end};
//! struct Fragile;
//! impl Drop for Fragile {
//!     fn drop(&mut self) {
//!         panic!("broken");
//!     }
//! }
//! assert_eq!(caught(|| 7), Ok(7));
//! assert_eq!(end(Fragile), Some("broken".to_owned()));
//! let panic_with_it = || std::panic::panic_any(Fragile);
//! assert_eq!(caught(panic_with_it), Err::<(), _>("a panic without a message".to_owned()));
//! ```

use std::any::Any;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};

use celerity_tdag::MapperPanic;

/// Calls something of the user's.
///
/// # Errors
/// What it said, if it panicked. Nobody may look at what it has left behind.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(said)
}

/// Drops something of the user's; returns what it said if that panicked.
pub fn end<T>(value: T) -> Option<String> {
    caught(|| drop(value)).err()
}

/// What a caught panic said. Its payload is dropped, whatever that does.
#[must_use]
pub fn said(payload: Box<dyn Any + Send>) -> String {
    let text = text_of(&*payload).to_owned();
    discard(payload);
    text
}

/// The same of one that somebody else catches later.
#[must_use]
pub fn text_of(payload: &(dyn Any + Send)) -> &str {
    let payload = payload.downcast_ref().map_or(payload, MapperPanic::payload);
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.filter(|text| !text.is_empty()).unwrap_or("a panic without a message")
}

/// So many payloads are dropped, each of which the one before has panicked with.
const MOST_PAYLOADS: usize = 16;

fn discard(mut payload: Box<dyn Any + Send>) {
    for _ in 0..MOST_PAYLOADS {
        match catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            Ok(()) => return,
            Err(next) => payload = next,
        }
    }
    std::mem::forget(payload);
}

/// Something of the user's that the runtime keeps in lists and tables: whoever drops these is
/// not unwound by it. What it says then has been told by the panic hook, and by nobody else.
pub(crate) struct Kept<T>(Option<T>);

impl<T> Kept<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }

    pub(crate) fn into_inner(mut self) -> T {
        self.0.take().expect("taken by whoever consumes it")
    }
}

impl<T> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("taken by whoever consumes it")
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        if let Some(value) = self.0.take() {
            drop(end(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Panics when it is dropped: with a text, or with another one of its kind.
    struct Fragile(usize, Arc<AtomicUsize>);

    impl Drop for Fragile {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::Relaxed);
            match self.0 {
                0 => panic!("broken"),
                more => std::panic::panic_any(Fragile(more - 1, self.1.clone())),
            }
        }
    }

    #[test]
    fn what_panics_has_a_message() {
        assert_eq!(caught(|| panic!("text")), Err::<(), _>("text".to_owned()));
        assert_eq!(caught(|| panic!("{}", "owned")), Err::<(), _>("owned".to_owned()));
        let without = Err::<(), _>("a panic without a message".to_owned());
        assert_eq!(caught(|| std::panic::panic_any(7_u8)), without);
    }

    #[test]
    fn payloads_that_panic_one_after_the_other_are_all_dropped_if_they_come_to_an_end() {
        for (chain, drops) in [(0, 1), (3, 4), (usize::MAX, 1 + MOST_PAYLOADS)] {
            let count = Arc::<AtomicUsize>::default();
            let text = end(Fragile(chain, count.clone()));
            let expected = if chain == 0 { "broken" } else { "a panic without a message" };
            assert_eq!(text.as_deref(), Some(expected));
            assert_eq!(count.load(Ordering::Relaxed), drops);
        }
    }

    #[test]
    fn a_list_of_values_that_panic_is_dropped_to_its_end_also_while_unwinding() {
        let count = Arc::<AtomicUsize>::default();
        let list: Vec<_> = (0..5).map(|_| Kept::new(Fragile(0, count.clone()))).collect();
        let text = caught(|| {
            let _list = list;
            panic!("first")
        });
        assert_eq!(text, Err::<(), _>("first".to_owned()));
        assert_eq!(count.load(Ordering::Relaxed), 5);
    }
}
