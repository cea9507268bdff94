//! Boxes of elements and how they lie in memory: index arithmetic only, no
//! pointers.

/// A half-open box of elements, in buffer coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds<const D: usize> {
    /// The first index in each dimension.
    pub min: [usize; D],
    /// One past the last index in each dimension; not below `min`.
    pub max: [usize; D],
}

impl<const D: usize> Bounds<D> {
    /// A box without elements, or the one element if `D` is 0.
    pub const EMPTY: Self = Self { min: [0; D], max: [0; D] };

    /// The box of the given size at the origin.
    #[must_use]
    #[inline]
    pub const fn from_range(range: [usize; D]) -> Self {
        Self { min: [0; D], max: range }
    }

    /// The size in each dimension.
    #[must_use]
    #[inline]
    pub fn range(&self) -> [usize; D] {
        core::array::from_fn(|dim| self.max[dim] - self.min[dim])
    }

    /// The number of elements.
    #[must_use]
    #[inline]
    pub fn volume(&self) -> usize {
        self.range().iter().product()
    }

    /// Whether `index` is one of the elements. O(D).
    #[must_use]
    #[inline]
    pub fn contains(&self, index: [usize; D]) -> bool {
        (0..D).all(|dim| self.min[dim] <= index[dim] && index[dim] < self.max[dim])
    }

    /// Whether all elements of `other` are elements of this box.
    #[must_use]
    #[inline]
    pub fn contains_all(&self, other: &Self) -> bool {
        other.volume() == 0
            || (0..D).all(|dim| self.min[dim] <= other.min[dim] && other.max[dim] <= self.max[dim])
    }
}

/// How a box of elements lies in memory: row-major, the last dimension dense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout<const D: usize> {
    origin: [usize; D],
    strides: [usize; D],
}

impl<const D: usize> Layout<D> {
    /// The layout of an allocation that holds exactly `extent`.
    #[must_use]
    #[inline]
    pub fn row_major(extent: &Bounds<D>) -> Self {
        let range = extent.range();
        let mut strides = [1; D];
        for dim in (1..D).rev() {
            strides[dim - 1] = strides[dim] * range[dim];
        }
        Self { origin: extent.min, strides }
    }

    /// How many elements lie between neighbours in each dimension.
    #[must_use]
    #[inline]
    pub const fn strides(&self) -> [usize; D] {
        self.strides
    }

    /// The position of `index`, in elements from the first one. The index must
    /// lie in the extent.
    #[must_use]
    #[inline]
    pub fn position(&self, index: [usize; D]) -> usize {
        (0..D).map(|dim| (index[dim] - self.origin[dim]) * self.strides[dim]).sum()
    }

    /// Whether the elements of `part`, a box in the extent, lie side by side.
    #[must_use]
    #[inline]
    pub fn is_contiguous(&self, part: &Bounds<D>) -> bool {
        let range = part.range();
        let mut dense = 1;
        for dim in (0..D).rev() {
            if range[dim] > 1 && self.strides[dim] != dense {
                return false;
            }
            dense *= range[dim];
        }
        true
    }
}

/// The index of a row: all dimensions but the fastest. `[]` for one dimension,
/// `[y]` for two, `[z, y]` for three.
pub trait OuterIndex<const D: usize>: Copy {
    /// The first element of the row if rows start at `fastest`.
    fn with_fastest(self, fastest: usize) -> [usize; D];
}

impl OuterIndex<1> for [usize; 0] {
    #[inline]
    fn with_fastest(self, fastest: usize) -> [usize; 1] {
        [fastest]
    }
}

impl OuterIndex<2> for [usize; 1] {
    #[inline]
    fn with_fastest(self, fastest: usize) -> [usize; 2] {
        [self[0], fastest]
    }
}

impl OuterIndex<3> for [usize; 2] {
    #[inline]
    fn with_fastest(self, fastest: usize) -> [usize; 3] {
        [self[0], self[1], fastest]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_row_major_within_the_extent() {
        let extent = Bounds { min: [10, 20, 30], max: [12, 23, 34] };
        let layout = Layout::row_major(&extent);
        assert_eq!(layout.strides(), [12, 4, 1]);
        assert_eq!(layout.position([10, 20, 30]), 0);
        assert_eq!(layout.position([11, 22, 33]), extent.volume() - 1);
    }

    #[test]
    fn a_part_is_contiguous_if_it_is_whole_below_its_slowest_dimension() {
        let layout = Layout::row_major(&Bounds::from_range([4, 8]));
        assert!(layout.is_contiguous(&Bounds { min: [1, 0], max: [3, 8] }));
        assert!(layout.is_contiguous(&Bounds { min: [2, 3], max: [3, 5] }));
        assert!(!layout.is_contiguous(&Bounds { min: [1, 0], max: [3, 7] }));
        assert!(layout.is_contiguous(&Bounds { min: [1, 3], max: [1, 5] }));
        assert!(Layout::row_major(&Bounds::<0>::EMPTY).is_contiguous(&Bounds::EMPTY));
    }

    #[test]
    fn a_box_without_dimensions_has_one_element() {
        assert_eq!(Bounds::<0>::EMPTY.volume(), 1);
        assert!(Bounds::<0>::EMPTY.contains([]));
    }
}
