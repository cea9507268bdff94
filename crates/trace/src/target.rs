//! What is at the path of a trace, and how it is opened. Writes nothing.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Where a trace that several processes write goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceTarget {
    /// To this file, symbolic links followed: parts lie [beside](crate::part_of) it, and are joined.
    File(PathBuf),
    /// To what is there and no file, such as a device or a pipe: it cannot be replaced, and
    /// nothing belongs beside it. Each process opens it for itself.
    Other,
}

impl TraceTarget {
    /// What is at `path`.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        match fs::metadata(path) {
            Ok(found) if !found.is_file() => Self::Other,
            // What is not there yet is going to be a file.
            _ => Self::File(followed(path)),
        }
    }
}

/// Where symbolic links lead, also if nothing is there.
fn followed(path: &Path) -> PathBuf {
    /// As many as Linux follows.
    const MOST_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}

/// Creates or empties what is at `path`.
///
/// # Errors
/// As [`File::create`]; and if it is a pipe that nobody reads, where that would wait for a
/// reader without a word.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    // Held until the pipe is open for good, or its reader would take this for the end.
    let _open = probe(path)?;
    File::create(path)
}

/// A pipe, opened without waiting for its reader; `None` if there is something else.
#[cfg(unix)]
fn probe(path: &Path) -> io::Result<Option<File>> {
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

    if !fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()) {
        return Ok(None);
    }
    let pipe = File::options().write(true).custom_flags(libc::O_NONBLOCK).open(path);
    pipe.map(Some).map_err(|error| match error.raw_os_error() {
        Some(libc::ENXIO) => {
            io::Error::other("it is a pipe that nobody reads; start its reader before the run")
        }
        _ => error,
    })
}

#[cfg(not(unix))]
fn probe(_: &Path) -> io::Result<Option<File>> {
    Ok(None)
}
