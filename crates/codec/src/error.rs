//! What can be wrong with a recording. Knows the headers' contents, not their layout.

use std::io;
use std::path::PathBuf;

use crate::kind::RecordingKind;

/// A value that cannot be recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The value, or a part of it, refuses.
    #[error("this {kind} cannot be recorded: {what}")]
    Refused {
        /// What was to be recorded.
        kind: RecordingKind,
        /// The part, and why.
        what: String,
    },
    /// The value is larger than any recording.
    #[error(
        "this {kind} cannot be recorded: it takes {len} bytes, and a recording holds at most \
         {most}; record a part of it"
    )]
    TooLarge {
        /// What was to be recorded.
        kind: RecordingKind,
        /// Length of the body in bytes.
        len: u64,
        /// The longest body in bytes.
        most: u64,
    },
}

/// Bytes that are not the recording that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// They do not begin as a recording does.
    #[error("this is not a recording of Celerity")]
    NotARecording,
    /// A later version of Celerity made the recording.
    #[error(
        "this recording has format {found}, and this version of Celerity reads format \
         {supported}; read it with the version that made it, or a later one"
    )]
    NewerFormat {
        /// The number of the format that the recording is in.
        found: u32,
        /// The newest format that this program reads.
        supported: u32,
    },
    /// An earlier version of Celerity made the recording.
    #[error(
        "this recording has format {found}, and this version of Celerity reads format \
         {supported}; read it with the version that made it, or record it again"
    )]
    OlderFormat {
        /// The number of the format that the recording is in.
        found: u32,
        /// The newest format that this program reads.
        supported: u32,
    },
    /// It holds something else.
    #[error("this recording holds a {found}, but a {expected} is expected")]
    OtherKind {
        /// What was asked for.
        expected: RecordingKind,
        /// What the recording says that it holds.
        found: RecordingKind,
    },
    /// Nobody knows what it holds.
    #[error("this recording is damaged: there is no kind {tag} of recordings")]
    UnknownKind {
        /// What the header says.
        tag: u32,
    },
    /// It claims to be larger than any recording.
    #[error("this recording is damaged: it claims to hold {len} bytes; the most is {most}")]
    TooLarge {
        /// What the header says, in bytes.
        len: u64,
        /// The longest body in bytes.
        most: u64,
    },
    /// Its end is missing.
    #[error("this recording is cut off: {found} bytes are left of {expected}")]
    Truncated {
        /// Length of the header or body in bytes.
        expected: u64,
        /// What there is of it.
        found: u64,
    },
    /// Something follows it.
    #[error("this recording is damaged: {extra} bytes follow its end")]
    TrailingBytes {
        /// Bytes after the end.
        extra: u64,
    },
    /// Some of its bits have changed.
    #[error("this recording is damaged: its checksum is {found:08x}, but should be {expected:08x}")]
    Checksum {
        /// What the header says.
        expected: u32,
        /// That of the body.
        found: u32,
    },
    /// It was not written by Celerity, or breaks an invariant of what it holds.
    #[error("this recording holds no valid {kind}: at byte {offset}, {what}")]
    Malformed {
        /// What it should hold.
        kind: RecordingKind,
        /// How many bytes had been read, from the start of the recording.
        offset: usize,
        /// What is wrong there.
        what: String,
    },
}

/// A recording that could not be saved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// The value cannot be recorded. No file was touched.
    #[error("cannot save {}: {source}", path.display())]
    Encode {
        /// The path of the file, as it was given.
        path: PathBuf,
        /// What keeps the value from being recorded.
        source: EncodeError,
    },
    /// The file could not be written. If it existed, it is as it was.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The path of the file, as it was given.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

/// A recording that could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The path of the file, as it was given.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file is not the recording that was asked for.
    #[error("cannot load {}: {source}", path.display())]
    Decode {
        /// The path of the file, as it was given.
        path: PathBuf,
        /// What is wrong with the file's contents.
        source: DecodeError,
    },
}
