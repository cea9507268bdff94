//! What the function of a host task on several nodes is told: which part of the work is its own,
//! and, if the task is collective, how to reach the others.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use celerity_executor::{GroupCommunicator, HostCall};
use celerity_regions::{Box3, Subrange};

use crate::range::{bounds, subrange};

/// One part of a host task that is split, or runs on every node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition<const K: usize> {
    part: Subrange<K>,
    global: Subrange<K>,
    node: usize,
    nodes: usize,
}

impl<const K: usize> Partition<K> {
    pub(crate) fn new(call: &HostCall, global: &Box3) -> Self {
        let subrange = |part: &Box3| subrange(&bounds(part));
        let (part, global) = (subrange(&call.chunk), subrange(global));
        Self { part, global, node: call.node.slot(), nodes: call.nodes }
    }

    /// The items of this part, as a box of the index space.
    #[must_use]
    pub fn subrange(&self) -> Subrange<K> {
        self.part
    }

    /// All items of the task.
    #[must_use]
    pub fn global(&self) -> Subrange<K> {
        self.global
    }

    /// The node that the part is on, counted from 0.
    #[must_use]
    pub fn node(&self) -> usize {
        self.node
    }

    /// Nodes of the run.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes
    }
}

/// One node's part of a collective host task: a [`Partition`] of one item per node, and a way to
/// talk to the others.
#[derive(Debug)]
pub struct CollectivePartition {
    partition: Partition<1>,
    group: Arc<str>,
    communicator: GroupCommunicator,
}

impl CollectivePartition {
    pub(crate) fn new(
        partition: Partition<1>,
        group: Arc<str>,
        communicator: GroupCommunicator,
    ) -> Self {
        Self { partition, group, communicator }
    }

    /// The name of the group that the task is in.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The way to the same task on other nodes: barriers, broadcasts, gathers of a few values or
    /// some kilobytes. It works in one process and under MPI alike, whatever MPI's thread support.
    /// Who waits in it is woken when the run fails, so a task ends with what it returns:
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// Config::default().nodes(3).run(|queue| {
    ///     queue.host_task("agree").collective("sums", (), |partition, ()| {
    ///         let nodes = partition.communicator();
    ///         let all = nodes.all_gather(&[10 * partition.node() as u32])?;
    ///         assert_eq!(all, [[0], [10], [20]]);
    ///         nodes.barrier()?;
    ///         let mut seed = [partition.node() as u64 + 7];
    ///         nodes.broadcast(0, &mut seed)?;
    ///         assert_eq!(seed, [7]);
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// })?;
    /// # Ok::<(), celerity::Error>(())
    /// ```
    #[must_use]
    pub fn communicator(&self) -> &GroupCommunicator {
        &self.communicator
    }
}

#[cfg(feature = "mpi")]
impl CollectivePartition {
    /// A communicator of MPI that only tasks of this group use, for libraries that want one: rank
    /// `n` is node `n`. It is rsmpi's, which [`celerity::mpi`](crate::mpi) is.
    ///
    /// The first call of a group in a run is collective: all nodes make it in the same task. MPI
    /// must allow calls from all threads at once, so ask for that by
    /// [`Config::mpi_thread_multiple`](crate::Config::mpi_thread_multiple), or
    /// `CELERITY_MPI_THREAD_MULTIPLE=on`.
    ///
    /// Who waits inside of MPI cannot be woken when the run fails. If that takes longer than
    /// [`peer_timeout`](crate::Config::peer_timeout), all processes are ended by `MPI_Abort`, with
    /// the run's error on standard error. What can be said through
    /// [`communicator`](Self::communicator) has no such end.
    ///
    /// # Errors
    /// [`MpiGroupError`](crate::MpiGroupError): without MPI, or if MPI does not allow the call.
    pub fn mpi(&self) -> Result<celerity_mpi::MpiGroup, celerity_mpi::MpiGroupError> {
        celerity_mpi::group_communicator(self.communicator.group().number())
    }
}

impl Deref for CollectivePartition {
    type Target = Partition<1>;

    fn deref(&self) -> &Partition<1> {
        &self.partition
    }
}

impl<const K: usize> fmt::Display for Partition<K> {
    /// As in `[4] + [2] of [8] on node 1 of 3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, global, node, nodes } = self;
        let of = global.range;
        write!(f, "{:?} + {:?} of {of:?} on node {node} of {nodes}", part.offset, part.range)
    }
}
