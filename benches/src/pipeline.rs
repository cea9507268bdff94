//! The graph layers, one behind the other, without an executor: what the graph
//! benchmarks measure. Knows nothing of the programs that are submitted.

use std::sync::Arc;

use celerity_cdag::{Command, CommandGraph, CommandGraphConfig, NodeId};
use celerity_idag::{InstructionGraph, InstructionGraphConfig, Schedule};
use celerity_regions::Box3;
use celerity_tdag::{Access, BufferId, IndexSpace, Task, TaskGraphConfig, Work};

use crate::task_source::TaskSource;
use crate::topologies::Sink;

/// How many layers there are, and for which cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Nodes in the cluster.
    pub nodes: usize,
    /// The node whose commands and instructions are generated.
    pub local: usize,
    /// Devices of each node.
    pub devices: usize,
    /// The last layer.
    pub depth: Depth,
}

/// The last layer of a [`Pipeline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// The task graph alone.
    Tasks,
    /// Task graph and command graph.
    Commands,
    /// All three graphs.
    Instructions,
}

impl Shape {
    /// Node 0 of a cluster.
    #[must_use]
    pub fn new(depth: Depth, nodes: usize, devices: usize) -> Self {
        Self { nodes, local: 0, devices, depth }
    }

    /// The same cluster seen from a node in the middle, which has neighbours on
    /// both sides if there are three nodes or more.
    #[must_use]
    pub fn in_the_middle(self) -> Self {
        Self { local: self.nodes / 2, ..self }
    }
}

/// What came out of a [`Pipeline`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Tasks, with horizons and epochs.
    pub tasks: usize,
    /// Commands.
    pub commands: usize,
    /// Instructions.
    pub instructions: usize,
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
    /// `None`, like the next, where the shape ends before it.
    command_graph: Option<CommandGraph>,
    instruction_graph: Option<InstructionGraph>,
    tasks: Vec<Arc<Task>>,
    commands: Vec<Command>,
    schedule: Schedule,
}

impl Pipeline {
    /// Fresh graphs with the init epoch in them.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        Self::with_config(shape, TaskGraphConfig::default())
    }

    /// Fresh graphs with other than the default horizons.
    #[must_use]
    pub fn with_config(shape: Shape, config: TaskGraphConfig) -> Self {
        let commands = CommandGraphConfig {
            nodes: shape.nodes,
            local: NodeId::from_index(shape.local as u64),
        };
        let instructions = InstructionGraphConfig { devices: shape.devices };
        let reaches = |depth| shape.depth >= depth;
        let mut pipeline = Self {
            shape,
            forgets: false,
            forgotten: Output::default(),
            source: TaskSource::new(config),
            command_graph: reaches(Depth::Commands).then(|| CommandGraph::new(commands)),
            instruction_graph: reaches(Depth::Instructions)
                .then(|| InstructionGraph::new(instructions)),
            tasks: Vec::new(),
            commands: Vec::new(),
            schedule: Schedule::default(),
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

    /// Submits a task that runs once, on the host of node 0, and touches nothing.
    pub fn host_task(&mut self) {
        self.submit(Work::HostOnce, Vec::new());
    }

    /// Submits the shutdown epoch and says how much has been generated.
    #[must_use]
    pub fn finish(mut self) -> Output {
        self.source.shutdown();
        self.advance();
        Output {
            tasks: self.forgotten.tasks + self.tasks.len(),
            commands: self.forgotten.commands + self.commands.len(),
            instructions: self.forgotten.instructions + self.schedule.instructions.len(),
        }
    }

    fn submit(&mut self, work: Work, accesses: Vec<Access>) {
        self.source.submit(work, accesses);
        self.advance();
    }

    /// Sends the fresh tasks through the later layers.
    fn advance(&mut self) {
        let (mut overlaps, mut mistakes) = (Vec::new(), Vec::new());
        for task in self.source.drain() {
            let first = self.commands.len();
            if let Some(graph) = &mut self.command_graph {
                graph.schedule(&task, &mut self.commands, &mut overlaps);
            }
            if let Some(graph) = &mut self.instruction_graph {
                for command in &self.commands[first..] {
                    graph.schedule(command, &task, &mut self.schedule, &mut mistakes);
                }
            }
            self.tasks.push(task);
        }
        assert!(overlaps.is_empty() && mistakes.is_empty(), "{overlaps:?} {mistakes:?}");
        if self.forgets {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.forgotten.tasks += self.tasks.len();
        self.forgotten.commands += self.commands.len();
        self.forgotten.instructions += self.schedule.instructions.len();
        self.tasks.clear();
        self.commands.clear();
        self.schedule.clear();
    }
}

impl Sink for Pipeline {
    fn nodes(&self) -> usize {
        self.shape.nodes
    }

    fn buffer(&mut self, dims: u8, extent: Box3, host_initialized: bool) -> BufferId {
        let buffer = self.source.buffer(dims, extent, host_initialized);
        if let Some(graph) = &mut self.command_graph {
            graph.register_buffer(&buffer);
        }
        if let Some(graph) = &mut self.instruction_graph {
            graph.register_buffer(&buffer);
        }
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
