//! Pilots on the wire: 96 bytes each, and 48 more for each further box; plain old data. Knows neither a network nor how a message is
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
//! | 48..72 | the first box's minimum: three coordinates |
//! | 72..96 | the first box's maximum: three coordinates |
//! | 96..144 | the second box, in the order of the [region](Region); and so on, up to [`Pilot::MOST_BOXES`] |
//!
//! Each number is one little-endian word of 64 bits. A pilot of one box, as nearly all are, is two cache lines less a
//! half, and is coded by twelve moves.
//!
//! ```
//! use celerity_cdag::{NodeId, TransferId};
//! use celerity_idag::{MessageId, Pilot, wire};
//! use celerity_regions::Box3;
//! use celerity_tdag::{BufferId, TaskId};
//! let (from, to) = (NodeId::from_index(0), NodeId::from_index(1));
//! let transfer =
//!     TransferId { consumer: TaskId::from_index(3), buffer: BufferId::from_index(0) };
//! let region = Box3::from_range([4, 8]).into();
//! let message = MessageId::from_index(7);
//! let pilot = Pilot { to, message, transfer, region, from_device: false };
//! let bytes = wire::encode(&pilot, from);
//! assert_eq!(wire::decode(&bytes, 2, to), Ok((from, pilot)));
//! assert!(wire::decode(&bytes[1..], 2, to).is_err());
//! ```

use celerity_cdag::{NodeId, TransferId};
use celerity_regions::{Box3, Coord3, Region};
use celerity_tdag::{BufferId, TaskId};
use smallvec::SmallVec;

use crate::instruction::{MessageId, Pilot};

/// The length in bytes of a pilot of one box.
pub const PILOT_LEN: usize = 8 * (IDS + CORNERS);

/// The length in bytes of the longest pilot.
pub const LONGEST_PILOT: usize = 8 * (IDS + CORNERS * Pilot::MOST_BOXES);

/// The bytes of a pilot. Those of one box are stored without a heap allocation.
pub type PilotBytes = SmallVec<[u8; PILOT_LEN]>;

/// The version of the layout.
pub const PILOT_VERSION: u8 = 3;

/// The first word of every pilot; its last byte is the version.
pub const MAGIC: u64 =
    u64::from_le_bytes([b'C', b'E', b'L', b'P', b'I', b'L', b'T', PILOT_VERSION]);

/// Words before the boxes.
const IDS: usize = 6;

/// Words of a box.
const CORNERS: usize = 6;

/// Set in the receiver's word if the elements leave from a device's memory.
const FROM_DEVICE: u64 = 1 << 63;

/// Bytes that are not a pilot for this node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PilotError {
    /// Not as many bytes as any pilot has.
    #[error(
        "a pilot has {PILOT_LEN} bytes, and {} more for each further box, but {found} came; the message was cut or mixed up",
        8 * CORNERS
    )]
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
    /// The boxes are not those of a [region](Region), in its order, or are several that leave from a device's memory.
    #[error(
        "{message} from {from} announces {boxes} boxes that are not those of a region in host memory, in their order"
    )]
    Boxes {
        /// The node that has sent the pilot.
        from: NodeId,
        /// The sender's number of the message.
        message: MessageId,
        /// How many there are.
        boxes: usize,
    },
}

/// The bytes of a pilot that `from` sends.
///
/// # Panics
/// If it has no box, or more than [`Pilot::MOST_BOXES`].
#[must_use]
#[inline]
pub fn encode(pilot: &Pilot, from: NodeId) -> PilotBytes {
    let Pilot { to, message, transfer: TransferId { consumer, buffer }, region, from_device } =
        pilot;
    let receiver = to.index() | if *from_device { FROM_DEVICE } else { 0 };
    let ids = [MAGIC, from.index(), receiver, message.index(), consumer.index(), buffer.index()];
    let (first, more) = region.boxes().split_first().expect("a pilot announces elements");
    let mut words = [0; IDS + CORNERS];
    words[..IDS].copy_from_slice(&ids);
    words[IDS..].copy_from_slice(&corners(first));
    let bytes: [u8; PILOT_LEN] = bytemuck::cast(words.map(u64::to_le));
    let mut bytes = PilotBytes::from(bytes);
    assert!(more.len() < Pilot::MOST_BOXES, "a pilot announces {} boxes", more.len() + 1);
    for part in more {
        bytes.extend_from_slice(bytemuck::bytes_of(&corners(part).map(u64::to_le)));
    }
    bytes
}

/// The sender and the pilot that came to `local`, one of `nodes` nodes.
///
/// The bytes may come from anywhere and need no alignment. Nothing is allocated for a pilot of one box.
///
/// # Errors
/// [`PilotError`] says what is wrong with them. Whether task, buffer and message exist is for the
/// receiver to find out: their pilots may be ahead of its own graphs (instruction-graph preprint,
/// §3.4).
#[inline]
pub fn decode(bytes: &[u8], nodes: usize, local: NodeId) -> Result<(NodeId, Pilot), PilotError> {
    let length = || PilotError::Length { found: bytes.len() };
    let (ids, boxes) = bytes.split_first_chunk::<{ 8 * IDS }>().ok_or_else(length)?;
    let (boxes, rest) = boxes.as_chunks::<{ 8 * CORNERS }>();
    if !rest.is_empty() || boxes.is_empty() || boxes.len() > Pilot::MOST_BOXES {
        return Err(length());
    }
    let ids: [u64; IDS] = bytemuck::cast(*ids);
    let [magic, from, to, message, consumer, buffer] = ids.map(u64::from_le);
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
    let part = |bytes: &[u8; 8 * CORNERS]| {
        let words: [u64; CORNERS] = bytemuck::cast(*bytes);
        let [x0, y0, z0, x1, y1, z1] = words.map(u64::from_le);
        let (min, max) = ([x0, y0, z0], [x1, y1, z1]);
        let part = Box3::new(min, max);
        if part.is_empty() {
            return Err(PilotError::Elements { from, message, min, max });
        }
        Ok(part)
    };
    let region = match boxes {
        [one] => Region::from(part(one)?),
        _ => {
            let parts = boxes.iter().map(part).collect::<Result<Vec<_>, _>>()?;
            let region = Region::from_boxes(parts.iter().copied());
            if region.boxes() != parts || from_device {
                return Err(PilotError::Boxes { from, message, boxes: parts.len() });
            }
            region
        }
    };
    let (consumer, buffer) = (TaskId::from_index(consumer), BufferId::from_index(buffer));
    let transfer = TransferId { consumer, buffer };
    Ok((from, Pilot { to, message, transfer, region, from_device }))
}

fn corners(part: &Box3) -> [u64; CORNERS] {
    let ([x0, y0, z0], [x1, y1, z1]) = part.corners();
    [x0, y0, z0, x1, y1, z1]
}

fn check_magic(found: u64) -> Result<(), PilotError> {
    let version = found.to_le_bytes()[7];
    match (found ^ MAGIC) << 8 {
        0 if version == PILOT_VERSION => Ok(()),
        0 => Err(PilotError::Version { found: version }),
        _ => Err(PilotError::Magic { found }),
    }
}
