//! Why MPI cannot be used. What goes wrong later is the executor's
//! `CommunicationError`.

use std::time::Duration;

use celerity_executor::RunError;

use crate::thread_level::ThreadLevel;

/// Why a node could not join the cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// MPI does not allow calls from the threads that make them.
    #[error(
        "MPI grants thread level {granted}, but {required} is required; {}",
        threads_advice(*.by_user)
    )]
    Threads {
        /// The level of thread support that is needed.
        required: ThreadLevel,
        /// The level of thread support that MPI grants.
        granted: ThreadLevel,
        /// Whether the program had initialised MPI itself.
        by_user: bool,
    },
    /// MPI has been finalised by the program.
    #[error("MPI has been finalised; finalise it after the last run, or leave it to Celerity")]
    Finalised,
    /// Another communicator of this process is in use.
    #[error("a process is one node of one cluster at a time; another run is under way")]
    InUse,
    /// An earlier run has lost a node.
    #[error("MPI cannot be used any more, since a node was lost in an earlier run")]
    Lost,
    /// An MPI call failed.
    #[error(transparent)]
    Call(#[from] MpiError),
    /// Another process does not come: before all have met, nobody can say which, or why.
    #[error(
        "not all processes that the launcher has started have come within {timeout:?} ({step} \
         still waits): one has died or ended, or is busy before its first run; to wait longer, \
         raise the time to start in (CELERITY_START_TIMEOUT)"
    )]
    Alone {
        /// The call of MPI that has not ended.
        step: &'static str,
        /// How long was waited.
        timeout: Duration,
    },
    /// The run has ended before it began, on all nodes: one could not start, or has died.
    #[error(transparent)]
    Run(Box<RunError>),
}

impl From<RunError> for StartError {
    fn from(error: RunError) -> Self {
        Self::Run(Box::new(error))
    }
}

impl From<StartError> for RunError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Run(error) => *error,
            other => Self::Start { what: other.to_string() },
        }
    }
}

/// An MPI call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed: {message}")]
pub struct MpiError {
    /// The name of the function of MPI that failed.
    pub call: &'static str,
    /// The text that MPI has for the error.
    pub message: String,
}

fn threads_advice(by_user: bool) -> &'static str {
    match by_user {
        true => "call MPI_Init_thread with that level",
        false => {
            "use an MPI that was built with support for threads, and ask for the level in the first \
             run of the process"
        }
    }
}
