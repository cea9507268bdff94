//! Walking geometry point by point, so that the models need none of the region
//! algebra that they judge. Knows boxes, nothing of buffers or tasks.

use std::collections::BTreeSet;

use celerity_regions::{Box3, Coord3, Region};

/// All points of a box, row-major. None for an empty box.
pub fn points(of: &Box3) -> impl Iterator<Item = Coord3> + use<> {
    let (min, max) = (of.min(), of.max());
    (min[0]..max[0]).flat_map(move |x| {
        (min[1]..max[1]).flat_map(move |y| (min[2]..max[2]).map(move |z| [x, y, z]))
    })
}

/// The position of `point` among the [`points`] of `extent`, which contains it.
#[must_use]
pub fn slot(extent: &Box3, point: Coord3) -> usize {
    debug_assert!(extent.contains_point(point), "{point:?} lies outside of {extent}");
    let (min, range) = (extent.min(), extent.range());
    let linear =
        ((point[0] - min[0]) * range[1] + (point[1] - min[1])) * range[2] + (point[2] - min[2]);
    usize::try_from(linear).expect("test buffers are small")
}

/// The point at position `slot` of `extent`; inverse of [`slot`].
#[must_use]
pub fn point(extent: &Box3, slot: usize) -> Coord3 {
    let (min, range, slot) = (extent.min(), extent.range(), slot as u64);
    let (row, z) = (slot / range[2], slot % range[2]);
    [min[0] + row / range[1], min[1] + row % range[1], min[2] + z]
}

/// Number of elements as a table size.
#[must_use]
pub fn volume(of: &Box3) -> usize {
    usize::try_from(of.volume()).expect("test boxes are small")
}

/// The slots in `extent` that a region covers, ascending.
///
/// # Panics
/// If the region leaves the extent.
#[must_use]
pub fn slots(extent: &Box3, region: &Region) -> BTreeSet<usize> {
    let boxes = region.boxes().iter();
    boxes.flat_map(|part| box_slots(extent, part)).collect()
}

/// The slots in `extent` that a box covers, ascending.
///
/// # Panics
/// If the box leaves the extent.
pub fn box_slots(extent: &Box3, part: &Box3) -> impl Iterator<Item = usize> + use<> {
    assert!(extent.contains(part), "{part} leaves {extent}");
    let extent = *extent;
    points(part).map(move |point| slot(&extent, point))
}
