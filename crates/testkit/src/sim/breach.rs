//! What a simulation can find.

use std::fmt;

use celerity_cdag::NodeId;
use celerity_executor::{Phase, RunError, Stall, Waiting};

use crate::violation::Violation;

/// A promise of the runtime that a run has broken.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Breach {
    /// The program is refused, or a fence has seen something else than the
    /// sequential twin.
    #[error(transparent)]
    Observed(#[from] Violation),
    /// Nothing can happen any more, but not everything has.
    #[error("nothing can happen any more, but {}", stuck.iter().map(ToString::to_string).collect::<Vec<_>>().join("\nand "))]
    Deadlock {
        /// The nodes that are not done.
        stuck: Vec<Stuck>,
    },
    /// A node has done what a contract forbids.
    #[error("{node}: {what}")]
    Contract {
        /// The node's id.
        node: NodeId,
        /// What.
        what: String,
    },
    /// A node's machine has panicked.
    #[error("{node} panicked: {message}")]
    Panicked {
        /// The node's id.
        node: NodeId,
        /// What the panic said.
        message: String,
    },
    /// Something else has panicked: a program, or a machine when it was dropped.
    #[error("the simulation panicked: {message}")]
    Crashed {
        /// What the panic said.
        message: String,
    },
    /// The run has failed without a fault, or otherwise than its faults explain.
    #[error("the run fails without a reason: {error}")]
    Unexplained {
        /// The error that the run ended with.
        error: Box<RunError>,
    },
    /// A fault has had no consequences.
    #[error("the run succeeds in spite of: {what}")]
    Swallowed {
        /// The fault.
        what: String,
    },
    /// Nodes have ended with different errors.
    #[error("{node} ends with {found:?}, but N0 with {first:?}")]
    Disagreement {
        /// One of them.
        node: NodeId,
        /// Its error.
        found: Box<Option<RunError>>,
        /// That of the first node.
        first: Box<Option<RunError>>,
    },
    /// A payload was posted on one side only.
    #[error("{what} was posted by one side only")]
    Unmatched {
        /// Sender, receiver and message.
        what: String,
    },
    /// A run that failed did not end in time.
    #[error("the run ended {took:?} after its failure, and {most:?} are enough")]
    Late {
        /// Simulated time from the failure to the end.
        took: std::time::Duration,
        /// What it should take at most.
        most: std::time::Duration,
    },
    /// The run does not end.
    #[error("still busy after {events} events")]
    Endless {
        /// Events so far.
        events: u64,
    },
}

/// A node that is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The node's id.
    pub node: NodeId,
    /// How far it has come.
    pub phase: Phase,
    /// What its program waits for, if it has not ended.
    pub program: Option<String>,
    /// What has not completed.
    pub waiting: Vec<Waiting>,
    /// What its watchdog said of that, when the time had come.
    pub stall: Option<Stall>,
}

/// So many waiting instructions of a node are printed.
const MOST: usize = 12;

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, phase, program, waiting, .. } = self;
        write!(f, "{node} is {phase:?}")?;
        if let Some(program) = program {
            write!(f, ", its program {program}")?;
        }
        for waiting in waiting.iter().take(MOST) {
            write!(f, "\n    {waiting} since {}", waiting.since)?;
        }
        match waiting.len().saturating_sub(MOST) {
            0 => Ok(()),
            more => write!(f, "\n    and {more} more"),
        }
    }
}
