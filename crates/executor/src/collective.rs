//! What the functions of a collective task say to each other while they run: barriers,
//! broadcasts, gathers, among all nodes of a run.
//!
//! Letters travel as [notes](crate::Communicator::send_note), carried by the nodes that run the
//! functions. So this works on any network, needs no thread support of it, and a run that fails
//! wakes whoever waits. It is made for what functions have to agree on, a few values or some
//! kilobytes: a letter is cut to pieces of a kilobyte. Data belongs in buffers.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use bytemuck::Pod;
use celerity_cdag::NodeId;
use celerity_tdag::{CollectiveGroup, Count, TaskId};

mod exchange;
mod letter;

pub(crate) use exchange::{Correspondence, Objection};
use letter::{Address, Kind};

/// The longest letter, in bytes.
const LONGEST: u32 = 1 << 30;

/// One node's end of the conversation of a collective task.
///
/// Who has something to tell does not wait until others have it: letters are kept in memory, on either side, until they have left and
/// been read. A node that is slow to collect what others tell in a loop has all of it waiting; a [`barrier`](Self::barrier) now and then bounds that.
///
/// All nodes call the same operations in the same order, each from one thread: that is what makes
/// them meet. Who does not is found out, as [`CollectiveError`] says. Of one group, one task runs
/// at a time; letters of different tasks are never confused.
pub struct GroupCommunicator {
    exchange: Arc<Correspondence>,
    node: NodeId,
    nodes: usize,
    group: CollectiveGroup,
    task: TaskId,
    /// Counts operations, and the rounds of those that have several.
    step: Cell<u32>,
}

/// What the nodes of a collective task do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CollectiveOperation {
    /// They wait for each other.
    Barrier,
    /// One tells all others something.
    Broadcast {
        /// The number of that node.
        root: usize,
        /// Bytes of what each node tells.
        size: usize,
    },
    /// All tell one something.
    Gather {
        /// The number of that node.
        root: usize,
        /// Bytes of what each node tells.
        size: usize,
    },
    /// All tell all others something.
    AllGather {
        /// Bytes of what each node tells.
        size: usize,
    },
}

/// Why an operation of a collective task has failed. The task should end with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CollectiveError {
    /// Something else has ended the run, which tells what.
    #[error("the run has ended while nodes of a collective task waited for each other")]
    RunEnded,
    /// Nodes do different things.
    #[error(
        "this node {here}, but {node} {there}; all nodes must call the same operations in the \
         same order"
    )]
    Mismatch {
        /// What this node does.
        here: CollectiveOperation,
        /// The node that does something else.
        node: NodeId,
        /// What that one does.
        there: CollectiveOperation,
    },
    /// A node does not come, since its function has returned.
    #[error(
        "this node {here}, but the task has ended on {node}; all nodes must call the same \
         operations in the same order"
    )]
    Left {
        /// The node that does not come.
        node: NodeId,
        /// What this node does.
        here: CollectiveOperation,
    },
    /// A node waits for this one, whose function has returned.
    #[error(
        "{node} {there}, but the task has ended on this node; all nodes must call the same \
         operations in the same order"
    )]
    Unanswered {
        /// The node that waits.
        node: NodeId,
        /// The operation that it waits in.
        there: CollectiveOperation,
    },
    /// A root that there is not.
    #[error("{root} is no root: the run has {}, counted from 0", Count(*nodes, "node"))]
    NoSuchRoot {
        /// What was asked for.
        root: usize,
        /// Nodes in the run.
        nodes: usize,
    },
    /// Another number of values than the root tells.
    #[error(
        "{root} broadcasts {}, but this node expects {}",
        Count(*sent, "byte"),
        Count(*expected, "byte")
    )]
    Length {
        /// The node that broadcasts.
        root: NodeId,
        /// Bytes that it tells.
        sent: usize,
        /// Bytes for which there is room here.
        expected: usize,
    },
    /// Values that take more than 1 GiB.
    #[error("{bytes} bytes are too many for one operation; put large data into a buffer")]
    TooLong {
        /// Bytes of the values of one operation.
        bytes: usize,
    },
}

impl GroupCommunicator {
    pub(crate) fn new(
        exchange: Arc<Correspondence>,
        (node, nodes): (NodeId, usize),
        group: CollectiveGroup,
        task: TaskId,
    ) -> Self {
        Self { exchange, node, nodes, group, task, step: Cell::new(0) }
    }

    /// The number of this node, counted from 0.
    #[must_use]
    pub fn node(&self) -> usize {
        self.node.slot()
    }

    /// Nodes of the run, all of which are in the task.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The group that the task is in.
    #[must_use]
    pub fn group(&self) -> CollectiveGroup {
        self.group
    }

    /// Waits until all nodes have called this. ⌈log₂ nodes⌉ messages from each node, one after
    /// another (the dissemination barrier of Hensgen, Finkel and Manber).
    ///
    /// # Errors
    /// [`CollectiveError`].
    pub fn barrier(&self) -> Result<(), CollectiveError> {
        let mut distance = 1;
        while distance < self.nodes {
            let address = self.next(CollectiveOperation::Barrier);
            let (to, from) = (self.node() + distance, self.node() + self.nodes - distance);
            self.exchange.send(node(to % self.nodes), address, &[]);
            drop(self.exchange.receive(node(from % self.nodes), address)?);
            distance *= 2;
        }
        Ok(())
    }

    /// Makes `values` those that `root` has. One message from the root to each other node.
    ///
    /// # Errors
    /// [`CollectiveError`]; also if the numbers of values differ.
    pub fn broadcast<T: Pod>(&self, root: usize, values: &mut [T]) -> Result<(), CollectiveError> {
        self.check(root, size_of_val(values))?;
        let address = self.next(CollectiveOperation::Broadcast { root, size: size_of::<T>() });
        if self.node() == root {
            let others = (0..self.nodes).filter(|&to| to != root);
            let bytes = bytemuck::cast_slice(values);
            others.for_each(|to| self.exchange.send(node(to), address, bytes));
            return Ok(());
        }
        let bytes = self.exchange.receive(node(root), address)?;
        let own: &mut [u8] = bytemuck::cast_slice_mut(values);
        if bytes.len() != own.len() {
            let (root, sent, expected) = (node(root), bytes.len(), own.len());
            return Err(CollectiveError::Length { root, sent, expected });
        }
        own.copy_from_slice(&bytes);
        Ok(())
    }

    /// The values of all nodes, by node, on `root`; `None` on others. Nodes may have different
    /// numbers of them. One message from each other node to the root.
    ///
    /// # Errors
    /// [`CollectiveError`].
    pub fn gather<T: Pod>(
        &self,
        root: usize,
        values: &[T],
    ) -> Result<Option<Vec<Vec<T>>>, CollectiveError> {
        self.check(root, size_of_val(values))?;
        let address = self.next(CollectiveOperation::Gather { root, size: size_of::<T>() });
        if self.node() != root {
            self.exchange.send(node(root), address, bytemuck::cast_slice(values));
            return Ok(None);
        }
        self.collect(address, values).map(Some)
    }

    /// The values of all nodes, by node, on every node. One message from each node to each other, each with a copy of the values: in memory, as
    /// many bytes as all nodes have and as many again as this one tells, for each other node, until they have left.
    ///
    /// # Errors
    /// [`CollectiveError`].
    pub fn all_gather<T: Pod>(&self, values: &[T]) -> Result<Vec<Vec<T>>, CollectiveError> {
        self.check(0, size_of_val(values))?;
        let address = self.next(CollectiveOperation::AllGather { size: size_of::<T>() });
        let others = (0..self.nodes).filter(|&to| to != self.node());
        let bytes = bytemuck::cast_slice(values);
        others.for_each(|to| self.exchange.send(node(to), address, bytes));
        self.collect(address, values)
    }

    /// What all nodes have sent to this one.
    fn collect<T: Pod>(&self, address: Address, own: &[T]) -> Result<Vec<Vec<T>>, CollectiveError> {
        let of = |from: usize| {
            if from == self.node() {
                return Ok(own.to_vec());
            }
            let bytes = self.exchange.receive(node(from), address)?;
            let values = bytes.len().checked_div(size_of::<T>()).unwrap_or(0);
            let mut values = vec![T::zeroed(); values];
            bytemuck::cast_slice_mut(&mut values).copy_from_slice(&bytes);
            Ok(values)
        };
        (0..self.nodes).map(of).collect()
    }

    fn check(&self, root: usize, bytes: usize) -> Result<(), CollectiveError> {
        if root >= self.nodes {
            return Err(CollectiveError::NoSuchRoot { root, nodes: self.nodes });
        }
        match bytes as u64 > u64::from(LONGEST) {
            true => Err(CollectiveError::TooLong { bytes }),
            false => Ok(()),
        }
    }

    fn next(&self, operation: CollectiveOperation) -> Address {
        let step = self.step.get();
        self.step.set(step.wrapping_add(1));
        let (group, task, operation) = (self.group.number(), self.task, operation.code());
        let address = Address { kind: Kind::Part, group, task, step, operation };
        self.exchange.begins(address);
        address
    }
}

impl fmt::Debug for GroupCommunicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "GroupCommunicator({} of {}, {} in {})",
            self.node, self.nodes, self.task, self.group
        )
    }
}

impl CollectiveOperation {
    /// Eight bits for the kind, 24 for the root, 32 for the size. Two that differ in more bits
    /// than these count as the same, which no size of values does that exist.
    fn code(self) -> u64 {
        let (kind, root, size) = match self {
            Self::Barrier => (0, 0, 0),
            Self::Broadcast { root, size } => (1, root, size),
            Self::Gather { root, size } => (2, root, size),
            Self::AllGather { size } => (3, 0, size),
        };
        kind | (root as u64 & 0xff_ffff) << 8 | (size as u64) << 32
    }

    fn of(code: u64) -> Self {
        let (root, size) = ((code >> 8 & 0xff_ffff) as usize, (code >> 32) as usize);
        match code & 0xff {
            0 => Self::Barrier,
            1 => Self::Broadcast { root, size },
            2 => Self::Gather { root, size },
            _ => Self::AllGather { size },
        }
    }
}

impl fmt::Display for CollectiveOperation {
    /// As in "N1 broadcasts values of 8 bytes from N0".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |size: &usize| Count(*size, "byte").to_string();
        match self {
            Self::Barrier => f.write_str("is in a barrier"),
            Self::Broadcast { root, size } => {
                write!(f, "is in a broadcast from {} of values of {}", node(*root), of(size))
            }
            Self::Gather { root, size } => {
                write!(f, "is in a gather to {} of values of {}", node(*root), of(size))
            }
            Self::AllGather { size } => {
                write!(f, "is in a gather to all nodes of values of {}", of(size))
            }
        }
    }
}

fn node(index: usize) -> NodeId {
    NodeId::from_index(index as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_survive_their_codes() {
        for operation in [
            CollectiveOperation::Barrier,
            CollectiveOperation::Broadcast { root: 3, size: 8 },
            CollectiveOperation::Gather { root: 70_000, size: 1 << 20 },
            CollectiveOperation::AllGather { size: 1 },
        ] {
            assert_eq!(CollectiveOperation::of(operation.code()), operation);
        }
    }
}
