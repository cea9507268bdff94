//! Items in groups, which share memory and wait for each other.

use celerity_kernel::{AtomicView, Local, LocalSlice, Max, NdItem, PartView, Reducer, Sum, kernel};

/// Items along each side of a group of [`matmul`].
pub const TILE: usize = 16;

/// How many items a group of [`group_sum`] has.
pub const SUMMANDS: usize = 128;

/// An element of a matrix product, `c = a b`, in groups of [`TILE`] × [`TILE`] items.
/// A group goes along its rows of `a` and down its columns of `b` tile by tile: each
/// item brings an element of both, and all items use all of them. `shared`, the size
/// that `a` and `b` have in common, need not be a multiple of a tile.
///
/// Sums are in order of the index that both share.
#[kernel]
pub fn matmul(
    item: NdItem<'_, 2>,
    (c, a, b): (&mut f32, PartView<'_, f32, 2>, PartView<'_, f32, 2>),
    tile_a: Local<'_, f32, { TILE * TILE }>,
    tile_b: Local<'_, f32, { TILE * TILE }>,
    shared: usize,
) {
    // The remainders say that all of this is inside of the tiles, so that nothing is
    // checked in the inner loop.
    let ([row, column], [y, x]) = (item.id(), item.local_id().map(|at| at % TILE));
    // A row and a column, of which one index is left to check in the loop.
    let (a, b) = (a.row([row]), b.along(0, [0, column]));
    let mut sum = 0.0;
    for first in (0..shared).step_by(TILE) {
        tile_a.set(y * TILE + x, a.get(first + x).copied().unwrap_or(0.0));
        tile_b.set(y * TILE + x, b.get(first + y).copied().unwrap_or(0.0));
        item.group().barrier();
        for k in 0..TILE {
            sum += tile_a.get(y * TILE + k) * tile_b.get(k * TILE + x);
        }
        item.group().barrier();
    }
    *c = sum;
}

/// The first `count` values of each group, the other way round: the same question before and behind a barrier.
#[kernel]
pub fn reverse_first(
    item: NdItem<'_, 1>,
    value: &mut f64,
    cells: Local<'_, f64, { SUMMANDS }>,
    count: usize,
) {
    let [at] = item.local_id();
    if at < count {
        cells.set(at, *value);
    }
    item.group().barrier();
    if at < count {
        *value = cells.get(count - 1 - at);
    }
}

/// For each item the sum over its group, of [`SUMMANDS`] items, pair by pair.
#[kernel]
pub fn group_sum(
    item: NdItem<'_, 1>,
    (sum, value): (&mut f64, &f64),
    partial: Local<'_, f64, { SUMMANDS }>,
) {
    let [at] = item.local_id();
    partial.set(at, *value);
    let mut half = SUMMANDS / 2;
    while half > 0 {
        item.group().barrier();
        if at < half {
            partial.set(at, partial.get(at) + partial.get(at + half));
        }
        half /= 2;
    }
    item.group().barrier();
    *sum = partial.get(0);
}

/// For each group of [`SUMMANDS`] items one sum. `totals` has as many elements as there are groups, of which a chunk has its even
/// share, `update(per_dimension([Side::share(0)]))`: no item of a group has the element alone.
#[kernel]
pub fn group_total(
    item: NdItem<'_, 1>,
    (totals, value): (AtomicView<'_, f64, 1>, &f64),
    partial: Local<'_, f64, { SUMMANDS }>,
) {
    let ([at], group) = (item.local_id(), item.group());
    partial.set(at, *value);
    let mut half = SUMMANDS / 2;
    while half > 0 {
        group.barrier();
        if at < half {
            partial.set(at, partial.get(at) + partial.get(at + half));
        }
        half /= 2;
    }
    group.barrier();
    if at == 0 {
        totals.at(group.id()).store(partial.get(0));
    }
}

/// Items of a group of [`mirror`].
pub const CROWD: usize = 1024;

/// Turns each run of [`CROWD`] rows of numbers around. A group shares 64 KiB: devices have that
/// much for kernels that ask for it.
#[kernel]
pub fn mirror(item: NdItem<'_, 1>, row: &mut [u32; 16], rows: Local<'_, [u32; 16], { CROWD }>) {
    let [at] = item.local_id();
    rows.set(at, *row);
    item.group().barrier();
    *row = rows.get(CROWD - 1 - at);
}

/// What [`look_up`] finds for an item in tables of so many values.
#[must_use]
pub fn looked_up(item: usize, odd: usize, squares: usize) -> u64 {
    let (odd, square) = ((item * 31 % odd) as u16, (item * 17 % squares) as u64);
    u64::from(odd.wrapping_mul(2).wrapping_add(1)) + square * square
}

/// Lets each group tabulate odd numbers and squares, as many as the launch says, and each item look some up;
/// sums how many of each group have had something to tabulate, over all items.
#[kernel]
pub fn look_up(
    item: NdItem<'_, 1>,
    (found, sum): (&mut u64, Reducer<'_, u64, Sum>),
    odd: LocalSlice<'_, u16>,
    workers: Local<'_, u32, 1>,
    squares: LocalSlice<'_, u64>,
) {
    let ([at], [id], step) = (item.local_id(), item.id(), item.group().len());
    if at == 0 {
        workers.set(0, 0);
    }
    item.group().barrier();
    for i in (at..odd.len()).step_by(step) {
        odd.set(i, (i as u16).wrapping_mul(2).wrapping_add(1));
    }
    for i in (at..squares.len()).step_by(step) {
        squares.set(i, (i * i) as u64);
    }
    if at < odd.len().max(squares.len()) {
        workers.fetch_add(0, 1);
    }
    item.group().barrier();
    *found = u64::from(odd.get(id * 31 % odd.len())) + squares.get(id * 17 % squares.len());
    sum.combine(u64::from(workers.get(0)));
}

/// For each item what its warp makes of the values: the sum of their eighths, the value of
/// the next item (of the first, behind the last), and which items have an odd one, as bits.
#[kernel]
pub fn exchange(
    item: NdItem<'_, 2>,
    (sum, next, odd, value): (&mut f32, &mut i64, &mut u32, &i64),
) {
    let (warp, is_odd) = (item.warp(), *value % 2 != 0);
    *sum = warp.sum(*value as f32 / 8.0);
    *next = warp.shuffle(*value, (warp.lane() + 1) % warp.len());
    *odd = warp.ballot(is_odd);
    let (any, all) = (warp.any(is_odd), warp.all(is_odd));
    assert!(any == (*odd != 0), "some vote, or none does");
    assert!(all == (odd.count_ones() as usize == warp.len()), "all vote, or some do not");
}

/// For each item what its group makes of the values: the sum of their sevenths; that of those up to the item; how many before it
/// are odd; the value in the middle, which lacks the number of odd ones.
#[kernel]
pub fn survey(
    item: NdItem<'_, 2>,
    (sum, up_to, before, middle, value): (&mut f32, &mut f64, &mut u32, &mut i64, &i64),
) {
    let (group, is_odd) = (item.group(), *value % 2 != 0);
    *sum = group.reduce(*value as f32 / 7.0, Sum);
    *up_to = group.inclusive_scan(*value as f64 / 7.0, Sum);
    *before = group.exclusive_scan(u32::from(is_odd), Sum);
    let odd = group.count(is_odd);
    *middle = group.broadcast(*value, group.len() / 2) - odd as i64;
    assert!(group.any(is_odd) == (odd > 0), "some vote, or none does");
    assert!(group.all(is_odd) == (odd == group.len()), "all vote, or some do not");
}

/// As [`survey`], of warps: the greatest seventh, the sum of those up to the item, and of those before it.
#[kernel]
pub fn survey_warps(
    item: NdItem<'_, 2>,
    (greatest, up_to, before, value): (&mut f32, &mut f64, &mut f32, &i64),
) {
    let warp = item.warp();
    *greatest = warp.reduce(*value as f32 / 7.0, Max);
    *up_to = warp.inclusive_scan(*value as f64 / 7.0, Sum);
    *before = warp.exclusive_scan(*value as f32 / 7.0, Sum);
}

/// How many items a group of [`histogram`] has, and kinds of values.
pub const BINS: usize = 64;

/// For each group of [`BINS`] values how often each kind, modulo `BINS`, is among them:
/// the `i`-th item of a group gets the count of kind `i`.
#[kernel]
pub fn histogram(
    item: NdItem<'_, 1>,
    (count, value): (&mut u32, &u32),
    counts: Local<'_, u32, { BINS }>,
) {
    let [at] = item.local_id();
    counts.set(at, 0);
    item.group().barrier();
    counts.fetch_add(*value as usize % BINS, 1);
    item.group().barrier();
    *count = counts.get(at);
}
