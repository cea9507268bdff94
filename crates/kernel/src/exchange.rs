//! Exchanges on hosts: each item of a group passes some bits, all meet, the first one who goes on works out what
//! becomes of them, and each takes what is its. An item waits in the middle of it, or, where it is a future, awaits.
//! Works out the same as devices do, in the same order.

use core::cell::Cell;
use core::ops::Add;
use core::panic::Location;

use crate::barrier::{GroupBarrier, Meeting};
use crate::reduce::Operator;
use crate::word::{FULL, Word};

/// What the items of a group have passed, in order; later, what becomes of it.
pub(crate) type Passed<'a> = &'a [Cell<u64>];

/// What an item passes, and takes from what all of its group pass.
pub(crate) struct Passing<'g, W, L> {
    pub(crate) barrier: &'g dyn GroupBarrier,
    /// The item's position in its group.
    pub(crate) position: usize,
    pub(crate) bits: u64,
    /// Whoever goes on first does it, for all.
    pub(crate) work: W,
    /// The position of the item for which that gives what this one takes.
    pub(crate) of: usize,
    /// How it is taken.
    pub(crate) take: L,
}

impl<'g, R, W: FnOnce(Passed<'_>), L: FnOnce(u64) -> R> Passing<'g, W, L> {
    /// Takes what `next` makes of it.
    pub(crate) fn then<S>(
        self,
        next: impl FnOnce(R) -> S,
    ) -> Passing<'g, W, impl FnOnce(u64) -> S> {
        let Self { barrier, position, bits, work, of, take } = self;
        Passing { barrier, position, bits, work, of, take: move |bits| next(take(bits)) }
    }

    /// The item waits for the others in the middle of it.
    #[track_caller]
    pub(crate) fn wait(self) -> R {
        let Self { barrier, position, bits, work, of, take } = self;
        let board = pass(barrier, position, bits);
        barrier.wait(Location::caller());
        take(look(board, of, work))
    }

    /// The item awaits the others.
    #[inline]
    #[track_caller]
    pub(crate) fn come(self) -> Meeting<'g, impl FnOnce() -> R + use<'g, R, W, L>> {
        let Self { barrier, position, bits, work, of, take } = self;
        let board = pass(barrier, position, bits);
        Meeting::new(barrier, move || take(look(board, of, work)))
    }
}

/// Passes `bits`. Once all have met, the others' are there, too.
fn pass(barrier: &dyn GroupBarrier, position: usize, bits: u64) -> &[Cell<u64>] {
    let board = barrier.board();
    let (is_worked_out, passed) = board.split_last().expect("a board has a cell behind");
    passed[position].set(bits);
    is_worked_out.set(0);
    board
}

/// What has become of the bits that were passed, for the item at position `of`.
#[inline]
fn look(board: &[Cell<u64>], of: usize, work: impl FnOnce(Passed<'_>)) -> u64 {
    let (is_worked_out, passed) = board.split_last().expect("a board has a cell behind");
    if is_worked_out.replace(1) == 0 {
        work(passed);
    }
    passed[of].get()
}

/// Leaves it as it was passed.
pub(crate) fn as_passed(_: Passed<'_>) {}

/// Of each warp the items that pass a vote, as bits.
pub(crate) fn votes(passed: Passed<'_>) {
    for warp in passed.chunks(FULL) {
        let votes = warp.iter().enumerate();
        let votes = votes.fold(0, |votes, (lane, vote)| votes | vote.get() << lane);
        warp.iter().for_each(|vote| vote.set(votes));
    }
}

/// For the first item, how many items of the group pass a vote.
pub(crate) fn count(passed: Passed<'_>) {
    passed[0].set(passed.iter().map(Cell::get).sum());
}

/// Of each warp the sum: halves are added until one is left.
pub(crate) fn sums<T: Word + Add<Output = T>>(passed: Passed<'_>) {
    for warp in passed.chunks(FULL) {
        let (mut step, len) = (FULL / 2, warp.len());
        while step > 0 {
            for lane in 0..step.min(len.saturating_sub(step)) {
                join::<T>(warp, lane, [lane, lane + step], |one, other| one + other);
            }
            step /= 2;
        }
        let sum = warp[0].get();
        warp.iter().for_each(|of_item| of_item.set(sum));
    }
}

/// Of each warp what its items pass, combined.
pub(crate) fn combined<T: Word, O: Operator<T>>(operator: O) -> impl FnOnce(Passed<'_>) {
    move |passed| {
        for warp in passed.chunks(FULL) {
            combine_neighbors(warp, operator);
            let combined = warp[0].get();
            warp.iter().for_each(|of_item| of_item.set(combined));
        }
    }
}

/// For the first item, what all of the group pass, combined: warp by warp.
pub(crate) fn combined_of_group<T: Word, O: Operator<T>>(operator: O) -> impl FnOnce(Passed<'_>) {
    move |passed| {
        for (number, warp) in passed.chunks(FULL).enumerate() {
            combine_neighbors(warp, operator);
            if number > 0 {
                join(passed, 0, [0, number * FULL], |one, other| operator.combine(one, other));
            }
        }
    }
}

/// For each item what the items of its warp up to it pass, combined.
pub(crate) fn scanned<T: Word, O: Operator<T>>(operator: O) -> impl FnOnce(Passed<'_>) {
    move |passed| passed.chunks(FULL).for_each(|warp| scan(warp, operator))
}

/// For each item what the items of the group up to it pass, combined: warp by warp.
pub(crate) fn scanned_of_group<T: Word, O: Operator<T>>(operator: O) -> impl FnOnce(Passed<'_>) {
    move |passed| {
        for (number, warp) in passed.chunks(FULL).enumerate() {
            scan(warp, operator);
            let first = number * FULL;
            for at in (first..first + warp.len()).filter(|_| number > 0) {
                join(passed, at, [first - 1, at], |one, other| operator.combine(one, other));
            }
        }
    }
}

/// Leaves with the first item what all of a warp pass, combined: neighbours, then neighbours among these.
fn combine_neighbors<T: Word, O: Operator<T>>(warp: Passed<'_>, operator: O) {
    let mut step = 1;
    while step < warp.len() {
        for lane in (0..warp.len() - step).step_by(2 * step) {
            join(warp, lane, [lane, lane + step], |one, other| operator.combine(one, other));
        }
        step *= 2;
    }
}

/// Leaves with each item what the items of a warp up to it pass, combined: what one has so far with what the one has that is a
/// step before it, for steps that double.
fn scan<T: Word, O: Operator<T>>(warp: Passed<'_>, operator: O) {
    let mut step = 1;
    while step < warp.len() {
        for lane in (step..warp.len()).rev() {
            join(warp, lane, [lane - step, lane], |one, other| operator.combine(one, other));
        }
        step *= 2;
    }
}

/// Leaves at `to` what the values at two places come to.
#[inline]
fn join<T: Word>(passed: Passed<'_>, to: usize, of: [usize; 2], join: impl FnOnce(T, T) -> T) {
    let [one, other] = of.map(|at| T::from_bits(passed[at].get()));
    passed[to].set(join(one, other).to_bits());
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    /// Groups of less than a warp, of some, and of all that a device lets have, which take minutes under Miri.
    const ITEMS: &[usize] =
        if cfg!(miri) { &[1, 7, 32, 33] } else { &[1, 2, 3, 7, 31, 32, 33, 40, 64, 70, 1024] };

    /// Maps `x` ↦ `a·x + b` of words of 32 bits, one after the other: the order of values is all that counts.
    #[derive(Clone, Copy)]
    struct Then;

    impl Operator<u64> for Then {
        fn identity(&self) -> u64 {
            1 << 32
        }

        fn combine(&self, earlier: u64, later: u64) -> u64 {
            let [(a, b), (c, d)] = [earlier, later].map(|map| ((map >> 32) as u32, map as u32));
            u64::from(a.wrapping_mul(c)) << 32 | u64::from(b.wrapping_mul(c).wrapping_add(d))
        }
    }

    /// Of no order of pairs the same as of another.
    #[derive(Clone, Copy)]
    struct Fading;

    impl Operator<f64> for Fading {
        fn identity(&self) -> f64 {
            0.0
        }

        fn combine(&self, earlier: f64, later: f64) -> f64 {
            earlier * 0.75 + later
        }
    }

    fn maps(items: usize) -> Vec<u64> {
        (1..=items as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
    }

    fn fractions(items: usize) -> Vec<f64> {
        (0..items).map(|position| 0.1 + position as f64 * 1.7).collect()
    }

    fn worked_out<T: Word>(values: &[T], work: impl FnOnce(Passed<'_>)) -> Vec<T> {
        let cells: Vec<_> = values.iter().map(|value| Cell::new(value.to_bits())).collect();
        work(&cells);
        cells.into_iter().map(|cell| T::from_bits(cell.into_inner())).collect()
    }

    /// What comes of values before each one and it, one after the other.
    fn one_by_one(values: &[u64]) -> Vec<u64> {
        let mut so_far = Then.identity();
        let next = |&value| {
            so_far = Then.combine(so_far, value);
            so_far
        };
        values.iter().map(next).collect()
    }

    #[test]
    fn a_sum_is_that_of_halves_in_turn() {
        for &items in ITEMS {
            let values = fractions(items);
            let found = worked_out(&values, sums::<f64>);
            for (values, found) in values.chunks(FULL).zip(found.chunks(FULL)) {
                let mut halves = values.to_vec();
                for step in [16, 8, 4, 2, 1] {
                    let before = halves.clone();
                    for (lane, half) in halves.iter_mut().enumerate() {
                        *half += before.get(lane + step).copied().unwrap_or(0.0);
                    }
                }
                assert!(found.iter().all(|sum| sum.to_bits() == halves[0].to_bits()), "{items}");
            }
        }
    }

    #[test]
    fn values_are_combined_in_their_order() {
        for &items in ITEMS {
            let values = maps(items);
            let (of_warps, of_group) =
                (worked_out(&values, combined(Then)), worked_out(&values, combined_of_group(Then)));
            assert_eq!(Some(&of_group[0]), one_by_one(&values).last());
            for (values, found) in values.chunks(FULL).zip(of_warps.chunks(FULL)) {
                let expected = *one_by_one(values).last().unwrap();
                assert!(found.iter().all(|found| *found == expected), "{items}");
            }
        }
    }

    #[test]
    fn scans_are_combined_in_their_order() {
        for &items in ITEMS {
            let values = maps(items);
            assert_eq!(worked_out(&values, scanned_of_group(Then)), one_by_one(&values));
            let expected: Vec<_> = values.chunks(FULL).flat_map(one_by_one).collect();
            assert_eq!(worked_out(&values, scanned(Then)), expected);
        }
    }

    /// Whose steps a device makes.
    #[test]
    fn neighbors_are_combined_first_and_warps_last() {
        fn tree(values: &[f64]) -> f64 {
            match values {
                [one] => *one,
                more => {
                    let (one, other) = more.split_at(more.len().next_power_of_two() / 2);
                    Fading.combine(tree(one), tree(other))
                }
            }
        }
        for &items in ITEMS {
            let values = fractions(items);
            let warps = values.chunks(FULL).map(tree);
            let expected = warps.reduce(|one, other| Fading.combine(one, other));
            assert_eq!(Some(worked_out(&values, combined_of_group(Fading))[0]), expected);
        }
    }

    /// What a device's threads come to, each by what those a step before it have.
    #[test]
    fn scans_are_made_in_steps_that_double() {
        for &items in ITEMS {
            let values = fractions(items);
            let (mut expected, mut before) = (Vec::new(), None);
            for warp in values.chunks(FULL) {
                let mut lanes = warp.to_vec();
                for step in [1, 2, 4, 8, 16] {
                    let so_far = lanes.clone();
                    for lane in step..lanes.len() {
                        lanes[lane] = Fading.combine(so_far[lane - step], so_far[lane]);
                    }
                }
                assert_eq!(worked_out(warp, scanned(Fading)), lanes);
                if let Some(before) = before {
                    lanes.iter_mut().for_each(|lane| *lane = Fading.combine(before, *lane));
                }
                before = lanes.last().copied();
                expected.extend(lanes);
            }
            assert_eq!(worked_out(&values, scanned_of_group(Fading)), expected);
        }
    }

    #[test]
    fn votes_are_told_apart_and_counted() {
        for &items in ITEMS {
            let passed: Vec<_> = (0..items as u64).map(|i| u64::from(i % 3 == 0)).collect();
            let bits = worked_out(&passed, votes);
            assert!((0..items).all(|at| bits[at] >> (at % FULL) & 1 == passed[at]), "{items}");
            assert_eq!(worked_out(&passed, count)[0], passed.iter().sum::<u64>());
        }
    }
}
