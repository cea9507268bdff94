//! What a node waits for, in words: for watchdogs, simulators and whoever asks
//! why nothing happens. Plain data; who finds it out is not known here.

use std::fmt;
use std::time::Duration;

use celerity_cdag::NodeId;
use celerity_idag::InstructionId;
use celerity_regions::Region;
use celerity_tdag::Count;

use crate::engine::LaneId;
use crate::time::Time;

/// An instruction that has not completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The id by which logs and graphs name it.
    pub instruction: InstructionId,
    /// What it does, as in `kernel of T3 "step" at src/main.rs:40 on D1`: ids, and
    /// names as far as they are known.
    pub what: String,
    /// Why it has not completed.
    pub reason: WaitsFor,
    /// When it was issued; of one that has not been, when it was generated.
    pub since: Time,
}

/// What has to happen before an instruction completes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// Others of this node, in ascending order, have to complete first. Empty
    /// if it could be issued, which only an aborting node refuses.
    Instructions(Vec<InstructionId>),
    /// The lane that it was put on has to run it, or runs it.
    Lane(OnLane),
    /// The receiver has to take the payload.
    Receiver(NodeId),
    /// Elements have to arrive.
    Elements {
        /// The elements that have not arrived.
        missing: Region,
        /// The nodes, in ascending order, that have announced some of them.
        announced_by: Vec<NodeId>,
    },
    /// The other nodes have to come to the same collective operation, and its data to arrive.
    Collective {
        /// Those that are known not to have come, in ascending order.
        absent: Vec<NodeId>,
    },
    /// Collective operations before it have to begin: all nodes begin them in one order.
    Turn,
    /// The other nodes have to enter the same barrier.
    Barrier,
}

/// An instruction's lane, and what that does with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnLane {
    /// The id by which logs and graphs name it.
    pub lane: LaneId,
    /// What it is for, as in `D1 kernels 2`.
    pub name: String,
    /// If the lane runs the instruction, as far as the backend can tell.
    pub running: Option<Running>,
}

/// An instruction that its lane runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// For how long; if the backend cannot tell when it has begun, since it was issued.
    pub lasting: Duration,
    /// The name of the thread that runs it, or has spread it over others.
    pub thread: Option<String>,
}

/// A node that makes no progress, and all that it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The node that is told of.
    pub node: NodeId,
    /// How long nothing has happened on it.
    pub lasting: Duration,
    /// When this was found.
    pub at: Time,
    /// What has not completed, in ascending order.
    pub waiting: Vec<Waiting>,
    /// Tasks that are held back to see what follows, in order of submission.
    pub held_back: Vec<String>,
}

impl fmt::Display for Waiting {
    /// `I12 (receive of "u" for T3 "step") waits for elements {[4..8]}, which ...`, or
    /// `I13 (kernel of T4 "step" on D0) has been running for 30.0s on thread celerity-1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}) {}", self.instruction, self.what, self.reason)
    }
}

impl fmt::Display for WaitsFor {
    /// As in `waits for N2 to take it`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instructions(blockers) if blockers.is_empty() => f.write_str("waits for nothing"),
            Self::Instructions(blockers) => write!(f, "waits for {}", join(blockers)),
            Self::Lane(lane) => lane.fmt(f),
            Self::Receiver(node) => write!(f, "waits for {node} to take it"),
            Self::Elements { missing, announced_by } if announced_by.is_empty() => {
                write!(f, "waits for elements {missing}, which no node has announced")
            }
            Self::Elements { missing, announced_by } => {
                write!(f, "waits for elements {missing}, announced by {}", join(announced_by))
            }
            Self::Collective { absent } if absent.is_empty() => {
                f.write_str("waits for the other nodes' parts in it")
            }
            Self::Collective { absent } => write!(f, "waits for {} to come to it", join(absent)),
            Self::Turn => f.write_str("waits for earlier collective operations to begin"),
            Self::Barrier => f.write_str("waits for the other nodes to get there"),
        }
    }
}

impl fmt::Display for OnLane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Running { lasting, thread }) = &self.running else {
            return write!(f, "waits for its lane, {}", self.name);
        };
        write!(f, "has been running for {lasting:.1?}")?;
        thread.as_ref().map_or(Ok(()), |thread| write!(f, " on thread {thread}"))
    }
}

impl WaitsFor {
    /// Whether it is being done, and not waited for.
    fn is_running(&self) -> bool {
        matches!(self, Self::Lane(OnLane { running: Some(_), .. }))
    }
}

/// So many lines of each kind are printed.
const MOST_LINES: usize = 12;

impl fmt::Display for Stall {
    /// What has been issued, in lines; all else waits for that.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, lasting, at, waiting, held_back } = self;
        write!(f, "{node} has made no progress for {lasting:.1?}")?;
        let behind = |one: &&Waiting| matches!(one.reason, WaitsFor::Instructions(_));
        let (behind, first): (Vec<_>, Vec<_>) = waiting.iter().partition(behind);
        for one in first.iter().take(MOST_LINES) {
            write!(f, "\n    {one}")?;
            if !one.reason.is_running() {
                write!(f, ", since {:.1?}", at.since(one.since))?;
            }
        }
        more(f, first.len())?;
        if !behind.is_empty() {
            let waits = if behind.len() == 1 { "waits" } else { "wait" };
            write!(f, "\n    {} {waits} for these", Count(behind.len(), "more instruction"))?;
        }
        for task in held_back.iter().take(MOST_LINES) {
            write!(f, "\n    {task} is held back to see what follows; flushing lets it go")?;
        }
        more(f, held_back.len())
    }
}

fn more(f: &mut fmt::Formatter<'_>, lines: usize) -> fmt::Result {
    match lines.saturating_sub(MOST_LINES) {
        0 => Ok(()),
        more => write!(f, "\n    and {more} more"),
    }
}

fn join<T: ToString>(all: &[T]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
