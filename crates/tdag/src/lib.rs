#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod access;
mod apart;
mod buffer_state;
mod buffer_table;
mod collective;
mod conflicts;
mod count;
mod declare;
mod dependency;
mod error;
mod footprint;
mod forward;
mod frontier;
mod graph;
mod id;
mod lineage;
mod mapper;
#[cfg(feature = "mutants")]
mod mistakes;
mod objects;
mod readers;
#[cfg(feature = "serde")]
mod serde_impls;
mod side_effects;
mod sketch;
mod space;
mod stream;
mod task;
#[cfg(test)]
mod tests;
mod tiles;
mod verify;

pub use access::{Access, AccessMode, BufferAccess};
pub use buffer_table::{BufferTable, Sweep};
pub use collective::{CollectiveGroup, GroupOrder};
pub use conflicts::Conflicts;
pub use count::Count;
pub use declare::Declared;
pub use dependency::{Dependencies, Dependency, DependencyKind};
pub use error::{DeclareError, UninitializedRead};
pub use footprint::Touched;
pub use frontier::Frontier;
pub use graph::{NewBuffer, TaskGraph, TaskGraphConfig};
pub use id::{BufferId, GraphId, ObjectId, TaskId};
pub use lineage::{BrokenEdge, Lineage, Point};
pub use mapper::{
    DimRelation, Mapper, MapperFlaw, MapperInput, MapperPanic, MapperViolation, NeighborhoodShape,
    PerDimension, RangeMapper, Share, Side, UserMapper, Windows, verify_mapper,
};
pub use readers::{Readers, StandIns};
/// For the macros of this crate.
#[cfg(feature = "serde")]
#[doc(hidden)]
pub use serde as __serde;
pub use side_effects::{ObjectAccess, SideEffectOrder, SideEffects};
pub use sketch::{Sketch, Traced};
pub use space::{IndexSpace, SpaceFlaw, Split};
pub use stream::StreamHash;
pub use task::{
    BufferInfo, EpochAction, Forward, ForwardEnd, NewForward, SourceLocation, Task, TaskSpec, Work,
};
pub use tiles::{Subtree, TileWalk, Tiling, fold};
pub use verify::{Broken, verify};
