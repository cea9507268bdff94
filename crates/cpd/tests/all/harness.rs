//! Programs whose tasks enter a graph behind the forwards that discovery finds.

use std::sync::Arc;

use celerity_cpd::{Collective, Collectives, Discovery, PartsCache, classify};
use celerity_regions::{Box3, Region};
use celerity_tdag::{
    AccessMode, BufferAccess, BufferId, DeclareError, IndexSpace, Mapper, NewBuffer, Side, Task,
    TaskGraph, TaskGraphConfig, TaskSpec, UninitializedRead, Work,
};

/// A program on so many nodes.
pub(crate) struct Program {
    graph: TaskGraph,
    pub(crate) discovery: Discovery,
    pub(crate) nodes: usize,
    pub(crate) tasks: Vec<Arc<Task>>,
    parts: PartsCache,
}

/// What has entered the graph for one task.
pub(crate) struct Entered {
    pub(crate) forwards: Vec<Arc<Task>>,
    pub(crate) task: Arc<Task>,
}

impl Program {
    pub(crate) fn new(collectives: Collectives, nodes: usize) -> Self {
        Self::with(Discovery::new(collectives, nodes), nodes)
    }

    /// With a discovery of its own.
    pub(crate) fn with(discovery: Discovery, nodes: usize) -> Self {
        let config = TaskGraphConfig {
            uninitialized_read: UninitializedRead::Warn,
            ..TaskGraphConfig::default()
        };
        let mut graph = TaskGraph::new(config);
        let tasks = vec![graph.start()];
        Self { graph, discovery, nodes, tasks, parts: PartsCache::default() }
    }

    pub(crate) fn buffer<const D: usize>(&mut self, range: [usize; D]) -> BufferId {
        self.buffer_of(Box3::from_range(range), D as u8)
    }

    pub(crate) fn buffer_of(&mut self, extent: Box3, dims: u8) -> BufferId {
        let info = self.graph.create_buffer(NewBuffer {
            name: None,
            dims,
            extent,
            elem_size: 4,
            elem_align: 4,
            host_initialized: false,
        });
        self.discovery.create_buffer(&info);
        info.id
    }

    pub(crate) fn drop_buffer(&mut self, buffer: BufferId) {
        self.graph.drop_buffer(buffer);
        self.discovery.drop_buffer(buffer);
    }

    pub(crate) fn try_run(
        &mut self,
        work: Work,
        accesses: Vec<BufferAccess>,
    ) -> Result<Entered, DeclareError> {
        let accesses = accesses.into_iter().map(Into::into).collect();
        let spec = TaskSpec { name: "t".into(), work, accesses, location: None };
        let begin = self.tasks.len();
        let discovery = &mut self.discovery;
        let discover = |spec: &_, touched: &_| discovery.discover(spec, touched);
        let (id, _) = self.graph.submit_behind(spec, discover, &mut self.tasks)?;
        let new = &self.tasks[begin..];
        let at = new.iter().position(|task| task.id == id).expect("the task has entered");
        self.discovery.committed(&new[at]);
        Ok(Entered { forwards: new[..at].to_vec(), task: new[at].clone() })
    }

    pub(crate) fn run(&mut self, work: Work, accesses: Vec<BufferAccess>) -> Entered {
        self.try_run(work, accesses).expect("a lawful task")
    }

    pub(crate) fn classify(&mut self, forward: &Task) -> Option<Collective> {
        let (buffer, region) = forwarded(forward);
        let extent = self.graph.buffer(buffer).expect("it exists").extent;
        let ends = forward.forward.as_ref().expect("it has ends");
        classify(ends, region, extent, self.nodes, &mut self.parts)
    }

    /// What becomes of the forwards in front of a task: the names of operations, or `pairs`.
    pub(crate) fn found(&mut self, work: Work, accesses: Vec<BufferAccess>) -> Vec<String> {
        let forwards = self.run(work, accesses).forwards;
        let name = |forward: &Arc<Task>| {
            let found = self.classify(forward);
            found.map_or("pairs".to_owned(), |one| one.pattern().to_string())
        };
        forwards.iter().map(name).collect()
    }
}

/// The elements that a forward is about.
pub(crate) fn forwarded(forward: &Task) -> (BufferId, &Region) {
    let access = forward.buffer_accesses().next().expect("it has one access");
    let Mapper::Fixed(region) = &access.mapper else { panic!("it names a region") };
    (access.buffer, region)
}

pub(crate) fn read(buffer: BufferId, mapper: Mapper) -> BufferAccess {
    BufferAccess { buffer, mode: AccessMode::Read, mapper }
}

pub(crate) fn write(buffer: BufferId, mapper: Mapper) -> BufferAccess {
    BufferAccess { buffer, mode: AccessMode::Write, mapper }
}

pub(crate) fn over<const D: usize>(range: [usize; D]) -> Work {
    Work::Device(IndexSpace::new(D as u8, Box3::from_range(range)))
}

pub(crate) fn transposed() -> Mapper {
    Mapper::per_dimension(&[Side::along(1), Side::along(0)])
}
