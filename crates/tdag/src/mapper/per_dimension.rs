//! Mappers that are put together of one function per dimension of the buffer: selections and
//! permutations of dimensions, strided and shifted forms, even shares. Knows boxes, not buffers.
//!
//! ```
//! use celerity_regions::Box3;
//! use celerity_tdag::{Mapper, MapperInput, Side};
//! let input = MapperInput {
//!     chunk: Box3::from_offset_range([4, 0], [4, 8]),
//!     global: Box3::from_range([16, 8]),
//!     buffer: Box3::from_range([8, 16]),
//! };
//! let transposed = Mapper::per_dimension(&[Side::along(1), Side::along(0)]);
//! assert_eq!(transposed.map(&input), Box3::from_offset_range([0, 4], [8, 4]).into());
//! ```

use std::fmt;
use std::ops::Range;

use celerity_regions::{Box3, Region};

use super::MapperInput;
use super::relation::{DimRelation, Intervals, Share, Windows, interval};
use crate::space::IndexSpace;

/// Which interval of one dimension of a buffer a chunk touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Side {
    /// The whole dimension.
    All,
    /// The same interval, whatever the chunk.
    Only {
        /// The first element.
        min: u64,
        /// One behind the last.
        max: u64,
    },
    /// An interval for each item.
    Windows(Windows),
    /// An even share for each item.
    Share(Share),
}

/// One [`Side`] for each dimension of a buffer: the image of an item is the product of its
/// intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PerDimension {
    /// Those that the buffer lacks are [`Side::All`].
    sides: [Side; 3],
    dims: u8,
}

impl Side {
    /// The element of an item's own index along dimension `from` of the index space.
    #[must_use]
    pub const fn along(from: u8) -> Self {
        Self::Windows(Windows::along(from))
    }

    /// The dimension of the index space that the interval depends on.
    #[must_use]
    pub const fn from(&self) -> Option<u8> {
        match self {
            Self::All | Self::Only { .. } => None,
            Self::Windows(Windows { from, .. }) | Self::Share(Share { from, .. }) => Some(*from),
        }
    }

    /// Whether items that differ along [`from`](Self::from) have different elements.
    fn keeps_apart(&self) -> bool {
        match self {
            Self::All | Self::Only { .. } => false,
            Self::Windows(windows) => windows.is_disjoint(),
            Self::Share(_) => true,
        }
    }

    /// The smallest interval around what a chunk touches.
    fn hull(&self, chunk: &Box3, global: &Box3, size: u64) -> Range<u64> {
        let items = |from: u8| interval(chunk, usize::from(from));
        match self {
            Self::All => 0..size,
            Self::Only { min, max } => *min..*max,
            Self::Windows(windows) => windows.hull(&items(windows.from), size),
            Self::Share(share) => {
                let all = interval(global, usize::from(share.from));
                share.interval(&items(share.from), &all, size)
            }
        }
    }

    fn intervals(&self, chunk: &Box3, global: &Box3, size: u64) -> Intervals {
        match self {
            Self::Windows(windows) => {
                windows.intervals(&interval(chunk, usize::from(windows.from)), size)
            }
            _ => std::iter::once(self.hull(chunk, global, size)).collect(),
        }
    }

    fn has_gaps(&self, chunk: &Box3) -> bool {
        match self {
            Self::Windows(windows) => windows.has_gaps(&interval(chunk, usize::from(windows.from))),
            _ => false,
        }
    }

    fn relation(&self, dim: usize) -> DimRelation {
        match self {
            Self::All | Self::Only { .. } => DimRelation::Constant,
            Self::Windows(windows) if windows.is_identity() && usize::from(windows.from) == dim => {
                DimRelation::Identity
            }
            Self::Windows(windows) => DimRelation::Windows(*windows),
            Self::Share(share) => DimRelation::Share(*share),
        }
    }
}

impl PerDimension {
    /// The mapper to buffers of as many dimensions as there are sides.
    ///
    /// # Panics
    /// If there are more than three.
    #[must_use]
    pub fn new(sides: &[Side]) -> Self {
        assert!(sides.len() <= 3, "a buffer has at most 3 dimensions, not {}", sides.len());
        let mut all = [Side::All; 3];
        all[..sides.len()].copy_from_slice(sides);
        Self { sides: all, dims: sides.len() as u8 }
    }

    /// One for each dimension of the buffer, the slowest first.
    #[must_use]
    pub fn sides(&self) -> &[Side] {
        &self.sides[..usize::from(self.dims)]
    }

    /// Whether data at rest are such a mapper: those sides that are not described are all of what
    /// there is.
    #[cfg(feature = "serde")]
    pub(crate) fn is_well_formed(&self) -> bool {
        let rest = self.sides.get(usize::from(self.dims)..);
        rest.is_some_and(|rest| rest.iter().all(|side| *side == Side::All))
    }

    /// The box around what a chunk that is not empty touches; exactly that, but for
    /// [windows](Windows) with gaps.
    #[must_use]
    pub fn hull(&self, chunk: &Box3, global: &Box3, buffer: &Box3) -> Box3 {
        let sides: [_; 3] =
            std::array::from_fn(|dim| self.sides[dim].hull(chunk, global, buffer.max()[dim]));
        Box3::new(sides.each_ref().map(|side| side.start), sides.each_ref().map(|side| side.end))
    }

    /// What a chunk touches, where that is one box.
    pub(super) fn map_box(&self, input: &MapperInput) -> Option<Box3> {
        let MapperInput { chunk, global, buffer } = input;
        let has_gaps = self.sides.iter().any(|side| side.has_gaps(chunk));
        (!has_gaps).then(|| self.hull(chunk, global, buffer))
    }

    /// What a chunk touches.
    pub(super) fn map_many(&self, input: &MapperInput) -> Region {
        let MapperInput { chunk, global, buffer } = input;
        product(std::array::from_fn(|dim| {
            self.sides[dim].intervals(chunk, global, buffer.max()[dim])
        }))
    }

    pub(super) fn relation(&self, dim: usize) -> DimRelation {
        self.sides[dim].relation(dim)
    }

    pub(super) fn is_constant(&self) -> bool {
        self.sides.iter().all(|side| side.from().is_none())
    }

    /// Whether disjoint chunks of `space` have disjoint images: items that differ, differ along
    /// a dimension that some side keeps apart.
    pub(super) fn is_disjoint(&self, space: &Box3) -> bool {
        (0..3).all(|dim| space.range()[dim] <= 1 || self.keeps_apart(dim))
    }

    /// As [`is_disjoint`](Self::is_disjoint), for the chunks that `space` is cut into.
    pub(super) fn keeps_chunks_apart(&self, space: &IndexSpace) -> bool {
        (0..3).all(|dim| !space.is_cut_along(dim) || self.keeps_apart(dim))
    }

    fn keeps_apart(&self, dim: usize) -> bool {
        let mut along = self.sides.iter().filter(|side| side.from().map(usize::from) == Some(dim));
        along.any(Side::keeps_apart)
    }
}

/// The boxes that one interval of each dimension makes up. O(boxes · log boxes).
pub(super) fn product(sides: [Intervals; 3]) -> Region {
    let [slow, middle, fast] = &sides;
    let mut boxes = Vec::with_capacity(slow.len() * middle.len() * fast.len());
    for z in slow {
        for y in middle {
            let row =
                |x: &Range<u64>| Box3::new([z.start, y.start, x.start], [z.end, y.end, x.end]);
            boxes.extend(fast.iter().map(row));
        }
    }
    Region::from_boxes(boxes)
}

impl PerDimension {
    /// How far all items are from their elements, along each dimension, if each has one, and not at its index.
    fn shift(&self) -> Option<Vec<i64>> {
        let shift = |(dim, side): (usize, &Side)| match side {
            Side::Windows(Windows { from, stride: 1, first, width: 1, clamped: false })
                if usize::from(*from) == dim =>
            {
                Some(*first)
            }
            _ => None,
        };
        let by: Option<Vec<i64>> = self.sides().iter().enumerate().map(shift).collect();
        by.filter(|by| by.iter().any(|&by| by != 0))
    }
}

impl fmt::Display for PerDimension {
    /// `per_dimension(i1, 2*i0-1..+3, all)`, where `i0` is an item's index along dimension 0; `one_to_one.offset([-1, 0])`, if
    /// each item has one element, as far from its own index as all others.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(by) = self.shift() {
            return write!(f, "one_to_one.offset({by:?})");
        }
        f.write_str("per_dimension(")?;
        for (dim, side) in self.sides().iter().enumerate() {
            let comma = if dim == 0 { "" } else { ", " };
            write!(f, "{comma}{side}")?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Only { min, max } => write!(f, "{min}..{max}"),
            Self::Share(share) => write!(f, "share of i{}", share.from),
            Self::Windows(windows) => {
                let Windows { from, stride, first, width, clamped } = windows;
                match stride {
                    1 => write!(f, "i{from}")?,
                    _ => write!(f, "{stride}*i{from}")?,
                }
                if *first != 0 {
                    write!(f, "{first:+}")?;
                }
                if *width != 1 {
                    write!(f, "..+{width}")?;
                }
                f.write_str(if *clamped { ", clamped" } else { "" })
            }
        }
    }
}
