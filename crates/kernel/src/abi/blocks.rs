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
    /// The chunk's size.
    pub range: [u64; 3],
    /// The size of the whole index space.
    pub global: [u64; 3],
    /// The items from here ...
    pub interior_min: [u64; 3],
    /// ... up to here can look as far as any neighbourhood allows without leaving
    /// its buffer. Everything, if there are no neighbourhoods.
    pub interior_max: [u64; 3],
    /// Items per thread along the fastest dimension: 1, or [`RUN`](super::RUN)
    /// when all rows are aligned for it.
    pub run: u64,
}

/// What all threads of a launch are told about one access. In elements; unused
/// dimensions as in [`LaunchBlock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct AccessBlock {
    /// The first element that the allocation holds, in buffer coordinates.
    pub origin: [u64; 3],
    /// How many elements lie between neighbours.
    pub strides: [u64; 3],
    /// The declared box from here ...
    pub part_min: [u64; 3],
    /// ... up to here.
    pub part_max: [u64; 3],
    /// The buffer's size.
    pub buffer: [u64; 3],
    /// How far a neighbourhood reaches.
    pub border: [u64; 3],
    /// 1 if a neighbourhood has no diagonals.
    pub axes_only: u32,
    /// The dimension that an item has all of, for a part per item. Of a periodic neighbourhood,
    /// the dimensions along which it goes around: bit `d` for dimension `d`. For a reduction into
    /// an array, where its accumulators are in the block's dynamic shared memory, or
    /// [`IN_GLOBAL`](Self::IN_GLOBAL).
    pub slice_dim: u32,
}

const _: () = assert!(size_of::<LaunchBlock>() == 128 && align_of::<LaunchBlock>() == 8);
const _: () = assert!(size_of::<AccessBlock>() == 152 && align_of::<AccessBlock>() == 8);

impl LaunchBlock {
    /// The block as a device reads it.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; size_of::<Self>()] {
        let Self { offset, range, global, interior_min, interior_max, run } = *self;
        let mut bytes = [0; size_of::<Self>()];
        let fields = [offset, range, global, interior_min, interior_max];
        put(&mut bytes, fields.as_flattened());
        bytes[120..].copy_from_slice(&run.to_ne_bytes());
        bytes
    }
}

impl LaunchBlock {
    /// Whether no neighbourhood of so many items from `start` on, along the fastest dimension,
    /// leaves its buffer.
    #[inline]
    pub(super) fn is_interior<const K: usize>(&self, start: [usize; K], len: usize) -> bool {
        let (min, max): ([usize; K], [usize; K]) =
            (first(self.interior_min), first(self.interior_max));
        (0..K).all(|dim| {
            let size = if dim + 1 == K { len } else { 1 };
            min[dim] <= start[dim] && start[dim] + size <= max[dim]
        })
    }
}

impl AccessBlock {
    /// Accumulators that do not fit into shared memory: they are the partial result itself.
    pub const IN_GLOBAL: u32 = u32::MAX;

    /// The block as a device reads it.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; size_of::<Self>()] {
        let Self { origin, strides, part_min, part_max, buffer, border, axes_only, slice_dim } =
            *self;
        let mut bytes = [0; size_of::<Self>()];
        put(&mut bytes, [origin, strides, part_min, part_max, buffer, border].as_flattened());
        bytes[144..148].copy_from_slice(&axes_only.to_ne_bytes());
        bytes[148..].copy_from_slice(&slice_dim.to_ne_bytes());
        bytes
    }

    /// The layout of the allocation. `aligned` promises what
    /// [`LaunchBlock::run`] said, that strides are multiples of a run: it is how
    /// the compiler learns that rows can be loaded as vectors.
    #[inline]
    pub(crate) fn layout<const D: usize>(&self, aligned: bool) -> Layout<D> {
        let mask = if aligned { !(super::RUN - 1) } else { usize::MAX };
        let strides = core::array::from_fn(|dim| match dim + 1 == D {
            true => 1,
            false => self.strides[dim] as usize & mask,
        });
        Layout::from_parts(first(self.origin), strides)
    }

    /// Where the run of items from `start` begins, in elements from the base.
    #[inline]
    pub(crate) fn position<const D: usize>(&self, start: [usize; D], aligned: bool) -> usize {
        let layout = self.layout::<D>(aligned);
        let origin: [usize; D] = first(self.origin);
        let mut position = 0;
        for dim in 0..D {
            let along = start[dim].wrapping_sub(origin[dim]);
            let fastest = dim + 1 == D;
            let along = if fastest && aligned { along & !(super::RUN - 1) } else { along };
            position += along * layout.strides()[dim];
        }
        position
    }
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

    #[test]
    fn bytes_follow_the_layout_of_the_launch_block() {
        let block = LaunchBlock {
            offset: [1, 2, 3],
            range: [4, 5, 6],
            global: [7, 8, 9],
            interior_min: [10, 11, 12],
            interior_max: [13, 14, 15],
            run: 16,
        };
        let bytes = block.to_bytes();
        for (index, word) in bytes.chunks_exact(8).enumerate() {
            assert_eq!(word, (index as u64 + 1).to_ne_bytes());
        }
        assert_eq!(offset_of!(LaunchBlock, run), 120);
    }

    #[test]
    fn bytes_follow_the_layout_of_the_access_block() {
        let block = AccessBlock {
            origin: [1, 2, 3],
            strides: [4, 5, 6],
            part_min: [7, 8, 9],
            part_max: [10, 11, 12],
            buffer: [13, 14, 15],
            border: [16, 17, 18],
            axes_only: 19,
            slice_dim: 20,
        };
        let bytes = block.to_bytes();
        for (index, word) in bytes[..144].chunks_exact(8).enumerate() {
            assert_eq!(word, (index as u64 + 1).to_ne_bytes());
        }
        assert_eq!(bytes[offset_of!(AccessBlock, axes_only)..][..4], 19_u32.to_ne_bytes());
        assert_eq!(bytes[offset_of!(AccessBlock, slice_dim)..][..4], 20_u32.to_ne_bytes());
    }

    #[test]
    fn aligned_positions_are_the_same_where_they_are_promised() {
        let block = AccessBlock {
            origin: [2, 8, 0],
            strides: [64, 1, 1],
            part_min: [0; 3],
            part_max: [0; 3],
            buffer: [0; 3],
            border: [0; 3],
            axes_only: 0,
            slice_dim: 0,
        };
        for x in (8..40).step_by(super::super::RUN) {
            assert_eq!(block.position([5, x], true), block.position([5, x], false));
            assert_eq!(block.position([5, x], true), 3 * 64 + x - 8);
        }
    }
}
