//! Why a trace could not be written. Knows nothing of what is in one.

use std::io;
use std::path::PathBuf;

/// A trace that is not there, or not complete.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file cannot be made.
    #[error("cannot create the trace {}: {source}", path.display())]
    Create {
        /// The path of the file, as it was given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not complete.
    #[error("cannot write the trace {}: {source}", path.display())]
    Write {
        /// The path of the file, as it was given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A part of a merged trace cannot be read, or not to its end.
    #[error("the trace is without what cannot be read of {}: {source}", path.display())]
    Read {
        /// The path of the part that cannot be read.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file that is to be merged is no part of a trace.
    #[error(
        "the trace is without {}, which does not say when it begins, as if its process had died early",
        path.display()
    )]
    NoPart {
        /// The path of the file, as it was given.
        path: PathBuf,
    },
}
