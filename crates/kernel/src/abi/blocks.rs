//! The two blocks of numbers that entry points take by value. Fixed layout, the
//! same for every kernel; no padding.

use crate::bounds::Layout;

/// What all threads of a launch are told about it. Coordinates have three
/// dimensions, the slowest first; those that an index space lacks come last, with
/// offset 0 and size 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct LaunchBlock {
    /// The chunk's first item.
    pub offset: [u64; 3],
    /// Items of the chunk in each dimension.
    pub range: [u64; 3],
    /// The size of the whole index space.
    pub global: [u64; 3],
    /// The items from here, counted from the chunk's first ...
    pub inner_min: [u64; 3],
    /// ... up to here can look as far as any neighbourhood allows without leaving
    /// its buffer. The whole chunk, if there are no neighbourhoods; nothing, if both are equal.
    /// Along the fastest dimension these are whole runs: all that there are, if they look over edges.
    pub inner_max: [u64; 3],
    /// Items per thread along the fastest dimension: 1, or [`RUN`](super::RUN)
    /// when all rows are aligned for it.
    pub run: u16,
    /// Items, or runs, per thread along the slowest dimension: as many blocks of threads apart as
    /// there are threads of a block along it.
    pub steps: u8,
    /// How many of these a thread takes at once, one behind the other: 1, or [`STACK`](super::STACK), of which
    /// `steps` is a multiple then.
    pub stack: u8,
    /// Blocks along x whose threads take runs. Those behind them take, one by one, the items of
    /// their rows that are in no run.
    pub blocks: u32,
}

/// What all threads of a launch are told about one access. In elements; unused
/// dimensions as in [`LaunchBlock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct AccessBlock {
    /// Of elements that belong to items: where that of the chunk's first item lies, in elements
    /// from the allocation's first. A multiple of [`RUN`](super::RUN) where threads take runs. Of others, where the declared box's
    /// first element lies; 0 if there is none.
    pub first: u64,
    /// The first element that the allocation holds, in buffer coordinates.
    pub origin: [u64; 3],
    /// How many elements lie between neighbours.
    pub strides: [u64; 3],
    /// The declared box from here; of a part for each item, where those of the chunk's first item begin ...
    pub part_min: [u64; 3],
    /// ... up to here; or how far apart those of neighbouring items are.
    pub part_max: [u64; 3],
    /// Elements of the buffer in each dimension.
    pub buffer: [u64; 3],
    /// How far a neighbourhood reaches; or the size of an item's part.
    pub border: [u64; 3],
    /// How many elements the buffer has before that of the chunk's first item, along each dimension.
    /// Not more than [`FAR`](Self::FAR).
    pub below: [u32; 3],
    /// How many it has behind it. Not more than a number of 32 bits counts. Of a part for each item, how many shares there are,
    /// or 0.
    pub above: [u32; 3],
    /// 1 if a neighbourhood has no diagonals.
    pub axes_only: u32,
    /// What else a view has to know. Of a part for each item, the dimensions of the index space along which its sides go, two
    /// bits for each side. Of a periodic neighbourhood, the dimensions along which it goes around: bit `d` for dimension `d`. Of
    /// a reduction into an array, where its accumulators are in the block's dynamic shared memory, or
    /// [`IN_GLOBAL`](Self::IN_GLOBAL).
    pub detail: u32,
}

const _: () = assert!(size_of::<LaunchBlock>() == 128 && align_of::<LaunchBlock>() == 8);
const _: () = assert!(size_of::<AccessBlock>() == 184 && align_of::<AccessBlock>() == 8);

impl LaunchBlock {
    /// The block as a device reads it.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; size_of::<Self>()] {
        let Self { offset, range, global, inner_min, inner_max, run, steps, stack, blocks } = *self;
        let mut bytes = [0; size_of::<Self>()];
        let fields = [offset, range, global, inner_min, inner_max];
        put(&mut bytes, fields.as_flattened());
        bytes[120..122].copy_from_slice(&run.to_ne_bytes());
        (bytes[122], bytes[123]) = (steps, stack);
        bytes[124..].copy_from_slice(&blocks.to_ne_bytes());
        bytes
    }
}

impl LaunchBlock {
    /// A whole index space of items that threads take one by one, none of which looks over an edge.
    pub(super) const fn one_by_one(offset: [u64; 3], range: [u64; 3]) -> Self {
        let (global, inner_min, inner_max) = (range, [0; 3], range);
        let (run, steps, stack, blocks) = (1, 1, 1, 0);
        Self { offset, range, global, inner_min, inner_max, run, steps, stack, blocks }
    }

    /// Whether no neighbourhood of an item, counted from the chunk's first, leaves its buffer.
    #[inline]
    pub(super) fn is_inner<const K: usize>(&self, at: [usize; K]) -> bool {
        let (min, max): ([usize; K], [usize; K]) = (first(self.inner_min), first(self.inner_max));
        (0..K).all(|dim| (min[dim]..max[dim]).contains(&at[dim]))
    }
}

impl AccessBlock {
    /// Accumulators that do not fit into shared memory: they are the partial result itself.
    pub const IN_GLOBAL: u32 = u32::MAX;

    /// As far as a neighbourhood may reach where threads take runs. A chunk has so many places less than
    /// numbers of 32 bits count: a place can be added to it, and taken from what they count at most.
    pub const FAR: u32 = 1 << 29;

    /// The block as a device reads it.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; size_of::<Self>()] {
        let Self { first, origin, strides, part_min, part_max, buffer, border, .. } = *self;
        let ([a, b, c], [d, e, f]) = (self.below, self.above);
        let words = [a, b, c, d, e, f, self.axes_only, self.detail];
        let mut bytes = [0; size_of::<Self>()];
        put(&mut bytes, &[first]);
        put(&mut bytes[8..], [origin, strides, part_min, part_max, buffer, border].as_flattened());
        for (place, word) in bytes[152..].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// The layout of the allocation.
    #[inline]
    pub(crate) fn layout<const D: usize>(&self) -> Layout<D> {
        let strides =
            core::array::from_fn(|dim| if dim + 1 == D { 1 } else { self.strides[dim] as usize });
        Layout::from_parts(first(self.origin), strides)
    }

    /// How many elements the buffer has before an item's and behind it, where threads take runs.
    /// At least so many as a neighbourhood reaches, if not exactly.
    #[inline]
    pub(crate) fn room<const D: usize>(&self, at: [usize; D]) -> ([u32; D], [u32; D]) {
        let at = |dim: usize| at[dim] as u32;
        (
            core::array::from_fn(|dim| self.below[dim].wrapping_add(at(dim))),
            core::array::from_fn(|dim| self.above[dim].wrapping_sub(at(dim))),
        )
    }

    /// Where the element of an item lies, in elements from the base. `at` counts from the chunk's
    /// first item, and a run of `run` items begins there.
    #[inline]
    pub(crate) fn position<const D: usize>(&self, at: [usize; D], run: usize) -> usize {
        let strides = self.layout::<D>().strides();
        let along = (0..D).map(|dim| at[dim] * strides[dim]);
        let position = self.first as usize + along.sum::<usize>();
        position & whole_runs(run) as usize
    }
}

/// What a distance of whole runs of `run` items, a power of two, has bits in. Changes none that is one: it is how the compiler
/// learns that rows can be loaded as vectors. It looks no further than at the last few steps of a
/// computation, so this is to be the last.
#[inline]
pub(crate) const fn whole_runs(run: usize) -> isize {
    -(run as isize)
}

/// The first `D` of three coordinates, as indices.
#[inline]
pub(crate) fn first<const D: usize>(coordinates: [u64; 3]) -> [usize; D] {
    core::array::from_fn(|dim| coordinates[dim] as usize)
}

pub(super) fn put(bytes: &mut [u8], values: &[u64]) {
    for (place, value) in bytes.chunks_exact_mut(8).zip(values) {
        place.copy_from_slice(&value.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use core::mem::offset_of;

    use super::*;

    impl AccessBlock {
        /// One of nothing.
        pub(crate) const EMPTY: Self = Self {
            first: 0,
            origin: [0; 3],
            strides: [0; 3],
            part_min: [0; 3],
            part_max: [0; 3],
            buffer: [0; 3],
            border: [0; 3],
            below: [0; 3],
            above: [0; 3],
            axes_only: 0,
            detail: 0,
        };
    }

    #[test]
    fn bytes_follow_the_layout_of_the_launch_block() {
        let block = LaunchBlock {
            offset: [1, 2, 3],
            range: [4, 5, 6],
            global: [7, 8, 9],
            inner_min: [10, 11, 12],
            inner_max: [13, 14, 15],
            run: 16,
            steps: 17,
            stack: 18,
            blocks: 18,
        };
        let bytes = block.to_bytes();
        for (index, word) in bytes[..120].chunks_exact(8).enumerate() {
            assert_eq!(word, (index as u64 + 1).to_ne_bytes());
        }
        assert_eq!(bytes[offset_of!(LaunchBlock, run)..][..2], 16_u16.to_ne_bytes());
        assert_eq!(bytes[offset_of!(LaunchBlock, steps)], 17);
        assert_eq!(bytes[offset_of!(LaunchBlock, stack)], 18);
        assert_eq!(bytes[offset_of!(LaunchBlock, blocks)..][..4], 18_u32.to_ne_bytes());
    }

    #[test]
    fn bytes_follow_the_layout_of_the_access_block() {
        let block = AccessBlock {
            first: 1,
            origin: [2, 3, 4],
            strides: [5, 6, 7],
            part_min: [8, 9, 10],
            part_max: [11, 12, 13],
            buffer: [14, 15, 16],
            border: [17, 18, 19],
            below: [20, 21, 22],
            above: [23, 24, 25],
            axes_only: 26,
            detail: 27,
        };
        let bytes = block.to_bytes();
        for (index, word) in bytes[..152].chunks_exact(8).enumerate() {
            assert_eq!(word, (index as u64 + 1).to_ne_bytes());
        }
        for (index, word) in bytes[152..].chunks_exact(4).enumerate() {
            assert_eq!(word, (index as u32 + 20).to_ne_bytes());
        }
        assert_eq!(offset_of!(AccessBlock, below), 152);
        assert_eq!(offset_of!(AccessBlock, detail), 180);
    }

    #[test]
    fn aligned_positions_are_the_same_where_they_are_promised() {
        // The chunk begins at [4, 12].
        let block = AccessBlock {
            first: 2 * 64 + 4,
            origin: [2, 8, 0],
            strides: [64, 1, 1],
            ..AccessBlock::EMPTY
        };
        for x in (0..32).step_by(super::super::RUN) {
            assert_eq!([1, 2, 4].map(|run| block.position([1, x], run)), [3 * 64 + 4 + x; 3]);
        }
    }
}
