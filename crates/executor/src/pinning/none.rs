//! A system on which threads cannot be pinned.

use std::io;

/// Nothing is known of threads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ThreadId;

pub(crate) fn this_thread() -> ThreadId {
    ThreadId
}

pub(super) fn cores_of(_: ThreadId) -> io::Result<Vec<usize>> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn online() -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn keep_on(_: ThreadId, _: &[usize]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
