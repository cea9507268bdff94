//! Pilots on the wire: 96 bytes each, plain old data. Knows neither a network nor how a message is
//! framed: bytes go in and come out.
//!
//! | bytes | content |
//! | --- | --- |
//! | 0..8 | [`MAGIC`]: `CELPILT` and the version of this layout |
//! | 8..16 | the sender, a node |
//! | 16..24 | the receiver, a node; the highest bit is set if the elements leave from a device's memory |
//! | 24..32 | the message |
//! | 32..40 | the transfer's consumer, a task |
//! | 40..48 | the transfer's buffer |
//! | 48..72 | the box's minimum: three coordinates |
//! | 72..96 | the box's maximum: three coordinates |
//!
//! Each number is one little-endian word of 64 bits. A pilot is two cache lines less a half, and is
//! coded by twelve moves.
//!
//! ```
//! use celerity_cdag::{NodeId, TransferId};
//! use celerity_idag::{MessageId, Pilot, wire};
//! use celerity_regions::Box3;
//! use celerity_tdag::{BufferId, TaskId};
//! let (from, to) = (NodeId::from_index(0), NodeId::from_index(1));
//! let transfer =
//!     TransferId { consumer: TaskId::from_index(3), buffer: BufferId::from_index(0) };
//! let elements = Box3::from_range([4, 8]);
//! let message = MessageId::from_index(7);
//! let pilot = Pilot { to, message, transfer, elements, from_device: false };
//! let bytes = wire::encode(&pilot, from);
//! assert_eq!(wire::decode(&bytes, 2, to), Ok((from, pilot)));
//! assert!(wire::decode(&bytes[1..], 2, to).is_err());
//! ```

use celerity_cdag::{NodeId, TransferId};
use celerity_regions::{Box3, Coord3};
use celerity_tdag::{BufferId, TaskId};

use crate::instruction::{MessageId, Pilot};

/// The length of a pilot in bytes.
pub const PILOT_LEN: usize = 8 * WORDS;

/// The version of the layout.
pub const PILOT_VERSION: u8 = 2;

/// The first word of every pilot; its last byte is the version.
pub const MAGIC: u64 =
    u64::from_le_bytes([b'C', b'E', b'L', b'P', b'I', b'L', b'T', PILOT_VERSION]);

const WORDS: usize = 12;

/// Set in the receiver's word if the elements leave from a device's memory.
const FROM_DEVICE: u64 = 1 << 63;

/// Bytes that are not a pilot for this node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PilotError {
    /// Not as many bytes as a pilot has.
    #[error("a pilot has {PILOT_LEN} bytes, but {found} came; the message was cut or mixed up")]
    Length {
        /// How many bytes came.
        found: usize,
    },
    /// Not a pilot at all.
    #[error("a pilot begins with {MAGIC:016x}, but {found:016x} came; who sends on this channel?")]
    Magic {
        /// The first eight bytes that came.
        found: u64,
    },
    /// A pilot of another version of Celerity.
    #[error(
        "a pilot of layout {found} came, but this node speaks layout {PILOT_VERSION}; run the \
         same version of Celerity on all nodes"
    )]
    Version {
        /// The sender's layout.
        found: u8,
    },
    /// The sender is not one of the cluster's nodes, or is this node.
    #[error("a pilot for {local} claims to come from {from}; the cluster has {nodes} nodes")]
    Sender {
        /// Who claims to have sent it.
        from: NodeId,
        /// The node that has received the pilot.
        local: NodeId,
        /// Nodes in the cluster.
        nodes: usize,
    },
    /// The pilot is for another node.
    #[error("a pilot from {from} for {to} came to {local}")]
    Receiver {
        /// The node that has sent the pilot.
        from: NodeId,
        /// Whom it is for.
        to: NodeId,
        /// The node that has received the pilot.
        local: NodeId,
    },
    /// The elements are no box, or none at all.
    #[error("{message} from {from} announces elements from {min:?} to {max:?}, which is no box")]
    Elements {
        /// The node that has sent the pilot.
        from: NodeId,
        /// The sender's number of the message.
        message: MessageId,
        /// The least indices that the pilot claims.
        min: Coord3,
        /// The indices behind the greatest ones that the pilot claims.
        max: Coord3,
    },
}

/// The bytes of a pilot that `from` sends.
#[must_use]
#[inline]
pub fn encode(pilot: &Pilot, from: NodeId) -> [u8; PILOT_LEN] {
    let Pilot { to, message, transfer: TransferId { consumer, buffer }, elements, from_device } =
        pilot;
    let receiver = to.index() | if *from_device { FROM_DEVICE } else { 0 };
    let ids = [from.index(), receiver, message.index(), consumer.index(), buffer.index()];
    let mut words: [u64; WORDS] = [MAGIC; WORDS];
    words[1..6].copy_from_slice(&ids);
    words[6..9].copy_from_slice(&elements.min());
    words[9..].copy_from_slice(&elements.max());
    bytemuck::cast(words.map(u64::to_le))
}

/// The sender and the pilot that came to `local`, one of `nodes` nodes.
///
/// The bytes may come from anywhere and need no alignment. Nothing is allocated.
///
/// # Errors
/// [`PilotError`] says what is wrong with them. Whether task, buffer and message exist is for the
/// receiver to find out: their pilots may be ahead of its own graphs (instruction-graph preprint,
/// §3.4).
#[inline]
pub fn decode(bytes: &[u8], nodes: usize, local: NodeId) -> Result<(NodeId, Pilot), PilotError> {
    let bytes: &[u8; PILOT_LEN] =
        bytes.try_into().map_err(|_| PilotError::Length { found: bytes.len() })?;
    let words: [u64; WORDS] = bytemuck::cast(*bytes);
    let [magic, from, to, message, consumer, buffer, x0, y0, z0, x1, y1, z1] =
        words.map(u64::from_le);
    check_magic(magic)?;
    let from_device = to & FROM_DEVICE != 0;
    let (from, to) = (NodeId::from_index(from), NodeId::from_index(to & !FROM_DEVICE));
    if from.index() >= nodes as u64 || from == local {
        return Err(PilotError::Sender { from, local, nodes });
    }
    if to != local {
        return Err(PilotError::Receiver { from, to, local });
    }
    let message = MessageId::from_index(message);
    let (min, max) = ([x0, y0, z0], [x1, y1, z1]);
    let elements = Box3::new(min, max);
    if elements.is_empty() {
        return Err(PilotError::Elements { from, message, min, max });
    }
    let (consumer, buffer) = (TaskId::from_index(consumer), BufferId::from_index(buffer));
    let transfer = TransferId { consumer, buffer };
    Ok((from, Pilot { to, message, transfer, elements, from_device }))
}

fn check_magic(found: u64) -> Result<(), PilotError> {
    let version = found.to_le_bytes()[7];
    match (found ^ MAGIC) << 8 {
        0 if version == PILOT_VERSION => Ok(()),
        0 => Err(PilotError::Version { found: version }),
        _ => Err(PilotError::Magic { found }),
    }
}
