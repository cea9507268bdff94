//! The task graph itself: dataflow at element granularity, horizons, epochs.
//! The same on every node; knows nothing of nodes, devices or communication.

use std::sync::Arc;

use celerity_regions::{Box3, Region};

use crate::access::{Access, AccessMode};
use crate::buffer_state::BufferState;
use crate::buffer_table::{BufferTable, Sweep};
use crate::collective::GroupOrder;
use crate::conflicts::Conflicts;
use crate::declare::{Declared, describe, trace};
use crate::dependency::{Dependencies, DependencyKind};
use crate::error::{DeclareError, UninitializedRead};
use crate::footprint::{Footprint, Touched};
use crate::frontier::Frontier;
use crate::id::{BufferId, ObjectId, TaskId};
use crate::mapper::Mapper;
#[cfg(feature = "mutants")]
use crate::mistakes;
use crate::objects::Objects;
use crate::side_effects::SideEffects;
use crate::sketch::{Sketch, Traced};
use crate::task::{BufferInfo, EpochAction, NewForward, Task, TaskSpec, Work};

/// Parameters of a [`TaskGraph`]; they must be equal on all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskGraphConfig {
    /// A horizon is generated when the longest chain has grown by so many
    /// tasks since the last one (instruction-graph preprint, §3.5).
    pub horizon_step: u64,
    /// … or when so many tasks have no successor.
    pub horizon_max_parallelism: u64,
    /// What to do about reads of elements that nothing has written.
    pub uninitialized_read: UninitializedRead,
}

impl Default for TaskGraphConfig {
    fn default() -> Self {
        Self {
            horizon_step: 4,
            horizon_max_parallelism: 64,
            uninitialized_read: UninitializedRead::Error,
        }
    }
}

/// A buffer to create.
#[derive(Clone, Debug)]
pub struct NewBuffer {
    /// What the user calls it; `None` for its id.
    pub name: Option<Arc<str>>,
    /// True dimensionality, 0 to 3.
    pub dims: u8,
    /// All elements; the minimum must be the origin. May be empty.
    pub extent: Box3,
    /// Bytes per element; at least 1.
    pub elem_size: u64,
    /// Alignment of an element in bytes; a power of two.
    pub elem_align: u64,
    /// Whether every node provides the same initial contents.
    pub host_initialized: bool,
}

/// What [`NewBuffer`] says of its fields.
pub(crate) fn check_buffer(info: &BufferInfo) -> Result<(), String> {
    let BufferInfo { id, dims, extent, elem_size, elem_align, .. } = info;
    if *dims > 3 || extent.effective_dims() > usize::from(*dims) {
        return Err(format!("{id} has {dims} dimensions and the extent {extent}"));
    }
    if extent.min() != [0; 3] {
        return Err(format!("{id} is {extent}, which does not begin at the origin"));
    }
    if *elem_size == 0 || !elem_align.is_power_of_two() {
        return Err(format!("{id} has elements of {elem_size} bytes aligned to {elem_align}"));
    }
    Ok(())
}

/// Builds the graph of a program's tasks, one task at a time.
///
/// Tasks leave as soon as they are committed; what stays is, per buffer, who
/// wrote each element last and who has read it since, and the window of tasks
/// since the last applied horizon. So memory is bounded by the program's
/// current access pattern, not by its length.
#[derive(Debug)]
pub struct TaskGraph {
    config: TaskGraphConfig,
    buffers: BufferTable<BufferState>,
    created: u64,
    objects: Objects,
    side_effects: SideEffects<TaskId>,
    frontier: Frontier<TaskId>,
    groups: GroupOrder<TaskId>,
    /// The newest horizon; it is applied when the next one is generated.
    pending_horizon: Option<TaskId>,
    /// Length of the longest chain before the newest horizon or epoch.
    depth_at_horizon: u64,
    horizon_name: Arc<str>,
    epoch_name: Arc<str>,
}

impl TaskGraph {
    /// A graph without tasks; [`start`](Self::start) gives it its first.
    #[must_use]
    pub fn new(config: TaskGraphConfig) -> Self {
        Self {
            config,
            buffers: BufferTable::default(),
            created: 0,
            objects: Objects::default(),
            side_effects: SideEffects::default(),
            frontier: Frontier::new(),
            groups: GroupOrder::default(),
            pending_horizon: None,
            depth_at_horizon: 0,
            horizon_name: "horizon".into(),
            epoch_name: "epoch".into(),
        }
    }

    /// The first task, `T0`: the init epoch.
    ///
    /// # Panics
    /// If the graph has been started before.
    pub fn start(&mut self) -> Arc<Task> {
        assert_eq!(self.frontier.next_id().index(), 0, "a task graph is started once");
        self.push_epoch(EpochAction::Init)
    }

    /// Adds a virtual buffer. Nothing is allocated.
    ///
    /// # Panics
    /// If the buffer cannot be: see the fields of [`NewBuffer`].
    pub fn create_buffer(&mut self, new: NewBuffer) -> Arc<BufferInfo> {
        let id = BufferId::from_index(self.created);
        self.created += 1;
        let info = Arc::new(BufferInfo {
            id,
            name: new.name.unwrap_or_else(|| id.to_string().into()),
            dims: new.dims,
            extent: new.extent,
            elem_size: new.elem_size,
            elem_align: new.elem_align,
            host_initialized: new.host_initialized,
        });
        check_buffer(&info).unwrap_or_else(|flaw| panic!("no such buffer: {flaw}"));
        self.buffers.insert(id, BufferState::new(info.clone()));
        info
    }

    /// Changes what messages call a buffer; returns its new description.
    ///
    /// # Panics
    /// If there is no such buffer.
    pub fn rename_buffer(&mut self, buffer: BufferId, name: Arc<str>) -> Arc<BufferInfo> {
        let state = buffer_mut(&mut self.buffers, buffer);
        Arc::make_mut(&mut state.info).name = name;
        state.info.clone()
    }

    /// A buffer's description, unless it has been dropped.
    #[must_use]
    pub fn buffer(&self, buffer: BufferId) -> Option<&Arc<BufferInfo>> {
        self.buffers.get(buffer).map(|state| &state.info)
    }

    /// Forgets a buffer: later tasks cannot name it.
    pub fn drop_buffer(&mut self, buffer: BufferId) {
        drop(self.buffers.remove(buffer));
    }

    /// Adds a host object, which messages call `name`, or else by its id.
    pub fn create_object(&mut self, name: Option<Arc<str>>) -> ObjectId {
        self.objects.create(name)
    }

    /// Changes what messages call a host object, if it has not ended.
    pub fn rename_object(&mut self, object: ObjectId, name: Arc<str>) {
        self.objects.rename(object, name);
    }

    /// What messages call a host object, unless it has ended.
    #[must_use]
    pub fn object(&self, object: ObjectId) -> Option<&Arc<str>> {
        self.objects.name(object)
    }

    /// Ends a host object: later tasks cannot name it.
    pub fn end_object(&mut self, object: ObjectId) {
        self.objects.end(object);
    }

    /// Checks a task and finds what it touches, without changing anything.
    /// O(accesses · mapper evaluation), plus a query of each buffer it reads.
    ///
    /// # Errors
    /// [`DeclareError`] says what the task does that it must not do.
    ///
    /// # Panics
    /// With [`MapperPanic`](crate::MapperPanic), if a user's mapper does. A
    /// [sketch](Self::sketch) makes an error of it.
    pub fn declare(&self, spec: TaskSpec) -> Result<Declared, DeclareError> {
        let mut footprint = Footprint::new();
        let warnings = self.check(&spec, &mut footprint)?;
        Ok(Declared { spec, footprint, warnings })
    }

    /// Declares a task and commits it at once, for whoever inserts nothing in
    /// between: what was found out about the task does not have to be moved.
    /// Returns its id and its [warnings](Declared::warnings).
    ///
    /// # Errors
    /// As for [`declare`](Self::declare); nothing has been changed then.
    ///
    /// # Panics
    /// As [`declare`](Self::declare); if the graph has not been [started](Self::start).
    pub fn submit(
        &mut self,
        spec: TaskSpec,
        out: &mut Vec<Arc<Task>>,
    ) -> Result<(TaskId, Vec<DeclareError>), DeclareError> {
        self.submit_behind(spec, |_, _| Vec::new(), out)
    }

    /// As [`submit`](Self::submit), for whoever inserts [forwards](Self::forward): those that
    /// `discover` finds, which is told the task and what it touches if nothing is wrong with it.
    ///
    /// # Errors
    /// As for [`declare`](Self::declare); nothing has been changed then.
    ///
    /// # Panics
    /// As [`declare`](Self::declare); if the graph has not been [started](Self::start).
    #[inline]
    pub fn submit_behind(
        &mut self,
        spec: TaskSpec,
        discover: impl FnOnce(&TaskSpec, &[Touched]) -> Vec<NewForward>,
        out: &mut Vec<Arc<Task>>,
    ) -> Result<(TaskId, Vec<DeclareError>), DeclareError> {
        let mut footprint = Footprint::new();
        let warnings = self.check(&spec, &mut footprint)?;
        self.forward(discover(&spec, &footprint), out);
        Ok((self.place(spec, &footprint, out), warnings))
    }

    /// Inserts forwards in front of the task that is committed next, which is the consumer of all
    /// of them: each reads and writes its region, and changes nothing. Appends them to `out`. What
    /// nothing has written is left out, and forwards of nothing but that.
    ///
    /// No horizon comes between a forward and its consumer; one that is due follows that.
    ///
    /// # Panics
    /// If a buffer does not exist.
    pub fn forward(&mut self, forwards: Vec<NewForward>, out: &mut Vec<Arc<Task>>) {
        if !forwards.is_empty() {
            self.place_forwards(forwards, out);
        }
    }

    /// What evaluating the mappers of `spec` takes of this graph, so that a user's mapper can
    /// think while nobody holds it:
    ///
    /// ```
    /// # use celerity_tdag::*;
    /// use std::sync::Mutex;
    /// let graph = Mutex::new(TaskGraph::new(TaskGraphConfig::default()));
    /// graph.lock().unwrap().start();
    /// # let (name, work, accesses) = ("step".into(), Work::HostOnce { node: 0 }, Vec::new());
    /// let spec = TaskSpec { name, work, accesses, location: None };
    /// let sketch = graph.lock().unwrap().sketch(&spec);
    /// let traced = sketch.trace(&spec)?; // others may use the graph meanwhile
    /// let mut tasks = Vec::new();
    /// let forwards = |_: &_, _: &_| Vec::new();
    /// let (task, _) = graph.lock().unwrap().submit_traced(spec, traced, forwards, &mut tasks)?;
    /// assert_eq!(task, tasks[0].id);
    /// # Ok::<(), DeclareError>(())
    /// ```
    #[must_use]
    pub fn sketch(&self, spec: &TaskSpec) -> Sketch {
        let infos = spec.buffer_accesses().filter_map(|access| self.buffer(access.buffer));
        Sketch { next: self.frontier.next_id(), buffers: infos.cloned().collect() }
    }

    /// [`submit_behind`](Self::submit_behind) for a task whose mappers have been evaluated, by a
    /// [sketch](Self::sketch) of this graph.
    ///
    /// # Errors
    /// As [`submit`](Self::submit); also if a buffer of the task was dropped since.
    pub fn submit_traced(
        &mut self,
        spec: TaskSpec,
        traced: Traced,
        discover: impl FnOnce(&TaskSpec, &[Touched]) -> Vec<NewForward>,
        out: &mut Vec<Arc<Task>>,
    ) -> Result<(TaskId, Vec<DeclareError>), DeclareError> {
        let Traced(footprint) = traced;
        let gone = footprint.iter().find(|touched| self.buffer(touched.buffer).is_none());
        if let Some(&Touched { buffer, .. }) = gone {
            let task = describe(&spec, self.frontier.next_id());
            return Err(DeclareError::UnknownBuffer { task, buffer });
        }
        self.objects.check(&spec, self.frontier.next_id())?;
        let warnings = self.tolerated(&spec, &footprint)?;
        self.forward(discover(&spec, &footprint), out);
        Ok((self.place(spec, &footprint, out), warnings))
    }

    /// The tasks that last wrote what a declared task reads, each with a buffer
    /// and the part in question.
    pub fn producers(&self, declared: &Declared) -> Vec<(TaskId, BufferId, Region)> {
        let mut producers: Vec<(TaskId, BufferId, Region)> = Vec::new();
        for touched in declared.footprint.iter().filter(|touched| touched.mode.reads()) {
            let Some(state) = self.buffers.get(touched.buffer) else { continue };
            state.writers.for_each_in_region(&touched.region, |part, writer| {
                let Some(writer) = writer.map(|id| self.frontier.representative(id)) else {
                    return;
                };
                match producers.iter_mut().find(|p| (p.0, p.1) == (writer, touched.buffer)) {
                    Some(known) => known.2.union_box(&part),
                    None => producers.push((writer, touched.buffer, part.into())),
                }
            });
        }
        producers
    }

    /// Gives a declared task its place in the graph. Appends it to `out`, and
    /// after it a horizon if one is due. O(edges + changed map entries).
    ///
    /// # Panics
    /// If a buffer of the task was dropped since its declaration, or the graph has not been
    /// [started](Self::start).
    pub fn commit(&mut self, declared: Declared, out: &mut Vec<Arc<Task>>) -> TaskId {
        self.place(declared.spec, &declared.footprint, out)
    }

    /// Appends an epoch: it waits for all earlier tasks, and all later tasks
    /// wait for it.
    pub fn epoch(&mut self, action: EpochAction, out: &mut Vec<Arc<Task>>) -> TaskId {
        let epoch = self.push_epoch(action);
        let id = epoch.id;
        out.push(epoch);
        id
    }

    /// Checks `spec`, and adds what it touches to `footprint`, which is empty.
    /// Returns what is tolerated.
    fn check(
        &self,
        spec: &TaskSpec,
        footprint: &mut Footprint,
    ) -> Result<Vec<DeclareError>, DeclareError> {
        let buffer_of = |id| self.buffer(id).map(|info| &**info);
        let has_effects = trace::<false>(spec, self.frontier.next_id(), buffer_of, footprint)?;
        if has_effects {
            self.objects.check(spec, self.frontier.next_id())?;
        }
        self.tolerated(spec, footprint)
    }

    /// Checks a footprint against earlier tasks. Returns what is tolerated.
    fn tolerated(
        &self,
        spec: &TaskSpec,
        footprint: &Footprint,
    ) -> Result<Vec<DeclareError>, DeclareError> {
        let warnings = self.uninitialized_reads(spec, footprint);
        match (self.config.uninitialized_read, warnings.first()) {
            (UninitializedRead::Error, Some(first)) => Err(first.clone()),
            _ => Ok(warnings),
        }
    }

    fn place(
        &mut self,
        mut spec: TaskSpec,
        footprint: &Footprint,
        out: &mut Vec<Arc<Task>>,
    ) -> TaskId {
        assert!(
            self.frontier.next_id().index() > 0,
            "a task graph is started before its first task"
        );
        spec.settle_collective_effects();
        let mut dependencies = Dependencies::default();
        let conflicts = self.edges(&spec, footprint, &mut dependencies);
        let id = self.frontier.push(&dependencies);
        out.push(Arc::new(Task {
            id,
            name: spec.name,
            work: spec.work,
            accesses: spec.accesses.into_boxed_slice(),
            dependencies,
            conflicts,
            location: spec.location,
            forward: None,
        }));
        if self.horizon_is_due() {
            out.push(self.push_horizon());
        }
        id
    }

    #[inline(never)]
    fn place_forwards(&mut self, mut forwards: Vec<NewForward>, out: &mut Vec<Arc<Task>>) {
        for NewForward { buffer, region, .. } in &mut forwards {
            let unwritten = buffer_mut(&mut self.buffers, *buffer).unwritten(region);
            region.subtract(&unwritten);
        }
        forwards.retain(|forward| !forward.region.is_empty());
        let first = self.frontier.next_id().index();
        let consumer = TaskId::from_index(first + forwards.len() as u64);
        for new in forwards {
            out.push(Arc::new(self.place_forward(new, consumer)));
        }
    }

    fn place_forward(&mut self, new: NewForward, consumer: TaskId) -> Task {
        let NewForward { buffer, region, mut forward, name, location } = new;
        forward.consumer.task = consumer;
        let mapper = Mapper::fixed(region.clone());
        let mut footprint = Footprint::new();
        footprint.push(Touched { buffer, mode: AccessMode::ReadWrite, region });
        let mut dependencies = Dependencies::default();
        self.dataflow(&footprint, &mut dependencies);
        Task {
            id: self.frontier.push(&dependencies),
            name,
            work: Work::Forward,
            accesses: [Access::buffer(buffer, AccessMode::ReadWrite, mapper)].into(),
            dependencies,
            conflicts: Conflicts::default(),
            location,
            forward: Some(Arc::new(forward)),
        }
    }

    /// Checks that all of a buffer has been written, for a task that is going to read it and is not
    /// submitted yet: `task` says which.
    ///
    /// # Errors
    /// [`DeclareError::UninitializedRead`], unless that is tolerated.
    pub fn check_written(
        &self,
        buffer: BufferId,
        task: impl FnOnce() -> String,
    ) -> Result<(), DeclareError> {
        let Some(state) = self.buffers.get(buffer) else { return Ok(()) };
        let region = state.unwritten(&state.info.extent.into());
        if region.is_empty() || self.config.uninitialized_read == UninitializedRead::Warn {
            return Ok(());
        }
        let (task, buffer, region) = (task(), state.info.name.clone(), Box::new(region));
        let (dims, policy) = (state.info.dims, UninitializedRead::Error);
        Err(DeclareError::UninitializedRead { task, buffer, region, dims, policy })
    }

    fn uninitialized_reads(&self, spec: &TaskSpec, footprint: &Footprint) -> Vec<DeclareError> {
        let mut found = Vec::new();
        for touched in footprint.iter().filter(|touched| touched.mode.reads()) {
            let Some(state) = self.buffers.get(touched.buffer) else { continue };
            let region = state.unwritten(&touched.region);
            if !region.is_empty() {
                let task = describe(spec, self.frontier.next_id());
                let buffer = state.info.name.clone();
                let (dims, policy) = (state.info.dims, self.config.uninitialized_read);
                let region = Box::new(region);
                found.push(DeclareError::UninitializedRead { task, buffer, region, dims, policy });
            }
        }
        found
    }

    /// Adds what the next task waits for, and returns what it must not meet.
    fn edges(
        &mut self,
        spec: &TaskSpec,
        footprint: &Footprint,
        dependencies: &mut Dependencies<TaskId>,
    ) -> Conflicts<TaskId> {
        self.dataflow(footprint, dependencies);
        if let Some(group) = spec.work.group() {
            let before = self.groups.follow(group, self.frontier.next_id());
            #[cfg(feature = "mutants")]
            let before = celerity_mutants::Mutant::GroupForgottenByTasks.alter(before, |_| None);
            let before = before.map(|before| self.frontier.representative(before));
            before.into_iter().for_each(|on| dependencies.add(on, DependencyKind::Order));
        }
        let conflicts = self.side_effects(spec, dependencies);
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::OrphanTask.is_active() {
            return conflicts;
        }
        if dependencies.is_empty() {
            let point = self.frontier.synchronization_point();
            dependencies.push_new(point, DependencyKind::Order);
        }
        conflicts
    }

    /// Adds what the next task waits for because of data. Makes it the last writer and a reader
    /// of what it touches.
    fn dataflow(&mut self, footprint: &Footprint, dependencies: &mut Dependencies<TaskId>) {
        let (frontier, next) = (&self.frontier, self.frontier.next_id());
        for touched in footprint {
            let state = buffer_mut(&mut self.buffers, touched.buffer);
            state.before(touched, frontier.synchronization_point(), |earlier, kind| {
                dependencies.add(frontier.representative(earlier), kind);
            });
            #[cfg(feature = "mutants")]
            let touched = &mistakes::noted(touched);
            state.record(next, touched);
        }
    }

    /// Adds what the next task waits for because of host objects, and returns what it must not
    /// meet.
    fn side_effects(
        &mut self,
        spec: &TaskSpec,
        dependencies: &mut Dependencies<TaskId>,
    ) -> Conflicts<TaskId> {
        if !spec.work.is_on_host() {
            return Conflicts::default();
        }
        let (next, point) = (self.frontier.next_id(), self.frontier.synchronization_point());
        self.side_effects.add(next, point, spec.side_effects(), dependencies)
    }

    fn horizon_is_due(&self) -> bool {
        self.frontier.depth() - self.depth_at_horizon >= self.config.horizon_step
            || self.frontier.leaf_count() as u64 >= self.config.horizon_max_parallelism
    }

    fn push_horizon(&mut self) -> Arc<Task> {
        let horizon = self.push_synchronization(Work::Horizon, self.horizon_name.clone());
        if let Some(reached) = self.pending_horizon.replace(horizon.id) {
            self.synchronize_at(reached);
        }
        horizon
    }

    fn push_epoch(&mut self, action: EpochAction) -> Arc<Task> {
        let epoch = self.push_synchronization(Work::Epoch(action), self.epoch_name.clone());
        self.pending_horizon = None;
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::EpochNotApplied.is_active() {
            return epoch;
        }
        self.synchronize_at(epoch.id);
        epoch
    }

    fn push_synchronization(&mut self, work: Work, name: Arc<str>) -> Arc<Task> {
        self.depth_at_horizon = self.frontier.depth();
        let dependencies = self.frontier.after_all_leaves();
        let id = self.frontier.push(&dependencies);
        self.frontier.closed_by(id);
        let accesses = Box::default();
        let conflicts = Conflicts::default();
        Arc::new(Task {
            id,
            name,
            work,
            accesses,
            dependencies,
            conflicts,
            location: None,
            forward: None,
        })
    }

    fn synchronize_at(&mut self, task: TaskId) {
        self.frontier.synchronize_at(task);
        self.side_effects.forget_before(task);
        self.buffers.sweep(|state| {
            state.compact(task);
            Sweep::Settled
        });
    }
}

fn buffer_mut(buffers: &mut BufferTable<BufferState>, buffer: BufferId) -> &mut BufferState {
    buffers.get_mut(buffer).unwrap_or_else(|| panic!("{buffer} does not exist"))
}
