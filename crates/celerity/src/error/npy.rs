//! What can be wrong with a file of NumPy.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use celerity_tdag::Count;

/// Why a `.npy` file cannot be read or written. Each error names the file. Feature `npy`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpyError {
    /// The file is not there, or may not be opened.
    #[error("cannot open {}: {source}", .path.display())]
    Open {
        /// The path of the file, as the program gave it.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The file does not begin as files of NumPy do.
    #[error("{} is no `.npy` file that can be read: {source}", .path.display())]
    Header {
        /// The path of the file, as the program gave it.
        path: PathBuf,
        /// What the reader of the header says.
        source: io::Error,
    },
    /// The array has other elements than the buffer.
    #[error(
        "{} has an array of shape {shape:?} and type `{found}`, but elements are `{element}`, of type \
         `{expected}`: make the buffer one of other elements, or save \
         `array.astype(\"{expected}\")`",
        .path.display()
    )]
    Type {
        /// The path of the file, as the program gave it.
        path: PathBuf,
        /// The array's size in each dimension.
        shape: Vec<u64>,
        /// The array's type, as NumPy spells it.
        found: String,
        /// The type that the buffer's elements have in NumPy, without the order of bytes.
        expected: &'static str,
        /// The Rust type of the buffer's elements.
        element: &'static str,
    },
    /// The array has other dimensions than the buffer.
    #[error(
        "{} has an array of shape {shape:?}, but the buffer has {}: make them equally many, or save \
         `array.reshape(..)`",
        .path.display(),
        Count(*dims, "dimension")
    )]
    Dimensions {
        /// The path of the file, as the program gave it.
        path: PathBuf,
        /// The array's size in each dimension.
        shape: Vec<u64>,
        /// The buffer's number of dimensions.
        dims: usize,
    },
    /// The file ends before the array does.
    #[error(
        "{} has {bytes} bytes, too few for its array of shape {shape:?}; if a task of this program \
         writes it, call `barrier` first",
        .path.display()
    )]
    Length {
        /// The path of the file, as the program gave it.
        path: PathBuf,
        /// The array's size in each dimension.
        shape: Vec<u64>,
        /// Bytes that there are.
        bytes: u64,
    },
    /// A task cannot read or write its part.
    #[error("cannot {action} {}: {source}", .path.display())]
    Access {
        /// The path of the file, as the program gave it.
        path: PathBuf,
        /// What it was about to do.
        action: NpyAction,
        /// The operating system's error.
        source: io::Error,
    },
}

/// What a task does with a `.npy` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NpyAction {
    /// It reads its part.
    Read,
    /// It writes its part.
    Write,
}

impl NpyAction {
    pub(crate) fn failed(self, path: &Path, source: io::Error) -> NpyError {
        NpyError::Access { path: path.into(), action: self, source }
    }
}

impl fmt::Display for NpyAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}
