//! MPI as a property of the process: initialised once, finalised when the process
//! ends. The only global state of this crate, because it is MPI's.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::fmt;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use mpi::ffi;

use crate::error::StartError;
use crate::raw::check;

/// Which threads of a process may call MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThreadLevel {
    /// There is only one thread.
    Single,
    /// The one that has initialised MPI.
    Funneled,
    /// All, one at a time.
    Serialized,
    /// All at the same time.
    Multiple,
}

impl fmt::Display for ThreadLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Single => "MPI_THREAD_SINGLE",
            Self::Funneled => "MPI_THREAD_FUNNELED",
            Self::Serialized => "MPI_THREAD_SERIALIZED",
            Self::Multiple => "MPI_THREAD_MULTIPLE",
        })
    }
}

/// A node is lost, or MPI does not answer: no more calls.
static LOST: AtomicBool = AtomicBool::new(false);
static IN_USE: AtomicBool = AtomicBool::new(false);
/// Held while MPI is initialised.
static INITIALISING: Mutex<()> = Mutex::new(());

/// The right of one communicator to call MPI.
#[derive(Debug)]
pub(crate) struct Access(());

impl Access {
    /// Initialises MPI if nobody has, and checks that it allows calls from the
    /// threads that make them.
    ///
    /// # Errors
    /// If it does not, if it is in use, or cannot be used any more.
    pub(crate) fn new(required: ThreadLevel) -> Result<Self, StartError> {
        if is_lost() {
            return Err(StartError::Lost);
        }
        if IN_USE.swap(true, Ordering::AcqRel) {
            return Err(StartError::InUse);
        }
        // From here on, dropping it gives the right back.
        let access = Self(());
        initialise(required).map(|()| access)
    }

    /// Gives MPI up, for this process and for ever: what is open stays open, and
    /// MPI is not finalised at the end.
    pub(crate) fn lose(&self) {
        LOST.store(true, Ordering::Release);
    }
}

impl Drop for Access {
    fn drop(&mut self) {
        IN_USE.store(false, Ordering::Release);
    }
}

/// Whether this process has given MPI up. It then must not call MPI, and exits
/// without finalising it.
#[must_use]
pub fn is_lost() -> bool {
    LOST.load(Ordering::Acquire)
}

pub(crate) fn initialise(required: ThreadLevel) -> Result<(), StartError> {
    let _guard = INITIALISING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let by_user = initialised()?;
    if !by_user {
        let mut granted = 0;
        let wanted = raw_level(required);
        // SAFETY: MPI has not been initialised; without arguments, it leaves the
        // command line alone.
        let code = unsafe {
            ffi::MPI_Init_thread(ptr::null_mut(), ptr::null_mut(), wanted, &raw mut granted)
        };
        check("MPI_Init_thread", code)?;
        finalise_at_exit()?;
    }
    let granted = granted_level()?;
    match granted >= required {
        true => Ok(()),
        false => Err(StartError::Threads { required, granted, by_user }),
    }
}

/// Whether MPI has been initialised.
fn initialised() -> Result<bool, StartError> {
    let (mut initialised, mut finalised) = (0, 0);
    // SAFETY: both functions may be called at any time.
    let codes = unsafe {
        (ffi::MPI_Initialized(&raw mut initialised), ffi::MPI_Finalized(&raw mut finalised))
    };
    check("MPI_Initialized", codes.0)?;
    check("MPI_Finalized", codes.1)?;
    match finalised {
        0 => Ok(initialised != 0),
        _ => Err(StartError::Finalised),
    }
}

fn granted_level() -> Result<ThreadLevel, StartError> {
    let mut granted = 0;
    // SAFETY: MPI is initialised.
    check("MPI_Query_thread", unsafe { ffi::MPI_Query_thread(&raw mut granted) })?;
    let levels = [ThreadLevel::Multiple, ThreadLevel::Serialized, ThreadLevel::Funneled];
    let found = levels.into_iter().find(|level| granted >= raw_level(*level));
    Ok(found.unwrap_or(ThreadLevel::Single))
}

fn raw_level(level: ThreadLevel) -> c_int {
    // SAFETY: constants of the MPI library.
    unsafe {
        match level {
            ThreadLevel::Single => ffi::RSMPI_THREAD_SINGLE,
            ThreadLevel::Funneled => ffi::RSMPI_THREAD_FUNNELED,
            ThreadLevel::Serialized => ffi::RSMPI_THREAD_SERIALIZED,
            ThreadLevel::Multiple => ffi::RSMPI_THREAD_MULTIPLE,
        }
    }
}

/// A launcher takes a process that exits without finalising MPI for a crash. But
/// MPI can be finalised only once, and runs may follow one another.
fn finalise_at_exit() -> Result<(), StartError> {
    unsafe extern "C" {
        fn atexit(function: extern "C" fn()) -> c_int;
    }
    // What an MPI call would do by default ends the process, so errors of calls
    // that belong to no communicator of ours are reported as well.
    // SAFETY: MPI is initialised, and by us: nobody else has chosen a handler.
    let code =
        unsafe { ffi::MPI_Comm_set_errhandler(ffi::RSMPI_COMM_WORLD, ffi::RSMPI_ERRORS_RETURN) };
    check("MPI_Comm_set_errhandler", code)?;
    // SAFETY: `finalise` is a function for the rest of the process.
    let refused = unsafe { atexit(finalise) };
    debug_assert_eq!(refused, 0, "the C library takes at least 32 exit handlers");
    Ok(())
}

extern "C" fn finalise() {
    let mut finalised = 0;
    // With a run still under way, the process ends in the middle of it.
    if is_lost() || IN_USE.load(Ordering::Acquire) {
        return;
    }
    // SAFETY: MPI is initialised; nobody else calls it, as no communicator is in
    // use. Its outcome changes nothing any more.
    unsafe {
        ffi::MPI_Finalized(&raw mut finalised);
        if finalised == 0 {
            ffi::MPI_Finalize();
        }
    }
}
