//! Kernels whose items have parts of their own in buffers of other dimensions than the index space: whatever
//! `per_dimension` can say. Each item marks what it has.

use celerity_kernel::{Item, PartViewMut, Row, kernel};

/// The mark of the element at `index`, which belongs to item `item` of all.
#[must_use]
pub const fn mark(item: usize, index: [usize; 3]) -> u64 {
    let [z, y, x] = index;
    ((((item as u64 + 1) * 61 + z as u64) * 61 + y as u64) * 61) + x as u64
}

/// Of a line of items, parts of a plane.
#[kernel]
pub fn mark_plane(item: Item<1>, mut own: PartViewMut<'_, u64, 2>) {
    let ([top, left], [bottom, right]) = (own.bounds().min(), own.bounds().max());
    for y in top..bottom {
        for x in left..right {
            own[[y, x]] = mark(item[0], [0, y, x]);
        }
    }
}

/// Of a plane of items, parts of a line.
#[kernel]
pub fn mark_line(item: Item<2>, mut own: PartViewMut<'_, u64, 1>) {
    let ([first], [end]) = (own.bounds().min(), own.bounds().max());
    for x in first..end {
        own[x] = mark(item.linear_id(), [0, 0, x]);
    }
}

/// Of a plane of items, parts of a space.
#[kernel]
pub fn mark_space(item: Item<2>, mut own: PartViewMut<'_, u64, 3>) {
    let ([front, top, left], [back, bottom, right]) = (own.bounds().min(), own.bounds().max());
    for z in front..back {
        for y in top..bottom {
            let mut row = own.row_mut([z, y]);
            for x in left..right {
                row[x] = mark(item.linear_id(), [z, y, x]);
            }
        }
    }
}

/// Of items side by side on a plane, what they have together of a plane, each with the row's number.
#[kernel]
pub fn mark_together(row: Row<2>, mut own: PartViewMut<'_, u64, 2>) {
    let ([top, left], [bottom, right]) = (own.bounds().min(), own.bounds().max());
    for y in top..bottom {
        for x in left..right {
            own[[y, x]] = mark(row.start()[0], [0, y, x]);
        }
    }
}
