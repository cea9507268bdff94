//! Every time for which a thread of this crate waits or sleeps between two looks. What belongs to
//! a run, as how closely a node looks at MPI, its reactor decides: `polling` of
//! `celerity-executor`. What users may choose, timeouts above all, is in their configuration.

use std::time::Duration;

/// How long a request is looked at without rest while processes come together, and after which
/// time it is looked at again: all of them start at the same moment, or seconds apart.
#[cfg(feature = "mpi")]
pub(crate) const REQUEST_PATIENCE: Duration = Duration::from_micros(500);

/// How often a process that ends asks whether it may give up waiting for MPI to be finalised.
#[cfg(feature = "mpi")]
pub(crate) const FINALISE_BEAT: Duration = Duration::from_millis(20);

/// How long MPI may take to be finalised if there is no side channel to tell of deaths.
#[cfg(feature = "mpi")]
pub(crate) const FINALISE_PATIENCE: Duration = Duration::from_secs(10);

/// How long a node that says goodbye waits for others to notice.
pub(crate) const FAREWELL: Duration = Duration::from_secs(1);

/// How often a connection of the side channel is tried again, and members are told that the hub
/// lives.
pub(crate) const RETRY: Duration = Duration::from_millis(20);

/// The longest time between two signs of life.
pub(crate) const SLOWEST_BEAT: Duration = Duration::from_secs(1);

/// How long a thread sleeps that the system has refused to let wait for sockets, before it looks
/// at all of them.
pub(crate) const NO_WAIT: Duration = Duration::from_millis(5);
