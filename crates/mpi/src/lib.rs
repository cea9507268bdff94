#![doc = include_str!("../README.md")]

#[cfg(any(test, feature = "mpi"))]
mod failure;
#[cfg(any(test, feature = "mpi"))]
mod layout;
#[cfg(any(test, feature = "mpi"))]
mod liveness;
#[cfg(any(test, feature = "mpi"))]
mod matching;
#[cfg(any(test, feature = "mpi"))]
mod polling;
#[cfg(any(test, feature = "mpi"))]
mod segments;
#[cfg(any(test, feature = "mpi"))]
mod window;

#[cfg(feature = "mpi")]
mod attendance;
#[cfg(feature = "mpi")]
mod card;
#[cfg(feature = "mpi")]
mod communicator;
#[cfg(feature = "mpi")]
mod deadline;
#[cfg(feature = "mpi")]
mod error;
#[cfg(feature = "mpi")]
mod exchanges;
#[cfg(feature = "mpi")]
mod founding;
#[cfg(feature = "mpi")]
mod group;
#[cfg(feature = "mpi")]
mod leave;
#[cfg(feature = "mpi")]
mod leaving;
#[cfg(feature = "mpi")]
mod lost;
#[cfg(feature = "mpi")]
mod mail;
#[cfg(feature = "mpi")]
mod meeting;
#[cfg(feature = "mpi")]
mod membership;
#[cfg(feature = "mpi")]
mod network;
#[cfg(feature = "mpi")]
mod operation;
#[cfg(feature = "mpi")]
mod options;
#[cfg(feature = "mpi")]
mod place;
#[cfg(feature = "mpi")]
mod placing;
#[cfg(feature = "mpi")]
mod process;
#[cfg(feature = "mpi")]
mod raw;
#[cfg(feature = "mpi")]
mod requests;
#[cfg(feature = "mpi")]
mod session;
#[cfg(feature = "mpi")]
mod start;
#[cfg(feature = "mpi")]
mod thread_level;
#[cfg(feature = "mpi")]
mod transfers;

#[cfg(feature = "mpi")]
pub use communicator::MpiCommunicator;
#[cfg(feature = "mpi")]
pub use error::{MpiError, StartError};
#[cfg(feature = "mpi")]
pub use group::{MpiGroup, MpiGroupError, group_communicator};
#[cfg(feature = "mpi")]
pub use lost::is_lost;
/// The binding of MPI that [`MpiGroup`] is of.
#[cfg(feature = "mpi")]
pub use mpi as rsmpi;
#[cfg(feature = "mpi")]
pub use options::MpiOptions;
#[cfg(feature = "mpi")]
pub use place::MpiNetwork;
#[cfg(feature = "mpi")]
pub use start::start;
#[cfg(feature = "mpi")]
pub use thread_level::ThreadLevel;
