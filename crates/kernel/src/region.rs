//! Read access to several boxes of a buffer, by index into the buffer. Knows which boxes were
//! declared, not why. For hosts: a device is told of one box per access.
#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::ops::Index;

use crate::bounds::{Bounds, Layout};
use crate::index::ViewIndex;
use crate::part::PartView;

/// Read access to the boxes that a chunk declared, by index into the buffer. Anything else in the
/// buffer is out of bounds, what lies between the boxes too.
///
/// An index costs a binary search among the boxes, and then one for each row, of those between, in which boxes
/// begin that do not hold it. To look at many elements of one box, take it out of the loop with
/// [`part_at`](Self::part_at), or go through all [`parts`](Self::parts).
///
/// ```
/// use celerity_kernel::{Bounds, Layout, RegionView};
///
/// // Every second element of a buffer of eight.
/// let elements = [0, 1, 2, 3, 4, 5, 6, 7];
/// let boxes = [0, 2, 4, 6].map(|first| Bounds::new([first], [first + 1]));
/// let layout = Layout::row_major(&Bounds::from_range([8]));
/// // SAFETY: the layout is that of `elements`, which the view borrows.
/// let view = unsafe { RegionView::new(elements.as_ptr(), layout, &boxes) };
/// assert_eq!((view[4], view.get(5)), (4, None));
/// assert!(view.parts().map(|part| part.iter().sum::<i32>()).eq([0, 2, 4, 6]));
/// ```
#[derive(Debug)]
pub struct RegionView<'a, T, const D: usize> {
    base: *const T,
    layout: Layout<D>,
    boxes: &'a [Bounds<D>],
    elements: PhantomData<&'a [T]>,
}

impl<T, const D: usize> Clone for RegionView<'_, T, D> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const D: usize> Copy for RegionView<'_, T, D> {}

// SAFETY: the view is a bundle of `&[T]`, spelt as a pointer and limits.
unsafe impl<T: Sync, const D: usize> Send for RegionView<'_, T, D> {}
// SAFETY: as above.
unsafe impl<T: Sync, const D: usize> Sync for RegionView<'_, T, D> {}

impl<'a, T, const D: usize> RegionView<'a, T, D> {
    /// The view of the elements in `boxes`, which share none and ascend by their first elements in
    /// row-major order, in memory that lies at `base` as `layout` says.
    ///
    /// # Safety
    /// Every element of the boxes is in the layout, valid to read and not written during `'a`.
    /// `base` is aligned and not null, even if there are none.
    #[must_use]
    #[inline]
    pub unsafe fn new(base: *const T, layout: Layout<D>, boxes: &'a [Bounds<D>]) -> Self {
        Self { base, layout, boxes, elements: PhantomData }
    }

    /// The declared boxes: they share no element, and ascend by their first elements, row-major.
    #[must_use]
    #[inline]
    pub const fn boxes(&self) -> &'a [Bounds<D>] {
        self.boxes
    }

    /// The number of elements in all boxes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.boxes.iter().map(Bounds::volume).sum()
    }

    /// Whether there are none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.boxes.iter().all(Bounds::is_empty)
    }

    /// The element, or in one dimension the slice, at `index`, or `None` if not all of it lies in
    /// one of the boxes.
    #[must_use]
    #[inline]
    pub fn get<I: ViewIndex<D>>(&self, index: I) -> Option<&'a I::Output<T>> {
        let first = index.first();
        let part = match self.box_at(first) {
            Some(part) => *part,
            // Without dimensions, even nothing has an element.
            None if D == 0 => return None,
            None => Bounds::EMPTY,
        };
        let lead = || self.base.wrapping_add(self.layout.position(first));
        // SAFETY: all of it is in a box, whose elements `new`'s contract covers; those of a range
        // lie side by side.
        index.is_in(&part).then(|| unsafe { index.shared(lead) })
    }

    /// The box that holds the element at `index`, as a view of its own, or `None` if that was not
    /// declared.
    #[must_use]
    #[inline]
    pub fn part_at(&self, index: [usize; D]) -> Option<PartView<'a, T, D>> {
        self.box_at(index).map(|part| self.part(part))
    }

    /// All boxes as views, in their order.
    #[inline]
    pub fn parts(&self) -> impl ExactSizeIterator<Item = PartView<'a, T, D>> + use<'a, T, D> {
        let view = *self;
        view.boxes.iter().map(move |part| view.part(part))
    }

    #[inline]
    fn part(&self, part: &Bounds<D>) -> PartView<'a, T, D> {
        // SAFETY: `new`'s contract covers each of the boxes.
        unsafe { PartView::new(self.base, self.layout, *part) }
    }

    #[inline]
    fn box_at(&self, index: [usize; D]) -> Option<&'a Bounds<D>> {
        box_around(self.boxes, |part| *part, index)
    }
}

/// Which of some boxes holds the element at an index: they share none, and ascend by their first elements, row-major.
/// O(log boxes) for each row in which boxes begin, from that of the index back to the right one.
#[inline]
pub fn box_around<B, const D: usize>(
    boxes: &[B],
    bounds: impl Fn(&B) -> Bounds<D>,
    index: [usize; D],
) -> Option<&B> {
    let first = |one: &B| bounds(one).min();
    let mut begun = &boxes[..boxes.partition_point(|one| first(one) <= index)];
    while let [.., last] = begun {
        if bounds(last).contains(index) {
            return Some(last);
        }
        // Of those that begin in one row, one alone can hold the index: the last that begins before it there.
        let (outer, inner) = (D.saturating_sub(1), |one: &B| first(one).last().copied());
        let row = first(last);
        let before = begun.partition_point(|one| first(one)[..outer] < row[..outer]);
        let (before, beside) = begun.split_at(before);
        let nearest = beside.partition_point(|one| inner(one) <= index.last().copied());
        match nearest.checked_sub(1).map(|at| &beside[at]) {
            Some(one) if bounds(one).contains(index) => return Some(one),
            _ => begun = before,
        }
    }
    None
}

impl<T, I: ViewIndex<D>, const D: usize> Index<I> for RegionView<'_, T, D> {
    type Output = I::Output<T>;

    /// # Panics
    /// If not all that is at the index was declared, in one box.
    #[inline]
    #[track_caller]
    fn index(&self, index: I) -> &I::Output<T> {
        let first = index.first();
        self.get(index).unwrap_or_else(|| outside(first, self.boxes))
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn outside<const D: usize>(first: [usize; D], boxes: &[Bounds<D>]) -> ! {
    let count = boxes.len();
    match boxes {
        [] => {
            panic!("index {first:?} is outside of what the access declared for this chunk: nothing")
        }
        [one] => panic!(
            "what is at index {first:?} is outside of what the access declared for this chunk: {one}"
        ),
        [one, .., last] => panic!(
            "what is at index {first:?} is in none of the {count} boxes that the access declared \
             for this chunk, the first of which is {one} and the last {last}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    /// What a view over `boxes` of a plane of 5 × 7 has at each index, beside the boxes themselves.
    fn check(boxes: &[Bounds<2>]) {
        let range = [5, 7];
        let elements: Vec<usize> = (0..35).collect();
        let layout = Layout::row_major(&Bounds::from_range(range));
        // SAFETY: the layout is that of `elements`.
        let view = unsafe { RegionView::new(elements.as_ptr(), layout, boxes) };
        let mut seen = 0;
        for index in (0..6).flat_map(|y| (0..8).map(move |x| [y, x])) {
            let declared = boxes.iter().find(|part| part.contains(index));
            let expected = declared.map(|_| 7 * index[0] + index[1]);
            assert_eq!(view.get(index).copied(), expected, "{index:?} in {boxes:?}");
            assert_eq!(view.part_at(index).map(|part| part.bounds()), declared.copied());
            if let Some(expected) = expected {
                assert_eq!(view[index], expected);
                seen += 1;
            }
        }
        assert_eq!((view.len(), view.is_empty()), (seen, seen == 0));
        let sum: usize = view.parts().flat_map(|part| part.rows()).flatten().sum();
        let all = (0..35).filter(|i| boxes.iter().any(|part| part.contains([i / 7, i % 7])));
        assert_eq!(sum, all.sum::<usize>());
    }

    #[test]
    fn exactly_the_boxes_can_be_read() {
        let one = |y, x| Bounds::new([y, x], [y + 1, x + 1]);
        check(&[]);
        check(&[Bounds::from_range([5, 7])]);
        check(&[0, 2, 4].map(|y| Bounds::new([y, 0], [y + 1, 7])));
        check(&[Bounds::new([0, 0], [5, 2]), Bounds::new([0, 4], [5, 7])]);
        // Columns, of which none can be left out by their rows, and others below them.
        let columns = |y: [usize; 2]| [0, 2, 4, 6].map(|x| Bounds::new([y[0], x], [y[1], x + 1]));
        check(&columns([0, 5]));
        check(&[columns([0, 2]), columns([3, 5])].concat());
        // A tall box beside small ones that begin after it, on either side.
        check(&[Bounds::new([0, 5], [5, 7]), one(1, 0), one(1, 3), one(2, 0), one(3, 4)]);
        check(&[Bounds::new([0, 0], [5, 1]), one(0, 3), one(2, 3), one(4, 6)]);
        check(&[one(0, 0), one(0, 2), one(1, 1), one(1, 3), one(4, 6)]);
    }

    #[test]
    fn ranges_lie_in_one_box() {
        let elements: Vec<usize> = (10..20).collect();
        let boxes = [Bounds::new([10], [13]), Bounds::new([15], [20])];
        let layout = Layout::row_major(&Bounds::new([10], [20]));
        // SAFETY: the layout is that of `elements`.
        let view = unsafe { RegionView::new(elements.as_ptr(), layout, &boxes) };
        assert_eq!((&view[10..13], &view[16..=19]), (&[10, 11, 12][..], &[16, 17, 18, 19][..]));
        assert_eq!((view.get(12..16), view.get(13..15), view.get(19..21)), (None, None, None));
        assert_eq!((view[12], view.get(13)), (12, None));
        assert!(view[14..14].is_empty() && view[90..90].is_empty());
    }

    #[test]
    fn without_dimensions_there_is_one_element_or_none() {
        let layout = Layout::row_major(&Bounds::<0>::EMPTY);
        let boxes = [Bounds::<0>::EMPTY];
        // SAFETY: the one element is that of the array.
        let views = unsafe {
            [
                RegionView::new([7].as_ptr(), layout, &[]),
                RegionView::new([7].as_ptr(), layout, &boxes),
            ]
        };
        assert_eq!(views.map(|view| view.get([]).copied()), [None, Some(7)]);
        assert_eq!(views.map(|view| (view.len(), view.is_empty())), [(0, true), (1, false)]);
    }

    #[test]
    #[should_panic(expected = "index [3] is in none of the 2 boxes that the access declared")]
    fn what_lies_between_is_named() {
        let boxes = [Bounds::new([0], [2]), Bounds::new([4], [6])];
        let layout = Layout::row_major(&Bounds::from_range([6]));
        // SAFETY: the layout is that of the array.
        let _ = unsafe { RegionView::new([0_u8; 6].as_ptr(), layout, &boxes) }[3];
    }
}
