//! What a node waits for, in words: for watchdogs, simulators and whoever asks
//! why nothing happens. Reads the node's state and changes nothing.

use std::fmt;
use std::time::Duration;

use celerity_cdag::{NodeId, TransferId};
use celerity_idag::InstructionId;
use celerity_regions::Region;
use celerity_tdag::{Count, EpochAction, TaskId};

use super::Executor;
use super::open::{Open, Stage, Summary};
use crate::engine::LaneId;
use crate::time::Time;

/// An instruction that has not completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Which.
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
        /// Which.
        missing: Region,
        /// The nodes, in ascending order, that have announced some of them.
        announced_by: Vec<NodeId>,
    },
    /// The other nodes have to enter the same barrier.
    Barrier,
}

/// An instruction's lane, and what that does with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnLane {
    /// Which.
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
    /// Which node.
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

impl Executor {
    /// All instructions that have not completed, in ascending order. An issued
    /// one is where to look first: the others wait for those. Empty once the
    /// node has stopped.
    ///
    /// O(n log n) in the instructions and edges of the window, and allocates:
    /// for reports.
    #[must_use]
    pub fn waiting(&self) -> Vec<Waiting> {
        let mut edges: Vec<_> = self.engine.open_edges().collect();
        edges.sort_unstable();
        let blockers = |instruction| {
            let start = edges.partition_point(|(waiting, _)| *waiting < instruction);
            let mine = edges[start..].iter().take_while(|(waiting, _)| *waiting == instruction);
            mine.map(|(_, blocker)| *blocker).collect()
        };
        let open = self.open.iter();
        open.map(|(instruction, Open { since, stage })| {
            let (summary, reason) = match stage {
                Stage::Waiting(kind) => {
                    (Summary::of(&kind.effects()), WaitsFor::Instructions(blockers(instruction)))
                }
                Stage::Issued(summary, lane) => {
                    (*summary, self.reason(instruction, summary, *lane, *since))
                }
            };
            Waiting { instruction, what: self.describe(&summary), reason, since: *since }
        })
        .collect()
    }

    /// What there is to say of a node on which nothing has happened for so long.
    pub(super) fn stall(&self, lasting: Duration) -> Stall {
        let (node, at, waiting) = (self.id(), self.now, self.waiting());
        let held_back = self.tasks.iter().filter(|(_, running)| !running.scheduled);
        let held_back = held_back.map(|(_, running)| running.task.to_string()).collect();
        Stall { node, lasting, at, waiting, held_back }
    }

    fn reason(
        &self,
        issued: InstructionId,
        what: &Summary,
        lane: Option<LaneId>,
        since: Time,
    ) -> WaitsFor {
        match (*what, lane) {
            (_, Some(lane)) => WaitsFor::Lane(self.on_lane(issued, lane, since)),
            (Summary::Send { to, .. }, None) => WaitsFor::Receiver(to),
            (Summary::Receive { .. }, None) => WaitsFor::Elements {
                missing: self.arbiter.missing(issued).unwrap_or_default(),
                announced_by: self.arbiter.announced_by(issued),
            },
            (Summary::Epoch { .. }, None) => WaitsFor::Barrier,
            // The rest completes while it is issued.
            _ => WaitsFor::Instructions(Vec::new()),
        }
    }

    /// What the lane does with an instruction that was issued then.
    fn on_lane(&self, issued: InstructionId, lane: LaneId, since: Time) -> OnLane {
        let begun = self.backend.begun(lane).filter(|begun| begun.instruction == issued);
        let running = begun.map(|begun| Running {
            lasting: self.now.since(begun.since.unwrap_or(since)),
            thread: begun.thread,
        });
        OnLane { lane, name: self.lanes.name(lane), running }
    }

    pub(super) fn describe(&self, summary: &Summary) -> String {
        match *summary {
            Summary::Alloc { allocation, memory, buffer } => {
                format!("alloc of {allocation} in {memory} for {}", self.store.buffer_name(buffer))
            }
            Summary::Free { allocation, memory } => format!("free of {allocation} in {memory}"),
            Summary::Copy { buffer, from, to } => {
                format!("copy of {} from {from} to {to}", self.store.buffer_name(buffer))
            }
            Summary::Send { to, message, transfer } => {
                format!("send of {message} to {to} with {}", self.describe_transfer(transfer))
            }
            Summary::Receive { transfer } => {
                format!("receive of {}", self.describe_transfer(transfer))
            }
            Summary::Run { task, device: Some(device) } => {
                format!("kernel of {} on {device}", self.describe_task(task))
            }
            Summary::Run { task, device: None } => {
                format!("host function of {}", self.describe_task(task))
            }
            Summary::Horizon { task } => format!("horizon {task}"),
            Summary::Epoch { task, action } => match action {
                EpochAction::Init => format!("start {task}"),
                EpochAction::Barrier => format!("barrier {task}"),
                EpochAction::Shutdown => format!("end of the program {task}"),
            },
            Summary::Other(verb) => verb.to_owned(),
        }
    }

    fn describe_transfer(&self, transfer: TransferId) -> String {
        let TransferId { consumer, buffer } = transfer;
        format!("{} for {}", self.store.buffer_name(buffer), self.describe_task(consumer))
    }

    /// Its id; and its name, if the node has work of it left.
    fn describe_task(&self, task: TaskId) -> String {
        let running = self.tasks.get(task.index());
        running.map_or_else(|| task.to_string(), |running| running.task.to_string())
    }
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
