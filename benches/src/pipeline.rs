//! The graph layers, one behind the other, without an executor: what the graph
//! benchmarks measure. Knows nothing of the programs that are submitted.

use std::sync::Arc;

use celerity_regions::Box3;
use celerity_tdag::{Access, BufferId, IndexSpace, Task, TaskGraphConfig, Work};

use crate::layers::Layers;
pub use crate::shape::{Depth, Output, Shape};
use crate::task_source::TaskSource;
use crate::topologies::Sink;

/// Graphs that are fed with a program, and then asked what came of it.
pub trait Build: Sink {
    /// Submits the shutdown epoch and says how much has been generated.
    #[must_use]
    fn finish(self) -> Output;
}

/// The graphs of one node.
///
/// Everything that is generated is kept until the end, as it is in the
/// original's benchmarks, unless the pipeline is [`forgetting`](Self::forgetting).
#[derive(Debug)]
pub struct Pipeline {
    shape: Shape,
    forgets: bool,
    forgotten: Output,
    /// The first layer.
    source: TaskSource,
    layers: Layers,
    tasks: Vec<Arc<Task>>,
}

/// Room for as many tasks as small programs have.
const ROOM: usize = 256;

impl Pipeline {
    /// Fresh graphs with the init epoch in them.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        Self::with_config(shape, TaskGraphConfig::default())
    }

    /// Fresh graphs with other than the default horizons.
    #[must_use]
    pub fn with_config(shape: Shape, config: TaskGraphConfig) -> Self {
        let mut pipeline = Self {
            shape,
            forgets: false,
            forgotten: Output::default(),
            source: TaskSource::new(config),
            layers: Layers::new(shape),
            tasks: Vec::with_capacity(ROOM),
        };
        pipeline.advance();
        pipeline
    }

    /// The same graphs, but everything is dropped as soon as it has been
    /// generated, as if an executor had taken it: a long program's steady state.
    #[must_use]
    pub fn forgetting(self) -> Self {
        Self { forgets: true, ..self }
    }

    /// The same graphs with the lookahead of a real run before the last of them.
    #[must_use]
    pub fn looking_ahead(self) -> Self {
        Self { layers: self.layers.looking_ahead(), ..self }
    }

    /// Submits a task that runs once, on the host of node 0, and touches nothing.
    pub fn host_task(&mut self) {
        self.submit(Work::HostOnce { node: 0 }, Vec::new());
    }

    fn submit(&mut self, work: Work, accesses: Vec<Access>) {
        self.source.submit(work, accesses);
        self.advance();
    }

    /// Sends the fresh tasks through the later layers.
    fn advance(&mut self) {
        for task in self.source.drain() {
            self.layers.schedule(&task);
            self.tasks.push(task);
        }
        if self.forgets {
            self.forgotten = self.output();
            self.tasks.clear();
            self.layers.forget();
        }
    }

    /// Everything that has been generated so far.
    fn output(&self) -> Output {
        let kept = Output { tasks: self.tasks.len(), ..self.layers.output() };
        self.forgotten.plus(kept)
    }
}

impl Build for Pipeline {
    fn finish(mut self) -> Output {
        self.source.shutdown();
        self.advance();
        self.output()
    }
}

impl Sink for Pipeline {
    fn nodes(&self) -> usize {
        self.shape.nodes
    }

    fn buffer(&mut self, dims: u8, extent: Box3, host_initialized: bool) -> BufferId {
        let buffer = self.source.buffer(dims, extent, host_initialized);
        self.layers.register_buffer(&buffer);
        buffer.id
    }

    fn task(&mut self, dims: u8, extent: Box3, accesses: Vec<Access>) {
        self.submit(Work::Device(IndexSpace::new(dims, extent)), accesses);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topologies::Topology;

    #[test]
    fn every_layer_accepts_every_topology() {
        for (nodes, devices) in [(1, 1), (2, 3), (4, 4)] {
            for topology in Topology::ALL {
                let mut pipeline = Pipeline::new(Shape::new(Depth::Instructions, nodes, devices));
                topology.submit(&mut pipeline);
                let output = pipeline.finish();
                assert!(output.tasks >= topology.tasks() + 2, "{output:?}");
                assert!(output.commands >= output.tasks, "{output:?}");
                assert!(output.instructions >= output.commands, "{output:?}");
            }
        }
    }

    #[test]
    fn a_forgetting_pipeline_generates_the_same() {
        let build = |mut pipeline: Pipeline| {
            Topology::WaveSim.submit(&mut pipeline);
            pipeline.finish()
        };
        let shape = Shape { local: 1, ..Shape::new(Depth::Instructions, 3, 2) };
        let kept = build(Pipeline::new(shape));
        assert_eq!(kept, build(Pipeline::new(shape).forgetting()));
    }
}
