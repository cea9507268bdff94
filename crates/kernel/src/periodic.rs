//! Relative access to an item's surroundings in a buffer whose opposite edges meet. Knows offsets
//! from the item, and how large the buffer is where it goes around.
//!
//! Built on the views of [clamped](crate::NeighborhoodRow) surroundings, whose rule about rows it
//! needs: items that look over an edge along the fastest dimension come alone, since what they see
//! does not lie side by side. What goes around along a slower dimension is a row like any other.
#![allow(unsafe_code)]
#![allow(clippy::inline_always, reason = "see `PeriodicRow::shift_around`")]

use crate::bounds::Layout;
use crate::neighborhood::{NeighborhoodRow, Reach, Shift, for_each_offset, stays};

/// The surroundings of a row of items, in a buffer whose opposite edges meet: shifted slices, each
/// as long as the row. Position `i` in them belongs to the row's `i`-th item.
///
/// ```
/// use celerity_kernel::{Bounds, Layout, PeriodicRow, Reach};
///
/// let u = [1, 2, 3, 4, 5, 6];
/// let (range, reach) = ([2, 3], Reach::boxed([1, 1]));
/// let layout = Layout::row_major(&Bounds::from_range(range));
/// // SAFETY: the layout covers the whole buffer, which nobody writes.
/// let first = unsafe { PeriodicRow::new(u.as_ptr(), &layout, (&reach, [true; 2]), range, [0, 0], 1) };
/// assert_eq!((first.at([0, -1]), first.at([-1, 0]), first.at([-1, -1])), (&[3][..], &[4][..], &[6][..]));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PeriodicRow<'a, T, const D: usize> {
    row: NeighborhoodRow<'a, T, D>,
    /// The size of the buffer where it goes around, 0 where it is clamped.
    around: [usize; D],
}

impl<'a, T, const D: usize> PeriodicRow<'a, T, D> {
    /// The surroundings of the `len` items from `start`, in a buffer of size `range` that lies at
    /// `base` as `layout` says, and goes around along the dimensions that the second part of
    /// `reach` names.
    ///
    /// # Panics
    /// If the row is empty or not inside of the buffer.
    ///
    /// # Safety
    /// Every element that `reach` allows from an item of the row, around where the buffer goes
    /// around and clamped where it does not, is in the layout, valid to read and not written
    /// during `'a`. Where it goes around, `reach` is no wider than the buffer.
    #[must_use]
    #[inline]
    pub unsafe fn new(
        base: *const T,
        layout: &Layout<D>,
        (reach, along): (&Reach<D>, [bool; D]),
        range: [usize; D],
        start: [usize; D],
        len: usize,
    ) -> Self {
        // SAFETY: clamped surroundings are a part of those that go around.
        let row = unsafe { NeighborhoodRow::new(base, layout, reach, range, start, len) };
        Self { row, around: sizes(range, along) }
    }

    /// The surroundings of items that has clamped ones.
    ///
    /// # Safety
    /// As [`new`](Self::new), for the items of `row`.
    #[inline]
    pub(crate) unsafe fn from_parts(
        row: NeighborhoodRow<'a, T, D>,
        range: [usize; D],
        along: [bool; D],
    ) -> Self {
        Self { row, around: sizes(range, along) }
    }

    /// The surroundings of the first item.
    #[inline]
    pub(crate) fn first_item(&self) -> PeriodicItem<'_, T, D> {
        PeriodicItem { row: self, at: 0 }
    }

    /// The number of items in the row.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a row is never empty")]
    #[inline]
    pub const fn len(&self) -> usize {
        self.row.len()
    }

    /// The `len` items from item `start` on.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    #[inline]
    pub fn segment(&self, start: usize, len: usize) -> Self {
        Self { row: self.row.segment(start, len), around: self.around }
    }

    /// The surroundings of as many items, so many rows further along the dimension before the fastest.
    ///
    /// # Safety
    /// As [`new`](Self::new), for those items; there is no such dimension only if `rows` is 0.
    #[cfg(not(target_arch = "nvptx64"))]
    #[must_use]
    #[inline]
    pub unsafe fn rows_further(&self, rows: usize) -> Self {
        // SAFETY: passed on.
        Self { row: unsafe { self.row.rows_further(rows) }, around: self.around }
    }

    /// The same items, for which nothing goes around, or is clamped, along the fastest dimension.
    ///
    /// # Safety
    /// No offset within reach leaves the buffer along that dimension, from any item of the row.
    #[must_use]
    #[inline]
    pub unsafe fn inside_rows(self) -> Self {
        // SAFETY: passed on.
        Self { row: unsafe { self.row.inside_rows() }, around: self.around }
    }

    /// For each item of the row the element at `offset` from it. A coordinate outside of the buffer
    /// comes in again at the opposite edge; along a dimension that does not go around, it becomes
    /// the nearest one inside.
    ///
    /// # Panics
    /// If `offset` is larger than the declared border.
    #[must_use]
    #[cfg_attr(target_arch = "nvptx64", inline)]
    #[cfg_attr(not(target_arch = "nvptx64"), inline(always))]
    #[track_caller]
    pub fn at(&self, offset: [isize; D]) -> &'a [T] {
        let shift = self.shift_around(offset);
        self.check_side_by_side(offset);
        // SAFETY: `new`'s contract covers every offset of each item. If the row is one of several
        // items, it goes around along slower dimensions only, where all of it does.
        unsafe { core::slice::from_raw_parts(self.row.element(shift), self.len()) }
    }

    /// The slices at several offsets: [`at`](Self::at) of each, in the order of `offsets`. These are 1 to 64, or the
    /// program does not compile. Give constants: as with [clamped ones](NeighborhoodRow::clamped_each), what is left
    /// of each is then found out once a row.
    ///
    /// # Panics
    /// If one of `offsets` is larger than the declared border.
    #[must_use]
    #[cfg_attr(target_arch = "nvptx64", inline)]
    #[cfg_attr(not(target_arch = "nvptx64"), inline(always))]
    #[track_caller]
    pub fn at_each<const N: usize>(&self, offsets: [[isize; D]; N]) -> [&'a [T]; N] {
        for_each_offset!(self.at, offsets: N)
    }

    /// As [`at`](Self::at), but `None` outside of the buffer along a dimension that does not go
    /// around.
    ///
    /// # Panics
    /// If `offset` is larger than the declared border.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn get(&self, offset: [isize; D]) -> Option<&'a [T]> {
        self.is_inside(offset).then(|| self.at(offset))
    }

    /// The surroundings of the `i`-th item.
    ///
    /// # Panics
    /// If there is no such item.
    #[must_use]
    #[inline]
    pub fn item(&self, i: usize) -> PeriodicItem<'_, T, D> {
        if i >= self.len() {
            fail!("a row has no such item", "a row of {} items has no item {}", self.len(), i);
        }
        PeriodicItem { row: self, at: i }
    }

    #[cfg_attr(target_arch = "nvptx64", inline)]
    #[cfg_attr(not(target_arch = "nvptx64"), inline(always))]
    #[track_caller]
    fn shift_around(&self, offset: [isize; D]) -> Shift {
        self.row.check(offset);
        #[cfg(target_arch = "nvptx64")]
        {
            let offset = self.row.seen_from_the_ground(offset);
            self.row.shift(core::array::from_fn(|dim| self.around(offset, dim)))
        }
        #[cfg(not(target_arch = "nvptx64"))]
        self.row.sum_along(|dim| self.around(offset, dim))
    }

    /// How far an offset goes along a dimension, around or up to the edge. For items that no edge is near, limits are
    /// constants, and the step is left.
    #[cfg_attr(target_arch = "nvptx64", inline)]
    #[cfg_attr(not(target_arch = "nvptx64"), inline(always))]
    fn around(&self, offset: [isize; D], dim: usize) -> isize {
        // Where the buffer does not go around, the size is 0.
        let (limits, step, size) = (self.row.limits(), offset[dim], self.around[dim] as isize);
        match (stays(limits, dim, step), size > 0, step < 0) {
            (true, _, _) => step,
            (false, true, true) => step + size,
            (false, true, false) => step - size,
            (false, false, true) => -limits.below(dim),
            (false, false, false) => limits.above(dim),
        }
    }

    /// Whether no dimension that is clamped is left.
    #[inline]
    fn is_inside(&self, offset: [isize; D]) -> bool {
        let (limits, offset) = (self.row.limits(), self.row.seen_from_the_ground(offset));
        (0..D).all(|dim| self.around[dim] > 0 || stays(limits, dim, offset[dim]))
    }

    /// Several items look at elements side by side, unless some look over the edge along the
    /// fastest dimension.
    #[inline]
    #[track_caller]
    fn check_side_by_side(&self, offset: [isize; D]) {
        let Some(fastest) = D.checked_sub(1) else { return };
        let stays = self.around[fastest] == 0
            || stays(self.row.limits(), fastest, offset[fastest])
            || self.len() == 1;
        assert!(stays, "items that look over the edge come one by one");
    }
}

/// The size of the buffer along each dimension along which it goes around.
#[inline]
fn sizes<const D: usize>(range: [usize; D], along: [bool; D]) -> [usize; D] {
    core::array::from_fn(|dim| if along[dim] { range[dim] } else { 0 })
}

/// The surroundings of one item, in a buffer whose opposite edges meet.
#[derive(Clone, Copy, Debug)]
pub struct PeriodicItem<'a, T, const D: usize> {
    row: &'a PeriodicRow<'a, T, D>,
    at: usize,
}

impl<'a, T, const D: usize> PeriodicItem<'a, T, D> {
    /// As [`at`](Self::at), where the element is: of large elements, such as a cell with all of its particles, a kernel that
    /// looks at a few of their parts copies no more than these.
    ///
    /// # Panics
    /// If `offset` is larger than the declared border.
    #[must_use]
    #[cfg_attr(target_arch = "nvptx64", inline)]
    #[cfg_attr(not(target_arch = "nvptx64"), inline(always))]
    #[track_caller]
    pub fn at_ref(&self, offset: [isize; D]) -> &'a T {
        let shift = self.row.shift_around(offset);
        self.row.check_side_by_side(offset);
        // SAFETY: as in `at`; nobody writes the elements during `'a`.
        unsafe { &*self.row.row.element(shift).add(self.at) }
    }
}

impl<T: Copy, const D: usize> PeriodicItem<'_, T, D> {
    /// The element at `offset` from the item. A coordinate outside of the buffer comes in again at
    /// the opposite edge; along a dimension that does not go around, it becomes the nearest one
    /// inside.
    ///
    /// On CPUs, where a constant goes is found out once for a run of items; offsets of a loop are constants where it is
    /// unrolled, as `#[kernel]` sees to.
    ///
    /// # Panics
    /// If `offset` is larger than the declared border.
    #[must_use]
    #[cfg_attr(target_arch = "nvptx64", inline)]
    #[cfg_attr(not(target_arch = "nvptx64"), inline(always))]
    #[track_caller]
    pub fn at(&self, offset: [isize; D]) -> T {
        let shift = self.row.shift_around(offset);
        self.row.check_side_by_side(offset);
        // SAFETY: as in `PeriodicRow::at`, and `at` is one of the row's items.
        unsafe { *self.row.row.element(shift).add(self.at) }
    }

    /// The elements at several offsets: [`at`](Self::at) of each, in the order of `offsets`. These are 1 to 64, or the
    /// program does not compile. Give constants, as for [clamped ones](crate::NeighborhoodItem::clamped_each).
    ///
    /// # Panics
    /// If one of `offsets` is larger than the declared border.
    #[must_use]
    #[cfg_attr(target_arch = "nvptx64", inline)]
    #[cfg_attr(not(target_arch = "nvptx64"), inline(always))]
    #[track_caller]
    pub fn at_each<const N: usize>(&self, offsets: [[isize; D]; N]) -> [T; N] {
        for_each_offset!(self.at, offsets: N)
    }

    /// As [`at`](Self::at), but `None` outside of the buffer along a dimension that does not go
    /// around.
    ///
    /// # Panics
    /// If `offset` is larger than the declared border.
    #[must_use]
    #[cfg_attr(target_arch = "nvptx64", inline)]
    #[cfg_attr(not(target_arch = "nvptx64"), inline(always))]
    #[track_caller]
    pub fn get(&self, offset: [isize; D]) -> Option<T> {
        #[cfg(target_arch = "nvptx64")]
        return self.row.is_inside(offset).then(|| self.at(offset));
        // As of neighbourhoods whose edges are apart.
        #[cfg(not(target_arch = "nvptx64"))]
        {
            let nearest = self.at(offset);
            self.row.is_inside(offset).then_some(nearest)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::Bounds;

    const RANGE: [usize; 3] = [2, 3, 4];

    fn row_at<'a>(
        elements: &'a [i32; 24],
        reach: &Reach<3>,
        along: [bool; 3],
        start: [usize; 3],
        len: usize,
    ) -> PeriodicRow<'a, i32, 3> {
        let layout = Layout::row_major(&Bounds::from_range(RANGE));
        // SAFETY: the layout covers the whole buffer, all of it borrowed.
        unsafe { PeriodicRow::new(elements.as_ptr(), &layout, (reach, along), RANGE, start, len) }
    }

    fn all(range: [isize; 3]) -> impl Iterator<Item = [isize; 3]> {
        let [planes, rows, columns] = range;
        (0..planes)
            .flat_map(move |z| (0..rows).flat_map(move |y| (0..columns).map(move |x| [z, y, x])))
    }

    /// What is at a coordinate along a dimension of `size` elements.
    fn inside(at: isize, size: usize, around: bool) -> isize {
        let size = size as isize;
        if around { at.rem_euclid(size) } else { at.clamp(0, size - 1) }
    }

    #[test]
    fn every_item_agrees_with_arithmetic_around_every_dimension() {
        let elements: [i32; 24] = core::array::from_fn(|i| i as i32);
        let border = [2, 1, 3];
        // Miri, which takes long for each view, is given few.
        let [masks, starts, steps] = if cfg!(miri) { [3, 11, 8] } else { [1; 3] };
        for mask in (0..8).step_by(masks) {
            let along = [0, 1, 2].map(|dim| mask >> dim & 1 == 1);
            for start in all([2, 3, 4]).step_by(starts) {
                let at = start.map(|index| index as usize);
                let row = row_at(&elements, &Reach::boxed(border), along, at, 1);
                for step in all([5, 3, 7]).step_by(steps) {
                    let offset = core::array::from_fn(|dim| step[dim] - border[dim] as isize);
                    let [z, y, x]: [isize; 3] = core::array::from_fn(|dim| {
                        inside(start[dim] + offset[dim], RANGE[dim], along[dim])
                    });
                    let expected = elements[((z * 3 + y) * 4 + x) as usize];
                    assert_eq!(row.item(0).at(offset), expected, "{offset:?} at {start:?}");
                    assert_eq!(row.item(0).at_ref(offset), &expected);
                    assert_eq!(row.at(offset), [expected]);
                    assert_eq!(row.at_each([offset; 2]), [[expected]; 2]);
                    assert_eq!(row.item(0).at_each([offset; 2]), [expected; 2]);
                    let leaves = (0..3).any(|dim| {
                        let to = start[dim] + offset[dim];
                        !along[dim] && !(0..RANGE[dim] as isize).contains(&to)
                    });
                    assert_eq!(row.get(offset).is_none(), leaves);
                    assert_eq!(row.item(0).get(offset), (!leaves).then_some(expected));
                }
            }
        }
    }

    #[test]
    fn rows_go_around_along_slower_dimensions_as_a_whole() {
        let elements: [i32; 24] = core::array::from_fn(|i| i as i32);
        let row = row_at(&elements, &Reach::boxed([1, 1, 1]), [true; 3], [0, 0, 0], 4);
        let inner = row.segment(1, 2);
        assert_eq!(inner.at([-1, -1, 0]), [21, 22]);
        assert_eq!(inner.at([0, -1, 1]), [10, 11]);
        assert_eq!(inner.item(1).at([1, 0, -1]), 13);
        assert_eq!(row.segment(0, 1).at([0, 0, -1]), [3]);
    }

    #[test]
    fn a_row_further_on_goes_around_as_one_that_begins_there() {
        let elements: [i32; 24] = core::array::from_fn(|i| i as i32);
        let reach = Reach::boxed([1, 1, 1]);
        let first = row_at(&elements, &reach, [true; 3], [1, 0, 1], 2);
        for y in 0..RANGE[1] {
            // SAFETY: the layout has that row.
            let further = unsafe { first.rows_further(y) };
            let there = row_at(&elements, &reach, [true; 3], [1, y, 1], 2);
            for offset in all([3, 3, 3]).map(|[z, y, x]| [z - 1, y - 1, x - 1]) {
                assert_eq!(further.at(offset), there.at(offset), "row {y}, {offset:?}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "items that look over the edge come one by one")]
    fn rows_of_several_items_do_not_look_over_the_edge() {
        let elements = [0; 24];
        let row = row_at(&elements, &Reach::boxed([1, 1, 1]), [true; 3], [0, 0, 0], 4);
        let _ = row.at([0, 0, -1]);
    }

    #[test]
    #[should_panic(expected = "offset [0, 0, 2] is not in the access's neighborhood([1, 1, 1])")]
    fn looking_too_far_names_offset_and_border() {
        let elements = [0; 24];
        let row = row_at(&elements, &Reach::boxed([1, 1, 1]), [true; 3], [0, 0, 1], 1);
        let _ = row.item(0).at([0, 0, 2]);
    }
}
