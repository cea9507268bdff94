//! Futures that take turns on one thread, and meet at barriers: where one waits, it is pending, and the next one is polled.
//! Each is as large as what it keeps over a barrier, and to go on with one is a call. Knows nothing of kernels.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::pin::Pin;
use std::task::Poll;

use celerity_kernel::GroupBarrier;

use super::meeting::{Arrivals, Barrier, Divergence, board, boards};

/// What futures meet at that take turns.
pub(super) struct Table {
    /// Where the one that was polled last has come to.
    barrier: Cell<Option<Barrier>>,
    /// Two boards, one behind the other.
    boards: Box<[Cell<u64>]>,
    /// Whether the second one is next.
    is_second: Cell<bool>,
}

impl Table {
    pub(super) fn for_items(items: usize) -> Self {
        Self { barrier: Cell::new(None), boards: boards(items), is_second: Cell::new(false) }
    }
}

impl GroupBarrier for Table {
    /// Who is here has been told that it need not wait.
    fn wait(&self, at: Barrier) {
        panic!("an item waits at {at} where it cannot be left: it has no stack of its own");
    }

    #[inline]
    fn come(&self, at: Barrier) {
        self.barrier.set(Some(at));
    }

    /// The other one between each two barriers: what is passed is looked at right behind the next barrier.
    fn board(&self) -> &[Cell<u64>] {
        board(&self.boards, self.is_second.get())
    }
}

/// Polls all of `futures`, one after the other, each until it comes to a barrier of `table` or is over; and again, until all are
/// over. All must come to the same barriers, equally often. `poll` gets a future and its number. For each future and barrier, O(1).
///
/// # Errors
/// If they do not.
pub(super) fn take<F>(
    futures: Vec<F>,
    table: &Table,
    poll: impl Fn(usize, Pin<&mut F>) -> Poll<()>,
) -> Result<(), Divergence> {
    let mut futures = Box::into_pin(futures.into_boxed_slice());
    loop {
        let mut arrivals = Arrivals::of(futures.len());
        for number in 0..futures.len() {
            // SAFETY: the elements of a pinned slice are pinned with it: nothing here moves one.
            let future = unsafe { futures.as_mut().map_unchecked_mut(|all| &mut all[number]) };
            if poll(number, future).is_pending() {
                let barrier = table.barrier.take();
                arrivals.note(barrier.expect("an item of a group waits for the others alone"))?;
            }
        }
        if !arrivals.all_wait()? {
            return Ok(());
        }
        table.is_second.set(!table.is_second.get());
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::panic::{AssertUnwindSafe, Location, catch_unwind};
    use std::task::{Context, Waker};

    use super::*;

    /// A barrier, as an item comes to it.
    #[track_caller]
    fn wait(table: &Table) -> impl Future<Output = ()> {
        let (at, mut has_come) = (Location::caller(), false);
        std::future::poll_fn(move |_| {
            if std::mem::replace(&mut has_come, true) {
                return Poll::Ready(());
            }
            table.come(at);
            Poll::Pending
        })
    }

    /// So many futures.
    fn side_by_side<F: Future<Output = ()>>(
        items: usize,
        table: &Table,
        item: impl Fn(usize) -> F,
    ) -> Result<(), Divergence> {
        take((0..items).map(item).collect(), table, |_, future| {
            future.poll(&mut Context::from_waker(Waker::noop()))
        })
    }

    #[test]
    fn nobody_goes_on_before_all_are_there() {
        let (log, table) = (RefCell::new(Vec::new()), Table::for_items(4));
        let item = async |number| {
            for step in 0..3 {
                log.borrow_mut().push((step, number));
                wait(&table).await;
            }
        };
        side_by_side(4, &table, item).unwrap();
        let expected: Vec<_> =
            (0..3).flat_map(|step| (0..4).map(move |number| (step, number))).collect();
        assert_eq!(log.into_inner(), expected);
        side_by_side(0, &table, async |_| wait(&table).await).unwrap();
    }

    #[test]
    fn those_who_end_early_are_missed() {
        let table = Table::for_items(5);
        let item = async |number| {
            wait(&table).await;
            if number != 2 {
                wait(&table).await;
            }
        };
        let error = side_by_side(5, &table, item);
        let Err(Divergence::Ended { waiting: 4, items: 5, barrier }) = error else {
            panic!("{error:?}")
        };
        assert!(barrier.file().ends_with("turns.rs"));
    }

    #[test]
    fn two_places_are_not_one() {
        let table = Table::for_items(2);
        let item = async |number| match number {
            0 => wait(&table).await,
            _ => wait(&table).await,
        };
        let error = side_by_side(2, &table, item);
        let Err(Divergence::Apart { items: 2, one, other }) = error else { panic!("{error:?}") };
        assert_eq!(one.line() + 1, other.line());
    }

    #[test]
    fn a_panic_ends_those_who_wait() {
        struct Ended<'c>(&'c Cell<usize>);
        impl Drop for Ended<'_> {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
            }
        }
        let (ended, table) = (Cell::new(0), Table::for_items(6));
        let item = async |number| {
            let _guard = Ended(&ended);
            wait(&table).await;
            assert!(number != 3, "three is wrong");
            wait(&table).await;
        };
        let payload = catch_unwind(AssertUnwindSafe(|| side_by_side(6, &table, item))).unwrap_err();
        assert_eq!((payload.downcast_ref(), ended.get()), (Some(&"three is wrong"), 6));
    }

    #[test]
    fn what_was_passed_stays_until_all_have_looked() {
        let (seen, table) = (RefCell::new(Vec::new()), Table::for_items(2));
        let item = async |number: usize| {
            for step in 0..3 {
                let board = table.board();
                board[number].set((10 * step + number) as u64);
                wait(&table).await;
                seen.borrow_mut()
                    .push((number, board[..2].iter().map(Cell::get).collect::<Vec<_>>()));
            }
        };
        side_by_side(2, &table, item).unwrap();
        let seen = seen.into_inner();
        for number in [0, 1] {
            let seen = seen.iter().filter(|(who, _)| *who == number).map(|(_, seen)| &seen[..]);
            assert_eq!(seen.collect::<Vec<_>>(), [[0, 1], [10, 11], [20, 21]]);
        }
    }

    #[test]
    #[should_panic(expected = "where it cannot be left")]
    fn who_waits_elsewhere_is_told() {
        Table::for_items(1).wait(Location::caller());
    }
}
