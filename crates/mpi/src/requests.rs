//! The table of open MPI requests: tested all at once, without allocation in the
//! steady state. Knows nothing of what they are for.
#![allow(unsafe_code)]

use std::ffi::c_int;

use mpi::ffi::{MPI_Request, MPI_Status};

use crate::error::MpiError;
use crate::raw;

/// Open requests, each with what it is for.
pub(crate) struct Requests<T> {
    handles: Vec<MPI_Request>,
    what: Vec<T>,
    /// Scratch space of the tests, as long as `handles`.
    positions: Vec<c_int>,
    statuses: Vec<MPI_Status>,
}

impl<T: Copy> Requests<T> {
    pub(crate) fn new() -> Self {
        Self { handles: Vec::new(), what: Vec::new(), positions: Vec::new(), statuses: Vec::new() }
    }

    pub(crate) fn add(&mut self, handle: MPI_Request, what: T) {
        self.handles.push(handle);
        self.what.push(what);
        self.positions.push(0);
        // SAFETY: plain data, which MPI overwrites.
        self.statuses.push(unsafe { std::mem::zeroed() });
    }

    pub(crate) fn len(&self) -> usize {
        self.handles.len()
    }

    /// What all of them are for.
    pub(crate) fn open(&self) -> &[T] {
        &self.what
    }

    /// Lets MPI work, appends what has ended to `ended`, and forgets it.
    /// O(open requests).
    pub(crate) fn poll(&mut self, ended: &mut Vec<(T, MPI_Status)>) -> Result<(), MpiError> {
        let Self { handles, what, positions, statuses } = self;
        let count = raw::test_some(handles, positions, statuses)?;
        // Mostly so.
        if count == 0 {
            return Ok(());
        }
        let completed = positions[..count].iter().zip(statuses.iter());
        ended.extend(completed.map(|(at, status)| (what[position(*at)], *status)));
        // From the back, so that positions stay right.
        positions[..count].sort_unstable();
        for index in (0..count).rev() {
            let at = position(positions[index]);
            handles.swap_remove(at);
            what.swap_remove(at);
            positions.pop();
            statuses.pop();
        }
        Ok(())
    }

    /// Takes all out.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = (MPI_Request, T)> {
        self.positions.clear();
        self.statuses.clear();
        std::mem::take(&mut self.handles).into_iter().zip(std::mem::take(&mut self.what))
    }
}

fn position(at: c_int) -> usize {
    usize::try_from(at).expect("positions are not negative")
}
