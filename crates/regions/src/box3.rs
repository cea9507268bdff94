//! One half-open box in a space of up to three dimensions.
//!
//! Owns the embedding: a space of fewer than three dimensions is a three-dimensional one
//! whose trailing dimensions are `[0, 1)`, so a 0-D space is the single point
//! [`Box3::UNIT`]. Dimension 0 is the slowest (row-major). The module refuses to know what
//! a box stands for: a buffer, an index space or a chunk of either.

use std::fmt;

/// The number of dimensions that every space is embedded into.
pub const MAX_DIMS: usize = 3;

/// A point, or the extents of a box, in the embedding space; dimension 0 is the slowest.
pub type Coord3 = [u64; 3];

/// A box that cannot be represented. `Debug` writes the text, as `main` prints it.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BoxError {
    /// `offset + range` exceeds 64 bits.
    #[error(
        "box overflows in dimension {dim}: offset {offset} + range {range} exceeds {max}; \
         use a smaller offset or range",
        max = u64::MAX
    )]
    Overflow {
        /// The dimension, 0 being the slowest.
        dim: usize,
        /// The offset asked for, in elements.
        offset: usize,
        /// The range asked for, in elements.
        range: usize,
    },
    /// The box extends in a dimension that the target type does not have.
    #[error("box {found} does not fit a space of {dims} dimensions; it needs {needs}")]
    TooManyDims {
        /// The box.
        found: Box3,
        /// Dimensions of the target type.
        dims: usize,
        /// Dimensions that the box occupies.
        needs: usize,
    },
}

impl fmt::Debug for BoxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A half-open box `[min, max)`, in elements.
///
/// Two boxes that hold the same points are equal: every empty box is [`Box3::EMPTY`].
/// The order is that of `min`, then `max`, which is row-major order for disjoint boxes; it
/// is total, but `Ord` is left out because its own `min` and `max` would hide those of the
/// box. Sort by [`corners`](Self::corners). All operations take constant time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Default)]
#[repr(C)]
pub struct Box3 {
    min: Coord3,
    max: Coord3,
}

impl Box3 {
    /// The box without points, neutral for [`bounding`](Self::bounding).
    pub const EMPTY: Box3 = Box3 { min: [0; 3], max: [0; 3] };

    /// `[0, 1)` in every dimension: the whole of a 0-D space.
    pub const UNIT: Box3 = Box3 { min: [0; 3], max: [1; 3] };

    /// The box `[min, max)`; [`Box3::EMPTY`] if `max <= min` in any dimension.
    #[inline]
    pub const fn new(min: Coord3, max: Coord3) -> Box3 {
        if min[0] < max[0] && min[1] < max[1] && min[2] < max[2] {
            Box3 { min, max }
        } else {
            Box3::EMPTY
        }
    }

    /// The box `[0, range)` of a `D`-dimensional space, embedded.
    pub fn from_range<const D: usize>(range: [usize; D]) -> Box3 {
        Box3::from_offset_range([0; D], range)
    }

    /// The box `[offset, offset + range)` of a `D`-dimensional space, embedded.
    ///
    /// # Panics
    /// If `offset + range` exceeds 64 bits; see
    /// [`try_from_offset_range`](Self::try_from_offset_range).
    pub fn from_offset_range<const D: usize>(offset: [usize; D], range: [usize; D]) -> Box3 {
        match Box3::try_from_offset_range(offset, range) {
            Ok(made) => made,
            Err(error) => panic!("{error}"),
        }
    }

    /// The box `[offset, offset + range)` of a `D`-dimensional space, embedded.
    ///
    /// # Errors
    /// [`BoxError::Overflow`] if `offset + range` exceeds 64 bits.
    pub fn try_from_offset_range<const D: usize>(
        offset: [usize; D],
        range: [usize; D],
    ) -> Result<Box3, BoxError> {
        const { assert!(D <= MAX_DIMS, "a space has at most three dimensions") };
        let Box3 { mut min, mut max } = Box3::UNIT;
        for dim in 0..D {
            let overflow = BoxError::Overflow { dim, offset: offset[dim], range: range[dim] };
            min[dim] = offset[dim] as u64;
            max[dim] = min[dim].checked_add(range[dim] as u64).ok_or(overflow)?;
        }
        Ok(Box3::new(min, max))
    }

    /// The first point; all zero for the empty box.
    #[inline]
    pub const fn min(&self) -> Coord3 {
        self.min
    }

    /// One past the last point in every dimension; all zero for the empty box.
    #[inline]
    pub const fn max(&self) -> Coord3 {
        self.max
    }

    /// `min` and `max`: the key to sort boxes by, in row-major order if they are disjoint.
    #[inline]
    pub const fn corners(&self) -> (Coord3, Coord3) {
        (self.min, self.max)
    }

    /// The extents, in elements.
    #[inline]
    pub const fn range(&self) -> Coord3 {
        [self.max[0] - self.min[0], self.max[1] - self.min[1], self.max[2] - self.min[2]]
    }

    /// The number of points, saturating at `u64::MAX`.
    pub const fn volume(&self) -> u64 {
        match self.checked_volume() {
            Some(volume) => volume,
            None => u64::MAX,
        }
    }

    /// The number of points, or `None` beyond 64 bits.
    pub(crate) const fn checked_volume(&self) -> Option<u64> {
        let [d0, d1, d2] = self.range();
        match d0.checked_mul(d1) {
            Some(plane) => plane.checked_mul(d2),
            None => None,
        }
    }

    /// Whether the box has no points.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.max[0] == 0
    }

    /// Whether every point of `other` is in `self`. The empty box is in every box.
    #[inline]
    pub fn contains(&self, other: &Box3) -> bool {
        // As in `intersects`, without a branch.
        other.is_empty()
            | ((self.min[0] <= other.min[0])
                & (other.max[0] <= self.max[0])
                & (self.min[1] <= other.min[1])
                & (other.max[1] <= self.max[1])
                & (self.min[2] <= other.min[2])
                & (other.max[2] <= self.max[2]))
    }

    /// Whether `point` is in the box.
    #[inline]
    pub fn contains_point(&self, point: Coord3) -> bool {
        (0..3).all(|d| self.min[d] <= point[d] && point[d] < self.max[d])
    }

    /// Whether the boxes share a point.
    #[inline]
    pub fn intersects(&self, other: &Box3) -> bool {
        // Bitwise `&`: six comparisons without a branch are cheaper than a mispredicted one,
        // and the empty box (max = 0) fails by itself.
        (self.min[0] < other.max[0])
            & (other.min[0] < self.max[0])
            & (self.min[1] < other.max[1])
            & (other.min[1] < self.max[1])
            & (self.min[2] < other.max[2])
            & (other.min[2] < self.max[2])
    }

    /// Whether the boxes share a point, or a face, an edge or a corner. Neither may be empty.
    #[inline]
    pub(crate) fn touches(&self, other: &Box3) -> bool {
        debug_assert!(!self.is_empty() && !other.is_empty());
        (self.min[0] <= other.max[0])
            & (other.min[0] <= self.max[0])
            & (self.min[1] <= other.max[1])
            & (other.min[1] <= self.max[1])
            & (self.min[2] <= other.max[2])
            & (other.min[2] <= self.max[2])
    }

    /// The points that both boxes hold.
    #[inline]
    pub fn intersection(&self, other: &Box3) -> Box3 {
        let Box3 { min, max } = self.overlap(other);
        Box3::new(min, max)
    }

    /// The [intersection](Self::intersection) with a box that holds this one as a rule, which
    /// is then quicker to see than to compute.
    #[inline]
    pub(crate) fn clamped(&self, bounds: &Box3) -> Box3 {
        if bounds.contains(self) { *self } else { self.intersection(bounds) }
    }

    /// The intersection of boxes that are known to intersect.
    #[inline]
    pub(crate) fn overlap(&self, other: &Box3) -> Box3 {
        Box3 {
            min: std::array::from_fn(|d| self.min[d].max(other.min[d])),
            max: std::array::from_fn(|d| self.max[d].min(other.max[d])),
        }
    }

    /// The smallest box that holds both boxes; the empty box is neutral.
    #[inline]
    pub fn bounding(&self, other: &Box3) -> Box3 {
        if self.is_empty() {
            return *other;
        }
        if other.is_empty() {
            return *self;
        }
        Box3 {
            min: std::array::from_fn(|d| self.min[d].min(other.min[d])),
            max: std::array::from_fn(|d| self.max[d].max(other.max[d])),
        }
    }

    /// The union of the boxes if that is a box again: one contains the other, or they
    /// agree in all dimensions but one and overlap or touch in that one.
    #[inline]
    pub fn exact_union(&self, other: &Box3) -> Option<Box3> {
        if self.is_empty() || other.is_empty() {
            return Some(self.bounding(other));
        }
        let mut joined = *self;
        if joined.join(other) || self.contains(other) {
            return Some(joined);
        }
        other.contains(self).then_some(*other)
    }

    /// Grows the box by `other` if they agree in all dimensions but one and overlap or touch
    /// in that one; whether that was so. `other` must not be empty, and an empty box, which
    /// agrees with no other in any dimension, does not grow.
    #[inline]
    pub(crate) fn join(&mut self, other: &Box3) -> bool {
        debug_assert!(!other.is_empty());
        let differs: Coord3 =
            std::array::from_fn(|d| (self.min[d] ^ other.min[d]) | (self.max[d] ^ other.max[d]));
        // Spelled out per dimension: an index that is only known at run time would force
        // the box out of registers, which doubles the cost of merging a row of tiles.
        if differs[1] | differs[2] == 0 {
            self.join_along(0, other)
        } else if differs[0] | differs[2] == 0 {
            self.join_along(1, other)
        } else if differs[0] | differs[1] == 0 {
            self.join_along(2, other)
        } else {
            false
        }
    }

    #[inline(always)]
    fn join_along(&mut self, dim: usize, other: &Box3) -> bool {
        let touching = self.min[dim] <= other.max[dim] && other.min[dim] <= self.max[dim];
        #[cfg(feature = "mutants")]
        let touching = celerity_mutants::Mutant::JoinBridgesGap.alter(touching, |_| {
            self.min[dim] <= other.max[dim] + 1 && other.min[dim] <= self.max[dim] + 1
        });
        if touching {
            self.min[dim] = self.min[dim].min(other.min[dim]);
            self.max[dim] = self.max[dim].max(other.max[dim]);
        }
        touching
    }

    /// Grows the box by one that begins where it ends along the slowest dimension, if the two
    /// together are a box; whether that was so. Quicker than [`join`](Self::join) where nothing
    /// else is to be expected. Neither may be empty.
    #[inline]
    pub(crate) fn continue_by(&mut self, later: &Box3) -> bool {
        debug_assert!(!self.is_empty() && !later.is_empty());
        let continues = (self.max[0] == later.min[0])
            & (self.min[1] == later.min[1])
            & (self.max[1] == later.max[1])
            & (self.min[2] == later.min[2])
            & (self.max[2] == later.max[2]);
        if continues {
            self.max[0] = later.max[0];
        }
        continues
    }

    /// The smallest `d` such that all dimensions from `d` on are `[0, 1)`; 0 for the empty
    /// box, which fits a space of any dimensionality.
    pub fn effective_dims(&self) -> usize {
        if self.is_empty() {
            return 0;
        }
        let used = |d: &usize| self.min[*d] != 0 || self.max[*d] != 1;
        (0..MAX_DIMS).rev().find(used).map_or(0, |d| d + 1)
    }

    /// This box with `[lo, hi)` in dimension `dim`; empty if `hi <= lo`.
    #[inline]
    pub(crate) fn with_extent(mut self, dim: usize, lo: u64, hi: u64) -> Box3 {
        if hi <= lo {
            return Box3::EMPTY;
        }
        self.min[dim] = lo;
        self.max[dim] = hi;
        self
    }

    /// Visits the parts of `self` that are not in `other`: up to six disjoint boxes, and
    /// none if `other` holds all of `self`. O(1).
    #[inline]
    pub fn for_each_without(&self, other: &Box3, mut visit: impl FnMut(Box3)) {
        if other.contains(self) {
            return;
        }
        match self.intersection(other) {
            hole if hole.is_empty() => visit(*self),
            hole => self.for_each_outside(&hole, visit),
        }
    }

    /// Visits the parts of `self` outside `hole`, in row-major order and with runs as long
    /// as possible in the faster dimensions. `hole` must lie within `self`.
    ///
    /// The parts are the canonical decomposition that [`Region`](crate::Region) uses.
    #[inline]
    pub(crate) fn for_each_outside(&self, hole: &Box3, mut visit: impl FnMut(Box3)) {
        debug_assert!(!hole.is_empty() && self.contains(hole));
        let mut emit = |part: &Box3, dim: usize, lo: u64, hi: u64| {
            if lo < hi {
                visit(part.with_extent(dim, lo, hi));
            }
        };
        let slab = self.with_extent(0, hole.min[0], hole.max[0]);
        let row = slab.with_extent(1, hole.min[1], hole.max[1]);
        emit(self, 0, self.min[0], hole.min[0]);
        emit(&slab, 1, self.min[1], hole.min[1]);
        emit(&row, 2, self.min[2], hole.min[2]);
        emit(&row, 2, hole.max[2], self.max[2]);
        emit(&slab, 1, hole.max[1], self.max[1]);
        emit(self, 0, hole.max[0], self.max[0]);
    }
}

impl fmt::Display for Box3 {
    /// `[0..4, 0..8]`: trailing unit dimensions are left out, but for the first, so [`Box3::UNIT`] is
    /// `[0..1]`; the empty box is `[empty]`. A precision says how many dimensions there are at least: with two, `{:.2}`, the
    /// first column of a matrix is `[0..4, 0..1]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("[empty]");
        }
        f.write_str("[")?;
        let least = f.precision().unwrap_or(1).clamp(1, 3);
        for dim in 0..self.effective_dims().max(least) {
            let separator = if dim == 0 { "" } else { ", " };
            write!(f, "{separator}{}..{}", self.min[dim], self.max[dim])?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for Box3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_boxes_are_equal() {
        assert_eq!(Box3::new([3, 0, 0], [3, 8, 1]), Box3::EMPTY);
        assert_eq!(Box3::new([5, 0, 0], [3, 8, 1]), Box3::EMPTY);
        assert_eq!(Box3::from_offset_range([7, 7], [0, 3]), Box3::EMPTY);
        assert_eq!(Box3::default(), Box3::EMPTY);
        assert!(Box3::EMPTY.is_empty() && !Box3::UNIT.is_empty());
    }

    #[test]
    fn lower_dimensions_are_embedded() {
        assert_eq!(Box3::from_range([]), Box3::UNIT);
        assert_eq!(Box3::from_range([4]), Box3::new([0; 3], [4, 1, 1]));
        assert_eq!(Box3::from_offset_range([1, 2], [3, 4]), Box3::new([1, 2, 0], [4, 6, 1]));
        let dims = [Box3::EMPTY, Box3::UNIT, Box3::from_range([4]), Box3::from_range([4, 4])];
        assert_eq!(dims.map(|b| b.effective_dims()), [0, 0, 1, 2]);
        assert_eq!(Box3::new([0, 0, 1], [1, 1, 2]).effective_dims(), 3);
    }

    #[test]
    fn display_leaves_out_trailing_unit_dimensions() {
        let shown = |b: Box3| b.to_string();
        assert_eq!(shown(Box3::from_range([4, 8])), "[0..4, 0..8]");
        assert_eq!(shown(Box3::from_range([1, 8, 1])), "[0..1, 0..8]");
        assert_eq!(shown(Box3::UNIT), "[0..1]");
        assert_eq!(shown(Box3::EMPTY), "[empty]");
    }

    #[test]
    fn display_shows_as_many_dimensions_as_it_is_told() {
        let column = Box3::from_offset_range([2], [4]);
        let shown = [0, 1, 2, 3, 9].map(|dims| format!("{column:.dims$}"));
        let three = "[2..6, 0..1, 0..1]";
        assert_eq!(shown, ["[2..6]", "[2..6]", "[2..6, 0..1]", three, three]);
        assert_eq!(format!("{:.1}", Box3::from_range([1, 8])), "[0..1, 0..8]");
        assert_eq!(format!("{:.2}", Box3::EMPTY), "[empty]");
        let both = crate::Region::from_boxes([column, Box3::from_range([1])]);
        assert_eq!(format!("{both:.2}"), "{[0..1, 0..1], [2..6, 0..1]}");
    }

    #[test]
    fn overflow_names_the_dimension() {
        let error = Box3::try_from_offset_range([0, usize::MAX], [1, 2]).unwrap_err();
        assert_eq!(error, BoxError::Overflow { dim: 1, offset: usize::MAX, range: 2 });
        assert!(error.to_string().contains("dimension 1"));
        assert!(Box3::try_from_offset_range([usize::MAX], [0]).is_ok());
    }

    #[test]
    fn volume_saturates() {
        assert_eq!(Box3::from_range([3, 4, 5]).volume(), 60);
        assert_eq!(Box3::from_range([usize::MAX, 2]).volume(), u64::MAX);
        assert_eq!(Box3::EMPTY.volume(), 0);
    }

    #[test]
    fn empty_boxes_in_binary_operations() {
        let some = Box3::from_offset_range([1, 1], [4, 4]);
        assert!(some.contains(&Box3::EMPTY) && Box3::EMPTY.contains(&Box3::EMPTY));
        assert!(!Box3::EMPTY.contains(&some));
        assert!(!some.intersects(&Box3::EMPTY) && !Box3::EMPTY.intersects(&some));
        assert_eq!(some.bounding(&Box3::EMPTY), some);
        assert_eq!(Box3::EMPTY.bounding(&some), some);
        assert_eq!(some.intersection(&Box3::EMPTY), Box3::EMPTY);
        assert_eq!(some.exact_union(&Box3::EMPTY), Some(some));
        assert_eq!(Box3::EMPTY.exact_union(&some), Some(some));
    }

    #[test]
    fn only_neighbours_of_equal_sides_unite_exactly() {
        let left = Box3::from_range([4, 4]);
        let beside = Box3::from_offset_range([0, 4], [4, 2]);
        assert_eq!(left.exact_union(&beside), Some(Box3::from_range([4, 6])));
        assert_eq!(left.exact_union(&Box3::from_offset_range([0, 4], [3, 2])), None);
        assert_eq!(left.exact_union(&Box3::from_offset_range([0, 5], [4, 2])), None);
        assert_eq!(left.exact_union(&Box3::from_offset_range([1, 1], [2, 2])), Some(left));
    }
}
