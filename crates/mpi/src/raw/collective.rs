//! MPI's non-blocking collective operations, as far as this crate needs them.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use mpi::ffi;
use mpi::ffi::{MPI_Datatype, MPI_Request};

use super::{Comm, TypedMemory, check, null_request, rank};
use crate::error::MpiError;

/// One piece of memory for each process, which MPI sends or fills.
#[derive(Clone, Debug)]
pub(crate) struct ProcessParts {
    pub(crate) base: *mut u8,
    /// Items of each.
    pub(crate) counts: Box<[c_int]>,
    /// Where each begins, in items behind the base.
    pub(crate) displacements: Box<[c_int]>,
    pub(crate) datatype: MPI_Datatype,
}

impl ProcessParts {
    /// Of so many processes, all empty but for that of `rank`.
    pub(crate) fn of_one_byte(base: *mut u8, rank: usize, processes: usize) -> Self {
        let counts = (0..processes).map(|at| c_int::from(at == rank)).collect();
        let displacements = vec![0; processes].into_boxed_slice();
        Self { base, counts, displacements, datatype: super::byte() }
    }

    pub(crate) fn are_empty(&self) -> bool {
        self.counts.iter().all(|count| *count == 0)
    }

    /// The only one, of a process or for all.
    pub(crate) fn only(&self) -> TypedMemory {
        let count = self.counts.first().copied().unwrap_or(0);
        TypedMemory { address: self.base, count, datatype: self.datatype }
    }
}

/// What stands for a process's own piece that is in place already, if this MPI is known: a macro in
/// the header of each, which bindings do not have.
pub(crate) fn in_place() -> Option<*mut u8> {
    static VALUE: OnceLock<Option<usize>> = OnceLock::new();
    let value = VALUE.get_or_init(|| {
        let mut text = [0_u8; ffi::MPI_MAX_LIBRARY_VERSION_STRING as usize + 1];
        let mut len = 0;
        let start = text.as_mut_ptr().cast::<c_char>();
        // SAFETY: the buffer is as long as MPI asks for, and a zero longer.
        check("MPI_Get_library_version", unsafe {
            ffi::MPI_Get_library_version(start, &raw mut len)
        })
        .ok()?;
        let text = CStr::from_bytes_until_nul(&text).ok()?.to_str().ok()?;
        in_place_of(text)
    });
    value.map(std::ptr::without_provenance_mut)
}

/// By what a library calls itself.
fn in_place_of(version: &str) -> Option<usize> {
    let is_one_of = |names: &[&str]| names.iter().any(|name| version.contains(name));
    if is_one_of(&["Open MPI", "Spectrum MPI"]) {
        Some(1)
    } else if is_one_of(&["MPICH", "Intel(R) MPI", "MVAPICH"]) {
        Some(usize::MAX)
    } else {
        None
    }
}

/// All of these begin an operation of all processes, which come to the same ones of a communicator in
/// the same order.
///
/// # Safety
/// What is sent stays as it is, and what is filled belongs to MPI, until the request has completed; so
/// do the lists of pieces. All processes say the same of who sends how much to whom.
impl Comm {
    /// Sends a piece to all, and receives one of each. `own` is where this process's lies, unless that
    /// is [in place](in_place).
    pub(crate) unsafe fn start_all_gather(
        self,
        own: TypedMemory,
        all: &ProcessParts,
    ) -> Result<MPI_Request, MpiError> {
        let mut request = null_request();
        // SAFETY: passed on.
        let code = unsafe {
            ffi::MPI_Iallgatherv(
                own.address.cast::<c_void>(),
                own.count,
                own.datatype,
                all.base.cast::<c_void>(),
                all.counts.as_ptr(),
                all.displacements.as_ptr(),
                all.datatype,
                self.0,
                &raw mut request,
            )
        };
        check("MPI_Iallgatherv", code).map(|()| request)
    }

    /// Sends to all what `root` has.
    pub(crate) unsafe fn start_broadcast(
        self,
        TypedMemory { address, count, datatype }: TypedMemory,
        root: usize,
    ) -> Result<MPI_Request, MpiError> {
        let mut request = null_request();
        let data = address.cast::<c_void>();
        // SAFETY: passed on.
        let code =
            unsafe { ffi::MPI_Ibcast(data, count, datatype, rank(root), self.0, &raw mut request) };
        check("MPI_Ibcast", code).map(|()| request)
    }

    /// Sends a piece to `root`, which receives one of each.
    pub(crate) unsafe fn start_gather_to(
        self,
        own: TypedMemory,
        all: &ProcessParts,
        root: usize,
    ) -> Result<MPI_Request, MpiError> {
        let mut request = null_request();
        // SAFETY: passed on.
        let code = unsafe {
            ffi::MPI_Igatherv(
                own.address.cast::<c_void>(),
                own.count,
                own.datatype,
                all.base.cast::<c_void>(),
                all.counts.as_ptr(),
                all.displacements.as_ptr(),
                all.datatype,
                rank(root),
                self.0,
                &raw mut request,
            )
        };
        check("MPI_Igatherv", code).map(|()| request)
    }

    /// Receives a piece of what `root` has, which sends one to each.
    pub(crate) unsafe fn start_scatter(
        self,
        all: &ProcessParts,
        own: TypedMemory,
        root: usize,
    ) -> Result<MPI_Request, MpiError> {
        let mut request = null_request();
        // SAFETY: passed on.
        let code = unsafe {
            ffi::MPI_Iscatterv(
                all.base.cast::<c_void>(),
                all.counts.as_ptr(),
                all.displacements.as_ptr(),
                all.datatype,
                own.address.cast::<c_void>(),
                own.count,
                own.datatype,
                rank(root),
                self.0,
                &raw mut request,
            )
        };
        check("MPI_Iscatterv", code).map(|()| request)
    }

    /// Sends a piece to each, and receives one of each.
    pub(crate) unsafe fn start_all_to_all(
        self,
        sent: &ProcessParts,
        received: &ProcessParts,
    ) -> Result<MPI_Request, MpiError> {
        let mut request = null_request();
        // SAFETY: passed on.
        let code = unsafe {
            ffi::MPI_Ialltoallv(
                sent.base.cast::<c_void>(),
                sent.counts.as_ptr(),
                sent.displacements.as_ptr(),
                sent.datatype,
                received.base.cast::<c_void>(),
                received.counts.as_ptr(),
                received.displacements.as_ptr(),
                received.datatype,
                self.0,
                &raw mut request,
            )
        };
        check("MPI_Ialltoallv", code).map(|()| request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_libraries_that_are_known_work_in_place() {
        assert_eq!(in_place_of("Open MPI v4.1.4, package: Debian OpenMPI"), Some(1));
        assert_eq!(in_place_of("MPICH Version:      4.0.2"), Some(usize::MAX));
        assert_eq!(in_place_of("Intel(R) MPI Library 2021.6"), Some(usize::MAX));
        assert_eq!(in_place_of("Some MPI of tomorrow"), None);
    }
}
