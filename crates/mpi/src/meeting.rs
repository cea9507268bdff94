//! Coming together: a reduction that nobody can complete before everybody has joined, and which finds
//! out whether all nodes, or all members of an operation, have come for the same thing. What a barrier is, and what precedes each
//! collective operation, so that MPI never sees different ones at the same time.
//!
//! Each node gives two words and their complements: `purpose · nodes + node`, where the purpose is a
//! task and whether it is waited for as an epoch, and a hash of what is to be done, with the node,
//! too. The lowest word of all names a node in the earliest task, the lowest complement one in the
//! latest. A fifth word is one if the node can do its part in place: the lowest says whether all can.
#![allow(unsafe_code)]

use celerity_cdag::NodeId;
use celerity_executor::{CollectiveExchange, CommunicationError};
use celerity_tdag::TaskId;
use mpi::ffi::MPI_Request;

use crate::error::MpiError;
use crate::matching::PeerMistake;
use crate::raw::Comm;

/// Words that each node gives.
const WORDS: usize = 5;

/// What nodes come together for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Purpose {
    task: TaskId,
    is_epoch: bool,
    /// The same on nodes that are to do the same.
    hash: u64,
    /// May differ.
    in_place: bool,
}

/// A node's place in one reduction.
pub(crate) struct Agreement {
    place: (u64, u64),
    /// Own words, then the lowest ones. MPI's while it is under way.
    words: Box<[u64; 2 * WORDS]>,
}

impl Purpose {
    /// The barrier of an epoch.
    pub(crate) fn barrier(epoch: TaskId) -> Self {
        Self { task: epoch, is_epoch: true, hash: 0, in_place: false }
    }

    /// A collective operation, and whether this node's part in it can be in place.
    pub(crate) fn collective(exchange: &CollectiveExchange, in_place: bool) -> Self {
        let task = exchange.transfer.consumer;
        Self { task, is_epoch: false, hash: exchange.digest(), in_place }
    }

    /// Of the task that it is for.
    pub(crate) fn task(self) -> TaskId {
        self.task
    }

    /// The same on nodes that are to do the same.
    pub(crate) fn hash(self) -> u64 {
        self.hash
    }

    /// What a node gives that only lets the others go on: the run is over.
    pub(crate) fn none() -> Self {
        Self::barrier(TaskId::from_index(0))
    }

    fn encode(self, (node, nodes): (u64, u64)) -> [u64; WORDS] {
        let purpose = self.task.index() * 2 + u64::from(self.is_epoch);
        let task = purpose * nodes + node;
        let hash = self.hash % (u64::MAX / nodes) * nodes + node;
        [task, !task, hash, !hash, u64::from(self.in_place)]
    }
}

impl Agreement {
    /// Joins; the result is there when the request has completed.
    pub(crate) fn join(
        (node, nodes): (NodeId, usize),
        purpose: Purpose,
        comm: Comm,
    ) -> Result<(Self, MPI_Request), MpiError> {
        let place = (node.index(), nodes as u64);
        let mut words = Box::new([0; 2 * WORDS]);
        words[..WORDS].copy_from_slice(&purpose.encode(place));
        let base = words.as_mut_ptr();
        // SAFETY: nobody touches the words before the request has completed, and they stay where
        // they are, or for ever: a network that has not been left in good order is not dropped.
        let request = unsafe { comm.start_lowest(base, base.wrapping_add(WORDS), WORDS)? };
        Ok((Self { place, words }, request))
    }

    /// Whether all nodes can do their part in place, once its request has completed.
    pub(crate) fn is_in_place_for_all(&self) -> bool {
        self.words[2 * WORDS - 1] == 1
    }

    /// What has come of it, once its request has completed.
    ///
    /// # Errors
    /// If nodes have come for different things.
    pub(crate) fn outcome(&self) -> Result<(), PeerMistake> {
        let nodes = self.place.1;
        let of = |word: u64| (word / nodes, NodeId::from_index(word % nodes));
        let [first, last, low, high] = [0, 1, 2, 3].map(|at| self.words[WORDS + at]);
        let [(purpose, node), (other_purpose, other)] = [first, !last].map(of);
        let [task, other_task] = [purpose, other_purpose].map(|word| TaskId::from_index(word / 2));
        if purpose != other_purpose {
            let error = match purpose % 2 == 1 && other_purpose % 2 == 1 {
                true => {
                    let (epoch, other_epoch) = (task, other_task);
                    CommunicationError::Diverged { node, epoch, other, other_epoch }
                }
                false => CommunicationError::Apart { node, task, other, other_task },
            };
            return Err(error.into());
        }
        let [(hash, node), (other_hash, other)] = [low, !high].map(of);
        match hash == other_hash {
            true => Ok(()),
            false => Err(CommunicationError::Apart { node, task, other, other_task }.into()),
        }
    }
}
