#![doc = include_str!("../README.md")]

mod access;
mod backtrace;
mod buffer;
mod config;
#[cfg(feature = "cuda")]
pub mod cuda;
mod error;
mod fence;
mod graphs;
mod host;
mod item_context;
mod launch;
mod log;
mod mapper;
mod misuse;
mod origin;
mod pinning;
mod place;
pub mod prelude;
mod program;
mod queue;
mod range;

pub use access::{
    HostAccess, HostAccesses, KernelAccess, KernelAccesses, ReadAccess, UpdateAccess, WriteAccess,
};
pub use buffer::{Buffer, Element};
pub use celerity_executor::{
    CheckLevel, CommunicationError, DeviceMemory, Lookahead, RunError, ScheduleError, TaskError,
};
/// What `#[kernel]` functions are made into; for those who load or inspect them.
pub mod kernels {
    pub use celerity_kernel::{
        Code, GroupKernel, ItemKernel, Kernel, Module, NoCode, Ptx, RowKernel, abi,
    };
}

pub use celerity_kernel::{
    Atomic, AtomicRef, AtomicView, Bounds, Group, Item, Line, Local, NdItem, NeighborhoodItem,
    NeighborhoodRow, PartView, PartViewMut, Row, ViewIndex, Warp, WholeView, WholeViewMut, kernel,
};
pub use celerity_regions::{Chunk, Subrange};
pub use celerity_tdag::{DeclareError, TaskId, UninitializedRead};
pub use config::{Config, Platform};
pub use error::{ConfigError, Error, Result};
pub use fence::{Fence, Snapshot};
pub use host::HostOutcome;
pub use log::LogLevel;
pub use mapper::{
    All, ChunkMapper, CustomMapper, DisjointMapper, Fixed, ItemMapper, MapperFor, Neighborhood,
    OneToOne, Slice, all, disjoint_mapper, fixed, mapper, neighborhood, neighborhood_along_axes,
    one_to_one, slice,
};
pub use pinning::Pinning;
pub use program::run;
pub use queue::{Hint, HostTaskBuilder, Queue, TaskBuilder};
pub use range::IntoRange;
