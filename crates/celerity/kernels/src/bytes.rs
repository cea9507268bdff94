//! How often bytes occur, alone and in pairs.

use celerity_kernel::{ArrayReducer, Item, NeighborhoodItem, Sum, kernel};

/// Counts one byte, and the pair that it makes with the one behind it: the first byte of a pair is
/// the row.
#[kernel]
pub fn count_byte(
    _item: Item<1>,
    (around, bytes, pairs): (
        NeighborhoodItem<'_, u8, 1>,
        ArrayReducer<'_, u64, Sum, 1>,
        ArrayReducer<'_, u64, Sum, 2>,
    ),
) {
    let here = usize::from(around.clamped([0]));
    bytes.combine_at(here, 1);
    if let Some(next) = around.get([1]) {
        pairs.combine_at([here, usize::from(next)], 1);
    }
}
