//! Blocks and threads for a chunk.

use core::fmt;

/// The most blocks along y and z that a device takes.
const MOST_OUTER_BLOCKS: u64 = 65_535;

/// The most blocks along x.
const MOST_BLOCKS: u64 = (1 << 31) - 1;

/// Threads of a block, unless the chunk's shape asks for more, and how many of them
/// may be rows. Measured on an H200: a product of 4096² matrices 21.7 ms, as 256 × 1
/// 26.9; a 5-point stencil over 16384² `f32` 1.25 ms, as 256 × 1 1.22.
const ITEM_THREADS: u64 = 256;
const ITEM_ROWS: u64 = 8;

/// The same for threads that take runs of items. The stencil: 0.757 ms, which is as
/// fast as a copy; as 128 × 1 0.822, as 32 × 8 0.789.
const RUN_THREADS: u64 = 128;
const RUN_ROWS: u64 = 4;

/// How many threads there must be before they take more than one step: as many as an H100 runs at once.
const LEAST_THREADS: u64 = 1 << 18;

/// How many there must be of kernels by item that look at nothing around: eight times as many, of which those that are left at the
/// end are few.
const MANY_THREADS: u64 = 1 << 21;

/// How many steps these take at the most.
const STEPS_OF_MANY: u64 = 4;

/// The most threads of a block, and of those along z.
pub const MOST_THREADS: u64 = 1024;
const MOST_DEPTH: u64 = 64;

/// Whether launches of kernels over items and rows can be [asked for](super::Chunk::block) blocks of so many
/// threads in each dimension: one at least, and 1,024 in all at the most. O(dimensions).
#[must_use]
pub fn is_block(block: &[usize]) -> bool {
    let threads = block.iter().try_fold(1, |all: usize, threads| all.checked_mul(*threads));
    threads.is_some_and(|threads| (1..=MOST_THREADS as usize).contains(&threads))
}

/// What is left of a block where there are registers for so many threads: its longest sides are halved until
/// it has no more. O(the logarithm of its threads).
#[must_use]
pub fn block_within(mut block: [usize; 3], threads: usize) -> [usize; 3] {
    while block.iter().fold(1, |all: usize, &side| all.saturating_mul(side)) > threads.max(1)
        && let Some(longest) = block.iter_mut().max()
    {
        *longest = longest.div_ceil(2);
    }
    block
}

/// The shape of a launch: x, y, z; nothing is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Blocks in the grid.
    pub grid: [u32; 3],
    /// Threads in a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory for each block.
    pub shared_bytes: u32,
}

/// Why there are no groups of the size asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupError {
    /// A size is 0, or there are more items than a device runs side by side.
    Size,
    /// The items that are to run are not a whole number of groups.
    Remainder {
        /// The dimension, counted from 0, the slowest.
        dim: usize,
    },
    /// They do not begin with a group.
    Beginning {
        /// The dimension, counted from 0, the slowest.
        dim: usize,
    },
}

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size => write!(
                f,
                "a group has 1 to {MOST_THREADS} items, and of three dimensions the slowest at \
                 most {MOST_DEPTH}"
            ),
            Self::Remainder { dim } => write!(
                f,
                "the size in dimension {dim} is no multiple of the group's: take groups of another \
                 size, or round up the index space with the buffers that its items have elements \
                 of, and let the kernel do nothing beyond the end"
            ),
            Self::Beginning { dim } => write!(
                f,
                "where the items begin in dimension {dim} is no multiple of the group's size: \
                 begin further ahead, and let the kernel do nothing there"
            ),
        }
    }
}

impl core::error::Error for GroupError {}

/// Whether items of an index space of `dims` dimensions, `range` from `offset` on, can
/// run in groups of `group` items. O(1).
///
/// # Errors
/// See [`GroupError`].
pub fn check_groups(
    dims: usize,
    offset: [usize; 3],
    range: [usize; 3],
    group: [usize; 3],
) -> Result<(), GroupError> {
    let volume = group.iter().try_fold(1, |volume: usize, size| volume.checked_mul(*size));
    let most = MOST_THREADS as usize;
    let deep = dims == 3 && group[0] > MOST_DEPTH as usize;
    if !volume.is_some_and(|volume| (1..=most).contains(&volume)) || deep {
        return Err(GroupError::Size);
    }
    let cut = |sizes: [usize; 3]| (0..3).find(|&dim| !sizes[dim].is_multiple_of(group[dim]));
    match (cut(range), cut(offset)) {
        (Some(dim), _) => Err(GroupError::Remainder { dim }),
        (None, Some(dim)) => Err(GroupError::Beginning { dim }),
        (None, None) => Ok(()),
    }
}

impl Geometry {
    /// How many steps a thread takes along the axis of the slowest dimension, where one for each
    /// item or run would be `threads` along x, y and z: a power of two, `most` or as many as leave
    /// enough threads. O(1).
    pub(super) fn steps(threads: [u64; 3], axis: usize, most: u64) -> u8 {
        Self::steps_that_leave(LEAST_THREADS, threads, axis, most)
    }

    /// The same of kernels by item that look at nothing around. O(1).
    pub(super) fn steps_of_many(threads: [u64; 3], axis: usize) -> u8 {
        Self::steps_that_leave(MANY_THREADS, threads, axis, STEPS_OF_MANY)
    }

    fn steps_that_leave(least: u64, threads: [u64; 3], axis: usize, most: u64) -> u8 {
        let all = threads.iter().fold(1, |all: u64, &count| all.saturating_mul(count));
        1 << (all / least).min(threads[axis]).clamp(1, most).ilog2()
    }

    /// The same with more columns of blocks, in which each row of blocks has as many threads more.
    pub(super) fn with_columns(mut self, threads: u64) -> Option<Self> {
        let columns = threads.div_ceil(self.block.iter().map(|&size| u64::from(size)).product());
        let grid = u64::from(self.grid[0]).checked_add(columns)?;
        self.grid[0] = u32::try_from(grid).ok().filter(|&x| u64::from(x) <= MOST_BLOCKS)?;
        Some(self)
    }

    /// The launch of `threads` threads along x, y and z in blocks of exactly `block`
    /// threads, or `None` if no grid is that large. O(1).
    pub(super) fn in_blocks(threads: [u64; 3], block: [u64; 3]) -> Option<Self> {
        let [x, y, z] = core::array::from_fn(|axis| threads[axis] / block[axis]);
        let fits = x <= MOST_BLOCKS && y.max(z) <= MOST_OUTER_BLOCKS;
        fits.then(|| Self {
            grid: [x, y, z].map(|count| count as u32),
            block: block.map(|count| count as u32),
            shared_bytes: 0,
        })
    }

    /// The launch for a chunk that needs `threads` threads along x, y and z, each
    /// for a run of items or for one, or `None` if no grid is that large. Blocks are as `wanted`, if
    /// anything is, but where the chunk is smaller, or no grid is that large. O(1).
    pub(super) fn covering(
        threads: [u64; 3],
        runs: bool,
        wanted: Option<[u64; 3]>,
    ) -> Option<Self> {
        let [x, y, z] = threads.map(|count| count.max(1));
        // Blocks are deeper where there would be too many otherwise.
        let least_y = y.div_ceil(MOST_OUTER_BLOCKS).next_power_of_two();
        let depth = z.div_ceil(MOST_OUTER_BLOCKS).next_power_of_two();
        if depth > MOST_DEPTH || least_y * depth > MOST_THREADS {
            return None;
        }
        let wanted = wanted.and_then(|wanted| wanted_block(wanted, [x, y, z], [1, least_y, depth]));
        let usual = || usual_block([x, y], runs, least_y, depth);
        let [width, rows, depth] = wanted.unwrap_or_else(usual);
        let blocks = [x.div_ceil(width), y.div_ceil(rows), z.div_ceil(depth)];
        (blocks[0] <= MOST_BLOCKS).then(|| Self {
            grid: blocks.map(|count| count as u32),
            block: [width, rows, depth].map(|count| count as u32),
            shared_bytes: 0,
        })
    }
}

/// Threads of a block of a chunk that needs so many: as a program wants them, but no more than there are,
/// nor fewer than the grid needs; `None` if a device has no such blocks.
fn wanted_block(wanted: [u64; 3], threads: [u64; 3], least: [u64; 3]) -> Option<[u64; 3]> {
    let block: [u64; 3] =
        core::array::from_fn(|axis| wanted[axis].min(threads[axis]).max(least[axis]));
    let fits = block.iter().product::<u64>() <= MOST_THREADS && block[2] <= MOST_DEPTH;
    fits.then_some(block)
}

/// Threads of a block of a chunk that needs so many along x and y, where nothing is wanted.
fn usual_block([x, y]: [u64; 2], runs: bool, least_y: u64, depth: u64) -> [u64; 3] {
    let (full, rows) = match runs {
        true => (RUN_THREADS, RUN_ROWS),
        false => (ITEM_THREADS, ITEM_ROWS),
    };
    let rows = rows.min(y.next_power_of_two()).max(least_y);
    let width = width(x, (full / (rows * depth)).max(1));
    // What a narrow chunk leaves of a block goes to its rows.
    let rows = (full / (width * depth)).min(y.next_power_of_two()).max(rows);
    [width, rows, depth]
}

/// Threads of a block along x, of which a chunk needs `x` in all: `most`, or fewer if more than a
/// tenth of them would have nothing to do. A warp then goes on in the next row of its block.
fn width(x: u64, most: u64) -> u64 {
    let blocks = x.div_ceil(most);
    if x * 10 >= blocks * most * 9 { most } else { x.div_ceil(blocks) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(threads: [u64; 3], runs: bool) -> Option<([u32; 3], [u32; 3])> {
        Geometry::covering(threads, runs, None).map(|shape| (shape.grid, shape.block))
    }

    #[test]
    fn blocks_follow_the_shape_of_the_chunk() {
        assert_eq!(of([1, 1, 1], false), Some(([1, 1, 1], [1, 1, 1])));
        assert_eq!(of([1000, 1, 1], false), Some(([4, 1, 1], [256, 1, 1])));
        assert_eq!(of([33, 1000, 2], false), Some(([2, 67, 2], [17, 15, 1])));
        assert_eq!(of([4096, 4096, 1], true), Some(([128, 1024, 1], [32, 4, 1])));
        assert_eq!(of([4096, 1, 1], true), Some(([32, 1, 1], [128, 1, 1])));
        assert_eq!(of([16, 64, 1], true), Some(([1, 8, 1], [16, 8, 1])));
        // Lanes of a warp go on in the next row rather than to have nothing to do.
        assert_eq!(of([18, 64, 1], true), Some(([1, 10, 1], [18, 7, 1])));
        assert_eq!(of([40, 64, 1], true), Some(([2, 11, 1], [20, 6, 1])));
        assert_eq!(of([250, 64, 1], true), Some(([8, 16, 1], [32, 4, 1])));
    }

    #[test]
    fn blocks_are_as_wanted_where_they_can_be() {
        let of = |threads, wanted| {
            Geometry::covering(threads, false, Some(wanted)).map(|shape| (shape.grid, shape.block))
        };
        assert_eq!(of([1000, 1, 1], [64, 1, 1]), Some(([16, 1, 1], [64, 1, 1])));
        assert_eq!(of([33, 1000, 2], [32, 2, 4]), Some(([2, 500, 1], [32, 2, 2])));
        assert_eq!(of([5, 3, 1], [16, 16, 1]), Some(([1, 1, 1], [5, 3, 1])));
        // As many blocks along y as there can be.
        assert_eq!(of([1, 70_000, 1], [256, 1, 1]), Some(([1, 35_000, 1], [1, 2, 1])));
        let usual = |threads| self::of(threads, false);
        for (threads, wanted) in [
            ([256, 1 << 20, 1], [256, 1, 1]),
            ([1, 1, 256], [1, 1, 256]),
            ([1, 1, 1 << 23], [1; 3]),
        ] {
            assert_eq!(of(threads, wanted), usual(threads), "{threads:?} in {wanted:?}");
        }
    }

    #[test]
    fn blocks_that_no_device_has_cannot_be_wanted() {
        for (block, fits) in [(&[1024][..], true), (&[1025], false), (&[32, 32], true)] {
            assert_eq!(is_block(block), fits, "{block:?}");
        }
        let odd = [&[16, 16, 5][..], &[0, 1], &[usize::MAX, usize::MAX], &[1 << 63, 2]];
        assert!(!odd.into_iter().any(is_block));
    }

    #[test]
    fn blocks_become_smaller_where_registers_are_few() {
        for (block, threads, expected) in [
            ([1024, 1, 1], 640, [512, 1, 1]),
            ([1, 1, 640], 640, [1, 1, 640]),
            ([4, 4, 64], 256, [4, 4, 16]),
            ([1, 31, 33], 256, [1, 16, 9]),
            ([usize::MAX, 2, 1], 1, [1; 3]),
            ([0, 5, 1], 1, [0, 5, 1]),
            ([2, 2, 2], 0, [1; 3]),
        ] {
            let found = block_within(block, threads);
            assert_eq!(found, expected, "{block:?} within {threads}");
        }
    }

    #[test]
    fn threads_take_steps_where_there_are_enough_of_them() {
        assert_eq!(Geometry::steps([256, 1024, 1024], 2, 4), 4);
        assert_eq!(Geometry::steps([256, 1024, 1024], 2, 32), 32);
        assert_eq!(Geometry::steps([256, 1024, 16], 2, 32), 16);
        assert_eq!(Geometry::steps([128, 4096, 1], 1, 2), 2);
        assert_eq!(Geometry::steps([128, 4095, 1], 1, 2), 1);
        assert_eq!(Geometry::steps([1 << 20, 3, 1], 1, 8), 2);
        assert_eq!(Geometry::steps([1, 1, 1], 1, 8), 1);
        assert_eq!(Geometry::steps_of_many([1024, 1024, 1024], 2), 4);
        assert_eq!(Geometry::steps_of_many([2048, 2048, 1], 1), 2);
        assert_eq!(Geometry::steps_of_many([2048, 1024, 1], 1), 1);
        assert_eq!(Geometry::steps_of_many([1 << 30, 1, 1], 1), 1);
    }

    #[test]
    fn columns_are_added_for_all_rows_of_blocks() {
        let shape = of([16, 64, 1], true).unwrap();
        let shape = Geometry { grid: shape.0, block: shape.1, shared_bytes: 0 };
        let grid = |threads| shape.with_columns(threads).map(|shape| shape.grid);
        assert_eq!([0, 1, 128, 129].map(grid), [1, 2, 2, 3].map(|x| Some([x, 8, 1])));
        assert_eq!(grid(u64::MAX), None);
    }

    #[test]
    fn groups_are_blocks() {
        let shape = Geometry::in_blocks([64, 32, 8], [16, 8, 2]).unwrap();
        assert_eq!((shape.grid, shape.block), ([4, 4, 4], [16, 8, 2]));
        assert_eq!(Geometry::in_blocks([1 << 40, 1, 1], [256, 1, 1]), None);
    }

    #[test]
    fn groups_that_no_device_runs_are_refused() {
        let check = |dims, range, group| check_groups(dims, [0; 3], range, group);
        assert_eq!(check(2, [64, 32, 1], [32, 32, 1]), Ok(()));
        assert_eq!(check(2, [64, 64, 1], [64, 32, 1]), Err(GroupError::Size));
        assert_eq!(check(1, [64, 1, 1], [0, 1, 1]), Err(GroupError::Size));
        assert_eq!(check(1, [1024, 1, 1], [1024, 1, 1]), Ok(()));
        assert_eq!(check(3, [128, 1, 1], [128, 1, 1]), Err(GroupError::Size));
        let remainder = Err(GroupError::Remainder { dim: 1 });
        assert_eq!(check(2, [64, 33, 1], [8, 8, 1]), remainder);
        let beginning = Err(GroupError::Beginning { dim: 0 });
        assert_eq!(check_groups(1, [4, 0, 0], [64, 1, 1], [8, 1, 1]), beginning);
    }

    #[test]
    fn what_no_grid_holds_is_refused() {
        let wide = of([4, 1_000_000, 1_000_000], false);
        assert_eq!(wide, Some(([4, 62_500, 62_500], [1, 16, 16])));
        assert_eq!(of([1 << 40, 1, 1], false), None);
        assert_eq!(of([1, 1 << 30, 1], false), None);
        assert_eq!(of([1, 1, 1 << 30], true), None);
    }

    #[test]
    fn every_grid_covers_its_chunk_within_the_limits() {
        for threads in [1, 3, 31, 256, 1000, 70_000, 5_000_000].map(|n| [n % 1000 + 1, n, 7]) {
            for runs in [false, true] {
                let (grid, block) = of(threads, runs).unwrap();
                let size = |axis: usize| u64::from(grid[axis]) * u64::from(block[axis]);
                assert!((0..3).all(|axis| size(axis) >= threads[axis]), "{threads:?}");
                assert!(block.iter().product::<u32>() <= MOST_THREADS as u32, "{block:?}");
                assert!(u64::from(grid[1].max(grid[2])) <= MOST_OUTER_BLOCKS, "{grid:?}");
            }
        }
    }
}
