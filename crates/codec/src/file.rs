//! Recordings as files. Knows no format.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{LoadError, SaveError};
use crate::kind::RecordingKind;

/// Writes the recording of `value`. A reader finds the whole recording, or what was there before:
/// it is written beside `path` and moved there.
///
/// # Errors
/// [`SaveError`] names the file.
pub fn save<T: Serialize>(path: &Path, kind: RecordingKind, value: &T) -> Result<(), SaveError> {
    let bytes = crate::encode(kind, value)
        .map_err(|source| SaveError::Encode { path: path.to_owned(), source })?;
    replace(path, &bytes).map_err(|source| SaveError::Write { path: path.to_owned(), source })
}

/// Reads a recording.
///
/// # Errors
/// [`LoadError`] names the file.
pub fn load<T: DeserializeOwned>(path: &Path, kind: RecordingKind) -> Result<T, LoadError> {
    let bytes =
        fs::read(path).map_err(|source| LoadError::Read { path: path.to_owned(), source })?;
    crate::decode(kind, &bytes)
        .map_err(|source| LoadError::Decode { path: path.to_owned(), source })
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = draft_of(path);
    let written = write_new(&draft, bytes).and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&draft);
    }
    written
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// A name in the same folder, so that moving is atomic, that nobody else uses.
fn draft_of(path: &Path) -> PathBuf {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    let draft = DRAFTS.fetch_add(1, Ordering::Relaxed);
    name.push(format!(".{}.{draft}.draft", std::process::id()));
    path.with_file_name(name)
}
