//! Plain data that describes a program: buffers, accesses, tasks. No kernels,
//! no memory: the executor owns those, keyed by [`TaskId`].

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use celerity_regions::{Box3, Coord3, Grid};

use crate::dependency::Dependencies;
use crate::id::{BufferId, TaskId};
use crate::mapper::Mapper;

/// A virtual buffer: a name for elements, not memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(remote = "Self"))]
pub struct BufferInfo {
    /// Its id, dense in order of creation, equal on all nodes.
    pub id: BufferId,
    /// What the user calls it; `B0` and so on where they do not.
    pub name: Arc<str>,
    /// True dimensionality, 0 to 3.
    pub dims: u8,
    /// All elements; the minimum is the origin.
    pub extent: Box3,
    /// Bytes per element; at least 1.
    pub elem_size: u64,
    /// Alignment of an element in bytes; a power of two.
    pub elem_align: u64,
    /// Whether every node provides the same initial contents.
    pub host_initialized: bool,
}

/// What an access does to its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum AccessMode {
    /// Reads only.
    Read,
    /// Overwrites all of them without looking at what was there.
    Write,
    /// Reads and overwrites.
    ReadWrite,
}

impl AccessMode {
    /// Whether earlier contents matter.
    #[must_use]
    pub const fn reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadWrite)
    }

    /// Whether it is a producer of later contents.
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(self, Self::Write | Self::ReadWrite)
    }
}

/// One entry of a task's access tuple.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Access {
    /// The buffer.
    pub buffer: BufferId,
    /// What is done with it.
    pub mode: AccessMode,
    /// Which part a chunk touches.
    pub mapper: Mapper,
}

impl fmt::Display for Access {
    /// What a task does, in messages: `reads through one_to_one`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.mode {
            AccessMode::Read => "reads",
            AccessMode::Write => "writes",
            AccessMode::ReadWrite => "reads and writes",
        };
        write!(f, "{verb} through {}", self.mapper)
    }
}

/// How an index space is cut into chunks (CCGrid 2023, §IV-A).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Split {
    /// Along dimension 0.
    #[default]
    OneDimensional,
    /// Into tiles over dimensions 0 and 1.
    Tiled,
    /// Along this dimension, below 3.
    Along(u8),
}

/// The index space of a task that is split over nodes and devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(remote = "Self"))]
pub struct IndexSpace {
    /// True dimensionality, 0 to 3.
    pub dims: u8,
    /// All items, in global coordinates; not empty.
    pub extent: Box3,
    /// Chunk sizes are multiples of this, but for the last one; never 0.
    pub granularity: Coord3,
    /// The user's hint.
    pub split: Split,
    /// Chunks per device, at least 1: with more than one, a device computes on
    /// some while others wait for data (CCGrid 2023, §IV-D).
    pub oversubscription: u32,
}

impl IndexSpace {
    /// The space of `extent` with granularity 1, the default split and one chunk
    /// per device.
    #[must_use]
    pub fn new(dims: u8, extent: Box3) -> Self {
        Self { dims, extent, granularity: [1; 3], split: Split::default(), oversubscription: 1 }
    }

    /// Whether chunks of this space may be neighbours along dimension `dim`, below 3.
    #[must_use]
    pub fn is_cut_along(&self, dim: usize) -> bool {
        let along = match self.split {
            Split::OneDimensional => dim == 0,
            Split::Tiled => dim < 2,
            Split::Along(only) => dim == usize::from(only),
        };
        along && self.extent.range()[dim] > self.granularity[dim]
    }

    /// Cuts `part`, a box of this space, into at most `parts` chunks.
    #[must_use]
    #[inline]
    pub fn split(&self, part: &Box3, parts: usize) -> Grid {
        match self.split {
            Split::OneDimensional => Grid::along(part, 0, self.granularity, parts),
            Split::Tiled => Grid::tiled(part, self.granularity, parts),
            Split::Along(dim) => Grid::along(part, usize::from(dim), self.granularity, parts),
        }
    }
}

/// What an epoch task is for (IJPP 2022, §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum EpochAction {
    /// The first task of every graph; does nothing.
    Init,
    /// All nodes wait for each other, and the user's threads wait for it.
    Barrier,
    /// The last task of every graph.
    Shutdown,
}

/// What a task does, and so how it is assigned to nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Work {
    /// A kernel: split over all devices of all nodes.
    Device(IndexSpace),
    /// A function on the host, once in the cluster: on node 0.
    HostOnce,
    /// Every node takes a snapshot of what the accesses name.
    Fence,
    /// Bounds the tracking structures of all graphs (instruction-graph preprint, §3.5).
    Horizon,
    /// Synchronises the graphs with the user's threads.
    Epoch(EpochAction),
}

impl Work {
    /// The items of the task; one for everything that is not split.
    #[must_use]
    pub fn extent(&self) -> Box3 {
        match self {
            Self::Device(space) => space.extent,
            _ => Box3::UNIT,
        }
    }
}

/// Where in the user's source a task was submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SourceLocation {
    /// The file, as the compiler names it.
    pub file: Cow<'static, str>,
    /// One-based.
    pub line: u32,
}

impl From<&'static Location<'static>> for SourceLocation {
    fn from(location: &'static Location<'static>) -> Self {
        Self { file: location.file().into(), line: location.line() }
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A task before it enters the graph.
#[derive(Clone, Debug)]
pub struct TaskSpec {
    /// What the user calls it.
    pub name: Arc<str>,
    /// What it does.
    pub work: Work,
    /// What it touches.
    pub accesses: Vec<Access>,
    /// Where it was submitted.
    pub location: Option<SourceLocation>,
}

/// A node of the task graph: immutable, shared by all later stages.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(remote = "Self"))]
pub struct Task {
    /// Its id, dense in order of commitment, equal on all nodes.
    pub id: TaskId,
    /// What the user calls it.
    pub name: Arc<str>,
    /// What it does.
    pub work: Work,
    /// What it touches. What one of them writes, no other touches.
    pub accesses: Box<[Access]>,
    /// Edges to earlier tasks.
    pub dependencies: Dependencies<TaskId>,
    /// Where it was submitted.
    pub location: Option<SourceLocation>,
}

impl Task {
    /// The positions of accesses to one buffer, in pairs, that only a user's word keeps apart:
    /// one of them writes, and one has a user's mapper. What the mappers have said of the whole
    /// index space has been looked at; whether they hold to it for its chunks is for who makes
    /// these to check. O(accesses²).
    pub fn apart_on_trust(&self) -> impl Iterator<Item = [usize; 2]> {
        let all = &self.accesses;
        let pairs =
            (1..all.len()).flat_map(|later| (0..later).map(move |earlier| [earlier, later]));
        pairs.filter(|&[a, b]| {
            let (a, b) = (&all[a], &all[b]);
            a.buffer == b.buffer
                && (a.mode.writes() || b.mode.writes())
                && [a, b].iter().any(|access| matches!(access.mapper, Mapper::User(_)))
        })
    }
}

impl fmt::Display for Task {
    /// `T3 "wave_step" at src/main.rs:40`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} \"{}\"", self.id, self.name)?;
        match &self.location {
            Some(location) => write!(f, " at {location}"),
            None => Ok(()),
        }
    }
}
