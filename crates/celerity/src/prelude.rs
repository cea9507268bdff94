//! Everything that a program usually needs.

#[doc(hidden)]
pub use crate::misuse::Unsurrounded as _;
pub use crate::{
    All, Buffer, Chunk, Config, Fence, Hint, HostObject, Item, LookBehind, OneToOne, PerDimension,
    Queue, Row, Side, Snapshot, Subrange, all, blocks, disjoint_mapper, even_split, fixed, mapper,
    nd_range, neighborhood, neighborhood_along_axes, one_to_one, per_dimension, region_mapper,
    select, slice, transposed,
};
