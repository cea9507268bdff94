//! The central scheduler against what all nodes generate for themselves.

use std::collections::BTreeMap;

use celerity_cdag::{Command, CommandGraph, CommandGraphConfig};

use super::*;
use crate::endless::Program;
use crate::topologies::Topology;

/// Keeps buffers and tasks for whoever wants to schedule them.
struct Recording {
    nodes: usize,
    source: TaskSource,
    buffers: Vec<Arc<BufferInfo>>,
}

impl Sink for Recording {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn buffer(&mut self, dims: u8, extent: Box3, host_initialized: bool) -> BufferId {
        self.buffers.push(self.source.buffer(dims, extent, host_initialized));
        self.buffers[self.buffers.len() - 1].id
    }

    fn task(&mut self, dims: u8, extent: Box3, accesses: Vec<Access>) {
        self.source.submit(Work::Device(IndexSpace::new(dims, extent)), accesses);
    }
}

/// All commands of a cluster in a form that does not depend on how pushes are
/// grouped.
#[derive(Debug, Default, PartialEq)]
struct Traffic {
    pushes: BTreeMap<(TransferId, NodeId, NodeId), Region>,
    awaits: BTreeMap<(TransferId, NodeId), Region>,
    chunks: BTreeMap<(TaskId, NodeId), Box3>,
    synchronizations: BTreeMap<(TaskId, NodeId), CommandKind>,
}

impl Traffic {
    fn add(&mut self, task: TaskId, node: NodeId, kind: CommandKind) {
        match kind {
            CommandKind::Push { transfer, targets } => {
                for (to, region) in targets {
                    let sent =
                        self.pushes.entry((transfer, node, to)).or_insert_with(Region::empty);
                    assert!(!sent.intersects(&region), "{transfer}: {region} sent twice to {to}");
                    sent.union_with(&region);
                }
            }
            CommandKind::AwaitPush { transfer, region } => {
                assert_eq!(self.awaits.insert((transfer, node), region), None);
            }
            CommandKind::Execute { chunk } => {
                assert_eq!(self.chunks.insert((task, node), chunk), None);
            }
            CommandKind::Collective { transfer, .. } => {
                panic!("{transfer} is a collective, and nobody has asked for one")
            }
            kind @ (CommandKind::Horizon | CommandKind::Epoch(_)) => {
                assert_eq!(self.synchronizations.insert((task, node), kind), None);
            }
        }
    }
}

fn centrally(nodes: usize, buffers: &[Arc<BufferInfo>], tasks: &[Arc<Task>]) -> Traffic {
    let mut scheduler = CentralScheduler::new(nodes);
    buffers.iter().for_each(|buffer| scheduler.register_buffer(buffer));
    let mut commands = Vec::new();
    tasks.iter().for_each(|task| scheduler.schedule(task, &mut commands));
    let mut traffic = Traffic::default();
    for NodeCommand { node, task, kind } in commands {
        traffic.add(task, node, kind);
    }
    traffic
}

fn node_by_node(nodes: usize, buffers: &[Arc<BufferInfo>], tasks: &[Arc<Task>]) -> Traffic {
    let mut traffic = Traffic::default();
    for local in (0..nodes as u64).map(NodeId::from_index) {
        let mut graph = CommandGraph::new(CommandGraphConfig { nodes, local });
        buffers.iter().for_each(|buffer| graph.register_buffer(buffer));
        let (mut commands, mut diagnostics) = (Vec::new(), Vec::new());
        tasks.iter().for_each(|task| graph.schedule(task, &mut commands, &mut diagnostics));
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        for Command { task, kind, .. } in commands {
            traffic.add(task, local, kind);
        }
    }
    traffic
}

/// Compares both on `nodes` nodes and returns how many pushes there were.
fn check(nodes: usize, submit: impl Fn(&mut Recording)) -> usize {
    let source = TaskSource::new(TaskGraphConfig::default());
    let mut recording = Recording { nodes, source, buffers: Vec::new() };
    submit(&mut recording);
    recording.source.shutdown();
    let tasks: Vec<Arc<Task>> = recording.source.drain().collect();
    let central = centrally(nodes, &recording.buffers, &tasks);
    assert_eq!(central, node_by_node(nodes, &recording.buffers, &tasks));
    central.pushes.len()
}

#[test]
fn all_nodes_together_generate_what_the_central_scheduler_does() {
    for nodes in 1..=6 {
        for program in Program::ALL {
            let pushes = check(nodes, |sink| {
                let mut program = program.start(sink);
                (0..20).for_each(|_| program.step(sink));
            });
            assert_eq!(pushes > 0, nodes > 1, "{} on {nodes} nodes", program.name());
        }
        for topology in Topology::ALL {
            check(nodes, |sink| topology.submit(sink));
        }
    }
}

#[test]
fn an_all_gather_is_quadratic_and_a_stencil_linear_in_the_nodes() {
    let pushes = |program: Program, nodes, steps| {
        check(nodes, |sink| {
            let mut program = program.start(sink);
            (0..steps).for_each(|_| program.step(sink));
        })
    };
    // The first step reads initial contents, which are everywhere.
    for nodes in 2..=6 {
        assert_eq!(pushes(Program::AllGather, nodes, 4), 3 * nodes * (nodes - 1));
        assert_eq!(pushes(Program::Stencil, nodes, 4), 3 * 2 * (nodes - 1));
    }
}
