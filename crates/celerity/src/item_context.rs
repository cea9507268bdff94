//! Which item a kernel was at when it panicked: told to whoever catches the panic. Nearly
//! free as long as none does: 0.8 % more instructions over seven forms of a stencil. Knows
//! no kernel.

use std::cell::Cell;
use std::panic::resume_unwind;

use celerity_executor::contain::caught;
use celerity_kernel::Row;

use crate::backtrace::__rust_begin_short_backtrace;

thread_local! {
    /// The run of items that panicked first on this thread, since it was looked at last.
    static FAILED: Cell<Option<Failed>> = const { Cell::new(None) };
}

#[derive(Clone, Copy)]
struct Failed {
    start: [usize; 3],
    dims: usize,
    len: usize,
}

/// Calls `call`, for the items of `row`.
#[inline(always)]
#[expect(clippy::inline_always, reason = "what is left of it stands beside the loop, not in it")]
pub(crate) fn at<const K: usize, R>(row: &Row<K>, call: impl FnOnce() -> R) -> R {
    // By value: nothing of the row needs to be in memory while all goes well.
    let row = *row;
    at_last(move || row, call)
}

/// The same where the row is made only if it must be named.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as above")]
pub(crate) fn at_last<const K: usize, R>(row: impl Fn() -> Row<K>, call: impl FnOnce() -> R) -> R {
    let guard = Guard(row);
    let result = call();
    std::mem::forget(guard);
    result
}

/// Dropped when a panic leaves the kernel, and only then.
struct Guard<F: Fn() -> Row<K>, const K: usize>(F);

impl<F: Fn() -> Row<K>, const K: usize> Drop for Guard<F, K> {
    #[inline(always)]
    fn drop(&mut self) {
        let row = (self.0)();
        note(row.start(), row.len());
    }
}

#[cold]
#[inline(never)]
fn note<const K: usize>(at: [usize; K], len: usize) {
    let mut start = [0; 3];
    start[..K].copy_from_slice(&at);
    // Others of its group are unwound after it.
    let first = FAILED.get().unwrap_or(Failed { start, dims: K, len });
    FAILED.set(Some(first));
}

/// Calls `work`; a panic in a kernel that [`at`] has called within it goes on as one
/// whose message names the item. It is a text, whatever it was: `rayon` drops what it
/// does not pass on, which must not panic itself.
pub(crate) fn named<R>(work: impl FnOnce() -> R) -> R {
    forget();
    caught(|| __rust_begin_short_backtrace(work)).unwrap_or_else(|said| {
        let text = match FAILED.take() {
            Some(failed) => failed.describe(&said),
            None => said,
        };
        resume_unwind(Box::new(text))
    })
}

/// What has panicked so far is no news.
pub(crate) fn forget() {
    FAILED.set(None);
}

impl Failed {
    fn describe(&self, text: &str) -> String {
        let item = &self.start[..self.dims];
        match self.len {
            1 => format!("item {item:?}: {text}"),
            len => format!("one of {len} items from {item:?} on: {text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{catch_unwind, panic_any};

    use super::*;

    fn message(work: impl FnOnce()) -> String {
        caught(|| named(work)).unwrap_err()
    }

    #[test]
    fn the_item_that_panics_is_named() {
        let item = |x: usize| at(&Row::new([7, x], 1, [9, 9]), || assert!(x < 5, "five"));
        assert_eq!(message(|| (0..9).for_each(item)), "item [7, 5]: five");
        let row = Row::new([3], 6, [9]);
        let text = message(|| at(&row, || panic!("number {}", 8)));
        assert_eq!(text, "one of 6 items from [3] on: number 8");
    }

    #[test]
    fn the_first_of_several_counts() {
        let both = || at(&Row::new([1], 1, [9]), || at(&Row::new([2], 1, [9]), || panic!("inner")));
        assert_eq!(message(both), "item [2]: inner");
    }

    #[test]
    fn what_is_no_kernels_panic_stays_as_it_is() {
        assert_eq!(message(|| panic!("elsewhere")), "elsewhere");
        let caught = || {
            let row = Row::new([1], 1, [9]);
            drop(catch_unwind(|| at(&row, || panic!("caught"))));
            forget();
            panic!("later")
        };
        assert_eq!(message(caught), "later");
    }

    #[test]
    fn a_panic_without_a_text_names_the_item_all_the_same() {
        let without = || at(&Row::new([4], 1, [9]), || panic_any(7));
        assert_eq!(message(without), "item [4]: a panic without a message");
    }
}
