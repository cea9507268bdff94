//! What is lawful, if rare, breaks no rule.

use celerity_cdag::{CommandGraph, CommandGraphConfig, NodeId};
use celerity_checker::{ClusterChecker, NodeChecker, NodeCheckerConfig};
use celerity_idag::{InstructionGraph, InstructionGraphConfig, Schedule};
use celerity_regions::Box3;
use celerity_tdag::{
    Access, AccessMode, IndexSpace, Mapper, NeighborhoodShape, NewBuffer, TaskGraph,
    TaskGraphConfig, TaskSpec, Work,
};

/// What the checker says of one task over one buffer with contents, on so many nodes with two devices each.
fn finding(
    nodes: usize,
    (dims, extent): (u8, Box3),
    work: Work,
    access: (AccessMode, Mapper),
) -> String {
    let mut graph = TaskGraph::new(TaskGraphConfig::default());
    let mut tasks = vec![graph.start()];
    let buffer = graph.create_buffer(NewBuffer {
        name: None,
        dims,
        extent,
        elem_size: 8,
        elem_align: 8,
        host_initialized: true,
    });
    let accesses = vec![Access::buffer(buffer.id, access.0, access.1)];
    let spec = TaskSpec { name: "rare".into(), work, accesses, location: None };
    graph.submit(spec, &mut tasks).unwrap();
    let mut cluster = ClusterChecker::new(nodes);
    for node in 0..nodes {
        let local = NodeId::from_index(node as u64);
        let mut checker = NodeChecker::new(NodeCheckerConfig::new(nodes, local, 2));
        let mut commands = CommandGraph::new(CommandGraphConfig { nodes, local });
        let config = InstructionGraphConfig { devices: 2 };
        let mut instructions = InstructionGraph::new(config).on_node(local);
        commands.register_buffer(&buffer);
        let contents = instructions.register_buffer(&buffer).map(|placement| placement.allocation);
        checker.create_buffer(&buffer, contents);
        for task in &tasks {
            let (mut batch, mut schedule) = (vec![], Schedule::default());
            commands.schedule(task, &mut batch, &mut vec![]);
            for command in &batch {
                instructions.schedule(command, task, &mut schedule, &mut vec![]);
            }
            let Schedule { instructions, pilots, .. } = &schedule;
            if let Err(finding) = checker.task(task, &batch, instructions, pilots) {
                return finding.to_string();
            }
        }
        if let Err(finding) = cluster.add(local, checker.take_outline()) {
            return finding.to_string();
        }
    }
    "nothing".to_owned()
}

#[test]
fn an_empty_space_is_run_by_nobody() {
    for nodes in [1, 2, 3] {
        let space = Work::Device(IndexSpace::new(1, Box3::EMPTY));
        let access = (AccessMode::Write, Mapper::OneToOne);
        assert_eq!(finding(nodes, (1, Box3::from_range([9])), space, access), "nothing");
    }
}

/// The element is its own neighbour, on both sides.
#[test]
fn a_single_element_is_read_and_written_where_opposite_edges_meet() {
    for shape in [NeighborhoodShape::BoundingBox, NeighborhoodShape::AlongAxes] {
        for mode in [AccessMode::ReadWrite, AccessMode::Update] {
            let around = Mapper::periodic([1], shape, [true]);
            let work = Work::HostOnce { node: 1 };
            assert_eq!(finding(2, (0, Box3::UNIT), work, (mode, around)), "nothing");
        }
    }
}
