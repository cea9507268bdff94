//! Relative access to an item's surroundings. Knows offsets from the item, not
//! where the item stands.
//!
//! Speed rests on one rule that whoever builds these views keeps: items whose
//! neighbourhood would leave the buffer along the fastest dimension come alone,
//! as rows of length 1. All items of a longer row then share the same limits,
//! so clamping is loop-invariant and a loop over items vectorises.
#![allow(unsafe_code)]
#![allow(clippy::inline_always, reason = "see `NeighborhoodRow::clamped_shift`")]

use core::marker::PhantomData;

#[cfg(target_arch = "nvptx64")]
use crate::abi::StackLevel;
use crate::bounds::Layout;
#[cfg(target_arch = "nvptx64")]
use crate::fail::stop;

/// What a method finds for each of some offsets, as an array. Written out, for two reasons: a loop
/// over many offsets is not unrolled, and a closure that an array's `map` gets is not always joined
/// with the kernel. Offsets are then no constants, and each costs as much as many elements.
#[cfg(not(target_arch = "nvptx64"))]
macro_rules! for_each_offset {
    ($self:ident.$get:ident, $offsets:ident: $n:ident, [$($at:literal)*]) => {{
        const { assert!(0 < $n && $n <= [$($at),*].len(), "1 to 64 offsets can be given") };
        let mut found = [$self.$get($offsets[0]); $n];
        $(if 0 < $at && $at < $n {
            found[$at] = $self.$get($offsets[$at]);
        })*
        found
    }};
    ($self:ident.$get:ident, $offsets:ident: $n:ident) => {
        for_each_offset!($self.$get, $offsets: $n, [
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
            32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60
            61 62 63
        ])
    };
}

/// The same on devices, whose compiler unrolls loops over nine constants, and none over 27: means of so many cells took
/// fifteen times as long. One call of the method for each nine, so that what fails is in the code once: with a second one
/// for the first offset, the PTX of a 3-D stencil had 699 instructions, not 503.
#[cfg(target_arch = "nvptx64")]
macro_rules! for_each_offset {
    ($self:ident.$get:ident, $offsets:ident: $n:ident, [$($first:literal)*]) => {{
        const { assert!(0 < $n && $n <= 64, "1 to 64 offsets can be given") };
        let mut found = [const { core::mem::MaybeUninit::uninit() }; $n];
        $(if $first < $n {
            let mut at = $first;
            while at < $first + 9 && at < $n {
                found[at].write($self.$get($offsets[at]));
                at += 1;
            }
        })*
        // SAFETY: all `$n` positions were written, and what may be uninitialised is laid out as what is not.
        unsafe { core::mem::transmute_copy(&found) }
    }};
    ($self:ident.$get:ident, $offsets:ident: $n:ident) => {
        for_each_offset!($self.$get, $offsets: $n, [0 9 18 27 36 45 54 63])
    };
}

pub(crate) use for_each_offset;

/// How far from an item a kernel may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach<const D: usize> {
    border: [usize; D],
    axes_only: bool,
    /// Along how many dimensions at a time: what `axes_only` says, as a number, for one comparison in
    /// [`NeighborhoodRow::check`].
    #[cfg(not(target_arch = "nvptx64"))]
    most_axes: u8,
}

impl<const D: usize> Reach<D> {
    /// Up to `border` elements away in each dimension, diagonals included.
    #[must_use]
    pub const fn boxed(border: [usize; D]) -> Self {
        Self {
            border,
            axes_only: false,
            #[cfg(not(target_arch = "nvptx64"))]
            most_axes: D as u8,
        }
    }

    /// Up to `border` elements away along one dimension at a time.
    #[must_use]
    pub const fn along_axes(border: [usize; D]) -> Self {
        Self {
            border,
            axes_only: true,
            #[cfg(not(target_arch = "nvptx64"))]
            most_axes: 1,
        }
    }

    /// Elements to either side, per dimension.
    #[must_use]
    #[inline]
    pub const fn border(&self) -> [usize; D] {
        self.border
    }

    #[cfg(target_arch = "nvptx64")]
    #[inline]
    fn allows(&self, offset: [isize; D]) -> bool {
        let near = (0..D).all(|dim| offset[dim].unsigned_abs() <= self.border[dim]);
        let straight = !self.axes_only || offset.iter().filter(|&&step| step != 0).count() <= 1;
        near && straight
    }

    /// Ends a kernel that looks at an offset that is not allowed. Copies what it tells: what is told itself would be in
    /// memory from the beginning of the kernel on, and the rest of its view with it.
    #[inline(always)]
    #[track_caller]
    fn exceeded_by(&self, offset: [isize; D]) -> ! {
        out_of_reach(offset.map(|step| step), self.border.map(|size| size), self.axes_only)
    }
}

/// How far offsets go before they leave the buffer, for all items of a row alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits<const D: usize> {
    below: [usize; D],
    above: [usize; D],
    /// Items of a run, if threads take runs: 1 if not.
    #[cfg(target_arch = "nvptx64")]
    run: usize,
    /// How far apart elements are that follow each other, back and ahead: 0 at the edge. Ahead along the slowest dimension,
    /// behind the highest level of a stack.
    #[cfg(target_arch = "nvptx64")]
    next: [[isize; D]; 2],
    /// The level of a stack that items are on. All else is told from the lowest one, where their first element is, too.
    #[cfg(target_arch = "nvptx64")]
    level: StackLevel,
}

impl<const D: usize> Limits<D> {
    /// Those of items that no edge of the buffer is near: constants, so that
    /// whoever compiles a loop over such items drops clamping.
    pub(crate) const UNREACHED: Self = {
        let far = isize::MAX as usize;
        Self {
            below: [far; D],
            above: [far; D],
            #[cfg(target_arch = "nvptx64")]
            run: 1,
            #[cfg(target_arch = "nvptx64")]
            next: [[0; D]; 2],
            #[cfg(target_arch = "nvptx64")]
            level: StackLevel::ONLY,
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

    /// How many levels of a stack are above its lowest one. Hosts have no stacks.
    #[inline]
    pub(crate) const fn highest(&self) -> isize {
        #[cfg(target_arch = "nvptx64")]
        return self.level.all as isize - 1;
        #[cfg(not(target_arch = "nvptx64"))]
        0
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
        let mut limits = Self::UNREACHED;
        (limits.below, limits.above) = (start, above);
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

    /// The same of items on one level of a stack, of whose lowest one these are the limits.
    #[cfg(target_arch = "nvptx64")]
    #[inline]
    pub(crate) fn from_level(
        mut self,
        level: StackLevel,
        above: [u32; D],
        strides: [usize; D],
    ) -> Self {
        self.level = level;
        if level.all > 1 {
            let beyond = above[0].wrapping_sub(level.all as u32 - 1);
            self.next[1][0] = crate::machine::unless_zero(beyond, strides[0] as isize);
        }
        self
    }

    /// The same of the item that has `within` others of its run before it, as far as it may look along the fastest
    /// dimension as well: `below` and `above` are those of the run's first item. The compiler knows then that an offset
    /// which stays in the run stays in the buffer, and what is left of the others is one choice for all rows.
    #[inline]
    pub(crate) fn at_edges(
        mut self,
        run: usize,
        within: usize,
        below: [u32; D],
        above: [u32; D],
    ) -> Self {
        let Some(fastest) = D.checked_sub(1) else { return self };
        let (before, behind) = (within, run - 1 - within);
        let beyond = [below[fastest], above[fastest].wrapping_sub((run - 1) as u32)];
        self.below[fastest] = beyond[0] as usize + before;
        self.above[fastest] = beyond[1] as usize + behind;
        #[cfg(target_arch = "nvptx64")]
        {
            let next = crate::machine::unless_zero;
            if before == 0 {
                self.next[0][fastest] = next(beyond[0], -1);
            }
            if behind == 0 {
                self.next[1][fastest] = next(beyond[1], 1);
            }
        }
        self
    }
}

/// How far an element lies from an item's own, in elements. What the allocation holds for one offset, it holds also for
/// that offset without its last step.
///
/// In two parts where threads take runs: to an even sum LLVM adds 1 by setting a bit, and sees no more that the element
/// follows another. Of a square of 25 `f64`, eight were loaded once more beside the fifteen wide loads that had them all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shift {
    /// From row to row; if it is not in two parts, all of it.
    pub(crate) between: isize,
    /// Along the row.
    pub(crate) within: isize,
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
    /// If the row is not inside of the buffer.
    ///
    /// # Safety
    /// The row has an item. Every element that `reach` allows from an item of the row, clamped to
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
    /// As [`new`](Self::new), and `limits` are those of the items. The last of `strides` is 1.
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

    /// The surroundings of the first item.
    #[inline]
    pub(crate) fn first_item(&self) -> NeighborhoodItem<'_, T, D> {
        NeighborhoodItem { row: self, at: 0 }
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
        if !fits {
            fail!(
                "a row has fewer items than a segment of it",
                "a row of {} items has no {} items from {} on",
                self.len,
                len,
                start
            );
        }
        // SAFETY: item `start` is one of the row, so its element is in bounds.
        let first = unsafe { self.first.add(start) };
        let mut limits = self.limits;
        if let Some(fastest) = D.checked_sub(1) {
            // Those that are never reached stay so. No limit is larger than `isize::MAX`, nor is a row longer.
            let further = |limit: usize, by: usize| (limit + by).min(isize::MAX as usize);
            limits.below[fastest] = further(limits.below[fastest], start);
            limits.above[fastest] = further(limits.above[fastest], self.len - start - len);
        }
        Self { first, limits, len, ..*self }
    }

    /// The surroundings of as many items, so many rows further along the dimension before the fastest.
    ///
    /// # Safety
    /// As [`new`](Self::new), for those items; there is no such dimension only if `rows` is 0.
    #[cfg(not(target_arch = "nvptx64"))]
    #[must_use]
    #[inline]
    pub unsafe fn rows_further(&self, rows: usize) -> Self {
        let (mut first, mut limits) = (self.first, self.limits);
        if let Some(dim) = D.checked_sub(2) {
            // SAFETY: the caller vouches for the element of that row's first item.
            first = unsafe { first.add(rows * self.strides[dim]) };
            limits.below[dim] += rows;
            limits.above[dim] -= rows;
        }
        Self { first, limits, ..*self }
    }

    /// The same items, for which clamping along the fastest dimension is left out.
    ///
    /// # Safety
    /// No offset within reach leaves the buffer along that dimension, from any item of the row.
    #[must_use]
    #[inline]
    pub unsafe fn inside_rows(mut self) -> Self {
        if let Some(fastest) = D.checked_sub(1) {
            self.limits.below[fastest] = Limits::<D>::UNREACHED.below[fastest];
            self.limits.above[fastest] = Limits::<D>::UNREACHED.above[fastest];
        }
        self
    }

    /// For each item of the row the element at `offset` from it, where a
    /// coordinate outside of the buffer becomes the nearest one inside.
    ///
    /// # Panics
    /// If `offset` is larger than the declared border.
    #[must_use]
    #[cfg_attr(target_arch = "nvptx64", inline)]
    #[cfg_attr(not(target_arch = "nvptx64"), inline(always))]
    #[track_caller]
    pub fn clamped(&self, offset: [isize; D]) -> &'a [T] {
        let shift = self.clamped_shift(offset);
        // SAFETY: `new`'s contract covers every clamped offset, for `len` items.
        unsafe { core::slice::from_raw_parts(self.element(shift), self.len) }
    }

    /// The slices at several offsets: [`clamped`](Self::clamped) of each, in the order of `offsets`.
    /// These are 1 to 64, or the program does not compile. Give constants: of each step, the compiler
    /// then leaves out the direction that it does not take, and what is left is found out once a row. On
    /// GPUs nothing is clamped where no edge is near.
    ///
    /// ```
    /// use celerity_kernel::{Bounds, Layout, NeighborhoodRow, Reach};
    ///
    /// let u = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    /// let (range, reach) = ([3, 4], Reach::boxed([1, 1]));
    /// let layout = Layout::row_major(&Bounds::from_range(range));
    /// // SAFETY: the layout covers the whole buffer, which nobody writes.
    /// let row = unsafe { NeighborhoodRow::new(u.as_ptr(), &layout, &reach, range, [0, 1], 2) };
    /// let [north, south, west, east] = row.clamped_each([[-1, 0], [1, 0], [0, -1], [0, 1]]);
    /// // The row is one at the upper edge: what is north of it is the row itself.
    /// assert_eq!((north, south), (&[2, 3][..], &[6, 7][..]));
    /// assert_eq!((west, east), (&[1, 2][..], &[3, 4][..]));
    /// ```
    ///
    /// # Panics
    /// If one of `offsets` is larger than the declared border.
    #[must_use]
    #[cfg_attr(target_arch = "nvptx64", inline)]
    #[cfg_attr(not(target_arch = "nvptx64"), inline(always))]
    #[track_caller]
    pub fn clamped_each<const N: usize>(&self, offsets: [[isize; D]; N]) -> [&'a [T]; N] {
        for_each_offset!(self.clamped, offsets: N)
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
        if i >= self.len {
            fail!("a row has no such item", "a row of {} items has no item {}", self.len, i);
        }
        NeighborhoodItem { row: self, at: i }
    }

    /// How far the element at a clamped offset lies from an item's own. Of a constant offset and items that no edge is
    /// near, the products of steps and strides are left: little enough to be joined with a kernel, for each of its
    /// many offsets.
    #[cfg(not(target_arch = "nvptx64"))]
    #[inline(always)]
    #[track_caller]
    fn clamped_shift(&self, offset: [isize; D]) -> Shift {
        self.check(offset);
        self.sum_along(|dim| {
            let size = offset[dim].unsigned_abs();
            match offset[dim] < 0 {
                true => 0_usize.wrapping_sub(size.min(self.limits.below[dim])).cast_signed(),
                false => size.min(self.limits.above[dim]).cast_signed(),
            }
        })
    }

    /// The sum of steps along all dimensions. A loop, as LLVM does not always join closures that iterators call.
    #[cfg(not(target_arch = "nvptx64"))]
    #[inline(always)]
    pub(crate) fn sum_along(&self, step: impl Fn(usize) -> isize) -> Shift {
        let (mut between, mut dim) = (0_isize, 0);
        while dim < D {
            between = between.wrapping_add(step(dim).wrapping_mul(self.stride(dim).cast_signed()));
            dim += 1;
        }
        Shift { between, within: 0 }
    }

    /// That an offset is within reach: one comparison for each dimension, and one for all.
    #[cfg(not(target_arch = "nvptx64"))]
    #[inline(always)]
    #[track_caller]
    pub(crate) fn check(&self, offset: [isize; D]) {
        let (mut near, mut axes, mut dim) = (true, 0, 0);
        while dim < D {
            near &= offset[dim].unsigned_abs() <= self.reach.border[dim];
            axes += u8::from(offset[dim] != 0);
            dim += 1;
        }
        if !(near & (axes <= self.reach.most_axes)) {
            self.reach.exceeded_by(offset);
        }
    }

    /// How far rows of each dimension are apart, in elements.
    #[cfg(not(target_arch = "nvptx64"))]
    #[inline(always)]
    pub(crate) const fn stride(&self, dim: usize) -> usize {
        if dim + 1 == D { 1 } else { self.strides[dim] }
    }

    #[cfg(target_arch = "nvptx64")]
    #[inline]
    #[track_caller]
    fn clamped_shift(&self, offset: [isize; D]) -> Shift {
        self.check(offset);
        let limits = &self.limits;
        let offset = self.seen_from_the_ground(offset);
        self.sum(|dim| {
            if limits.run > 1 {
                // Nothing clamps what stays in the stack.
                let highest = if dim == 0 { limits.highest() } else { 0 };
                match offset[dim] {
                    -1 => return limits.next[0][dim],
                    step if step == highest + 1 => {
                        return highest * self.strides[dim] as isize + limits.next[1][dim];
                    }
                    step if 0 < step && step <= highest => {
                        return step * self.strides[dim] as isize;
                    }
                    _ => {}
                }
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
    fn shift_inside(&self, offset: [isize; D]) -> Option<Shift> {
        self.check(offset);
        let offset = self.seen_from_the_ground(offset);
        self.is_inside(offset).then(|| self.shift(offset))
    }

    /// Whether an offset, as [seen from the ground](Self::seen_from_the_ground), stays inside of the buffer.
    #[inline]
    fn is_inside(&self, offset: [isize; D]) -> bool {
        (0..D).all(|dim| stays(&self.limits, dim, offset[dim]))
    }

    /// How far the element at an offset that stays inside lies from an item's own.
    #[inline]
    pub(crate) fn shift(&self, offset: [isize; D]) -> Shift {
        self.sum(|dim| offset[dim] * self.strides[dim] as isize)
    }

    /// An offset from an item, from the one on the lowest level of its stack.
    #[inline]
    #[cfg_attr(not(target_arch = "nvptx64"), expect(unused_mut))]
    pub(crate) fn seen_from_the_ground(&self, mut offset: [isize; D]) -> [isize; D] {
        #[cfg(target_arch = "nvptx64")]
        if let Some(slowest) = offset.first_mut() {
            *slowest += self.limits.level.below as isize;
        }
        offset
    }

    /// The sum of distances along all dimensions.
    #[inline]
    fn sum(&self, along: impl Fn(usize) -> isize) -> Shift {
        #[cfg(target_arch = "nvptx64")]
        if let (run @ 2.., Some(fastest)) = (self.limits.run, D.checked_sub(1)) {
            let slow: isize = (0..fastest).map(&along).sum();
            return Shift { between: slow & crate::abi::whole_runs(run), within: along(fastest) };
        }
        Shift { between: (0..D).map(along).sum(), within: 0 }
    }

    /// Where the element lies that is so far from the first item's own.
    ///
    /// # Safety
    /// It is an element of the allocation, and so is what lies as far away without the part within the row.
    #[inline]
    pub(crate) unsafe fn element(&self, Shift { between, within }: Shift) -> *const T {
        // SAFETY: passed on.
        unsafe { self.first.offset(between).offset(within) }
    }

    #[cfg(target_arch = "nvptx64")]
    #[inline]
    #[track_caller]
    pub(crate) fn check(&self, offset: [isize; D]) {
        if !self.reach.allows(offset) {
            self.reach.exceeded_by(offset);
        }
    }
}

/// Whether a step along a dimension ends inside of the buffer. Of a step that is a constant, as
/// most are, one comparison is left, or none.
#[inline]
pub(crate) fn stays<const D: usize>(limits: &Limits<D>, dim: usize, step: isize) -> bool {
    match step {
        0 => true,
        ..0 => -limits.below(dim) <= step,
        // Nothing leaves a stack by itself.
        1.. => dim == 0 && step <= limits.highest() || step <= limits.above(dim),
    }
}

/// The surroundings of one item.
#[derive(Clone, Copy, Debug)]
pub struct NeighborhoodItem<'a, T, const D: usize> {
    row: &'a NeighborhoodRow<'a, T, D>,
    at: usize,
}

impl<'a, T, const D: usize> NeighborhoodItem<'a, T, D> {
    /// As [`clamped`](Self::clamped), where the element is: of large elements, such as a cell with all of its particles, a
    /// kernel that looks at a few of their parts copies no more than these.
    ///
    /// # Panics
    /// If `offset` is larger than the declared border.
    #[must_use]
    #[cfg_attr(target_arch = "nvptx64", inline)]
    #[cfg_attr(not(target_arch = "nvptx64"), inline(always))]
    #[track_caller]
    pub fn clamped_ref(&self, offset: [isize; D]) -> &'a T {
        let shift = self.row.clamped_shift(offset);
        // SAFETY: as in `clamped`; nobody writes the elements during `'a`.
        unsafe { &*self.row.element(shift).add(self.at) }
    }
}

impl<T: Copy, const D: usize> NeighborhoodItem<'_, T, D> {
    /// The element at `offset` from the item, where a coordinate outside of the
    /// buffer becomes the nearest one inside.
    ///
    /// # Panics
    /// If `offset` is larger than the declared border.
    #[must_use]
    #[cfg_attr(target_arch = "nvptx64", inline)]
    #[cfg_attr(not(target_arch = "nvptx64"), inline(always))]
    #[track_caller]
    pub fn clamped(&self, offset: [isize; D]) -> T {
        let shift = self.row.clamped_shift(offset);
        // SAFETY: the row's contract covers clamped offsets from each of its
        // items, and `at` is one of them.
        unsafe { *self.row.element(shift).add(self.at) }
    }

    /// The elements at several offsets: [`clamped`](Self::clamped) of each, in the order of `offsets`.
    /// These are 1 to 64, or the program does not compile. Give constants: on CPUs, what they are
    /// clamped to is then found out once for a run of items. `map` of an array finds it out for each
    /// item and takes as long as fifty of them (seven points in space). In a kernel, loops whose ranges are
    /// constants do as well. In a closure they do if the ranges are half open, `-1..2`, and offsets are few.
    ///
    /// Of surroundings whose edges meet, it is [`PeriodicItem::at_each`](crate::PeriodicItem::at_each).
    ///
    /// ```
    /// use celerity_kernel::{Item, NeighborhoodItem, kernel};
    /// # use celerity_kernel::Module;
    ///
    /// const SIDES: [[isize; 2]; 4] = [[-1, 0], [1, 0], [0, -1], [0, 1]];
    ///
    /// /// The mean of a cell's neighbours.
    /// #[kernel]
    /// fn smooth(_item: Item<2>, (after, u): (&mut f32, NeighborhoodItem<'_, f32, 2>)) {
    ///     let [north, south, west, east] = u.clamped_each(SIDES);
    ///     *after = 0.25 * (north + south + west + east);
    /// }
    /// # static MODULE: Module = Module::without_code("doc", "");
    /// # fn main() {}
    /// ```
    ///
    /// # Panics
    /// If one of `offsets` is larger than the declared border.
    #[must_use]
    #[cfg_attr(target_arch = "nvptx64", inline)]
    #[cfg_attr(not(target_arch = "nvptx64"), inline(always))]
    #[track_caller]
    pub fn clamped_each<const N: usize>(&self, offsets: [[isize; D]; N]) -> [T; N] {
        for_each_offset!(self.clamped, offsets: N)
    }

    /// The element at `offset` from the item, or `None` outside of the buffer: `get(offset).unwrap_or(0.0)` where
    /// nothing is beyond the edges. On CPUs it takes hardly longer than [`clamped`](Self::clamped).
    ///
    /// # Panics
    /// If `offset` is larger than the declared border.
    #[must_use]
    #[cfg_attr(target_arch = "nvptx64", inline)]
    #[cfg_attr(not(target_arch = "nvptx64"), inline(always))]
    #[track_caller]
    pub fn get(&self, offset: [isize; D]) -> Option<T> {
        #[cfg(target_arch = "nvptx64")]
        {
            let shift = self.row.shift_inside(offset)?;
            // SAFETY: as in `clamped`; the offset needs no clamping.
            Some(unsafe { *self.row.element(shift).add(self.at) })
        }
        // There is an element to load either way. With a branch around the load, a loop over items
        // would take one at a time.
        #[cfg(not(target_arch = "nvptx64"))]
        {
            let nearest = self.clamped(offset);
            self.row.is_inside(offset).then_some(nearest)
        }
    }
}

#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[cfg_attr(not(target_arch = "nvptx64"), cold, inline(never))]
#[cfg_attr(target_arch = "nvptx64", expect(unused_variables))]
#[track_caller]
fn out_of_reach<const D: usize>(offset: [isize; D], border: [usize; D], axes_only: bool) -> ! {
    #[cfg(target_arch = "nvptx64")]
    stop("an offset is larger than the access's neighborhood; declare a larger border", 0, []);
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let mapper = if axes_only { "neighborhood_along_axes" } else { "neighborhood" };
        panic!(
            "offset {offset:?} is not in the access's {mapper}({border:?}); declare a larger border or look \
             no further"
        )
    }
}

#[cfg(test)]
mod tests;
