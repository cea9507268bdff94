//! Relative access to an item's surroundings. Knows offsets from the item, not
//! where the item stands.
//!
//! Speed rests on one rule that whoever builds these views keeps: items whose
//! neighbourhood would leave the buffer along the fastest dimension come alone,
//! as rows of length 1. All items of a longer row then share the same limits,
//! so clamping is loop-invariant and a loop over items vectorises.
#![allow(unsafe_code)]

use core::marker::PhantomData;

use crate::bounds::Layout;

/// How far from an item a kernel may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach<const D: usize> {
    border: [usize; D],
    axes_only: bool,
}

impl<const D: usize> Reach<D> {
    /// Up to `border` elements away in each dimension, diagonals included.
    #[must_use]
    pub const fn boxed(border: [usize; D]) -> Self {
        Self { border, axes_only: false }
    }

    /// Up to `border` elements away along one dimension at a time.
    #[must_use]
    pub const fn along_axes(border: [usize; D]) -> Self {
        Self { border, axes_only: true }
    }

    /// Elements to either side, per dimension.
    #[must_use]
    #[inline]
    pub const fn border(&self) -> [usize; D] {
        self.border
    }

    #[inline]
    fn allows(&self, offset: [isize; D]) -> bool {
        let near = (0..D).all(|dim| offset[dim].unsigned_abs() <= self.border[dim]);
        let straight = !self.axes_only || offset.iter().filter(|&&step| step != 0).count() <= 1;
        near && straight
    }
}

/// How far offsets go before they leave the buffer, for all items of a row alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits<const D: usize> {
    below: [usize; D],
    above: [usize; D],
    /// How many elements the buffer has before the first item and from it on,
    /// along the fastest dimension.
    room: [usize; 2],
    /// Items of a run, if threads take runs: 1 if not.
    #[cfg(target_arch = "nvptx64")]
    run: usize,
    /// How far apart elements are that follow each other, back and ahead: 0 at the edge.
    #[cfg(target_arch = "nvptx64")]
    next: [[isize; D]; 2],
}

impl<const D: usize> Limits<D> {
    /// Those of items that no edge of the buffer is near: constants, so that
    /// whoever compiles a loop over such items drops clamping.
    pub(crate) const UNREACHED: Self = {
        let far = isize::MAX as usize;
        Self {
            below: [far; D],
            above: [far; D],
            room: [far; 2],
            #[cfg(target_arch = "nvptx64")]
            run: 1,
            #[cfg(target_arch = "nvptx64")]
            next: [[0; D]; 2],
        }
    };

    /// How far an offset goes back along a dimension.
    #[inline]
    pub(crate) const fn below(&self, dim: usize) -> isize {
        self.below[dim] as isize
    }

    /// How far it goes ahead.
    #[inline]
    pub(crate) const fn above(&self, dim: usize) -> isize {
        self.above[dim] as isize
    }

    /// Those of the `len` items from `start` in a buffer of size `range`, which
    /// they must be inside of.
    #[inline]
    pub(crate) fn of(range: [usize; D], start: [usize; D], len: usize) -> Self {
        let mut last = start;
        if let Some(fastest) = last.last_mut() {
            *fastest += len - 1;
        }
        let above = core::array::from_fn(|dim| range[dim].wrapping_sub(1).wrapping_sub(last[dim]));
        let room = match (start.last(), range.last()) {
            (Some(start), Some(range)) => [*start, range.wrapping_sub(*start)],
            _ => [0, 1],
        };
        let mut limits = Self::UNREACHED;
        (limits.below, limits.above, limits.room) = (start, above, room);
        limits
    }

    /// Those of items in runs of so many, which no edge along the fastest dimension is near, with so
    /// many elements before and behind them along others. In 32 bits, which is fewer instructions on devices.
    #[inline]
    #[cfg_attr(not(target_arch = "nvptx64"), expect(unused_variables))]
    pub(crate) fn inside_rows(
        run: usize,
        below: [u32; D],
        above: [u32; D],
        strides: [usize; D],
    ) -> Self {
        let mut limits = Self::UNREACHED;
        for dim in 0..D.saturating_sub(1) {
            (limits.below[dim], limits.above[dim]) = (below[dim] as usize, above[dim] as usize);
        }
        #[cfg(target_arch = "nvptx64")]
        {
            limits.run = run;
            // What goes one element along a row does not leave it.
            limits.next = [[-1; D], [1; D]];
            for dim in 0..D.saturating_sub(1) {
                let next = crate::machine::unless_zero;
                let stride = strides[dim] as isize;
                (limits.next[0][dim], limits.next[1][dim]) =
                    (next(below[dim], -stride), next(above[dim], stride));
            }
        }
        limits
    }
}

/// The surroundings of a row of items: shifted slices, each as long as the row. Position `i` in
/// them belongs to the row's `i`-th item, as in the slices that are the items' own.
#[derive(Clone, Copy, Debug)]
pub struct NeighborhoodRow<'a, T, const D: usize> {
    /// The element of the row's first item.
    first: *const T,
    strides: [usize; D],
    reach: Reach<D>,
    limits: Limits<D>,
    len: usize,
    elements: PhantomData<&'a [T]>,
}

// SAFETY: the view is a bundle of `&[T]`, spelt as a pointer and limits.
unsafe impl<T: Sync, const D: usize> Send for NeighborhoodRow<'_, T, D> {}
// SAFETY: as above.
unsafe impl<T: Sync, const D: usize> Sync for NeighborhoodRow<'_, T, D> {}

impl<'a, T, const D: usize> NeighborhoodRow<'a, T, D> {
    /// The surroundings of the `len` items from `start`, in a buffer of size
    /// `range` that lies at `base` as `layout` says.
    ///
    /// # Panics
    /// If the row is empty or not inside of the buffer.
    ///
    /// # Safety
    /// Every element that `reach` allows from an item of the row, clamped to
    /// the buffer, is in the layout, valid to read and not written during `'a`.
    #[must_use]
    #[inline]
    pub unsafe fn new(
        base: *const T,
        layout: &Layout<D>,
        reach: &Reach<D>,
        range: [usize; D],
        start: [usize; D],
        len: usize,
    ) -> Self {
        let mut last = start;
        if let Some(fastest) = last.last_mut() {
            *fastest += len - 1;
        }
        assert!((0..D).all(|dim| last[dim] < range[dim]), "row outside of the buffer");
        let limits = Limits::of(range, start, len);
        // SAFETY: the caller vouches for the element of the first item.
        unsafe {
            let first = base.add(layout.position(start));
            Self::from_parts(first, layout.strides(), *reach, limits, len)
        }
    }

    /// The surroundings of `len` items, the first of which has its own element at
    /// `first`.
    ///
    /// # Safety
    /// As [`new`](Self::new), and `limits` are those of the items.
    #[inline]
    pub(crate) unsafe fn from_parts(
        first: *const T,
        strides: [usize; D],
        reach: Reach<D>,
        limits: Limits<D>,
        len: usize,
    ) -> Self {
        Self { first, strides, reach, limits, len, elements: PhantomData }
    }

    /// The surroundings of the item whose element lies `at` elements behind the first one's, and
    /// which has the same limits.
    #[inline]
    pub(crate) fn item_behind(&self, at: usize) -> NeighborhoodItem<'_, T, D> {
        NeighborhoodItem { row: self, at }
    }

    #[inline]
    pub(crate) const fn limits(&self) -> &Limits<D> {
        &self.limits
    }

    /// The number of items in the row.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a row is never empty")]
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// The `len` items from item `start` on.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    #[inline]
    pub fn segment(&self, start: usize, len: usize) -> Self {
        let fits = start < self.len && 0 < len && len <= self.len - start;
        assert!(fits, "a row of {} items has no {len} items from {start} on", self.len);
        // SAFETY: item `start` is one of the row, so its element is in bounds.
        let first = unsafe { self.first.add(start) };
        let room = [self.limits.room[0] + start, self.limits.room[1] - start];
        let mut limits = Limits { room, ..self.limits };
        if let Some(fastest) = D.checked_sub(1) {
            limits.below[fastest] = room[0];
            limits.above[fastest] = room[1] - len;
        }
        Self { first, limits, len, ..*self }
    }

    /// For each item of the row the element at `offset` from it, where a
    /// coordinate outside of the buffer becomes the nearest one inside.
    ///
    /// # Panics
    /// If `offset` is larger than the declared border.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn clamped(&self, offset: [isize; D]) -> &'a [T] {
        let shift = self.clamped_shift(offset);
        // SAFETY: `new`'s contract covers every clamped offset, for `len` items.
        unsafe { core::slice::from_raw_parts(self.element(shift), self.len) }
    }

    /// For each item of the row the element at `offset` from it, or `None` if
    /// that is outside of the buffer.
    ///
    /// # Panics
    /// If `offset` is larger than the declared border.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn get(&self, offset: [isize; D]) -> Option<&'a [T]> {
        let shift = self.shift_inside(offset)?;
        // SAFETY: `new`'s contract covers every offset that needs no clamping.
        Some(unsafe { core::slice::from_raw_parts(self.element(shift), self.len) })
    }

    /// The surroundings of the `i`-th item.
    ///
    /// # Panics
    /// If there is no such item.
    #[must_use]
    #[inline]
    pub fn item(&self, i: usize) -> NeighborhoodItem<'_, T, D> {
        assert!(i < self.len, "a row of {} items has no item {i}", self.len);
        NeighborhoodItem { row: self, at: i }
    }

    #[inline]
    #[track_caller]
    fn clamped_shift(&self, offset: [isize; D]) -> isize {
        self.check(offset);
        let limits = &self.limits;
        self.sum(|dim| {
            #[cfg(target_arch = "nvptx64")]
            match (limits.run > 1, offset[dim]) {
                (true, -1) => return limits.next[0][dim],
                (true, 1) => return limits.next[1][dim],
                _ => {}
            }
            if offset[dim] == 0 {
                return 0;
            }
            // Not `clamp`, which checks its limits: on devices that costs registers.
            let step = offset[dim].max(-limits.below(dim)).min(limits.above(dim));
            step * self.strides[dim] as isize
        })
    }

    #[inline]
    #[track_caller]
    fn shift_inside(&self, offset: [isize; D]) -> Option<isize> {
        self.check(offset);
        let inside = (0..D).all(|dim| match offset[dim] {
            0 => true,
            step @ ..0 => -self.limits.below(dim) <= step,
            step @ 1.. => step <= self.limits.above(dim),
        });
        inside.then(|| self.shift(offset))
    }

    /// How far the element at an offset that stays inside lies from an item's own.
    #[inline]
    pub(crate) fn shift(&self, offset: [isize; D]) -> isize {
        self.sum(|dim| offset[dim] * self.strides[dim] as isize)
    }

    /// The sum of distances along all dimensions.
    #[inline]
    fn sum(&self, along: impl Fn(usize) -> isize) -> isize {
        #[cfg(target_arch = "nvptx64")]
        if let (run @ 2.., Some(fastest)) = (self.limits.run, D.checked_sub(1)) {
            let slow: isize = (0..fastest).map(&along).sum();
            return (slow & crate::abi::whole_runs(run)) + along(fastest);
        }
        (0..D).map(along).sum()
    }

    /// Where the element lies that is so far from the first item's own.
    ///
    /// # Safety
    /// It is an element of the allocation.
    #[inline]
    pub(crate) unsafe fn element(&self, shift: isize) -> *const T {
        // SAFETY: passed on.
        unsafe { self.first.offset(shift) }
    }

    #[inline]
    #[track_caller]
    pub(crate) fn check(&self, offset: [isize; D]) {
        if !self.reach.allows(offset) {
            out_of_reach(&offset, &self.reach.border, self.reach.axes_only);
        }
    }
}

/// The surroundings of one item.
#[derive(Clone, Copy, Debug)]
pub struct NeighborhoodItem<'a, T, const D: usize> {
    row: &'a NeighborhoodRow<'a, T, D>,
    at: usize,
}

impl<T: Copy, const D: usize> NeighborhoodItem<'_, T, D> {
    /// The element at `offset` from the item, where a coordinate outside of the
    /// buffer becomes the nearest one inside.
    ///
    /// # Panics
    /// If `offset` is larger than the declared border.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn clamped(&self, offset: [isize; D]) -> T {
        let shift = self.row.clamped_shift(offset);
        // SAFETY: the row's contract covers clamped offsets from each of its
        // items, and `at` is one of them.
        unsafe { *self.row.element(shift).add(self.at) }
    }

    /// The element at `offset` from the item, or `None` outside of the buffer.
    ///
    /// # Panics
    /// If `offset` is larger than the declared border.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn get(&self, offset: [isize; D]) -> Option<T> {
        let shift = self.row.shift_inside(offset)?;
        // SAFETY: as in `clamped`; the offset needs no clamping.
        Some(unsafe { *self.row.element(shift).add(self.at) })
    }
}

#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[cfg_attr(not(target_arch = "nvptx64"), cold, inline(never))]
#[track_caller]
fn out_of_reach(offset: &[isize], border: &[usize], axes_only: bool) -> ! {
    stop_on_device!("an offset is larger than the access's neighborhood; declare a larger border");
    let mapper = if axes_only { "neighborhood_along_axes" } else { "neighborhood" };
    panic!(
        "offset {offset:?} is not in the access's {mapper}({border:?}); \
         declare a larger border or look no further"
    )
}

#[cfg(test)]
mod tests {
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
    fn every_border_item_agrees_with_arithmetic() {
        let elements = elements();
        let at = |y: isize, x: isize| elements[(y.clamp(0, 2) * 5 + x.clamp(0, 4)) as usize];
        for (y, x) in (0..3).flat_map(|y| (0..5).map(move |x| (y, x))) {
            let row = row_at(&elements, Reach::boxed([2, 2]), [y as usize, x as usize], 1);
            for (dy, dx) in (-2..=2).flat_map(|dy| (-2..=2).map(move |dx| (dy, dx))) {
                let inside = (0..3).contains(&(y + dy)) && (0..5).contains(&(x + dx));
                assert_eq!(row.item(0).clamped([dy, dx]), at(y + dy, x + dx));
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
}
