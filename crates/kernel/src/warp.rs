//! Items of a group that exchange values without memory: what devices do within a
//! warp. Knows no dimensions.

use core::fmt;
#[cfg(target_arch = "nvptx64")]
use core::marker::PhantomData;
use core::ops::Add;

#[cfg(target_arch = "nvptx64")]
mod device;
#[cfg(not(target_arch = "nvptx64"))]
mod host;

#[cfg(not(target_arch = "nvptx64"))]
use crate::barrier::GroupBarrier;
use crate::reduce::Operator;
use crate::word::{FULL, Word};

/// Up to 32 items of a group that follow each other in it, row-major: the last warp of a
/// group may have fewer.
///
/// As with a [barrier](crate::Group::barrier), all items of the *group* must come to the
/// same exchanges, equally often, with the same operators. GPUs exchange within a warp alone, in a few
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
        self.shuffled(value, lane).wait()
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
        self.voted(vote).wait()
    }

    /// Whether an item of the warp passes `true`.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn any(&self, vote: bool) -> bool {
        self.voted(vote).wait() != 0
    }

    /// Whether all items of the warp pass `true`.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn all(&self, vote: bool) -> bool {
        self.voted(!vote).wait() == 0
    }

    /// The sum over the warp, for every item of it: halves are added until one is left,
    /// in the same order on all devices. Wraps around where `T` ends, or panics, as
    /// `+` does.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn sum<T: Word + Add<Output = T>>(&self, value: T) -> T {
        self.added(value).wait()
    }

    /// What the items of the warp pass, combined by an [`Operator`], for every item of it: in the order of items, and
    /// so that it is the same on all devices. With [`Sum`](crate::Sum), integers wrap around.
    ///
    /// ```
    /// # use celerity_kernel::{Max, Module, NdItem, kernel};
    /// /// Each value as a part of the greatest one of its warp.
    /// #[kernel]
    /// fn scale(item: NdItem<'_, 1>, x: &mut f32) {
    ///     *x /= item.warp().reduce(*x, Max);
    /// }
    /// # static MODULE: Module = Module::without_code("doc", "");
    /// # fn main() {}
    /// ```
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn reduce<T: Word>(&self, value: T, operator: impl Operator<T>) -> T {
        self.combined(value, operator).wait()
    }

    /// What the items of the warp up to this one pass, its own among them, combined as in
    /// [`reduce`](Self::reduce).
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn inclusive_scan<T: Word>(&self, value: T, operator: impl Operator<T>) -> T {
        self.scanned(value, operator).wait()
    }

    /// What the items of the warp before this one pass, combined: what
    /// [`inclusive_scan`](Self::inclusive_scan) gives the one before it, and the operator's identity for the first one.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn exclusive_scan<T: Word>(&self, value: T, operator: impl Operator<T>) -> T {
        self.scanned_before(value, operator).wait()
    }
}

impl fmt::Debug for Warp<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Warp(lane {} of {})", self.lane(), self.len())
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;
    use core::panic::Location;
    use core::pin::pin;
    use core::task::{Context, Poll, Waker};

    use super::*;
    use crate::reduce::{Max, Sum};

    /// A meeting at which the others have been already, and no one has gone on.
    struct Passed<const N: usize>([Cell<u64>; N]);

    impl<const N: usize> GroupBarrier for Passed<N> {
        fn wait(&self, _: &'static Location<'static>) {}

        fn come(&self, _: &'static Location<'static>) {}

        fn board(&self) -> &[Cell<u64>] {
            &self.0
        }
    }

    /// For groups of 40.
    fn passed(bits: impl Fn(usize) -> u64) -> Passed<41> {
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
        let last = |others: &Passed<41>, look: fn(Warp<'_>) -> u32| look(Warp::new(33, 40, others));
        let some = || passed(|position| u64::from(position % 3 == 0));
        assert_eq!(last(&some(), |warp| warp.ballot(true)), 0b1001_0010);
        let nobody = || passed(|_| 0);
        for vote in [|warp: Warp<'_>| warp.any(true).into(), |warp: Warp<'_>| warp.all(true).into()]
        {
            assert_eq!(last(&nobody(), vote), 1);
        }
        assert_eq!(last(&nobody(), |warp| warp.any(false).into()), 0);
        assert_eq!(last(&nobody(), |warp| warp.all(false).into()), 0);
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
        macro_rules! same {
            ($position:expr, |$warp:ident| $waits:expr, $awaits:expr) => {{
                let (here, there) =
                    (passed(|position| position as u64), passed(|position| position as u64));
                let $warp = Warp::new($position, 40, &here);
                let waited = $waits;
                let $warp = Warp::new($position, 40, &there);
                assert_eq!(awaited($awaits), waited);
            }};
        }
        for position in [31, 32, 33] {
            same!(position, |warp| warp.shuffle(7_u64, 4), warp.__shuffle(7_u64, 4));
            same!(position, |warp| warp.sum(7_u64), warp.__sum(7_u64));
            same!(position, |warp| warp.reduce(7_u64, Max), warp.__reduce(7_u64, Max));
            same!(
                position,
                |warp| warp.inclusive_scan(7_u64, Sum),
                warp.__inclusive_scan(7_u64, Sum)
            );
            same!(
                position,
                |warp| warp.exclusive_scan(7_u64, Sum),
                warp.__exclusive_scan(7_u64, Sum)
            );
            same!(position, |warp| warp.ballot(true), warp.__ballot(true));
            for vote in [false, true] {
                same!(position, |warp| warp.any(vote), warp.__any(vote));
                same!(position, |warp| warp.all(vote), warp.__all(vote));
            }
        }
    }

    #[test]
    #[should_panic(expected = "a warp of size 8 has no item at 8")]
    fn a_lane_beyond_the_warp_is_named() {
        let others = passed(|_| 0);
        let _ = Warp::new(39, 40, &others).shuffle(1_u32, 8);
    }
}
