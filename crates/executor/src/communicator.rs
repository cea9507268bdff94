//! How nodes of a cluster talk: pilots, payloads, barriers, aborts. The trait
//! and its contract; knows nothing of graphs or instructions.
#![allow(unsafe_code)]

use celerity_cdag::{NodeId, TransferId};
use celerity_idag::{MemoryId, MessageId, Pilot};
use celerity_regions::Box3;
use celerity_tdag::TaskId;

use crate::copy::ElementArray;
use crate::error::{CommunicationError, RunError};

mod boxed;
mod exchange;
mod local;

pub(crate) use exchange::dense_boxes;
pub use exchange::{CollectiveExchange, MemoryPart, find_in, pack, unpack};
pub use local::{LocalCommunicator, local_cluster};

/// One node's end of the network. Poll-driven: nothing blocks, and whatever
/// happens is told by [`poll`](Self::poll).
///
/// Contract, for the implementation; `celerity_testkit::conformance` tests it:
/// * a pilot arrives once, at its receiver, however early it is sent; pilots may
///   overtake each other;
/// * a payload is named by its sender and its message id, and announced by a
///   pilot before it is sent. Once both sides have posted it, its elements move
///   from the sender's memory to the receiver's, and then both sides are told.
///   An end may be told earlier that its payload is sent, when its memory is
///   free again. Sides may post in any order, and payloads may complete in any
///   order;
/// * a barrier is reached on every node once all nodes have entered it; if they
///   are in barriers of different epochs by then, all get
///   [`CommunicationError::Diverged`] instead;
/// * a [collective operation](Self::exchange) is known by its transfer, and has members: all nodes, or
///   some. Each node comes to those that it is a member of, in ascending order of their tasks. Once all
///   members have come to one, its elements move, and each of them is told when its part is done; it may
///   be told before others are. Operations overlap each other, payloads and barriers, and complete in any
///   order. If nodes come to different ones of which all nodes are members, or one is in a barrier that
///   others do not come to before they have come to such an operation which it has not, all get
///   [`CommunicationError::Apart`] instead, and nothing moves. So they do if members of one operation
///   among some nodes have different parts in mind;
/// * after the first [`abort`](Self::abort), every node, also the caller, gets
///   one [`CommEvent::Aborted`], all with the same error; no payload, barrier or collective
///   operation completes that was not complete by then, and every node becomes
///   [quiet](Self::is_quiet) in bounded time;
/// * dropping an end aborts what the end still has open and waits until its
///   memory is out of use. It may wait for the other ends to be dropped;
/// * whoever must poll is woken, or [told](Self::needs_polling) to keep polling.
///
/// # Safety
/// The node gives memory back by what an end tells it. So elements that were posted are not
/// touched any more when their payload has been reported as sent or received, nor when an end
/// [is quiet](Self::is_quiet) after an abort; of what was received, all elements are there, and
/// no others were written. The same holds for what a collective operation reads and writes.
pub unsafe trait Communicator: Send {
    /// The node that this end of the network belongs to.
    fn node(&self) -> NodeId;

    /// Nodes in the cluster.
    fn nodes(&self) -> usize;

    /// Announces a payload to its receiver, and tells it how many horizons this node has
    /// reached: the receiver's credit, if the network [sends ahead](Self::sends_ahead).
    fn send_pilot(&mut self, pilot: &Pilot, reached: u64);

    /// Tells another node something, in at most [`NOTE_LEN`] bytes. Like pilots,
    /// notes arrive once, and may overtake each other.
    fn send_note(&mut self, to: NodeId, note: &[u8]);

    /// Offers a payload that has been announced.
    ///
    /// # Safety
    /// Until the payload is [sent](CommEvent::Sent), or the run has been
    /// aborted and this end is quiet: the source stays allocated and nobody
    /// writes the elements.
    unsafe fn send(&mut self, to: NodeId, payload: WirePayload);

    /// Accepts a payload.
    ///
    /// # Safety
    /// Until the payload is [received](CommEvent::Received), or the run has
    /// been aborted and this end is quiet: the target stays allocated and
    /// nobody else touches the elements.
    unsafe fn receive(&mut self, from: NodeId, payload: WirePayload);

    /// Brings the boxes of a payload, which has been received in memory of the host, to memory of devices: each from where it lies
    /// there, dense. The payload is [received](CommEvent::Received) once more when all of them are in their places.
    ///
    /// # Safety
    /// As for [`receive`](Self::receive), of all boxes; until then, nobody writes what they are copied from.
    ///
    /// # Panics
    /// If the network does not reach the memory of devices: then nothing is received there.
    unsafe fn scatter(&mut self, from: NodeId, parts: &[(ElementArray, WirePayload)]) {
        unreachable!("{} has nothing to bring {} boxes of {from} with", self.node(), parts.len())
    }

    /// Takes part in the next collective operation that this node is a member of. All members take part,
    /// also where they neither give nor get anything; they need not wait for one to begin the next.
    ///
    /// # Safety
    /// Until it is [over](CommEvent::Exchanged), or the run has been aborted and this end is quiet:
    /// sources and targets stay allocated, nobody writes what is to be read, and nobody else touches
    /// what is to be written.
    unsafe fn exchange(&mut self, exchange: CollectiveExchange);

    /// The members, in ascending order, that are known not to have come to an operation which this one
    /// has come to. Empty if all have, or if the network does not know.
    fn absent(&self, transfer: TransferId) -> Vec<NodeId> {
        let _ = transfer;
        Vec::new()
    }

    /// Enters the barrier of an epoch. An end is in one barrier at a time.
    fn enter_barrier(&mut self, epoch: TaskId);

    /// Stops the run on all nodes.
    fn abort(&mut self, error: &RunError);

    /// What has happened, in order; `None` if nothing else has. An end may look around
    /// only when it is asked for the first time, or after a `None`.
    fn poll(&mut self) -> Option<CommEvent>;

    /// Whether something that this end has begun may end without anybody being
    /// woken, so that only polling finds out: a payload, barrier or collective is under way,
    /// or an abort is being carried out. Never so where every event wakes.
    ///
    /// Pilots come unasked, so waiting for one does not count. On a network
    /// that does not wake, whoever [expects one](crate::Arbiter::expects_pilots)
    /// polls as if this were true; everybody else polls every few milliseconds,
    /// to notice what peers want.
    fn needs_polling(&self) -> bool {
        false
    }

    /// Bytes of payloads that are under way, as far as this end knows: how long what it
    /// [waits for](Self::needs_polling) may take.
    fn bytes_under_way(&self) -> u64 {
        0
    }

    /// Whether every event wakes, so that an end which is waited for needs no
    /// polling at all.
    fn wakes(&self) -> bool {
        true
    }

    /// Whether a payload may count as sent before its receiver has asked for it, as where
    /// the network keeps a copy of what is small. Then completed sends say nothing of how
    /// far a receiver is behind, and nodes give each other credit: they say how many
    /// horizons they have reached. The same on all nodes.
    fn sends_ahead(&self) -> bool {
        false
    }

    /// Whether no memory of this end is in use. Meaningful after an abort.
    fn is_quiet(&self) -> bool;
}

/// The longest note that a communicator takes, in bytes.
pub const NOTE_LEN: usize = 1024;

/// One side's view of a payload: a box of elements in its own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WirePayload {
    /// The sender's name for it.
    pub message: MessageId,
    /// Which memory of this side's node the elements are in: `M1`, unless the network reaches those of
    /// devices.
    pub at: MemoryId,
    /// Where they are there.
    pub memory: ElementArray,
    /// The elements; the same on both sides.
    pub elements: Box3,
    /// Bytes per element; the same on both sides.
    pub elem_size: u64,
}

/// What a communicator reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommEvent {
    /// A pilot has arrived.
    Pilot {
        /// The node that sends.
        from: NodeId,
        /// What it announces.
        pilot: Pilot,
        /// How many horizons the sender had reached.
        reached: u64,
    },
    /// A note has arrived.
    Note {
        /// The node that sends.
        from: NodeId,
        /// What the sender says, as bytes that this node makes sense of.
        note: Vec<u8>,
    },
    /// A payload of this node has left its memory.
    Sent {
        /// This node's name for it.
        message: MessageId,
    },
    /// A payload is complete in this node's memory.
    Received {
        /// The node that sends.
        from: NodeId,
        /// The sender's name for it.
        message: MessageId,
    },
    /// This node's part in a collective operation is done.
    Exchanged {
        /// Which operation.
        transfer: TransferId,
    },
    /// All nodes have entered the barrier.
    BarrierReached,
    /// The run has been aborted, by this node or another.
    Aborted(RunError),
    /// This end cannot go on.
    Failed(CommunicationError),
}
