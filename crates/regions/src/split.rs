//! Cutting an index space into chunks.
//!
//! Owns the arithmetic of even splits under granularity constraints. It refuses to know who
//! executes a chunk; nodes and devices are assigned by the caller, in the order of the chunks.

use std::ops::Range;

use crate::box3::{Box3, Coord3};

/// Splits `space` into at most `parts` chunks along dimension 0, the slowest.
///
/// The same as [`split_along`] with `dim = 0`.
///
/// # Panics
/// If `parts` is zero or the granularity is zero in dimension 0.
pub fn split_1d(space: &Box3, granularity: Coord3, parts: usize) -> Vec<Box3> {
    split_along(space, 0, granularity, parts)
}

/// Splits `space` into at most `parts` chunks along dimension `dim`; see [`Grid::along`].
///
/// Takes time linear in the number of chunks.
///
/// # Panics
/// If `dim` is not below 3, or `parts` or `granularity[dim]` is zero.
pub fn split_along(space: &Box3, dim: usize, granularity: Coord3, parts: usize) -> Vec<Box3> {
    Grid::along(space, dim, granularity, parts).iter().collect()
}

/// Splits `space` into at most `parts` tiles over dimensions 0 and 1; see [`Grid::tiled`].
///
/// Takes time linear in the number of tiles plus the square root of `parts`.
///
/// # Panics
/// If `parts` is zero or the granularity is zero in dimension 0 or 1.
pub fn split_2d(space: &Box3, granularity: Coord3, parts: usize) -> Vec<Box3> {
    Grid::tiled(space, granularity, parts).iter().collect()
}

/// The chunks of a split, none of which is stored: they are computed when they are asked for,
/// and so is who is near. On any number of nodes a split costs what a few divisions do.
///
/// Laws: the chunks are disjoint, cover the space, come in row-major order and are never empty.
/// Along each dimension they are whole granules whose numbers differ by at most one, larger
/// chunks first. If the range is no multiple of the granularity, the last chunk also takes the
/// remainder. There are fewer chunks than were asked for when there are fewer granules, one
/// when the space is smaller than a granule, and none when it is empty.
///
/// ```
/// use celerity_regions::{Box3, Grid};
/// // A million rows for 300,000 nodes: 100,000 of them get four rows, the others three.
/// let grid = Grid::along(&Box3::from_range([1_000_000, 8]), 0, [1; 3], 300_000);
/// assert_eq!(grid.get(299_999), Some(Box3::from_offset_range([999_997, 0], [3, 8])));
/// let mut near = vec![];
/// grid.for_each_touching(&Box3::from_offset_range([7, 0], [2, 1]), |at, _| near.push(at));
/// assert_eq!(near, [1, 2]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    space: Box3,
    /// The slower dimension first; the other one may not be cut at all.
    cuts: [Cuts; 2],
}

impl Grid {
    /// Cuts `space` into at most `parts` chunks along dimension `dim`. O(1).
    ///
    /// # Panics
    /// If `dim` is not below 3, or `parts` or `granularity[dim]` is zero.
    #[inline]
    pub fn along(space: &Box3, dim: usize, granularity: Coord3, parts: usize) -> Grid {
        assert!(parts > 0, "cannot split {space} into 0 parts; ask for at least one");
        let cuts = Cuts::new(space, dim, granularity, parts);
        let other = Cuts::none(space, if dim == 0 { 1 } else { 0 });
        Grid { space: *space, cuts: if dim == 0 { [cuts, other] } else { [other, cuts] } }
    }

    /// Cuts `space` into at most `parts` tiles over dimensions 0 and 1.
    ///
    /// Among all pairs of factors of `parts`, takes the one that yields most tiles under the
    /// granularity, then the one with the squarest tiles (smallest sum of edges), then the most
    /// balanced one, then the one with more cuts in dimension 0, so that runs in the faster
    /// dimension stay long. O(square root of `parts`).
    ///
    /// # Panics
    /// If `parts` is zero or the granularity is zero in dimension 0 or 1.
    pub fn tiled(space: &Box3, granularity: Coord3, parts: usize) -> Grid {
        assert!(parts > 0, "cannot split {space} into 0 parts; ask for at least one");
        #[cfg(feature = "mutants")]
        let granularity = celerity_mutants::Mutant::TilesIgnoreGranularity
            .alter(granularity, |[slow, _, fast]| [slow, 1, fast]);
        Grid { space: *space, cuts: factorise(space, granularity, parts) }
    }

    /// The number of chunks.
    #[inline]
    pub fn len(&self) -> usize {
        if self.space.is_empty() { 0 } else { self.cuts[0].count * self.cuts[1].count }
    }

    /// Whether there are no chunks: the space is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.space.is_empty()
    }

    /// The chunk at a position, in row-major order. O(1).
    #[inline]
    pub fn get(&self, position: usize) -> Option<Box3> {
        if position >= self.len() {
            return None;
        }
        let [slow, fast] = &self.cuts;
        let (row, column) = match fast.count {
            1 => (position, 0),
            width => (position / width, position % width),
        };
        Some(fast.chunk(&slow.chunk(&self.space, row), column))
    }

    /// All chunks, in row-major order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Box3> + use<> {
        let grid = *self;
        (0..grid.len()).map(move |position| grid.get(position).expect("it is below the length"))
    }

    /// Visits all chunks that share a point with `part`, each with its position, in row-major
    /// order. O(1 + found).
    #[inline]
    pub fn for_each_touching(&self, part: &Box3, mut visit: impl FnMut(usize, Box3)) {
        let part = part.intersection(&self.space);
        if part.is_empty() {
            return;
        }
        let [slow, fast] = &self.cuts;
        let (rows, columns) =
            (slow.touching(&self.space, &part), fast.touching(&self.space, &part));
        for row in rows {
            let (strip, start) = (slow.chunk(&self.space, row), row * fast.count);
            for column in columns.clone() {
                visit(start + column, fast.chunk(&strip, column));
            }
        }
    }
}

/// The factors of `parts` to cut dimensions 0 and 1 by; see [`Grid::tiled`] for the choice.
fn factorise(space: &Box3, granularity: Coord3, parts: usize) -> [Cuts; 2] {
    let candidates = (1..=parts.isqrt())
        .filter(|small| parts.is_multiple_of(*small))
        .flat_map(|small| [[small, parts / small], [parts / small, small]])
        .map(|[f0, f1]| {
            [Cuts::new(space, 0, granularity, f0), Cuts::new(space, 1, granularity, f1)]
        });
    let rank = |cuts: &[Cuts; 2]| {
        let [c0, c1] = [cuts[0].count as u128, cuts[1].count as u128];
        let [r0, r1, _] = space.range().map(u128::from);
        // Edges are r0/c0 and r1/c1. Ranks are compared only among equal c0 * c1, so the
        // common denominator can be left out and the comparison stays exact.
        let edges = r0.saturating_mul(c1).saturating_add(r1.saturating_mul(c0));
        (std::cmp::Reverse(c0 * c1), edges, c0.abs_diff(c1), std::cmp::Reverse(c0))
    };
    candidates.min_by_key(rank).expect("1 divides every number of parts")
}

/// An even division of one dimension into `count` chunks: `larger` ones of `small + 1` granules
/// each, and then those of `small`.
#[derive(Clone, Copy, Debug)]
struct Cuts {
    dim: usize,
    granule: u64,
    count: usize,
    small: u64,
    larger: u64,
}

impl Cuts {
    #[inline]
    fn new(space: &Box3, dim: usize, granularity: Coord3, parts: usize) -> Cuts {
        let granule = granularity[dim];
        assert!(granule > 0, "granularity of dimension {dim} is 0; it must be at least 1");
        let range = space.range()[dim];
        // Granules of one element are the rule, and a division is as slow as the rest of this.
        let granules = if granule == 1 { range } else { range / granule };
        let count = granules.clamp(1, parts as u64);
        let (small, larger) = (granules / count, granules % count);
        Cuts { dim, granule, count: count as usize, small, larger }
    }

    /// Leaves the dimension whole.
    #[inline]
    fn none(space: &Box3, dim: usize) -> Cuts {
        Cuts { dim, granule: 1, count: 1, small: space.range()[dim], larger: 0 }
    }

    /// Where chunk `index` begins, relative to the space, in granules.
    #[inline]
    fn start(&self, index: usize) -> u64 {
        let index = index as u64;
        index * self.small + index.min(self.larger)
    }

    #[inline]
    fn chunk(&self, space: &Box3, index: usize) -> Box3 {
        if self.count == 1 {
            #[cfg(feature = "mutants")]
            return self.mistaken_whole(space);
            #[cfg(not(feature = "mutants"))]
            return *space;
        }
        let origin = space.min()[self.dim];
        let lo = origin + self.start(index) * self.granule;
        let hi = if index + 1 == self.count {
            space.max()[self.dim]
        } else {
            origin + self.start(index + 1) * self.granule
        };
        #[cfg(feature = "mutants")]
        let hi = self.mistaken_end(space, index, hi);
        // Spelled out per dimension, so that the box can stay in registers.
        match self.dim {
            0 => space.with_extent(0, lo, hi),
            1 => space.with_extent(1, lo, hi),
            _ => space.with_extent(2, lo, hi),
        }
    }

    /// The chunks that share a point with `part`, which lies in the space and is not empty.
    #[inline]
    fn touching(&self, space: &Box3, part: &Box3) -> Range<usize> {
        let [lo, hi] = [part.min()[self.dim], part.max()[self.dim]];
        if lo == space.min()[self.dim] && hi == space.max()[self.dim] {
            return 0..self.count;
        }
        let offset = |at: u64| at - space.min()[self.dim];
        self.holder(offset(lo))..self.holder(offset(hi - 1)) + 1
    }

    /// The chunk that holds an element, given relative to the space.
    #[inline]
    fn holder(&self, offset: u64) -> usize {
        let granule = if self.granule == 1 { offset } else { offset / self.granule };
        let in_larger = (self.small + 1) * self.larger;
        let index = match granule < in_larger {
            true => granule / (self.small + 1),
            // A space smaller than a granule has no granules, and one chunk.
            false => self.larger + (granule - in_larger) / self.small.max(1),
        };
        // What remains beyond the last granule is the last chunk's.
        (index as usize).min(self.count - 1)
    }

    #[cfg(feature = "mutants")]
    fn mistaken_whole(&self, space: &Box3) -> Box3 {
        let end = self.mistaken_end(space, 0, space.max()[self.dim]);
        space.with_extent(self.dim, space.min()[self.dim], end)
    }

    #[cfg(feature = "mutants")]
    fn mistaken_end(&self, space: &Box3, index: usize, end: u64) -> u64 {
        use celerity_mutants::Mutant;
        if index + 1 < self.count {
            return Mutant::ChunksOverlap.alter(end, |end| end + 1);
        }
        let granules = self.start(self.count);
        let whole = space.min()[self.dim] + granules.max(1) * self.granule;
        Mutant::RemainderLost.alter(end, |end| end.min(whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The extents of the chunks in dimensions 0 and 1.
    fn extents(chunks: &[Box3]) -> Vec<[u64; 2]> {
        chunks.iter().map(|chunk| [chunk.range()[0], chunk.range()[1]]).collect()
    }

    fn lengths(space: [usize; 1], granule: u64, parts: usize) -> Vec<u64> {
        let chunks = split_1d(&Box3::from_range(space), [granule, 1, 1], parts);
        chunks.iter().map(|chunk| chunk.range()[0]).collect()
    }

    /// The number of rows and columns, and the extents of the first tile.
    fn grid(space: [usize; 2], granularity: Coord3, parts: usize) -> ([usize; 2], [u64; 2]) {
        let tiles = split_2d(&Box3::from_range(space), granularity, parts);
        let columns = tiles.iter().filter(|tile| tile.min()[0] == 0).count();
        ([tiles.len() / columns, columns], extents(&tiles)[0])
    }

    #[test]
    fn lines_are_split_evenly() {
        assert_eq!(lengths([128], 1, 4), [32; 4]);
        assert_eq!(lengths([13], 1, 5), [3, 3, 3, 2, 2]);
        assert_eq!(lengths([80], 16, 3), [32, 32, 16]);
    }

    #[test]
    fn few_granules_make_few_chunks() {
        assert_eq!(lengths([96], 48, 3), [48, 48]);
        assert_eq!(lengths([5], 8, 3), [5]);
        assert_eq!(lengths([0], 8, 3), []);
        assert_eq!(lengths([21], 8, 3), [8, 13]);
    }

    #[test]
    fn offsets_and_other_dimensions_are_kept() {
        let space = Box3::new([37, 42, 7], [165, 84, 9]);
        let chunks = split_1d(&space, [1; 3], 4);
        assert_eq!(chunks[1], Box3::new([69, 42, 7], [101, 84, 9]));
        let columns = split_along(&space, 1, [1; 3], 2);
        assert_eq!(columns[1], Box3::new([37, 63, 7], [165, 84, 9]));
        let tiles = split_2d(&Box3::new([37, 42, 7], [101, 106, 9]), [1; 3], 4);
        assert_eq!(tiles[1], Box3::new([37, 74, 7], [69, 106, 9]));
    }

    #[test]
    fn tiles_are_as_square_as_they_can_be() {
        assert_eq!(grid([128, 128], [1; 3], 4), ([2, 2], [64, 64]));
        assert_eq!(grid([100, 100], [1; 3], 6), ([3, 2], [34, 50]));
        assert_eq!(grid([256, 64], [1; 3], 8), ([4, 2], [64, 32]));
        assert_eq!(grid([64, 256], [1; 3], 8), ([2, 4], [32, 64]));
        assert_eq!(grid([1024, 64], [1; 3], 8), ([8, 1], [128, 64]));
    }

    #[test]
    fn granularity_turns_the_tiling() {
        assert_eq!(grid([128, 128], [8, 8, 1], 8), ([4, 2], [32, 64]));
        assert_eq!(grid([128, 128], [64, 8, 1], 8), ([2, 4], [64, 32]));
        assert_eq!(grid([256, 128], [8, 128, 1], 8), ([8, 1], [32, 128]));
        assert_eq!(grid([128, 128], [16, 8, 1], 12), ([4, 3], [32, 48]));
        assert_eq!(grid([128, 128], [64, 64, 1], 3), ([2, 1], [64, 128]));
        assert_eq!(grid([128, 1], [1; 3], 4), ([4, 1], [32, 1]));
    }

    #[test]
    #[should_panic(expected = "into 0 parts")]
    fn zero_parts_are_refused() {
        split_1d(&Box3::UNIT, [1; 3], 0);
    }

    #[test]
    #[should_panic(expected = "granularity of dimension 1 is 0")]
    fn zero_granularity_is_refused() {
        split_2d(&Box3::UNIT, [1, 0, 1], 4);
    }
}
