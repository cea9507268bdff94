//! What devices are told of range mappers.

use super::sides::PartSides;

/// Range mappers, as far as a device must know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// An item's own element.
    OneToOne,
    /// What is around it.
    Neighborhood {
        /// Elements to either side, per dimension.
        border: [usize; 3],
        /// Whether diagonals are left out.
        axes_only: bool,
    },
    /// What is around it, in a buffer whose opposite edges meet.
    Periodic {
        /// Elements to either side, per dimension.
        border: [usize; 3],
        /// Whether diagonals are left out.
        axes_only: bool,
        /// The dimensions along which edges meet.
        along: [bool; 3],
    },
    /// Each item maps to the whole buffer.
    All,
    /// A box of elements for each item: slices, blocks and shares, among others.
    PerDimension {
        /// What an item has along each dimension of the buffer.
        sides: PartSides,
    },
    /// The partial results of the chunk's tiles, which are elements of one dimension. An access's
    /// `extent` and `part` count tiles.
    Tiles,
    /// Any other box, known to the host alone.
    Opaque,
}

impl Mapping {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::OneToOne => "OneToOne",
            Self::Neighborhood { .. } => "Neighborhood",
            Self::Periodic { .. } => "Periodic",
            Self::All => "All",
            Self::PerDimension { .. } => "PerDimension",
            Self::Tiles => "Tiles",
            Self::Opaque => "Opaque",
        }
    }
}
