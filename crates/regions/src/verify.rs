//! The contract of regions and region maps, and a check of it: what their lists of boxes
//! promise. It compares boxes in pairs and shares nothing with the sweep that makes the
//! canonical form.

use crate::box3::Box3;

/// A promise that is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Broken {
    /// A box without points.
    #[error("box {position} is empty")]
    Empty {
        /// Its place in the list.
        position: usize,
    },
    /// Boxes out of order.
    #[error("{second} comes after {first}")]
    Order {
        /// The earlier one in the list.
        first: Box3,
        /// The one after it.
        second: Box3,
    },
    /// Boxes that share points.
    #[error("{first} and {second} overlap")]
    Overlap {
        /// The earlier one in the list.
        first: Box3,
        /// The later one.
        second: Box3,
    },
    /// Boxes that the canonical form has as one, or has cut elsewhere.
    #[error("{first} and {second} touch along dimension {dim} and are not merged")]
    Unmerged {
        /// The earlier one in the list.
        first: Box3,
        /// The later one.
        second: Box3,
        /// The dimension, 0 being the slowest.
        dim: usize,
    },
    /// An entry that reaches outside the extent of its map.
    #[error("{entry} is not within {extent}")]
    Outside {
        /// The box of the entry.
        entry: Box3,
        /// That of the map.
        extent: Box3,
    },
    /// Elements of a map's extent that have no entry.
    #[error("{missing} elements of {extent} have no entry")]
    Uncovered {
        /// Elements without an entry.
        missing: u64,
        /// The extent of the map.
        extent: Box3,
    },
}

/// Checks that `boxes` are the canonical form of a region, as
/// [`Region::boxes`](crate::Region::boxes) returns it.
///
/// **Set.** No box is empty, and no two share a point.
///
/// **Order.** Boxes ascend by their first points.
///
/// **Normal form.** Runs along the fastest dimension are maximal: no two that share a row
/// touch. Equal runs are merged along the next slower dimension: no two that share a plane
/// touch in it. Equal rectangles are merged along the slowest: no two touch. Of all lists of
/// disjoint boxes that hold the same points, this is true of one alone.
///
/// O(n²) for n boxes.
///
/// # Errors
/// All promises that are broken, in the order of the boxes.
///
/// ```
/// use celerity_regions::{Box3, Broken, Region, verify};
/// let [upper, lower] = [0, 2].map(|row| Box3::from_offset_range([row, 0], [2, 4]));
/// let region = Region::from_boxes([lower, upper]);
/// assert_eq!(verify(region.boxes()), Ok(()));
/// let apart = Broken::Unmerged { first: upper, second: lower, dim: 0 };
/// assert_eq!(verify(&[upper, lower]), Err(vec![apart]));
/// ```
pub fn verify(boxes: &[Box3]) -> Result<(), Vec<Broken>> {
    let mut broken = Vec::new();
    for (position, second) in boxes.iter().enumerate() {
        if second.is_empty() {
            broken.push(Broken::Empty { position });
            continue;
        }
        let earlier = boxes[..position].iter().filter(|first| !first.is_empty());
        if let Some(&first) = earlier.clone().next_back()
            && first.min() >= second.min()
        {
            broken.push(Broken::Order { first, second: *second });
        }
        broken.extend(earlier.filter_map(|first| conflict(first, second)));
    }
    if broken.is_empty() { Ok(()) } else { Err(broken) }
}

/// Checks that `entries` are what a [`RegionMap`](crate::RegionMap) over `extent` may hold:
/// non-empty boxes within the extent, no two of which share an element, that cover it, and
/// no two entries of equal value that together are a box.
///
/// O(n²) for n entries. Elements are counted, so what an extent of more than 2⁶⁴ of them
/// lacks is not seen.
///
/// # Errors
/// All promises that are broken, in the order of the entries.
///
/// ```
/// use celerity_regions::{Box3, RegionMap, verify_entries};
/// let extent = Box3::from_range([8]);
/// let mut map = RegionMap::new(extent, 'a');
/// map.update_box(&Box3::from_range([3]), 'b');
/// let entries: Vec<_> = map.iter().map(|(part, value)| (part, *value)).collect();
/// assert_eq!(verify_entries(&extent, &entries), Ok(()));
/// ```
pub fn verify_entries<V: PartialEq>(
    extent: &Box3,
    entries: &[(Box3, V)],
) -> Result<(), Vec<Broken>> {
    let mut broken = Vec::new();
    for (position, (entry, value)) in entries.iter().enumerate() {
        if entry.is_empty() {
            broken.push(Broken::Empty { position });
        } else if !extent.contains(entry) {
            broken.push(Broken::Outside { entry: *entry, extent: *extent });
        }
        let conflicts = entries[..position].iter().filter_map(|(earlier, other)| {
            let unmerged = || merge_along(earlier, entry).filter(|_| value == other);
            overlap(earlier, entry).or_else(|| {
                unmerged().map(|dim| Broken::Unmerged { first: *earlier, second: *entry, dim })
            })
        });
        broken.extend(conflicts);
    }
    let covered = entries.iter().fold(0, |sum: u64, (entry, _)| sum.saturating_add(entry.volume()));
    if covered < extent.volume() {
        broken.push(Broken::Uncovered { missing: extent.volume() - covered, extent: *extent });
    }
    if broken.is_empty() { Ok(()) } else { Err(broken) }
}

/// What keeps two boxes from being in one region.
fn conflict(first: &Box3, second: &Box3) -> Option<Broken> {
    let meets = |dim| meets(first, second, dim);
    let touches = |dim| touches(first, second, dim);
    let same = |dim| same(first, second, dim);
    let dim = if meets(0) && meets(1) && touches(2) {
        2
    } else if meets(0) && touches(1) && same(2) {
        1
    } else if touches(0) && same(1) && same(2) {
        0
    } else {
        return overlap(first, second);
    };
    Some(Broken::Unmerged { first: *first, second: *second, dim })
}

fn overlap(first: &Box3, second: &Box3) -> Option<Broken> {
    let meet = (0..3).all(|dim| meets(first, second, dim));
    meet.then_some(Broken::Overlap { first: *first, second: *second })
}

/// The dimension along which two boxes, which share no point, together are a box.
fn merge_along(first: &Box3, second: &Box3) -> Option<usize> {
    let agree_beside = |dim: usize| (0..3).all(|other| other == dim || same(first, second, other));
    (0..3).find(|&dim| touches(first, second, dim) && agree_beside(dim))
}

/// Whether the intervals of two boxes in a dimension share a position.
fn meets(first: &Box3, second: &Box3, dim: usize) -> bool {
    first.min()[dim] < second.max()[dim] && second.min()[dim] < first.max()[dim]
}

/// Whether one interval begins where the other ends.
fn touches(first: &Box3, second: &Box3, dim: usize) -> bool {
    first.max()[dim] == second.min()[dim] || second.max()[dim] == first.min()[dim]
}

fn same(first: &Box3, second: &Box3, dim: usize) -> bool {
    (first.min()[dim], first.max()[dim]) == (second.min()[dim], second.max()[dim])
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPPER: Box3 = Box3::new([0, 0, 0], [2, 4, 1]);
    const LOWER: Box3 = Box3::new([2, 0, 0], [4, 4, 1]);
    const RIGHT: Box3 = Box3::new([1, 4, 0], [3, 6, 1]);

    #[test]
    fn each_broken_promise_is_named() {
        let (first, second) = (UPPER, LOWER);
        assert_eq!(verify(&[Box3::EMPTY]), Err(vec![Broken::Empty { position: 0 }]));
        let back = Box3::from_offset_range([0, 5], [1, 1]);
        let order = Broken::Order { first: second, second: back };
        assert_eq!(verify(&[second, back]), Err(vec![order]));
        let inside = Box3::from_offset_range([1, 1], [1, 1]);
        assert_eq!(verify(&[first, inside]), Err(vec![Broken::Overlap { first, second: inside }]));
        // In the third row's place both would be one run: the boxes have to be cut there.
        let cut = Broken::Unmerged { first, second: RIGHT, dim: 1 };
        assert_eq!(verify(&[first, RIGHT]), Err(vec![cut]));
        let cube = |at: u64| Box3::new([0, 0, at], [1, 1, at + 1]);
        let run = Broken::Unmerged { first: cube(0), second: cube(1), dim: 2 };
        assert_eq!(verify(&[cube(0), cube(1)]), Err(vec![run]));
        assert_eq!(
            run.to_string(),
            "[0..1] and [0..1, 0..1, 1..2] touch along dimension 2 and are not merged"
        );
    }

    #[test]
    fn entries_partition_their_extent() {
        let extent = UPPER.bounding(&LOWER);
        assert_eq!(verify_entries(&extent, &[(UPPER, 1), (LOWER, 2)]), Ok(()));
        let equal = Broken::Unmerged { first: UPPER, second: LOWER, dim: 0 };
        assert_eq!(verify_entries(&extent, &[(UPPER, 1), (LOWER, 1)]), Err(vec![equal]));
        let missing = Broken::Uncovered { missing: 8, extent };
        assert_eq!(verify_entries(&extent, &[(UPPER, 1)]), Err(vec![missing]));
        let outside = Broken::Outside { entry: RIGHT, extent: UPPER };
        assert_eq!(verify_entries(&UPPER, &[(UPPER, 1), (RIGHT, 2)]), Err(vec![outside]));
    }
}
