//! Everything that a program usually needs.

#[doc(hidden)]
pub use crate::misuse::Unsurrounded as _;
pub use crate::{
    Buffer, Chunk, Config, Fence, Hint, Item, Queue, Row, Snapshot, Subrange, all, disjoint_mapper,
    fixed, mapper, neighborhood, neighborhood_along_axes, one_to_one, slice,
};
