//! Cutting regions: into parts that need an allocation each, and into parts
//! that different consumers wait for.

use celerity_regions::{Box3, Region};
use smallvec::SmallVec;

pub(crate) type Pieces = SmallVec<[Region; 2]>;

/// The parts of a region whose bounding boxes do not overlap or touch: each
/// needs a contiguous allocation, since a sender's box may span it (002 §3.4 b).
pub(crate) fn contiguous_pieces(region: &Region) -> Pieces {
    if region.as_box().is_some() || region.is_empty() {
        return region.as_box().into_iter().map(Region::from).collect();
    }
    let mut groups: Vec<(Box3, Vec<Box3>)> = Vec::new();
    for &part in region.boxes() {
        let mut group = (part, vec![part]);
        while let Some(near) = groups.iter().position(|other| touches(&other.0, &group.0)) {
            let (bounds, parts) = groups.swap_remove(near);
            group.0 = group.0.bounding(&bounds);
            group.1.extend(parts);
        }
        groups.push(group);
    }
    groups.into_iter().map(|(_, parts)| Region::from_boxes(parts)).collect()
}

/// Whether two boxes overlap or share a part of a face.
fn touches(a: &Box3, b: &Box3) -> bool {
    #[cfg(feature = "mutants")]
    if celerity_mutants::Mutant::PiecesNotJoined.is_active() {
        return false;
    }
    let (mut gaps, mut inside) = (0, true);
    for dim in 0..3 {
        let low = a.min()[dim].max(b.min()[dim]);
        let high = a.max()[dim].min(b.max()[dim]);
        inside &= low <= high;
        gaps += usize::from(low == high);
    }
    inside && gaps <= 1
}

/// More parts than this cost more than they gain: consumers then wait for all.
const MAX_PARTS: usize = 64;

/// Cuts `region` along the borders of what each consumer reads: every part is
/// read as a whole or not at all by each of them. One part if they all read
/// the same, or if the cut would be too fine.
pub(crate) fn consumer_split<'a>(
    region: &Region,
    consumers: impl Iterator<Item = &'a Region>,
) -> Pieces {
    let mut parts: Pieces = [region.clone()].into_iter().collect();
    for consumer in consumers {
        let mut finer = Pieces::new();
        for part in parts {
            let (read, unread) = (part.intersection(consumer), part.difference(consumer));
            finer.extend([read, unread].into_iter().filter(|piece| !piece.is_empty()));
        }
        parts = finer;
        if parts.len() > MAX_PARTS {
            return [region.clone()].into_iter().collect();
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(min: usize, len: usize) -> Region {
        Box3::from_offset_range([min, 0], [len, 8]).into()
    }

    #[test]
    fn separate_rows_are_separate_pieces() {
        let region = rows(0, 1).union(&rows(5, 1));
        assert_eq!(contiguous_pieces(&region).as_slice(), [rows(0, 1), rows(5, 1)]);
    }

    #[test]
    fn an_l_shape_is_one_piece() {
        let corner = Region::from_boxes([
            Box3::from_offset_range([0, 0], [4, 1]),
            Box3::from_offset_range([3, 1], [1, 4]),
        ]);
        assert_eq!(contiguous_pieces(&corner).as_slice(), [corner]);
    }

    #[test]
    fn corners_alone_do_not_touch() {
        let a = Box3::from_offset_range([0, 0], [2, 2]);
        assert!(!touches(&a, &Box3::from_offset_range([2, 2], [2, 2])));
        assert!(touches(&a, &Box3::from_offset_range([2, 1], [2, 2])));
        assert!(!touches(&a, &Box3::from_offset_range([3, 0], [2, 2])));
    }

    #[test]
    fn consumers_cut_where_their_reads_begin_and_end() {
        let halo = rows(0, 1).union(&rows(5, 1));
        let (first, last) = (rows(0, 3), rows(3, 3));
        let parts = consumer_split(&halo, [&first, &last].into_iter());
        assert_eq!(parts.as_slice(), [rows(0, 1), rows(5, 1)]);
        let all = rows(0, 8);
        assert_eq!(consumer_split(&halo, [&all, &all].into_iter()).as_slice(), [halo]);
    }
}
