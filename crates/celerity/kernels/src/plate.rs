//! Heat in a square plate that is hot along its upper edge and cold along the others, by Jacobi's
//! method. The kernels and a sequential program share it.

use celerity_kernel::{Item, Max, NeighborhoodItem, Reducer, kernel};

/// How hot a cell is at the beginning: 1 along the upper edge.
#[inline]
#[must_use]
pub const fn beginning([y, _]: [usize; 2]) -> f32 {
    if y == 0 { 1.0 } else { 0.0 }
}

/// Whether a cell keeps its temperature. `size` is the number of cells along each edge.
#[inline]
#[must_use]
pub const fn is_edge([y, x]: [usize; 2], size: usize) -> bool {
    y == 0 || x == 0 || y + 1 == size || x + 1 == size
}

/// The mean of the four neighbours above, below, to the left and to the right.
#[inline]
#[must_use]
pub const fn mean([up, down, left, right]: [f32; 4]) -> f32 {
    0.25 * ((up + down) + (left + right))
}

/// The plate at the beginning.
#[kernel]
pub fn plate_heat(item: Item<2>, cell: &mut f32) {
    *cell = beginning(item.id());
}

/// A step for one cell, and the greatest change of all.
#[kernel]
pub fn plate_relax(
    item: Item<2>,
    (around, next, change): (NeighborhoodItem<'_, f32, 2>, &mut f32, Reducer<'_, f32, Max>),
) {
    let here = around.clamped([0, 0]);
    let sides = around.clamped_each([[-1, 0], [1, 0], [0, -1], [0, 1]]);
    *next = if is_edge(item.id(), item.range()[0]) { here } else { mean(sides) };
    change.combine((*next - here).abs());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_edge_is_hot_and_all_edges_stay() {
        assert_eq!([[0, 3], [1, 3], [7, 0]].map(beginning), [1.0, 0.0, 0.0]);
        assert_eq!([[0, 3], [4, 0], [7, 1], [1, 7]].map(|cell| is_edge(cell, 8)), [true; 4]);
        assert!(!is_edge([1, 6], 8));
        assert_eq!(mean([1.0, 2.0, 4.0, 9.0]), 4.0);
    }
}
