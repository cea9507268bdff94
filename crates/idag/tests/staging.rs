//! Nodes whose devices cannot all copy to each other directly: what cannot go
//! directly goes through the host, once, and everything else holds.

use celerity_idag::{
    DeviceId, InstructionGraph, InstructionGraphConfig, InstructionKind, Lookahead, LookaheadQueue,
};
use celerity_testkit::check::{Configuration, any_configuration};
use celerity_testkit::corpus;
use celerity_testkit::model::{self, Truth};
use celerity_testkit::program::{Program, Sizes, any_program};
use celerity_testkit::trace::{CommandTrace, InstructionTrace, TaskTrace};
use celerity_testkit::violation::Violation;
use proptest::prelude::*;

/// Links as random as a number: two bits of `links` for each pair of devices.
fn are_linked(links: u64, from: DeviceId, to: DeviceId) -> bool {
    links >> ((from.index() * 3 + to.index()) % 64) & 1 == 1
}

fn generate_all(
    program: &Program,
    configuration: &Configuration,
    links: u64,
) -> Result<(TaskTrace, Vec<InstructionTrace>), Violation> {
    let tasks = TaskTrace::of(program, configuration.task_graph())?;
    let commands = CommandTrace::of_all(&tasks, configuration.nodes)?;
    let config = InstructionGraphConfig { devices: configuration.devices };
    let of_node = |commands| {
        let graph = InstructionGraph::new(config)
            .with_direct_copies(|from, to| are_linked(links, from, to));
        InstructionTrace::with(&tasks, commands, LookaheadQueue::new(graph, Lookahead::None))
    };
    let nodes = commands.iter().map(of_node).collect::<Result<_, _>>()?;
    Ok((tasks, nodes))
}

/// The copies from one device to another, and whether these are linked.
fn peer_copies(nodes: &[InstructionTrace], links: u64) -> impl Iterator<Item = bool> {
    let instructions = nodes.iter().flat_map(|node| &node.instructions);
    instructions.filter_map(move |instruction| {
        let InstructionKind::Copy { source, target, .. } = &instruction.kind else { return None };
        let (from, to) = (source.memory.device()?, target.memory.device()?);
        Some(from == to || are_linked(links, from, to))
    })
}

proptest! {
    #[test]
    fn random_programs_hold_with_any_links(
        program in any_program(Sizes::default()),
        configuration in any_configuration(),
        links in any::<u64>(),
    ) {
        let Configuration { devices, seed, .. } = configuration;
        let (tasks, nodes) = generate_all(&program, &configuration, links).unwrap();
        let verdict = model::idag::check(&Truth::of(&program), &tasks, &nodes, devices, seed);
        prop_assert!(verdict.is_ok(), "{}", verdict.unwrap_err());
        prop_assert!(peer_copies(&nodes, links).all(|linked| linked));
    }
}

#[test]
fn an_all_gather_goes_through_the_host_once() {
    let program = corpus::nbody(16, 3);
    let copies = |links| {
        let (_, nodes) = generate_all(&program, &Configuration::new(1, 4), links).unwrap();
        let (mut to_host, mut to_device) = (0, 0);
        for instruction in &nodes[0].instructions {
            if let InstructionKind::Copy { source, target, .. } = &instruction.kind {
                to_host += usize::from(source.memory.device().is_some());
                to_device += usize::from(target.memory.device().is_some());
            }
        }
        (to_host, to_device, peer_copies(&nodes, links).count())
    };
    let (_, _, direct) = copies(u64::MAX);
    assert!(direct > 0, "devices exchange positions");
    let (to_host, to_device, none) = copies(0);
    assert_eq!(none, 0);
    assert!(to_host < to_device, "{to_host} copies to the host serve {to_device} to devices");
}
