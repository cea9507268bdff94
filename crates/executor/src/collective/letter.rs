//! What nodes write to each other for a collective task: letters, cut to pieces that fit notes.
//! Owns their bytes; knows neither who waits for them nor how they travel.

use celerity_tdag::TaskId;

use super::LONGEST;
use crate::communicator::NOTE_LEN;

/// The first byte of such a note. 0, 1 and 3 are those of `stream`, 2 is that of `credit`.
const LETTER: u8 = 4;

/// Bytes of a note before those of the letter.
const HEAD: usize = 1 + 1 + 2 + 8 + 4 + 8 + 4 + 4;

/// Bytes of a letter in one note.
const PIECE: usize = NOTE_LEN - HEAD;

/// What a letter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A part of an operation.
    Part,
    /// Whether the receiver is still in the task: the sender has been waiting for it.
    Question,
    /// The answer, if it is not.
    Left,
}

/// Which letter: one of each kind per task, step and sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) kind: Kind,
    /// The number of the task's group.
    pub(super) group: u16,
    pub(super) task: TaskId,
    /// Counted from 0 in each task.
    pub(super) step: u32,
    /// What is done in the step; the same on all nodes, or they do different things.
    pub(super) operation: u64,
}

/// A piece of a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub(super) address: Address,
    /// Where in the letter it begins.
    pub(super) offset: u32,
    /// Bytes of the whole letter.
    pub(super) length: u32,
    pub(super) bytes: &'a [u8],
}

/// The notes that carry a letter, in order; at least one.
pub(super) fn notes(address: Address, letter: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let length = u32::try_from(letter.len()).expect("longer letters are refused");
    let pieces = letter.len().div_ceil(PIECE).max(1);
    (0..pieces).map(move |piece| {
        let begin = piece * PIECE;
        let bytes = &letter[begin..letter.len().min(begin + PIECE)];
        let offset = u32::try_from(begin).expect("below the length");
        encode(&Piece { address, offset, length, bytes })
    })
}

fn encode(piece: &Piece<'_>) -> Vec<u8> {
    let Address { kind, group, task, step, operation } = piece.address;
    let mut note = Vec::with_capacity(HEAD + piece.bytes.len());
    note.extend([LETTER, kind as u8]);
    note.extend(group.to_le_bytes());
    note.extend(task.index().to_le_bytes());
    note.extend(step.to_le_bytes());
    note.extend(operation.to_le_bytes());
    note.extend(piece.offset.to_le_bytes());
    note.extend(piece.length.to_le_bytes());
    note.extend(piece.bytes);
    note
}

/// Whether a note is a piece of a letter.
pub(super) fn is_letter(note: &[u8]) -> bool {
    note.first() == Some(&LETTER)
}

/// The piece that a note carries; `None` if it makes no sense.
pub(super) fn decode(note: &[u8]) -> Option<Piece<'_>> {
    let (&[_, kind], rest) = note.split_first_chunk()?;
    let kind = match kind {
        0 => Kind::Part,
        1 => Kind::Question,
        2 => Kind::Left,
        _ => return None,
    };
    let (group, rest) = rest.split_first_chunk()?;
    let (task, rest) = rest.split_first_chunk()?;
    let (step, rest) = rest.split_first_chunk()?;
    let (operation, rest) = rest.split_first_chunk()?;
    let (offset, rest) = rest.split_first_chunk()?;
    let (length, bytes) = rest.split_first_chunk()?;
    let (offset, length) = (u32::from_le_bytes(*offset), u32::from_le_bytes(*length));
    let end = u64::from(offset) + bytes.len() as u64;
    let is_whole = bytes.len() == PIECE || end == u64::from(length);
    let is_inside = length <= LONGEST && end <= u64::from(length);
    let fits = is_inside && (offset as usize).is_multiple_of(PIECE) && is_whole;
    let address = Address {
        kind,
        group: u16::from_le_bytes(*group),
        task: TaskId::from_index(u64::from_le_bytes(*task)),
        step: u32::from_le_bytes(*step),
        operation: u64::from_le_bytes(*operation),
    };
    fits.then_some(Piece { address, offset, length, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: Address = Address {
        kind: Kind::Part,
        group: 7,
        task: TaskId::from_index(1 << 40),
        step: 9,
        operation: u64::MAX - 3,
    };

    #[test]
    fn letters_of_any_length_are_put_together_again() {
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 3 * PIECE + 5] {
            let letter: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let notes: Vec<_> = notes(ADDRESS, &letter).collect();
            assert_eq!(notes.len(), length.div_ceil(PIECE).max(1));
            let mut joined: Vec<u8> = Vec::new();
            for note in &notes {
                assert!(note.len() <= NOTE_LEN && is_letter(note));
                let piece = decode(note).unwrap();
                assert_eq!((piece.address, piece.length as usize), (ADDRESS, length));
                assert_eq!(piece.offset as usize, joined.len());
                joined.extend(piece.bytes);
            }
            assert_eq!(joined, letter);
        }
    }

    #[test]
    fn nonsense_is_no_piece() {
        let note = notes(ADDRESS, &[1, 2, 3]).next().unwrap();
        assert!(decode(&note).is_some());
        for cut in 0..note.len() {
            assert_eq!(decode(&note[..cut]), None, "{cut} bytes");
        }
        let spoiled = |at: usize, byte: u8| {
            let mut note = note.clone();
            note[at] = byte;
            note
        };
        assert_eq!(decode(&spoiled(1, 9)), None, "an unknown kind");
        assert_eq!(decode(&spoiled(HEAD - 8, 1)), None, "an offset inside of a piece");
        assert_eq!(decode(&spoiled(HEAD - 4, 4)), None, "a length that is not that of its piece");
    }
}
