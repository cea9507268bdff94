//! A wavefront: each point of a grid needs those before it along both axes. A rank has a band of
//! columns, which is a row of its own, line behind line; what its neighbour needs of the last column
//! travels in another.

use celerity_kernel::{Item, PartView, PartViewMut, kernel};

/// How many columns there are, and how wide a rank's band is; the last ones may have less or nothing.
#[inline]
const fn columns_of(rank: usize, columns: usize, width: usize) -> usize {
    let left = columns.saturating_sub(rank * width);
    if left < width { left } else { width }
}

/// The grid at the start: its first line and column count up, the rest is 0. Bands are `width` wide.
#[kernel]
pub fn p2p_fill(item: Item<2>, point: &mut f64, width: usize) {
    let (line, column) = (item[1] / width, item[0] * width + item[1] % width);
    *point = if line == 0 || column == 0 { (line + column) as f64 } else { 0.0 };
}

/// Some lines of a rank, in wave `wave`: those of block `wave` - rank, if there is such a block of
/// `group` lines, counted from line 1. `before` has, for the rank before this one, the last column at
/// these lines and the line above; `after` gets the same of this rank. `size` says how many lines and
/// columns the grid has.
#[kernel]
pub fn p2p_wave(
    item: Item<2>,
    (mut band, before, mut after): (
        PartViewMut<'_, f64, 2>,
        PartView<'_, f64, 2>,
        PartViewMut<'_, f64, 2>,
    ),
    size: [usize; 2],
    width: usize,
    wave: usize,
    group: usize,
) {
    let ([lines, columns], rank) = (size, item[0]);
    let count = columns_of(rank, columns, width);
    if count == 0 || wave < rank || 1 + (wave - rank) * group >= lines {
        return;
    }
    let top = 1 + (wave - rank) * group;
    let bottom = if top + group < lines { top + group } else { lines };
    let mut band = band.row_mut([rank]);
    let mut after = after.row_mut([rank]);
    after[0] = band[(top - 1) * width + count - 1];
    for line in top..bottom {
        let (here, above) = (line * width, (line - 1) * width);
        let mut west = band[here];
        if rank > 0 {
            let [corner, beside] = [line - top, line - top + 1].map(|at| before[[rank - 1, at]]);
            west = beside + band[above] - corner;
            band[here] = west;
        }
        for column in 1..count {
            west = west + band[above + column] - band[above + column - 1];
            band[here + column] = west;
        }
        after[line - top + 1] = west;
    }
}

/// The last point of the grid, negated, becomes the first. `at` is where the last one lies.
#[kernel]
pub fn p2p_turn(_item: Item<2>, (first, last): (&mut f64, PartView<'_, f64, 2>), at: [usize; 2]) {
    *first = -last[at];
}
