//! Views of parts against arithmetic on the whole buffer: every index, range, row and column.

use std::vec;
use std::vec::Vec;

use super::*;

const RANGE: [usize; 2] = [4, 5];
const PARTS: [Bounds<2>; 5] = [
    Bounds::EMPTY,
    Bounds::new([1, 2], [2, 4]),
    Bounds::new([2, 0], [4, 5]),
    Bounds::new([0, 4], [4, 5]),
    Bounds::from_range(RANGE),
];

fn view(elements: &[i32; 20], part: Bounds<2>) -> PartView<'_, i32, 2> {
    // SAFETY: the layout covers the whole array, all of it borrowed.
    unsafe { PartView::new(elements.as_ptr(), Layout::row_major(&Bounds::from_range(RANGE)), part) }
}

fn elements() -> [i32; 20] {
    core::array::from_fn(|i| i as i32)
}

/// Elements `offset ..` of a buffer with one dimension, of which `part` is declared.
fn line(elements: &[i32], offset: usize, part: Bounds<1>) -> PartView<'_, i32, 1> {
    let layout = Layout::row_major(&Bounds::new([offset], [offset + elements.len()]));
    // SAFETY: the layout is that of the slice, which is borrowed.
    unsafe { PartView::new(elements.as_ptr(), layout, part) }
}

#[test]
fn exactly_the_part_can_be_read() {
    let elements = elements();
    for part in PARTS {
        let view = view(&elements, part);
        for (y, x) in (0..6).flat_map(|y| (0..6).map(move |x| (y, x))) {
            let expected = part.contains([y, x]).then_some((y * 5 + x) as i32);
            assert_eq!(view.get([y, x]).copied(), expected, "{y}, {x} of {part:?}");
            assert_eq!(view.row([y]).get(x).copied(), expected, "{x} of row {y} of {part:?}");
            assert_eq!(view.along(0, [9, x]).get(y).copied(), expected, "{y} of column {x}");
            assert_eq!(view.along(1, [y, 9]).get(x).copied(), expected, "{x} along row {y}");
            if let Some(expected) = expected {
                assert_eq!((view[[y, x]], view.row([y])[x]), (expected, expected));
                assert_eq!(
                    (view.along(0, [0, x])[y], view.along(1, [y, 0])[x]),
                    (expected, expected)
                );
            }
        }
        assert_eq!((view.len(), view.is_empty()), (part.volume(), part.is_empty()));
        assert_eq!(view.bounds(), part);
        assert_eq!(view.rows().count(), part.range()[0]);
        let all = elements.iter().enumerate().filter(|(i, _)| part.contains([i / 5, i % 5]));
        assert!(view.rows().flatten().eq(all.map(|(_, element)| element)));
    }
}

#[test]
fn indices_are_those_of_the_buffer_wherever_the_allocation_begins() {
    let here = [50, 51, 52, 53, 54, 55, 56, 57];
    for part in [Bounds::new([52], [56]), Bounds::new([50], [58]), Bounds::EMPTY] {
        let view = line(&here, 50, part);
        for at in 0..70 {
            let expected = part.contains([at]).then_some(at as i32);
            assert_eq!((view.get(at).copied(), view.get([at]).copied()), (expected, expected));
            if let Some(value) = expected {
                assert_eq!((view[at], view[[at]]), (value, value));
            }
        }
        assert!(view.iter().copied().eq(view.indices().map(|at| view[at])));
        assert!(view.into_iter().eq(view.as_relative_slice()));
        assert_eq!(view.indices().len(), view.len());
    }
}

#[test]
fn a_range_is_there_if_all_of_it_was_declared() {
    let here: Vec<_> = (10..30).collect();
    // Miri, which takes long for each range, is given those from edge to edge.
    let ends: Vec<_> = if cfg!(miri) { vec![0, 10, 12, 18, 19, 30, 39] } else { (0..40).collect() };
    for part in [Bounds::new([12], [19]), Bounds::new([10], [30]), Bounds::EMPTY] {
        let view = line(&here, 10, part);
        for (&from, &to) in ends.iter().flat_map(|from| ends.iter().map(move |to| (from, to))) {
            let all = from <= to && (from..to).all(|at| part.contains([at]));
            let expected = all.then(|| (from..to).map(|at| at as i32).collect::<Vec<_>>());
            assert_eq!(view.get(from..to), expected.as_deref(), "{from}..{to} of {part:?}");
            if to > 0 {
                assert_eq!(view.get(from..=to - 1), expected.as_deref(), "{from}..={}", to - 1);
            }
            if let Some(expected) = expected {
                assert_eq!(view[from..to], expected);
            }
        }
        assert_eq!(view.get(3..=usize::MAX), None);
        assert_eq!(view.get(usize::MAX..usize::MAX), Some(&[][..]));
    }
}

#[test]
fn rows_are_views_by_index() {
    let elements = elements();
    let part = view(&elements, PARTS[2]);
    assert_eq!((part.row([2]).indices(), part.row([1]).indices()), (0..5, 0..0));
    assert_eq!(part.row([3])[2..4], [17, 18]);
    assert_eq!(part.row([3]).as_relative_slice(), [15, 16, 17, 18, 19]);
    assert!(part.row([0]).is_empty() && part.row([0])[2..2].is_empty());
    assert_eq!(part.try_as_relative_slice(), Some(&elements[10..]));
    assert_eq!(view(&elements, PARTS[1]).row([1])[2..=3], [7, 8]);
    assert_eq!(view(&elements, PARTS[1]).row([1]).row([]).get(1), None);
    assert_eq!(view(&elements, PARTS[3]).try_as_relative_slice(), None);
    assert_eq!(view(&elements, PARTS[0]).try_as_relative_slice(), Some(&[][..]));
}

#[test]
fn columns_are_lines_by_index() {
    let elements = elements();
    let column = view(&elements, PARTS[2]).along(0, [0, 4]);
    assert_eq!((column[2], column[3], column.len()), (14, 19, 2));
    assert_eq!((column.indices(), column.get(1)), (2..4, None));
    assert!(column.iter().eq(&[14, 19]) && !column.is_empty());
    assert!(view(&elements, PARTS[1]).along(0, [0, 4]).is_empty());
    assert_eq!(view(&elements, PARTS[1]).along(1, [0, 0]).iter().len(), 0);
}

#[test]
fn three_dimensions_and_none() {
    let elements: Vec<usize> = (0..60).collect();
    let part = Bounds::new([0, 1, 1], [2, 3, 4]);
    let layout = Layout::row_major(&Bounds::from_range([3, 4, 5]));
    // SAFETY: the layout covers the whole array, all of it borrowed.
    let view = unsafe { PartView::new(elements.as_ptr(), layout, part) };
    for [z, y, x] in (0..100).map(|i| [i / 25, i / 5 % 5, i % 5]) {
        let expected = part.contains([z, y, x]).then_some(z * 20 + y * 5 + x);
        assert_eq!(view.get([z, y, x]).copied(), expected);
        assert_eq!(view.row([z, y]).get(x).copied(), expected);
        assert_eq!(view.along(0, [0, y, x]).get(z).copied(), expected);
        assert_eq!(view.along(1, [z, 0, x]).get(y).copied(), expected);
    }
    let all: Vec<_> = view.rows().flatten().copied().collect();
    assert_eq!(all, [6, 7, 8, 11, 12, 13, 26, 27, 28, 31, 32, 33]);
    // SAFETY: the one element.
    let scalar = unsafe {
        let whole = Bounds::<0>::EMPTY;
        PartView::new(&7, Layout::row_major(&whole), whole)
    };
    assert_eq!((scalar[[]], scalar.len(), scalar.rows().flatten().count()), (7, 1, 1));
}

#[test]
#[should_panic(expected = "index [4] is outside of what the access declared for this chunk along \
                           the line: [2..4]")]
fn a_line_ends_where_its_part_does() {
    let _ = view(&elements(), PARTS[1]).along(1, [1, 3])[4];
}

#[test]
#[should_panic(expected = "index [1, 1] is outside of what the access declared for this chunk: \
                           [1..2, 2..4]")]
fn an_undeclared_element_names_itself() {
    let _ = view(&elements(), PARTS[1])[[1, 1]];
}

#[test]
#[should_panic(expected = "index [1, 4] is outside of what the access declared for this chunk: \
                           [1..2, 2..4]")]
fn an_index_in_a_row_is_named_as_in_the_buffer() {
    let _ = view(&elements(), PARTS[1]).row([1])[4];
}

#[test]
#[should_panic(expected = "index [0, 3] is outside of what the access declared for this chunk: \
                           nothing")]
fn an_undeclared_row_is_named_when_it_is_looked_at() {
    let _ = view(&elements(), PARTS[1]).row([0])[3];
}

#[test]
#[should_panic(expected = "range 1..4 of row [1] is outside of what the access declared for this \
                           chunk: [2..4]")]
fn a_range_in_a_row_names_the_row() {
    let _ = &view(&elements(), PARTS[1]).rows().next().expect("a row")[1..4];
}

#[test]
#[should_panic(expected = "range 7..5 is outside")]
fn a_range_that_ends_before_it_begins_is_nowhere() {
    let _ = &line(&[1, 2, 3], 5, Bounds::new([5], [8]))[Range { start: 7, end: 5 }];
}

#[test]
fn a_run_of_no_elements_is_none_wherever_it_begins() {
    let elements = elements();
    for at in [0, 3, usize::MAX, usize::MAX / size_of::<i32>() + 1] {
        let run = line(&elements, 7, Bounds::new([9], [12])).run([at], 0);
        // Were its address null, this would be `None`.
        assert!(std::hint::black_box(Some(run)).is_some_and(<[i32]>::is_empty));
    }
    assert_eq!(line(&elements, 7, Bounds::new([9], [12])).run([10], 2), [3, 4]);
}

#[test]
fn vectors_are_the_elements_that_they_consist_of() {
    let elements = elements();
    for part in PARTS {
        let view = view(&elements, part);
        for (y, x) in (0..6).flat_map(|y| (0..6).map(move |x| (y, x))) {
            let is_inside = part.contains([y, x]) && part.contains([y, x + 1]);
            if is_inside {
                let first = (y * 5 + x) as i32;
                assert_eq!(view.vector([y, x]), [first, first + 1], "{y}, {x} of {part:?}");
                assert_eq!(view.row([y]).vector([x]), [first, first + 1]);
            } else {
                let outside = std::panic::catch_unwind(|| view.vector::<2>([y, x]));
                assert!(outside.is_err(), "{y}, {x} of {part:?}");
            }
        }
    }
    assert_eq!(line(&elements, 7, Bounds::new([9], [12])).vector([9]), [2, 3, 4]);
}

#[test]
#[should_panic(
    expected = "3 elements from [1, 2] on are not all in what the access declared for this chunk: [1..2, 2..4]"
)]
fn a_vector_outside_names_itself_and_the_part() {
    let _ = view(&elements(), PARTS[1]).vector::<3>([1, 2]);
}

#[test]
#[should_panic(expected = "are not all in what the access declared")]
fn a_vector_whose_end_wraps_around_is_refused() {
    let _ = line(&elements(), 0, Bounds::new([0], [20])).vector::<4>([usize::MAX - 1]);
}
