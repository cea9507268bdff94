//! A system without network namespaces.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

pub(super) fn enter(_namespace: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(in super::super) fn tap(_name: &str) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(in super::super) fn readable(_file: &File, _most: Option<Duration>) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}
