//! Which box of a buffer belongs to each item, where that can be said of one dimension after the other: what range
//! mappers such as slices, blocks and shares come to on devices. Hosts write it into the block of an access, devices
//! read it from there.

use core::ops::Range;

use super::blocks::AccessBlock;
use crate::bounds::Bounds;

/// What an item has of one dimension of a buffer. What of it would lie outside of the buffer is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartSide {
    /// `width` elements, from `stride` times the item's index along dimension `from` of the index space, plus `first`.
    Window {
        /// The dimension of the index space.
        from: usize,
        /// Elements between the beginnings of neighbouring items; 0 if all items have the same.
        stride: usize,
        /// Where the elements of item 0 begin, in front of the buffer if that is negative.
        first: isize,
        /// Elements of an item.
        width: usize,
    },
    /// An even share: with `n` for the number of granules, of which the last may not be whole, item `i` has the elements from
    /// `granule · (n · (i - first) / count)`, rounded down within the parentheses, up to where those of the next one begin.
    Share {
        /// The dimension of the index space.
        from: usize,
        /// Where the index space begins along it.
        first: usize,
        /// Items along it, fewer than 2³², and at least one.
        count: u32,
        /// Elements that belong together, at least one.
        granule: usize,
    },
}

/// One side for each dimension of a buffer, the slowest first; of those that the buffer lacks,
/// [`PartSide::ALL_OF_NONE`].
pub type PartSides = [PartSide; 3];

/// Which bits of a word say along which dimension of the index space a side goes.
const BITS_OF_DIM: u32 = 2;

impl PartSide {
    /// The one element that there is along a dimension that a buffer lacks.
    pub const ALL_OF_NONE: Self = Self::constant(0..1);

    /// The same elements for all items.
    #[must_use]
    pub const fn constant(elements: Range<usize>) -> Self {
        let width = elements.end.saturating_sub(elements.start);
        // An index of a buffer that has memory is none of the address space's upper half.
        let first =
            if elements.start > isize::MAX as usize { isize::MAX } else { elements.start as isize };
        Self::Window { from: 0, stride: 0, first, width }
    }

    /// `size` elements, from the item's index along dimension `from` times as many on.
    #[must_use]
    pub const fn block(from: usize, size: usize) -> Self {
        Self::Window { from, stride: size, first: 0, width: size }
    }

    /// The dimension of the index space along which items differ.
    const fn from(&self) -> usize {
        match self {
            Self::Window { from, .. } | Self::Share { from, .. } => *from,
        }
    }

    /// The four numbers by which a device finds out what items have, where the chunk's first item along dimension
    /// [`from`](Self::from) is `item`, of a dimension of `size` elements.
    fn numbers(&self, item: usize, size: usize) -> Numbers {
        match *self {
            Self::Window { stride, first, width, .. } => {
                let start = stride.wrapping_mul(item).wrapping_add_signed(first);
                Numbers { start: start as u64, step: stride as u64, unit: width as u64, count: 0 }
            }
            Self::Share { first, count, granule, .. } => Numbers {
                start: item.saturating_sub(first) as u64,
                step: size.div_ceil(granule.max(1)) as u64,
                unit: granule.max(1) as u64,
                count: count.max(1),
            },
        }
    }

    /// What `items`, of which there are some, have together of a dimension of `size` elements. `None` if it takes numbers
    /// that devices do not count with.
    fn hull(&self, items: &Range<usize>, size: usize) -> Option<Range<usize>> {
        let last = items.end - 1;
        if let Self::Window { stride, first, width, .. } = *self {
            let begins = |item| isize::try_from(stride.checked_mul(item)?).ok()?.checked_add(first);
            begins(items.start)?;
            begins(last)?.checked_add(isize::try_from(width).ok()?)?;
        }
        let numbers = self.numbers(items.start, size);
        let (first, last) = (numbers.part(0, 1, size), numbers.part(last - items.start, 1, size));
        Some(first.start..last.end)
    }
}

/// What devices find out by what items have along one dimension.
#[derive(Clone, Copy)]
struct Numbers {
    /// Of a window: where that of the chunk's first item begins, in two's complement. Of a share: which one it has.
    start: u64,
    /// Elements between the beginnings of windows; or granules of the dimension.
    step: u64,
    /// Elements of a window, or of a granule.
    unit: u64,
    /// How many shares there are; 0 of windows.
    count: u32,
}

impl Numbers {
    /// What `len` items have, the `at`-th from the chunk's first on, of a dimension of `size` elements.
    #[inline(always)]
    fn part(self, at: usize, len: usize, size: usize) -> Range<usize> {
        if self.count == 0 {
            let begins = |at: usize| self.start.wrapping_add(self.step.wrapping_mul(at as u64));
            let end = begins(at + len - 1).wrapping_add(self.unit);
            // Not clamped, which is checked.
            let within = |element: u64| ((element as i64).max(0) as usize).min(size);
            return within(begins(at))..within(end);
        }
        let count = u64::from(self.count);
        let (whole, rest) = (self.step / count, self.step % count);
        let begins = |at: usize| {
            let nth = (self.start + at as u64).min(count);
            // Both factors of the second product are numbers of 32 bits.
            let granules = nth * whole + nth * rest / count;
            granules.wrapping_mul(self.unit).min(size as u64) as usize
        };
        begins(at)..begins(at + len)
    }
}

/// What all `items` have together of a buffer of size `buffer`: the smallest box around it. `None` if it takes numbers that
/// devices do not count with. O(1).
pub(super) fn hull(sides: &PartSides, items: &Bounds<3>, buffer: [usize; 3]) -> Option<Bounds<3>> {
    let (mut min, mut max) = ([0; 3], [0; 3]);
    for dim in 0..3 {
        let from = sides[dim].from();
        let part =
            sides[dim].hull(&(*items.min().get(from)?..*items.max().get(from)?), buffer[dim])?;
        (min[dim], max[dim]) = (part.start, part.end);
    }
    Some(Bounds::new(min, max))
}

/// Whether there are elements between what items side by side along dimension `dim` of the index space have.
pub(super) fn have_gaps_along(sides: &PartSides, dim: usize) -> bool {
    let has_gaps = |side: &PartSide| matches!(side, PartSide::Window { from, stride, width, .. } if *from == dim && width < stride);
    sides.iter().any(has_gaps)
}

/// Whether each item has one element, as far from its own index as all others have theirs.
pub(super) fn are_shifts(sides: &PartSides) -> bool {
    let is_shift = |dim: usize, side: &PartSide| {
        let along_itself =
            matches!(side, PartSide::Window { from, stride: 1, width: 1, .. } if *from == dim);
        along_itself || *side == PartSide::ALL_OF_NONE
    };
    sides.iter().enumerate().all(|(dim, side)| is_shift(dim, side))
}

impl AccessBlock {
    /// Says in the block what items of a chunk that begins with `first` have of their own.
    pub(super) fn set_sides(&mut self, sides: &PartSides, first: [usize; 3]) {
        self.detail = 0;
        for (dim, side) in sides.iter().enumerate() {
            let item = first.get(side.from()).copied().unwrap_or(0);
            let Numbers { start, step, unit, count } =
                side.numbers(item, self.buffer[dim] as usize);
            (self.part_min[dim], self.part_max[dim], self.border[dim]) = (start, step, unit);
            self.above[dim] = count;
            self.detail |= (side.from() as u32) << (BITS_OF_DIM * dim as u32);
        }
    }

    /// What `len` items side by side along the fastest dimension have of their own, of which `at` is the first, counted from the
    /// chunk's.
    #[inline(always)]
    pub(crate) fn own_part<const K: usize, const D: usize>(
        &self,
        at: [usize; K],
        len: usize,
    ) -> Bounds<D> {
        // Not in loops, which are unrolled too late for what is in arrays to stay in registers.
        let at: [usize; 3] = core::array::from_fn(|dim| if dim < K { at[dim] } else { 0 });
        let side = |dim| if dim < D { self.own_side::<K>(dim, at, len) } else { 0..1 };
        let [slow, middle, fast] = [side(0), side(1), side(2)];
        let corner = |[slow, middle, fast]: [usize; 3]| {
            core::array::from_fn(|dim| [slow, middle, fast][dim])
        };
        let min = corner([slow.start, middle.start, fast.start]);
        Bounds::new(min, corner([slow.end, middle.end, fast.end]))
    }

    /// The same along one dimension of the buffer.
    #[inline(always)]
    fn own_side<const K: usize>(&self, dim: usize, at: [usize; 3], len: usize) -> Range<usize> {
        let from = self.detail >> (BITS_OF_DIM * dim as u32) & ((1 << BITS_OF_DIM) - 1);
        let first = match from {
            0 => at[0],
            1 => at[1],
            _ => at[2],
        };
        let items = if from as usize + 1 == K { len } else { 1 };
        let numbers = Numbers {
            start: self.part_min[dim],
            step: self.part_max[dim],
            unit: self.border[dim],
            count: self.above[dim],
        };
        numbers.part(first, items, self.buffer[dim] as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an item has, in numbers that are large enough for everything.
    fn expected(side: &PartSide, item: usize, size: usize) -> Range<usize> {
        let size = size as i128;
        let within = |element: i128| element.clamp(0, size) as usize;
        match *side {
            PartSide::Window { stride, first, width, .. } => {
                let begins = stride as i128 * item as i128 + first as i128;
                within(begins)..within(begins + width as i128)
            }
            PartSide::Share { first, count, granule, .. } => {
                let (granule, count) = (granule as i128, i128::from(count));
                let granules = (size + granule - 1) / granule;
                let begins =
                    |item: usize| within((item - first) as i128 * granules / count * granule);
                begins(item)..begins(item + 1)
            }
        }
    }

    fn sides() -> impl Iterator<Item = PartSide> {
        let windows = [(0, 0, 3), (1, 0, 1), (1, -2, 1), (4, 1, 4), (4, -6, 2), (7, 0, 9)];
        let windows = windows.into_iter().flat_map(|(stride, first, width)| {
            [0, 1].map(|from| PartSide::Window { from, stride, first, width })
        });
        let shares = [(1, 1), (3, 1), (40, 4), (u32::MAX, 3)]
            .map(|(count, granule)| PartSide::Share { from: 1, first: 2, count, granule });
        windows.chain(shares).chain([
            PartSide::constant(2..5),
            PartSide::constant(5..5),
            PartSide::block(0, 3),
        ])
    }

    #[test]
    fn devices_find_what_items_have() {
        let sizes = [0, 1, 7, 64];
        for (side, size) in sides().flat_map(|side| sizes.map(|size| (side, size))) {
            let all = [side, PartSide::block(1, 2), PartSide::ALL_OF_NONE];
            let (min, buffer) = ([3, 4, 0], [size, 40, 1]);
            let mut block =
                AccessBlock { buffer: buffer.map(|size| size as u64), ..AccessBlock::EMPTY };
            block.set_sides(&all, min);
            for at in (0..3).flat_map(|y| (0..5).map(move |x| [y, x])) {
                let own: Bounds<2> = block.own_part(at, 1);
                let item = [min[0] + at[0], min[1] + at[1]];
                let part = expected(&side, item[side.from()], size);
                let columns = expected(&all[1], item[1], 40);
                let both = Bounds::new([part.start, columns.start], [part.end, columns.end]);
                assert_eq!(own, both, "{side:?} of {size}, {item:?}");
            }
            // Of a row what all of it has, which is also the hull.
            let row: Bounds<2> = block.own_part([1, 0], 5);
            let items = Bounds::new([4, 4, 0], [5, 9, 1]);
            let hull = hull(&all, &items, buffer).unwrap();
            assert_eq!(hull.min()[..2], row.min(), "{side:?} of {size}");
            assert_eq!(hull.max()[..2], row.max(), "{side:?} of {size}");
        }
    }

    #[test]
    fn large_numbers_are_counted_right_or_refused() {
        let share = PartSide::Share { from: 0, first: 0, count: u32::MAX, granule: 1 };
        for (item, size) in [(u32::MAX as usize - 1, usize::MAX >> 1), (77, 1 << 62), (1 << 31, 5)]
        {
            let found = share.numbers(item, size).part(0, 1, size);
            assert_eq!(found, expected(&share, item, size));
        }
        let far = PartSide::Window { from: 0, stride: 1 << 40, first: 0, width: 1 };
        assert_eq!(far.hull(&(5..1 << 30), 1 << 50), None);
        let wide = PartSide::Window { from: 0, stride: 1, first: 1, width: usize::MAX };
        assert_eq!(wide.hull(&(0..2), 100), None);
        assert_eq!(far.hull(&(5..6), 1 << 50), Some(5 << 40..(5 << 40) + 1));
    }

    #[test]
    fn only_windows_narrower_than_their_stride_leave_gaps() {
        let gapped = PartSide::Window { from: 1, stride: 3, first: 0, width: 2 };
        let sides = [PartSide::block(0, 2), gapped, PartSide::ALL_OF_NONE];
        assert_eq!([0, 1, 2].map(|dim| have_gaps_along(&sides, dim)), [false, true, false]);
    }
}
