//! Items that meet at the same elements.

use celerity_kernel::{AtomicView, Item, kernel};

/// How many kinds of values [`count_kinds`] tells apart.
pub const KINDS: usize = 16;

/// Counts in each row of `counts`, of [`KINDS`] columns, how often each kind of value,
/// modulo `KINDS`, is in the same row of values.
#[kernel]
pub fn count_kinds(item: Item<2>, (counts, value): (AtomicView<'_, u32, 2>, &u32)) {
    counts.at([item[0], *value as usize % KINDS]).fetch_add(1);
}

/// For each row of values the least, the greatest, and the sum; and the product of
/// twice each value plus 1, modulo 2⁶⁴. Sums are in any order.
#[kernel]
pub fn summarize(
    item: Item<2>,
    (extremes, sums, product, value): (
        AtomicView<'_, i64, 2>,
        AtomicView<'_, f64, 2>,
        AtomicView<'_, u64, 2>,
        &i32,
    ),
) {
    let (row, value) = (item[0], *value);
    extremes.at([row, 0]).fetch_min(i64::from(value));
    extremes.at([row, 1]).fetch_max(i64::from(value));
    sums.at([row, 0]).fetch_add(f64::from(value));
    let product = product.at([row, 0]);
    let factor = (2 * i64::from(value) + 1) as u64;
    let mut before = product.load();
    while let Err(other) = product.compare_exchange(before, before.wrapping_mul(factor)) {
        before = other;
    }
}
