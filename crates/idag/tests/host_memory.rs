//! Devices that work in the host's memory: what a kernel has written is sent, read by host tasks
//! and overwritten by what arrives where it lies, without a copy.

use celerity_idag::{DeviceMemory, Instruction, InstructionKind, Lookahead, MemoryId};
use celerity_testkit::check::{Configuration, check_idag, check_schedule};
use celerity_testkit::corpus;
use celerity_testkit::program::Program;
use celerity_testkit::trace::InstructionTrace;

fn in_host_memory(nodes: usize, devices: usize) -> Configuration {
    let cluster = Configuration::new(nodes, devices);
    Configuration { device_memory: DeviceMemory::Host, lookahead: Lookahead::Auto, ..cluster }
}

fn instructions(program: &Program, configuration: &Configuration) -> Vec<Instruction> {
    let nodes = InstructionTrace::of_program(program, configuration).unwrap();
    nodes.into_iter().flat_map(|node| node.instructions).collect()
}

fn is_elsewhere(kind: &InstructionKind) -> bool {
    match kind {
        InstructionKind::Alloc { memory, .. } => *memory != MemoryId::HOST,
        _ => false,
    }
}

/// Whether a copy brings what an allocation holds to a larger one, such as that of the last
/// fence, which nobody could foresee.
fn is_move(copy: &InstructionKind, made: &[Instruction]) -> bool {
    let InstructionKind::Copy { source, target, .. } = copy else { return false };
    let freed = |one: &Instruction| matches!(one.kind, InstructionKind::Free { allocation, .. } if allocation == source.allocation);
    source.memory == target.memory && made.iter().any(freed)
}

/// Nothing of a wave comes from the user.
#[test]
fn nothing_is_copied_but_what_becomes_larger() {
    let program = corpus::wave_sim([12, 8], 6);
    for (nodes, devices) in [(1, 1), (2, 1), (2, 3), (4, 1)] {
        let made = instructions(&program, &in_host_memory(nodes, devices));
        let is = |wanted: fn(&InstructionKind) -> bool| {
            made.iter().filter(|one| wanted(&one.kind)).count()
        };
        let copies = made.iter().map(|one| &one.kind);
        let copies: Vec<_> =
            copies.filter(|kind| matches!(kind, InstructionKind::Copy { .. })).collect();
        assert!(copies.iter().all(|copy| is_move(copy, &made)), "{nodes}×{devices}: {copies:?}");
        let allocs = is(|kind| matches!(kind, InstructionKind::Alloc { .. }));
        assert!(allocs <= 3 * nodes, "{nodes}×{devices}: two, and one for the last fence");
        let sends = is(|kind| matches!(kind, InstructionKind::Send { .. }));
        assert_eq!(sends > 0, nodes > 1);
        assert_eq!(is(is_elsewhere), 0);
    }
}

#[test]
fn the_corpus_keeps_all_contracts() {
    for (name, program) in corpus::all(5) {
        for (nodes, devices) in [(1, 1), (1, 3), (2, 1), (2, 2), (4, 3)] {
            let configuration = in_host_memory(nodes, devices);
            for check in [check_idag, check_schedule] {
                let verdict = check(&program, &configuration);
                assert!(verdict.is_ok(), "{name}: {}", verdict.unwrap_err());
            }
        }
    }
}
