//! The three generators for a whole cluster, fed with a program, and what they hand out kept.
//! Executes nothing.

use std::sync::Arc;

use celerity_cdag::{Command, CommandGraph, CommandGraphConfig, NodeId};
use celerity_idag::{
    Instruction, InstructionGraph, InstructionGraphConfig, Lookahead, LookaheadQueue, Pilot,
    Released, Schedule,
};
use celerity_regions::Box3;
use celerity_tdag::{
    Access, BufferInfo, EpochAction, IndexSpace, NewBuffer, Task, TaskGraph, TaskGraphConfig,
    TaskSpec, Work,
};
use celerity_views::BufferNames;

/// A cluster of so many nodes with so many devices each, before its program.
pub(crate) struct Cluster {
    devices: usize,
    graph: TaskGraph,
    buffers: Vec<Arc<BufferInfo>>,
    tasks: Vec<Arc<Task>>,
}

/// What a program has become.
pub(crate) struct Scheduled {
    pub(crate) names: BufferNames,
    pub(crate) tasks: Vec<Arc<Task>>,
    pub(crate) nodes: Vec<OneNode>,
}

/// What one node has made of the tasks.
#[derive(Default)]
pub(crate) struct OneNode {
    pub(crate) commands: Vec<Command>,
    /// The commands' instructions and pilots, in the order of `commands`.
    pub(crate) work: Vec<Schedule>,
}

impl OneNode {
    /// The commands of a task, each with its instructions and pilots.
    pub(crate) fn of(&self, task: &Task) -> impl Iterator<Item = (&Command, &Schedule)> {
        let id = task.id;
        self.commands.iter().zip(&self.work).filter(move |(command, _)| command.task == id)
    }

    pub(crate) fn instructions(&self) -> impl Iterator<Item = &Instruction> {
        self.work.iter().flat_map(|schedule| &schedule.instructions)
    }
}

impl Cluster {
    pub(crate) fn new(devices: usize) -> Self {
        let mut graph = TaskGraph::new(TaskGraphConfig::default());
        let tasks = vec![graph.start()];
        Self { devices, graph, buffers: Vec::new(), tasks }
    }

    /// A buffer of numbers of four bytes.
    pub(crate) fn buffer(&mut self, name: &str, range: [usize; 2]) -> Arc<BufferInfo> {
        let info = self.graph.create_buffer(NewBuffer {
            name: Some(name.into()),
            dims: 2,
            extent: Box3::from_range(range),
            elem_size: 4,
            elem_align: 4,
            host_initialized: false,
        });
        self.buffers.push(info.clone());
        info
    }

    /// Submits a kernel; how it is declared is returned as well.
    pub(crate) fn submit(
        &mut self,
        name: &str,
        range: [usize; 2],
        accesses: Vec<Access>,
    ) -> TaskSpec {
        let space = IndexSpace::new(2, Box3::from_range(range));
        let work = Work::Device(space);
        let spec = TaskSpec { name: name.into(), work, accesses, location: None };
        let submitted = self.graph.submit(spec.clone(), &mut self.tasks);
        submitted.expect("the programs of the book are right");
        spec
    }

    /// Ends the program and schedules it on all of so many nodes.
    pub(crate) fn schedule(mut self, nodes: usize) -> Scheduled {
        self.graph.epoch(EpochAction::Shutdown, &mut self.tasks);
        let mut names = BufferNames::default();
        self.buffers.iter().for_each(|info| names.insert(info));
        let local = |node: usize| NodeId::from_index(node as u64);
        let nodes = (0..nodes).map(|node| self.on_node(nodes, local(node))).collect();
        Scheduled { names, tasks: self.tasks, nodes }
    }

    fn on_node(&self, nodes: usize, local: NodeId) -> OneNode {
        let mut graph = CommandGraph::new(CommandGraphConfig { nodes, local });
        let config = InstructionGraphConfig { devices: self.devices };
        let instructions = InstructionGraph::new(config).on_node(local);
        let mut queue = LookaheadQueue::new(instructions, Lookahead::Auto);
        for info in &self.buffers {
            graph.register_buffer(info);
            queue.register_buffer(info);
        }
        let (mut node, mut flaws, mut mistakes) = (OneNode::default(), Vec::new(), Vec::new());
        for task in &self.tasks {
            let mut commands = Vec::new();
            graph.schedule(task, &mut commands, &mut flaws);
            queue.push(task, &mut commands);
            let mut schedule = Schedule::default();
            while let Some(released) = queue.release(&mut schedule, &mut mistakes) {
                if let Released::Command(command) = released {
                    node.commands.push(command.clone());
                    node.work.push(std::mem::take(&mut schedule));
                }
            }
        }
        assert!(flaws.is_empty() && mistakes.is_empty(), "{flaws:?} {mistakes:?}");
        node
    }
}

/// All pilots of these commands.
pub(crate) fn pilots<'a>(
    work: impl Iterator<Item = &'a Schedule>,
) -> impl Iterator<Item = &'a Pilot> {
    work.flat_map(|schedule| &schedule.pilots)
}
