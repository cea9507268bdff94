#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod body;
mod checksum;
mod error;
mod file;
mod header;
mod kind;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use error::{DecodeError, EncodeError, LoadError, SaveError};
pub use file::{load, save};
pub use header::{FORMAT_VERSION, MAX_BODY_LEN};
pub use kind::RecordingKind;

use header::{HEADER_LEN, Header};

/// The recording of `value`: a header, then the value. O(size of the value).
///
/// # Errors
/// [`EncodeError`] if the value refuses to be serialised, or is too large.
pub fn encode<T: Serialize>(kind: RecordingKind, value: &T) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = vec![0; HEADER_LEN];
    body::write(value, &mut bytes).map_err(|what| EncodeError::Refused { kind, what })?;
    let len = (bytes.len() - HEADER_LEN) as u64;
    if len > MAX_BODY_LEN {
        return Err(EncodeError::TooLarge { kind, len, most: MAX_BODY_LEN });
    }
    let header = Header::of(kind, &bytes[HEADER_LEN..]);
    bytes[..HEADER_LEN].copy_from_slice(&header.to_bytes());
    Ok(bytes)
}

/// A recording that claims to hold what `body` says, with a header that vouches for it. For tests
/// that decode what nobody has encoded: a fuzzer does not guess checksums.
#[must_use]
pub fn seal(kind: RecordingKind, body: &[u8]) -> Vec<u8> {
    [&Header::of(kind, body).to_bytes(), body].concat()
}

/// The value of a recording of the given kind. O(length of the recording).
///
/// `bytes` may come from anywhere. What is allocated is bounded by 16 times their number, and by
/// one mebibyte for each list that is being read at the same time; a length inside of the recording
/// is never trusted.
///
/// # Errors
/// [`DecodeError`] says what is wrong with the bytes.
pub fn decode<T: DeserializeOwned>(kind: RecordingKind, bytes: &[u8]) -> Result<T, DecodeError> {
    let (header, body) = Header::split(bytes)?;
    if header.kind != kind {
        return Err(DecodeError::OtherKind { expected: kind, found: header.kind });
    }
    header.check(body)?;
    body::read(body).map_err(|fault| {
        let body::Damage { offset, what } = fault;
        DecodeError::Malformed { kind, offset: HEADER_LEN + offset, what }
    })
}
