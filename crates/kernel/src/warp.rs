//! Items of a group that exchange values without memory: what devices do within a
//! warp. Knows no dimensions.

use core::fmt;
#[cfg(target_arch = "nvptx64")]
use core::marker::PhantomData;
use core::ops::Add;

#[cfg(not(target_arch = "nvptx64"))]
mod host;

#[cfg(not(target_arch = "nvptx64"))]
use crate::barrier::GroupBarrier;
use crate::plain::Scalar;

/// Up to 32 items of a group that follow each other in it, row-major: the last warp of a
/// group may have fewer.
///
/// As with a [barrier](crate::Group::barrier), all items of the *group* must come to the
/// same exchanges, equally often. GPUs exchange within a warp alone, in a few
/// instructions; on CPUs an exchange is a barrier, and so is a [sum](Self::sum), since a warp there is no more than
/// the items that would be one.
#[derive(Clone, Copy)]
pub struct Warp<'g> {
    /// The item's position in its group.
    position: usize,
    /// Items of the group.
    items: usize,
    #[cfg(not(target_arch = "nvptx64"))]
    meeting: &'g dyn GroupBarrier,
    #[cfg(target_arch = "nvptx64")]
    meeting: PhantomData<&'g ()>,
}

/// Items of a full warp.
const FULL: usize = 32;

/// Numbers of 32 and 64 bits; sealed.
#[diagnostic::on_unimplemented(
    message = "items of a warp cannot exchange a `{Self}`",
    label = "no number of 32 or 64 bits",
    note = "use `u32`, `i32`, `u64`, `i64`, `usize`, `isize`, `f32` or `f64`"
)]
pub trait Word: Scalar + sealed::Bits {}

impl<'g> Warp<'g> {
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) const fn new(position: usize, items: usize, meeting: &'g dyn GroupBarrier) -> Self {
        Self { position, items, meeting }
    }

    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    pub(crate) const fn new(position: usize, items: usize) -> Self {
        Self { position, items, meeting: PhantomData }
    }

    /// The item's position in the warp.
    #[must_use]
    #[inline]
    pub const fn lane(&self) -> usize {
        self.position % FULL
    }

    /// How many items the warp has: 32, or what is left of the group.
    #[must_use]
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a warp is never empty")]
    pub const fn len(&self) -> usize {
        let left = self.items - self.first();
        if left < FULL { left } else { FULL }
    }

    /// The position in the group of the warp's first item.
    const fn first(&self) -> usize {
        self.position - self.lane()
    }

    /// What the item at position `lane` of the warp passes for `value`.
    ///
    /// # Panics
    /// If the warp has no such item.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn shuffle<T: Word>(&self, value: T, lane: usize) -> T {
        self.check(lane);
        self.exchange(value, lane)
    }

    /// Makes sure that the warp has an item at position `lane`.
    #[inline]
    #[track_caller]
    fn check(&self, lane: usize) {
        let len = self.len();
        if lane >= len {
            fail!(
                "a warp has no item at the position asked for",
                "a warp of size {} has no item at {}",
                len,
                lane
            );
        }
    }

    /// The lanes, as bits, of the items that pass `true`.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn ballot(&self, vote: bool) -> u32 {
        self.votes(vote)
    }

    /// Whether an item of the warp passes `true`.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn any(&self, vote: bool) -> bool {
        self.votes(vote) != 0
    }

    /// Whether all items of the warp pass `true`.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn all(&self, vote: bool) -> bool {
        self.votes(!vote) == 0
    }

    /// The sum over the warp, for every item of it: halves are added until one is left,
    /// in the same order on all devices. Wraps around where `T` ends, or panics, as
    /// `+` does.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn sum<T: Word + Add<Output = T>>(&self, value: T) -> T {
        self.added(value)
    }
}

#[cfg(target_arch = "nvptx64")]
impl Warp<'_> {
    #[inline(always)]
    fn mask(&self) -> u32 {
        u32::MAX >> (FULL - self.len())
    }

    #[inline(always)]
    fn exchange<T: Word>(&self, value: T, lane: usize) -> T {
        let (bits, lane, mask) = (value.to_bits(), lane as u32, self.mask());
        let low = crate::machine::warp::shuffle(bits as u32, lane, mask);
        let high = match size_of::<T>() {
            8 => crate::machine::warp::shuffle((bits >> 32) as u32, lane, mask),
            _ => 0,
        };
        T::from_bits(u64::from(low) | u64::from(high) << 32)
    }

    #[inline(always)]
    #[track_caller]
    fn added<T: Word + Add<Output = T>>(&self, value: T) -> T {
        let (mut sum, mut step, len) = (value, FULL / 2, self.len());
        while step > 0 {
            let other = self.lane() + step;
            let theirs = self.shuffle(sum, if other < len { other } else { 0 });
            if other < len {
                sum = sum + theirs;
            }
            step /= 2;
        }
        self.shuffle(sum, 0)
    }

    #[inline(always)]
    fn votes(&self, vote: bool) -> u32 {
        crate::machine::warp::ballot(vote, self.mask())
    }
}

impl fmt::Debug for Warp<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Warp(lane {} of {})", self.lane(), self.len())
    }
}

mod sealed {
    pub trait Bits {
        #[must_use]
        fn to_bits(self) -> u64;
        #[must_use]
        fn from_bits(bits: u64) -> Self;
    }

    macro_rules! integers {
        ($($integer:ty)*) => {$(
            impl super::Word for $integer {}
            impl Bits for $integer {
                #[inline]
                fn to_bits(self) -> u64 {
                    self as u64
                }

                #[inline]
                fn from_bits(bits: u64) -> Self {
                    bits as Self
                }
            }
        )*};
    }

    macro_rules! floats {
        ($($float:ty: $bits:ty,)*) => {$(
            impl super::Word for $float {}
            impl Bits for $float {
                #[inline]
                fn to_bits(self) -> u64 {
                    u64::from(<$float>::to_bits(self))
                }

                #[inline]
                fn from_bits(bits: u64) -> Self {
                    <$float>::from_bits(bits as $bits)
                }
            }
        )*};
    }

    integers!(u32 i32 u64 i64 usize isize);
    floats! { f32: u32, f64: u64, }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;
    use core::panic::Location;
    use core::pin::pin;
    use core::task::{Context, Poll, Waker};

    use super::*;

    /// A meeting at which the others have been already.
    struct Passed([Cell<u64>; 40]);

    impl GroupBarrier for Passed {
        fn wait(&self, _: &'static Location<'static>) {}

        fn come(&self, _: &'static Location<'static>) {}

        fn board(&self) -> &[Cell<u64>] {
            &self.0
        }
    }

    fn passed(bits: impl Fn(usize) -> u64) -> Passed {
        Passed(core::array::from_fn(|position| Cell::new(bits(position))))
    }

    #[test]
    fn a_warp_is_a_part_of_its_group() {
        let others = passed(|position| position as u64);
        let (first, last) = (Warp::new(31, 40, &others), Warp::new(33, 40, &others));
        assert_eq!((first.lane(), first.len()), (31, 32));
        assert_eq!((last.lane(), last.len()), (1, 8));
        assert_eq!((first.shuffle(-1_i64, 3), last.shuffle(7_u32, 3)), (3, 35));
        assert_eq!(last.shuffle(7_u32, 1), 7);
    }

    #[test]
    fn votes_are_those_of_the_warp() {
        let others = passed(|position| u64::from(position % 3 == 0));
        let last = Warp::new(33, 40, &others);
        assert_eq!(last.ballot(true), 0b1001_0010);
        let nobody = passed(|_| 0);
        let last = Warp::new(33, 40, &nobody);
        assert!(last.any(true) && !last.any(false));
        assert!(last.all(true) && !last.all(false));
    }

    #[test]
    fn a_sum_is_that_of_halves_in_turn() {
        // 0.1 is no sum of powers of two, so that the order can be told.
        let values: [f32; 40] = core::array::from_fn(|position| 0.1 + position as f32 * 1.7);
        let halves = |values: &[f32]| {
            let mut sums = values.to_vec();
            for step in [16, 8, 4, 2, 1] {
                let before = sums.clone();
                for (lane, sum) in sums.iter_mut().enumerate() {
                    *sum += before.get(lane + step).copied().unwrap_or(0.0);
                }
            }
            sums[0]
        };
        let others = passed(|position| values[position].to_bits().into());
        for (position, of) in [(0, 0..32), (13, 0..32), (33, 32..40)] {
            let warp = Warp::new(position, 40, &others);
            assert_eq!(warp.sum(values[position]).to_bits(), halves(&values[of]).to_bits());
        }
    }

    /// The value of a future that is pending once.
    fn awaited<R>(future: impl Future<Output = R>) -> R {
        let (mut future, context) = (pin!(future), &mut Context::from_waker(Waker::noop()));
        assert!(future.as_mut().poll(context).is_pending());
        match future.poll(context) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("it is pending twice"),
        }
    }

    #[test]
    fn who_awaits_gets_what_others_wait_for() {
        let others = passed(|position| position as u64);
        for warp in [Warp::new(31, 40, &others), Warp::new(33, 40, &others)] {
            assert_eq!(awaited(warp.__shuffle(7_u64, 4)), warp.shuffle(7, 4));
            assert_eq!(awaited(warp.__sum(7_u64)), warp.sum(7));
            assert_eq!(awaited(warp.__ballot(true)), warp.ballot(true));
            for vote in [false, true] {
                assert_eq!(awaited(warp.__any(vote)), warp.any(vote));
                assert_eq!(awaited(warp.__all(vote)), warp.all(vote));
            }
        }
    }

    #[test]
    fn numbers_survive_their_bits() {
        use sealed::Bits;
        assert_eq!(f32::from_bits(Bits::to_bits(-0.5_f32) as u32), -0.5);
        assert_eq!(<i32 as Bits>::from_bits(Bits::to_bits(-7_i32)), -7);
        assert_eq!(<isize as Bits>::from_bits(Bits::to_bits(isize::MIN)), isize::MIN);
    }

    #[test]
    #[should_panic(expected = "a warp of size 8 has no item at 8")]
    fn a_lane_beyond_the_warp_is_named() {
        let others = passed(|_| 0);
        let _ = Warp::new(39, 40, &others).shuffle(1_u32, 8);
    }
}
