//! Box arithmetic, written a second time: the graphs' own is what is being
//! checked, so of [`Box3`] only its corners are used, and of a region only its
//! list of boxes. Knows lists of boxes, not what they stand for.

use std::ops::Range;

use celerity_regions::Box3;
use smallvec::SmallVec;

/// A list of boxes. Disjoint unless said otherwise.
pub(crate) type Boxes = SmallVec<[Box3; 3]>;

/// The points that both boxes hold, if any.
#[inline]
pub(crate) fn overlap(a: &Box3, b: &Box3) -> Option<Box3> {
    let (mut min, mut max) = (a.min(), a.max());
    for dim in 0..3 {
        min[dim] = min[dim].max(b.min()[dim]);
        max[dim] = max[dim].min(b.max()[dim]);
        if min[dim] >= max[dim] {
            return None;
        }
    }
    Some(Box3::new(min, max))
}

/// Whether all of `inner` lies in `outer`. The empty box lies everywhere.
#[inline]
pub(crate) fn holds(outer: &Box3, inner: &Box3) -> bool {
    let inside = |dim| outer.min()[dim] <= inner.min()[dim] && inner.max()[dim] <= outer.max()[dim];
    inner.is_empty() || (inside(0) && inside(1) && inside(2))
}

/// The smallest box that holds both; the empty box is neutral.
pub(crate) fn bounds(a: &Box3, b: &Box3) -> Box3 {
    if a.is_empty() || b.is_empty() {
        return if a.is_empty() { *b } else { *a };
    }
    let low = std::array::from_fn(|dim| a.min()[dim].min(b.min()[dim]));
    let high = std::array::from_fn(|dim| a.max()[dim].max(b.max()[dim]));
    Box3::new(low, high)
}

/// Bytes of a dense box, saturating as an allocation's size does.
pub(crate) fn bytes(extent: &Box3, elem_size: u64) -> u64 {
    let side = |dim: usize| extent.max()[dim] - extent.min()[dim];
    [side(0), side(1), side(2), elem_size].into_iter().fold(1, u64::saturating_mul)
}

/// The bytes of a part of a dense, row-major array, if they lie side by side.
pub(crate) fn contiguous_bytes(part: &Box3, extent: &Box3, elem_size: u64) -> Option<Range<u64>> {
    if part.is_empty() || !holds(extent, part) {
        return None;
    }
    let position = |point: [u64; 3]| {
        (0..3).fold(0u64, |at, dim| {
            let side = extent.max()[dim] - extent.min()[dim];
            at.saturating_mul(side).saturating_add(point[dim] - extent.min()[dim])
        })
    };
    let (first, last) = (position(part.min()), position(part.max().map(|end| end - 1)));
    let dense = last - first + 1 == bytes(part, 1);
    dense.then(|| first.saturating_mul(elem_size)..(last + 1).saturating_mul(elem_size))
}

/// Calls `each` with boxes that are disjoint and together `whole` without
/// `hole`: at most two per dimension.
pub(crate) fn cut(whole: &Box3, hole: &Box3, mut each: impl FnMut(Box3)) {
    let Some(hole) = overlap(whole, hole) else { return each(*whole) };
    let (mut min, mut max) = (whole.min(), whole.max());
    for dim in 0..3 {
        if min[dim] < hole.min()[dim] {
            let mut end = max;
            end[dim] = hole.min()[dim];
            each(Box3::new(min, end));
            min[dim] = hole.min()[dim];
        }
        if hole.max()[dim] < max[dim] {
            let mut begin = min;
            begin[dim] = hole.max()[dim];
            each(Box3::new(begin, max));
            max[dim] = hole.max()[dim];
        }
    }
}

/// The union of two disjoint boxes, if that is a box.
#[inline]
pub(crate) fn join(a: &Box3, b: &Box3) -> Option<Box3> {
    let mut along = None;
    for dim in 0..3 {
        if a.min()[dim] != b.min()[dim] || a.max()[dim] != b.max()[dim] {
            if along.is_some() {
                return None;
            }
            along = Some(dim);
        }
    }
    let meets = |dim: usize| a.max()[dim] == b.min()[dim] || b.max()[dim] == a.min()[dim];
    along.is_some_and(meets).then(|| bounds(a, b))
}

/// Takes `hole` out of a list. Returns whether all of it was there.
pub(crate) fn subtract(list: &mut Boxes, hole: &Box3) -> bool {
    let mut missing: Boxes = SmallVec::from_slice(&[*hole]);
    let mut rest = Boxes::new();
    for part in list.iter() {
        if let Some(common) = overlap(part, hole) {
            missing = difference(&missing, &[common]);
        }
        cut(part, hole, |piece| rest.push(piece));
    }
    *list = rest;
    hole.is_empty() || missing.is_empty()
}

/// What is in `list` and in none of `holes`; the holes may overlap.
pub(crate) fn difference(list: &[Box3], holes: &[Box3]) -> Boxes {
    let mut rest: Boxes = list.iter().copied().filter(|part| !part.is_empty()).collect();
    for hole in holes {
        let mut next = Boxes::new();
        rest.iter().for_each(|part| cut(part, hole, |piece| next.push(piece)));
        rest = next;
    }
    rest
}

/// A box by which two sets of points differ, and whether it is the first set
/// that has it. The boxes of a set may overlap.
pub(crate) fn first_difference(a: &[Box3], b: &[Box3]) -> Option<(Box3, bool)> {
    if a == b {
        return None;
    }
    let only_a = difference(a, b).first().map(|part| (*part, true));
    only_a.or_else(|| difference(b, a).first().map(|part| (*part, false)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn small_box() -> impl Strategy<Value = Box3> {
        prop::array::uniform3((0..4u64, 0..4u64)).prop_map(|sides| {
            Box3::new(sides.map(|(min, _)| min), sides.map(|(min, length)| min + length))
        })
    }

    fn points(list: &[Box3]) -> Vec<[u64; 3]> {
        let all = (0..512u64).map(|n| [n / 64, n / 8 % 8, n % 8]);
        let inside = |at: &[u64; 3], part: &Box3| {
            (0..3).all(|dim| part.min()[dim] <= at[dim] && at[dim] < part.max()[dim])
        };
        all.filter(|at| list.iter().any(|part| inside(at, part))).collect()
    }

    fn union_of(list: &[Box3]) -> Boxes {
        list.iter().fold(Boxes::new(), |mut union, part| {
            let fresh = difference(&[*part], &union);
            union.extend(fresh);
            union
        })
    }

    fn volume(list: &[Box3]) -> u64 {
        list.iter().map(|part| bytes(part, 1)).sum()
    }

    proptest! {
        #[test]
        fn cutting_leaves_every_other_point_once(whole in small_box(), hole in small_box()) {
            let rest = difference(&[whole], &[hole]);
            let (all, taken) = (points(&[whole]), points(&[hole]));
            let expected: Vec<_> = all.into_iter().filter(|at| !taken.contains(at)).collect();
            prop_assert_eq!(volume(&rest), expected.len() as u64);
            prop_assert_eq!(points(&rest), expected);
        }

        #[test]
        fn sets_differ_where_one_has_a_point_more(
            a in prop::collection::vec(small_box(), 0..4),
            b in prop::collection::vec(small_box(), 0..4),
        ) {
            let equal = points(&a) == points(&b);
            prop_assert_eq!(first_difference(&a, &b).is_none(), equal);
        }

        #[test]
        fn boxes_join_only_where_nothing_is_added(a in small_box(), b in small_box()) {
            let apart = !a.is_empty() && !b.is_empty() && overlap(&a, &b).is_none();
            if let Some(joined) = join(&a, &b).filter(|_| apart) {
                prop_assert_eq!(points(&[joined]), points(&[a, b]));
            }
        }

        #[test]
        fn subtraction_tells_whether_all_was_there(
            list in prop::collection::vec(small_box(), 0..4),
            hole in small_box(),
        ) {
            let mut rest = union_of(&list);
            let complete = subtract(&mut rest, &hole);
            let had = points(&list);
            prop_assert_eq!(complete, points(&[hole]).iter().all(|at| had.contains(at)));
            prop_assert!(points(&rest).iter().all(|at| !points(&[hole]).contains(at)));
        }
    }

    #[test]
    fn rows_lie_side_by_side_and_columns_do_not() {
        let whole = Box3::new([1, 0, 0], [5, 6, 1]);
        let bytes = |min, max| contiguous_bytes(&Box3::new(min, max), &whole, 2);
        assert_eq!(bytes([2, 0, 0], [4, 6, 1]), Some(12..36));
        assert_eq!(bytes([4, 2, 0], [5, 5, 1]), Some(40..46));
        assert_eq!(bytes([2, 0, 0], [4, 5, 1]), None);
        assert_eq!(bytes([0, 0, 0], [4, 6, 1]), None, "it begins before the whole");
    }

    #[test]
    fn sizes_saturate() {
        let huge = Box3::new([0; 3], [1 << 50, 1 << 50, 1]);
        assert_eq!(bytes(&huge, 8), u64::MAX);
        assert_eq!(bytes(&Box3::EMPTY, 8), 0);
    }
}
