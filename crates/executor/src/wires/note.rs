//! What both ends of a wire tell each other, as notes of the network below. Owns their bytes, and knows
//! nothing of what follows from them.

use celerity_cdag::{NodeId, TransferId};
use celerity_idag::wire::{self, PILOT_LEN};
use celerity_idag::{MessageId, Pilot};
use celerity_tdag::{BufferId, TaskId};

use super::{CARD_LEN, CollectiveTerms, MOST_OF_JOINING_CARD, Slot, WindowSize};
use crate::communicator::{Communicator, NOTE_LEN};

/// The first byte of such a note. 0, 1 and 3 are those of the task stream, 2 is that of credit, 4 that of
/// letters.
const WIRE: u8 = 5;

const HELLO: u8 = 0;
const VERDICT: u8 = 1;
const ANNOUNCED: u8 = 2;
const WANTED: u8 = 3;
const PACKED: u8 = 4;
const FREE: u8 = 5;
const COMPLETE: u8 = 6;
const INVITED: u8 = 7;
const JOINED: u8 = 8;
const SETTLED: u8 = 9;
const CAME: u8 = 10;
const ENTERED: u8 = 11;
const APART: u8 = 12;

/// Bytes of a reason, at most; what is longer is cut.
const MOST_OF_REASON: usize = 800;

const _: () = assert!(CARD_LEN + 2 + 20 <= NOTE_LEN && PILOT_LEN + 2 + 8 <= NOTE_LEN);
const _: () = assert!(MOST_OF_JOINING_CARD + 2 + 16 <= NOTE_LEN && MOST_OF_REASON + 3 <= NOTE_LEN);

/// A note, as its receiver reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// The sender's windows, if it has any.
    Hello(Option<(WindowSize, Vec<u8>)>),
    /// Whether the sender could open the receiver's windows.
    Verdict(bool),
    /// Whether the sender reaches all other nodes.
    Complete(bool),
    /// A payload will come by wire; and how many horizons the sender had reached.
    Announced { pilot: Pilot, reached: u64 },
    /// The receiver of a payload is ready for it, and how many bytes it takes an element to have.
    Wanted { message: MessageId, elem_size: u64 },
    /// A piece of a payload is in a slot of the sender's windows.
    Packed { message: MessageId, piece: u32, slot: Slot },
    /// A slot of the receiver's windows has been emptied.
    Free(Slot),
    /// Node 0 has collective operations of devices: on which terms, and what is needed to join.
    Invited(CollectiveTerms, Vec<u8>),
    /// Whether the sender has joined; if not, why.
    Joined(Result<(), String>),
    /// Whether all nodes have; if not, why.
    Settled(Result<(), String>),
    /// The sender has come to a collective operation, which is this one, by hash.
    Came { transfer: TransferId, hash: u64 },
    /// The sender is in the barrier of an epoch, and has come to this operation last.
    Entered { epoch: TaskId, latest: Option<TransferId> },
    /// Nodes have come to different operations: one and its task, and another one and its.
    Apart((NodeId, TaskId), (NodeId, TaskId)),
}

/// Whether a note is about wires.
pub(super) fn is_of_wires(note: &[u8]) -> bool {
    note.first() == Some(&WIRE)
}

impl Note {
    /// Sends it to all other nodes.
    pub(super) fn tell_others(&self, end: &mut dyn Communicator) {
        let (local, nodes) = (end.node(), end.nodes() as u64);
        let bytes = self.encode(local);
        let others = (0..nodes).map(NodeId::from_index).filter(|node| *node != local);
        others.for_each(|node| end.send_note(node, &bytes));
    }

    /// The bytes of a note from `from`.
    pub(super) fn encode(&self, from: NodeId) -> Vec<u8> {
        let mut bytes = vec![WIRE];
        match self {
            Self::Hello(None) => bytes.push(HELLO),
            Self::Hello(Some((size, card))) => {
                bytes.push(HELLO);
                bytes.extend(size.windows.to_le_bytes());
                bytes.extend(size.slots.to_le_bytes());
                bytes.extend(size.slot_bytes.to_le_bytes());
                bytes.extend(size.least.to_le_bytes());
                bytes.extend(card);
            }
            Self::Verdict(opened) => bytes.extend([VERDICT, u8::from(*opened)]),
            Self::Complete(complete) => bytes.extend([COMPLETE, u8::from(*complete)]),
            Self::Announced { pilot, reached } => {
                bytes.push(ANNOUNCED);
                bytes.extend(reached.to_le_bytes());
                bytes.extend(wire::encode(pilot, from));
            }
            Self::Wanted { message, elem_size } => {
                bytes.push(WANTED);
                bytes.extend(message.index().to_le_bytes());
                bytes.extend(elem_size.to_le_bytes());
            }
            Self::Packed { message, piece, slot } => {
                bytes.push(PACKED);
                bytes.extend(message.index().to_le_bytes());
                bytes.extend(piece.to_le_bytes());
                bytes.extend(slot.window.to_le_bytes());
                bytes.extend(slot.number.to_le_bytes());
            }
            Self::Free(slot) => {
                bytes.push(FREE);
                bytes.extend(slot.window.to_le_bytes());
                bytes.extend(slot.number.to_le_bytes());
            }
            Self::Invited(CollectiveTerms { least, least_row }, card) => {
                bytes.push(INVITED);
                bytes.extend(least.to_le_bytes());
                bytes.extend(least_row.to_le_bytes());
                bytes.extend(card);
            }
            Self::Joined(outcome) => {
                bytes.push(JOINED);
                extend_by_outcome(&mut bytes, outcome);
            }
            Self::Settled(outcome) => {
                bytes.push(SETTLED);
                extend_by_outcome(&mut bytes, outcome);
            }
            Self::Came { transfer, hash } => {
                bytes.push(CAME);
                extend_by_transfer(&mut bytes, transfer);
                bytes.extend(hash.to_le_bytes());
            }
            Self::Entered { epoch, latest } => {
                bytes.push(ENTERED);
                bytes.extend(epoch.index().to_le_bytes());
                if let Some(transfer) = latest {
                    extend_by_transfer(&mut bytes, transfer);
                }
            }
            Self::Apart(one, other) => {
                bytes.push(APART);
                for (node, task) in [one, other] {
                    bytes.extend(node.index().to_le_bytes());
                    bytes.extend(task.index().to_le_bytes());
                }
            }
        }
        bytes
    }

    /// A note that [is of wires](is_of_wires), from `from` to `local`; what is wrong with it, if it is
    /// none.
    pub(super) fn decode(
        bytes: &[u8],
        (from, local): (NodeId, NodeId),
        nodes: usize,
    ) -> Result<Self, String> {
        let mut rest = Rest(bytes.get(2..).unwrap_or_default());
        let note = match bytes.get(1) {
            Some(&HELLO) if rest.0.is_empty() => Some(Self::Hello(None)),
            Some(&HELLO) => rest
                .size()
                .map(|size| Self::Hello(Some((size, std::mem::take(&mut rest.0).to_vec())))),
            Some(&VERDICT) => rest.array().map(|[opened]: [u8; 1]| Self::Verdict(opened == 1)),
            Some(&COMPLETE) => rest.array().map(|[all]: [u8; 1]| Self::Complete(all == 1)),
            Some(&ANNOUNCED) => match rest.word() {
                Some(reached) => return announced(rest.0, (from, local), nodes, reached),
                None => None,
            },
            Some(&WANTED) => rest
                .message()
                .zip(rest.word())
                .map(|(message, elem_size)| Self::Wanted { message, elem_size }),
            Some(&PACKED) => rest.packed(),
            Some(&FREE) => rest.slot().map(Self::Free),
            Some(&INVITED) => {
                rest.terms().map(|terms| Self::Invited(terms, std::mem::take(&mut rest.0).to_vec()))
            }
            Some(&JOINED) => rest.outcome().map(Self::Joined),
            Some(&SETTLED) => rest.outcome().map(Self::Settled),
            Some(&CAME) => rest
                .transfer()
                .zip(rest.word())
                .map(|(transfer, hash)| Self::Came { transfer, hash }),
            Some(&ENTERED) => rest.task().and_then(|epoch| {
                let is_all = rest.0.is_empty();
                let latest = if is_all { None } else { Some(rest.transfer()?) };
                Some(Self::Entered { epoch, latest })
            }),
            Some(&APART) => {
                rest.place(nodes).zip(rest.place(nodes)).map(|(one, other)| Self::Apart(one, other))
            }
            _ => None,
        };
        let note = note.filter(|_| rest.0.is_empty());
        note.ok_or_else(|| format!("{} bytes that are no note about device wires", bytes.len()))
    }
}

/// A byte that says whether something went well, and if not, why.
fn extend_by_outcome(bytes: &mut Vec<u8>, outcome: &Result<(), String>) {
    bytes.push(u8::from(outcome.is_ok()));
    if let Err(why) = outcome {
        let end = (0..=MOST_OF_REASON.min(why.len())).rev().find(|&at| why.is_char_boundary(at));
        bytes.extend(&why.as_bytes()[..end.unwrap_or(0)]);
    }
}

fn extend_by_transfer(bytes: &mut Vec<u8>, transfer: &TransferId) {
    bytes.extend(transfer.consumer.index().to_le_bytes());
    bytes.extend(transfer.buffer.index().to_le_bytes());
}

fn announced(
    bytes: &[u8],
    (from, local): (NodeId, NodeId),
    nodes: usize,
    reached: u64,
) -> Result<Note, String> {
    match wire::decode(bytes, nodes, local) {
        Ok((sender, pilot)) if sender == from => Ok(Note::Announced { pilot, reached }),
        Ok((sender, _)) => Err(format!("a pilot that names {sender} as its sender")),
        Err(error) => Err(error.to_string()),
    }
}

/// What has not been read of a note.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn word(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn half(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn message(&mut self) -> Option<MessageId> {
        self.word().map(MessageId::from_index)
    }

    fn slot(&mut self) -> Option<Slot> {
        Some(Slot { window: self.half()?, number: self.half()? })
    }

    fn size(&mut self) -> Option<WindowSize> {
        let (windows, slots) = (self.half()?, self.half()?);
        Some(WindowSize { windows, slots, slot_bytes: self.word()?, least: self.word()? })
    }

    fn terms(&mut self) -> Option<CollectiveTerms> {
        Some(CollectiveTerms { least: self.word()?, least_row: self.word()? })
    }

    fn outcome(&mut self) -> Option<Result<(), String>> {
        let [went_well] = self.array()?;
        match went_well {
            1 => Some(Ok(())),
            0 => {
                let why = std::mem::take(&mut self.0).to_vec();
                String::from_utf8(why).ok().map(Err)
            }
            _ => None,
        }
    }

    fn task(&mut self) -> Option<TaskId> {
        self.word().map(TaskId::from_index)
    }

    /// A node of so many, and a task that it waits in.
    fn place(&mut self, nodes: usize) -> Option<(NodeId, TaskId)> {
        let node = self.word().filter(|node| *node < nodes as u64)?;
        Some((NodeId::from_index(node), self.task()?))
    }

    fn transfer(&mut self) -> Option<TransferId> {
        let (consumer, buffer) = (self.task()?, self.word()?);
        Some(TransferId { consumer, buffer: BufferId::from_index(buffer) })
    }

    fn packed(&mut self) -> Option<Note> {
        let message = self.message()?;
        let piece = u32::from_le_bytes(self.array()?);
        Some(Note::Packed { message, piece, slot: self.slot()? })
    }
}

#[cfg(test)]
mod tests {
    use celerity_cdag::TransferId;
    use celerity_regions::Box3;
    use celerity_tdag::{BufferId, TaskId};

    use super::*;

    const FROM: NodeId = NodeId::from_index(1);
    const TO: NodeId = NodeId::from_index(2);

    fn notes() -> Vec<Note> {
        let message = MessageId::from_index(u64::MAX - 1);
        let transfer =
            TransferId { consumer: TaskId::from_index(5), buffer: BufferId::from_index(1) };
        let region = Box3::from_range([4, 7]).into();
        let pilot = Pilot { to: TO, message, transfer, region, from_device: true };
        let size = WindowSize { windows: 2, slots: 4, slot_bytes: 1 << 33, least: 1 << 10 };
        let slot = Slot { window: 3, number: 700 };
        vec![
            Note::Hello(None),
            Note::Hello(Some((size, vec![7; CARD_LEN]))),
            Note::Hello(Some((size, Vec::new()))),
            Note::Verdict(true),
            Note::Verdict(false),
            Note::Complete(true),
            Note::Announced { pilot, reached: 77 },
            Note::Wanted { message, elem_size: 12 },
            Note::Packed { message, piece: 9, slot },
            Note::Free(slot),
            Note::Invited(CollectiveTerms { least: 1 << 40, least_row: 64 }, vec![9; 128]),
            Note::Joined(Ok(())),
            Note::Joined(Err("it has no such library".to_owned())),
            Note::Settled(Ok(())),
            Note::Settled(Err(String::new())),
            Note::Came { transfer, hash: u64::MAX },
            Note::Entered { epoch: transfer.consumer, latest: None },
            Note::Entered { epoch: transfer.consumer, latest: Some(transfer) },
            Note::Apart((FROM, transfer.consumer), (TO, TaskId::from_index(0))),
        ]
    }

    #[test]
    fn notes_arrive_as_they_were() {
        for note in notes() {
            let bytes = note.encode(FROM);
            assert!(bytes.len() <= NOTE_LEN && is_of_wires(&bytes));
            assert_eq!(Note::decode(&bytes, (FROM, TO), 3), Ok(note));
        }
    }

    #[test]
    fn what_was_cut_or_is_too_long_is_refused() {
        let has_end = |note: &Note| match note {
            Note::Hello(_) | Note::Invited(..) => false,
            Note::Joined(outcome) | Note::Settled(outcome) => outcome.is_ok(),
            // Without what comes last, it means something else.
            Note::Entered { .. } => false,
            _ => true,
        };
        for note in notes().into_iter().filter(has_end) {
            let bytes = note.encode(FROM);
            for len in 1..bytes.len() {
                assert!(Note::decode(&bytes[..len], (FROM, TO), 3).is_err(), "{note:?}, {len}");
            }
            assert!(Note::decode(&[&bytes[..], &[0]].concat(), (FROM, TO), 3).is_err(), "{note:?}");
        }
        assert!(Note::decode(&[WIRE, 99], (FROM, TO), 3).is_err());
    }

    #[test]
    fn long_reasons_are_cut_between_characters() {
        let reason = "é".repeat(MOST_OF_REASON);
        let bytes = Note::Joined(Err(reason)).encode(FROM);
        assert!(bytes.len() <= NOTE_LEN);
        let Ok(Note::Joined(Err(cut))) = Note::decode(&bytes, (FROM, TO), 3) else { panic!() };
        assert_eq!(cut, "é".repeat(MOST_OF_REASON / 2));
    }

    #[test]
    fn pilots_come_from_whom_they_name() {
        let bytes = notes()[6].encode(FROM);
        let error = Note::decode(&bytes, (NodeId::from_index(0), TO), 3).unwrap_err();
        assert!(error.contains("N1"), "{error}");
    }
}
