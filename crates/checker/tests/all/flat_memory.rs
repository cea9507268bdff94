//! What a checker remembers depends on what a program does, not on how long.

use celerity_cdag::{CommandGraph, CommandGraphConfig, NodeId};
use celerity_checker::{NodeChecker, NodeCheckerConfig};
use celerity_idag::{InstructionGraph, InstructionGraphConfig, Schedule};
use celerity_regions::Box3;
use celerity_tdag::{
    Access, AccessMode, BufferId, IndexSpace, Mapper, NewBuffer, TaskGraph, TaskGraphConfig,
    TaskSpec, Work,
};

const NODES: usize = 2;

/// One node's generators, with a checker beside them.
struct Node {
    commands: CommandGraph,
    instructions: InstructionGraph,
    checker: NodeChecker,
    batch: Vec<celerity_cdag::Command>,
    schedule: Schedule,
}

impl Node {
    fn new(local: NodeId) -> Self {
        let config = NodeCheckerConfig::new(NODES, local, 2);
        Self {
            commands: CommandGraph::new(CommandGraphConfig { nodes: NODES, local }),
            instructions: InstructionGraph::new(InstructionGraphConfig { devices: 2 }),
            checker: NodeChecker::new(config),
            batch: Vec::new(),
            schedule: Schedule::default(),
        }
    }

    fn task(&mut self, task: &std::sync::Arc<celerity_tdag::Task>) {
        self.batch.clear();
        self.schedule.clear();
        self.commands.schedule(task, &mut self.batch, &mut Vec::new());
        for command in &self.batch {
            self.instructions.schedule(command, task, &mut self.schedule, &mut Vec::new());
        }
        let Schedule { instructions, pilots, .. } = &self.schedule;
        if let Err(finding) = self.checker.task(task, &self.batch, instructions, pilots) {
            panic!("{finding}");
        }
        // In a cluster, this is what is told to others.
        drop(self.checker.take_outline());
    }
}

fn step(read: BufferId, written: BufferId, coefficients: BufferId, space: Box3) -> TaskSpec {
    let access = |buffer, mode, mapper| Access::buffer(buffer, mode, mapper);
    TaskSpec {
        name: "step".into(),
        work: Work::Device(IndexSpace::new(2, space)),
        accesses: vec![
            access(read, AccessMode::Read, Mapper::neighborhood([1, 1])),
            access(written, AccessMode::ReadWrite, Mapper::OneToOne),
            // Read by all and never written: its readers must not pile up.
            access(coefficients, AccessMode::Read, Mapper::All),
        ],
        location: None,
    }
}

/// How much node 0 remembers after each of so many steps of a stencil.
fn remembered(steps: usize) -> Vec<usize> {
    let extent = Box3::from_range([1 << 20, 1 << 10]);
    let mut tasks = TaskGraph::new(TaskGraphConfig::default());
    let mut node = Node::new(NodeId::from_index(0));
    node.task(&tasks.start());
    let buffers = [(); 3].map(|()| {
        let buffer = tasks.create_buffer(NewBuffer {
            name: None,
            dims: 2,
            extent,
            elem_size: 4,
            elem_align: 4,
            host_initialized: true,
        });
        node.commands.register_buffer(&buffer);
        let user_data = node.instructions.register_buffer(&buffer);
        node.checker.create_buffer(&buffer, user_data.map(|placed| placed.allocation));
        buffer.id
    });
    let mut stream = Vec::new();
    let measured = (0..steps).map(|index| {
        let (read, written) = (buffers[index % 2], buffers[1 - index % 2]);
        let declared = tasks.declare(step(read, written, buffers[2], extent));
        tasks.commit(declared.expect("the step is lawful"), &mut stream);
        stream.drain(..).for_each(|task| node.task(&task));
        node.checker.retained()
    });
    measured.collect()
}

#[test]
fn a_long_program_is_remembered_like_a_short_one() {
    let sizes = remembered(20_000);
    let (warm, later) = sizes.split_at(200);
    let peak = |sizes: &[usize]| sizes.iter().copied().max().unwrap_or(0);
    assert!(peak(later) <= peak(warm), "{} grows to {}", peak(warm), peak(later));
    assert!(peak(warm) < 1000, "{} things are remembered", peak(warm));
}
