//! Cutting boxes of elements into pieces that a network or a window takes. Pure.

use celerity_regions::Box3;
use smallvec::SmallVec;

/// Cuts a box of elements into boxes of at most `limit` bytes each, along the
/// slowest dimensions. It depends on nothing else, so that sender and receiver
/// cut alike. An element larger than the limit is a piece.
#[must_use]
pub fn cut_elements(elements: &Box3, elem_size: u64, limit: u64) -> SmallVec<[Box3; 1]> {
    let mut out = SmallVec::new();
    cut(elements, 0, elem_size, limit, &mut out);
    out
}

fn cut(part: &Box3, dim: usize, elem_size: u64, limit: u64, out: &mut SmallVec<[Box3; 1]>) {
    let bytes = part.volume().saturating_mul(elem_size);
    if dim == 3 || bytes <= limit {
        return out.push(*part);
    }
    let (min, max) = (part.min(), part.max());
    let line = bytes / part.range()[dim];
    let lines = (limit / line).max(1);
    let mut from = min[dim];
    while from < max[dim] {
        let to = max[dim].min(from + lines);
        let (mut low, mut high) = (min, max);
        (low[dim], high[dim]) = (from, to);
        cut(&Box3::new(low, high), dim + 1, elem_size, limit, out);
        from = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The elements of a box, in order.
    fn walked(elements: &Box3) -> Vec<[u64; 3]> {
        let (min, max) = elements.corners();
        let rows = (min[0]..max[0]).flat_map(|z| (min[1]..max[1]).map(move |y| (z, y)));
        rows.flat_map(|(z, y)| (min[2]..max[2]).map(move |x| [z, y, x])).collect()
    }

    #[test]
    fn pieces_keep_the_limit_and_cover_the_box_in_order() {
        let whole = Box3::new([2, 3, 4], [5, 8, 11]);
        for limit in [1, 4, 8, 27, 28, 29, 56, 139, 140, 141, 280, 420, 10_000] {
            let pieces = cut_elements(&whole, 4, limit);
            assert!(pieces.iter().all(|piece| piece.volume() * 4 <= limit.max(4)), "{limit}");
            let covered: Vec<_> = pieces.iter().flat_map(walked).collect();
            assert_eq!(covered, walked(&whole), "{limit}");
        }
        assert_eq!(cut_elements(&whole, 4, 420).as_slice(), [whole]);
    }

    #[test]
    fn boxes_beyond_memory_are_cut_too() {
        let whole = Box3::new([0, 0, 0], [1, 1 << 20, 1 << 20]);
        let pieces = cut_elements(&whole, 8, 1 << 30);
        assert_eq!(pieces.len(), 1 << 13);
        assert_eq!(pieces.iter().map(Box3::volume).sum::<u64>(), whole.volume());
    }

    #[test]
    fn no_elements_are_one_piece() {
        assert_eq!(cut_elements(&Box3::EMPTY, 8, 1).as_slice(), [Box3::EMPTY]);
    }
}
