//! Why a project cannot be made.

use std::io;
use std::path::PathBuf;

/// Why a project cannot be made. What has been written of it is removed again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NewError {
    /// A file or folder of that name is there already; it is left as it is.
    #[error("{} exists already: choose another name, or remove it", path.display())]
    Exists {
        /// Its path.
        path: PathBuf,
    },
    /// What is to be Celerity's repository has no crate of that name.
    #[error("{} is not there: `--celerity` takes the folder of Celerity's repository", path.display())]
    NoCelerity {
        /// The manifest that was looked for.
        path: PathBuf,
    },
    /// A file or folder of the project cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Its path.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}
