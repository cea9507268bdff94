//! Ids: opaque newtypes whose `Display` is the notation used everywhere
//! (`T3`, `B0`, …). Knows nothing of what an id stands for.

use std::fmt;

/// What graph bookkeeping needs of an id: a dense index that grows in order of
/// creation.
pub trait GraphId: Copy + Ord + fmt::Display {
    /// The id with the given index.
    fn from_index(index: u64) -> Self;

    /// The index.
    fn index(self) -> u64;
}

/// Defines an opaque id type: a dense, zero-based index in its own namespace.
///
/// `Display` and `Debug` both print the house notation, a prefix and the index.
/// There is no arithmetic; [`from_index`](TaskId::from_index) and
/// [`index`](TaskId::index) are the two explicit doors in and out.
///
/// ```
/// celerity_tdag::define_id!(
///     /// A bus stop.
///     pub struct StopId, "S"
/// );
/// assert_eq!(StopId::from_index(3).to_string(), "S3");
/// ```
#[macro_export]
macro_rules! define_id {
    ($(#[$meta:meta])* $vis:vis struct $name:ident, $prefix:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis struct $name(u64);

        impl $name {
            /// The id with the given index in its namespace.
            #[must_use]
            $vis const fn from_index(index: u64) -> Self {
                Self(index)
            }

            /// The index in its namespace.
            #[must_use]
            $vis const fn index(self) -> u64 {
                self.0
            }

            /// The id that follows this one.
            #[must_use]
            $vis const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        $crate::__serde_id!($name);

        impl $crate::GraphId for $name {
            fn from_index(index: u64) -> Self {
                Self(index)
            }

            fn index(self) -> u64 {
                self.0
            }
        }

        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl ::core::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Display::fmt(self, f)
            }
        }
    };
}

/// Without the feature `serde`, ids are not serialised. This crate's features decide, not those of
/// the crate that calls [`define_id!`].
#[cfg(not(feature = "serde"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __serde_id {
    ($name:ident) => {};
}

define_id!(
    /// A task; the same on every node. Prints as `T3`.
    pub struct TaskId, "T"
);
define_id!(
    /// A buffer; the same on every node. Prints as `B0`.
    pub struct BufferId, "B"
);
define_id!(
    /// A host object; the same on every node, each of which has a value of its own. Prints as
    /// `H0`.
    pub struct ObjectId, "H"
);
