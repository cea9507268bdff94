//! Clamped surroundings against arithmetic on the whole buffer: one offset, and several at once.

use super::*;
use crate::bounds::Bounds;

const RANGE: [usize; 2] = [3, 5];

fn elements() -> [i32; 15] {
    core::array::from_fn(|i| i as i32)
}

fn row_at(
    elements: &[i32; 15],
    reach: Reach<2>,
    start: [usize; 2],
    len: usize,
) -> NeighborhoodRow<'_, i32, 2> {
    let layout = Layout::row_major(&Bounds::from_range(RANGE));
    // SAFETY: the layout covers the whole buffer, all of it borrowed.
    unsafe { NeighborhoodRow::new(elements.as_ptr(), &layout, &reach, RANGE, start, len) }
}

#[test]
fn interior_rows_shift_slices() {
    let elements = elements();
    let row = row_at(&elements, Reach::boxed([1, 1]), [1, 1], 3);
    assert_eq!(row.clamped([0, 0]), [6, 7, 8]);
    assert_eq!(row.clamped([-1, 1]), [2, 3, 4]);
    assert_eq!(row.get([1, -1]), Some(&[10, 11, 12][..]));
    assert_eq!(row.item(2).clamped([0, 1]), 9);
}

#[test]
fn the_slow_dimension_is_clamped_for_whole_rows() {
    let elements = elements();
    let row = row_at(&elements, Reach::boxed([2, 1]), [0, 1], 3);
    assert_eq!(row.clamped([-1, 0]), [1, 2, 3]);
    assert_eq!(row.get([-1, 0]), None);
    assert_eq!(row.clamped([2, 0]), [11, 12, 13]);
}

#[test]
fn rows_that_stay_inside_are_clamped_along_slower_dimensions_all_the_same() {
    let elements = elements();
    let row = row_at(&elements, Reach::boxed([2, 1]), [0, 1], 3);
    // SAFETY: one element lies to each side.
    let inside = unsafe { row.inside_rows() };
    for offset in [[0, 0], [0, -1], [0, 1], [-2, -1], [2, 1], [1, 0]] {
        assert_eq!(inside.clamped(offset), row.clamped(offset), "{offset:?}");
        assert_eq!(inside.clamped_each([offset]), row.clamped_each([offset]), "{offset:?}");
        assert_eq!(inside.get(offset), row.get(offset), "{offset:?}");
        assert_eq!(inside.item(1).get(offset), row.item(1).get(offset), "{offset:?}");
    }
    assert_eq!(inside.segment(1, 2).clamped([1, 1]), row.segment(1, 2).clamped([1, 1]));
}

#[test]
fn a_row_further_on_is_as_one_that_begins_there() {
    let elements = elements();
    let first = row_at(&elements, Reach::boxed([2, 1]), [0, 1], 3);
    for y in 0..RANGE[0] {
        // SAFETY: the layout has that row.
        let further = unsafe { first.rows_further(y) };
        let there = row_at(&elements, Reach::boxed([2, 1]), [y, 1], 3);
        for offset in [[0, 0], [0, -1], [-1, 1], [-2, 0], [1, 0], [2, 1]] {
            assert_eq!(further.clamped(offset), there.clamped(offset), "row {y}, {offset:?}");
            assert_eq!(further.get(offset), there.get(offset), "row {y}, {offset:?}");
        }
    }
}

#[test]
fn every_border_item_agrees_with_arithmetic() {
    let elements = elements();
    let at = |y: isize, x: isize| elements[(y.clamp(0, 2) * 5 + x.clamp(0, 4)) as usize];
    for (y, x) in (0..3).flat_map(|y| (0..5).map(move |x| (y, x))) {
        let row = row_at(&elements, Reach::boxed([2, 2]), [y as usize, x as usize], 1);
        for (dy, dx) in (-2..=2).flat_map(|dy| (-2..=2).map(move |dx| (dy, dx))) {
            let inside = (0..3).contains(&(y + dy)) && (0..5).contains(&(x + dx));
            assert_eq!(row.item(0).clamped([dy, dx]), at(y + dy, x + dx));
            assert_eq!(*row.item(0).clamped_ref([dy, dx]), at(y + dy, x + dx));
            let expected = inside.then(|| at(y + dy, x + dx));
            assert_eq!(row.item(0).get([dy, dx]), expected);
            assert_eq!(row.get([dy, dx]).map(|slice| slice[0]), expected);
        }
    }
}

#[test]
fn segments_are_like_rows_of_their_own() {
    let elements = elements();
    let whole = row_at(&elements, Reach::boxed([1, 2]), [1, 0], 5);
    for (start, len) in [(0, 1), (1, 1), (2, 1), (3, 2), (0, 5)] {
        let (segment, alone) =
            (whole.segment(start, len), row_at(&elements, whole.reach, [1, start], len));
        for (dy, dx) in (-1..=1).flat_map(|dy| (-2..=2).map(move |dx| (dy, dx))) {
            assert_eq!(segment.clamped([dy, dx]), alone.clamped([dy, dx]));
            assert_eq!(segment.get([dy, dx]), alone.get([dy, dx]));
        }
    }
}

#[test]
fn segments_of_segments_know_how_far_the_buffer_goes() {
    let elements = elements();
    let whole = row_at(&elements, Reach::boxed([1, 2]), [1, 0], 5);
    for (start, len) in [(0, 5), (1, 4), (1, 3), (2, 2)] {
        let part = whole.segment(start, len);
        for inner in 0..len {
            let (one, alone) =
                (part.segment(inner, 1), row_at(&elements, whole.reach, [1, start + inner], 1));
            for (dy, dx) in (-1..=1).flat_map(|dy| (-2..=2).map(move |dx| (dy, dx))) {
                assert_eq!(one.clamped([dy, dx]), alone.clamped([dy, dx]), "{:?}", [dy, dx]);
                assert_eq!(one.get([dy, dx]), alone.get([dy, dx]), "{:?}", [dy, dx]);
            }
        }
    }
}

/// Limits that no item reaches are none of a segment's items either.
#[test]
fn segments_where_no_edge_is_near_are_not_clamped() {
    let elements = elements();
    let whole = row_at(&elements, Reach::boxed([1, 1]), [1, 1], 3);
    // SAFETY: all that the reach allows from these items is in the buffer.
    let inner = unsafe {
        let limits = Limits::UNREACHED;
        NeighborhoodRow::from_parts(whole.first, whole.strides, whole.reach, limits, 3)
    };
    for (start, len) in [(0, 1), (1, 2), (2, 1), (0, 3)] {
        let (part, expected) = (inner.segment(start, len), whole.segment(start, len));
        let offsets = square::<9>(1);
        assert_eq!(part.clamped_each(offsets), expected.clamped_each(offsets));
        assert_eq!(part.get([-1, -1]), expected.get([-1, -1]));
        assert_eq!(part.get([1, 1]), expected.get([1, 1]));
    }
}

#[test]
#[should_panic(expected = "offset [0, -2] is not in the access's neighborhood([1, 1])")]
fn looking_too_far_names_offset_and_border() {
    let elements = elements();
    let _ = row_at(&elements, Reach::boxed([1, 1]), [1, 2], 1).clamped([0, -2]);
}

#[test]
#[should_panic(expected = "offset [1, 1] is not in the access's neighborhood_along_axes")]
fn diagonals_are_not_along_an_axis() {
    let elements = elements();
    let row = row_at(&elements, Reach::along_axes([1, 1]), [1, 2], 1);
    assert_eq!(row.item(0).clamped([1, 0]), 12);
    let _ = row.item(0).clamped([1, 1]);
}

/// All offsets of a box of `border` elements to either side, in two dimensions.
const fn square<const N: usize>(border: isize) -> [[isize; 2]; N] {
    let mut offsets = [[0; 2]; N];
    let (mut n, width) = (0, 2 * border + 1);
    while n < N {
        offsets[n] = [n as isize / width - border, n as isize % width - border];
        n += 1;
    }
    offsets
}

/// Each offset alone and all at once come to the same, for a row and for each of its items.
fn each_is_like_one<const D: usize, const N: usize>(
    row: &NeighborhoodRow<'_, i32, D>,
    offsets: [[isize; D]; N],
) {
    let alone = offsets.map(|offset| row.clamped(offset));
    assert_eq!(row.clamped_each(offsets), alone, "{offsets:?}");
    for i in 0..row.len() {
        let alone = alone.map(|slice| slice[i]);
        assert_eq!(row.item(i).clamped_each(offsets), alone, "{offsets:?} from item {i}");
    }
}

#[test]
fn all_offsets_at_once_are_clamped_at_every_edge_of_a_plane() {
    let elements = elements();
    let at = |y: isize, x: isize| elements[(y.clamp(0, 2) * 5 + x.clamp(0, 4)) as usize];
    let offsets = square::<25>(2);
    for (y, x) in (0..3).flat_map(|y| (0..5).map(move |x| (y, x))) {
        let row = row_at(&elements, Reach::boxed([2, 2]), [y as usize, x as usize], 1);
        let expected = offsets.map(|[dy, dx]| at(y + dy, x + dx));
        assert_eq!(row.item(0).clamped_each(offsets), expected, "around {:?}", [y, x]);
        assert_eq!(row.clamped_each(offsets).map(|slice| slice[0]), expected);
    }
    let inner = row_at(&elements, Reach::boxed([1, 1]), [1, 1], 3);
    assert_eq!(inner.clamped_each([[-1, 1], [1, -1]]), [[2, 3, 4], [10, 11, 12]]);
    each_is_like_one(&inner, square::<9>(1));
    each_is_like_one(&row_at(&elements, Reach::boxed([1, 1]), [2, 1], 3), square::<9>(1));
}

#[test]
fn all_offsets_at_once_on_a_line_and_in_space() {
    let elements: [i32; 24] = core::array::from_fn(|i| i as i32);
    let (range, layout) = ([24], Layout::row_major(&Bounds::from_range([24])));
    let line = |start, len| {
        let reach = Reach::boxed([2]);
        // SAFETY: the layout covers the whole buffer, all of it borrowed.
        unsafe { NeighborhoodRow::new(elements.as_ptr(), &layout, &reach, range, [start], len) }
    };
    assert_eq!(line(0, 1).item(0).clamped_each([[-2], [-1], [0], [1], [2]]), [0, 0, 0, 1, 2]);
    assert_eq!(line(23, 1).clamped_each([[-1], [2]]), [[22], [23]]);
    each_is_like_one(&line(2, 20), [[-2], [-1], [0], [1], [2]]);

    let (range, reach) = ([2, 3, 4], Reach::along_axes([1, 1, 1]));
    let layout = Layout::row_major(&Bounds::from_range(range));
    let sides = [[0; 3], [-1, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0], [0, 0, -1], [0, 0, 1]];
    for start in (0..24).map(|at| [at / 12, at / 4 % 3, at % 4]) {
        // SAFETY: as above.
        let row =
            unsafe { NeighborhoodRow::new(elements.as_ptr(), &layout, &reach, range, start, 1) };
        let [z, y, x] = start.map(|at| at as isize);
        let expected = sides.map(|[dz, dy, dx]| {
            let (z, y, x) = ((z + dz).clamp(0, 1), (y + dy).clamp(0, 2), (x + dx).clamp(0, 3));
            ((z * 3 + y) * 4 + x) as i32
        });
        assert_eq!(row.item(0).clamped_each(sides), expected, "around {start:?}");
        each_is_like_one(&row, sides);
    }
}

#[test]
fn as_many_offsets_as_can_be_given() {
    let elements = elements();
    let row = row_at(&elements, Reach::boxed([1, 1]), [1, 1], 3);
    each_is_like_one(&row, [[1, -1]]);
    let mut offsets = [[0; 2]; 64];
    for (n, offset) in offsets.iter_mut().enumerate() {
        *offset = square::<9>(1)[n % 9];
    }
    each_is_like_one(&row, offsets);
}

#[test]
#[should_panic(expected = "offset [0, 2] is not in the access's neighborhood([1, 1])")]
fn one_offset_of_a_row_that_is_too_far_is_named() {
    let elements = elements();
    let row = row_at(&elements, Reach::boxed([1, 1]), [1, 1], 3);
    let _ = row.clamped_each([[0, 1], [0, 2], [0, -1]]);
}

#[test]
#[should_panic(expected = "offset [-2, 0] is not in the access's neighborhood([1, 1])")]
fn one_offset_of_an_item_that_is_too_far_is_named() {
    let elements = elements();
    let row = row_at(&elements, Reach::boxed([1, 1]), [1, 1], 3);
    let _ = row.item(1).clamped_each([[0, 1], [0, -1], [-2, 0]]);
}

#[test]
#[should_panic(expected = "offset [1, -1] is not in the access's neighborhood_along_axes")]
fn one_diagonal_of_several_offsets_is_not_along_an_axis() {
    let elements = elements();
    let row = row_at(&elements, Reach::along_axes([1, 1]), [1, 1], 3);
    let _ = row.item(0).clamped_each([[0, 1], [1, -1]]);
}
