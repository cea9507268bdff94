//! Host tasks as a program spells them: once, on a node of its choice, on every node, collective,
//! or over parts of an index space.

use std::sync::Arc;

use celerity_executor::{HostKernel, Payload};
use celerity_regions::Box3;
use celerity_tdag::{CollectiveGroup, IndexSpace, TaskId, Work};

use super::{Hint, LoweredTask, TaskBuilder};
use crate::access::{HostAccesses, Lowered, Lowering};
use crate::error::{Error, Result};
use crate::host::{HostOutcome, call_once_per_node, call_per_chunk, call_with_views};
use crate::origin::Origin;
use crate::partition::{CollectivePartition, Partition};
use crate::range::{IntoRange, check_dimensions};

/// A host task before it is known where it runs, and its function is.
///
/// | it runs | submitted by | its function gets |
/// | --- | --- | --- |
/// | once, on node 0 | [`once`](Self::once) | the views |
/// | once, on a node that the program names | [`on_node`](Self::on_node) | the views |
/// | on every node | [`everywhere`](Self::everywhere) | a [`Partition`], the views of its part |
/// | on every node, in the order of its group | [`collective`](Self::collective) | a [`CollectivePartition`], the views of its part |
/// | on parts of an index space | [`distributed`](Self::distributed) | a [`Partition`], the views of its part |
///
/// Functions run on threads that may block. Of those outside of collective groups, up to four run
/// on a node at a time; each group has a thread of its own on each node.
#[derive(Debug)]
#[must_use = "a host task is submitted by `once` or one of its siblings"]
pub struct HostTaskBuilder<'q> {
    origin: Origin<'q>,
}

impl<'q> HostTaskBuilder<'q> {
    pub(super) fn new(origin: Origin<'q>) -> Self {
        Self { origin }
    }

    /// Submits a function that runs once in the cluster, on node 0 (for another one see
    /// [`on_node`](Self::on_node)), when the contents that it reads are there. It gets the views
    /// of `accesses`, in order, and must own what it captures.
    ///
    /// The function returns nothing, or a result. An error ends the run on all nodes with
    /// [`RunError::TaskFailed`](crate::RunError::TaskFailed): it names the task, its source
    /// line and the node, and the error that the function has returned is its source.
    ///
    /// ```
    /// use std::io::Write as _;
    /// use celerity::prelude::*;
    ///
    /// # let path = std::env::temp_dir().join(format!("celerity-squares-{}", std::process::id()));
    /// celerity::run(|queue| {
    ///     let squares = queue.buffer::<u64, 1>(10);
    ///     queue.task("square").parallel_for(10, squares.write(one_to_one()), |item, square| {
    ///         *square = (item[0] * item[0]) as u64;
    ///     })?;
    ///     let path = path.clone();
    ///     queue.host_task("save").once(squares.read(all()), move |squares| {
    ///         let mut file = std::fs::File::create(path)?;
    ///         for square in squares.as_slice() {
    ///             writeln!(file, "{square}")?;
    ///         }
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// })?;
    /// assert!(std::fs::read_to_string(&path)?.ends_with("64\n81\n"));
    /// # std::fs::remove_file(&path)?;
    ///
    /// let failed = celerity::run(|queue| {
    ///     queue.host_task("load").once((), |()| {
    ///         let _ = std::fs::read("/no/such/file")?;
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// });
    /// let message = failed.unwrap_err().to_string();
    /// assert!(message.contains("\"load\" at") && message.contains("failed on N0: No such file"));
    /// # Ok::<(), celerity::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`TaskBuilder::parallel_for`](crate::TaskBuilder::parallel_for).
    pub fn once<A, F, R>(self, accesses: A, function: F) -> Result<TaskId>
    where
        A: HostAccesses,
        F: for<'a> FnOnce(A::Views<'a>) -> R + Send + 'static,
        R: HostOutcome,
    {
        self.on_node(0).once(accesses, function)
    }

    /// Lets the task run on this node, counted from 0, instead of node 0.
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// let ran_on = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    /// Config::default().nodes(3).run(|queue| {
    ///     let (node, ran_on) = (queue.node(), ran_on.clone());
    ///     queue.host_task("last").on_node(2).once((), move |()| ran_on.lock().unwrap().push(node))?;
    ///     Ok(())
    /// })?;
    /// assert_eq!(*ran_on.lock().unwrap(), [2]);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    pub fn on_node(self, node: usize) -> PlacedHostTask<'q> {
        PlacedHostTask { origin: self.origin, node }
    }

    /// Submits a function that runs once on every node. Nodes do not wait for each other.
    ///
    /// The index space has one dimension, and as many items as there are nodes: node `n` has item
    /// `n`. So a mapper over one dimension says what each node touches, `all` means that every
    /// node reads all, and `one_to_one` is a buffer with one element per node. What one node
    /// writes no other touches.
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// let sums = Config::default().nodes(2).run(|queue| {
    ///     let values = queue.buffer_from(4, vec![1, 2, 3, 4])?;
    ///     let sums = queue.buffer::<i32, 1>(queue.nodes());
    ///     let accesses = (values.read(all()), sums.write(one_to_one()));
    ///     queue.host_task("sum").everywhere(accesses, |partition, (values, mut sums)| {
    ///         let sum: i32 = values.as_slice().iter().sum();
    ///         sums[partition.node()] = sum + partition.node() as i32;
    ///     })?;
    ///     Ok(queue.fence(&sums)?.wait()?.as_slice().to_vec())
    /// })?;
    /// assert_eq!(sums, [10, 11]);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`once`](Self::once); [`OverlappingWrites`](crate::DeclareError::OverlappingWrites) if several nodes would write
    /// the same elements, also in a run of one node.
    pub fn everywhere<A, F, R>(self, accesses: A, function: F) -> Result<TaskId>
    where
        A: HostAccesses<1>,
        F: for<'a> FnOnce(Partition<1>, A::Views<'a>) -> R + Send + 'static,
        R: HostOutcome,
    {
        let space = one_item_per_node(&self.origin);
        submit_per_node(self.origin, space, None, accesses, |plan| {
            call_once_per_node::<A, _, R>(plan, move |call, views| {
                function(Partition::new(&call, &space.extent), views)
            })
        })
    }

    /// Submits a function that runs on every node as a part of one operation of all, such as a
    /// collective call of a library: all nodes run the tasks of a group one after another, in
    /// the order of submission. Tasks of different groups may run at the same time.
    ///
    /// `group` is a name, the same on all nodes. A task gets a [communicator] for what its nodes
    /// have to tell each other; with feature `mpi` and under MPI also one of MPI, which is its
    /// group's own ([`CollectivePartition::mpi`]).
    ///
    /// Each group has a thread of its own on each node, so a task starts whatever other host tasks
    /// wait for. A run has up to 128 groups. Otherwise as [`everywhere`](Self::everywhere).
    ///
    #[cfg_attr(not(feature = "mpi"), doc = "[`CollectivePartition::mpi`]: CollectivePartition")]
    /// [communicator]: CollectivePartition::communicator
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// # let path = std::env::temp_dir().join(format!("celerity-parts-{}", std::process::id()));
    /// Config::default().nodes(2).run(|queue| {
    ///     let path = path.clone();
    ///     queue.host_task("write").collective("files", (), move |partition, ()| {
    ///         if partition.node() == 0 {
    ///             std::fs::write(&path, "all nodes see this file")?;
    ///         }
    ///         partition.communicator().barrier()?;
    ///         assert!(path.exists());
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// })?;
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), celerity::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`everywhere`](Self::everywhere); [`Error::TooManyGroups`].
    pub fn collective<A, F, R>(
        self,
        group: impl Into<Arc<str>>,
        accesses: A,
        function: F,
    ) -> Result<TaskId>
    where
        A: HostAccesses<1>,
        F: for<'a> FnOnce(CollectivePartition, A::Views<'a>) -> R + Send + 'static,
        R: HostOutcome,
    {
        let (name, space): (Arc<str>, _) = (group.into(), one_item_per_node(&self.origin));
        let Some(group) = self.origin.frontend.collective_group(&name) else {
            let (task, most) = (self.origin.describe(), CollectiveGroup::MOST);
            return Err(Error::TooManyGroups { task, group: name.to_string(), most });
        };
        submit_per_node(self.origin, space, Some(group), accesses, |plan| {
            call_once_per_node::<A, _, R>(plan, move |mut call, views| {
                let collective = call.collective.take().expect("the task is in a group");
                let partition = Partition::new(&call, &space.extent);
                function(CollectivePartition::new(partition, name, collective), views)
            })
        })
    }

    /// Begins a task whose function is called for parts of the index space `range`, which
    /// together are all of it: one part per node, unless a [hint](DistributedHostTask::hint) asks
    /// for more. Nodes without a part do not call it.
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// let squares = Config::default().nodes(2).run(|queue| {
    ///     let squares = queue.buffer::<usize, 1>(5);
    ///     let task = queue.host_task("square").distributed(5);
    ///     task.submit(squares.write(one_to_one()), |partition, mut squares| {
    ///         let Subrange { offset: [first], range: [count] } = partition.subrange();
    ///         (first..first + count).for_each(|i| squares[i] = i * i);
    ///     })?;
    ///     Ok(queue.fence(&squares)?.wait()?.as_slice().to_vec())
    /// })?;
    /// assert_eq!(squares, [0, 1, 4, 9, 16]);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    pub fn distributed<const K: usize>(
        self,
        range: impl IntoRange<K>,
    ) -> DistributedHostTask<'q, K> {
        const { check_dimensions(K) };
        DistributedHostTask { task: TaskBuilder::new(self.origin), range: range.into_range() }
    }
}

/// A host task that runs once, on a node that the program names, before its function is known.
#[derive(Debug)]
#[must_use = "a host task is submitted by `once`"]
pub struct PlacedHostTask<'q> {
    origin: Origin<'q>,
    node: usize,
}

impl PlacedHostTask<'_> {
    /// Submits the function, as [`HostTaskBuilder::once`] does.
    ///
    /// # Errors
    /// As [`HostTaskBuilder::once`]; [`Error::NoSuchNode`].
    pub fn once<A, F, R>(self, accesses: A, function: F) -> Result<TaskId>
    where
        A: HostAccesses,
        F: for<'a> FnOnce(A::Views<'a>) -> R + Send + 'static,
        R: HostOutcome,
    {
        let Self { origin, node } = self;
        let nodes = origin.frontend.nodes();
        if node >= nodes {
            return Err(Error::NoSuchNode { task: origin.describe(), node, nodes });
        }
        let mut lowering = Lowering::new(&origin);
        let plan = accesses.lower(&mut lowering)?;
        let Lowered { accesses, settling, .. } = lowering.finish();
        let payload = Payload::Host(call_with_views::<A, F, R>(plan, function));
        let work = Work::HostOnce { node: node as u64 };
        LoweredTask { origin, work, accesses, settling }.submit(payload)
    }
}

/// A host task over parts of an index space of `K` dimensions, before its function is known.
#[derive(Debug)]
#[must_use = "a host task is submitted by `submit`"]
pub struct DistributedHostTask<'q, const K: usize> {
    task: TaskBuilder<'q>,
    range: [usize; K],
}

impl<const K: usize> DistributedHostTask<'_, K> {
    /// Says how to cut the index space, as for [kernels](TaskBuilder::hint). With
    /// [`Hint::Oversubscribe`] a node has so many parts, which run at the same time on up to four
    /// threads, or one after the other, in ascending order, if the task changes a
    /// [host object](crate::HostObject).
    pub fn hint(self, hint: Hint) -> Self {
        Self { task: self.task.hint(hint), ..self }
    }

    /// Cuts the index space only at multiples of this size in each dimension.
    pub fn granularity(self, granularity: impl IntoRange<K>) -> Self {
        Self { task: self.task.granularity(granularity), ..self }
    }

    /// Lets the index space begin at this index instead of the origin.
    pub fn offset(self, offset: impl IntoRange<K>) -> Self {
        Self { task: self.task.offset(offset), ..self }
    }

    /// Submits the function, which is called once for each part of the index space: with the
    /// part, and with the views of what `accesses` say of it, in order. It must own what it
    /// captures.
    ///
    /// # Errors
    /// As [`TaskBuilder::parallel_for`].
    pub fn submit<A, F, R>(self, accesses: A, function: F) -> Result<TaskId>
    where
        A: HostAccesses<K>,
        F: for<'a> Fn(Partition<K>, A::Views<'a>) -> R + Send + Sync + 'static,
        R: HostOutcome,
    {
        let Self { task, range } = self;
        let offset = task.beginning(range)?;
        let space = task.index_space(offset, range)?;
        let mut lowering = Lowering::new(&task.origin).over(space);
        let plan = accesses.lower(&mut lowering)?;
        let Lowered { accesses, settling, .. } = lowering.finish();
        let function = call_per_chunk::<A, _, R, K>(plan, move |call, views| {
            function(Partition::new(&call, &space.extent), views)
        });
        let work = Work::HostSplit { space, group: None };
        let payload = Payload::HostSplit(function);
        LoweredTask { origin: task.origin, work, accesses, settling }.submit(payload)
    }
}

/// The index space of a task that runs on every node.
fn one_item_per_node(origin: &Origin<'_>) -> IndexSpace {
    IndexSpace::new(1, Box3::from_range([origin.frontend.nodes()]))
}

fn submit_per_node<A: HostAccesses<1>>(
    origin: Origin<'_>,
    space: IndexSpace,
    group: Option<CollectiveGroup>,
    accesses: A,
    function: impl FnOnce(A::Plan) -> HostKernel,
) -> Result<TaskId> {
    let mut lowering = Lowering::new(&origin).over(space).per_node();
    let plan = accesses.lower(&mut lowering)?;
    let Lowered { accesses, settling, .. } = lowering.finish();
    let work = Work::HostSplit { space, group };
    let payload = Payload::HostSplit(function(plan));
    LoweredTask { origin, work, accesses, settling }.submit(payload)
}
