//! Plain data that describes a program: buffers and tasks. No kernels,
//! no memory: the executor owns those, keyed by [`TaskId`].

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use celerity_regions::{Box3, Region};

use crate::access::{Access, BufferAccess};
use crate::collective::CollectiveGroup;
use crate::conflicts::Conflicts;
use crate::dependency::Dependencies;
use crate::id::{BufferId, TaskId};
use crate::side_effects::{ObjectAccess, SideEffectOrder};
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
    /// A function on the host, once in the cluster: on this node, counted modulo the number of
    /// nodes, so that a graph makes sense for any number of them.
    HostOnce {
        /// Its index.
        node: u64,
    },
    /// A function on the host, called once for each chunk: split over nodes as a kernel is, and
    /// each node's share into [`oversubscription`](IndexSpace::oversubscription) chunks.
    HostSplit {
        /// The items. With as many as there are nodes, each node has one.
        space: IndexSpace,
        /// The group in whose order it runs on every node, if it is collective.
        group: Option<CollectiveGroup>,
    },
    /// Every node takes a snapshot of what the accesses name.
    Fence,
    /// A function on the host, on every node, with the same outcome: what it writes is current on
    /// all nodes, and nobody sends it. Makes a result of partial ones, see
    /// [`Tiling`](crate::Tiling).
    Combine {
        /// What the function combines with, as a number: nodes on which it differs run different
        /// programs. No stage uses it otherwise.
        operator: u64,
    },
    /// Nothing is computed: nodes may exchange what the access names, before the next task needs it
    /// (IJPP 2024, §3.1). [`Task::forward`] says between whom.
    Forward,
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
            Self::Device(space) | Self::HostSplit { space, .. } => space.extent,
            _ => Box3::UNIT,
        }
    }

    /// The index space, if the task is split.
    #[must_use]
    pub fn space(&self) -> Option<&IndexSpace> {
        match self {
            Self::Device(space) | Self::HostSplit { space, .. } => Some(space),
            Self::HostOnce { .. }
            | Self::Fence
            | Self::Combine { .. }
            | Self::Forward
            | Self::Horizon
            | Self::Epoch(_) => None,
        }
    }

    /// Dimensionality of the index space; 0 for everything that is not split.
    #[must_use]
    pub fn dims(&self) -> u8 {
        self.space().map_or(0, |space| space.dims)
    }

    /// The collective group that the task is in, if it is in one.
    #[must_use]
    #[inline]
    pub fn group(&self) -> Option<CollectiveGroup> {
        match self {
            Self::HostSplit { group, .. } => *group,
            _ => None,
        }
    }

    /// Whether a function of the host does the work.
    #[must_use]
    pub const fn is_on_host(&self) -> bool {
        matches!(
            self,
            Self::HostOnce { .. } | Self::HostSplit { .. } | Self::Fence | Self::Combine { .. }
        )
    }
}

/// Where in the user's source a task was submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SourceLocation {
    /// The file, as the compiler names it.
    pub file: Cow<'static, str>,
    /// The line in the file, counted from 1.
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
    /// What kind of work it is, over which index space.
    pub work: Work,
    /// All accesses to buffers, in the order in which the task declared them.
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
    /// What kind of work it is, over which index space.
    pub work: Work,
    /// What it touches. What one of them writes, no other touches.
    pub accesses: Box<[Access]>,
    /// Edges to earlier tasks.
    pub dependencies: Dependencies<TaskId>,
    /// Earlier tasks that it must not run at the same time as: undirected edges, between side
    /// effects on one host object.
    pub conflicts: Conflicts<TaskId>,
    /// Where it was submitted.
    pub location: Option<SourceLocation>,
    /// What a [forward task](Work::Forward) is about; nothing for others.
    pub forward: Option<Arc<Forward>>,
}

/// The data that a forward task may move early. Which elements: those of the one access of the
/// task, which reads and writes them. They keep their contents.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Forward {
    /// The task that wrote the elements last, and how.
    pub producer: ForwardEnd,
    /// Who is the first to read them elsewhere.
    pub consumer: ForwardEnd,
}

/// One end of a forward.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ForwardEnd {
    /// The task. A consumer is the next one after its forwards.
    pub task: TaskId,
    /// What it does, and so how it is assigned to nodes.
    pub work: Work,
    /// Its accesses to the buffer that write (the producer) or read (the consumer) any of the
    /// elements.
    pub accesses: Box<[BufferAccess]>,
}

/// A forward to insert in front of its consumer, by
/// [`TaskGraph::forward`](crate::TaskGraph::forward).
#[derive(Clone, Debug)]
pub struct NewForward {
    /// The id of the buffer.
    pub buffer: BufferId,
    /// The elements; not empty.
    pub region: Region,
    /// Both ends. Which task the consumer is the graph knows.
    pub forward: Forward,
    /// What the user calls the consumer, and messages the forward.
    pub name: Arc<str>,
    /// Where the consumer was submitted.
    pub location: Option<SourceLocation>,
}

impl TaskSpec {
    /// The accesses to buffers, in order.
    pub fn buffer_accesses(&self) -> impl DoubleEndedIterator<Item = &BufferAccess> + Clone {
        Access::buffers(&self.accesses)
    }

    /// The side effects, in order.
    pub fn side_effects(&self) -> impl DoubleEndedIterator<Item = &ObjectAccess> + Clone {
        Access::objects(&self.accesses)
    }

    /// Makes the exclusive side effects of a collective task sequential, so that all nodes run it
    /// in the same order against others. Else the functions of two collective tasks could wait for
    /// each other, one in each order on two nodes.
    pub(crate) fn settle_collective_effects(&mut self) {
        if self.work.group().is_none() {
            return;
        }
        for access in &mut self.accesses {
            match access {
                Access::Object(effect) if effect.order == SideEffectOrder::Exclusive => {
                    effect.order = SideEffectOrder::Sequential;
                }
                Access::Object(_) | Access::Buffer(_) => {}
            }
        }
    }
}

impl Task {
    /// The side effects, in order. Only what runs on the host has any.
    pub fn side_effects(&self) -> impl DoubleEndedIterator<Item = &ObjectAccess> + Clone {
        Access::objects(&self.accesses)
    }

    /// Whether the task has side effects. O(1) for what does not run on the host.
    #[must_use]
    #[inline]
    pub fn has_side_effects(&self) -> bool {
        self.work.is_on_host() && self.side_effects().next().is_some()
    }

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
