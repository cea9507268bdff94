//! Plain data: instructions, the micro-operations of one node (instruction-graph preprint, §3,
//! Table 1). Ids only: never a pointer, a stream or a communicator.

use std::ops::Range;
use std::sync::Arc;

use celerity_cdag::{NodeId, TransferId};
use celerity_cpd::Collective;
use celerity_regions::{Box3, Region};
use celerity_tdag::{BufferId, Conflicts, EpochAction, TaskId, define_id};
use smallvec::SmallVec;

define_id!(
    /// An instruction of one node's graph. Prints as `I12`.
    pub struct InstructionId, "I"
);
define_id!(
    /// A device of one node. Prints as `D2`.
    pub struct DeviceId, "D"
);
define_id!(
    /// A memory of one node. Prints as `M0`.
    pub struct MemoryId, "M"
);
define_id!(
    /// An allocation in one of a node's memories. Prints as `A5`.
    pub struct AllocationId, "A"
);
define_id!(
    /// A message of one sender; with the sender it names one payload on the
    /// wire. Prints as `msg4`.
    pub struct MessageId, "msg"
);

impl MemoryId {
    /// `M0`: memory that the user has handed over and that devices do not reach, where a buffer's
    /// initial contents wait to be copied. Read only.
    pub const USER: Self = Self::from_index(0);
    /// `M1`: host memory that devices and network can reach directly.
    pub const HOST: Self = Self::from_index(1);

    /// The memory of a device that has one of its own: `D0` has `M2`, and so on.
    /// [`DeviceMemory`] tells whether it does.
    #[must_use]
    pub const fn of_device(device: DeviceId) -> Self {
        Self::from_index(device.index() + 2)
    }

    /// The device that has this memory for its own.
    #[must_use]
    pub const fn device(self) -> Option<DeviceId> {
        match self.index() {
            0 | 1 => None,
            memory => Some(DeviceId::from_index(memory - 2)),
        }
    }

    /// The memory as a position in per-memory tables.
    #[must_use]
    pub fn slot(self) -> usize {
        usize::try_from(self.index()).expect("memory counts fit in memory")
    }
}

/// Which memory a node's devices work in: what is native to their kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum DeviceMemory {
    /// Each in a memory of its own, as GPUs do.
    #[default]
    Own,
    /// All in the host's, `M1`: what a kernel has written can be sent from where
    /// it lies, and what arrives can be read there.
    Host,
}

impl DeviceMemory {
    /// The native memory of a device.
    #[must_use]
    pub const fn of(self, device: DeviceId) -> MemoryId {
        match self {
            Self::Own => MemoryId::of_device(device),
            Self::Host => MemoryId::HOST,
        }
    }

    /// Where a buffer's initial contents are: in `M1`, to be worked on where they lie, if devices
    /// can; in `M0`, to be copied, if they cannot.
    #[must_use]
    pub const fn of_initial_contents(self) -> MemoryId {
        match self {
            Self::Own => MemoryId::USER,
            Self::Host => MemoryId::HOST,
        }
    }

    /// How many memories a node with so many devices has, the user's and the
    /// host's among them.
    #[must_use]
    pub const fn count(self, devices: usize) -> usize {
        match self {
            Self::Own => devices + 2,
            Self::Host => 2,
        }
    }
}

/// Ids of the instructions to wait for; no id twice. Up to six are stored without
/// a heap allocation: as many as a copy waits for that refills what went to three
/// nodes.
pub type InstructionDependencies = SmallVec<[InstructionId; 6]>;

/// A node of the instruction graph.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(remote = "Self"))]
pub struct Instruction {
    /// Its id, dense in order of generation, which is a topological order.
    pub id: InstructionId,
    /// What it does, with the memory that is concerned.
    pub kind: InstructionKind,
    /// Edges to earlier instructions of this node.
    #[cfg_attr(feature = "serde", serde(with = "crate::serde_lists"))]
    pub dependencies: InstructionDependencies,
}

/// Where the elements of a buffer's box lie: row-major, dense, from the start
/// of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(remote = "Self"))]
pub struct Placement {
    /// The id of the allocation.
    pub allocation: AllocationId,
    /// The memory that it lies in.
    pub memory: MemoryId,
    /// The elements that the allocation holds, in buffer coordinates.
    pub extent: Box3,
}

/// What a kernel, host task or fence touches through one access.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(remote = "Self"))]
pub struct BoundAccess {
    /// The id of the buffer.
    pub buffer: BufferId,
    /// The allocation that backs the access; `None` if nothing is touched.
    pub placement: Option<Placement>,
    /// The elements that the chunk may touch: inside `placement.extent`.
    pub region: Region,
}

/// What an instruction does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(remote = "Self"))]
pub enum InstructionKind {
    /// Allocates zeroed memory.
    Alloc {
        /// The id of the allocation that it makes.
        allocation: AllocationId,
        /// The memory that it is in.
        memory: MemoryId,
        /// Whose elements it will hold.
        buffer: BufferId,
        /// Size in bytes, not 0.
        bytes: u64,
        /// The alignment of its address in bytes, a power of two.
        alignment: u64,
    },
    /// Reserves addresses for an allocation that grows where it is. There is no
    /// memory behind them until a *grow* says so.
    Reserve {
        /// The id of the allocation that it makes.
        allocation: AllocationId,
        /// The memory that it is in.
        memory: MemoryId,
        /// Whose elements it will hold, all of them.
        buffer: BufferId,
        /// Size in bytes, not 0.
        bytes: u64,
        /// The alignment of its address in bytes, a power of two.
        alignment: u64,
    },
    /// Provides memory for a part of a reserved allocation: zeroed, where there
    /// was none. What is there already stays as it is, and may be in use.
    Grow {
        /// The id of the allocation.
        allocation: AllocationId,
        /// The memory that it is in.
        memory: MemoryId,
        /// Whose elements it holds.
        buffer: BufferId,
        /// The elements: in one piece in the allocation.
        elements: Box3,
        /// Where they lie in the allocation.
        bytes: Range<u64>,
    },
    /// Gives an allocation back.
    Free {
        /// The allocation; nobody uses it any more.
        allocation: AllocationId,
        /// The memory that it was in.
        memory: MemoryId,
    },
    /// Copies elements between two allocations of one buffer.
    Copy {
        /// The id of the buffer.
        buffer: BufferId,
        /// The allocation that the elements are read from.
        source: Placement,
        /// To where; another allocation.
        target: Placement,
        /// The elements: inside both extents.
        region: Region,
        /// Bytes of one element.
        elem_size: u64,
    },
    /// Sends elements to another node, in one message.
    Send {
        /// The node that receives.
        to: NodeId,
        /// Names the payload; announced by a [`Pilot`].
        message: MessageId,
        /// What the data is for.
        transfer: TransferId,
        /// The allocation that the elements are read from: in host memory, if they are more than a box.
        source: Placement,
        /// The elements: inside the source's extent, at most [`Pilot::MOST_BOXES`] boxes.
        region: Region,
        /// Bytes of one element.
        elem_size: u64,
    },
    /// Receives all of a region, from whoever sends it.
    Receive(Inbound),
    /// Begins to receive a region whose parts are awaited one by one.
    SplitReceive(Inbound),
    /// Completes when a part of a split receive has arrived.
    AwaitReceive {
        /// The split receive's transfer.
        transfer: TransferId,
        /// The part: inside the split receive's region.
        region: Region,
    },
    /// Exchanges parts of a buffer with all nodes at once.
    Collective(Participation),
    /// Runs a chunk of a kernel on a device.
    Kernel {
        /// The device that runs it, counted from 0 on each node.
        device: DeviceId,
        /// The id of the task whose kernel runs.
        task: TaskId,
        /// The items of the index space that it runs.
        chunk: Box3,
        /// Memory, in the order of the task's accesses.
        accesses: Box<[BoundAccess]>,
    },
    /// Runs a host task or takes a fence's snapshot, in a host thread.
    HostTask {
        /// The id of the task whose function runs.
        task: TaskId,
        /// The items; one, unless the task is split.
        chunk: Box3,
        /// Memory, in the order of the task's accesses to buffers.
        accesses: Box<[BoundAccess]>,
        /// Earlier host tasks that it must not run at the same time as: undirected edges,
        /// because of host objects.
        conflicts: Conflicts<InstructionId>,
    },
    /// A horizon has been reached: older bookkeeping may go.
    Horizon {
        /// The id of the task that is the horizon.
        task: TaskId,
    },
    /// An epoch has been reached.
    Epoch {
        /// The id of the task that is the epoch.
        task: TaskId,
        /// What it is for.
        action: EpochAction,
    },
}

/// The target of a receive or split receive.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(remote = "Self"))]
pub struct Inbound {
    /// What the data is for.
    pub transfer: TransferId,
    /// To where: host memory, or a device's where the network
    /// [reaches it](crate::InstructionGraph::with_device_wires).
    pub target: Placement,
    /// All that will arrive: inside the target's extent, possibly less than
    /// the transfer's whole region.
    pub region: Region,
    /// Bytes of one element.
    pub elem_size: u64,
}

/// What a node does in a collective operation that it is a member of, also if it neither gives nor gets
/// anything.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(remote = "Self"))]
pub struct Participation {
    /// Names the operation; the same on all members.
    pub transfer: TransferId,
    /// Counts the collectives that this node takes part in, from 0. It begins them in that order, which is
    /// that of their tasks: so any two nodes begin those that both take part in in the same order.
    pub number: u64,
    /// Who takes part, and who provides and who gets what; the same on all members.
    pub collective: Arc<Collective>,
    /// The memory that the network reads and writes here: `M1`, or that of the node's first device on all
    /// members.
    pub memory: MemoryId,
    /// Where all that this node provides lies: disjoint parts, in that memory.
    pub sources: Box<[CollectivePart]>,
    /// Where all that arrives here goes: disjoint parts, in that memory.
    pub targets: Box<[CollectivePart]>,
    /// Bytes of one element.
    pub elem_size: u64,
}

/// Elements in one allocation that a collective reads or writes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(remote = "Self"))]
pub struct CollectivePart {
    /// The allocation that the elements lie in.
    pub placement: Placement,
    /// Which elements: inside the extent of the placement, at least one.
    pub region: Region,
}

/// Tells a receiver, ahead of time, what a message will bring (instruction-graph preprint, §3.4).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(remote = "Self"))]
pub struct Pilot {
    /// The node that receives.
    pub to: NodeId,
    /// The sender's number of the message.
    pub message: MessageId,
    /// What the data is for.
    pub transfer: TransferId,
    /// The elements that it brings, at most [`MOST_BOXES`](Self::MOST_BOXES) boxes.
    pub region: Region,
    /// Whether the elements leave from a device's memory.
    pub from_device: bool,
}

impl Pilot {
    /// The most boxes that one message brings. More would not fit what MPIs send to a process of the same host
    /// at once, 4 KiB, and gain little: with so many, what a message costs is spread over enough.
    pub const MOST_BOXES: usize = 64;

    /// The elements as they are on their way: see [`in_transit`].
    #[must_use]
    pub fn in_transit(&self) -> Box3 {
        in_transit(&self.region)
    }
}

/// A region as one box, which is how a message brings it: itself, if it is a box, and otherwise a row of its elements, box by
/// box in the order of the region, each of them row-major.
#[must_use]
pub fn in_transit(region: &Region) -> Box3 {
    match region.boxes() {
        [one] => *one,
        _ => Box3::new([0; 3], [1, 1, region.volume()]),
    }
}
