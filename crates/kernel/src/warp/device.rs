//! Exchanges of a warp's threads, by registers.

use core::ops::Add;

use super::Warp;
use crate::machine::{Obtained, warp};
use crate::reduce::Operator;
use crate::word::{FULL, Word};

impl Warp<'_> {
    #[inline(always)]
    pub(super) fn shuffled<T: Word>(self, value: T, lane: usize) -> Obtained<T> {
        Obtained(self.exchange(value, lane))
    }

    #[inline(always)]
    pub(super) fn voted(self, vote: bool) -> Obtained<u32> {
        Obtained(warp::ballot(vote, self.mask()))
    }

    #[inline(always)]
    pub(super) fn added<T: Word + Add<Output = T>>(self, value: T) -> Obtained<T> {
        let (mut sum, mut step, len) = (value, FULL / 2, self.len());
        while step > 0 {
            let other = self.lane() + step;
            let theirs = self.exchange(sum, if other < len { other } else { 0 });
            if other < len {
                sum = sum + theirs;
            }
            step /= 2;
        }
        Obtained(self.exchange(sum, 0))
    }

    /// Of neighbours, and then of these: what the first thread has is all.
    #[inline(always)]
    pub(crate) fn combined<T: Word>(self, value: T, operator: impl Operator<T>) -> Obtained<T> {
        let (mut combined, mut step, len) = (value, 1, self.len());
        while step < FULL {
            let other = self.lane() + step;
            let theirs = self.exchange(combined, if other < len { other } else { 0 });
            if other < len {
                combined = operator.combine(combined, theirs);
            }
            step *= 2;
        }
        Obtained(self.exchange(combined, 0))
    }

    /// What each has so far behind what the one a step before it has, for steps that double.
    #[inline(always)]
    pub(crate) fn scanned<T: Word>(self, value: T, operator: impl Operator<T>) -> Obtained<T> {
        let (mut combined, mut step, lane) = (value, 1, self.lane());
        while step < FULL {
            let theirs = self.exchange(combined, lane.saturating_sub(step));
            if lane >= step {
                combined = operator.combine(theirs, combined);
            }
            step *= 2;
        }
        Obtained(combined)
    }

    #[inline(always)]
    pub(super) fn scanned_before<T: Word>(
        self,
        value: T,
        operator: impl Operator<T>,
    ) -> Obtained<T> {
        let before = self.before(self.scanned(value, operator).wait());
        Obtained(if self.lane() == 0 { operator.identity() } else { before })
    }

    /// What the thread before this one passes; for the first one, what it passes itself.
    #[inline(always)]
    pub(crate) fn before<T: Word>(&self, value: T) -> T {
        self.exchange(value, self.lane().saturating_sub(1))
    }

    /// What the warp's last thread passes.
    #[inline(always)]
    pub(crate) fn last<T: Word>(&self, value: T) -> T {
        self.exchange(value, self.len() - 1)
    }

    #[inline(always)]
    fn mask(&self) -> u32 {
        u32::MAX >> (FULL - self.len())
    }

    #[inline(always)]
    fn exchange<T: Word>(&self, value: T, lane: usize) -> T {
        let (bits, lane, mask) = (value.to_bits(), lane as u32, self.mask());
        let low = warp::shuffle(bits as u32, lane, mask);
        let high = match size_of::<T>() {
            8 => warp::shuffle((bits >> 32) as u32, lane, mask),
            _ => 0,
        };
        T::from_bits(u64::from(low) | u64::from(high) << 32)
    }
}
