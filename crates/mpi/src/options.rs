//! How a node takes part in a cluster of MPI processes.

use std::time::Duration;

use celerity_executor::WarningSink;

use crate::thread_level::ThreadLevel;

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
    /// Sets of some nodes that may have communicators of their own, at most: 256, since MPICH has 2048 in all, and
    /// each set takes three. Other sets exchange data in pairs. What the process of `N0` has made in earlier runs
    /// counts. Tests lower it.
    pub max_member_sets: usize,
    /// How long a process waits for others to come to a run, or to end, before it warns of
    /// that, and then at doubling intervals: 30 s; 0: for ever.
    pub watchdog: Duration,
    /// Who is told of what does not end the run.
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
            max_member_sets: 256,
            watchdog: Duration::from_secs(30),
            warnings: WarningSink::default(),
        }
    }
}
