//! The lookahead queue makes growing patterns allocate once, and changes
//! nothing else. (That random programs hold with it is among what
//! `random_programs.rs` shows.)

use std::collections::BTreeMap;

use celerity_idag::{InstructionKind, Lookahead, MemoryId};
use celerity_testkit::check::{Configuration, check_idag};
use celerity_testkit::corpus;
use celerity_testkit::program::Program;
use celerity_testkit::trace::{CommandTrace, InstructionTrace, TaskTrace};

fn generate(program: &Program, configuration: &Configuration) -> Vec<InstructionTrace> {
    let tasks = TaskTrace::of(program, configuration.task_graph()).unwrap();
    let commands = CommandTrace::of_all(&tasks, configuration.nodes).unwrap();
    InstructionTrace::on(&tasks, &commands, configuration).unwrap()
}

/// Allocations in one memory of one node, of the largest count.
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

#[test]
fn the_corpus_holds_with_every_policy() {
    for (name, program) in corpus::all(6) {
        for (nodes, devices) in [(1, 1), (1, 3), (2, 2), (4, 1)] {
            for lookahead in [Lookahead::Auto, Lookahead::Infinite] {
                let configuration =
                    Configuration { lookahead, ..Configuration::new(nodes, devices) };
                if let Err(failure) = check_idag(&program, &configuration) {
                    panic!("{name}: {failure}");
                }
            }
        }
    }
}

#[test]
fn a_growing_pattern_allocates_once_per_memory() {
    let program = corpus::rsim(8, 30);
    for (nodes, devices) in [(1, 1), (1, 2), (2, 2)] {
        let most = |lookahead| {
            let configuration = Configuration { lookahead, ..Configuration::new(nodes, devices) };
            most_allocations(&generate(&program, &configuration))
        };
        assert!(most(Lookahead::None) > 10, "the pattern resizes without lookahead");
        // The history, scratch space, and the last row, which no step reads: where it is split,
        // it does not join the rest.
        assert!(most(Lookahead::Auto) <= 3, "{nodes} nodes, {devices} devices");
    }
}
