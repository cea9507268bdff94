//! Conway's Game of Life on a torus: cells are bytes, 1 if they live, and opposite edges of the
//! world meet. The kernels and sequential programs share its rule.

use celerity_kernel::{Item, PeriodicItem, PeriodicRow, Row, kernel};

/// The offsets of a cell's neighbours: rows down, columns to the right.
pub const NEIGHBOURS: [[isize; 2]; 8] =
    [[-1, -1], [-1, 0], [-1, 1], [0, -1], [0, 1], [1, -1], [1, 0], [1, 1]];

/// Whether a cell of a random world lives at the start: about three of eight do.
#[must_use]
pub fn initial([y, x]: [usize; 2], seed: u64) -> u8 {
    let mut bits = seed ^ (y as u64) << 32 ^ x as u64;
    for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
        bits = (bits ^ bits >> 29).wrapping_mul(factor);
    }
    u8::from(bits >> 61 < 3)
}

/// A cell in the next generation, of which so many neighbours live now.
#[inline]
#[must_use]
pub const fn next(cell: u8, neighbours: u8) -> u8 {
    // A cell with two living neighbours stays as it is; with three, it lives.
    (neighbours | cell == 3) as u8
}

/// A random world.
#[kernel]
pub fn life_fill(item: Item<2>, cell: &mut u8, seed: u64) {
    *cell = initial(item.id(), seed);
}

/// A generation, cell by cell.
#[kernel]
pub fn life_step(_item: Item<2>, (next_cell, world): (&mut u8, PeriodicItem<'_, u8, 2>)) {
    // Not in a loop over offsets, of which CPUs would look at each for each cell.
    let [nw, n, ne, w, e, sw, s, se] = world.at_each(NEIGHBOURS);
    let neighbours = nw + n + ne + w + e + sw + s + se;
    *next_cell = next(world.at([0, 0]), neighbours);
}

/// A generation, a run of cells at once.
#[kernel]
pub fn life_step_row(_row: Row<2>, (next_cells, world): (&mut [u8], PeriodicRow<'_, u8, 2>)) {
    let cells = world.at([0, 0]);
    let [nw, n, ne, w, e, sw, s, se] = world.at_each(NEIGHBOURS);
    for i in 0..next_cells.len() {
        let neighbours = nw[i] + n[i] + ne[i] + w[i] + e[i] + sw[i] + s[i] + se[i];
        next_cells[i] = next(cells[i], neighbours);
    }
}

#[cfg(test)]
mod tests {
    use super::next;

    #[test]
    fn cells_live_with_two_or_three_neighbours_and_are_born_with_three() {
        for neighbours in 0..=8 {
            assert_eq!(next(1, neighbours) == 1, [2, 3].contains(&neighbours));
            assert_eq!(next(0, neighbours) == 1, neighbours == 3);
        }
    }
}
