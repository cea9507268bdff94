//! The queue: where a program meets the runtime. Builds tasks from ranges,
//! accesses and kernels, and owns nothing but the way to its node.

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use celerity_executor::{DeviceKernel, Lookahead, NodeFrontend, Payload};
use celerity_kernel::{Item, Row};
use celerity_regions::Subrange;
use celerity_tdag::{Access, IndexSpace, Mapper, SourceLocation, Split, TaskId, TaskSpec, Work};

use crate::access::{HostAccesses, KernelAccesses, Lowered, Lowering};
use crate::buffer::{Buffer, Element};
use crate::error::{Error, Result};
use crate::fence::Fence;
use crate::host::call_with_views;
use crate::launch::{CompiledKernel, ItemKernel, Launch, Launched, RowKernel};
use crate::log::LogLevel;
use crate::range::{IntoRange, to_box, volume};

mod groups;

/// One node's way to submit work; [`run`](crate::run) hands it to the program.
///
/// Every node runs the same program and must submit the same tasks in the same
/// order. Submission returns at once, except that it waits while too much work
/// is outstanding.
pub struct Queue {
    frontend: Arc<NodeFrontend>,
    log_level: LogLevel,
}

/// More chunks per device than this are a mistake: each costs a launch.
const MOST_CHUNKS: u32 = 1024;

/// How to cut an index space over nodes and devices (000 §III-E).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// Into bands along the slowest dimension: the default.
    BandSplit,
    /// Into tiles over the two slowest dimensions, which exchange less at their
    /// edges when there are many.
    TiledSplit,
    /// Into bands along this dimension, counted from 0, the slowest.
    SplitAlong(usize),
    /// So many chunks per device, at least 1, so that a device computes on some
    /// while others wait for data. Goes together with any split.
    Oversubscribe(usize),
}

impl Queue {
    pub(crate) fn new(frontend: &Arc<NodeFrontend>, log_level: LogLevel) -> Self {
        Self { frontend: frontend.clone(), log_level }
    }

    pub(crate) fn frontend(&self) -> &Arc<NodeFrontend> {
        &self.frontend
    }

    /// A new buffer without contents. Takes no memory until a task accesses it.
    #[must_use]
    pub fn buffer<T: Element, const D: usize>(&self, range: impl IntoRange<D>) -> Buffer<T, D> {
        Buffer::new(&self.frontend, range.into_range())
    }

    /// A new buffer with initial contents, row-major: a `Vec` is handed over, a
    /// slice copied. Every node must pass the same contents.
    ///
    /// # Errors
    /// [`Error::HostDataLength`] unless there is one value per element.
    pub fn buffer_from<T: Element, const D: usize>(
        &self,
        range: impl IntoRange<D>,
        data: impl Into<Vec<T>>,
    ) -> Result<Buffer<T, D>> {
        Buffer::from_data(&self.frontend, range.into_range(), data.into())
    }

    /// Begins a task that runs a kernel on all devices of all nodes. The name
    /// and the caller's source line appear in errors.
    #[track_caller]
    pub fn task(&self, name: impl Into<Arc<str>>) -> TaskBuilder<'_> {
        TaskBuilder {
            origin: Origin::new(self, name.into(), Location::caller()),
            split: Split::default(),
            impossible_dim: None,
            oversubscription: 1,
            granularity: Vec::new(),
            offset: Vec::new(),
        }
    }

    /// Begins a task that runs a function on the host. The name and the caller's
    /// source line appear in errors.
    #[track_caller]
    pub fn host_task(&self, name: impl Into<Arc<str>>) -> HostTaskBuilder<'_> {
        HostTaskBuilder { origin: Origin::new(self, name.into(), Location::caller()) }
    }

    /// Asks for a copy of a whole buffer as it is at this point of the program.
    /// Every node must ask and every node gets one, as in
    /// [`fence_part`](Self::fence_part).
    ///
    /// # Errors
    /// As [`fence_part`](Self::fence_part).
    #[track_caller]
    pub fn fence<T: Element, const D: usize>(&self, buffer: &Buffer<T, D>) -> Result<Fence<T, D>> {
        self.submit_fence(buffer, Subrange::whole(buffer.range()), Location::caller())
    }

    /// Asks for a copy of a part of a buffer as it is at this point of the
    /// program.
    ///
    /// A fence is a task like any other: every node must call this, at the same
    /// point of the program and for the same part, and every node gets a copy.
    /// What only node 0 does with its copy belongs under
    /// [`is_root`](Self::is_root), the fence itself does not.
    ///
    /// # Errors
    /// If the part is not inside of the buffer or holds elements that nothing
    /// has written, if the buffer belongs to another run, or if the run has
    /// failed.
    #[track_caller]
    pub fn fence_part<T: Element, const D: usize>(
        &self,
        buffer: &Buffer<T, D>,
        part: Subrange<D>,
    ) -> Result<Fence<T, D>> {
        self.submit_fence(buffer, part, Location::caller())
    }

    fn submit_fence<T: Element, const D: usize>(
        &self,
        buffer: &Buffer<T, D>,
        part: Subrange<D>,
        location: &'static Location<'static>,
    ) -> Result<Fence<T, D>> {
        let origin = Origin::new(self, format!("fence on {}", buffer.name()).into(), location);
        let mut lowering = Lowering::new(self, &origin.name);
        let region = to_box(part);
        lowering.push_read(buffer, Mapper::fixed(region))?;
        let Lowered { accesses, .. } = lowering.finish();
        if region.is_empty() {
            return Ok(Fence::ready(&self.frontend, buffer.name(), part, Vec::new()));
        }
        let (fence, copy) = Fence::pending(&self.frontend, buffer.name(), &region);
        LoweredTask { origin, work: Work::Fence, accesses }.submit(Payload::Host(copy))?;
        Ok(fence)
    }

    /// Starts all work that is held back to see what follows. Returns at once.
    ///
    /// Tasks whose memory has not been allocated yet are held back for a while,
    /// so that later tasks can have a say in how much is allocated (002 §4.3).
    /// Fences, barriers, host tasks and the end of a buffer let go of them. A
    /// program that waits for a *kernel* by means of its own must call this.
    pub fn flush(&self) {
        self.frontend.flush();
    }

    /// Changes how long later tasks are held back that will allocate; see
    /// [`flush`](Self::flush). The configuration says how it starts.
    pub fn set_lookahead(&self, lookahead: Lookahead) {
        self.frontend.set_lookahead(lookahead);
    }

    /// Waits until everything that was submitted so far is done, on all nodes.
    /// Every node must call it, at the same point of the program: one that waits
    /// alone ends the run with an error.
    ///
    /// # Errors
    /// The run's first error, if it has failed.
    pub fn barrier(&self) -> Result<()> {
        Ok(self.frontend.barrier()?)
    }

    /// Whether this is node 0: the one to print, draw and save.
    ///
    /// Only what stays on this node may depend on the answer. Tasks, fences and
    /// barriers are the whole cluster's: every node must submit the same ones in
    /// the same order. A fence or a barrier in a branch that only node 0 takes ends
    /// the run with [`RunError::Diverged`](crate::RunError::Diverged).
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// Config::default().nodes(2).run(|queue| {
    ///     let a = queue.buffer_from(4, vec![1, 2, 3, 4])?;
    ///     let contents = queue.fence(&a)?.wait()?; // on every node
    ///     if queue.is_root() {
    ///         println!("{:?}", contents.as_slice()); // on node 0
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), celerity::Error>(())
    /// ```
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.node() == 0
    }

    /// This node's index.
    #[must_use]
    pub fn node(&self) -> usize {
        self.frontend.node().index() as usize
    }

    /// The number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.frontend.nodes()
    }

    /// The number of devices of this node.
    #[must_use]
    pub fn devices(&self) -> usize {
        self.frontend.devices()
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({} of {})", self.frontend.node(), self.nodes())
    }
}

/// What every task has: a queue, a name and a place in the user's source.
#[derive(Debug)]
struct Origin<'q> {
    queue: &'q Queue,
    name: Arc<str>,
    location: SourceLocation,
}

impl<'q> Origin<'q> {
    fn new(queue: &'q Queue, name: Arc<str>, location: &'static Location<'static>) -> Self {
        Self { queue, name, location: location.into() }
    }
}

/// A task that lacks only its payload.
struct LoweredTask<'q> {
    origin: Origin<'q>,
    work: Work,
    accesses: Vec<Access>,
}

impl LoweredTask<'_> {
    fn submit(self, payload: Payload) -> Result<TaskId> {
        let Self { origin: Origin { queue, name, location }, work, accesses } = self;
        let spec =
            TaskSpec { name: name.clone(), work, accesses, location: Some(location.clone()) };
        let task = queue.frontend.submit(spec, payload)?;
        queue.log_level.print(LogLevel::Trace, || {
            format!("{}: {task} \"{name}\" at {location}", queue.frontend.node())
        });
        // All nodes find the same; one of them says so.
        for warning in queue.frontend.take_warnings().iter().filter(|_| queue.is_root()) {
            queue.log_level.print(LogLevel::Warn, || format!("warning: {warning}"));
        }
        Ok(task)
    }
}

/// A compiled kernel as the closure that CPUs call.
fn by_item<A, W, const K: usize>(
    kernel: W,
) -> impl for<'a> Fn(Item<K>, A::ItemViews<'a>) + Send + Sync + 'static
where
    A: KernelAccesses<K>,
    W: for<'a> celerity_kernel::ItemKernel<K, A::ItemViews<'a>>,
{
    move |item, views| kernel.item(item, views)
}

/// As [`by_item`], for rows.
fn by_row<A, W, const K: usize>(
    kernel: W,
) -> impl for<'a> Fn(Row<K>, A::RowViews<'a>) + Send + Sync + 'static
where
    A: KernelAccesses<K>,
    W: for<'a> celerity_kernel::RowKernel<K, A::RowViews<'a>>,
{
    move |row, views| kernel.row(row, views)
}

/// A kernel task before its kernel is known.
#[derive(Debug)]
#[must_use = "a task is submitted by `parallel_for` or `parallel_for_rows`"]
pub struct TaskBuilder<'q> {
    origin: Origin<'q>,
    split: Split,
    /// A hint that nothing can be split along, if there is one.
    impossible_dim: Option<usize>,
    oversubscription: usize,
    granularity: Vec<usize>,
    /// Where the index space begins; empty for the origin.
    offset: Vec<usize>,
}

impl<'q> TaskBuilder<'q> {
    /// Says how to cut the index space. Of several splits the last counts.
    pub fn hint(mut self, hint: Hint) -> Self {
        match hint {
            Hint::BandSplit => self.split = Split::OneDimensional,
            Hint::TiledSplit => self.split = Split::Tiled,
            Hint::SplitAlong(dim @ 0..3) => self.split = Split::Along(dim as u8),
            Hint::SplitAlong(dim) => self.impossible_dim = Some(dim),
            Hint::Oversubscribe(chunks) => self.oversubscription = chunks,
        }
        self
    }

    /// Cuts the index space only at multiples of this size in each dimension.
    pub fn granularity<const G: usize>(mut self, granularity: impl IntoRange<G>) -> Self {
        self.granularity = granularity.into_range().to_vec();
        self
    }

    /// Lets the index space begin at this index instead of the origin: the items of
    /// `range` have indices from `offset` on, for range mappers, too.
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// let rows = celerity::run(|queue| {
    ///     let rows = queue.buffer_from([3, 2], vec![0; 6])?;
    ///     // The last row alone.
    ///     let task = queue.task("last").offset([2, 0]);
    ///     task.parallel_for([1, 2], rows.write(one_to_one()), |item, x| *x = item[0])?;
    ///     Ok(queue.fence(&rows)?.wait()?.as_slice().to_vec())
    /// })?;
    /// assert_eq!(rows, [0, 0, 0, 0, 2, 2]);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    pub fn offset<const G: usize>(mut self, offset: impl IntoRange<G>) -> Self {
        self.offset = offset.into_range().to_vec();
        self
    }

    /// Submits a kernel that is called once per item of the index space `range`.
    ///
    /// The kernel gets the item and the views of `accesses`, in order. It must
    /// own what it captures. An empty index space is no task: the kernel is not
    /// called.
    ///
    /// # Errors
    /// If an access cannot be (the error names task, buffer and part), if 64 bits
    /// cannot count the items of the index space, or if the run has failed. The
    /// task is not submitted then.
    pub fn parallel_for<A, F, const K: usize>(
        self,
        range: impl IntoRange<K>,
        accesses: A,
        kernel: F,
    ) -> Result<TaskId>
    where
        A: KernelAccesses<K> + 'static,
        F: for<'a> Fn(Item<K>, A::ItemViews<'a>) + Send + Sync + 'static,
    {
        let (task, kernel) = self.lower_items(range.into_range(), accesses, kernel)?;
        task.submit(Payload::Kernel(kernel))
    }

    /// Submits a kernel that is called with runs of items along the fastest
    /// dimension, which together cover the index space `range` once.
    ///
    /// The kernel gets the run and the views of `accesses`, in order. How the
    /// space is cut into runs is unspecified. Otherwise as
    /// [`parallel_for`](Self::parallel_for).
    ///
    /// # Errors
    /// As [`parallel_for`](Self::parallel_for).
    pub fn parallel_for_rows<A, F, const K: usize>(
        self,
        range: impl IntoRange<K>,
        accesses: A,
        kernel: F,
    ) -> Result<TaskId>
    where
        A: KernelAccesses<K> + 'static,
        F: for<'a> Fn(Row<K>, A::RowViews<'a>) + Send + Sync + 'static,
    {
        let (task, kernel) = self.lower_rows(range.into_range(), accesses, kernel)?;
        task.submit(Payload::Kernel(kernel))
    }

    /// Submits a kernel that `#[kernel]` has made of a function over items: as
    /// [`parallel_for`](Self::parallel_for), but for all kinds of devices.
    ///
    /// # Errors
    /// As [`parallel_for`](Self::parallel_for), and [`Error::Kernel`] if the
    /// devices cannot run the kernel.
    pub fn launch<A, W, const K: usize>(
        self,
        range: impl IntoRange<K>,
        accesses: A,
        kernel: W,
    ) -> Result<TaskId>
    where
        A: KernelAccesses<K> + 'static,
        W: for<'a> celerity_kernel::ItemKernel<K, A::ItemViews<'a>>,
    {
        self.submit_compiled(range.into_range(), accesses, kernel, |launch| ItemKernel {
            launch,
            kernel: by_item::<A, W, K>(kernel),
        })
    }

    /// Submits a kernel that `#[kernel]` has made of a function over rows: as
    /// [`parallel_for_rows`](Self::parallel_for_rows), but for all kinds of devices.
    ///
    /// ```
    /// use celerity::prelude::*;
    /// use celerity_example_kernels::linear::saxpy; // from a crate of kernels
    ///
    /// let sums = celerity::run(|queue| {
    ///     let x = queue.buffer_from(4, vec![1.0_f32, 2.0, 3.0, 4.0])?;
    ///     let y = queue.buffer_from(4, vec![1.0_f32; 4])?;
    ///     let accesses = (y.read_write(one_to_one()), x.read(one_to_one()));
    ///     queue.task("saxpy").launch_rows(4, accesses, saxpy::<f32>::new(2.0))?;
    ///     Ok(queue.fence(&y)?.wait()?.as_slice().to_vec())
    /// })?;
    /// assert_eq!(sums, [3.0, 5.0, 7.0, 9.0]);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`launch`](Self::launch).
    pub fn launch_rows<A, W, const K: usize>(
        self,
        range: impl IntoRange<K>,
        accesses: A,
        kernel: W,
    ) -> Result<TaskId>
    where
        A: KernelAccesses<K> + 'static,
        W: for<'a> celerity_kernel::RowKernel<K, A::RowViews<'a>>,
    {
        self.submit_compiled(range.into_range(), accesses, kernel, |launch| RowKernel {
            launch,
            kernel: by_row::<A, W, K>(kernel),
        })
    }

    /// What [`parallel_for`](Self::parallel_for) would submit, for a benchmark to
    /// run by hand.
    #[doc(hidden)]
    pub fn item_kernel<A, F, const K: usize>(
        self,
        range: impl IntoRange<K>,
        accesses: A,
        kernel: F,
    ) -> Result<Arc<dyn DeviceKernel>>
    where
        A: KernelAccesses<K> + 'static,
        F: for<'a> Fn(Item<K>, A::ItemViews<'a>) + Send + Sync + 'static,
    {
        let (_, kernel) = self.lower_items(range.into_range(), accesses, kernel)?;
        Ok(kernel)
    }

    /// What [`parallel_for_rows`](Self::parallel_for_rows) would submit, for a
    /// benchmark to run by hand.
    #[doc(hidden)]
    pub fn row_kernel<A, F, const K: usize>(
        self,
        range: impl IntoRange<K>,
        accesses: A,
        kernel: F,
    ) -> Result<Arc<dyn DeviceKernel>>
    where
        A: KernelAccesses<K> + 'static,
        F: for<'a> Fn(Row<K>, A::RowViews<'a>) + Send + Sync + 'static,
    {
        let (_, kernel) = self.lower_rows(range.into_range(), accesses, kernel)?;
        Ok(kernel)
    }

    fn lower_items<A, F, const K: usize>(
        self,
        global: [usize; K],
        accesses: A,
        kernel: F,
    ) -> Result<(LoweredTask<'q>, Arc<dyn DeviceKernel>)>
    where
        A: KernelAccesses<K> + 'static,
        F: for<'a> Fn(Item<K>, A::ItemViews<'a>) + Send + Sync + 'static,
    {
        let (task, launch) = self.lower(global, accesses)?;
        Ok((task, Arc::new(ItemKernel { launch, kernel })))
    }

    fn lower_rows<A, F, const K: usize>(
        self,
        global: [usize; K],
        accesses: A,
        kernel: F,
    ) -> Result<(LoweredTask<'q>, Arc<dyn DeviceKernel>)>
    where
        A: KernelAccesses<K> + 'static,
        F: for<'a> Fn(Row<K>, A::RowViews<'a>) + Send + Sync + 'static,
    {
        let (task, launch) = self.lower(global, accesses)?;
        Ok((task, Arc::new(RowKernel { launch, kernel })))
    }

    fn submit_compiled<A, W, H, const K: usize>(
        self,
        global: [usize; K],
        accesses: A,
        kernel: W,
        on_host: impl FnOnce(Launch<A, K>) -> H,
    ) -> Result<TaskId>
    where
        A: KernelAccesses<K>,
        W: celerity_kernel::Kernel,
        H: Launched + 'static,
    {
        let (task, launch) = self.lower(global, accesses)?;
        let compiled = CompiledKernel::new(on_host(launch), kernel);
        task.submit(Payload::Kernel(Arc::new(compiled)))
    }

    fn lower<A: KernelAccesses<K>, const K: usize>(
        self,
        global: [usize; K],
        accesses: A,
    ) -> Result<(LoweredTask<'q>, Launch<A, K>)> {
        let offset = self.beginning(global)?;
        let space = self.index_space(offset, global)?;
        let mut lowering = Lowering::new(self.origin.queue, &self.origin.name).over(space);
        let plan = accesses.lower(&mut lowering)?;
        let Lowered { accesses, mappers } = lowering.finish();
        let launch = Launch { plan, offset, global, mappers, accesses: PhantomData };
        let work = Work::Device(space);
        Ok((LoweredTask { origin: self.origin, work, accesses }, launch))
    }

    /// Where the index space begins, if all of it can be counted from there.
    fn beginning<const K: usize>(&self, range: [usize; K]) -> Result<[usize; K]> {
        if self.offset.is_empty() {
            return Ok([0; K]);
        }
        let fits =
            |offset: &[usize; K]| (0..K).all(|dim| offset[dim].checked_add(range[dim]).is_some());
        let offset = self.offset.as_slice().try_into().ok().filter(fits);
        offset.ok_or_else(|| Error::Offset {
            task: self.origin.name.to_string(),
            offset: self.offset.clone(),
            range: range.to_vec(),
        })
    }

    fn index_space<const K: usize>(
        &self,
        offset: [usize; K],
        global: [usize; K],
    ) -> Result<IndexSpace> {
        if volume(global).is_none() {
            let task = self.origin.name.to_string();
            return Err(Error::IndexSpaceVolume { task, range: global.to_vec() });
        }
        let mut granularity = [1; 3];
        let given = &self.granularity;
        if !given.is_empty() && (given.len() != K || given.contains(&0)) {
            let task = self.origin.name.to_string();
            return Err(Error::Granularity { task, granularity: given.clone(), dims: K });
        }
        granularity.iter_mut().zip(given).for_each(|(wide, &size)| *wide = size as u64);
        let (extent, split) = (to_box(Subrange { offset, range: global }), self.split);
        let oversubscription = self.check_hints(K)?;
        Ok(IndexSpace { dims: K as u8, extent, granularity, split, oversubscription })
    }

    /// Chunks per device, if the hints fit an index space of `dims` dimensions.
    fn check_hints(&self, dims: usize) -> Result<u32> {
        let task = || self.origin.name.to_string();
        let along = match self.split {
            Split::Along(dim) => Some(usize::from(dim)),
            _ => None,
        };
        if let Some(dim) = self.impossible_dim.or(along.filter(|&dim| dim >= dims)) {
            return Err(Error::SplitDimension { task: task(), dim, dims });
        }
        match u32::try_from(self.oversubscription) {
            Ok(chunks @ 1..=MOST_CHUNKS) => Ok(chunks),
            _ => Err(Error::Oversubscription { task: task(), chunks: self.oversubscription }),
        }
    }
}

/// A host task before its function is known.
#[derive(Debug)]
#[must_use = "a host task is submitted by `once`"]
pub struct HostTaskBuilder<'q> {
    origin: Origin<'q>,
}

impl HostTaskBuilder<'_> {
    /// Submits a function that runs once in the cluster, on node 0, when the
    /// contents that it reads are there. It gets the views of `accesses`, in
    /// order, and must own what it captures.
    ///
    /// # Errors
    /// As [`TaskBuilder::parallel_for`].
    pub fn once<A, F>(self, accesses: A, function: F) -> Result<TaskId>
    where
        A: HostAccesses,
        F: for<'a> FnOnce(A::Views<'a>) + Send + 'static,
    {
        let mut lowering = Lowering::new(self.origin.queue, &self.origin.name);
        let plan = accesses.lower(&mut lowering)?;
        let Lowered { accesses, .. } = lowering.finish();
        let payload = Payload::Host(call_with_views::<A, F>(plan, function));
        LoweredTask { origin: self.origin, work: Work::HostOnce, accesses }.submit(payload)
    }
}
