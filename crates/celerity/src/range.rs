//! Sizes of index spaces and buffers as users spell them, and the way between
//! typed and erased geometry.

use celerity_kernel::Bounds;
use celerity_regions::{Box3, Subrange};

/// What can stand for the size of an index space or buffer with `D` dimensions:
/// an array of sizes, the slowest dimension first, or a plain number in one
/// dimension.
///
/// ```
/// use celerity::IntoRange;
/// assert_eq!([4, 8].into_range(), [4, 8]);
/// assert_eq!(16.into_range(), [16]);
/// ```
pub trait IntoRange<const D: usize> {
    /// The size in each dimension.
    fn into_range(self) -> [usize; D];
}

impl<const D: usize> IntoRange<D> for [usize; D] {
    fn into_range(self) -> [usize; D] {
        self
    }
}

impl IntoRange<1> for usize {
    fn into_range(self) -> [usize; 1] {
        [self]
    }
}

/// An index space of `K` dimensions whose items are in groups: what a kernel over an
/// [`NdItem`](crate::NdItem) is launched over. [`nd_range`] makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NdRange<const K: usize> {
    range: [usize; K],
    group: [usize; K],
}

impl<const K: usize> NdRange<K> {
    pub(crate) fn new(range: [usize; K], group: [usize; K]) -> Self {
        Self { range, group }
    }

    /// The items of the whole index space in each dimension.
    #[must_use]
    pub fn range(&self) -> [usize; K] {
        self.range
    }

    /// The items of a group in each dimension.
    #[must_use]
    pub fn group(&self) -> [usize; K] {
        self.group
    }
}

/// `range` items in groups of `group` items each, which divide `range` in each dimension; a group
/// has up to 1,024 items. [`TaskBuilder::launch`](crate::TaskBuilder::launch) checks both.
///
/// ```
/// use celerity::nd_range;
///
/// let space = nd_range([64, 64], [8, 8]);
/// assert_eq!((space.range(), space.group()), ([64, 64], [8, 8]));
/// assert_eq!(nd_range(64, 8).group(), [8]);
/// ```
pub fn nd_range<const K: usize>(range: impl IntoRange<K>, group: impl IntoRange<K>) -> NdRange<K> {
    NdRange::new(range.into_range(), group.into_range())
}

/// Does not compile for more dimensions than there are. Called, in a `const` block, by the
/// functions that programs call, since the compiler names the line that they are called from.
pub(crate) const fn check_dimensions(dimensions: usize) {
    assert!(
        dimensions <= 3,
        "buffers and index spaces have at most 3 dimensions: combine some of them into one, as in \
         `[a * b, c, d]` for a size of `[a, b, c, d]`"
    );
}

/// The number of elements of a space of size `range`, or `None` if `usize` cannot
/// count them.
pub(crate) fn volume<const D: usize>(range: [usize; D]) -> Option<usize> {
    match range.contains(&0) {
        true => Some(0),
        false => range.into_iter().try_fold(1, usize::checked_mul),
    }
}

/// The subrange as a box, empty only if the subrange is. What does not fit 64
/// bits ends at the last coordinate there is, so that whoever checks bounds
/// rejects it.
pub(crate) fn to_box<const D: usize>(part: Subrange<D>) -> Box3 {
    part.try_to_box().unwrap_or_else(|_| {
        let (mut min, mut max) = ([0; 3], [1; 3]);
        for dim in 0..D {
            let (offset, size) = (part.offset[dim] as u64, part.range[dim] as u64);
            max[dim] = offset.saturating_add(size);
            min[dim] = offset.min(max[dim] - size.min(1));
        }
        Box3::new(min, max)
    })
}

/// A box that is known to have at most `D` dimensions.
pub(crate) fn bounds<const D: usize>(part: &Box3) -> Bounds<D> {
    Bounds::new(
        std::array::from_fn(|dim| part.min()[dim] as usize),
        std::array::from_fn(|dim| part.max()[dim] as usize),
    )
}

/// The subrange as a box, as [`to_box`] makes one of it: for kernels, which ask for the part of
/// each item.
#[inline]
pub(crate) fn to_bounds<const D: usize>(part: Subrange<D>) -> Bounds<D> {
    let Subrange { offset, range } = part;
    let max = std::array::from_fn(|dim| offset[dim].saturating_add(range[dim]));
    let min = std::array::from_fn(|dim| offset[dim].min(max[dim] - range[dim].min(1)));
    Bounds::new(min, max)
}

/// The subrange of the same elements.
pub(crate) fn subrange<const D: usize>(bounds: &Bounds<D>) -> Subrange<D> {
    Subrange { offset: bounds.min(), range: bounds.range() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = usize::MAX;

    #[test]
    fn a_part_that_does_not_fit_is_never_empty() {
        let to_box = |offset, range| {
            let part = Subrange { offset: [offset], range: [range] };
            assert_eq!(to_bounds(part), bounds(&to_box(part)), "{part:?}");
            to_box(part)
        };
        let end = |min| Box3::new([min, 0, 0], [u64::MAX, 1, 1]);
        assert_eq!(to_box(MAX, 5), end(u64::MAX - 1));
        assert_eq!(to_box(MAX, MAX), end(u64::MAX - 1));
        assert_eq!(to_box(MAX - 1, 1), end(u64::MAX - 1));
        assert_eq!(to_box(2, MAX), end(2));
        assert_eq!(to_box(2, 3), Box3::new([2, 0, 0], [5, 1, 1]));
        assert_eq!(to_box(MAX, 0), Box3::EMPTY);
    }

    #[test]
    fn a_part_without_elements_is_empty_wherever_it_is() {
        let part = Subrange { offset: [MAX, 3], range: [5, 0] };
        assert_eq!(to_box(part), Box3::EMPTY);
        assert_eq!(to_bounds(part), Bounds::EMPTY);
    }

    #[test]
    fn volumes_are_exact_or_unknown() {
        assert_eq!(volume([]), Some(1));
        assert_eq!(volume([3, 5]), Some(15));
        assert_eq!(volume([MAX, MAX, 0]), Some(0));
        assert_eq!(volume([MAX, 1]), Some(MAX));
        assert_eq!(volume([1 << 32, 1 << 32]), None);
        assert_eq!(volume([1 << 33, 1 << 33, 1 << 33]), None);
    }
}
