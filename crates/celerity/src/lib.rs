#![doc = include_str!("../README.md")]

/// The page of the documentation that tells of values, for its examples to be run.
#[cfg(all(doctest, feature = "half", feature = "ndarray"))]
#[doc = include_str!("../../../docs/values.md")]
pub mod values_page {}

/// The page of the documentation that tells of collective operations, for its examples to be run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/collectives.md")]
pub mod collectives_page {}

/// The page of the documentation that tells of what is handed out, for its examples to be run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/captures.md")]
pub mod captures_page {}

/// The page of the documentation that tells of host objects, for its examples to be run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/host-objects.md")]
pub mod host_objects_page {}

/// The page of the documentation that tells of host tasks, for its examples to be run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/host-tasks.md")]
pub mod host_tasks_page {}

/// The page of the documentation that tells of reductions, for its examples to be run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/reductions.md")]
pub mod reductions_page {}

mod access;
#[cfg(feature = "ndarray")]
mod arrays;
mod arrival;
mod backtrace;
mod buffer;
mod config;
#[cfg(feature = "cuda")]
pub mod cuda;
mod device_call;
mod dry_run;
mod error;
mod explain;
mod fence;
mod graphs;
mod host;
mod item_context;
mod launch;
mod log;
mod look_behind;
mod mapper;
mod misuse;
mod object;
mod origin;
mod partials;
mod partition;
mod pending;
mod pinning;
mod place;
pub mod prelude;
mod program;
mod queue;
mod range;
mod reduction;
mod schedule_file;
mod spares;
pub mod testing;
mod tuples;

pub use access::{
    CallAccess, CallAccesses, DeviceView, DeviceViewMut, HostAccess, HostAccesses, KernelAccess,
    KernelAccesses, ReadAccess, ReduceAccess, UpdateAccess, WriteAccess,
};
pub use buffer::{Buffer, Element};
pub use celerity_executor::{
    CheckLevel, CollectiveError, CollectiveOperation, Collectives, CommunicationError,
    DeviceMemory, DeviceStream, GroupCommunicator, Lookahead, NotCosts, RunError, ScheduleError,
    TaskError, Wires,
};
/// What errors say of a schedule: ids, which print as `B3`, `N1` and `D2`, boxes and regions of any
/// number of dimensions, and what is wrong with what.
pub mod schedule {
    pub use celerity_cdag::{Diagnostic as CommandDiagnostic, NodeId, TransferId};
    pub use celerity_executor::{ArbiterError, NoRoom, Resident};
    pub use celerity_idag::{
        DeviceId, Diagnostic as InstructionDiagnostic, InstructionId, MemoryId, MessageId,
    };
    pub use celerity_regions::{Box3, BoxError, Coord3, Region};
    pub use celerity_tdag::{BufferId, CollectiveGroup, Share, Windows};
}

/// What `#[kernel]` functions are made into, and what their views are made of; for those who load,
/// inspect or run them by hand.
pub mod kernels {
    pub use celerity_kernel::Layout;
    pub use celerity_kernel::{
        AtomicInteger, GroupBarrier, Integer, LocalMemory, OuterIndex, Reach, Word,
    };
    pub use celerity_kernel::{
        Code, GroupKernel, ItemKernel, Kernel, KernelForm, Module, NoCode, PerGroup, PerItem,
        PerRow, Ptx, RowKernel, abi,
    };
}

pub use celerity_kernel::PlainDataOfFacade as PlainData;
#[doc(hidden)]
pub use celerity_kernel::derived;
pub use celerity_kernel::derived::PlainData;
#[cfg(feature = "half")]
pub use celerity_kernel::half;
#[cfg(feature = "ndarray")]
pub use celerity_kernel::ndarray;
#[cfg(feature = "num-complex")]
pub use celerity_kernel::num_complex;
pub use celerity_kernel::{
    And, ArgMax, ArgMin, ArrayReducer, Atomic, AtomicRef, AtomicView, Bounds, Deferred, Group,
    Item, Line, LineMut, Local, LocalSlice, Located, Max, Min, NdItem, NeighborhoodItem,
    NeighborhoodRow, Number, Operator, Or, PartView, PartViewMut, PeriodicItem, PeriodicRow,
    Product, Reducer, RegionView, Row, Sum, ViewIndex, Warp, WholeView, WholeViewMut, Xor, kernel,
};
#[cfg(feature = "mpi")]
pub use celerity_mpi::{MpiGroup, MpiGroupError, ThreadLevel as MpiThreadLevel, rsmpi as mpi};
pub use celerity_regions::{Chunk, Subrange};
pub use celerity_tdag::{
    DeclareError, DimRelation, MapperFlaw, MapperViolation, SpaceFlaw, TaskId, UninitializedRead,
};
pub use config::{Config, Platform};
pub use device_call::{DeviceCall, DeviceCallError, DeviceCallFailed};
pub use error::{ConfigError, Error, Result};
#[cfg(feature = "npy")]
pub use error::{NpyAction, NpyError};
pub use fence::{Awaited, Fence, ObjectFence, Snapshot};
pub use host::HostOutcome;
pub use log::LogLevel;
pub use look_behind::LookBehind;
pub use mapper::{
    All, BoxAround, ChunkMapper, CustomMapper, DisjointMapper, Fixed, Gapped, ItemMapper, MapChunk,
    MapRegion, MapperFor, Neighborhood, OneToOne, PerDimension, Periodic, RegionMapper, Shifted,
    Side, Slice, all, blocks, disjoint_mapper, disjoint_mapper_of, even_split, fixed, mapper,
    mapper_of, neighborhood, neighborhood_along_axes, one_to_one, per_dimension, region_mapper,
    region_mapper_of, select, slice, transposed, verify_mapper,
};
pub use object::{Exclusive, HostObject, Order, Relaxed, Sequential, SideEffect};
pub use partition::{CollectivePartition, Partition};
pub use pinning::Pinning;
pub use program::run;
#[cfg(feature = "npy")]
pub use queue::NpyElement;
pub use queue::{
    BufferCapture, Captures, DistributedHostTask, Hint, HostTaskBuilder, LaunchForm, LaunchSpace,
    ObjectCapture, OnNode, PlacedHostTask, Queue, TaskBuilder,
};
pub use range::{IntoRange, NdRange, nd_range};

/// For our benchmarks, which run kernels without a runtime around them.
#[doc(hidden)]
pub mod by_hand {
    pub use crate::queue::by_hand::{item_kernel, row_kernel};
}
