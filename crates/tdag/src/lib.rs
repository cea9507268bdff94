#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod access;
mod apart;
mod buffer_state;
mod buffer_table;
mod count;
mod declare;
mod dependency;
mod error;
mod footprint;
mod frontier;
mod graph;
mod id;
mod lineage;
mod mapper;
#[cfg(feature = "mutants")]
mod mistakes;
mod readers;
#[cfg(feature = "serde")]
mod serde_impls;
mod sketch;
mod space;
mod stream;
mod task;
#[cfg(test)]
mod tests;
mod verify;

pub use access::{Access, AccessMode, BufferAccess};
pub use buffer_table::{BufferTable, Sweep};
pub use count::Count;
pub use declare::{Declared, UninitializedRead};
pub use dependency::{Dependencies, Dependency, DependencyKind};
pub use error::DeclareError;
pub use footprint::Touched;
pub use frontier::Frontier;
pub use graph::{NewBuffer, TaskGraph, TaskGraphConfig};
pub use id::{BufferId, GraphId, TaskId};
pub use lineage::{BrokenEdge, Lineage, Point};
pub use mapper::{
    DimRelation, Mapper, MapperInput, MapperPanic, NeighborhoodShape, RangeMapper, UserMapper,
};
pub use readers::Readers;
/// For the macros of this crate.
#[cfg(feature = "serde")]
#[doc(hidden)]
pub use serde as __serde;
pub use sketch::{Sketch, Traced};
pub use space::{IndexSpace, Split};
pub use stream::StreamHash;
pub use task::{BufferInfo, EpochAction, SourceLocation, Task, TaskSpec, Work};
pub use verify::{Broken, verify};
