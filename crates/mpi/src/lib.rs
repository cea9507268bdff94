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
mod window;

#[cfg(feature = "mpi")]
mod attendance;
#[cfg(feature = "mpi")]
mod barrier;
#[cfg(feature = "mpi")]
mod card;
#[cfg(feature = "mpi")]
mod communicator;
#[cfg(feature = "mpi")]
mod deadline;
#[cfg(feature = "mpi")]
mod error;
#[cfg(feature = "mpi")]
mod leave;
#[cfg(feature = "mpi")]
mod mail;
#[cfg(feature = "mpi")]
mod network;
#[cfg(feature = "mpi")]
mod place;
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
mod transfers;

#[cfg(feature = "mpi")]
pub use communicator::MpiCommunicator;
#[cfg(feature = "mpi")]
pub use error::{MpiError, StartError};
#[cfg(feature = "mpi")]
pub use place::MpiNetwork;
#[cfg(feature = "mpi")]
pub use process::{ThreadLevel, is_lost};
#[cfg(feature = "mpi")]
pub use start::{MpiOptions, start};
