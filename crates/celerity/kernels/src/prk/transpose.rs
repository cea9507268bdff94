//! A matrix that is added to another one with its indices exchanged. The result lies in bands of so many
//! columns, one behind the other, so that a run of it is as wide as a tile.

use celerity_kernel::{
    AtomicView, Item, Local, NdItem, PartView, PartViewMut, Reducer, Row, Sum, kernel,
};

/// The matrix at the start: each element its own number.
#[kernel]
pub fn transpose_fill(item: Item<2>, a: &mut f64) {
    *a = item.linear_id() as f64;
}

/// `b += aᵀ`, a run at once: band, row, and column in its band.
#[kernel]
pub fn transpose_add(row: Row<3>, (b, a): (&mut [f64], PartView<'_, f64, 2>)) {
    let ([band, y, first], [.., width]) = (row.start(), row.range());
    let column = a.along(0, [0, y]);
    for (i, b) in b.iter_mut().enumerate() {
        *b += column[band * width + first + i];
    }
}

/// Elements along each side of what a group turns in its memory.
pub const TILE: usize = 32;

/// Rows and columns of the result that an item has: two of a row are moved at once.
pub const BLOCK: [usize; 2] = [4, 2];

/// Items of a group along rows and columns of the result.
pub const GROUP: [usize; 2] = [TILE / BLOCK[0], TILE / BLOCK[1]];

/// Elements that an item brings, and of the result those that it has.
const SHARE: usize = BLOCK[0] * BLOCK[1];

/// Rows of a tile that the items of a group bring at the same time, a warp each.
const ROWS: usize = TILE / SHARE;

/// `b += aᵀ`, by groups that turn a tile of [`TILE`]² elements: they bring it row by row, and take it by columns, so
/// that both matrices are gone through along their rows. Bands are as wide as a multiple of a tile, and rows as many.
#[kernel]
pub fn transpose_tiles(
    item: NdItem<'_, 3>,
    (b, a): (PartViewMut<'_, f64, 3>, PartView<'_, f64, 2>),
    tile: Local<'_, f64, { TILE * TILE }>,
) {
    let [row, column] = first_brought(&item);
    let brought = [0, 1, 2, 3, 4, 5, 6, 7].map(|nth| a[[row + nth * ROWS, column]]);
    turn(&item, b, tile, brought);
}

/// The same, and `a += 1`: nothing is read twice. What an item brings of `a` is for others, so it has no part of `a`:
/// all items update all that a chunk has, each element once.
#[kernel]
pub fn transpose_and_increment(
    item: NdItem<'_, 3>,
    (b, a): (PartViewMut<'_, f64, 3>, AtomicView<'_, f64, 2>),
    tile: Local<'_, f64, { TILE * TILE }>,
) {
    let [row, column] = first_brought(&item);
    let element = |nth: usize| a.at([row + nth * ROWS, column]);
    let brought = [0, 1, 2, 3, 4, 5, 6, 7].map(|nth| element(nth).load());
    turn(&item, b, tile, brought);
    for (nth, value) in brought.into_iter().enumerate() {
        element(nth).store(value + 1.0);
    }
}

/// The first element of `a` that an item brings; the others are [`ROWS`] below each other.
#[inline(always)]
fn first_brought(item: &NdItem<'_, 3>) -> [usize; 2] {
    let ([band, y, x], [_, local_y, local_x]) = (item.id(), item.local_id());
    let [.., width] = item.range();
    let [row, column] = place_in_tile([local_y, local_x]);
    [(band * width + x - local_x) * BLOCK[1] + row, (y - local_y) * BLOCK[0] + column]
}

/// Where in its tile that is.
#[inline(always)]
fn place_in_tile([local_y, local_x]: [usize; 2]) -> [usize; 2] {
    // The remainders, here and below, say that all of this is inside of the tile.
    let at = local_y % GROUP[0] * GROUP[1] + local_x % GROUP[1];
    [at / TILE, at % TILE]
}

/// Adds to an item's block of `b` what its group has brought of that.
#[inline(always)]
fn turn(
    item: &NdItem<'_, 3>,
    mut b: PartViewMut<'_, f64, 3>,
    tile: Local<'_, f64, { TILE * TILE }>,
    brought: [f64; SHARE],
) {
    let ([band, y, x], [_, local_y, local_x]) = (item.id(), item.local_id());
    let start = |down: usize| [band, y * BLOCK[0] + down, x * BLOCK[1]];
    // On its way while the group waits for what it has brought.
    let before: [[f64; 2]; 4] = [0, 1, 2, 3].map(|down| b.vector(start(down)));
    let [row, column] = place_in_tile([local_y, local_x]);
    for (nth, value) in brought.into_iter().enumerate() {
        tile.set(pair(row + nth * ROWS, column / 2) + column % 2, value);
    }
    item.group().barrier();
    let (local_y, local_x) = (local_y % GROUP[0], local_x % GROUP[1]);
    let take = |right: usize, half: usize| -> [f64; 2] {
        tile.run(pair(local_x * BLOCK[1] + right, local_y * 2 + half))
    };
    let ([l0, l1], [l2, l3], [r0, r1], [r2, r3]) = (take(0, 0), take(0, 1), take(1, 0), take(1, 1));
    let mut add = |down: usize, [left, right]: [f64; 2]| {
        b.set_vector(start(down), [before[down][0] + left, before[down][1] + right]);
    };
    add(0, [l0, r0]);
    add(1, [l1, r1]);
    add(2, [l2, r2]);
    add(3, [l3, r3]);
}

/// Where the `nth` pair of a row of a tile lies in a group's memory. In each two rows pairs have changed their places in
/// another way, so that what a warp takes of a column, a pair of every other row, is in different banks.
#[inline(always)]
fn pair(row: usize, nth: usize) -> usize {
    row * TILE + (nth ^ (row / 2 % 8)) * 2
}

/// How far all elements of `b` are from what they must be after so many iterations and one, in sum.
#[kernel]
pub fn transpose_error(item: Item<3>, (b, sum): (&f64, Reducer<'_, f64, Sum>), iterations: usize) {
    let [_, order, width] = item.range();
    let added = (iterations + 1) as f64 * iterations as f64 / 2.0;
    let element = ((item[0] * width + item[2]) * order + item[1]) as f64;
    let expected = element * (iterations + 1) as f64 + added;
    sum.combine((*b - expected).abs());
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::collections::BTreeSet;

    use super::*;

    /// 16 bytes of each row of a group's memory are in one of so many places that it serves at a time.
    const BANKS: usize = 8;

    /// How many different ones these pairs are in.
    fn banks(pairs: impl Iterator<Item = usize>) -> usize {
        pairs.map(|at| at / 2 % BANKS).collect::<BTreeSet<_>>().len()
    }

    #[test]
    fn each_pair_of_a_tile_has_a_place() {
        let places = (0..TILE).flat_map(|row| (0..TILE / 2).map(move |nth| pair(row, nth)));
        let expected = (0..TILE * TILE).step_by(2).collect::<BTreeSet<_>>();
        assert_eq!(places.collect::<BTreeSet<_>>(), expected);
    }

    #[test]
    fn what_lanes_move_at_a_time_is_in_different_banks() {
        for first in (0..TILE / 2).step_by(BANKS) {
            // What half a warp brings of a row, and what a quarter takes of a column.
            for row in 0..TILE {
                assert_eq!(banks((first..first + BANKS).map(|nth| pair(row, nth))), BANKS);
            }
            for (nth, side) in (0..TILE / 2).flat_map(|nth| [(nth, 0), (nth, 1)]) {
                let column = (first..first + BANKS).map(|x| pair(x * BLOCK[1] + side, nth));
                assert_eq!(banks(column), BANKS);
            }
        }
    }

    #[test]
    fn items_bring_each_element_of_a_tile_once() {
        let items = (0..GROUP[0]).flat_map(|y| (0..GROUP[1]).map(move |x| [y, x]));
        let brought = items.flat_map(|at| {
            let [row, column] = place_in_tile(at);
            (0..SHARE).map(move |nth| [row + nth * ROWS, column])
        });
        let all = (0..TILE).flat_map(|row| (0..TILE).map(move |column| [row, column]));
        assert_eq!(brought.collect::<BTreeSet<_>>(), all.collect());
    }
}
