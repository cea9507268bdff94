//! Plain data: commands, what one node does for one task.

use std::fmt;
use std::sync::Arc;

use celerity_cpd::{Collective, NodeId};
use celerity_regions::{Box3, Region};
use celerity_tdag::{BufferId, Conflicts, Dependencies, EpochAction, TaskId, define_id};
use smallvec::SmallVec;

define_id!(
    /// A command of one node's graph. Prints as `C7`.
    pub struct CommandId, "C"
);
/// Names all data that moves to one node for one buffer of one task: pushes
/// meet await-pushes of the same transfer (CCGrid 2023, §IV-C). Prints as `T3.B0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TransferId {
    /// The task that will read the data.
    pub consumer: TaskId,
    /// The buffer it belongs to.
    pub buffer: BufferId,
}

impl fmt::Display for TransferId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.consumer, self.buffer)
    }
}

/// A node of the command graph.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(remote = "Self"))]
pub struct Command {
    /// Its id, dense in order of generation, local to this node.
    pub id: CommandId,
    /// The task that it serves.
    pub task: TaskId,
    /// What it does, with the parts of buffers and index space that are concerned.
    pub kind: CommandKind,
    /// Edges to earlier commands of this node.
    pub dependencies: Dependencies<CommandId>,
    /// Earlier commands of this node that it must not run at the same time as: undirected edges,
    /// between executions with side effects on one host object.
    pub conflicts: Conflicts<CommandId>,
}

/// Regions, each for one node; in order of nodes.
pub(crate) type Targets = SmallVec<[(NodeId, Region); 2]>;

/// What a command does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(remote = "Self"))]
pub enum CommandKind {
    /// This node's share of a task: a chunk of a kernel's index space, a host
    /// task or a fence.
    Execute {
        /// The part of the index space.
        chunk: Box3,
    },
    /// Sends parts of a buffer, all last written by the same command, to every
    /// node that needs them.
    Push {
        /// Meets the receivers' await-pushes.
        transfer: TransferId,
        /// Who gets what; no node twice, no region empty.
        #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::serde_impls::targets"))]
        #[cfg_attr(feature = "serde", serde(serialize_with = "crate::serde_impls::list"))]
        targets: Targets,
    },
    /// Expects parts of a buffer from whoever owns them.
    AwaitPush {
        /// Meets the senders' pushes.
        transfer: TransferId,
        /// All that will arrive.
        region: Region,
    },
    /// Exchanges parts of a buffer with other nodes at once (IJPP 2024, §3.2). All nodes that take part
    /// have the same collective, and two nodes have those that both take part in in the same order.
    Collective {
        /// Names the operation: the forward task that it comes from, and the buffer.
        transfer: TransferId,
        /// Who provides and who gets what.
        collective: Arc<Collective>,
    },
    /// Bounds the tracking structures.
    Horizon,
    /// Synchronises with the user's threads.
    Epoch(EpochAction),
}
