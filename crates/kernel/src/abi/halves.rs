//! What becomes of items that no launch has room for.

use super::parameters::{along_axes, words};
use super::{Description, Form, Geometry};
use crate::bounds::Bounds;

/// Two parts of items that no launch has room for, each a number of whole groups; `None` if there is room, or
/// nothing to cut. Kernels that reduce have room for all tiles there are. O(1).
#[must_use]
pub fn halves(
    kernel: &Description,
    items: &Bounds<3>,
    group: [usize; 3],
) -> Option<[Bounds<3>; 2]> {
    let (dims, min, max, range) = (kernel.dims, items.min(), items.max(), items.range());
    let threads = along_axes(dims, words(range));
    let has_room = match kernel.form {
        _ if kernel.reduces() => true,
        Form::Group => Geometry::in_blocks(threads, along_axes(dims, words(group))).is_some(),
        Form::Item | Form::Row => Geometry::covering(threads, false, None).is_some(),
    };
    // A device has least room along the slower dimensions.
    let slower = 0..dims.saturating_sub(1).max(1);
    let groups = |dim: usize| range[dim] / group[dim].max(1);
    let dim = slower.max_by_key(|&dim| groups(dim)).filter(|&dim| !has_room && groups(dim) > 1)?;
    let (mut end, mut begin) = (max, min);
    end[dim] = min[dim] + groups(dim) / 2 * group[dim];
    begin[dim] = end[dim];
    Some([Bounds::new(min, end), Bounds::new(begin, max)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_launch_has_room_for_is_cut_between_groups() {
        let group = [1, 32, 1];
        let cut = |form, dims, range: [usize; 3], group| {
            let items =
                Bounds::new([6, 64, 0], core::array::from_fn(|dim| [6, 64, 0][dim] + range[dim]));
            let found = halves(&Description::unnamed(form, dims, &[]), &items, group);
            found.map(|halves| halves.map(|half| (half.min(), half.max())))
        };
        assert_eq!(cut(Form::Group, 2, [65_535, 256, 1], group), None);
        let halves = [([6, 64, 0], [32_774, 320, 1]), ([32_774, 64, 0], [65_542, 320, 1])];
        assert_eq!(cut(Form::Group, 2, [65_536, 256, 1], group), Some(halves));
        // In groups of three rows, and along the dimension between.
        assert_eq!(cut(Form::Group, 2, [3 * 65_535, 32, 1], [3, 32, 1]), None);
        let first = cut(Form::Group, 2, [3 * 65_537, 32, 1], [3, 32, 1]).map(|[first, _]| first);
        assert_eq!(first, Some(([6, 64, 0], [6 + 3 * 32_768, 96, 1])));
        let first = cut(Form::Group, 3, [2, 65_536, 8], [1, 1, 8]).map(|[first, _]| first);
        assert_eq!(first, Some(([6, 64, 0], [8, 64 + 32_768, 8])));
        // Items have blocks of several rows and planes.
        assert_eq!(cut(Form::Item, 2, [1 << 20, 4, 1], [1; 3]), None);
        assert!(cut(Form::Item, 2, [1 << 27, 4, 1], [1; 3]).is_some());
        assert_eq!(cut(Form::Row, 3, [1 << 21, 4, 4], [1; 3]), None);
        assert!(cut(Form::Row, 3, [1 << 22, 4, 4], [1; 3]).is_some());
        // A line is the grid's longest side.
        assert_eq!(cut(Form::Item, 1, [1 << 30, 1, 1], [1; 3]), None);
    }
}
