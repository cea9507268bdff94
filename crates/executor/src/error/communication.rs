//! Why nodes cannot talk to each other any more. Knows no network.

use std::fmt;

use celerity_cdag::NodeId;
use celerity_idag::MessageId;
use celerity_regions::Box3;
use celerity_tdag::{Count, TaskId};

/// Why a communicator cannot go on. `Debug` writes the text, as `main` prints it.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum CommunicationError {
    /// Both sides of a payload describe it differently.
    #[error(
        "{message} from {from} to {to} carries {sent} of {sent_size} bytes each, but \
         {received} of {received_size} bytes each are expected"
    )]
    Mismatch {
        /// The node that sends.
        from: NodeId,
        /// The node that receives, and expects something else.
        to: NodeId,
        /// The sender's name for it.
        message: MessageId,
        /// The elements that the sender sends.
        sent: Box3,
        /// The sender's bytes per element.
        sent_size: u64,
        /// The elements that the receiver expects.
        received: Box3,
        /// The receiver's bytes per element.
        received_size: u64,
    },
    /// A message id was used for two payloads, on the side named.
    #[error("{message} from {from} to {to} is used for two payloads")]
    Reused {
        /// The node that sends.
        from: NodeId,
        /// The node that receives.
        to: NodeId,
        /// The sender's name for it.
        message: MessageId,
    },
    /// Nodes wait for each other in different places of their programs.
    #[error(
        "{node} waits in epoch {epoch}, but {other} in epoch {other_epoch}; all nodes must \
         submit the same tasks"
    )]
    Diverged {
        /// One of the nodes.
        node: NodeId,
        /// The epoch that this node waits in.
        epoch: TaskId,
        /// A node that differs from it.
        other: NodeId,
        /// Where that one waits.
        other_epoch: TaskId,
    },
    /// Nodes that have to do something together wait in different tasks, or disagree what it is: a
    /// collective operation, which must be the same on all nodes.
    #[error("{}", apart(*.node, *.task, *.other, *.other_task))]
    Apart {
        /// One of the nodes.
        node: NodeId,
        /// The task that this node waits in.
        task: TaskId,
        /// A node that differs from it.
        other: NodeId,
        /// Where that one waits.
        other_task: TaskId,
    },
    /// A node that is not in the cluster.
    #[error("{node} is not in the cluster, which has {}", Count(*nodes, "node"))]
    NoSuchNode {
        /// The node that was named, which is not in the cluster.
        node: NodeId,
        /// Nodes in the cluster.
        nodes: usize,
    },
    /// A payload is not as long as its receiver expects.
    #[error(
        "{message} from {from} to {to} should bring {}, but brings {}",
        Count(*expected, "byte"),
        or_more(*.received)
    )]
    Length {
        /// The node that sends.
        from: NodeId,
        /// The node that receives.
        to: NodeId,
        /// The sender's name for it.
        message: MessageId,
        /// Bytes that the receiver expects.
        expected: u64,
        /// Bytes that came; `None` if more did than there was room for.
        received: Option<u64>,
    },
    /// A payload was offered without a pilot.
    #[error("{message} from {from} to {to} is sent without having been announced")]
    Unannounced {
        /// The node that sends.
        from: NodeId,
        /// The node that receives.
        to: NodeId,
        /// The sender's name for it.
        message: MessageId,
    },
    /// A message that means nothing.
    #[error("a message from {from} makes no sense: {what}")]
    Malformed {
        /// The sender, as far as the network knows.
        from: NodeId,
        /// What is wrong with it.
        what: String,
    },
    /// A node is gone.
    #[error("{node} has died: {sign}")]
    Died {
        /// The node that others count as gone.
        node: NodeId,
        /// How that was noticed.
        sign: String,
    },
    /// This node counts as gone, also if it has only been stopped for a while.
    #[error(
        "{by} has given {node} up: {sign}; if its process was stopped, let others wait longer for \
         a sign of life"
    )]
    GivenUp {
        /// The node that others count as gone.
        node: NodeId,
        /// Who does not count on it any more.
        by: NodeId,
        /// What it has noticed of the node.
        sign: String,
    },
    /// The network refused a call.
    #[error("the network failed: {what}")]
    Network {
        /// Which call, and what the network said.
        what: String,
    },
}

impl fmt::Debug for CommunicationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn apart(node: NodeId, task: TaskId, other: NodeId, other_task: TaskId) -> String {
    let advice = "all nodes must submit the same tasks";
    match task == other_task {
        true => format!("{node} and {other} disagree about what {task} exchanges; {advice}"),
        false => {
            format!("{node} waits for all nodes in {task}, but {other} in {other_task}; {advice}")
        }
    }
}

fn or_more(received: Option<u64>) -> String {
    received.map_or_else(|| "more".to_owned(), |bytes| bytes.to_string())
}
