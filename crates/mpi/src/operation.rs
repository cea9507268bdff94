//! What requests of MPI are for, as plain data: kinds of small messages, and what is counted of
//! them. Knows no communicator.

use std::ffi::c_int;

use celerity_executor::NOTE_LEN;
use celerity_idag::wire;

use crate::raw;

/// The kinds of small messages. Their positions are their tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Mail {
    Pilot,
    Note,
    /// How many of the receiver's payloads have arrived.
    Arrived,
    /// The sender has come to an operation among some nodes that have no communicator yet.
    Came,
}

impl Mail {
    pub(crate) const ALL: [Self; 4] = [Self::Pilot, Self::Note, Self::Arrived, Self::Came];

    pub(crate) fn tag(self) -> c_int {
        raw::count(self as usize)
    }

    /// Bytes that there is room for, some more than a pilot has, so that wrong
    /// lengths are seen as such; and receives that are posted ahead: a burst that
    /// is longer waits in MPI's own buffers.
    pub(crate) fn room(self) -> (usize, usize) {
        match self {
            Self::Pilot => (LONGEST_PILOT + 32, 64),
            Self::Note => (NOTE_LEN, 4),
            Self::Arrived => (16, 2),
            Self::Came => (CAME_LEN + 8, 2),
        }
    }
}

/// A pilot, and how many horizons its sender has reached: a little-endian word.
const LONGEST_PILOT: usize = wire::LONGEST_PILOT + 8;

/// A task, and a hash of the operation and of its members: two little-endian words.
pub(crate) const CAME_LEN: usize = 16;

/// What an open request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// The next message of a mailbox.
    Mail(Mail),
    /// A small message in a slot of the outbox.
    Posted(usize),
    /// A message of a payload, in a slot.
    Sent(usize),
    /// As above.
    Received(usize),
    /// All nodes are in the barrier.
    Barrier,
    /// All members have come to this collective operation of a membership.
    Met(usize, u64),
    /// A part of a collective operation of a membership, in a slot.
    Exchanged(usize, usize),
    /// A meeting that this node has only let pass, when leaving.
    Passed,
    /// What peers have sent, exchanged when leaving.
    Counts,
    /// How far the other members of a membership have come, when leaving.
    Standing(usize),
    /// A message that nobody wants any more.
    Stray,
}

impl Operation {
    /// Whether its end tells nothing of other nodes.
    pub(crate) fn is_outgoing(self) -> bool {
        matches!(self, Self::Posted(_) | Self::Sent(_))
    }

    pub(crate) fn is_payload(self) -> bool {
        matches!(self, Self::Received(_))
    }
}

/// Messages per peer, to know when all have arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) mails: u64,
    pub(crate) pieces: u64,
}
