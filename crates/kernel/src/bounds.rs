//! Boxes of elements and how they lie in memory: index arithmetic only, no
//! pointers.

use core::fmt;

/// A half-open box of elements, in buffer coordinates.
///
/// Law: every box without elements is [`EMPTY`](Self::EMPTY), so `min` lies below
/// `max` in each dimension of any other. Views rely on that to stay inside of
/// their memory.
///
/// ```
/// use celerity_kernel::Bounds;
/// let left = Bounds::new([0, 0], [4, 2]);
/// assert_eq!((left.range(), left.volume()), ([4, 2], 8));
/// assert!(Bounds::from_range([4, 4]).contains_all(&left));
/// assert_eq!(Bounds::new([1, 3], [4, 2]), Bounds::EMPTY);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds<const D: usize> {
    min: [usize; D],
    max: [usize; D],
}

/// As boxes are written in all messages: `[0..4, 2..6]`.
impl<const D: usize> fmt::Display for Bounds<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_box(f, &self.min, &self.max)
    }
}

/// A box: from its first index to behind its last one, in each dimension.
pub(crate) fn write_box<N: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    min: &[N],
    max: &[N],
) -> fmt::Result {
    f.write_str("[")?;
    for (dim, (from, to)) in min.iter().zip(max).enumerate() {
        write!(f, "{}{from}..{to}", if dim > 0 { ", " } else { "" })?;
    }
    f.write_str("]")
}

impl<const D: usize> Bounds<D> {
    /// The box without elements, or the one element if `D` is 0.
    pub const EMPTY: Self = Self { min: [0; D], max: [0; D] };

    /// The box from `min` up to, but without, `max`; [`EMPTY`](Self::EMPTY) if
    /// `max` is not above `min` in every dimension. O(D).
    #[must_use]
    #[inline]
    pub const fn new(min: [usize; D], max: [usize; D]) -> Self {
        let mut dim = 0;
        while dim < D {
            if min[dim] >= max[dim] {
                return Self::EMPTY;
            }
            dim += 1;
        }
        Self { min, max }
    }

    /// The box of corners that another box had, in as many dimensions or more: the law holds,
    /// and nothing is checked.
    #[inline]
    pub(crate) const fn from_corners(min: [usize; D], max: [usize; D]) -> Self {
        Self { min, max }
    }

    /// The box of the given size at the origin.
    #[must_use]
    #[inline]
    pub const fn from_range(range: [usize; D]) -> Self {
        Self::new([0; D], range)
    }

    /// The first index in each dimension.
    #[must_use]
    #[inline]
    pub const fn min(&self) -> [usize; D] {
        self.min
    }

    /// One past the last index in each dimension.
    #[must_use]
    #[inline]
    pub const fn max(&self) -> [usize; D] {
        self.max
    }

    /// The size in each dimension, in elements.
    #[must_use]
    #[inline]
    pub fn range(&self) -> [usize; D] {
        core::array::from_fn(|dim| self.max[dim] - self.min[dim])
    }

    /// The number of elements, or `usize::MAX` if there are more. O(D).
    #[must_use]
    #[inline]
    pub fn volume(&self) -> usize {
        self.range().iter().fold(1, |volume, &size| volume.saturating_mul(size))
    }

    /// Whether there is no element; never without dimensions.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.max.first() == Some(&0)
    }

    /// Whether `index` is one of the elements. O(D).
    #[must_use]
    #[inline]
    pub fn contains(&self, index: [usize; D]) -> bool {
        // One comparison a dimension, by the law: what lies below `min` wraps around to more
        // than any size.
        (0..D).all(|dim| index[dim].wrapping_sub(self.min[dim]) < self.max[dim] - self.min[dim])
    }

    /// What a row has of the box, in one dimension. O(D).
    #[inline]
    pub(crate) fn row(&self, outer: impl OuterIndex<D>) -> Bounds<1> {
        let (first, end) = (self.min[D - 1], self.max[D - 1]);
        match self.contains(outer.with_fastest(first)) {
            true => Bounds { min: [first], max: [end] },
            false => Bounds::EMPTY,
        }
    }

    /// How far the row's first element lies behind the box's; 0 if it has nothing of the row. O(D).
    #[inline]
    pub(crate) fn distance_of_row(&self, strides: [usize; D], outer: impl OuterIndex<D>) -> isize {
        let first = outer.with_fastest(self.min[D - 1]);
        if self.contains(first) { distance(strides, self.min, first) } else { 0 }
    }

    /// Whether all elements of `other` are elements of this box. O(D).
    #[must_use]
    #[inline]
    pub fn contains_all(&self, other: &Self) -> bool {
        other.is_empty()
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

    /// The layout with the element `origin` first. The last stride must be 1.
    #[inline]
    pub(crate) const fn from_parts(origin: [usize; D], strides: [usize; D]) -> Self {
        Self { origin, strides }
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

    /// The position of the first element of `part`, a box in the extent; 0 if there is none. So
    /// that what lies there has an address, whatever the part: one that is chosen among two would
    /// be no address of read-only memory for devices.
    #[inline]
    pub(crate) fn beginning(&self, part: &Bounds<D>) -> usize {
        if part.is_empty() { 0 } else { self.position(part.min) }
    }

    /// Whether the elements of `part`, a box in the extent, lie side by side.
    #[must_use]
    #[inline]
    pub fn is_contiguous(&self, part: &Bounds<D>) -> bool {
        is_contiguous(self.strides, part)
    }
}

/// Whether the elements of `part` lie side by side, where neighbours have these strides.
#[inline]
pub(crate) fn is_contiguous<const D: usize>(strides: [usize; D], part: &Bounds<D>) -> bool {
    let range = part.range();
    let mut dense = 1;
    for dim in (0..D).rev() {
        if range[dim] > 1 && strides[dim] != dense {
            return false;
        }
        dense *= range[dim];
    }
    true
}

/// How far `to` lies behind `from` in memory, in elements; ahead of it if that is negative. The
/// last stride is 1, and is not looked at.
#[inline]
pub(crate) fn distance<const D: usize>(
    strides: [usize; D],
    from: [usize; D],
    to: [usize; D],
) -> isize {
    let mut distance = 0_usize;
    for dim in 0..D {
        let along = to[dim].wrapping_sub(from[dim]);
        let stride = if dim + 1 == D { 1 } else { strides[dim] };
        distance = distance.wrapping_add(along.wrapping_mul(stride));
    }
    distance as isize
}

/// Where the next row of a box begins, behind that from `start`.
#[inline]
pub(crate) fn next_row<const D: usize>(
    part: &Bounds<D>,
    mut start: [usize; D],
) -> Option<[usize; D]> {
    // An odometer over all dimensions but the fastest.
    for dim in (0..D.saturating_sub(1)).rev() {
        start[dim] += 1;
        if start[dim] < part.max[dim] {
            return Some(start);
        }
        start[dim] = part.min[dim];
    }
    None
}

/// The index of a row: all dimensions but the fastest. `[]` for one dimension,
/// `[y]` for two, `[z, y]` for three.
///
/// Sealed, because views trust it to change nothing but the fastest dimension:
///
/// ```compile_fail,E0277
/// use celerity_kernel::OuterIndex;
///
/// #[derive(Clone, Copy)]
/// struct Elsewhere;
///
/// impl OuterIndex<1> for Elsewhere {
///     fn with_fastest(self, fastest: usize) -> [usize; 1] {
///         [fastest + 7]
///     }
/// }
/// ```
pub trait OuterIndex<const D: usize>: Copy + sealed::Sealed {
    /// The first element of the row if rows start at `fastest`.
    fn with_fastest(self, fastest: usize) -> [usize; D];
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for [usize; 0] {}
    impl Sealed for [usize; 1] {}
    impl Sealed for [usize; 2] {}
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
        let extent = Bounds::new([10, 20, 30], [12, 23, 34]);
        let layout = Layout::row_major(&extent);
        assert_eq!(layout.strides(), [12, 4, 1]);
        assert_eq!(layout.position([10, 20, 30]), 0);
        assert_eq!(layout.position([11, 22, 33]), extent.volume() - 1);
    }

    #[test]
    fn a_part_is_contiguous_if_it_is_whole_below_its_slowest_dimension() {
        let layout = Layout::row_major(&Bounds::from_range([4, 8]));
        assert!(layout.is_contiguous(&Bounds::new([1, 0], [3, 8])));
        assert!(layout.is_contiguous(&Bounds::new([2, 3], [3, 5])));
        assert!(!layout.is_contiguous(&Bounds::new([1, 0], [3, 7])));
        assert!(layout.is_contiguous(&Bounds::new([1, 3], [1, 5])));
        assert!(Layout::row_major(&Bounds::<0>::EMPTY).is_contiguous(&Bounds::EMPTY));
    }

    #[test]
    fn a_box_without_dimensions_has_one_element() {
        assert_eq!(Bounds::<0>::EMPTY.volume(), 1);
        assert!(Bounds::<0>::EMPTY.contains([]));
    }

    /// Coordinates whose differences, sums and products go wrong most easily.
    /// Miri is spared most of the 2401 boxes that these make.
    const CORNERS: &[usize] = match cfg!(miri) {
        true => &[0, 2, 1 << 32, usize::MAX],
        false => &[0, 1, 2, 3, 1 << 32, 1 << 63, usize::MAX],
    };

    fn boxes() -> impl Iterator<Item = ([usize; 2], [usize; 2])> {
        let points = || CORNERS.iter().flat_map(|&y| CORNERS.iter().map(move |&x| [y, x]));
        points().flat_map(move |min| points().map(move |max| (min, max)))
    }

    #[test]
    fn any_two_corners_make_a_sound_box() {
        for (min, max) in boxes() {
            let part = Bounds::new(min, max);
            let sizes = [0, 1].map(|dim| max[dim].saturating_sub(min[dim]) as u128);
            let exact = sizes[0] * sizes[1];
            assert_eq!(part.volume() as u128, exact.min(usize::MAX as u128), "{part:?}");
            assert_eq!(part.is_empty(), exact == 0, "{part:?}");
            assert_eq!(part == Bounds::EMPTY, exact == 0, "{part:?}");
        }
    }

    #[test]
    fn inside_means_both_corners_or_nothing() {
        let whole = Bounds::new([1, 0], [3, 2]);
        for (min, max) in boxes() {
            let empty = (0..2).any(|dim| min[dim] >= max[dim]);
            let inside = min[0] >= 1 && max[0] <= 3 && max[1] <= 2;
            let part = Bounds::new(min, max);
            assert_eq!(whole.contains_all(&part), empty || inside, "{part:?}");
            assert_eq!(Bounds::EMPTY.contains_all(&part), empty, "{part:?}");
        }
    }
}
