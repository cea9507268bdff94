//! What precedes the body of a recording: enough to refuse, by name, everything that is not one.
//! Knows no body's format.
//!
//! | bytes | content |
//! | --- | --- |
//! | 0..8 | magic: `89 43 45 4c 52 45 43 0a`, that is `\x89CELREC\n` |
//! | 8..12 | format version |
//! | 12..16 | kind |
//! | 16..24 | length of the body in bytes |
//! | 24..28 | CRC-32 of the body |
//! | 28..  | the body |
//!
//! Numbers are little-endian. The first byte is not ASCII, so that no text file passes, and the
//! last byte of the magic is changed by whoever converts line ends.

use crate::checksum::crc32;
use crate::error::DecodeError;
use crate::kind::RecordingKind;

/// The format that this version writes, and the only one that it reads. Raised with every change
/// of the header, of the body's encoding or of a recorded type.
pub const FORMAT_VERSION: u32 = 9;

/// The longest body, in bytes: 4 GiB.
pub const MAX_BODY_LEN: u64 = 1 << 32;

/// Bytes before the body.
pub(crate) const HEADER_LEN: usize = 28;

const MAGIC: [u8; 8] = *b"\x89CELREC\n";

/// The header of a recording of the format [`FORMAT_VERSION`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: RecordingKind,
    /// Of the body, in bytes.
    pub(crate) len: u64,
    /// CRC-32 of the body.
    checksum: u32,
}

impl Header {
    /// The header for a body.
    pub(crate) fn of(kind: RecordingKind, body: &[u8]) -> Self {
        Self { kind, len: body.len() as u64, checksum: crc32(body) }
    }

    pub(crate) fn to_bytes(self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.kind.tag().to_le_bytes());
        bytes[16..24].copy_from_slice(&self.len.to_le_bytes());
        bytes[24..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    /// Reads the header and hands out what follows it, unchecked.
    ///
    /// # Errors
    /// The version is judged before anything that another version may have laid out differently.
    pub(crate) fn split(bytes: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let mut rest = bytes;
        if take(&mut rest, bytes).map_err(|_| DecodeError::NotARecording)? != MAGIC {
            return Err(DecodeError::NotARecording);
        }
        check_version(u32::from_le_bytes(take(&mut rest, bytes)?))?;
        let tag = u32::from_le_bytes(take(&mut rest, bytes)?);
        let len = u64::from_le_bytes(take(&mut rest, bytes)?);
        let checksum = u32::from_le_bytes(take(&mut rest, bytes)?);
        let kind = RecordingKind::ALL.into_iter().find(|kind| kind.tag() == tag);
        let kind = kind.ok_or(DecodeError::UnknownKind { tag })?;
        Ok((Self { kind, len, checksum }, rest))
    }

    /// Whether `body` is what the header announces.
    pub(crate) fn check(&self, body: &[u8]) -> Result<(), DecodeError> {
        let found = body.len() as u64;
        if self.len > MAX_BODY_LEN {
            return Err(DecodeError::TooLarge { len: self.len, most: MAX_BODY_LEN });
        }
        if found < self.len {
            return Err(DecodeError::Truncated { expected: self.len, found });
        }
        if found > self.len {
            return Err(DecodeError::TrailingBytes { extra: found - self.len });
        }
        match crc32(body) {
            sum if sum == self.checksum => Ok(()),
            sum => Err(DecodeError::Checksum { expected: self.checksum, found: sum }),
        }
    }
}

fn check_version(found: u32) -> Result<(), DecodeError> {
    match found {
        FORMAT_VERSION => Ok(()),
        newer if newer > FORMAT_VERSION => {
            Err(DecodeError::NewerFormat { found, supported: FORMAT_VERSION })
        }
        _ => Err(DecodeError::OlderFormat { found, supported: FORMAT_VERSION }),
    }
}

/// The next `N` bytes of a header that begins `whole`.
fn take<const N: usize>(rest: &mut &[u8], whole: &[u8]) -> Result<[u8; N], DecodeError> {
    let (taken, left) = rest
        .split_first_chunk()
        .ok_or(DecodeError::Truncated { expected: HEADER_LEN as u64, found: whole.len() as u64 })?;
    *rest = left;
    Ok(*taken)
}
