//! Exchanges of a block's threads: within warps by registers, between warps by shared memory that the module has for it.

use super::Group;
use crate::machine::{self, Obtained, shared};
use crate::reduce::Operator;
use crate::warp::Warp;
use crate::word::{FULL, Word};

impl<const K: usize> Group<'_, K> {
    #[inline(always)]
    pub(super) fn passed_on<T: Word>(self, value: T, from: usize) -> Obtained<T> {
        if self.position() == from {
            board::set(0, value);
        }
        machine::barrier();
        let theirs = board::get(0);
        machine::barrier();
        Obtained(theirs)
    }

    #[inline(always)]
    pub(super) fn voted(self, vote: bool) -> Obtained<usize> {
        Obtained(machine::count(vote) as usize)
    }

    #[inline(always)]
    pub(super) fn combined<T: Word>(self, value: T, operator: impl Operator<T>) -> Obtained<T> {
        let warp = self.warp();
        let of_warp = warp.combined(value, operator).wait();
        if self.len() <= FULL {
            return Obtained(of_warp);
        }
        let warps = self.len().div_ceil(FULL);
        Obtained(self.with_totals(&warp, of_warp, || board::combined(warps, operator)))
    }

    #[inline(always)]
    pub(super) fn scanned<T: Word>(self, value: T, operator: impl Operator<T>) -> Obtained<T> {
        let warp = self.warp();
        let in_warp = warp.scanned(value, operator).wait();
        Obtained(match self.warps_before(&warp, in_warp, operator) {
            Some(before) => operator.combine(before, in_warp),
            None => in_warp,
        })
    }

    #[inline(always)]
    pub(super) fn scanned_before<T: Word>(
        self,
        value: T,
        operator: impl Operator<T>,
    ) -> Obtained<T> {
        let warp = self.warp();
        let in_warp = warp.scanned(value, operator).wait();
        let warps_before = self.warps_before(&warp, in_warp, operator);
        let (in_warp, is_first) = (warp.before(in_warp), warp.lane() == 0);
        Obtained(match warps_before {
            None if is_first => operator.identity(),
            None => in_warp,
            Some(before) if is_first => before,
            Some(before) => operator.combine(before, in_warp),
        })
    }

    /// What all warps before this one pass, combined; its own threads have scanned to `in_warp`.
    #[inline(always)]
    fn warps_before<T: Word>(
        &self,
        warp: &Warp<'_>,
        in_warp: T,
        operator: impl Operator<T>,
    ) -> Option<T> {
        if self.len() <= FULL {
            return None;
        }
        let before = self.position() / FULL;
        let last = warp.last(in_warp);
        self.with_totals(warp, last, || (before > 0).then(|| board::combined(before, operator)))
    }

    /// What `look` makes of the totals of all warps, each of which its first thread passes.
    #[inline(always)]
    fn with_totals<T: Word, R>(&self, warp: &Warp<'_>, total: T, look: impl FnOnce() -> R) -> R {
        if warp.lane() == 0 {
            board::set(self.position() / FULL, total);
        }
        machine::barrier();
        let seen = look();
        // Nobody writes there before all have looked.
        machine::barrier();
        seen
    }
}

/// A value for each warp of a block: what the largest block has room for is 32 of 8 bytes.
#[allow(unsafe_code)]
mod board {
    use super::{Operator, Word, shared};

    fn place(at: usize) -> u32 {
        shared::group() + 8 * at as u32
    }

    #[inline(always)]
    pub(super) fn set<T: Word>(at: usize, value: T) {
        // SAFETY: a block has 32 warps at most, so that it is inside, at a multiple of 8.
        unsafe { shared::store(place(at), value) }
    }

    #[inline(always)]
    pub(super) fn get<T: Word>(at: usize) -> T {
        // SAFETY: as above; any bits are a number.
        unsafe { shared::load(place(at)) }
    }

    /// The first `count` ones, combined.
    #[inline(always)]
    pub(super) fn combined<T: Word>(count: usize, operator: impl Operator<T>) -> T {
        let mut combined = get(0);
        for at in 1..count {
            combined = operator.combine(combined, get(at));
        }
        combined
    }
}
