//! Collective operations between the memories of devices: what a node is asked for that has them, and on
//! which terms all nodes use them. Decides neither when an operation begins nor who takes part.
#![allow(unsafe_code)]

use celerity_cdag::NodeId;

use super::{Copied, CopyId, WindowError};
use crate::communicator::CollectiveExchange;

/// For which collective operations devices are better than the host: what node 0 says goes for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectiveTerms {
    /// Bytes that an operation moves, all elements counted once. Those that move less go through host
    /// memory.
    pub least: u64,
    /// Bytes of a row, as far as it lies in one piece. What has shorter ones goes through host memory.
    pub least_row: u64,
}

/// A node's part in collective operations between the first devices of all nodes.
///
/// Before a run, node 0 [invites](Self::invite) all others, and all of them [join](Self::join). Then
/// operations are begun by calls that do not wait. They take place one after the other, in the order of
/// these calls, and not before what their members have begun earlier. So all nodes have to begin those that
/// they take part in in one order, and nothing that a device waits for may wait for a later operation: then
/// nobody waits in a circle.
///
/// # Safety
/// The node gives memory back by what is [told](Self::poll): an operation that has ended touches no memory
/// any more, and one that has succeeded has brought all elements that arrive, and changed no others.
pub unsafe trait DeviceCollectives: Send {
    /// On which terms operations are better than those of the network.
    fn terms(&self) -> CollectiveTerms;

    /// What other nodes need to join: at most [`MOST_OF_JOINING_CARD`] bytes. Asked of node 0 alone, once.
    ///
    /// # Errors
    /// [`WindowError`] if this process has no such operations.
    fn invite(&mut self) -> Result<Vec<u8>, WindowError>;

    /// Begins to join those that have the same card, as `node` of `nodes`.
    ///
    /// # Errors
    /// [`WindowError`] if this process cannot.
    fn join(&mut self, card: &[u8], node: NodeId, nodes: usize) -> Result<(), WindowError>;

    /// Whether all have joined, once that is known here: the calls that find out do not wait.
    fn joined(&mut self) -> Option<Result<(), WindowError>>;

    /// Begins this node's part in an operation. Its memory is that of the node's first device.
    ///
    /// # Safety
    /// Until the operation has ended, sources and targets stay allocated, nobody writes what is to be
    /// read, and nobody else touches what is to be written.
    unsafe fn begin(&mut self, id: CopyId, exchange: &CollectiveExchange);

    /// An operation that has ended, if there is another one.
    fn poll(&mut self) -> Option<Copied>;

    /// Lets all operations end in bounded time, also those that others do not come to: they fail. No other
    /// begins.
    fn abort(&mut self);
}

/// The longest card by which nodes join, in bytes.
pub const MOST_OF_JOINING_CARD: usize = 256;
