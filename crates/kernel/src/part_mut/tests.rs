//! Boxes that are written, against arithmetic on the whole buffer.

use std::vec;

use super::*;

const PART: Bounds<2> = Bounds::new([1, 2], [3, 4]);

fn view(elements: &mut [i32; 20]) -> PartViewMut<'_, i32, 2> {
    let layout = Layout::row_major(&Bounds::from_range([4, 5]));
    // SAFETY: the layout covers the whole array, all of it borrowed.
    unsafe { PartViewMut::new(elements.as_mut_ptr(), layout, PART) }
}

#[test]
fn only_the_box_can_be_written() {
    let mut elements = [0; 20];
    let mut view = view(&mut elements);
    view.row_mut([1]).fill(1);
    view.set([2, 3], 2);
    view.narrowed(Bounds::new([2, 2], [3, 3]))[[2, 2]] = 3;
    assert_eq!(view.get_mut([0, 2]), None);
    assert_eq!(view.get([1, 4]), None);
    assert_eq!(view[[2, 2]], 3);
    assert_eq!(view.as_view().get([2, 3]), Some(&2));
    assert_eq!(view.try_as_relative_mut_slice(), None);
    assert_eq!((elements[7], elements[8], elements[12], elements[13]), (1, 1, 3, 2));
    assert_eq!(elements.iter().sum::<i32>(), 7);
}

#[test]
fn rows_are_written_by_index() {
    let mut elements = [0; 20];
    let mut view = view(&mut elements);
    let mut row = view.row_mut([2]);
    assert_eq!((row.indices(), row.len()), (2..4, 2));
    row[2] = 5;
    row[3..4].fill(6);
    row.set(2, row[2] + 2);
    assert_eq!((row.get_mut(4).is_none(), row.get_mut(1..3).is_none()), (true, true));
    assert_eq!((row.get(1), row.get(2..4)), (None, Some(&[7, 6][..])));
    assert!(row[9..9].is_empty());
    assert_eq!(view.row([2]).as_relative_slice(), [7, 6]);
    assert!(view.row_mut([0]).is_empty() && view.row([3]).is_empty());
    for (at, element) in view.row_mut([1]).iter_mut().enumerate() {
        *element = at as i32 + 1;
    }
    assert_eq!(elements[5..15], [0, 0, 1, 2, 0, 0, 0, 7, 6, 0]);
}

#[test]
fn columns_are_written_by_index() {
    let mut elements = [0; 20];
    let mut view = view(&mut elements);
    let mut column = view.along_mut(0, [9, 3]);
    assert_eq!((column.indices(), column.len(), column.is_empty()), (1..3, 2, false));
    column[1] = 5;
    column.set(2, column[1] + 1);
    assert_eq!((column.get(0), column.get(2)), (None, Some(&6)));
    assert!(column.get_mut(0).is_none() && column.get_mut(3).is_none());
    *column.get_mut(1).unwrap() += 2;
    assert!(column.iter().eq(&[7, 6]) && column.as_line().iter().rev().eq(&[6, 7]));
    for (at, element) in view.along_mut(0, [0, 2]).iter_mut().rev().enumerate() {
        *element = at as i32 + 1;
    }
    view.along_mut(1, [2, 0])[2] += 2;
    assert!(view.along(1, [2, 9]).iter().eq(&[3, 6]));
    let outside = view.along_mut(0, [0, 4]);
    assert!(outside.is_empty() && outside.iter().len() == 0);
    assert_eq!(elements[5..15], [0, 0, 2, 7, 0, 0, 0, 3, 6, 0]);
}

#[test]
fn lines_are_narrowed_to_indices_that_they_have() {
    let mut elements = [0; 20];
    let mut view = view(&mut elements);
    let mut column = view.along_mut(0, [0, 2]).narrowed(2..3);
    assert_eq!((column.indices(), column.get(1), column.get(2)), (2..3, None, Some(&0)));
    column[2] = 4;
    let column = view.along(0, [0, 2]);
    assert!(column.narrowed(1..3).iter().eq(&[0, 4]) && column.narrowed(2..3)[2] == 4);
    let nothing =
        [column.narrowed(2..2), column.narrowed(9..9), column.narrowed(Range { start: 7, end: 5 })];
    let outside = view.along(0, [0, 4]).narrowed(0..0);
    for line in nothing.into_iter().chain([outside]) {
        assert!(line.is_empty() && line.iter().next().is_none() && line.get(2).is_none());
        assert!(line.narrowed(8..8).is_empty());
    }
    assert_eq!(elements[12], 4);
}

#[test]
#[should_panic(
    expected = "range 1..4 is outside of what this item may write along the line: [1..3]"
)]
fn narrowing_to_more_names_both_ranges() {
    let _ = view(&mut [0; 20]).along_mut(0, [0, 3]).narrowed(1..4);
}

#[test]
fn lines_of_space_are_every_element_once() {
    let mut cube = [0; 60];
    let layout = Layout::row_major(&Bounds::from_range([3, 4, 5]));
    let part = Bounds::new([1, 1, 2], [3, 3, 5]);
    // SAFETY: the layout covers the whole array, all of it borrowed.
    let mut view = unsafe { PartViewMut::new(cube.as_mut_ptr(), layout, part) };
    for dim in 0..3 {
        let mut least = part.max();
        least[dim] = part.min()[dim] + 1;
        let across = Bounds::new(part.min(), least);
        let all = (0..60).map(|i| [i / 20, i / 5 % 4, i % 5]);
        for index in all.filter(|index| across.contains(*index)) {
            view.along_mut(dim, index).iter_mut().for_each(|element| *element += 1);
        }
    }
    for (i, &element) in cube.iter().enumerate() {
        let expected = if part.contains([i / 20, i / 5 % 4, i % 5]) { 3 } else { 0 };
        assert_eq!(element, expected, "{i}");
    }
}

#[test]
#[should_panic(
    expected = "index [3] is outside of what this item may write along the line: [1..3]"
)]
fn writing_behind_a_column_names_the_index() {
    view(&mut [0; 20]).along_mut(0, [0, 3])[3] = 1;
}

#[test]
fn boxes_of_all_dimensionalities_are_filled() {
    let mut cube = [0; 60];
    let layout = Layout::row_major(&Bounds::from_range([3, 4, 5]));
    let part = Bounds::new([1, 1, 2], [3, 3, 5]);
    // SAFETY: the layout covers the whole array, all of it borrowed.
    unsafe { PartViewMut::new(cube.as_mut_ptr(), layout, part) }.fill(1);
    for (i, &element) in cube.iter().enumerate() {
        assert_eq!(element == 1, part.contains([i / 20, i / 5 % 4, i % 5]), "{i}");
    }
    let mut line = vec![0; 6];
    let layout = Layout::row_major(&Bounds::new([10], [16]));
    // SAFETY: as above.
    let mut own = unsafe { PartViewMut::new(line.as_mut_ptr(), layout, Bounds::new([11], [14])) };
    own.fill(2);
    own[12] += 1;
    own.as_relative_mut_slice()[0] = 9;
    assert!(own.iter().eq(&[9, 3, 2]) && own.as_relative_slice().len() == 3);
    assert_eq!(line, [0, 9, 3, 2, 0, 0]);
    let mut scalar = 0;
    let layout = Layout::row_major(&Bounds::<0>::EMPTY);
    // SAFETY: the one element.
    unsafe { PartViewMut::new(&raw mut scalar, layout, Bounds::<0>::EMPTY) }.fill(4);
    assert_eq!(scalar, 4);
}

#[test]
#[should_panic(expected = "index [1, 4] is outside of what this item may write: [1..3, 2..4]")]
fn writing_elsewhere_names_the_index() {
    view(&mut [0; 20])[[1, 4]] = 1;
}

#[test]
#[should_panic(expected = "index [1, 4] is outside of what this item may write: [1..2, 2..4]")]
fn writing_elsewhere_in_a_row_names_the_row() {
    view(&mut [0; 20]).row_mut([1])[4] = 1;
}

#[test]
fn narrowing_to_nothing_reaches_nothing() {
    let mut elements = [0; 20];
    let mut view = view(&mut elements);
    for (min, max) in [([3, 3], [2, 2]), ([2, 3], [2, 4]), ([usize::MAX; 2], [0; 2])] {
        let mut nothing = view.narrowed(Bounds::new(min, max));
        assert_eq!(nothing.bounds(), Bounds::EMPTY);
        assert_eq!(nothing.try_as_relative_mut_slice(), Some(&mut [][..]));
        assert_eq!((nothing.get([2, 3]), nothing.get(min), nothing.get(max)), (None, None, None));
        nothing.fill(1);
    }
    assert_eq!(elements, [0; 20]);
}

#[test]
#[should_panic(expected = "is not inside of the box")]
fn a_volume_beyond_64_bits_is_not_nothing() {
    let _ = view(&mut [0; 20]).narrowed(Bounds::from_range([1 << 32, 1 << 32]));
}

#[test]
#[should_panic(expected = "is not inside of the box")]
fn narrowing_cannot_widen() {
    let _ = view(&mut [0; 20]).narrowed(Bounds::new([1, 2], [2, 5]));
}

#[test]
fn vectors_are_written_inside_of_the_box() {
    let mut elements = [0; 20];
    let mut view = view(&mut elements);
    view.set_vector([1, 2], [1, 2]);
    view.row_mut([2]).set_vector([3], [3]);
    assert_eq!((view.vector([1, 2]), view.vector([2, 2])), ([1, 2], [0, 3]));
    assert_eq!(elements[5..15], [0, 0, 1, 2, 0, 0, 0, 0, 3, 0]);
}

#[test]
#[should_panic(expected = "2 elements from [1, 3] on are not all in what this item may write")]
fn vectors_stay_inside_of_the_box() {
    view(&mut [0; 20]).set_vector([1, 3], [1, 2]);
}
