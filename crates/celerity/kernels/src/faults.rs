//! Kernels that fail, to see how that is told.

use celerity_kernel::{Item, PartView, kernel};

/// Numbers the elements, but for one.
#[kernel]
pub fn number(item: Item<1>, cell: &mut u32, fragile: usize) {
    assert!(item[0] != fragile, "an item of glass");
    *cell = item[0] as u32;
}

/// Looks at one element, which may lie outside of the part that is there.
#[kernel]
pub fn look(_item: Item<1>, (cell, part): (&mut u32, PartView<'_, u32, 1>), index: usize) {
    *cell = part[index];
}
