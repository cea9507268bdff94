//! What a node waits for, in words: for watchdogs, simulators and whoever asks
//! why nothing happens. Reads the node's state and changes nothing.

use std::fmt;

use celerity_cdag::NodeId;
use celerity_idag::InstructionId;
use celerity_regions::Region;

use super::NodeMachine;
use super::open::{Open, Stage, Summary};
use crate::engine::LaneId;
use crate::time::Time;

/// An instruction that has not completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Which.
    pub instruction: InstructionId,
    /// What it does, as in `kernel of T3 on D1`.
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
    /// The lane that it was put on has to run it.
    Lane(LaneId),
    /// The receiver has to take the payload.
    Receiver(NodeId),
    /// These elements have to arrive.
    Elements(Region),
    /// The other nodes have to enter the same barrier.
    Barrier,
}

impl NodeMachine {
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
                    (Summary::of(kind), WaitsFor::Instructions(blockers(instruction)))
                }
                Stage::Issued(summary, lane) => {
                    (*summary, self.reason(instruction, summary, *lane))
                }
            };
            Waiting { instruction, what: summary.to_string(), reason, since: *since }
        })
        .collect()
    }

    fn reason(&self, issued: InstructionId, what: &Summary, lane: Option<LaneId>) -> WaitsFor {
        match (*what, lane) {
            (_, Some(lane)) => WaitsFor::Lane(lane),
            (Summary::Send { to, .. }, None) => WaitsFor::Receiver(to),
            (Summary::Receive { .. }, None) => {
                WaitsFor::Elements(self.arbiter.missing(issued).unwrap_or_default())
            }
            (Summary::Epoch { .. }, None) => WaitsFor::Barrier,
            // The rest completes while it is issued.
            _ => WaitsFor::Instructions(Vec::new()),
        }
    }
}

impl fmt::Display for Waiting {
    /// `I12 (receive for T3.B0) waits for {[4..8]}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}) waits for {}", self.instruction, self.what, self.reason)
    }
}

impl fmt::Display for WaitsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instructions(blockers) => {
                let blockers: Vec<_> = blockers.iter().map(ToString::to_string).collect();
                match blockers.is_empty() {
                    true => f.write_str("nothing"),
                    false => f.write_str(&blockers.join(", ")),
                }
            }
            Self::Lane(lane) => write!(f, "lane {}", lane.slot()),
            Self::Receiver(node) => write!(f, "{node} to take it"),
            Self::Elements(region) => write!(f, "{region}"),
            Self::Barrier => f.write_str("the other nodes"),
        }
    }
}
