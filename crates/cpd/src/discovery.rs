//! First step of discovery: which forwards to insert in front of a task, from what tasks say of
//! themselves (IJPP 2024, §3.1). A function of the tasks so far, so all nodes insert the same.

use std::fmt;
use std::sync::Arc;

use celerity_regions::Region;
use celerity_tdag::{
    BufferAccess, BufferId, BufferInfo, BufferTable, Mapper, NewForward, Sweep, Task, TaskId,
    TaskSpec, Touched, Work,
};

use crate::cost::{Costs, Estimate, Movement};
use crate::flow::{Flow, Reader, is_near};
use crate::members::Members;
use crate::mode::Collectives;
use crate::pattern::Pattern;

/// Finds data that one task has written and another one reads elsewhere, and says which forwards
/// to insert in front of the reader. [`classify`](crate::classify()) says what becomes of them.
///
/// With [`Collectives::Paper`], a region is forwarded when a task first reads it by another
/// geometry or other mappers than it was written by: Algorithm 1. Beyond that, with
/// [`Collectives::Auto`],
/// * the same region is forwarded again to a reader of another shape. Data that has come to one
///   node may then be needed on all; but data that all nodes have, however it came, moves no more;
/// * what can be no operation on so many nodes is not forwarded: stencils, work on the node that
///   has the data, and geometries that are no transpositions. So they cost next to nothing;
/// * what is cheaper between pairs of nodes is not forwarded, by the constants in [`Costs`]. With
///   [`Collectives::Always`] it is.
///
/// Initial contents are on all nodes, as is what [combinations](Work::Combine) write, and what
/// nothing has written is nowhere: none of that is forwarded. Users' mappers are not asked anything,
/// and those that [own](celerity_tdag::UserMapper::is_owner) something are not kept, since that
/// would live longer than the program thinks: what such a task touches is not forwarded.
///
/// Of each buffer, the latest 16 tasks are known of which something is left. Cost per task:
/// O(accesses · producers).
///
/// ```
/// use celerity_cpd::{Collectives, Discovery};
/// use celerity_regions::Box3;
/// use celerity_tdag::*;
///
/// let mut graph = TaskGraph::new(TaskGraphConfig::default());
/// let mut tasks = vec![graph.start()];
/// let mut discovery = Discovery::new(Collectives::Always, 4);
/// let extent = Box3::from_range([256]);
/// let positions = graph.create_buffer(NewBuffer {
///     name: None, dims: 1, extent, elem_size: 4, elem_align: 4, host_initialized: false,
/// });
/// discovery.create_buffer(&positions);
/// for (mode, mapper) in [(AccessMode::Write, Mapper::OneToOne), (AccessMode::Read, Mapper::All)] {
///     let accesses = vec![Access::buffer(positions.id, mode, mapper)];
///     let work = Work::Device(IndexSpace::new(1, extent));
///     let spec = TaskSpec { name: "step".into(), work, accesses, location: None };
///     let discover = |spec: &_, touched: &_| discovery.discover(spec, touched);
///     graph.submit_behind(spec, discover, &mut tasks)?;
///     discovery.committed(tasks.last().expect("the new task"));
/// }
/// let works: Vec<bool> = tasks.iter().map(|task| task.work == Work::Forward).collect();
/// assert_eq!(works, [false, false, true, false]);
/// # Ok::<(), DeclareError>(())
/// ```
#[derive(Debug)]
pub struct Discovery {
    collectives: Collectives,
    nodes: usize,
    scales: Scales,
    flows: BufferTable<Flow>,
}

/// What [`Collectives::Auto`] has weighed, by which it has decided. Prints as `in one all-gather:
/// 16.4 µs, 30.1 µs between pairs of nodes`, or the other way round, with what it has chosen first; where
/// not all nodes take part, with those that do: `in one all-gather among N0 to N3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weighed {
    /// The task that has written the elements.
    pub producer: TaskId,
    /// The task that reads them.
    pub consumer: TaskId,
    /// The buffer that they are in.
    pub buffer: BufferId,
    /// What is to be moved.
    pub movement: Movement,
    /// The nodes that would take part in an operation, as far as it is known before chunks are looked at:
    /// those that turn out to have nothing and to get nothing do not.
    pub members: Members,
    /// What that costs. There is a forward if it says so.
    pub estimate: Estimate,
}

/// Weighs movements.
#[derive(Debug)]
struct Scales {
    costs: Costs,
    /// Those of movements of so many bytes and more, if they are others.
    of_large: Option<(u64, Costs)>,
    /// What has been weighed, if somebody wants to know.
    told: Option<Vec<Told>>,
}

/// What has been weighed, of which producer and buffer, for a consumer that has no name yet.
#[derive(Debug)]
struct Told {
    producer: TaskId,
    buffer: BufferId,
    movement: Movement,
    members: Members,
    estimate: Estimate,
}

impl Discovery {
    /// For programs on so many nodes, all of them with the same constants: those of
    /// [`Costs::default`]. With one node, nothing is ever found.
    #[must_use]
    pub fn new(collectives: Collectives, nodes: usize) -> Self {
        let collectives = if nodes < 2 { Collectives::Off } else { collectives };
        let scales = Scales { costs: Costs::default(), of_large: None, told: None };
        Self { collectives, nodes, scales, flows: BufferTable::default() }
    }

    /// Weighs with these constants. The same on all nodes.
    #[must_use]
    pub fn with_costs(mut self, costs: Costs) -> Self {
        self.scales.costs = costs;
        self
    }

    /// Weighs movements of at least `bytes` with other constants, as where the network carries out operations
    /// of large data between devices. The same on all nodes.
    #[must_use]
    pub fn with_costs_from(mut self, bytes: u64, costs: Costs) -> Self {
        self.scales.of_large = Some((bytes, costs));
        self
    }

    /// Keeps what is weighed until it is [taken](Self::take_weighed).
    #[must_use]
    pub fn telling(mut self) -> Self {
        self.scales.told = Some(Vec::new());
        self
    }

    /// What has been weighed for the latest task, `consumer`, if that is [kept](Self::telling).
    pub fn take_weighed(&mut self, consumer: TaskId) -> impl Iterator<Item = Weighed> {
        let weighed = self.scales.told.iter_mut().flat_map(|told| told.drain(..));
        weighed.map(move |Told { producer, buffer, movement, members, estimate }| Weighed {
            producer,
            consumer,
            buffer,
            movement,
            members,
            estimate,
        })
    }

    /// Whether anything is ever found.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.collectives == Collectives::Off
    }

    /// Makes a new buffer known. Buffers come in order of their ids.
    pub fn create_buffer(&mut self, info: &BufferInfo) {
        if !self.is_off() {
            self.flows.sweep(|_| Sweep::Settled);
            self.flows.insert(info.id, Flow::new(info.extent, info.elem_size));
        }
    }

    /// Forgets a buffer that no later task names.
    pub fn drop_buffer(&mut self, buffer: BufferId) {
        drop(self.flows.remove(buffer));
    }

    /// The forwards to insert in front of a task that has been checked: the next one to enter the
    /// graph, which touches all of this.
    pub fn discover(&mut self, spec: &TaskSpec, touched: &[Touched]) -> Vec<NewForward> {
        let mut found = Vec::new();
        if self.is_off() {
            return found;
        }
        let glance = self.glance(spec);
        if glance.may_flow && !glance.is_owner {
            self.look(spec, touched, &mut found);
        }
        self.overwrite(touched, !glance.is_owner && writes_once(&spec.work));
        found
    }

    /// What is cheap to see, and enough for most tasks: one access at a time, no regions.
    #[inline]
    fn glance(&mut self, spec: &TaskSpec) -> Glance {
        let mut glance =
            Glance { may_flow: self.collectives == Collectives::Paper, is_owner: false };
        for access in spec.buffer_accesses() {
            glance.is_owner |= is_owner(access);
            if access.mode.reads() && !glance.may_flow && !is_near(&spec.work, access) {
                let flow = self.flows.get(access.buffer);
                glance.may_flow = flow.is_some_and(|flow| !flow.stays(&spec.work, access));
            }
        }
        glance
    }

    #[inline(never)]
    fn look(&mut self, spec: &TaskSpec, touched: &[Touched], found: &mut Vec<NewForward>) {
        for (position, one) in touched.iter().enumerate() {
            if one.mode.reads() {
                self.read(spec, touched, position, found);
            }
        }
    }

    /// The task that has been looked at is in the graph.
    #[inline]
    pub fn committed(&mut self, task: &Arc<Task>) {
        if self.is_off() {
            return;
        }
        for access in task.buffer_accesses().filter(|access| access.mode.writes()) {
            if let Some(flow) = self.flows.get_mut(access.buffer) {
                flow.committed(task);
            }
        }
    }

    /// Looks at all that a task reads of one buffer, where it reads it first.
    fn read(
        &mut self,
        spec: &TaskSpec,
        touched: &[Touched],
        position: usize,
        found: &mut Vec<NewForward>,
    ) {
        let Touched { buffer, ref region, .. } = touched[position];
        let Some(flow) = self.flows.get_mut(buffer) else { return };
        let is_other = |one: &Touched| one.buffer == buffer && one.mode.reads();
        if touched[..position].iter().any(is_other) {
            return;
        }
        let mut all = None;
        for other in touched[position + 1..].iter().filter(|one| is_other(one)) {
            all.get_or_insert_with(|| region.clone()).union_with(&other.region);
        }
        let region: &Region = all.as_ref().unwrap_or(region);
        let reader = Reader { spec, buffer, region, nodes: self.nodes };
        match self.collectives {
            Collectives::Off => {}
            Collectives::Paper => flow.of_algorithm_1(&reader, found),
            Collectives::Auto => {
                let scales = &mut self.scales;
                let weigh = |producer, movement, members| {
                    scales.weigh((buffer, producer), movement, members)
                };
                flow.ahead_of(&reader, weigh, found);
            }
            Collectives::Always => flow.ahead_of(&reader, |_, _, _| true, found),
        }
    }

    fn overwrite(&mut self, touched: &[Touched], is_producer: bool) {
        for touched in touched.iter().filter(|touched| touched.mode.writes()) {
            if let Some(flow) = self.flows.get_mut(touched.buffer) {
                flow.overwrite(&touched.region, is_producer);
            }
        }
    }
}

impl Scales {
    /// Whether an operation is worth it.
    fn weigh(
        &mut self,
        (buffer, producer): (BufferId, TaskId),
        movement: Movement,
        members: Members,
    ) -> bool {
        let of_large = self.of_large.filter(|(least, _)| movement.bytes >= *least);
        let costs = of_large.map_or(self.costs, |(_, costs)| costs);
        let estimate = costs.estimate(&movement);
        if let Some(told) = &mut self.told {
            told.push(Told { producer, buffer, movement, members, estimate });
        }
        estimate.is_collective()
    }
}

impl fmt::Display for Weighed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = |nanos: u64| nanos as f64 / 1e3;
        let [collective, pairs] = [self.estimate.collective, self.estimate.pairs].map(micros);
        let pattern = Among(self.movement.pattern, &self.members);
        match self.estimate.is_collective() {
            true => write!(
                f,
                "in one {pattern}: {collective:.1} µs, {pairs:.1} µs between pairs of nodes"
            ),
            false => write!(
                f,
                "between pairs of nodes: {pairs:.1} µs, {collective:.1} µs in one {pattern}"
            ),
        }
    }
}

/// `all-gather`, or `all-gather among N0 to N3`.
struct Among<'a>(Pattern, &'a Members);

impl fmt::Display for Among<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(pattern, members) = self;
        match members.are_all() {
            true => write!(f, "{pattern}"),
            false => write!(f, "{pattern} among {members}"),
        }
    }
}

/// What a task that reads may need.
struct Glance {
    /// Some data may come from elsewhere.
    may_flow: bool,
    /// One of its mappers must not be kept.
    is_owner: bool,
}

#[inline]
fn is_owner(access: &BufferAccess) -> bool {
    matches!(&access.mapper, Mapper::User(user) if user.is_owner())
}

/// Whether what the work writes is on one node each, and not on all.
fn writes_once(work: &Work) -> bool {
    match work {
        Work::Device(_) | Work::HostOnce { .. } | Work::HostSplit { .. } => true,
        Work::Fence | Work::Combine { .. } | Work::Forward | Work::Horizon | Work::Epoch(_) => {
            false
        }
    }
}
