//! Read access to declared parts of a buffer, by absolute index. Knows which
//! boxes were declared, not why.
#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::ops::Index;

use crate::bounds::{Bounds, Layout, OuterIndex};

/// Read access to the part of a buffer that a chunk declared, by index into the
/// buffer. Anything else in the buffer is out of bounds.
#[derive(Clone, Copy, Debug)]
pub struct PartView<'a, T, const D: usize> {
    base: *const T,
    layout: Layout<D>,
    /// The first declared box beside the others: one box is the common case,
    /// and this way its limits stay in registers.
    first: Bounds<D>,
    rest: &'a [Bounds<D>],
    elements: PhantomData<&'a [T]>,
}

// SAFETY: the view is a bundle of `&[T]`, spelt as a pointer and limits.
unsafe impl<T: Sync, const D: usize> Send for PartView<'_, T, D> {}
// SAFETY: as above.
unsafe impl<T: Sync, const D: usize> Sync for PartView<'_, T, D> {}

impl<'a, T, const D: usize> PartView<'a, T, D> {
    /// The view of the elements in `boxes`, which are disjoint, in memory that
    /// lies at `base` as `layout` says.
    ///
    /// # Safety
    /// Every element of every box is in the layout, valid to read and not
    /// written during `'a`.
    #[must_use]
    #[inline]
    pub unsafe fn new(base: *const T, layout: Layout<D>, boxes: &'a [Bounds<D>]) -> Self {
        let (first, rest) = match boxes.split_first() {
            Some((first, rest)) => (*first, rest),
            None if D > 0 => (Bounds::EMPTY, boxes),
            // Without dimensions there is no empty box.
            None => panic!("a view of a buffer without dimensions needs its one element"),
        };
        Self { base, layout, first, rest, elements: PhantomData }
    }

    /// As [`new`](Self::new), for a single box.
    ///
    /// # Safety
    /// As [`new`](Self::new).
    #[inline]
    pub(crate) unsafe fn of_box(base: *const T, layout: Layout<D>, part: Bounds<D>) -> Self {
        Self { base, layout, first: part, rest: &[], elements: PhantomData }
    }

    /// The declared part: disjoint boxes, the first of them possibly empty.
    #[inline]
    pub fn boxes(&self) -> impl Iterator<Item = Bounds<D>> + 'a {
        let rest = self.rest;
        core::iter::once(self.first).chain(rest.iter().copied())
    }

    /// The element at `index`, or `None` if it was not declared. O(boxes).
    #[must_use]
    #[inline]
    pub fn get(&self, index: [usize; D]) -> Option<&'a T> {
        // SAFETY: the index was declared.
        self.is_declared(index).then(|| unsafe { self.at(index) })
    }

    #[inline]
    fn is_declared(&self, index: [usize; D]) -> bool {
        self.first.contains(index) || self.rest.iter().any(|part| part.contains(index))
    }

    /// The element at `index`.
    ///
    /// # Safety
    /// It was declared.
    #[inline]
    unsafe fn at(&self, index: [usize; D]) -> &'a T {
        // SAFETY: `new`'s contract covers the elements of all boxes.
        unsafe { &*self.base.add(self.layout.position(index)) }
    }

    /// The declared elements of one row, along the fastest dimension.
    ///
    /// # Panics
    /// If nothing of the row was declared, or parts with a gap between them.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn row(&self, outer: impl OuterIndex<D>) -> &'a [T] {
        let mut parts =
            self.boxes().filter(|part| part.contains(outer.with_fastest(part.min()[D - 1])));
        match (parts.next(), parts.next()) {
            (Some(part), None) => {
                self.run(outer.with_fastest(part.min()[D - 1]), part.range()[D - 1])
            }
            _ => no_such_row(&outer.with_fastest(0)[..D - 1], &self.first, self.rest),
        }
    }

    /// The declared elements along dimension `dim` through `index`, in order: in two
    /// dimensions `along(0, [0, x])` is column `x`. What `index` has in that
    /// dimension does not matter. Bounds are checked here, not at each element.
    ///
    /// # Panics
    /// If nothing of them was declared, or parts with a gap between them.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn along(&self, dim: usize, index: [usize; D]) -> Line<'a, T> {
        let start = |part: &Bounds<D>| {
            let mut start = index;
            start[dim] = part.min()[dim];
            start
        };
        let mut parts = self.boxes().filter(|part| part.contains(start(part)));
        match (parts.next(), parts.next()) {
            (Some(part), None) => Line {
                // SAFETY: the part's first element along the line is declared.
                first: unsafe { self.base.add(self.layout.position(start(&part))) },
                stride: self.layout.strides()[dim],
                len: part.range()[dim],
                elements: PhantomData,
            },
            _ => no_such_row(&index, &self.first, self.rest),
        }
    }

    /// All declared elements, row-major, if they lie side by side.
    ///
    /// What lies side by side depends on the allocation, except that it is
    /// always so for a single box of a one-dimensional buffer. [`row`](Self::row)
    /// works everywhere.
    #[must_use]
    #[inline]
    pub fn try_as_slice(&self) -> Option<&'a [T]> {
        let side_by_side = self.rest.is_empty() && self.layout.is_contiguous(&self.first);
        side_by_side.then(|| self.run(self.first.min(), self.first.volume()))
    }

    /// As [`try_as_slice`](Self::try_as_slice).
    ///
    /// # Panics
    /// If the declared elements do not lie side by side.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn as_slice(&self) -> &'a [T] {
        match self.try_as_slice() {
            Some(elements) => elements,
            None => not_contiguous(&self.first, self.rest),
        }
    }

    /// The `len` declared elements from `start`, known to lie side by side.
    #[inline]
    fn run(&self, start: [usize; D], len: usize) -> &'a [T] {
        if len == 0 {
            return &[];
        }
        // SAFETY: the callers pass runs of a declared box.
        unsafe { core::slice::from_raw_parts(self.base.add(self.layout.position(start)), len) }
    }
}

/// Elements along one dimension, see [`PartView::along`]: a slice with gaps.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a, T> {
    first: *const T,
    stride: usize,
    len: usize,
    elements: PhantomData<&'a [T]>,
}

impl<'a, T> Line<'a, T> {
    /// How many elements there are.
    #[must_use]
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The `at`-th element, or `None` behind the last.
    #[must_use]
    #[inline]
    pub fn get(&self, at: usize) -> Option<&'a T> {
        // SAFETY: `PartView::along` has checked that all of them are declared.
        (at < self.len).then(|| unsafe { &*self.first.add(at * self.stride) })
    }
}

impl<T> Index<usize> for Line<'_, T> {
    type Output = T;

    /// # Panics
    /// If there is no such element.
    #[inline]
    #[track_caller]
    fn index(&self, at: usize) -> &T {
        match self.get(at) {
            Some(element) => element,
            None => not_on_line(at, self.len),
        }
    }
}

impl<T, const D: usize> Index<[usize; D]> for PartView<'_, T, D> {
    type Output = T;

    /// # Panics
    /// If the element was not declared.
    #[inline]
    #[track_caller]
    fn index(&self, index: [usize; D]) -> &T {
        // Not by way of `get`: an address that may be none is chosen, and looked at, each time.
        if !self.is_declared(index) {
            not_declared(&index, &self.first, self.rest);
        }
        // SAFETY: it was declared.
        unsafe { self.at(index) }
    }
}

impl<T> Index<usize> for PartView<'_, T, 1> {
    type Output = T;

    /// # Panics
    /// If the element was not declared.
    #[inline]
    #[track_caller]
    fn index(&self, index: usize) -> &T {
        &self[[index]]
    }
}

#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[cfg_attr(not(target_arch = "nvptx64"), cold, inline(never))]
#[track_caller]
fn not_declared<const D: usize>(index: &[usize; D], first: &Bounds<D>, rest: &[Bounds<D>]) -> ! {
    stop_on_device!("an index is outside of what the access declared for this chunk");
    panic!(
        "index {index:?} is outside of what the access declared for this chunk: {}",
        Declared { first, rest }
    )
}

#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[cfg_attr(not(target_arch = "nvptx64"), cold, inline(never))]
#[track_caller]
fn not_on_line(at: usize, len: usize) -> ! {
    stop_on_device!("an index is behind the end of a line of elements");
    panic!("index {at} is behind the end of a line of {len} elements")
}

#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[cfg_attr(not(target_arch = "nvptx64"), cold, inline(never))]
#[track_caller]
fn no_such_row<const D: usize>(outer: &[usize], first: &Bounds<D>, rest: &[Bounds<D>]) -> ! {
    stop_on_device!("a row is not one run of what the access declared for this chunk");
    panic!(
        "row {outer:?} is not one run of what the access declared for this chunk: {}",
        Declared { first, rest }
    )
}

#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[cfg_attr(not(target_arch = "nvptx64"), cold, inline(never))]
#[track_caller]
fn not_contiguous<const D: usize>(first: &Bounds<D>, rest: &[Bounds<D>]) -> ! {
    stop_on_device!("the elements that the access declared do not lie side by side");
    panic!(
        "the elements that the access declared for this chunk do not lie side by side, \
         take them row by row: {}",
        Declared { first, rest }
    )
}

struct Declared<'a, const D: usize> {
    first: &'a Bounds<D>,
    rest: &'a [Bounds<D>],
}

impl<const D: usize> core::fmt::Display for Declared<'_, D> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?} to {:?}", self.first.min(), self.first.max())?;
        self.rest.iter().try_for_each(|part| write!(f, ", {:?} to {:?}", part.min(), part.max()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: [Bounds<2>; 2] = [Bounds::new([1, 2], [2, 4]), Bounds::new([2, 0], [4, 5])];

    fn view<'a>(elements: &'a [i32; 20], boxes: &'a [Bounds<2>]) -> PartView<'a, i32, 2> {
        // SAFETY: the layout covers the whole array, all of it borrowed.
        unsafe {
            PartView::new(elements.as_ptr(), Layout::row_major(&Bounds::from_range([4, 5])), boxes)
        }
    }

    fn elements() -> [i32; 20] {
        core::array::from_fn(|i| i as i32)
    }

    #[test]
    fn exactly_the_boxes_can_be_read() {
        let elements = elements();
        let view = view(&elements, &PARTS);
        for (y, x) in (0..6).flat_map(|y| (0..6).map(move |x| (y, x))) {
            let declared = PARTS.iter().any(|part| part.contains([y, x]));
            assert_eq!(view.get([y, x]).copied(), declared.then_some((y * 5 + x) as i32));
        }
    }

    #[test]
    fn rows_and_slices() {
        let elements = elements();
        let both = view(&elements, &PARTS);
        assert_eq!(both.row([1]), [7, 8]);
        assert_eq!(both.row([3]), [15, 16, 17, 18, 19]);
        assert_eq!(both.try_as_slice(), None);
        assert_eq!(view(&elements, &PARTS[1..]).as_slice(), &elements[10..]);
        assert!(view(&elements, &[]).as_slice().is_empty());
    }

    #[test]
    fn columns() {
        let elements = elements();
        let below = view(&elements, &PARTS[1..]);
        let column = below.along(0, [0, 4]);
        assert_eq!((column[0], column[1], column.len()), (14, 19, 2));
        assert_eq!(column.get(2), None);
        assert_eq!(view(&elements, &PARTS[..1]).along(0, [0, 3])[0], 8);
    }

    #[test]
    #[should_panic(expected = "index 1 is behind the end of a line of 1 elements")]
    fn a_line_ends_where_its_part_does() {
        let _ = view(&elements(), &PARTS[..1]).along(0, [0, 3])[1];
    }

    #[test]
    #[should_panic(expected = "is not one run")]
    fn a_column_in_two_parts_is_no_run() {
        let _ = view(&elements(), &PARTS).along(0, [0, 3]);
    }

    #[test]
    #[should_panic(expected = "index [1, 1] is outside of what the access declared")]
    fn an_undeclared_element_names_itself() {
        let _ = view(&elements(), &PARTS)[[1, 1]];
    }

    #[test]
    #[should_panic(expected = "row [0] is not one run")]
    fn an_undeclared_row_names_itself() {
        let _ = view(&elements(), &PARTS).row([0]);
    }
}
