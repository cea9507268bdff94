//! Exchanges of a warp's items, which are exchanges of their group.

use core::ops::Add;

use super::Warp;
use crate::exchange::{self, Passed, Passing};
use crate::reduce::Operator;
use crate::word::Word;

impl<'g> Warp<'g> {
    pub(super) fn shuffled<T: Word>(
        self,
        value: T,
        lane: usize,
    ) -> Passing<'g, impl FnOnce(Passed<'_>), impl FnOnce(u64) -> T> {
        self.passes(value.to_bits(), exchange::as_passed, self.first() + lane, T::from_bits)
    }

    pub(super) fn voted(
        self,
        vote: bool,
    ) -> Passing<'g, impl FnOnce(Passed<'_>), impl FnOnce(u64) -> u32> {
        self.passes(vote.into(), exchange::votes, self.position, |votes| votes as u32)
    }

    pub(super) fn added<T: Word + Add<Output = T>>(
        self,
        value: T,
    ) -> Passing<'g, impl FnOnce(Passed<'_>), impl FnOnce(u64) -> T> {
        self.passes(value.to_bits(), exchange::sums::<T>, self.position, T::from_bits)
    }

    pub(super) fn combined<T: Word>(
        self,
        value: T,
        operator: impl Operator<T>,
    ) -> Passing<'g, impl FnOnce(Passed<'_>), impl FnOnce(u64) -> T> {
        let work = exchange::combined(operator);
        self.passes(value.to_bits(), work, self.position, T::from_bits)
    }

    pub(super) fn scanned<T: Word>(
        self,
        value: T,
        operator: impl Operator<T>,
    ) -> Passing<'g, impl FnOnce(Passed<'_>), impl FnOnce(u64) -> T> {
        let work = exchange::scanned(operator);
        self.passes(value.to_bits(), work, self.position, T::from_bits)
    }

    pub(super) fn scanned_before<T: Word>(
        self,
        value: T,
        operator: impl Operator<T>,
    ) -> Passing<'g, impl FnOnce(Passed<'_>), impl FnOnce(u64) -> T> {
        let (work, is_first) = (exchange::scanned(operator), self.lane() == 0);
        let take = move |before| if is_first { operator.identity() } else { T::from_bits(before) };
        self.passes(value.to_bits(), work, self.position.saturating_sub(1), take)
    }

    /// Takes what `work` leaves for the item at position `of` of the group.
    fn passes<R, W: FnOnce(Passed<'_>), L: FnOnce(u64) -> R>(
        self,
        bits: u64,
        work: W,
        of: usize,
        take: L,
    ) -> Passing<'g, W, L> {
        Passing { barrier: self.meeting, position: self.position, bits, work, of, take }
    }
}

/// What `#[kernel]` writes in the place of methods that wait, where an item is a future.
impl<'g> Warp<'g> {
    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn __shuffle<T: Word>(self, value: T, lane: usize) -> impl Future<Output = T> {
        self.check(lane);
        self.shuffled(value, lane).come()
    }

    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn __ballot(self, vote: bool) -> impl Future<Output = u32> {
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

    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn __sum<T: Word + Add<Output = T>>(self, value: T) -> impl Future<Output = T> {
        self.added(value).come()
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
}
