//! Plain data that describes a program: buffers and tasks. No kernels,
//! no memory: the executor owns those, keyed by [`TaskId`].

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use celerity_regions::Box3;

use crate::access::{Access, BufferAccess};
use crate::dependency::Dependencies;
use crate::id::{BufferId, TaskId};
use crate::space::IndexSpace;

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

impl TaskSpec {
    /// The accesses to buffers, in order.
    pub fn buffer_accesses(&self) -> impl DoubleEndedIterator<Item = &BufferAccess> + Clone {
        Access::buffers(&self.accesses)
    }
}

impl Task {
    /// The accesses to buffers, in order. A kernel or host task gets memory for each of them.
    pub fn buffer_accesses(&self) -> impl DoubleEndedIterator<Item = &BufferAccess> + Clone {
        Access::buffers(&self.accesses)
    }

    /// Pairs of accesses to one buffer that only a user's word keeps apart, each with its position
    /// among [`buffer_accesses`](Self::buffer_accesses): one of them writes, and one has a user's
    /// mapper. What the mappers have said of the whole index space has been looked at; whether
    /// they hold to it for its chunks is for who makes these to check. O(accesses²).
    pub fn apart_on_trust(&self) -> impl Iterator<Item = [(usize, &BufferAccess); 2]> {
        let all = || self.buffer_accesses().enumerate();
        let pairs = all().flat_map(move |later| {
            all().take_while(move |one| one.0 < later.0).map(move |earlier| [earlier, later])
        });
        pairs.filter(|[(_, a), (_, b)]| a.conflicts_with(b) && (a.is_on_trust() || b.is_on_trust()))
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
