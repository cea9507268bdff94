//! What can be wrong between a built-in mapper, an index space and a buffer, beyond what leaves the
//! buffer. Knows no task.

use celerity_regions::Box3;

use super::Mapper;
use super::per_dimension::Side;
use super::relation::interval;
use crate::count::Count;

/// Why a mapper does not fit an index space or a buffer. The text goes on where a message has named
/// the mapper: `..., whose border ...`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MapperFlaw {
    /// It follows a dimension that the index space does not have.
    #[error(
        "which follows dimension {dim} of the index space, but that has {}; dimensions are counted \
         from 0, the slowest",
        Count(*dims, "dimension")
    )]
    NoSuchDimension {
        /// The dimension, counted from 0, the slowest.
        dim: u8,
        /// How many the index space has.
        dims: u8,
    },
    /// A slice runs along a dimension that the buffer does not have.
    #[error(
        "which runs along dimension {dim} of the buffer, but that has {}; dimensions are counted from \
         0, the slowest",
        Count(*dims, "dimension")
    )]
    NoSuchSlice {
        /// The dimension, counted from 0, the slowest.
        dim: u8,
        /// How many the buffer has.
        dims: u8,
    },
    /// Two dimensions of the buffer follow the same one of the index space: a diagonal, of which a
    /// chunk would touch more than its items do.
    #[error(
        "which follows dimension {dim} of the index space twice, so that a chunk's elements would \
         be no box; follow each dimension once, or use a mapper of your own"
    )]
    FollowedTwice {
        /// The dimension of the index space.
        dim: u8,
    },
    /// A border that wraps around meets itself.
    #[error(
        "whose border of {border} along dimension {dim} is wider than the buffer, which has {} \
         there, so that it would reach around more than once; make the border narrower or the \
         buffer larger",
        Count(*size, "element")
    )]
    BorderTooWide {
        /// The dimension, counted from 0, the slowest.
        dim: u8,
        /// Elements to either side.
        border: u64,
        /// Elements of the buffer.
        size: u64,
    },
    /// An item's elements begin in front of the buffer.
    #[error(
        "which begins {before} in front of the buffer along dimension {dim}, for the first item; \
         let the index space begin later, or, if it is made of sides, have them clamped"
    )]
    BeforeBuffer {
        /// The dimension of the buffer.
        dim: u8,
        /// How many elements in front of it.
        before: u128,
    },
    /// It is for buffers of another dimensionality.
    #[error(
        "which describes {}, but the buffer has {dims}; describe each dimension of the buffer once",
        Count(*sides, "dimension")
    )]
    SideCount {
        /// Dimensions that it describes.
        sides: u8,
        /// Dimensions of the buffer.
        dims: u8,
    },
}

impl Mapper {
    /// Why the mapper cannot lead from an index space of `task_dims` dimensions with these items
    /// to this buffer; `None` if it can, or if nothing is known. O(1).
    #[must_use]
    #[inline]
    pub fn flaw(&self, space: (u8, &Box3), buffer: (u8, &Box3)) -> Option<MapperFlaw> {
        match self {
            Self::Slice { dim } if *dim < buffer.0 => None,
            Self::Slice { .. } | Self::Periodic { .. } | Self::PerDimension(_) => {
                self.flaw_of_parts(space, buffer)
            }
            _ => None,
        }
    }

    /// As [`flaw`](Self::flaw), of what has more than one part; each submission asks for all.
    fn flaw_of_parts(
        &self,
        (task_dims, space): (u8, &Box3),
        (buffer_dims, buffer): (u8, &Box3),
    ) -> Option<MapperFlaw> {
        match self {
            Self::Slice { dim } => Some(MapperFlaw::NoSuchSlice { dim: *dim, dims: buffer_dims }),
            Self::Periodic { border, along, .. } if !space.is_empty() => {
                let too_wide = |&dim: &usize| along[dim] && border[dim] > buffer.max()[dim];
                (0..3).find(too_wide).map(|dim| MapperFlaw::BorderTooWide {
                    dim: dim as u8,
                    border: border[dim],
                    size: buffer.max()[dim],
                })
            }
            Self::PerDimension(mapper) => {
                let sides = mapper.sides();
                if sides.len() != usize::from(buffer_dims) {
                    let sides = sides.len() as u8;
                    return Some(MapperFlaw::SideCount { sides, dims: buffer_dims });
                }
                let mut followed = [false; 3];
                for from in sides.iter().filter_map(Side::from).map(usize::from) {
                    if from < 3 && std::mem::replace(&mut followed[from], true) {
                        return Some(MapperFlaw::FollowedTwice { dim: from as u8 });
                    }
                }
                let mut flaws = sides.iter().enumerate();
                flaws.find_map(|(dim, side)| flaw_of(side, dim as u8, task_dims, space))
            }
            _ => None,
        }
    }
}

fn flaw_of(side: &Side, dim: u8, dims: u8, space: &Box3) -> Option<MapperFlaw> {
    if let Some(from) = side.from().filter(|&from| from >= dims) {
        return Some(MapperFlaw::NoSuchDimension { dim: from, dims });
    }
    let Side::Windows(windows) = side else { return None };
    let beginning = windows.beginning(&interval(space, usize::from(windows.from)));
    let before = !windows.clamped && !space.is_empty() && beginning < 0;
    before.then(|| MapperFlaw::BeforeBuffer { dim, before: beginning.unsigned_abs() })
}
