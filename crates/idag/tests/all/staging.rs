//! Nodes whose devices cannot all copy to each other directly: what cannot go
//! directly goes through the host, once. (That random programs hold with any
//! links is among what `random_programs.rs` shows.)

use celerity_idag::InstructionKind;
use celerity_testkit::check::{Configuration, any_configuration};
use celerity_testkit::corpus;
use celerity_testkit::program::{Sizes, any_program};
use celerity_testkit::trace::InstructionTrace;
use proptest::prelude::*;

/// The copies from one device to another, and whether these are linked.
fn peer_copies(
    nodes: &[InstructionTrace],
    configuration: Configuration,
) -> impl Iterator<Item = bool> {
    let instructions = nodes.iter().flat_map(|node| &node.instructions);
    instructions.filter_map(move |instruction| {
        let InstructionKind::Copy { source, target, .. } = &instruction.kind else { return None };
        let (from, to) = (source.memory.device()?, target.memory.device()?);
        Some(from == to || configuration.are_linked(from, to))
    })
}

proptest! {
    #[test]
    fn copies_keep_to_the_links(
        program in any_program(Sizes::default()),
        configuration in any_configuration(),
        links in any::<u64>(),
    ) {
        let configuration = Configuration { links, ..configuration };
        let nodes = InstructionTrace::of_program(&program, &configuration).unwrap();
        prop_assert!(peer_copies(&nodes, configuration).all(|linked| linked));
    }
}

#[test]
fn an_all_gather_goes_through_the_host_once() {
    let program = corpus::nbody(16, 3);
    let copies = |links| {
        let configuration = Configuration { links, ..Configuration::new(1, 4) };
        let nodes = InstructionTrace::of_program(&program, &configuration).unwrap();
        let (mut to_host, mut to_device) = (0, 0);
        for instruction in &nodes[0].instructions {
            if let InstructionKind::Copy { source, target, .. } = &instruction.kind {
                to_host += usize::from(source.memory.device().is_some());
                to_device += usize::from(target.memory.device().is_some());
            }
        }
        (to_host, to_device, peer_copies(&nodes, configuration).count())
    };
    let (_, _, direct) = copies(u64::MAX);
    assert!(direct > 0, "devices exchange positions");
    let (to_host, to_device, none) = copies(0);
    assert_eq!(none, 0);
    assert!(to_host < to_device, "{to_host} copies to the host serve {to_device} to devices");
}
