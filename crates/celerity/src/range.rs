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
        const { assert!(D <= 3, "index spaces and buffers have at most three dimensions") };
        self
    }
}

impl IntoRange<1> for usize {
    fn into_range(self) -> [usize; 1] {
        [self]
    }
}

/// The subrange as a box. One that does not fit 64 bits ends at the last
/// coordinate there is, so that whoever checks bounds rejects it.
pub(crate) fn to_box<const D: usize>(part: Subrange<D>) -> Box3 {
    part.try_to_box().unwrap_or_else(|_| {
        let (mut min, mut max) = ([0; 3], [1; 3]);
        for dim in 0..D {
            min[dim] = part.offset[dim] as u64;
            max[dim] = (part.offset[dim] as u64).saturating_add(part.range[dim] as u64);
        }
        Box3::new(min, max)
    })
}

/// A box that is known to have at most `D` dimensions.
pub(crate) fn bounds<const D: usize>(part: &Box3) -> Bounds<D> {
    Bounds {
        min: std::array::from_fn(|dim| part.min()[dim] as usize),
        max: std::array::from_fn(|dim| part.max()[dim] as usize),
    }
}

/// The subrange of the same elements.
pub(crate) fn subrange<const D: usize>(bounds: &Bounds<D>) -> Subrange<D> {
    Subrange { offset: bounds.min, range: bounds.range() }
}
