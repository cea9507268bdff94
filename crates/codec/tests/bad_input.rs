//! Recordings that are damaged, cut off, hostile, or of another kind or time.

use std::fs;

use celerity_codec::{
    DecodeError, EncodeError, FORMAT_VERSION, LoadError, MAX_BODY_LEN, RecordingKind, SaveError,
    decode, encode, load, save,
};
use proptest::prelude::*;
use serde::{Deserialize, Serialize, Serializer};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Step {
    Wait,
    Fill { name: String, values: Vec<u64> },
    Nested(Vec<Vec<Step>>),
    Maybe(Option<[u32; 3]>),
}

fn sample() -> Vec<Step> {
    let fill = Step::Fill { name: "fill".into(), values: vec![1, 2, 3] };
    vec![
        Step::Wait,
        fill.clone(),
        Step::Nested(vec![vec![fill], vec![]]),
        Step::Maybe(Some([7; 3])),
    ]
}

fn decoded(bytes: &[u8]) -> Result<Vec<Step>, DecodeError> {
    decode(RecordingKind::Program, bytes)
}

/// The sample's recording with a field of the header replaced.
fn with_header(at: usize, field: &[u8]) -> Vec<u8> {
    let mut bytes = encode(RecordingKind::Program, &sample()).unwrap();
    bytes[at..at + field.len()].copy_from_slice(field);
    bytes
}

/// A body that begins with the given lengths, behind a header that vouches for it.
///
/// The recording of a list of words is their number, then the words; what follows the number is
/// read as something else by the tests.
fn hostile(words: &[u64]) -> Vec<u8> {
    let mut bytes = encode(RecordingKind::Program, &words[1..].to_vec()).unwrap();
    bytes[28..36].copy_from_slice(&words[0].to_le_bytes());
    reseal(&mut bytes);
    bytes
}

/// Corrects the checksum after a change of the body, without the crate's help.
fn reseal(bytes: &mut [u8]) {
    let mut crc = !0u32;
    for byte in &bytes[28..] {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 };
        }
    }
    bytes[24..28].copy_from_slice(&(!crc).to_le_bytes());
}

#[test]
fn what_was_recorded_comes_back() {
    for kind in RecordingKind::ALL {
        let bytes = encode(kind, &sample()).unwrap();
        assert_eq!(decode::<Vec<Step>>(kind, &bytes).unwrap(), sample());
    }
}

#[test]
fn other_files_are_no_recordings() {
    for bytes in [&b""[..], b"\x89CEL", b"#!/bin/sh\n", &[0; 64]] {
        assert_eq!(decoded(bytes), Err(DecodeError::NotARecording));
    }
}

#[test]
fn another_version_names_both() {
    let newer = decoded(&with_header(8, &(FORMAT_VERSION + 6).to_le_bytes())).unwrap_err();
    let supported = FORMAT_VERSION;
    assert_eq!(newer, DecodeError::NewerFormat { found: FORMAT_VERSION + 6, supported });
    let text = newer.to_string();
    let named = |format: u32| text.contains(&format!("format {format}"));
    assert!(named(FORMAT_VERSION + 6) && named(FORMAT_VERSION), "{text}");
    assert!(text.contains("read it with"), "says what to do: {text}");
    let older = decoded(&with_header(8, &[0; 4])).unwrap_err();
    assert_eq!(older, DecodeError::OlderFormat { found: 0, supported });
}

#[test]
fn a_newer_format_may_change_everything_after_its_version() {
    const NEXT: u32 = FORMAT_VERSION + 1;
    let mut bytes = with_header(8, &NEXT.to_le_bytes());
    bytes.truncate(12);
    assert!(matches!(decoded(&bytes), Err(DecodeError::NewerFormat { found: NEXT, .. })));
}

#[test]
fn another_kind_names_both() {
    let bytes = encode(RecordingKind::CommandGraph, &sample()).unwrap();
    let error = decoded(&bytes).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("command graph") && text.contains("program"), "{text}");
    let unknown = decoded(&with_header(12, &77u32.to_le_bytes()));
    assert_eq!(unknown, Err(DecodeError::UnknownKind { tag: 77 }));
}

#[test]
fn every_truncation_is_noticed() {
    let bytes = encode(RecordingKind::Program, &sample()).unwrap();
    for len in 0..bytes.len() {
        let error = decoded(&bytes[..len]).unwrap_err();
        let expected = match len {
            ..8 => matches!(error, DecodeError::NotARecording),
            _ => matches!(error, DecodeError::Truncated { .. }),
        };
        assert!(expected, "{len} bytes: {error}");
    }
}

#[test]
fn trailing_bytes_are_an_error() {
    let mut bytes = encode(RecordingKind::Program, &sample()).unwrap();
    bytes.extend([0; 5]);
    assert_eq!(decoded(&bytes), Err(DecodeError::TrailingBytes { extra: 5 }));
    // A value that ends before its body does.
    let error = decoded(&hostile(&[0, 1, 2])).unwrap_err();
    assert!(matches!(error, DecodeError::Malformed { offset: 36, .. }), "{error}");
}

#[test]
fn every_flipped_bit_is_noticed() {
    let bytes = encode(RecordingKind::Program, &sample()).unwrap();
    for bit in 0..8 * bytes.len() {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let error = decoded(&damaged).unwrap_err();
        if bit / 8 >= 28 {
            assert!(matches!(error, DecodeError::Checksum { .. }), "bit {bit}: {error}");
        }
    }
}

#[test]
fn a_length_that_no_machine_has_is_refused() {
    let error = decoded(&with_header(16, &(1u64 << 60).to_le_bytes())).unwrap_err();
    assert_eq!(error, DecodeError::TooLarge { len: 1 << 60, most: MAX_BODY_LEN });
    let error = decoded(&with_header(16, &(1u64 << 31).to_le_bytes())).unwrap_err();
    assert!(matches!(error, DecodeError::Truncated { expected: 0x8000_0000, .. }), "{error}");
}

/// Lengths inside of the body, of lists, lists of lists and texts. A decoder that trusted one of
/// these would end the process.
#[test]
fn hostile_lengths_are_refused() {
    for len in [4, 1 << 20, 1 << 40, 1 << 60, u64::MAX - 7, u64::MAX] {
        let malformed = |error: DecodeError| {
            assert!(matches!(error, DecodeError::Malformed { .. }), "{len}: {error}");
        };
        let list = hostile(&[len, 1, 2]);
        malformed(decode::<Vec<u64>>(RecordingKind::Program, &list).unwrap_err());
        malformed(decode::<Vec<[u64; 32]>>(RecordingKind::Program, &list).unwrap_err());
        let inner = hostile(&[2, len, 1]);
        malformed(decode::<Vec<Vec<u64>>>(RecordingKind::Program, &inner).unwrap_err());
        malformed(decode::<Vec<String>>(RecordingKind::Program, &inner).unwrap_err());
        malformed(decode::<Vec<Box<str>>>(RecordingKind::Program, &inner).unwrap_err());
        malformed(decoded(&inner).unwrap_err());
    }
}

#[test]
fn a_malformed_value_names_the_place() {
    let error = decode::<Vec<bool>>(RecordingKind::Program, &hostile(&[1, 9])).unwrap_err();
    let DecodeError::Malformed { kind: RecordingKind::Program, offset, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(offset, 28 + 8 + 1, "behind the byte that is no bool");
    let text =
        decode::<Vec<String>>(RecordingKind::Program, &hostile(&[1, 2, 0xFFFF])).unwrap_err();
    assert!(text.to_string().contains("at byte 46"), "{text}");
}

/// Refuses, as a closure would.
struct Closure;

impl Serialize for Closure {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("\"f\" is a closure"))
    }
}

#[test]
fn what_cannot_be_recorded_says_why() {
    let error = encode(RecordingKind::TaskGraph, &[Closure]).unwrap_err();
    let what = "\"f\" is a closure".to_owned();
    assert_eq!(error, EncodeError::Refused { kind: RecordingKind::TaskGraph, what });
    assert!(error.to_string().contains("task graph"), "{error}");
}

#[test]
fn files_are_replaced_at_once_or_not_at_all() {
    let folder = std::env::temp_dir().join(format!("celerity-codec-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("sample.rec");
    save(&path, RecordingKind::Program, &sample()).unwrap();
    assert_eq!(load::<Vec<Step>>(&path, RecordingKind::Program).unwrap(), sample());
    let refused = save(&path, RecordingKind::Program, &Closure).unwrap_err();
    assert!(matches!(refused, SaveError::Encode { .. }), "{refused}");
    assert_eq!(load::<Vec<Step>>(&path, RecordingKind::Program).unwrap(), sample());
    let other = load::<Vec<Step>>(&path, RecordingKind::TaskGraph).unwrap_err();
    assert!(matches!(other, LoadError::Decode { .. }));
    assert!(other.to_string().contains("sample.rec"), "{other}");
    let files: Vec<_> = fs::read_dir(&folder).unwrap().collect();
    assert_eq!(files.len(), 1, "no draft is left: {files:?}");
    fs::remove_dir_all(&folder).unwrap();
    let missing = load::<Vec<Step>>(&path, RecordingKind::Program).unwrap_err();
    assert!(matches!(missing, LoadError::Read { .. }), "{missing}");
    let nowhere = save(&path, RecordingKind::Program, &sample()).unwrap_err();
    assert!(matches!(nowhere, SaveError::Write { .. }), "{nowhere}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Behind a checksum that vouches for them, any bytes give a value or an error.
    #[test]
    fn any_body_gives_a_value_or_an_error(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = encode(RecordingKind::Program, &sample()).unwrap();
        bytes.truncate(28);
        bytes[16..24].copy_from_slice(&(body.len() as u64).to_le_bytes());
        bytes.extend(body);
        reseal(&mut bytes);
        if let Ok(steps) = decoded(&bytes) {
            prop_assert_eq!(encode(RecordingKind::Program, &steps).unwrap(), bytes);
        }
    }

    /// The same, one damaged byte away from what is valid.
    #[test]
    fn any_damage_gives_a_value_or_an_error(at in 28usize..100, byte in any::<u8>()) {
        let mut bytes = encode(RecordingKind::Program, &sample()).unwrap();
        let at = at.min(bytes.len() - 1);
        bytes[at] = byte;
        reseal(&mut bytes);
        if let Ok(steps) = decoded(&bytes) {
            prop_assert_eq!(encode(RecordingKind::Program, &steps).unwrap(), bytes);
        }
    }
}
