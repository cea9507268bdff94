//! The lookahead queue changes when instructions appear and how large
//! allocations are, and nothing else: random programs hold with every policy,
//! and growing patterns allocate once.

use std::collections::BTreeMap;

use celerity_idag::{
    InstructionGraph, InstructionGraphConfig, InstructionKind, Lookahead, LookaheadQueue, MemoryId,
};
use celerity_testkit::check::{Configuration, any_configuration};
use celerity_testkit::corpus;
use celerity_testkit::model::{self, Truth};
use celerity_testkit::program::{Program, Sizes, any_program};
use celerity_testkit::trace::{CommandTrace, InstructionTrace, TaskTrace};
use celerity_testkit::violation::Violation;
use proptest::prelude::*;

fn generate_all(
    program: &Program,
    configuration: &Configuration,
    lookahead: Lookahead,
) -> Result<(TaskTrace, Vec<InstructionTrace>), Violation> {
    let tasks = TaskTrace::of(program, configuration.task_graph())?;
    let commands = CommandTrace::of_all(&tasks, configuration.nodes)?;
    let config = InstructionGraphConfig { devices: configuration.devices };
    let queue = || LookaheadQueue::new(InstructionGraph::new(config), lookahead);
    let nodes = commands.iter().map(|node| InstructionTrace::with(&tasks, node, queue()));
    let nodes = nodes.collect::<Result<_, _>>()?;
    Ok((tasks, nodes))
}

fn check(
    program: &Program,
    configuration: &Configuration,
    lookahead: Lookahead,
) -> Result<(), Violation> {
    let (tasks, nodes) = generate_all(program, configuration, lookahead)?;
    let Configuration { devices, seed, .. } = *configuration;
    model::idag::check(&Truth::of(program), &tasks, &nodes, devices, seed)
}

/// Allocations per node and memory, of the largest count.
fn most_allocations(nodes: &[InstructionTrace]) -> usize {
    let mut counts = BTreeMap::<(usize, MemoryId), usize>::new();
    for (node, trace) in nodes.iter().enumerate() {
        for instruction in &trace.instructions {
            if let InstructionKind::Alloc { memory, .. } = instruction.kind {
                *counts.entry((node, memory)).or_default() += 1;
            }
        }
    }
    counts.values().copied().max().unwrap_or(0)
}

proptest! {
    #[test]
    fn random_programs_hold_with_every_policy(
        program in any_program(Sizes::default()),
        configuration in any_configuration(),
        auto in any::<bool>(),
    ) {
        let lookahead = if auto { Lookahead::Auto } else { Lookahead::Infinite };
        let verdict = check(&program, &configuration, lookahead);
        prop_assert!(verdict.is_ok(), "{}", verdict.unwrap_err());
    }
}

#[test]
fn the_corpus_holds_with_every_policy() {
    for (name, program) in corpus::all(6) {
        for (nodes, devices) in [(1, 1), (1, 3), (2, 2), (4, 1)] {
            for lookahead in [Lookahead::Auto, Lookahead::Infinite] {
                let verdict = check(&program, &Configuration::new(nodes, devices), lookahead);
                assert_eq!(verdict, Ok(()), "{name} on {nodes}x{devices}, {lookahead:?}");
            }
        }
    }
}

#[test]
fn a_growing_pattern_allocates_once_per_memory() {
    let program = corpus::rsim(8, 30);
    for (nodes, devices) in [(1, 1), (1, 2), (2, 2)] {
        let configuration = Configuration::new(nodes, devices);
        let most = |lookahead| {
            let (_, nodes) = generate_all(&program, &configuration, lookahead).unwrap();
            most_allocations(&nodes)
        };
        assert!(most(Lookahead::None) > 10, "the pattern resizes without lookahead");
        // The history, scratch space, and the last row, which no step reads: where it is split,
        // it does not join the rest.
        assert!(most(Lookahead::Auto) <= 3, "{nodes} nodes, {devices} devices");
    }
}
