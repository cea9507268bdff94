//! First step of discovery: which forwards to insert in front of a task, from what tasks say of
//! themselves (IJPP 2024, §3.1). A function of the tasks so far, so all nodes insert the same.

use std::sync::Arc;

use celerity_regions::Region;
use celerity_tdag::{
    BufferAccess, BufferId, BufferInfo, BufferTable, Mapper, NewForward, Sweep, Task, TaskSpec,
    Touched, Work,
};
use smallvec::SmallVec;

use crate::flow::{Flow, Reader};
use crate::mode::Collectives;

/// Finds data that one task has written and another one reads elsewhere, and says which forwards
/// to insert in front of the reader. [`classify`](crate::classify) says what becomes of them.
///
/// With [`Collectives::Paper`], a region is forwarded when a task first reads it by another
/// geometry or other mappers than it was written by: Algorithm 1. Beyond that, with
/// [`Collectives::Auto`],
/// * the same region is forwarded again to a reader of another shape. Data that has come to one
///   node may then be needed on all; but data that all nodes have, however it came, moves no more;
/// * what can be no operation on so many nodes is not forwarded: stencils, work on the node that
///   has the data, and geometries that are no transpositions. So they cost next to nothing.
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
/// let mut discovery = Discovery::new(Collectives::Auto, 4);
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
    flows: BufferTable<Flow>,
    /// The buffers that the newest task writes, until it is committed.
    written: SmallVec<[BufferId; 4]>,
}

impl Discovery {
    /// For programs on so many nodes. With one, nothing is ever found.
    #[must_use]
    pub fn new(collectives: Collectives, nodes: usize) -> Self {
        let collectives = if nodes < 2 { Collectives::Off } else { collectives };
        let (flows, written) = (BufferTable::default(), SmallVec::new());
        Self { collectives, nodes, flows, written }
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
            self.flows.insert(info.id, Flow::new(info.extent));
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
        let may_be_kept = !spec.buffer_accesses().any(is_owner);
        for position in 0..touched.len() {
            if may_be_kept && touched[position].mode.reads() {
                self.read(spec, touched, position, &mut found);
            }
        }
        self.overwrite(touched, may_be_kept && writes_once(&spec.work));
        found
    }

    /// The task that has been looked at is in the graph.
    pub fn committed(&mut self, task: &Arc<Task>) {
        for buffer in self.written.drain(..) {
            if let Some(flow) = self.flows.get_mut(buffer) {
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
        let alike = |one: &&Touched| one.buffer == buffer && one.mode.reads();
        if touched[..position].iter().any(|one| alike(&one)) {
            return;
        }
        let mut all = None;
        for other in touched[position + 1..].iter().filter(alike) {
            all.get_or_insert_with(|| region.clone()).union_with(&other.region);
        }
        let region: &Region = all.as_ref().unwrap_or(region);
        let reader = Reader { spec, buffer, region, nodes: self.nodes };
        match self.collectives {
            Collectives::Off => {}
            Collectives::Paper => flow.of_algorithm_1(&reader, found),
            Collectives::Auto => flow.ahead_of(&reader, found),
        }
    }

    fn overwrite(&mut self, touched: &[Touched], is_producer: bool) {
        self.written.clear();
        for touched in touched.iter().filter(|touched| touched.mode.writes()) {
            if let Some(flow) = self.flows.get_mut(touched.buffer) {
                flow.overwrite(&touched.region, is_producer);
                self.written.push(touched.buffer);
            }
        }
    }
}

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
