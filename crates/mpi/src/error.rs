//! Why MPI cannot be used. What goes wrong later is the executor's
//! `CommunicationError`.

use std::time::Duration;

use crate::process::ThreadLevel;

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
        /// What is needed.
        required: ThreadLevel,
        /// What there is.
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
    /// The nodes could not connect to each other beside MPI.
    #[error(
        "the side channel, which notices dead nodes, does not come up within {timeout:?}: {what}; \
         nodes must reach a TCP port of N0"
    )]
    SideChannel {
        /// What went wrong, here or on another node.
        what: String,
        /// How long was waited.
        timeout: Duration,
    },
}

/// An MPI call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed: {message}")]
pub struct MpiError {
    /// The function.
    pub call: &'static str,
    /// What MPI says.
    pub message: String,
}

fn threads_advice(by_user: bool) -> &'static str {
    match by_user {
        true => "call MPI_Init_thread with that level",
        false => "use an MPI that was built with support for threads",
    }
}
