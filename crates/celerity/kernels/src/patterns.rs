//! Programs that differ in which elements of the last step an item reads, and so in what nodes send
//! each other (IJPP 2024, table 3). What they compute means nothing: each element is a hash of a few
//! others, so that one which is stale or missing changes the result. The kernels and a sequential
//! program share it.

use celerity_kernel::{Item, NeighborhoodItem, PartView, PartViewMut, WholeView, kernel};

/// Adds a word to a hash.
#[inline]
#[must_use]
pub const fn mixed(hash: u32, word: u32) -> u32 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9)
}

/// What element `index` of `count` looks at, all over the buffer.
#[inline]
#[must_use]
pub const fn far_from(index: usize, count: usize) -> [usize; 3] {
    [index, (index * 31 + 7) % count, count - 1 - index]
}

/// Each item reads elements from everywhere, and writes its own.
#[kernel]
pub fn mix_all(item: Item<1>, (from, to): (WholeView<'_, u32, 1>, &mut u32)) {
    *to = 0;
    for index in far_from(item[0], from.range()[0]) {
        *to = mixed(*to, from[index]);
    }
}

/// Each item declares that it reads everything and writes a row, and touches nothing of it: so a step of it is
/// what nodes send each other.
#[kernel]
pub fn touch_nothing(
    _item: Item<2>,
    (_from, _to): (WholeView<'_, u32, 2>, PartViewMut<'_, u32, 2>),
) {
}

/// One item reads and writes everything.
#[kernel]
pub fn mix_alone(_item: Item<1>, (from, mut to): (WholeView<'_, u32, 1>, PartViewMut<'_, u32, 1>)) {
    let count = from.range()[0];
    for index in 0..count {
        let mut hash = 1;
        for other in far_from(index, count) {
            hash = mixed(hash, from[other]);
        }
        to[index] = hash;
    }
}

/// Each item reads and writes its own element.
#[kernel]
pub fn mix_own(_item: Item<1>, (from, to): (&u32, &mut u32)) {
    *to = mixed(2, *from);
}

/// Each item reads the element with its two indices exchanged.
#[kernel]
pub fn mix_turned(item: Item<2>, (from, to): (PartView<'_, u32, 2>, &mut u32)) {
    *to = mixed(3, from[[item[1], item[0]]]);
}

/// Each item reads its own element and those beside it.
#[kernel]
pub fn mix_around(_item: Item<2>, (from, to): (NeighborhoodItem<'_, u32, 2>, &mut u32)) {
    *to = 4;
    for offset in [[-1, 0], [0, -1], [0, 0], [0, 1], [1, 0]] {
        *to = mixed(*to, from.clamped(offset));
    }
}
