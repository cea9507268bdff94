//! Devices that work in the host's memory: what a kernel has written is sent, read by host tasks
//! and overwritten by what arrives where it lies, without a copy.

use celerity_idag::{
    AllocationId, DeviceMemory, Instruction, InstructionKind, Lookahead, MemoryId,
};
use celerity_regions::{Box3, Region};
use celerity_tdag::AccessMode::{Read, Write};
use celerity_tdag::{BufferId, IndexSpace};
use celerity_testkit::check::{Configuration, check_idag, check_schedule};
use celerity_testkit::corpus;
use celerity_testkit::program::{MapperSpec, Op, Program, ProgramBuilder, TaskKind};
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

/// What stands for a buffer's initial contents is the buffer's memory: what reads and writes it,
/// sends it and receives into it names that allocation, and nothing is copied out of it.
#[test]
fn what_is_handed_over_is_worked_on_where_it_lies() {
    let mut program = corpus::jacobi([12, 8], 6);
    program.ops.extend([0, 1].map(|index| Op::Drop(BufferId::from_index(index))));
    for (nodes, devices) in [(1, 1), (1, 3), (2, 1), (3, 2)] {
        let traces =
            InstructionTrace::of_program(&program, &in_host_memory(nodes, devices)).unwrap();
        for InstructionTrace { instructions, user_allocations, .. } in traces {
            let given = |id: &AllocationId| user_allocations.iter().any(|(known, _)| known == id);
            let uses = |is: fn(&InstructionKind) -> Option<AllocationId>| {
                let used = instructions.iter().filter_map(|one| is(&one.kind));
                used.filter(|id| given(id)).count()
            };
            assert_eq!(user_allocations.len(), 2, "both fields are given");
            assert!(instructions.iter().all(|one| allocated(&one.kind).is_none()));
            assert_eq!((uses(copied_from), uses(freed)), (0, 2));
            assert!(uses(launched_on) > 0);
            assert_eq!((uses(sent_from) > 0, uses(received_into) > 0), (nodes > 1, nodes > 1));
        }
    }
}

fn allocated(kind: &InstructionKind) -> Option<AllocationId> {
    match kind {
        InstructionKind::Alloc { allocation, .. } => Some(*allocation),
        _ => None,
    }
}

fn copied_from(kind: &InstructionKind) -> Option<AllocationId> {
    match kind {
        InstructionKind::Copy { source, .. } => Some(source.allocation),
        _ => None,
    }
}

fn freed(kind: &InstructionKind) -> Option<AllocationId> {
    match kind {
        InstructionKind::Free { allocation, memory } => {
            Some(*allocation).filter(|_| *memory == MemoryId::HOST)
        }
        _ => None,
    }
}

fn launched_on(kind: &InstructionKind) -> Option<AllocationId> {
    match kind {
        InstructionKind::Kernel { accesses, .. } => {
            let mut placements = accesses.iter().filter_map(|access| access.placement);
            placements
                .find(|placement| placement.memory == MemoryId::HOST)
                .map(|one| one.allocation)
        }
        _ => None,
    }
}

fn sent_from(kind: &InstructionKind) -> Option<AllocationId> {
    match kind {
        InstructionKind::Send { source, .. } => Some(source.allocation),
        _ => None,
    }
}

fn received_into(kind: &InstructionKind) -> Option<AllocationId> {
    match kind {
        InstructionKind::Receive(inbound) | InstructionKind::SplitReceive(inbound) => {
            Some(inbound.target.allocation)
        }
        _ => None,
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

/// Receives with what they bring, of a program that reads every eighth element on every node, so many of each other one.
fn received_of_a_table(nodes: usize, pieces: usize) -> Vec<Region> {
    let size = 8 * pieces * nodes;
    let mut program = ProgramBuilder::default();
    let [field, result] = [program.buffer([size]), program.buffer([nodes])];
    let space = |items: usize| IndexSpace::new(1, Box3::from_range([items]));
    let table = (0..size).step_by(8).map(|at| Box3::from_offset_range([at], [1])).collect();
    program.kernel("fill", space(size), &[(field, Write, MapperSpec::OneToOne)]);
    let accesses = [(field, Read, MapperSpec::Fixed(table)), (result, Write, MapperSpec::OneToOne)];
    program.kernel("look", space(nodes), &accesses);
    let mut program = program.finish();
    program.ops.retain(|op| !matches!(op, Op::Task(task) if task.kind == TaskKind::Fence));
    let configuration = in_host_memory(nodes, 2);
    for check in [check_idag, check_schedule] {
        let verdict = check(&program, &configuration);
        assert!(verdict.is_ok(), "{nodes} nodes, {pieces}: {}", verdict.unwrap_err());
    }
    let received = |one: Instruction| match one.kind {
        InstructionKind::Receive(inbound) | InstructionKind::SplitReceive(inbound) => {
            Some(inbound.region)
        }
        _ => None,
    };
    instructions(&program, &configuration).into_iter().filter_map(received).collect()
}

/// A few pieces are received each by itself, so that who needs one does not wait for the others. What a table names
/// comes at once, as far as it lies in one allocation: thousands of receives would take longer than what they bring.
#[test]
fn many_pieces_are_one_receive() {
    for nodes in [2, 3] {
        let few = received_of_a_table(nodes, 4);
        assert_eq!(few.len(), nodes * (nodes - 1) * 4);
        assert!(few.iter().all(|region| region.volume() == 1));
        let many = received_of_a_table(nodes, 100);
        assert!(many.len() <= nodes, "{many:?}");
        let brought: u64 = many.iter().map(Region::volume).sum();
        assert_eq!(brought, (nodes * (nodes - 1) * 100) as u64);
    }
}
