//! Boxes and regions survive a recording, and what is none is refused.
#![cfg(feature = "serde")]

use celerity_codec::{DecodeError, RecordingKind, decode, encode};
use celerity_regions::{Box3, Coord3, Region};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::common::{box_in, space};

const KIND: RecordingKind = RecordingKind::TaskGraph;

/// What is wrong with a box that is recorded with these corners.
fn box_error(min: Coord3, max: Coord3) -> String {
    let bytes = encode(KIND, &(min, max)).unwrap();
    decode::<Box3>(KIND, &bytes).unwrap_err().to_string()
}

/// What is wrong with a region that is recorded as these boxes.
fn region_error(boxes: &[Box3]) -> String {
    let bytes = encode(KIND, &boxes).unwrap();
    let error = decode::<Region>(KIND, &bytes).unwrap_err();
    assert!(matches!(error, DecodeError::Malformed { .. }), "{error}");
    error.to_string()
}

#[test]
fn inverted_and_improper_empty_boxes_are_refused() {
    assert!(box_error([3, 0, 0], [1, 1, 1]).contains("[3, 0, 0] to [1, 1, 1] is no box"));
    assert!(box_error([0, 0, 5], [4, 4, 5]).contains("is no box"));
    assert!(box_error([u64::MAX; 3], [0; 3]).contains("is no box"));
    assert!(box_error([0; 3], [0, 1, 1]).contains("is no box"));
}

#[test]
fn boxes_that_are_no_region_are_refused() {
    let row = |x: u64, y: [u64; 2]| Box3::new([x, y[0], 0], [x + 1, y[1], 1]);
    assert!(region_error(&[row(0, [0, 4]), row(0, [3, 6])]).contains("overlap"));
    let tall = Box3::new([0, 0, 0], [3, 2, 1]);
    assert!(region_error(&[tall, row(1, [1, 4])]).contains("overlap"));
    assert!(region_error(&[row(2, [0, 4]), row(0, [0, 4])]).contains("follows"));
    assert!(region_error(&[row(0, [0, 4]), row(0, [0, 4])]).contains("follows"));
    assert!(region_error(&[Box3::EMPTY]).contains("empty box"));
    assert!(region_error(&[row(0, [0, 2]), row(0, [2, 4])]).contains("canonical"));
    assert!(region_error(&[row(0, [0, 4]), row(1, [0, 4])]).contains("canonical"));
}

#[test]
fn a_list_that_does_not_come_is_refused() {
    for len in [3, 1 << 40, 1 << 60, u64::MAX] {
        let bytes = encode(KIND, &(len, Box3::UNIT)).unwrap();
        assert!(decode::<Region>(KIND, &bytes).is_err(), "{len}");
    }
}

proptest! {
    #[test]
    fn regions_survive(boxes in vec(box_in(space(3, 9)), 0..20)) {
        let region = Region::from_boxes(boxes);
        let bytes = encode(KIND, &region).unwrap();
        prop_assert_eq!(decode::<Region>(KIND, &bytes), Ok(region));
    }

    /// Any boxes are a region or are refused, and then they are none.
    #[test]
    fn what_is_accepted_is_canonical(
        boxes in vec(([0..4u64, 0..4, 0..3], [1..5u64, 1..5, 1..4]), 0..5),
    ) {
        let boxes: Vec<Box3> = boxes.into_iter().map(|(min, max)| Box3::new(min, max)).collect();
        let canonical = Region::from_boxes(boxes.iter().copied());
        let decoded = decode::<Region>(KIND, &encode(KIND, &boxes).unwrap());
        match canonical.boxes() == boxes {
            true => prop_assert_eq!(decoded, Ok(canonical)),
            false => prop_assert!(decoded.is_err(), "{boxes:?}"),
        }
    }
}
