//! Exchanges of a group's items.

use super::Group;
use crate::barrier::Meeting;
use crate::exchange::{self, Passed, Passing};
use crate::reduce::Operator;
use crate::word::Word;

impl<'g, const K: usize> Group<'g, K> {
    pub(super) fn passed_on<T: Word>(
        self,
        value: T,
        from: usize,
    ) -> Passing<'g, impl FnOnce(Passed<'_>), impl FnOnce(u64) -> T> {
        self.passes(value.to_bits(), exchange::as_passed, from, T::from_bits)
    }

    pub(super) fn voted(
        self,
        vote: bool,
    ) -> Passing<'g, impl FnOnce(Passed<'_>), impl FnOnce(u64) -> usize> {
        self.passes(vote.into(), exchange::count, 0, |count| count as usize)
    }

    pub(super) fn combined<T: Word>(
        self,
        value: T,
        operator: impl Operator<T>,
    ) -> Passing<'g, impl FnOnce(Passed<'_>), impl FnOnce(u64) -> T> {
        self.passes(value.to_bits(), exchange::combined_of_group(operator), 0, T::from_bits)
    }

    pub(super) fn scanned<T: Word>(
        self,
        value: T,
        operator: impl Operator<T>,
    ) -> Passing<'g, impl FnOnce(Passed<'_>), impl FnOnce(u64) -> T> {
        let work = exchange::scanned_of_group(operator);
        self.passes(value.to_bits(), work, self.position(), T::from_bits)
    }

    pub(super) fn scanned_before<T: Word>(
        self,
        value: T,
        operator: impl Operator<T>,
    ) -> Passing<'g, impl FnOnce(Passed<'_>), impl FnOnce(u64) -> T> {
        let (work, position) = (exchange::scanned_of_group(operator), self.position());
        let take = move |before| match position {
            0 => operator.identity(),
            _ => T::from_bits(before),
        };
        self.passes(value.to_bits(), work, position.saturating_sub(1), take)
    }

    /// Takes what `work` leaves for the item at position `of`.
    fn passes<R, W: FnOnce(Passed<'_>), L: FnOnce(u64) -> R>(
        self,
        bits: u64,
        work: W,
        of: usize,
        take: L,
    ) -> Passing<'g, W, L> {
        Passing { barrier: self.meeting, position: self.position(), bits, work, of, take }
    }
}

/// What `#[kernel]` writes in the place of methods that wait, where an item is a future.
impl<const K: usize> Group<'_, K> {
    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn __barrier(self) -> impl Future<Output = ()> {
        Meeting::new(self.meeting, || ())
    }

    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn __broadcast<T: Word>(self, value: T, from: usize) -> impl Future<Output = T> {
        self.check(from);
        self.passed_on(value, from).come()
    }

    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn __reduce<T: Word>(
        self,
        value: T,
        operator: impl Operator<T>,
    ) -> impl Future<Output = T> {
        self.combined(value, operator).come()
    }

    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn __inclusive_scan<T: Word>(
        self,
        value: T,
        operator: impl Operator<T>,
    ) -> impl Future<Output = T> {
        self.scanned(value, operator).come()
    }

    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn __exclusive_scan<T: Word>(
        self,
        value: T,
        operator: impl Operator<T>,
    ) -> impl Future<Output = T> {
        self.scanned_before(value, operator).come()
    }

    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn __count(self, vote: bool) -> impl Future<Output = usize> {
        self.voted(vote).come()
    }

    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn __any(self, vote: bool) -> impl Future<Output = bool> {
        self.voted(vote).then(|votes| votes != 0).come()
    }

    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn __all(self, vote: bool) -> impl Future<Output = bool> {
        self.voted(!vote).then(|votes| votes == 0).come()
    }
}
