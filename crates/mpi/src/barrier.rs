//! Barriers, which also find out whether all nodes are in the same one: a single
//! reduction that nobody can complete before everybody has joined.
//!
//! Each node gives one word, `epoch · nodes + node`, and its complement. The
//! lowest word of all names a node in the earliest epoch, the lowest complement
//! one in the latest.
#![allow(unsafe_code)]

use celerity_cdag::NodeId;
use celerity_executor::{CommEvent, CommunicationError};
use celerity_tdag::TaskId;
use mpi::ffi::MPI_Request;

use crate::error::MpiError;
use crate::raw::Comm;

/// A node's place in barriers, one at a time.
pub(crate) struct Barrier {
    node: u64,
    nodes: u64,
    /// Own words, then the lowest ones. MPI's while a barrier is under way.
    words: Vec<u64>,
    entered: u64,
}

impl Barrier {
    pub(crate) fn new(node: NodeId, nodes: usize) -> Self {
        Self { node: node.index(), nodes: nodes as u64, words: vec![0; 4], entered: 0 }
    }

    /// Barriers entered so far.
    pub(crate) fn entered(&self) -> u64 {
        self.entered
    }

    /// Joins the barrier of an epoch.
    pub(crate) fn enter(&mut self, epoch: TaskId, comm: Comm) -> Result<MPI_Request, MpiError> {
        let own = encode(epoch, self.node, self.nodes);
        self.words[..2].copy_from_slice(&own);
        self.entered += 1;
        let base = self.words.as_mut_ptr();
        // SAFETY: an end is in one barrier at a time, so nobody touches the words
        // before the request has completed.
        unsafe { comm.start_lowest(base, base.wrapping_add(2), 2) }
    }

    /// What the barrier was, once its request has completed.
    pub(crate) fn reached(&self) -> CommEvent {
        let [earliest, latest] = [self.words[2], !self.words[3]];
        let [(epoch, node), (other_epoch, other)] =
            [earliest, latest].map(|word| decode(word, self.nodes));
        match epoch == other_epoch {
            true => CommEvent::BarrierReached,
            false => {
                CommEvent::Failed(CommunicationError::Diverged { node, epoch, other, other_epoch })
            }
        }
    }
}

fn encode(epoch: TaskId, node: u64, nodes: u64) -> [u64; 2] {
    let word = epoch.index() * nodes + node;
    [word, !word]
}

fn decode(word: u64, nodes: u64) -> (TaskId, NodeId) {
    (TaskId::from_index(word / nodes), NodeId::from_index(word % nodes))
}
