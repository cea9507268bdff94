//! What nodes must tell each other to be checked together: plain data, a few
//! boxes per task, which could as well come from another process.

use celerity_cdag::{NodeId, TransferId};
use celerity_regions::Box3;
use celerity_tdag::{Task, TaskId, Work};

use crate::violation::Vertex;

/// A node's side of everything that crosses its border, in order of tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// One entry per task.
    pub tasks: Vec<TaskOutline>,
}

/// One node's side of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskOutline {
    /// The task that the entry is about.
    pub task: TaskId,
    /// Hash of this task and of all before it: ids, work and accesses.
    pub hash: u64,
    /// The index space, if the task is split.
    pub space: Option<Box3>,
    /// The part of it that this node runs.
    pub chunk: Option<Box3>,
    /// What is pushed, per target.
    pub pushes: Vec<Moved>,
    /// Elements that the node awaits for the task, per await-push command.
    pub awaits: Vec<Moved>,
    /// The collective that the node takes part in.
    pub exchange: Option<ExchangeOutline>,
    /// Whether the node's memory in that is a device's, if there is an instruction for it.
    pub venue: Option<bool>,
    /// What is sent, per message.
    pub sends: Vec<Moved>,
    /// Elements that the node receives for the task, per receive instruction.
    pub receives: Vec<Moved>,
}

/// Elements that move from one node to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Who moves or expects them.
    pub vertex: Vertex,
    /// The transfer that they belong to: the task that reads them, and the buffer.
    pub transfer: TransferId,
    /// The node that receives.
    pub to: NodeId,
    /// The elements, as disjoint boxes.
    pub boxes: Vec<Box3>,
}

/// One node's side of a collective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeOutline {
    /// The command that it is about.
    pub vertex: Vertex,
    /// The transfer that the collective serves, the same on all nodes that take part.
    pub transfer: TransferId,
    /// Hash of the whole operation: who takes part, what moves, and which nodes have what before and
    /// afterwards.
    pub hash: u64,
    /// Who takes part, ascending.
    pub members: Vec<NodeId>,
    /// All that moves, as disjoint boxes.
    pub region: Vec<Box3>,
    /// What this node provides, as disjoint boxes.
    pub provided: Vec<Box3>,
}

impl TaskOutline {
    pub(crate) fn new(task: &Task) -> Self {
        let space = match &task.work {
            Work::Device(space) | Work::HostSplit { space, .. } => Some(space.extent),
            _ => None,
        };
        Self {
            task: task.id,
            hash: 0,
            space,
            chunk: None,
            pushes: Vec::new(),
            awaits: Vec::new(),
            exchange: None,
            venue: None,
            sends: Vec::new(),
            receives: Vec::new(),
        }
    }
}
