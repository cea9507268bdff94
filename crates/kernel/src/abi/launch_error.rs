//! Why a launch is refused, before a driver sees it.

use core::fmt;

use super::describe::ViewKind;
use super::{ALIGNMENT, GroupError};
use crate::bounds::Bounds;

/// Why a chunk cannot be launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaunchError {
    /// There is not one memory for each view.
    AccessCount {
        /// Views of the kernel.
        views: usize,
        /// How many memories the launch names.
        given: usize,
    },
    /// A view cannot show what the access maps to, on a device.
    Mapping {
        /// The position of the access in the tuple, counted from 0.
        access: usize,
        /// The view that the kernel declares.
        view: ViewKind,
        /// The name of the [`Mapping`](super::Mapping) that the access has.
        mapping: &'static str,
    },
    /// An item's own part is what only the host can find out, or in numbers that devices do not count with.
    Unknown {
        /// The position of the access in the tuple, counted from 0.
        access: usize,
    },
    /// The allocation does not hold what the chunk touches.
    Incomplete {
        /// The position of the access in the tuple, counted from 0.
        access: usize,
    },
    /// The allocation is not aligned to [`ALIGNMENT`].
    Misaligned {
        /// The position of the access in the tuple, counted from 0.
        access: usize,
    },
    /// The chunk cannot run in groups of the size asked for.
    Groups {
        /// Items of a group in each dimension; 1 in those that there are not.
        group: [usize; 3],
        /// What is wrong with the size.
        error: GroupError,
    },
    /// The kernel reduces, but the chunk does not consist of whole tiles, of fewer than 2³⁰ items
    /// each.
    Tiles {
        /// The items of the chunk.
        items: Bounds<3>,
    },
    /// No grid is large enough.
    TooLarge {
        /// Items of the chunk in each dimension.
        range: [usize; 3],
    },
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AccessCount { views, given } => {
                write!(
                    f,
                    "the kernel's views and the accesses are not equally many: {views} and {given}"
                )
            }
            Self::Unknown { access } => write!(
                f,
                "access {access} writes through a range mapper that only the host can evaluate; \
                 on devices, write through `one_to_one`, `slice`, `blocks` or `per_dimension`, or \
                 `update`"
            ),
            Self::Mapping { access, view, mapping } => {
                write!(f, "access {access} maps {mapping}, which a view {view:?} cannot show")
            }
            Self::Incomplete { access } => {
                write!(
                    f,
                    "the memory bound to access {access} does not hold what its chunk touches"
                )
            }
            Self::Misaligned { access } => {
                write!(f, "the memory bound to access {access} is not aligned to {ALIGNMENT} bytes")
            }
            Self::Groups { group, error } => write!(f, "groups of {group:?} items: {error}"),
            Self::Tiles { items } => write!(
                f,
                "items {:?} to {:?} are not whole tiles of at most 2^30 items, as kernels that \
                 reduce take them: cut the index space finer",
                items.min(),
                items.max()
            ),
            Self::TooLarge { range } => {
                write!(f, "no launch has room for {range:?} items: cut the index space finer")
            }
        }
    }
}

impl core::error::Error for LaunchError {}
