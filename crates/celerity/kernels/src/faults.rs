//! Kernels that fail, to see how that is told.

use celerity_kernel::{Item, Local, NdItem, PartView, kernel};

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

/// Turns around what the items of a group of 32 have, but for one, which fails while the
/// others of its group wait for it.
#[kernel]
pub fn turn(item: NdItem<'_, 1>, cell: &mut u32, cells: Local<'_, u32, 32>, fragile: usize) {
    let [at] = item.local_id();
    cells.set(at, *cell);
    item.group().barrier();
    assert!(item.id()[0] != fragile, "an item of glass among others");
    *cell = cells.get(31 - at);
    item.group().barrier();
}
