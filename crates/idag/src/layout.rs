//! Where elements lie in a dense, row-major allocation. Pure; knows boxes and nothing else.

use std::ops::Range;

use celerity_regions::Box3;

/// Whether `part` lies in one piece in a dense, row-major array of `extent`.
pub(crate) fn is_contiguous(part: &Box3, extent: &Box3) -> bool {
    elements_per_row(part, extent) == part.volume()
}

/// Elements of `part` that lie side by side in a dense allocation of `extent`.
pub(crate) fn elements_per_row(part: &Box3, extent: &Box3) -> u64 {
    let side = |of: &Box3, dim: usize| of.max()[dim] - of.min()[dim];
    let mut row = 1;
    for dim in (0..3).rev() {
        row *= side(part, dim);
        if side(part, dim) < side(extent, dim) {
            break;
        }
    }
    row
}

/// Where the elements of a contiguous `part` lie in an allocation of `extent`.
pub(crate) fn bytes_of(part: &Box3, extent: &Box3, elem_size: u64) -> Range<u64> {
    let (from, origin, end) = (part.min(), extent.min(), extent.max());
    let first =
        (0..3).fold(0, |offset, dim| offset * (end[dim] - origin[dim]) + (from[dim] - origin[dim]));
    first * elem_size..(first + part.volume()) * elem_size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_goes_on_where_it_is_as_wide_as_its_allocation() {
        let cube = Box3::from_range([4, 4, 4]);
        assert_eq!(elements_per_row(&Box3::from_range([2, 3, 4]), &cube), 12);
        assert_eq!(elements_per_row(&Box3::from_range([2, 4, 4]), &cube), 32);
        assert_eq!(elements_per_row(&Box3::from_range([4, 4, 1]), &cube), 1);
        assert_eq!(elements_per_row(&Box3::from_range([3]), &Box3::from_range([8])), 3);
    }

    #[test]
    fn rows_and_parts_of_one_row_lie_in_one_piece() {
        let whole = Box3::from_range([4, 6]);
        let part = |offset, range| Box3::from_offset_range(offset, range);
        for (part, bytes) in [
            (part([1, 0], [2, 6]), Some(48..144)),
            (part([3, 2], [1, 3]), Some(160..184)),
            (part([0, 0], [4, 6]), Some(0..192)),
            (part([1, 0], [2, 5]), None),
            (part([0, 3], [4, 1]), None),
        ] {
            assert_eq!(is_contiguous(&part, &whole), bytes.is_some(), "{part}");
            assert!(bytes.is_none_or(|bytes| bytes_of(&part, &whole, 8) == bytes), "{part}");
        }
    }
}
