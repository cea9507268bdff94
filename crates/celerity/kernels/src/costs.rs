//! One step of the wave equation in forms that differ in how they find a cell: what
//! indices of 32 and 64 bits, and checks of bounds, cost. All give the same bits.
#![allow(unsafe_code)]

use celerity_kernel::{Item, PeriodicItem, PeriodicRow, Row, WholeView, kernel};

use crate::wave::{Star, next, next_row};

/// The yardstick: reads and writes each element once.
#[kernel]
pub fn copy_row(_row: Row<2>, (to, from): (&mut [f32], &[f32])) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

/// Every coordinate of every cell is checked by the view.
#[kernel]
pub fn step_by_index(item: Item<2>, (up, u): (&mut f32, WholeView<'_, f32, 2>), c: f32) {
    let star = star_64(item.id(), u.range(), |row, column| u[[row, column]]);
    *up = next(*up, star, c);
}

/// Every position, of 64 bits, is checked once.
#[kernel]
pub fn step_checked_64(item: Item<2>, (up, u): (&mut f32, WholeView<'_, f32, 2>), c: f32) {
    let (cells, [_, width]) = (u.as_slice(), u.range());
    let cell = |row: usize, column: usize| cells.get(row * width + column).copied();
    let star = star_64(item.id(), u.range(), |row, column| cell(row, column).unwrap_or(0.0));
    *up = next(*up, star, c);
}

/// The same with positions of 32 bits.
#[kernel]
pub fn step_checked_32(item: Item<2>, (up, u): (&mut f32, WholeView<'_, f32, 2>), c: f32) {
    let cells = u.as_slice();
    let (at, range) = (item.id().map(narrow), u.range().map(narrow));
    let cell = |row: u32, column: u32| cells.get((row * range[1] + column) as usize).copied();
    let star = star_32(at, range, |row, column| cell(row, column).unwrap_or(0.0));
    *up = next(*up, star, c);
}

/// The item is checked, and none of the cells around it; positions are of 64 bits.
#[kernel]
pub fn step_unchecked_64(item: Item<2>, (up, u): (&mut f32, WholeView<'_, f32, 2>), c: f32) {
    let (cells, at, range) = (u.as_slice(), item.id(), u.range());
    if at[0] >= range[0] || at[1] >= range[1] {
        return;
    }
    // SAFETY: the item is inside, and `star_64` asks for nothing beyond the edges.
    let cell = |row: usize, column: usize| unsafe { *cells.get_unchecked(row * range[1] + column) };
    *up = next(*up, star_64(at, range, cell), c);
}

/// The same with positions of 32 bits.
#[kernel]
pub fn step_unchecked_32(item: Item<2>, (up, u): (&mut f32, WholeView<'_, f32, 2>), c: f32) {
    let (cells, at, range) = (u.as_slice(), item.id(), u.range());
    if at[0] >= range[0] || at[1] >= range[1] || cells.len() > u32::MAX as usize {
        return;
    }
    let (at, range) = (at.map(narrow), range.map(narrow));
    // SAFETY: the item is inside, `star_32` asks for nothing beyond the edges, and every
    // position fits 32 bits.
    let cell =
        |row: u32, column: u32| unsafe { *cells.get_unchecked((row * range[1] + column) as usize) };
    *up = next(*up, star_32(at, range, cell), c);
}

/// The step on a torus: opposite edges meet.
#[kernel(registers(wide = 64))]
pub fn step_around(_item: Item<2>, (up, u): (&mut f32, PeriodicItem<'_, f32, 2>), c: f32) {
    *up = next(*up, Star::around(|offset| u.at(offset)), c);
}

/// The same for a run of cells.
#[kernel(registers(wide = 64))]
pub fn step_around_row(_row: Row<2>, (up, u): (&mut [f32], PeriodicRow<'_, f32, 2>), c: f32) {
    next_row(up, Star::around(|offset| u.at(offset)), c);
}

/// The step on a torus, of which every coordinate of every cell is checked by the view.
#[kernel]
pub fn step_around_by_index(item: Item<2>, (up, u): (&mut f32, WholeView<'_, f32, 2>), c: f32) {
    let ([row, column], [rows, columns]) = (item.id(), u.range());
    let star = Star {
        centre: u[[row, column]],
        north: u[[(row + rows - 1) % rows, column]],
        south: u[[(row + 1) % rows, column]],
        west: u[[row, (column + columns - 1) % columns]],
        east: u[[row, (column + 1) % columns]],
    };
    *up = next(*up, star, c);
}

#[inline]
const fn narrow(index: usize) -> u32 {
    index as u32
}

macro_rules! star {
    ($name:ident, $index:ty) => {
        /// A cell and its neighbours; beyond an edge the cell at the edge.
        #[inline]
        fn $name(
            [row, column]: [$index; 2],
            [rows, columns]: [$index; 2],
            cell: impl Fn($index, $index) -> f32,
        ) -> Star<f32> {
            Star {
                centre: cell(row, column),
                north: cell(row.saturating_sub(1), column),
                south: cell((row + 1).min(rows - 1), column),
                west: cell(row, column.saturating_sub(1)),
                east: cell(row, (column + 1).min(columns - 1)),
            }
        }
    };
}

star!(star_64, usize);
star!(star_32, u32);
