//! Into how many pieces the items of a launch are cut: learned from how long items of the same kernel
//! have taken. Knows no kernel, and nothing of accesses.
//!
//! A program may have eight items of a millisecond each, or ten thousand of a nanosecond. The first are
//! worth a thread each, the second are done before another thread has woken up, and their number says
//! neither. So the first launch of a kernel is cut as finely as makes sense for expensive ones, and
//! tells what they cost.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use celerity_kernel::Bounds;

/// Pieces per thread, at most: enough to balance uneven items and busy threads.
const PIECES_PER_THREAD: usize = 8;

/// What takes less is not cut: that is about what waking a thread takes, and hearing that it is done.
const WORTH_CUTTING: Duration = Duration::from_micros(10);

/// Of so many launches in a row that are not cut, one is timed: the others need not look at a clock.
const TIMED_ONE_IN: u32 = 8;

const PICOSECONDS_PER_NANOSECOND: u64 = 1000;

/// What is known of the items of one kernel.
#[derive(Debug, Default)]
pub(crate) struct Grain {
    /// What an item costs, in picoseconds of one thread: 0 as long as nothing is known.
    item: AtomicU64,
    /// Launches that were not cut.
    uncut: AtomicU32,
}

impl Grain {
    /// That of kernels of type `F`.
    pub(crate) fn of<F: 'static>() -> &'static Self {
        static GRAINS: RwLock<BTreeMap<TypeId, &Grain>> = RwLock::new(BTreeMap::new());
        let of = TypeId::of::<F>();
        let known = GRAINS.read().unwrap_or_else(PoisonError::into_inner).get(&of).copied();
        // A program has as many as it has kernels.
        known.unwrap_or_else(|| {
            let mut grains = GRAINS.write().unwrap_or_else(PoisonError::into_inner);
            grains.entry(of).or_insert_with(|| Box::leak(Box::default()))
        })
    }

    /// Whether so many items are not cut, as far as is known. If what is known changes before they run, they may be cut
    /// after all, though not on a thread of no pool. Does not ask `rayon`.
    pub(super) fn is_one_piece(&self, items: u64) -> bool {
        items <= 1 || self.most_in_one_piece().is_some_and(|most| items <= most as u64)
    }

    /// Runs `work` on disjoint pieces of `part`, of so many places at least, that together cover it. Each
    /// place is so many items.
    pub(super) fn spread<const K: usize>(
        &self,
        (part, least): (Bounds<K>, usize),
        items_each: usize,
        work: &(impl Fn(Bounds<K>) + Sync),
    ) {
        self.cut(part.volume().saturating_mul(items_each), |most, course| {
            let most = (most / items_each.max(1)).max(least);
            halve(part, most, &|piece| course.run(place(&part, &piece), || work(piece)));
        });
    }

    /// Calls `run` with how many of so many items a piece has at most, and with what is to run pieces.
    pub(super) fn cut(&self, items: usize, run: impl FnOnce(usize, &Course)) {
        let piece = self.piece(items);
        let uncut = || self.uncut.fetch_add(1, Ordering::Relaxed);
        let timed = piece != items || uncut().is_multiple_of(TIMED_ONE_IN);
        let failed = AtomicUsize::new(usize::MAX);
        let course = Course { nanoseconds: timed.then(AtomicU64::default), failed };
        run(piece, &course);
        if let Some(nanoseconds) = course.nanoseconds {
            self.learn(items, nanoseconds.into_inner());
        }
    }

    fn piece(&self, items: usize) -> usize {
        // A thread outside of the pool must not ask `rayon`, which would start another pool.
        if self.is_one_piece(items as u64) || rayon::current_thread_index().is_none() {
            return items;
        }
        match rayon::current_num_threads() {
            0 | 1 => items,
            threads => {
                let even = items / (threads * PIECES_PER_THREAD);
                even.max(self.most_in_one_piece().unwrap_or(1))
            }
        }
    }

    /// How many items are not worth cutting, if that is known: at least one, which cannot be.
    fn most_in_one_piece(&self) -> Option<usize> {
        let item = self.item.load(Ordering::Relaxed);
        let worth = WORTH_CUTTING.as_nanos() as u64 * PICOSECONDS_PER_NANOSECOND;
        let most = worth.checked_div(item)?.max(1);
        Some(usize::try_from(most).unwrap_or(usize::MAX))
    }

    /// So many items have taken so long. Threads that learn at once may forget what one of them has.
    fn learn(&self, items: usize, nanoseconds: u64) {
        let picoseconds = nanoseconds.saturating_mul(PICOSECONDS_PER_NANOSECOND);
        let Some(item) = picoseconds.checked_div(items as u64) else { return };
        let mean = match self.item.load(Ordering::Relaxed) {
            0 => item,
            // One that was interrupted is cut next time, so timed again, and soon known better.
            known => known / 2 + item / 2,
        };
        self.item.store(mean.max(1), Ordering::Relaxed);
    }
}

/// How the pieces of a launch go: what they take, if anybody wants to know, and which has panicked.
pub(super) struct Course {
    nanoseconds: Option<AtomicU64>,
    /// The place of the first one; `usize::MAX` if none has.
    failed: AtomicUsize,
}

impl Course {
    /// Runs the piece at a place in the order of items, unless one before it has panicked: what it would compute, or
    /// say of the same mistake, is for nobody. Of those that panic the first one is the same each time.
    pub(super) fn run(&self, place: usize, work: impl FnOnce()) {
        if place > self.failed.load(Ordering::Relaxed) {
            return;
        }
        let unless_it_returns = Fails(&self.failed, place);
        match &self.nanoseconds {
            None => work(),
            Some(nanoseconds) => {
                let start = Instant::now();
                work();
                let taken = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
                nanoseconds.fetch_add(taken, Ordering::Relaxed);
            }
        }
        std::mem::forget(unless_it_returns);
    }
}

/// Notes where a failure is when it is dropped.
struct Fails<'c>(&'c AtomicUsize, usize);

impl Drop for Fails<'_> {
    fn drop(&mut self) {
        self.0.fetch_min(self.1, Ordering::Relaxed);
    }
}

/// How many items of `part` come before `piece`, row-major.
fn place<const K: usize>(part: &Bounds<K>, piece: &Bounds<K>) -> usize {
    let (range, first, at) = (part.range(), part.min(), piece.min());
    let along = |place: usize, dim: usize| {
        place.saturating_mul(range[dim]).saturating_add(at[dim] - first[dim])
    };
    (0..K).fold(0, along)
}

/// Runs `work` on disjoint pieces of `part` that together cover it.
fn halve<const K: usize>(part: Bounds<K>, most: usize, work: &(impl Fn(Bounds<K>) + Sync)) {
    match halves(&part, most) {
        None => work(part),
        Some((left, right)) => {
            rayon::join(|| halve(left, most, work), || halve(right, most, work));
        }
    }
}

/// Halves a box along the slowest dimension that can be, unless it is small.
fn halves<const K: usize>(part: &Bounds<K>, most: usize) -> Option<(Bounds<K>, Bounds<K>)> {
    if part.volume() <= most.max(1) {
        return None;
    }
    let dim = part.range().iter().position(|&size| size > 1)?;
    let (mut left_max, mut right_min) = (part.max(), part.min());
    let middle = part.min()[dim] + part.range()[dim] / 2;
    (left_max[dim], right_min[dim]) = (middle, middle);
    Some((Bounds::new(part.min(), left_max), Bounds::new(right_min, part.max())))
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::{Barrier, Mutex};

    use rayon::ThreadPoolBuilder;

    use super::*;
    use crate::access::rows_of;

    fn pieces<const K: usize>(part: Bounds<K>, most: usize) -> Vec<Bounds<K>> {
        let pieces = Mutex::new(Vec::new());
        halve(part, most, &|piece| pieces.lock().unwrap().push(piece));
        pieces.into_inner().unwrap()
    }

    #[test]
    fn pieces_cover_the_chunk_once() {
        let chunk = Bounds::new([3, 10], [8, 27]);
        let mut hits = [[0; 27]; 8];
        for piece in pieces(chunk, 7) {
            rows_of(&piece, |[y, x], len| hits[y][x..x + len].iter_mut().for_each(|n| *n += 1));
        }
        for (y, x) in (0..8).flat_map(|y| (0..27).map(move |x| (y, x))) {
            assert_eq!(hits[y][x], usize::from(chunk.contains([y, x])), "at {y}, {x}");
        }
    }

    #[test]
    fn a_volume_beyond_64_bits_is_not_nothing() {
        let huge = Bounds::from_range([1 << 32, 1 << 32]);
        let (left, right) = halves(&huge, 64).unwrap();
        assert_eq!(left, Bounds::from_range([1 << 31, 1 << 32]));
        assert_eq!(right, Bounds::new([1 << 31, 0], [1 << 32, 1 << 32]));
    }

    #[test]
    fn rows_are_cut_only_when_there_are_few() {
        let whole_rows = pieces(Bounds::new([0, 0], [64, 100]), 200);
        assert!(whole_rows.iter().all(|piece| piece.range()[1] == 100));
        assert_eq!(pieces(Bounds::new([0], [1024]), 64).len(), 16);
        assert_eq!(pieces(Bounds::<0>::EMPTY, 64).len(), 1);
    }

    /// How many pieces so many items are cut into, by threads of a pool.
    fn cut(grain: &Grain, items: usize, threads: usize) -> usize {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let pieces = AtomicUsize::new(0);
        pool.install(|| {
            // What they really take would be learned.
            let piece = grain.piece(items);
            halve(Bounds::from_range([items]), piece, &|_| {
                pieces.fetch_add(1, Ordering::Relaxed);
            });
        });
        pieces.into_inner()
    }

    #[test]
    fn what_is_not_known_may_be_expensive() {
        let grain = Grain::default();
        assert!(grain.is_one_piece(0) && grain.is_one_piece(1) && !grain.is_one_piece(2));
        assert_eq!([1, 2, 8, 16].map(|items| cut(&grain, items, 2)), [1, 2, 8, 16]);
        assert_eq!(cut(&grain, 1 << 20, 2), 16);
        assert_eq!(cut(&grain, 1 << 20, 1), 1, "there is nobody to share with");
    }

    #[test]
    fn few_items_are_cut_if_they_are_expensive_and_many_are_not_if_they_are_cheap() {
        let grain = Grain::default();
        grain.learn(8, 8_000_000);
        assert!(!grain.is_one_piece(2));
        assert_eq!(cut(&grain, 8, 2), 8);
        let grain = Grain::default();
        grain.learn(10_000, 10_000);
        assert!(grain.is_one_piece(10_000) && !grain.is_one_piece(10_001));
        assert_eq!(cut(&grain, 20_000, 2), 2);
        assert_eq!(cut(&grain, 1 << 20, 2), 16);
    }

    #[test]
    fn two_items_of_an_unknown_kernel_run_side_by_side() {
        let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let (grain, both) = (Grain::default(), Barrier::new(2));
        pool.install(|| {
            grain.spread((Bounds::from_range([2]), 1), 1, &|piece| {
                assert_eq!(piece.volume(), 1);
                both.wait();
            });
        });
        assert!(grain.most_in_one_piece().is_some(), "it is known by now");
    }

    #[test]
    fn a_thread_of_no_pool_keeps_all() {
        let grain = Grain::default();
        assert_eq!(grain.piece(1 << 20), 1 << 20);
    }

    #[test]
    fn a_kernel_that_was_interrupted_once_is_known_better_soon() {
        let grain = Grain::default();
        grain.learn(8, 800);
        grain.learn(8, 4_000_000);
        assert!(!grain.is_one_piece(8), "it may have become expensive");
        let again = (0..100).take_while(|_| {
            grain.learn(8, 800);
            !grain.is_one_piece(8)
        });
        assert!(again.count() < 10);
    }

    #[test]
    fn what_takes_no_time_is_known_as_well() {
        let grain = Grain::default();
        grain.learn(0, 7);
        assert_eq!(grain.most_in_one_piece(), None);
        grain.learn(1 << 40, 1);
        assert!(grain.is_one_piece(1 << 20));
        grain.learn(1, u64::MAX);
        assert!(!grain.is_one_piece(2) && grain.is_one_piece(1));
    }

    #[test]
    fn launches_that_are_not_cut_are_timed_now_and_then() {
        let grain = Grain::default();
        grain.learn(1, 1);
        let timed = (0..4 * TIMED_ONE_IN).filter(|_| {
            let mut timed = false;
            grain.cut(2, |piece, course| {
                assert_eq!(piece, 2);
                timed = course.nanoseconds.is_some();
            });
            timed
        });
        assert_eq!(timed.count(), 4);
    }

    #[test]
    fn what_comes_behind_a_piece_that_panics_is_left_out() {
        let part = Bounds::new([3, 5], [7, 9]);
        let course = Course { nanoseconds: None, failed: AtomicUsize::new(usize::MAX) };
        let ran = Mutex::new(Vec::new());
        let fails = |piece: Bounds<2>| {
            let place = place(&part, &piece);
            catch_unwind(AssertUnwindSafe(|| {
                course.run(place, || {
                    ran.lock().unwrap().push(place);
                    assert!(place != 8, "eight is wrong");
                });
            }))
            .is_err()
        };
        // Those before it are run all the same: one of them may be the first.
        let pieces = [[4, 5], [5, 5], [5, 6], [3, 8], [6, 5]];
        let fail = pieces.map(|[y, x]| fails(Bounds::new([y, x], [y + 1, x + 1])));
        assert_eq!(fail, [false, true, false, false, false]);
        assert_eq!(ran.into_inner().unwrap(), [4, 8, 3]);
    }

    #[test]
    fn kernels_of_one_type_share_what_is_known() {
        struct One;
        struct Other;
        assert!(std::ptr::eq(Grain::of::<One>(), Grain::of::<One>()));
        assert!(!std::ptr::eq(Grain::of::<One>(), Grain::of::<Other>()));
    }
}
