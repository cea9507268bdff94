//! MPI as a property of the process: initialised once, finalised when the process
//! ends. Global state, because it is MPI's; knows nothing of other processes.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use mpi::ffi;

use crate::deadline::Deadline;
use crate::error::StartError;
use crate::lost::is_lost;
use crate::polling::FINALISE_BEAT;
use crate::raw::{Comm, check};
use crate::thread_level::ThreadLevel;

static IN_USE: AtomicBool = AtomicBool::new(false);
/// Who has initialised MPI; held while it is initialised.
static KEEPER: Mutex<Option<Keeper>> = Mutex::new(None);

/// The right of one communicator to call MPI.
#[derive(Debug)]
pub(crate) struct Permit(());

impl Permit {
    /// # Errors
    /// If MPI is in use.
    pub(crate) fn new() -> Result<Self, StartError> {
        match IN_USE.swap(true, Ordering::AcqRel) {
            true => Err(StartError::InUse),
            // From here on, dropping it gives the right back.
            false => Ok(Self(())),
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        IN_USE.store(false, Ordering::Release);
    }
}

/// Whether a communicator has the right to call MPI.
pub(crate) fn is_in_use() -> bool {
    IN_USE.load(Ordering::Acquire)
}

/// Whether this crate has initialised MPI, and is to finalise it.
pub(crate) fn is_ours() -> bool {
    keeper().is_some()
}

/// Initialises MPI unless it is, and checks that it may be called as required.
///
/// # Errors
/// If it may not, or if it is not done in time, as when another process does not come; then
/// MPI is [lost](is_lost).
pub(crate) fn initialise(required: ThreadLevel, deadline: &Deadline) -> Result<(), StartError> {
    let mut keeper = keeper();
    let by_user = initialised()? && keeper.is_none();
    if !by_user && keeper.is_none() {
        *keeper = Some(Keeper::initialise(required, deadline)?);
    }
    let granted = granted_level()?;
    match granted >= required {
        true => Ok(()),
        false => Err(StartError::Threads { required, granted, by_user }),
    }
}

/// Finalises MPI, if that is up to this crate, unless it takes until `gives_up` says so.
pub(crate) fn finalise(gives_up: impl Fn() -> bool) {
    if let Some(keeper) = keeper().as_ref().filter(|_| !is_lost()) {
        keeper.finalise(gives_up);
    }
}

fn keeper() -> MutexGuard<'static, Option<Keeper>> {
    KEEPER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread that initialises MPI and finalises it: both may wait for other processes for
/// ever, and whoever wants it does not. That it is the same thread is what MPI asks for.
struct Keeper {
    stage: Arc<(Mutex<Stage>, Condvar)>,
}

/// What the thread is at.
#[derive(Clone, Debug, PartialEq)]
enum Stage {
    Initialising,
    Initialised(Result<(), StartError>),
    Finalising,
    Finalised,
}

impl Keeper {
    fn initialise(required: ThreadLevel, deadline: &Deadline) -> Result<Self, StartError> {
        let stage = Arc::new((Mutex::new(Stage::Initialising), Condvar::new()));
        let keeper = Self { stage: stage.clone() };
        let thread = thread::Builder::new().name("celerity-mpi".to_owned());
        let started = thread.spawn(move || {
            let keeper = Self { stage };
            let outcome = init(required);
            let failed = outcome.is_err();
            keeper.enter(Stage::Initialised(outcome));
            if !failed {
                keeper.wait_while(None, |stage| *stage != Stage::Finalising);
                finalise_now();
                keeper.enter(Stage::Finalised);
            }
        });
        if started.is_err() {
            // Then it is done here: others must hear of what this process lacks.
            keeper.enter(Stage::Initialised(init(required)));
        }
        let stage = keeper.wait_while(Some(deadline.left()), |stage| *stage == Stage::Initialising);
        match stage {
            Stage::Initialised(outcome) => outcome.map(|()| keeper),
            _ => Err(deadline.missed("MPI_Init")),
        }
    }

    fn finalise(&self, gives_up: impl Fn() -> bool) {
        self.enter(Stage::Finalising);
        while !gives_up()
            && self.wait_while(Some(FINALISE_BEAT), |stage| *stage == Stage::Finalising)
                == Stage::Finalising
        {}
    }

    fn enter(&self, stage: Stage) {
        *self.lock() = stage;
        self.stage.1.notify_all();
    }

    /// Waits while something holds, for so long at most; returns what is the case then.
    fn wait_while(&self, longest: Option<Duration>, holds: impl Fn(&mut Stage) -> bool) -> Stage {
        let (stage, changed) = (self.lock(), &self.stage.1);
        let stage = match longest {
            None => changed.wait_while(stage, |stage| holds(stage)),
            Some(longest) => changed
                .wait_timeout_while(stage, longest, |stage| holds(stage))
                .map(|(stage, _)| stage)
                .map_err(|error| PoisonError::new(error.into_inner().0)),
        };
        stage.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.stage.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn init(required: ThreadLevel) -> Result<(), StartError> {
    let (mut granted, wanted) = (0, raw_level(required));
    // SAFETY: MPI has not been initialised; without arguments, it leaves the
    // command line alone.
    let code =
        unsafe { ffi::MPI_Init_thread(ptr::null_mut(), ptr::null_mut(), wanted, &raw mut granted) };
    check("MPI_Init_thread", code)?;
    // What an MPI call would do by default ends the process, so errors of calls
    // that belong to no communicator of ours are reported as well. Nobody else has chosen a
    // handler.
    Ok(Comm::world().return_errors()?)
}

fn finalise_now() {
    let mut finalised = 0;
    // SAFETY: MPI is initialised; nobody else calls it, as no communicator is in
    // use. Its outcome changes nothing any more.
    unsafe {
        ffi::MPI_Finalized(&raw mut finalised);
        if finalised == 0 {
            ffi::MPI_Finalize();
        }
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

/// Which threads may call MPI; none but one if MPI does not tell.
pub(crate) fn granted() -> ThreadLevel {
    granted_level().unwrap_or(ThreadLevel::Single)
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
