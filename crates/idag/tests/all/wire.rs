//! Pilots on the wire: what was sent arrives, and everything else is refused by name.

use celerity_cdag::{NodeId, TransferId};
use celerity_idag::wire::{
    LONGEST_PILOT, MAGIC, PILOT_LEN, PILOT_VERSION, PilotBytes, PilotError, decode, encode,
};
use celerity_idag::{MessageId, Pilot};
use celerity_regions::{Box3, Region};
use celerity_tdag::{BufferId, TaskId};
use proptest::prelude::*;

const NODES: usize = 4;
const FROM: NodeId = NodeId::from_index(3);
const LOCAL: NodeId = NodeId::from_index(1);

/// What the pilot announces.
const FIRST: Box3 = Box3::new([1, 2, 3], [4, 6, 8]);

fn pilot() -> Pilot {
    Pilot {
        to: LOCAL,
        message: MessageId::from_index(7),
        transfer: TransferId { consumer: TaskId::from_index(12), buffer: BufferId::from_index(2) },
        region: FIRST.into(),
        from_device: false,
    }
}

/// The pilot's bytes with one word replaced.
fn with_word(index: usize, word: u64) -> PilotBytes {
    let mut bytes = encode(&pilot(), FROM);
    bytes[8 * index..8 * (index + 1)].copy_from_slice(&word.to_le_bytes());
    bytes
}

fn error_of(bytes: &[u8]) -> PilotError {
    decode(bytes, NODES, LOCAL).unwrap_err()
}

#[test]
fn the_layout_is_as_documented() {
    let bytes = encode(&pilot(), FROM);
    let words = bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
    let expected = [MAGIC, 3, 1, 7, 12, 2, 1, 2, 3, 4, 6, 8];
    assert_eq!(words.collect::<Vec<_>>(), expected);
    assert_eq!(&bytes[..8], b"CELPILT\x03");
}

/// So many boxes, one row each, in order.
fn rows(count: u64) -> Region {
    Region::from_boxes((0..count).map(|row| Box3::new([2 * row, 0, 0], [2 * row + 1, 1, 5])))
}

#[test]
fn further_boxes_follow() {
    let most = Pilot::MOST_BOXES as u64;
    for count in 1..=most {
        let pilot = Pilot { region: rows(count), ..pilot() };
        let bytes = encode(&pilot, FROM);
        assert_eq!(bytes.len(), PILOT_LEN + 48 * (pilot.region.boxes().len() - 1));
        let last: Vec<_> = bytes[bytes.len() - 48..]
            .chunks(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(last, [2 * count - 2, 0, 0, 2 * count - 1, 1, 5]);
        assert_eq!(decode(&bytes, NODES, LOCAL), Ok((FROM, pilot)));
        assert_eq!(bytes.len() == LONGEST_PILOT, count == most);
    }
}

#[test]
fn boxes_are_those_of_a_region_in_host_memory() {
    let region = rows(3);
    let bytes = encode(&Pilot { region: region.clone(), ..pilot() }, FROM);
    let boxes = PilotError::Boxes { from: FROM, message: pilot().message, boxes: 3 };
    let mut swapped = bytes.clone();
    swapped[48..144].rotate_left(48);
    assert_eq!(error_of(&swapped), boxes);
    let mut twice = bytes.clone();
    twice.copy_within(48..96, 96);
    assert_eq!(error_of(&twice), boxes);
    let on_device = encode(&Pilot { region, from_device: true, ..pilot() }, FROM);
    assert_eq!(error_of(&on_device), boxes);
}

#[test]
fn every_other_length_is_refused() {
    let most = Pilot { region: rows(Pilot::MOST_BOXES as u64), ..pilot() };
    let mut long = encode(&most, FROM);
    long.extend_from_slice(&[0; 48]);
    let is_whole = |len: usize| len >= PILOT_LEN && (len - PILOT_LEN).is_multiple_of(48);
    for found in (0..=long.len()).filter(|&len| len > LONGEST_PILOT || !is_whole(len)) {
        assert_eq!(error_of(&long[..found]), PilotError::Length { found });
    }
}

#[test]
fn another_magic_and_another_version_differ() {
    let found = 0x0123_4567_89AB_CDEF;
    assert_eq!(error_of(&with_word(0, found)), PilotError::Magic { found });
    let newer = MAGIC + (1 << 56);
    let error = error_of(&with_word(0, newer));
    assert_eq!(error, PilotError::Version { found: PILOT_VERSION + 1 });
    assert!(error.to_string().contains("layout 3"), "{error}");
}

#[test]
fn senders_are_other_nodes_of_the_cluster() {
    for from in [1, 4, u64::MAX] {
        let error = error_of(&with_word(1, from));
        let from = NodeId::from_index(from);
        assert_eq!(error, PilotError::Sender { from, local: LOCAL, nodes: NODES });
        assert!(error.to_string().contains(&from.to_string()), "{error}");
    }
}

#[test]
fn the_receiver_is_this_node() {
    let (from, to, local) = (FROM, NodeId::from_index(2), LOCAL);
    let error = error_of(&with_word(2, 2));
    assert_eq!(error, PilotError::Receiver { from, to, local });
    assert_eq!(error.to_string(), "a pilot from N3 for N2 came to N1");
}

#[test]
fn empty_and_inverted_boxes_are_refused() {
    for dim in 0..3 {
        let min = FIRST.min()[dim];
        for end in [min, min - 1, 0] {
            let error = error_of(&with_word(9 + dim, end));
            assert!(matches!(error, PilotError::Elements { from: FROM, .. }), "{error}");
        }
    }
}

proptest! {
    #[test]
    fn what_was_sent_arrives(
        ids in any::<[u64; 3]>(),
        min in [0..u64::MAX, 0..u64::MAX, 0..u64::MAX],
        size in [1..1000u64, 1..1000, 1..1000],
        nodes in 2..1000usize,
        (to, from) in (any::<usize>(), any::<usize>()),
        from_device in any::<bool>(),
    ) {
        let (to, from) = (to % nodes, from % nodes);
        prop_assume!(to != from);
        let [to, from] = [to, from].map(|node| NodeId::from_index(node as u64));
        let max = std::array::from_fn(|d| min[d].saturating_add(size[d]));
        let pilot = Pilot {
            to,
            message: MessageId::from_index(ids[0]),
            transfer: TransferId {
                consumer: TaskId::from_index(ids[1]),
                buffer: BufferId::from_index(ids[2]),
            },
            region: Box3::new(min, max).into(),
            from_device,
        };
        prop_assert_eq!(decode(&encode(&pilot, from), nodes, to), Ok((from, pilot)));
    }

    /// Whatever is accepted is what those very bytes stand for.
    #[test]
    fn what_is_accepted_is_sent_alike(at in 0..PILOT_LEN, byte in any::<u8>()) {
        let mut bytes = encode(&pilot(), FROM);
        bytes[at] = byte;
        if let Ok((from, pilot)) = decode(&bytes, NODES, LOCAL) {
            prop_assert_eq!(encode(&pilot, from), bytes);
        }
    }
}
