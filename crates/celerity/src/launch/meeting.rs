//! Barriers at which the items of a group meet: who has come to which, and what is wrong if they are not all at one.
//! Refuses to know how items run.

use std::cell::Cell;
use std::panic::Location;

/// A barrier, in the user's source.
pub(super) type Barrier = &'static Location<'static>;

/// The items of one group have not all come to the same barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Divergence {
    /// Some wait, others have ended.
    #[error(
        "{waiting} of its {items} items {} at the barrier at {barrier}, the others have ended",
        if *waiting == 1 { "waits" } else { "wait" }
    )]
    Ended { waiting: usize, items: usize, barrier: Barrier },
    /// They wait at different barriers.
    #[error(
        "of its {items} items, some wait at the barrier at {one}, others at the one at {other}"
    )]
    Apart { items: usize, one: Barrier, other: Barrier },
}

/// Who has come, of so many items that all have gone on since the last barrier.
pub(super) struct Arrivals {
    items: usize,
    waiting: usize,
    barrier: Option<Barrier>,
}

impl Arrivals {
    pub(super) fn of(items: usize) -> Self {
        Self { items, waiting: 0, barrier: None }
    }

    /// One has come to this barrier. O(1).
    ///
    /// # Errors
    /// If another one waits elsewhere.
    #[inline]
    pub(super) fn note(&mut self, other: Barrier) -> Result<(), Divergence> {
        self.waiting += 1;
        let one = *self.barrier.get_or_insert(other);
        // The same barrier, or a copy of it that another crate has.
        if std::ptr::eq(one, other) || one == other {
            return Ok(());
        }
        Err(Divergence::Apart { items: self.items, one, other })
    }

    /// Whether they wait, after all have gone on: all do, or none.
    ///
    /// # Errors
    /// If some do.
    pub(super) fn all_wait(self) -> Result<bool, Divergence> {
        let Self { items, waiting, barrier } = self;
        match barrier {
            Some(barrier) if waiting < items => Err(Divergence::Ended { waiting, items, barrier }),
            barrier => Ok(barrier.is_some()),
        }
    }
}

/// Two boards for so many items, one behind the other: for each item a cell, and one cell more.
pub(super) fn boards<B: FromIterator<Cell<u64>>>(items: usize) -> B {
    (0..2 * (items + 1)).map(|_| Cell::new(0)).collect()
}

/// One of the [`boards`].
pub(super) fn board(boards: &[Cell<u64>], is_second: bool) -> &[Cell<u64>] {
    let (first, second) = boards.split_at(boards.len() / 2);
    if is_second { second } else { first }
}
