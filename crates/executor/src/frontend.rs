//! What one node's user threads hold: the task graph, and the way to the node.
//! Erased: knows bytes and boxes, not element types.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use celerity_cdag::NodeId;
use celerity_cpd::{Collectives, Costs, Discovery};
use celerity_idag::Lookahead;
use celerity_tdag::{
    BufferId, CollectiveGroup, DeclareError, EpochAction, Mapper, MapperPanic, NewBuffer, ObjectId,
    Task, TaskGraph, TaskId, TaskSpec, Traced, Work,
};
use celerity_trace::Text;
use smallvec::SmallVec;

use crate::config::{CheckLevel, ClusterConfig};
use crate::error::{RunError, SubmitError};
use crate::profile::StageProfile;
use crate::progress::Progress;
use crate::reactor::Feeder;
use crate::reduced::ReducedSpaces;
use crate::submission::Submission;
use crate::sync::lock;
use crate::threads::{
    refuse_barriers, refuse_in_engine, refuse_submissions, refuse_waits, while_mapping,
};
use crate::time::Time;
use crate::work::{DeviceKernel, HostData, Payload};

/// One node's side of a run, as its user code sees it. `Send` and `Sync`; tasks
/// of several threads enter the graph in the order of their submission.
///
/// All nodes of a cluster must create the same buffers and submit the same
/// tasks in the same order.
pub struct NodeFrontend {
    node: NodeId,
    nodes: usize,
    devices: usize,
    run_ahead: u64,
    /// Bytes of a buffer's initial contents up to which all are compared between nodes.
    compared_bytes: u64,
    /// Of so many tasks with users' mappers, those of one are held to their laws.
    mappers_tried: Option<u64>,
    program: Mutex<Program>,
    /// Horizons submitted so far.
    horizons: AtomicU64,
    progress: Arc<Progress>,
    submitter: Feeder<Submission>,
    kernel_check: Option<Arc<KernelCheck>>,
    rounds: Arc<AtomicU64>,
    profile: Option<Arc<StageProfile>>,
    /// Tasks whose range mappers are being asked on threads of the program.
    mapping: Mutex<Vec<Arc<Mapping>>>,
    /// The names of collective groups, by number.
    groups: Mutex<Vec<Arc<str>>>,
    since: Instant,
}

/// A task whose range mappers are being asked before it is submitted.
struct Mapping {
    /// Its name and source line.
    task: String,
    since: Instant,
}

/// The task graph and what goes with it, under one lock: the order of tasks in
/// the graph is the order in which they are sent.
struct Program {
    graph: TaskGraph,
    /// Which forwards to insert in front of tasks.
    discovery: Discovery,
    /// How tasks are cut that do not reduce.
    reduced: ReducedSpaces,
    batch: Vec<Arc<Task>>,
    newest: TaskId,
    /// Whether the shutdown epoch is in the graph.
    ended: bool,
    /// What was tolerated and nobody has asked for yet.
    warnings: Vec<DeclareError>,
    /// The newest tasks, each in the slot of its id, for who has to name one that the engine is
    /// at. What they own goes with those whom it belongs to.
    recent: Vec<Weak<Task>>,
}

/// Initial contents of so many bytes are compared between nodes whether schedules are checked or
/// not: it takes 7 µs of the thread that creates the buffer, on a virtual machine with an AMD EPYC,
/// about as long as a task takes that uses it; a megabyte would take 130 µs.
const ALWAYS_COMPARED: u64 = 64 << 10;

fn compared_bytes(config: &ClusterConfig) -> u64 {
    match (config.nodes, config.check) {
        (1, _) => 0,
        (_, CheckLevel::Off) => ALWAYS_COMPARED,
        (_, CheckLevel::Cheap | CheckLevel::Full) => u64::MAX,
    }
}

/// More than the run-ahead covers in ordinary programs.
const RECENT: usize = 2048;

/// A program that is never asked about its warnings must not collect them.
const MOST_WARNINGS: usize = 64;

/// What a frontend knows of its node.
#[derive(Clone)]
pub(crate) struct NodeHandle {
    pub(crate) id: NodeId,
    pub(crate) progress: Arc<Progress>,
    /// The same on all nodes.
    pub(crate) costs: Costs,
    /// From how many bytes on collective operations take place between devices, if they do; the same on all
    /// nodes.
    pub(crate) on_devices: Option<u64>,
    /// Looks at kernels when they are submitted.
    pub(crate) kernel_check: Option<Arc<KernelCheck>>,
    /// Records what the node's program does.
    pub(crate) profile: Option<Arc<StageProfile>>,
    /// Which collective operations are looked for; the same on all nodes.
    pub(crate) collectives: Collectives,
}

/// Looks at a kernel and the number of its accesses, and says what keeps it from
/// running.
pub type KernelCheck = dyn Fn(&dyn DeviceKernel, usize) -> Result<(), String> + Send + Sync;

impl NodeFrontend {
    pub(crate) fn new(
        config: &ClusterConfig,
        node: NodeHandle,
        submitter: Feeder<Submission>,
        rounds: Arc<AtomicU64>,
        since: Instant,
    ) -> Self {
        let mut graph = TaskGraph::new(config.task_graph());
        let init = graph.start();
        let newest = init.id;
        node.progress.task_submitted();
        submitter.feed(Submission::Task { task: init, payload: None });
        // The first task is never asked for, but has a slot.
        let (batch, warnings, recent) = (Vec::new(), Vec::new(), vec![Weak::new()]);
        let mut discovery = Discovery::new(node.collectives, config.nodes).with_costs(node.costs);
        if let Some(least) = node.on_devices {
            discovery = discovery.with_costs_from(least, Costs::of_devices());
        }
        if config.tells_weighed {
            discovery = discovery.telling();
        }
        let (reduced, ended) = (ReducedSpaces::default(), false);
        let program = Program { graph, discovery, reduced, batch, newest, ended, warnings, recent };
        Self {
            node: node.id,
            nodes: config.nodes,
            devices: config.devices,
            run_ahead: config.run_ahead as u64,
            compared_bytes: compared_bytes(config),
            mappers_tried: mappers_tried(config.check),
            program: Mutex::new(program),
            horizons: AtomicU64::new(0),
            progress: node.progress,
            submitter,
            kernel_check: node.kernel_check,
            rounds,
            profile: node.profile,
            mapping: Mutex::default(),
            groups: Mutex::default(),
            since,
        }
    }

    /// The id of this node.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Nodes in the cluster.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Devices of each node.
    #[must_use]
    pub fn devices(&self) -> usize {
        self.devices
    }

    /// The collective group of this name: nodes that run the same program get the same. `None` if
    /// there are [too many](CollectiveGroup::MOST) others.
    pub fn collective_group(&self, name: &str) -> Option<CollectiveGroup> {
        let mut groups = lock(&self.groups);
        let known = groups.iter().position(|group| **group == *name);
        let number = known.unwrap_or(groups.len());
        if number == CollectiveGroup::MOST {
            return None;
        }
        if known.is_none() {
            groups.push(name.into());
        }
        Some(CollectiveGroup::new(number, name))
    }

    /// Adds a virtual buffer; nothing is allocated. `data` is its initial
    /// contents, row-major. If its length is wrong, the run fails with
    /// [`RunError::HostDataLength`]; if nodes provide different ones, with
    /// [`RunError::ContentsDiffer`], as far as contents are compared: up to 64 KiB always, and
    /// all if [schedules are checked](ClusterConfig::check).
    ///
    /// # Panics
    /// If `data` is there and `new.host_initialized` is not set, or the other
    /// way round, or if it is not aligned as `new` says.
    pub fn create_buffer(&self, new: NewBuffer, data: Option<HostData>) -> BufferId {
        self.create_typed_buffer(new, "", data)
    }

    /// As [`create_buffer`](Self::create_buffer), for elements of a type that is called so. Nodes that say
    /// different ones do not make the same program, though sizes be the same.
    ///
    /// # Panics
    /// As [`create_buffer`](Self::create_buffer).
    pub fn create_typed_buffer(
        &self,
        new: NewBuffer,
        element_type: &'static str,
        mut data: Option<HostData>,
    ) -> BufferId {
        assert_eq!(new.host_initialized, data.is_some(), "initial data comes with its flag");
        let aligned = data.as_ref().is_none_or(|data| data.is_aligned(new.elem_align));
        assert!(aligned, "initial data is aligned for the buffer's elements");
        let bytes = new.extent.volume().saturating_mul(new.elem_size);
        let compared = |data: &&mut HostData| data.bytes() == bytes && bytes <= self.compared_bytes;
        if let Some(data) = data.as_mut().filter(compared) {
            data.look_at_contents();
        }
        let mut program = lock(&self.program);
        let info = program.graph.create_buffer(new);
        let buffer = info.id;
        if !program.ended {
            program.discovery.create_buffer(&info);
            self.send(Submission::Buffer { info, element_type, data });
        }
        buffer
    }

    /// Changes what messages call a buffer. Does nothing to a dropped one.
    pub fn rename_buffer(&self, buffer: BufferId, name: &str) {
        let mut program = lock(&self.program);
        if program.graph.buffer(buffer).is_some() && !program.ended {
            let info = program.graph.rename_buffer(buffer, name.into());
            self.send(Submission::Renamed(info));
        }
    }

    /// Drops a buffer: no later task may name it, and its memory goes once the
    /// tasks before have completed. Does nothing to a dropped one.
    pub fn drop_buffer(&self, buffer: BufferId) {
        let mut program = lock(&self.program);
        if program.graph.buffer(buffer).is_some() && !program.ended {
            program.graph.drop_buffer(buffer);
            program.discovery.drop_buffer(buffer);
            self.send(Submission::Dropped(buffer));
        }
    }

    /// Adds a host object, which is called `name` in messages, or else by its id. Its value stays
    /// with who calls this; tasks with side effects on it are ordered here, and on every node.
    #[must_use]
    pub fn create_object(&self, name: Option<Arc<str>>) -> ObjectId {
        let mut program = lock(&self.program);
        let object = program.graph.create_object(name);
        if self.nodes > 1 && !program.ended {
            self.send(Submission::Object(object));
        }
        object
    }

    /// Changes what messages call a host object. Does nothing to one that has ended.
    pub fn rename_object(&self, object: ObjectId, name: &str) {
        lock(&self.program).graph.rename_object(object, name.into());
    }

    /// Ends a host object: no later task may name it. Those before are not disturbed.
    pub fn end_object(&self, object: ObjectId) {
        lock(&self.program).graph.end_object(object);
    }

    /// Submits a task, and returns as soon as it is in the task graph: before
    /// it runs. Blocks when [`run_ahead`](ClusterConfig::run_ahead) horizons have
    /// been submitted and not reached, until half of them are. Those that the lookahead holds back count as reached.
    ///
    /// A task over an empty index space is checked by nobody and does nothing;
    /// for it, the id of the newest task is returned. If the run fails, the
    /// payload is dropped without having been called.
    ///
    /// Users' range mappers are asked on the calling thread, while no lock is held.
    ///
    /// # Errors
    /// [`SubmitError::Declare`] or [`SubmitError::Kernel`] if the task is wrong: it
    /// is not in the graph, and the run goes on. [`SubmitError::Run`] if the run
    /// has failed or ended, or if a kernel, a host task or a range mapper calls this.
    ///
    /// # Panics
    /// If the payload does not fit the task's work: a kernel for
    /// [`Work::Device`], a host function that is called per chunk for [`Work::HostSplit`], another
    /// one for everything else that runs on the host.
    pub fn submit(&self, spec: TaskSpec, payload: Payload) -> Result<TaskId, SubmitError> {
        assert!(fits(&spec.work, &payload), "{:?} comes with the wrong payload", spec.work);
        refuse_submissions()?;
        self.check_kernel(&spec, &payload)?;
        self.wait_for_run_ahead()?;
        let name = self.profile.is_some().then(|| spec.name.clone());
        let label = |entered: &Result<TaskId, _>| {
            (Text::Shared(name.unwrap_or_default()), entered.as_ref().ok().copied())
        };
        self.timed(label, || self.enter(spec, payload))
    }

    /// Whether the calling thread may submit tasks. O(1).
    ///
    /// # Errors
    /// [`RunError::Misplaced`] in a kernel, a host task or a range mapper.
    pub fn check_caller(&self) -> Result<(), RunError> {
        refuse_submissions()
    }

    /// Lets a task enter the graph.
    fn enter(&self, mut spec: TaskSpec, payload: Payload) -> Result<TaskId, SubmitError> {
        // A refused task is dropped under the lock, and a user's mapper may own
        // the last handle of a buffer, whose end takes the lock again: so it is
        // kept until the lock, which is dropped first, is free.
        let users = user_mappers(&spec);
        let traced = if users.is_empty() { None } else { self.trace(&spec)? };
        let mut program = lock(&self.program);
        self.check_open(&program)?;
        if spec.work.extent().is_empty() {
            return Ok(program.newest);
        }
        let Program { graph, discovery, reduced, batch, warnings, .. } = &mut *program;
        let news = reduced.news(&spec);
        reduced.align(&mut spec.work, self.nodes);
        let discover = |spec: &_, touched: &_| discovery.discover(spec, touched);
        let (task, found) = match traced {
            None => graph.submit_behind(spec, discover, batch)?,
            Some(traced) => graph.submit_traced(spec, traced, discover, batch)?,
        };
        if let Some(task) = batch.iter().find(|entered| entered.id == task) {
            discovery.committed(task);
        }
        news.into_iter().for_each(|space| reduced.note(space));
        for weighed in discovery.take_weighed(task) {
            self.send(Submission::Weighed(Box::new(weighed)));
        }
        let room = MOST_WARNINGS.saturating_sub(warnings.len());
        warnings.extend(found.into_iter().take(room));
        self.send_tasks(&mut program, Some((task, payload)));
        Ok(task)
    }

    /// Checks that all of a buffer has been written, for a task that reads it when somebody needs what
    /// it makes: `task` says for which.
    ///
    /// # Errors
    /// [`SubmitError::Declare`], if a task that reads it now would be refused.
    pub fn check_written(
        &self,
        buffer: BufferId,
        task: impl FnOnce() -> String,
    ) -> Result<(), SubmitError> {
        Ok(lock(&self.program).graph.check_written(buffer, task)?)
    }

    /// Asks a user's mappers what a task touches, without the lock: they may take their time,
    /// and what they drop may be a buffer's last handle.
    #[inline(never)]
    fn trace(&self, spec: &TaskSpec) -> Result<Option<Traced>, SubmitError> {
        let sketch = {
            let program = lock(&self.program);
            self.check_open(&program)?;
            program.graph.sketch(spec)
        };
        if spec.work.extent().is_empty() {
            return Ok(None);
        }
        let (task, since) = (format!("\"{}\"{}", spec.name, at(spec)), Instant::now());
        let mapping = Arc::new(Mapping { task, since });
        lock(&self.mapping).push(mapping.clone());
        let is_tried = self.mappers_tried.is_some_and(|one_of| sketch.next().index() % one_of == 0);
        let trace = || -> Result<Traced, DeclareError> {
            let traced = sketch.trace(spec)?;
            if is_tried {
                sketch.check_laws(spec)?;
            }
            Ok(traced)
        };
        let traced = catch_unwind(AssertUnwindSafe(|| while_mapping(trace)));
        lock(&self.mapping).retain(|other| !Arc::ptr_eq(other, &mapping));
        // What else of a mapper panics, its name perhaps, is a function that the program has called.
        let panicked = |panic| resume_unwind(MapperPanic::unwrapped(panic));
        Ok(Some(traced.unwrap_or_else(panicked)?))
    }

    /// The task whose range mappers a thread of the program has been asking for longest, if one
    /// is, and since when.
    pub(crate) fn mapping(&self) -> Option<(String, Time)> {
        let mapping = lock(&self.mapping).first().cloned()?;
        let since = Time::START + mapping.since.saturating_duration_since(self.since);
        Some((mapping.task.clone(), since))
    }

    /// A task's id; and its name and source line, if it is one of the newest that have not
    /// ended.
    pub(crate) fn describe(&self, task: TaskId) -> String {
        let recent = lock(&self.program).recent.get(slot(task)).and_then(Weak::upgrade);
        let known = recent.filter(|recent| recent.id == task);
        known.map_or_else(|| task.to_string(), |known| known.to_string())
    }

    /// Calls `alarm` when the run fails, or is asked to.
    pub(crate) fn on_failure(&self, alarm: impl Fn() + Send + Sync + 'static) {
        self.progress.on_failure(alarm);
    }

    /// Refuses what makes others wait, if a range mapper calls for it, or a destructor that the runtime runs: as in "take a
    /// host object back".
    ///
    /// # Errors
    /// [`RunError::Misplaced`] on a thread that is in one.
    pub fn refuse_in_engine(&self, act: &str) -> Result<(), RunError> {
        refuse_in_engine(act)
    }

    /// Refuses what waits, as in "wait for a fence", there and in kernels.
    ///
    /// # Errors
    /// [`RunError::Misplaced`] on a thread that is in one.
    pub fn refuse_waits(&self, act: &str) -> Result<(), RunError> {
        refuse_waits(act)
    }

    /// Waits until all nodes have reached this point and everything submitted
    /// before has completed. Every node must call it, and no task may: it would
    /// wait for itself.
    ///
    /// # Errors
    /// The run's first error, if it has failed. [`RunError::Misplaced`] if a kernel, a host
    /// task or a range mapper calls this.
    pub fn barrier(&self) -> Result<(), RunError> {
        refuse_barriers()?;
        self.epoch(EpochAction::Barrier)
    }

    /// The same as the end of the program on this node: nothing can be submitted afterwards.
    ///
    /// # Errors
    /// As [`barrier`](Self::barrier); [`RunError::Ended`] the second time.
    pub fn finish(&self) -> Result<(), RunError> {
        refuse_barriers()?;
        self.epoch(EpochAction::Shutdown)
    }

    /// Lets a thread of the program wait for something of its own. If there is a trace, it shows
    /// for how long, under `name`.
    pub fn timed_wait<T>(&self, name: impl FnOnce() -> String, wait: impl FnOnce() -> T) -> T {
        self.timed(|_| (Text::shown(name()), None), wait)
    }

    /// Lets go of all work that is held back to see what follows (instruction-graph preprint,
    /// §4.3). Returns at once.
    pub fn flush(&self) {
        tracing::debug!(node = %self.node, "flush");
        self.send(Submission::Flush);
    }

    /// Changes how long later work that will allocate is held back.
    pub fn set_lookahead(&self, lookahead: Lookahead) {
        self.send(Submission::Lookahead(lookahead));
    }

    /// What submitted tasks do that was tolerated, such as reads of elements
    /// that nothing has written; each is handed out once. If nobody asks, only
    /// the first 64 are kept.
    #[must_use]
    pub fn take_warnings(&self) -> Vec<DeclareError> {
        std::mem::take(&mut lock(&self.program).warnings)
    }

    /// The run's first error, if it has failed.
    #[must_use]
    pub fn error(&self) -> Option<RunError> {
        self.progress.error()
    }

    /// Keeps something until the run's first error is known, for a task that is about to end the
    /// run: whoever is told by the end of it then finds the error.
    pub fn keep_until_failure(&self, kept: impl Send + 'static) {
        self.progress.keep_until_failure(Box::new(kept));
    }

    /// Rounds that the loop behind this node has made so far: a measure of
    /// activity that stands still while nothing happens.
    #[must_use]
    pub fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }

    /// Horizons that have been submitted and not reached.
    #[must_use]
    pub fn outstanding_horizons(&self) -> u64 {
        self.horizons.load(Ordering::Relaxed).saturating_sub(self.progress.horizons())
    }

    /// Completes everything and ends the run on this node, unless the program
    /// [has](Self::finish).
    pub(crate) fn shutdown(&self) -> Result<(), RunError> {
        if lock(&self.program).ended {
            return self.progress.check();
        }
        self.epoch(EpochAction::Shutdown)
    }

    /// Stops the run on all nodes.
    pub(crate) fn abort(&self, error: RunError) {
        self.progress.alarm();
        self.send(Submission::Abort(Box::new(error)));
    }

    /// Lets go of the node: nothing else will be submitted.
    pub(crate) fn close(&self) {
        lock(&self.program).ended = true;
        self.progress.program_ended();
        self.send(Submission::Closed);
    }

    fn epoch(&self, action: EpochAction) -> Result<(), RunError> {
        let mut program = lock(&self.program);
        self.check_open(&program)?;
        program.ended = action == EpochAction::Shutdown;
        let Program { graph, batch, .. } = &mut *program;
        let task = graph.epoch(action, batch);
        self.send_tasks(&mut program, None);
        drop(program);
        let label = |_: &_| ("wait for epoch".into(), Some(task));
        self.timed(label, || self.progress.wait_for_epoch(task))
    }

    /// Blocks without holding a lock: tasks that are being waited for may drop
    /// buffers when they go. Once it blocks, it does so until half of what was
    /// outstanding is done, so that a program that is faster than its tasks
    /// sleeps and wakes once per batch instead of once per horizon.
    fn wait_for_run_ahead(&self) -> Result<(), RunError> {
        let submitted = self.horizons.load(Ordering::Relaxed);
        // Saturating: other threads may submit, and be done, in between.
        if submitted.saturating_sub(self.progress.passed_horizons()) < self.run_ahead {
            return self.progress.check();
        }
        let awaited = submitted - self.run_ahead / 2;
        let label = |_: &_| ("wait for horizons".into(), None);
        self.timed(label, || self.progress.wait_for_horizons(awaited))
    }

    /// Does something that takes the program's time, and records it if there is a
    /// trace.
    fn timed<T>(
        &self,
        label: impl FnOnce(&T) -> (Text, Option<TaskId>),
        work: impl FnOnce() -> T,
    ) -> T {
        StageProfile::timed(self.profile.as_deref(), label, work)
    }

    /// Whether the devices can run the kernel.
    fn check_kernel(&self, spec: &TaskSpec, payload: &Payload) -> Result<(), SubmitError> {
        let (Some(check), Payload::Kernel(kernel)) = (&self.kernel_check, payload) else {
            return Ok(());
        };
        check(&**kernel, spec.buffer_accesses().count()).map_err(|reason| {
            let name = spec.name.to_string();
            SubmitError::Kernel { name, location: spec.location.clone(), reason }
        })
    }

    fn check_open(&self, program: &Program) -> Result<(), RunError> {
        self.progress.check()?;
        if program.ended { Err(RunError::Ended { node: self.node }) } else { Ok(()) }
    }

    /// Sends the batch; the payload belongs to one of its tasks.
    fn send_tasks(&self, program: &mut Program, mut payload: Option<(TaskId, Payload)>) {
        for task in program.batch.drain(..) {
            program.newest = task.id;
            let (slot, recent) = (slot(task.id), Arc::downgrade(&task));
            match program.recent.get_mut(slot) {
                Some(older) => *older = recent,
                None => program.recent.push(recent),
            }
            if task.work == Work::Horizon {
                self.horizons.fetch_add(1, Ordering::Relaxed);
            }
            tracing::trace!(node = %self.node, %task, "submitted");
            self.progress.task_submitted();
            let payload = payload.take_if(|(of, _)| *of == task.id).map(|(_, payload)| payload);
            self.send(Submission::Task { task, payload });
        }
    }

    fn send(&self, submission: Submission) {
        self.submitter.feed(submission);
    }
}

impl std::fmt::Debug for NodeFrontend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NodeFrontend({} of {}, {} devices)", self.node, self.nodes, self.devices)
    }
}

fn slot(task: TaskId) -> usize {
    usize::try_from(task.index() % RECENT as u64).expect("a small remainder")
}

fn at(spec: &TaskSpec) -> String {
    spec.location.as_ref().map_or_else(String::new, |location| format!(" at {location}"))
}

/// Where schedules are checked, as in debug builds, a sample of tasks.
fn mappers_tried(level: CheckLevel) -> Option<u64> {
    match level {
        CheckLevel::Off => None,
        CheckLevel::Cheap => Some(16),
        CheckLevel::Full => Some(1),
    }
}

fn user_mappers(spec: &TaskSpec) -> SmallVec<[Mapper; 4]> {
    let on_trust = spec.buffer_accesses().filter(|access| access.is_on_trust());
    on_trust.map(|access| access.mapper.clone()).collect()
}

fn fits(work: &Work, payload: &Payload) -> bool {
    match work {
        Work::Device(_) => matches!(payload, Payload::Kernel(_)),
        Work::HostOnce { .. } | Work::Fence | Work::Combine { .. } => {
            matches!(payload, Payload::Host(_))
        }
        Work::HostSplit { .. } => matches!(payload, Payload::HostSplit(_)),
        Work::Forward | Work::Horizon | Work::Epoch(_) => false,
    }
}
