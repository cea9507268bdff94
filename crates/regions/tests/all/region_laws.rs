//! Regions against bitmaps: every operation, in 0 to 3 dimensions, and the canonical form.

use celerity_regions::{Box3, Region, verify};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::common::{Bitmap, box_in, points, space};

/// A space and two lists of boxes in it, from none to enough for every code path.
fn operands() -> impl Strategy<Value = (Box3, Vec<Box3>, Vec<Box3>)> {
    let size = prop_oneof![2 => 0..6usize, 1 => 30..80usize];
    (0..=3usize, size.clone(), size).prop_flat_map(|(dims, left, right)| {
        let space = space(dims, if left + right < 12 { 6 } else { 12 });
        (Just(space), vec(box_in(space), left), vec(box_in(space), right))
    })
}

fn check(actual: &Region, expected: &Bitmap) -> Result<(), TestCaseError> {
    prop_assert_eq!(actual.boxes(), expected.canonical());
    prop_assert_eq!(verify(actual.boxes()), Ok(()));
    prop_assert_eq!(actual.volume(), expected.count());
    prop_assert_eq!(actual.is_empty(), expected.count() == 0);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn set_operations_match_bitmaps((space, left, right) in operands()) {
        let (l, r) = (Bitmap::from_boxes(space, &left), Bitmap::from_boxes(space, &right));
        let (left, right) = (Region::from_boxes(left), Region::from_boxes(right));
        check(&left, &l)?;
        check(&right, &r)?;
        check(&left.union(&right), &l.zip(&r, |l, r| l | r))?;
        check(&left.intersection(&right), &l.zip(&r, |l, r| l & r))?;
        check(&left.difference(&right), &l.zip(&r, |l, r| l & !r))?;
        let mut both = left.clone();
        both.union_with(&right);
        prop_assert_eq!(&both, &left.union(&right));
        both.subtract(&right);
        prop_assert_eq!(&both, &left.difference(&right));
    }

    /// Rows of boxes with and without gaps, in order, as windows of items give them, but for one that may be missing or reach further.
    #[test]
    fn grids_in_order_match_bitmaps(
        steps in proptest::array::uniform3(vec((0..3u64, 1..3u64), 1..4)),
        odd in (0..30usize, 0..3usize, 0..3u64),
    ) {
        let intervals = steps.map(|steps| {
            let mut end = 0;
            let interval = |(gap, length)| {
                let start = end + gap;
                end = start + length;
                start..end
            };
            steps.into_iter().map(interval).collect::<Vec<_>>()
        });
        let [slow, middle, fast] = &intervals;
        let mut boxes = Vec::new();
        for (z, y) in slow.iter().flat_map(|z| middle.iter().map(move |y| (z, y))) {
            let row = fast.iter();
            boxes.extend(row.map(|x| Box3::new([z.start, y.start, x.start], [z.end, y.end, x.end])));
        }
        let (nth, dim, further) = odd;
        if let Some(item) = boxes.get_mut(nth) {
            let mut max = item.max();
            max[dim] = if further == 2 { item.min()[dim] } else { max[dim] + further };
            *item = Box3::new(item.min(), max);
        }
        let space = Box3::from_range([13, 13, 13]);
        check(&Region::from_boxes(boxes.iter().copied()), &Bitmap::from_boxes(space, &boxes))?;
    }

    #[test]
    fn predicates_match_bitmaps((space, left, right) in operands()) {
        let (l, r) = (Bitmap::from_boxes(space, &left), Bitmap::from_boxes(space, &right));
        let (left, right) = (Region::from_boxes(left), Region::from_boxes(right));
        let shared = l.zip(&r, |l, r| l & r).count();
        prop_assert_eq!(left.intersects(&right), shared > 0);
        prop_assert_eq!(left.contains(&right), shared == r.count());
        prop_assert!(left.union(&right).contains(&right));
        prop_assert!(points(space).all(|p| left.contains_point(p) == l.get(p)));
        let bounds = left.bounding_box();
        prop_assert!(left.boxes().iter().all(|b| bounds.contains(b)));
        prop_assert_eq!(left.as_box().is_some(), left.boxes().len() == 1);
    }

    #[test]
    fn operations_with_a_box_match_those_with_its_region(
        (_, left, right) in operands().prop_filter("needs a box", |(_, _, r)| !r.is_empty())
    ) {
        let (left, single) = (Region::from_boxes(left), right[0]);
        let right = Region::from(single);
        prop_assert_eq!(left.intersects_box(&single), left.intersects(&right));
        prop_assert_eq!(left.contains_box(&single), left.contains(&right));
        prop_assert_eq!(left.intersection_box(&single), left.intersection(&right));
        prop_assert_eq!(left.difference_box(&single), left.difference(&right));
        let mut grown = left.clone();
        grown.union_box(&single);
        prop_assert_eq!(grown, left.union(&right));
    }

    #[test]
    fn representation_is_a_function_of_the_points(
        (_, mut boxes, _) in operands(), seed in any::<u64>()
    ) {
        let region = Region::from_boxes(boxes.iter().copied());
        let len = boxes.len().max(1);
        boxes.rotate_left(seed as usize % len);
        boxes.reverse();
        prop_assert_eq!(&Region::from_boxes(boxes), &region);
        prop_assert_eq!(&region.boxes().iter().rev().copied().collect::<Region>(), &region);
    }

    #[test]
    fn operations_at_the_far_end_of_the_coordinates(
        (_, left, right) in operands()
    ) {
        let shift = |b: &Box3| match b.is_empty() {
            true => *b,
            false => {
                let to_end = |c: u64| c + (u64::MAX - 12);
                Box3::new(b.min().map(to_end), b.max().map(to_end))
            }
        };
        let near = [&left, &right].map(|boxes| Region::from_boxes(boxes.iter().copied()));
        let far = [&left, &right].map(|boxes| boxes.iter().map(shift).collect::<Region>());
        let moved = |region: Region| region.boxes().iter().map(shift).collect::<Vec<_>>();
        for op in [Region::union, Region::intersection, Region::difference] {
            let expected = moved(op(&near[0], &near[1]));
            let found = op(&far[0], &far[1]);
            prop_assert_eq!(found.boxes(), expected);
        }
    }
}
