//! What is at the path of a trace, Opens nothing.

use std::fs;
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
