//! The const-generic face of a box, for code that knows its dimensionality.
//!
//! Owns [`Subrange`] and [`Chunk`] and their conversions to and from [`Box3`]. It does no
//! geometry: convert, and let the erased types work.

use std::fmt;

use crate::box3::{Box3, BoxError, MAX_DIMS};

/// A part of a `D`-dimensional space: `[offset, offset + range)`, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Subrange<const D: usize> {
    /// The index of the first element in each dimension.
    pub offset: [usize; D],
    /// The extents; zero in any dimension makes the subrange empty.
    pub range: [usize; D],
}

/// A part of an index space together with the space that it was cut from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chunk<const D: usize> {
    /// The first work item.
    pub offset: [usize; D],
    /// The extents, in work items.
    pub range: [usize; D],
    /// The whole index space.
    pub global: Subrange<D>,
}

impl<const D: usize> Subrange<D> {
    /// The subrange `[offset, offset + range)`.
    pub const fn new(offset: [usize; D], range: [usize; D]) -> Self {
        Subrange { offset, range }
    }

    /// The whole space `[0, range)`.
    pub const fn whole(range: [usize; D]) -> Self {
        Subrange { offset: [0; D], range }
    }

    /// The number of elements, saturating.
    pub fn volume(&self) -> usize {
        if self.is_empty() {
            return 0;
        }
        self.range.iter().fold(1, |volume: usize, &extent| volume.saturating_mul(extent))
    }

    /// Whether the subrange has no elements. A 0-D subrange always has one.
    pub fn is_empty(&self) -> bool {
        self.range.contains(&0)
    }

    /// The subrange as an embedded box.
    ///
    /// # Panics
    /// If `offset + range` exceeds 64 bits; see [`try_to_box`](Self::try_to_box).
    pub fn to_box(&self) -> Box3 {
        Box3::from_offset_range(self.offset, self.range)
    }

    /// The subrange as an embedded box.
    ///
    /// # Errors
    /// [`BoxError::Overflow`] if `offset + range` exceeds 64 bits.
    pub fn try_to_box(&self) -> Result<Box3, BoxError> {
        Box3::try_from_offset_range(self.offset, self.range)
    }
}

impl<const D: usize> Chunk<D> {
    /// The chunk `part` of the index space `global`.
    pub const fn new(part: Subrange<D>, global: Subrange<D>) -> Self {
        Chunk { offset: part.offset, range: part.range, global }
    }

    /// The part of the index space that the chunk covers.
    pub const fn subrange(&self) -> Subrange<D> {
        Subrange { offset: self.offset, range: self.range }
    }
}

impl<const D: usize> TryFrom<Subrange<D>> for Box3 {
    type Error = BoxError;

    fn try_from(subrange: Subrange<D>) -> Result<Box3, BoxError> {
        subrange.try_to_box()
    }
}

impl<const D: usize> TryFrom<Box3> for Subrange<D> {
    type Error = BoxError;

    /// Fails with [`BoxError::TooManyDims`] if the box needs more than `D` dimensions. The
    /// empty box becomes the subrange of all zeros; for `D = 0`, where no subrange is empty,
    /// it is an error, too.
    fn try_from(found: Box3) -> Result<Self, BoxError> {
        const { assert!(D <= MAX_DIMS, "a space has at most three dimensions") };
        let needs = if found.is_empty() { 1 } else { found.effective_dims() };
        let fits = if found.is_empty() { D > 0 } else { needs <= D };
        if !fits {
            return Err(BoxError::TooManyDims { found, dims: D, needs });
        }
        // Coordinates come from `usize` values, so they fit back on the same machine.
        Ok(Subrange {
            offset: std::array::from_fn(|d| found.min()[d] as usize),
            range: std::array::from_fn(|d| found.range()[d] as usize),
        })
    }
}

impl<const D: usize> fmt::Display for Subrange<D> {
    /// `[0..4, 0..8]`, with all `D` dimensions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for dim in 0..D {
            let separator = if dim == 0 { "" } else { ", " };
            let (from, to) = (self.offset[dim], self.offset[dim].saturating_add(self.range[dim]));
            write!(f, "{separator}{from}..{to}")?;
        }
        f.write_str("]")
    }
}

impl<const D: usize> fmt::Display for Chunk<D> {
    /// `[0..4, 0..8] of [0..16, 0..8]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.subrange(), self.global)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subranges_survive_the_round_trip() {
        let part = Subrange::new([1, 2], [3, 4]);
        assert_eq!(Subrange::<2>::try_from(part.to_box()), Ok(part));
        assert_eq!(Subrange::<3>::try_from(part.to_box()).unwrap().range, [3, 4, 1]);
        let point = Subrange::<0>::whole([]);
        assert_eq!(point.to_box(), Box3::UNIT);
        assert_eq!(Subrange::<0>::try_from(Box3::UNIT), Ok(point));
        assert_eq!((part.volume(), point.volume()), (12, 1));
    }

    #[test]
    fn boxes_that_do_not_fit_are_refused() {
        let error = Subrange::<1>::try_from(Box3::from_range([4, 4])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "box [0..4, 0..4] does not fit a space of 1 dimensions; \
                                       it needs 2"
        );
        assert!(Subrange::<0>::try_from(Box3::EMPTY).is_err());
        assert!(Subrange::<1>::try_from(Box3::EMPTY).unwrap().is_empty());
        assert!(Box3::try_from(Subrange::new([usize::MAX], [1])).is_err());
    }

    #[test]
    fn display_shows_all_dimensions() {
        let chunk = Chunk::new(Subrange::new([0, 2], [1, 2]), Subrange::whole([1, 8]));
        assert_eq!(chunk.to_string(), "[0..1, 2..4] of [0..1, 0..8]");
    }
}
