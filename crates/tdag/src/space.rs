//! Index spaces: the items of a task that is split, and into which chunks it may be cut. Knows
//! geometry only.

use celerity_regions::{Box3, Coord3, Grid};

use crate::count::Count;

/// How an index space is cut into chunks (CCGrid 2023, §IV-A).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Split {
    /// Along dimension 0.
    #[default]
    OneDimensional,
    /// Into tiles over dimensions 0 and 1.
    Tiled,
    /// Along this dimension, below 3.
    Along(u8),
}

/// The index space of a task that is split over nodes and devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(remote = "Self"))]
pub struct IndexSpace {
    /// True dimensionality, 0 to 3.
    pub dims: u8,
    /// All items, in global coordinates. A task without any touches nothing, and no node has a part
    /// of it.
    pub extent: Box3,
    /// Chunk sizes are multiples of this, but for the last one; never 0.
    pub granularity: Coord3,
    /// How the index space is cut, as the task asks for it.
    pub split: Split,
    /// Chunks per device, at least 1: with more than one, a device computes on
    /// some while others wait for data (CCGrid 2023, §IV-D).
    pub oversubscription: u32,
}

/// What keeps an index space from being one. The text goes on where a message has named the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpaceFlaw {
    /// There are three dimensions at most, and an extent is 1 wide in those that a space does not have.
    #[error("has {} and the extent {extent}", Count(*dims, "dimension"))]
    Dimensions {
        /// How many the space is said to have.
        dims: u8,
        /// All items.
        extent: Box3,
    },
    /// It is cut along a dimension that there is not.
    #[error("is split along dimension {dim}; dimensions are counted from 0, the slowest, to 2")]
    SplitAlong {
        /// The dimension.
        dim: u8,
    },
    /// Chunks would be multiples of nothing.
    #[error("has granularity {granularity:?}; it is at least 1 in each dimension")]
    Granularity {
        /// As it was given.
        granularity: Coord3,
    },
    /// Devices would get no chunks.
    #[error("has no chunks per device; oversubscription is at least 1")]
    NoChunks,
}

impl IndexSpace {
    /// What keeps this from being an index space; `None` if nothing does, without any item as well. O(1).
    #[must_use]
    #[inline]
    pub fn flaw(&self) -> Option<SpaceFlaw> {
        let Self { dims, extent, granularity, split, oversubscription } = *self;
        if dims > 3 || extent.effective_dims() > usize::from(dims) {
            return Some(SpaceFlaw::Dimensions { dims, extent });
        }
        if granularity.contains(&0) {
            return Some(SpaceFlaw::Granularity { granularity });
        }
        match split {
            Split::Along(dim @ 3..) => Some(SpaceFlaw::SplitAlong { dim }),
            _ if oversubscription == 0 => Some(SpaceFlaw::NoChunks),
            _ => None,
        }
    }

    /// The space of `extent` with granularity 1, the default split and one chunk
    /// per device.
    #[must_use]
    pub fn new(dims: u8, extent: Box3) -> Self {
        Self { dims, extent, granularity: [1; 3], split: Split::default(), oversubscription: 1 }
    }

    /// Whether chunks of this space may be neighbours along dimension `dim`, below 3.
    #[must_use]
    pub fn is_cut_along(&self, dim: usize) -> bool {
        let along = match self.split {
            Split::OneDimensional => dim == 0,
            Split::Tiled => dim < 2,
            Split::Along(only) => dim == usize::from(only),
        };
        along && self.extent.range()[dim] > self.granularity[dim]
    }

    /// Cuts `part`, a box of this space, into at most `parts` chunks.
    #[must_use]
    #[inline]
    pub fn split(&self, part: &Box3, parts: usize) -> Grid {
        match self.split {
            Split::OneDimensional => Grid::along(part, 0, self.granularity, parts),
            Split::Tiled => Grid::tiled(part, self.granularity, parts),
            Split::Along(dim) => Grid::along(part, usize::from(dim), self.granularity, parts),
        }
    }
}
