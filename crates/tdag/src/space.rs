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

/// So many granules of each node are enough for chunks of whole ones to be as good as even.
const EVEN_GRANULES: u64 = 32;

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
    pub fn flaw(&self) -> Option<SpaceFlaw> {
        (!self.is_one()).then(|| self.named_flaw())
    }

    /// Whether it has no [flaw](Self::flaw). Without branches: each of them costs more than all comparisons.
    #[inline]
    pub(crate) fn is_one(&self) -> bool {
        let Self { granularity, split, oversubscription, .. } = self;
        let is_grained = (granularity[0] != 0) & (granularity[1] != 0) & (granularity[2] != 0);
        let is_cut = !matches!(split, Split::Along(3..)) & (*oversubscription != 0);
        self.is_flat() & is_grained & is_cut
    }

    /// Whether the extent is flat beyond the dimensions, of which there are three at most.
    #[inline]
    fn is_flat(&self) -> bool {
        let (dims, min, max) = (usize::from(self.dims), self.extent.min(), self.extent.max());
        let is_flat = |dim: usize| (dim < dims) | ((min[dim] == 0) & (max[dim] <= 1));
        (dims <= 3) & is_flat(0) & is_flat(1) & is_flat(2)
    }

    #[cold]
    fn named_flaw(&self) -> SpaceFlaw {
        let Self { dims, extent, granularity, split, .. } = *self;
        match split {
            _ if !self.is_flat() => SpaceFlaw::Dimensions { dims, extent },
            _ if granularity.contains(&0) => SpaceFlaw::Granularity { granularity },
            Split::Along(dim @ 3..) => SpaceFlaw::SplitAlong { dim },
            _ => SpaceFlaw::NoChunks,
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

    /// This space, cut where `other` is, if that is the same one in larger granules, such as the [tiles](crate::Tiling) of a task that reduces: what
    /// tasks over the one write lies where those over the other read it. Along dimensions where each of `nodes`
    /// has fewer than 32 granules of the other, chunks would be much less even: there it stays as it is. O(1).
    ///
    /// ```
    /// use celerity_regions::Box3;
    /// use celerity_tdag::{IndexSpace, Tiling};
    ///
    /// let space = IndexSpace::new(1, Box3::from_range([100_000]));
    /// let reducing = Tiling::of(&space, 8).of_whole_tiles(space);
    /// let ends = |space: IndexSpace| space.split(&space.extent, 2).get(0).map(|chunk| chunk.max()[0]);
    /// let aligned = space.cut_as(&reducing, 2);
    /// assert_eq!([space, reducing, aligned].map(ends), [Some(50_000), Some(49_920), Some(49_920)]);
    /// assert_eq!(space.cut_as(&reducing, 64), space);
    /// ```
    #[must_use]
    pub fn cut_as(self, other: &Self, nodes: usize) -> Self {
        let is_same = self.extent == other.extent && self.split == other.split;
        if !is_same || self.granularity != [1; 3] {
            return self;
        }
        let (range, enough) = (self.extent.range(), EVEN_GRANULES.saturating_mul(nodes as u64));
        let is_even = |dim: usize| range[dim] / other.granularity[dim] >= enough;
        let granularity = std::array::from_fn(|dim| match self.is_cut_along(dim) && is_even(dim) {
            true => other.granularity[dim],
            false => 1,
        });
        Self { granularity, ..self }
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
