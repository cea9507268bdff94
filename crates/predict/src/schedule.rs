//! The schedule of one node, as a dry run has written it. Owns the reading of such files; what the
//! lines mean in time is the simulation's business.

mod reader;

use std::path::{Path, PathBuf};

use celerity_regions::Box3;

use crate::error::PredictError;
use reader::Reader;

/// One node's tasks and instructions, in order of generation.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSchedule {
    /// Where it has been read from.
    pub path: PathBuf,
    /// The node, counted from 0.
    pub node: usize,
    /// Nodes of the cluster.
    pub nodes: usize,
    /// Devices of the node.
    pub devices: usize,
    /// Its tasks, in order.
    pub tasks: Vec<ScheduledTask>,
    /// Its instructions, in order.
    pub steps: Vec<ScheduledStep>,
}

/// A task, and which instructions are its.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledTask {
    /// Its id.
    pub id: u64,
    /// What the program calls it.
    pub name: String,
    /// What kind of work it is.
    pub kind: ScheduledKind,
    /// How many instructions there are up to its last one.
    pub steps_until: usize,
}

/// What kind of work a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScheduledKind {
    /// A kernel.
    Kernel,
    /// A host task.
    Host,
    /// A copy for the program.
    Fence,
    /// The last part of a reduction.
    Combine,
    /// What moves data in a collective operation, inserted in front of a task.
    Forward,
    /// Inserted behind a task.
    Horizon,
    /// The start, a barrier or the end.
    Epoch,
}

/// An instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduledStep {
    /// Its id.
    pub id: u64,
    /// What it does.
    pub action: Action,
    /// The positions of the instructions that it waits for.
    pub after: Vec<u32>,
    /// Its line in the file, counted from 1.
    pub line: usize,
}

/// What an instruction does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Allocates, provides or frees memory.
    Memory {
        /// How many bytes there are afterwards that were not there before.
        bytes: u64,
    },
    /// Copies between memories: 0 and 1 are the host's, 2 is that of the first device.
    Copy {
        /// From which memory.
        from: u64,
        /// To which memory.
        to: u64,
        /// How much.
        bytes: u64,
    },
    /// Sends elements to another node.
    Send {
        /// To which node.
        to: usize,
        /// What the data is for.
        transfer: TransferKey,
        /// The elements.
        elements: Box3,
        /// Bytes of all elements.
        bytes: u64,
    },
    /// Receives elements, in one piece or in parts.
    Receive {
        /// What the data is for.
        transfer: TransferKey,
        /// The elements.
        elements: Vec<Box3>,
        /// Which part of a receive it is.
        part: ReceivePart,
    },
    /// Takes part in an operation of all nodes.
    Collective {
        /// Which operation it is.
        pattern: String,
        /// Counts the operations.
        number: u64,
        /// The greater of the bytes that leave this node and that come to it.
        bytes: u64,
    },
    /// Runs items of a kernel or of a host task.
    Run {
        /// The device; `None` for the host.
        device: Option<usize>,
        /// The task.
        task: u64,
        /// How many items.
        items: u64,
    },
    /// Passes a horizon.
    Horizon,
    /// Passes an epoch.
    Epoch {
        /// Whether all nodes meet in it.
        meets: bool,
    },
}

/// Names all data that moves to a node for one buffer of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TransferKey {
    /// The task that reads the data.
    pub task: u64,
    /// The buffer.
    pub buffer: u64,
}

/// How a receive begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceivePart {
    /// Begins, and completes when all elements are there.
    Whole,
    /// Begins, and completes at once.
    Begin,
    /// Completes when these elements of what has begun are there.
    Await,
}

impl NodeSchedule {
    /// Reads a file that a dry run has written.
    ///
    /// # Errors
    /// [`PredictError::Read`], or as [`parse`](Self::parse).
    pub fn read(path: &Path) -> Result<Self, PredictError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| PredictError::Read { path: path.to_owned(), source })?;
        Self::parse(&text, path)
    }

    /// The schedule of a text; `path` is for errors.
    ///
    /// # Errors
    /// [`PredictError::Malformed`] with the line, also if the text ends before the schedule does.
    pub fn parse(text: &str, path: &Path) -> Result<Self, PredictError> {
        Reader::new(path).read(text).map_err(|(line, what)| PredictError::Malformed {
            path: path.to_owned(),
            line,
            what,
        })
    }
}
