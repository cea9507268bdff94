//! Files and folders, with errors that name them.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::error::Error;

/// The text of a file.
///
/// # Errors
/// [`Error::Read`] if it is not there, or no text.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// Makes a file of a text, or replaces what is in it.
///
/// # Errors
/// [`Error::Write`] if that cannot be done, as in a folder that is not there.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// Removes a folder, if it is there.
///
/// # Errors
/// [`Error::Write`] if it is there, and stays.
pub(crate) fn remove(folder: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(folder) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            Err(Error::Write { path: folder.to_owned(), source })
        }
        _ => Ok(()),
    }
}
