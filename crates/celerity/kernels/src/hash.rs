//! Integers, mixed until every bit depends on every other.

use celerity_kernel::{Item, Row, kernel};

/// A well-known mixing function (`splitmix64`).
#[inline]
pub(crate) const fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// A number from 0 to below 1 that looks random; others for other words. Of 24 bits, as
/// many as fit, so nothing is rounded.
#[inline]
pub(crate) fn unit(word: u64) -> f32 {
    (mix(word) >> 40) as f32 / (1 << 24) as f32
}

/// What an element held, the item that it belongs to and `salt`, mixed: any item
/// that is missed, or taken twice, leaves a trace.
#[kernel]
pub fn stir(item: Item<3>, cell: &mut u64, salt: u64) {
    *cell = mix(*cell ^ mix(item.linear_id() as u64 ^ salt));
}

/// The same for a run of elements.
#[kernel]
pub fn stir_row(row: Row<3>, cells: &mut [u64], salt: u64) {
    for (i, cell) in cells.iter_mut().enumerate() {
        *cell = mix(*cell ^ mix(row.item(i).linear_id() as u64 ^ salt));
    }
}

/// An element that its place determines: different ones differ, in most of their bytes.
#[inline]
#[must_use]
pub const fn placed([row, column]: [u64; 2]) -> u64 {
    (row << 32 | column).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ row
}

/// The matrix of [`placed`] elements.
#[kernel]
pub fn fill_placed(item: Item<2>, element: &mut u64) {
    *element = placed(item.id().map(|index| index as u64));
}
