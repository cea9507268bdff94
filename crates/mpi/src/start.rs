//! Coming to a run: every process makes its node, all at the same time.

use std::time::Duration;

use celerity_executor::{CommunicationError, RunError, Waker, Warning};

use crate::attendance::Attendance;
use crate::communicator::MpiCommunicator;
use crate::error::StartError;
use crate::liveness::Impatience;
use crate::lost;
use crate::network::Endpoint;
use crate::options::MpiOptions;
use crate::process::Permit;
use crate::session::Session;

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
    let permit = Permit::new()?;
    let session = Session::of_process(options)?;
    let attendance = attend(session.clone(), options, wake)?;
    let network =
        Endpoint::new(&session, (options.max_message, options.max_tags), options.peer_timeout);
    let network = network.inspect_err(|error| {
        let error = Box::new(CommunicationError::Network { what: error.to_string() });
        attendance.abort(&RunError::Communication { node: session.node(), error });
        lost::lose();
    })?;
    Ok(MpiCommunicator::new(network, attendance, options.peer_timeout, permit))
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
