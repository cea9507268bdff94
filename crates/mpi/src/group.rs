//! Communicators of MPI for what programs do with it beside Celerity: one per collective group of
//! a run, made when a task of the group first asks. Owns their handles and who may use them; who
//! runs the tasks, and in which order, is not its business.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use mpi::topology::SimpleCommunicator;
use mpi::traits::FromRaw;

use crate::error::MpiError;
use crate::lost;
use crate::process;
use crate::raw::Comm;
use crate::session::run_under_way;
use crate::thread_level::ThreadLevel;

/// The communicator of a collective group, of the processes of all nodes: a
/// [`SimpleCommunicator`] that is Celerity's to free.
///
/// Rank `n` is node `n`. Errors of calls are returned, not fatal.
pub struct MpiGroup {
    communicator: ManuallyDrop<SimpleCommunicator>,
    _presence: Presence,
}

/// Why a task gets no communicator of MPI.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MpiGroupError {
    /// There is no MPI.
    #[error(
        "the nodes of this run are not MPI processes; start the program with an MPI launcher, or \
         use `communicator()`, which works everywhere"
    )]
    NoMpi,
    /// MPI does not allow calls from this thread while Celerity makes its own.
    #[error(
        "MPI grants {granted}, but tasks that call it beside Celerity need MPI_THREAD_MULTIPLE: \
         set CELERITY_MPI_THREAD_MULTIPLE=on (or `Config::mpi_thread_multiple`) for the first run \
         of the process, or call MPI_Init_thread with that level before"
    )]
    Threads {
        /// The level of thread support that MPI grants.
        granted: ThreadLevel,
    },
    /// The run has lost a node.
    #[error("MPI cannot be used any more, since a node was lost")]
    Lost,
    /// The run has failed, so that others do not come.
    #[error(
        "the run has failed on another node: what waits in MPI now waits for nodes that do not come"
    )]
    RunFailed,
    /// An MPI call failed.
    #[error(transparent)]
    Call(#[from] MpiError),
}

/// Those that have been made, by run and group. They are kept until MPI is finalised: to free one
/// is collective, and a run may end while others do not come.
static MADE: Mutex<BTreeMap<(u64, u16), Comm>> = Mutex::new(BTreeMap::new());

/// Who may wait in MPI, and for which runs nobody shall any more.
static WAITERS: Mutex<Waiters> = Mutex::new(Waiters { present: BTreeMap::new(), failed: None });

struct Waiters {
    /// By run: handles in use, and calls for one.
    present: BTreeMap<u64, usize>,
    /// The newest run that has failed.
    failed: Option<u64>,
}

/// Somebody who may wait in MPI.
struct Presence {
    run: u64,
}

impl Presence {
    /// In a run, unless it has failed: whoever comes then waits for nodes that do not.
    fn of(run: u64) -> Result<Self, MpiGroupError> {
        let mut waiters = waiters();
        if waiters.failed == Some(run) {
            return Err(MpiGroupError::RunFailed);
        }
        *waiters.present.entry(run).or_default() += 1;
        Ok(Self { run })
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let mut waiters = waiters();
        if let Some(here) = waiters.present.get_mut(&self.run) {
            *here -= 1;
            if *here == 0 {
                waiters.present.remove(&self.run);
            }
        }
    }
}

fn waiters() -> MutexGuard<'static, Waiters> {
    WAITERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The communicator of this collective group of the run that is under way, for as long as one of
/// its tasks runs. The first call of a run is collective: all nodes make it in the same task.
/// Later ones cost a look at a table.
///
/// # Errors
/// [`MpiGroupError`].
pub fn group_communicator(group: u16) -> Result<MpiGroup, MpiGroupError> {
    let run = run_under_way().ok_or(MpiGroupError::NoMpi)?;
    if lost::is_lost() {
        return Err(MpiGroupError::Lost);
    }
    let granted = process::granted();
    if granted < ThreadLevel::Multiple {
        return Err(MpiGroupError::Threads { granted });
    }
    // From here on: to make one waits for the others, too.
    let presence = Presence::of(run)?;
    let made = || MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let known = made().get(&(run, group)).copied();
    let communicator = match known {
        Some(communicator) => communicator,
        None => {
            // Without the lock: another group may be at the same, and this one waits for peers.
            // Tags tell groups apart; tasks of one group come one after another.
            let communicator = Comm::world().duplicate_as_group(c_int::from(group))?;
            communicator.return_errors()?;
            made().insert((run, group), communicator);
            communicator
        }
    };
    // SAFETY: it is alive, no inter-communicator and none of MPI's own; it is not dropped as
    // one, so that nobody frees it.
    let communicator = unsafe { SimpleCommunicator::from_raw(communicator.raw()) };
    Ok(MpiGroup { communicator: ManuallyDrop::new(communicator), _presence: presence })
}

/// The run that is under way has failed. Who waits in MPI for a node that does not come cannot be woken: if that is so
/// for `patience`, all processes are ended. Nobody begins to wait from now on.
pub(crate) fn run_has_failed(error: &str, patience: Duration) {
    let Some(run) = run_under_way() else { return };
    let is_waited = {
        let mut waiters = waiters();
        waiters.failed = Some(run);
        waiters.present.contains_key(&run)
    };
    if !is_waited {
        return;
    }
    let message = format!(
        "celerity: {error}\ncelerity: a task still waits in MPI {patience:?} later, where nothing \
         can wake it: all processes are ended"
    );
    let watch = move || {
        thread::sleep(patience);
        if waiters().present.contains_key(&run) {
            Comm::world().end_all(&message);
        }
    };
    // Without a thread, the run lingers, and its watchdog says so.
    drop(thread::Builder::new().name("celerity-mpi-end".to_owned()).spawn(watch));
}

impl Deref for MpiGroup {
    type Target = SimpleCommunicator;

    fn deref(&self) -> &SimpleCommunicator {
        &self.communicator
    }
}

impl fmt::Debug for MpiGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MpiGroup")
    }
}
