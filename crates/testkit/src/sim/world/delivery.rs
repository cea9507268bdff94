//! What moves in the network, step by step. Who sends it and how long it takes is not known here.

use celerity_cdag::{NodeId, TransferId};
use celerity_executor::CommEvent;

use super::memory::Staged;

/// What is on its way in the network.
pub(in crate::sim) enum Delivery {
    /// Something that an end is going to be told.
    Notice(NodeId, CommEvent),
    /// A part of a payload leaves the sender's memory.
    Read(u64, usize),
    /// A part of a payload gets to the receiver's memory.
    Write(u64, usize, Staged),
    /// A box of a collective operation leaves the memory of its provider.
    ReadHop(TransferId, usize),
    /// A box of a collective operation gets to a node that takes it.
    WriteHop(TransferId, usize, Staged),
}
