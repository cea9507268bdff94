//! The canonical form of the parts that two canonical regions have in common.
//!
//! Such parts are disjoint, and in every row they are maximal runs already: where one ends,
//! one of the operands ends, too. So all that can be left to do is to merge parts along the
//! slowest dimension, which one pass does; only in 3-D parts may also have to be cut and
//! merged along the middle dimension, which is left to a sweep.

use crate::box3::Box3;

/// Up to how many parts stitching beats a sweep even if many of them are long.
const STITCH_MAX: usize = 1024;

/// Brings `parts`, which come in ascending order of their first points, into canonical form;
/// how many boxes that leaves at the front, or `None` if it takes a sweep. O(n·w), where w is
/// the number of parts from the first to the last that meet at one coordinate of the slowest
/// dimension.
pub(super) fn stitch(parts: &mut [Box3]) -> Option<usize> {
    if parts.len() > STITCH_MAX {
        return None;
    }
    // The boxes `near..kept` may still reach the current position.
    let (mut near, mut kept) = (0, 0);
    for i in 0..parts.len() {
        let (earlier, later) = parts.split_at_mut(i);
        let part = &later[0];
        while near < kept && earlier[near].max()[0] < part.min()[0] {
            near += 1;
        }
        let mut grown = false;
        for other in &mut earlier[near..kept] {
            if other.max()[0] <= part.min()[0] {
                grown |= other.continue_by(part);
            } else if meet_in_plane(other, part) {
                return None;
            }
        }
        if !grown {
            // Most parts are where they belong already.
            if kept < i {
                earlier[kept] = *part;
            }
            kept += 1;
        }
    }
    Some(kept)
}

/// Whether two parts that share a plane have equal runs in neighbouring rows of it.
fn meet_in_plane(left: &Box3, right: &Box3) -> bool {
    let same_run = left.min()[2] == right.min()[2] && left.max()[2] == right.max()[2];
    same_run && left.min()[1] <= right.max()[1] && right.min()[1] <= left.max()[1]
}
