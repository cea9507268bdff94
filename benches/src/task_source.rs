//! The task graph as the first layer of a pipeline: takes buffers and accesses,
//! hands out tasks. Knows nothing of the layers behind it.

use std::sync::Arc;

use celerity_regions::Box3;
use celerity_tdag::{
    Access, BufferInfo, EpochAction, NewBuffer, Task, TaskGraph, TaskGraphConfig, TaskSpec, Work,
};

/// A task graph, and the tasks that no later layer has taken yet.
#[derive(Debug)]
pub(crate) struct TaskSource {
    graph: TaskGraph,
    /// Of all buffers and tasks.
    name: Arc<str>,
    fresh: Vec<Arc<Task>>,
}

impl TaskSource {
    /// A graph with the init epoch in it.
    pub(crate) fn new(config: TaskGraphConfig) -> Self {
        let mut graph = TaskGraph::new(config);
        let fresh = vec![graph.start()];
        Self { graph, name: "benchmark".into(), fresh }
    }

    /// Creates a buffer of four-byte elements.
    pub(crate) fn buffer(
        &mut self,
        dims: u8,
        extent: Box3,
        host_initialized: bool,
    ) -> Arc<BufferInfo> {
        self.graph.create_buffer(NewBuffer {
            // The original's have no names, so none is made up here.
            name: Some(self.name.clone()),
            dims,
            extent,
            elem_size: 4,
            elem_align: 4,
            host_initialized,
        })
    }

    /// Submits a task.
    ///
    /// # Panics
    /// If the task graph refuses it: the benchmarks' programs are valid.
    pub(crate) fn submit(&mut self, work: Work, accesses: Vec<Access>) {
        let spec = TaskSpec { name: self.name.clone(), work, accesses, location: None };
        self.graph.submit(spec, &mut self.fresh).expect("the benchmarks' programs are valid");
    }

    /// Submits the shutdown epoch.
    pub(crate) fn shutdown(&mut self) {
        self.graph.epoch(EpochAction::Shutdown, &mut self.fresh);
    }

    /// Takes all tasks since the last call, horizons among them.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Arc<Task>> + '_ {
        self.fresh.drain(..)
    }
}
