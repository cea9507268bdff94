//! Exchanges on hosts: each item of a warp passes some bits, all meet, and each looks at what was passed. An item
//! waits in the middle of it, or, where it is a future, awaits.

use core::cell::Cell;
use core::ops::Add;
use core::panic::Location;

use super::{FULL, Warp, Word};
use crate::barrier::Meeting;

/// What the items of a warp have passed, in order.
type Passed<'a> = &'a [Cell<u64>];

impl Warp<'_> {
    #[track_caller]
    pub(super) fn exchange<T: Word>(&self, value: T, lane: usize) -> T {
        self.meet(value.to_bits(), |passed| of_lane(passed, lane))
    }

    #[track_caller]
    pub(super) fn added<T: Word + Add<Output = T>>(&self, value: T) -> T {
        self.meet(value.to_bits(), sum)
    }

    #[track_caller]
    pub(super) fn votes(&self, vote: bool) -> u32 {
        self.meet(u64::from(vote), votes)
    }

    /// Passes `bits`, and looks at what all items of the warp pass.
    #[track_caller]
    fn meet<R>(&self, bits: u64, look: impl FnOnce(Passed<'_>) -> R) -> R {
        let passed = self.pass(bits);
        self.meeting.wait(Location::caller());
        look(passed)
    }
}

/// What `#[kernel]` writes in the place of methods that wait, where an item is a future.
impl<'g> Warp<'g> {
    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn __shuffle<T: Word>(self, value: T, lane: usize) -> impl Future<Output = T> {
        self.check(lane);
        self.come(value.to_bits(), move |passed| of_lane(passed, lane))
    }

    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn __ballot(self, vote: bool) -> impl Future<Output = u32> {
        self.come(u64::from(vote), votes)
    }

    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn __any(self, vote: bool) -> impl Future<Output = bool> {
        self.come(u64::from(vote), |passed| votes(passed) != 0)
    }

    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn __all(self, vote: bool) -> impl Future<Output = bool> {
        self.come(u64::from(!vote), |passed| votes(passed) == 0)
    }

    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn __sum<T: Word + Add<Output = T>>(self, value: T) -> impl Future<Output = T> {
        self.come(value.to_bits(), sum)
    }

    /// As `meet`.
    #[inline]
    #[track_caller]
    fn come<R>(self, bits: u64, look: impl FnOnce(Passed<'_>) -> R) -> impl Future<Output = R> {
        let passed = self.pass(bits);
        Meeting::new(self.meeting, move || look(passed))
    }

    /// Passes `bits`. Once all have met, the others' are there, too.
    fn pass(&self, bits: u64) -> Passed<'g> {
        let board = self.meeting.board();
        board[self.position].set(bits);
        &board[self.first()..][..self.len()]
    }
}

/// What the item at position `lane` has passed.
fn of_lane<T: Word>(passed: Passed<'_>, lane: usize) -> T {
    T::from_bits(passed[lane].get())
}

/// The sum of what was passed. Each item adds up all of the warp, as the first one does on devices.
fn sum<T: Word + Add<Output = T>>(passed: Passed<'_>) -> T {
    let number = |lane: usize| T::from_bits(passed[lane.min(passed.len() - 1)].get());
    let (mut sums, mut step): ([T; FULL], _) = (core::array::from_fn(number), FULL / 2);
    while step > 0 {
        for lane in 0..step.min(passed.len().saturating_sub(step)) {
            sums[lane] = sums[lane] + sums[lane + step];
        }
        step /= 2;
    }
    sums[0]
}

/// The lanes that have passed a vote, as bits.
fn votes(passed: Passed<'_>) -> u32 {
    let votes = passed.iter().enumerate();
    votes.fold(0, |votes, (lane, vote)| votes | (vote.get() as u32) << lane)
}
