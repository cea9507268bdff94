//! Coming to a run: every process makes its node, all at the same time.

use std::time::Duration;

use celerity_executor::{CommunicationError, RunError, Waker, Warning, WarningSink};

use crate::attendance::Attendance;
use crate::communicator::MpiCommunicator;
use crate::error::StartError;
use crate::liveness::Impatience;
use crate::network::Endpoint;
use crate::process::{self, Access, ThreadLevel};
use crate::session::Session;

/// How a node takes part. All nodes must be given the same, but for `threads` and
/// `warnings`. What is said of the start and of the end counts in the first run of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MpiOptions {
    /// Which threads call MPI. `Serialized` unless the program calls it as well,
    /// on its own threads, while a run is under way: then `Multiple`.
    pub threads: ThreadLevel,
    /// After how much silence a node counts as dead: 10 s.
    pub peer_timeout: Duration,
    /// How long a process waits for the others when they first meet: 60 s. Later it waits
    /// for them as long as they live.
    pub start_timeout: Duration,
    /// Under which name or address the others reach `N0`, if not by the name
    /// that MPI knows its machine by.
    pub hub_host: Option<String>,
    /// Bytes per message, at most: 1 GiB, since MPI counts in 31 bits. Larger
    /// payloads are sent in pieces. Tests lower it.
    pub max_message: u64,
    /// Tags to use, at most: all that MPI has. Tests lower it.
    pub max_tags: u64,
    /// How long a process waits for others to come to a run, or to end, before it warns of
    /// that, and then at doubling intervals: 30 s; 0: for ever.
    pub watchdog: Duration,
    /// Who is warned.
    pub warnings: WarningSink,
}

impl Default for MpiOptions {
    fn default() -> Self {
        Self {
            threads: ThreadLevel::Serialized,
            peer_timeout: Duration::from_secs(10),
            start_timeout: Duration::from_secs(60),
            hub_host: None,
            max_message: 1 << 30,
            max_tags: u64::MAX,
            watchdog: Duration::from_secs(30),
            warnings: WarningSink::default(),
        }
    }
}

/// This process's end of a cluster of all processes that MPI has started, one
/// node each; `N0` is rank 0. Initialises MPI if the program has not, and leaves
/// it initialised until the process exits.
///
/// Collective: it returns once all processes have called it, or one has refused to, has
/// ended or has died. `wake` is called from a thread of its own when another node has
/// aborted or died; for anything else the end must be polled.
///
/// # Errors
/// [`StartError`]. If the run does not begin, all processes get one.
pub fn start(options: &MpiOptions, wake: Waker) -> Result<MpiCommunicator, StartError> {
    let access = Access::new()?;
    let session = Session::of_process(options)?;
    let attendance = attend(session.clone(), options, wake)?;
    let network = Endpoint::new(session.comms(), options.max_message, options.max_tags);
    let network = network.inspect_err(|error| {
        let error = Box::new(CommunicationError::Network { what: error.to_string() });
        attendance.abort(&RunError::Communication { node: session.node(), error });
        process::lose();
    })?;
    Ok(MpiCommunicator::new(network, attendance, options.peer_timeout, access))
}

/// Comes to the next run, and waits for the others.
fn attend(
    session: std::sync::Arc<Session>,
    options: &MpiOptions,
    wake: Waker,
) -> Result<Attendance, StartError> {
    let (node, run) = (session.node(), session.next_run());
    let mut tell = |lasting: Duration, missing: &[_]| {
        let (run, missing) = (Some(run), missing.to_vec());
        options.warnings.warn(&Warning::Alone { node, run, lasting, missing });
    };
    let impatience = Impatience::new(options.watchdog, &mut tell);
    let begun = session.side().begin(run, options.peer_timeout, wake, impatience);
    begun.map_err(|obstacle| session.error_of(run, obstacle))?;
    Ok(Attendance::new(session, run))
}
