//! The contract of the instruction graph holds for the corpus and for random programs, and each
//! of its clauses can be seen to fail.

use celerity_idag::{
    AllocationId, Broken, DeviceMemory, Instruction, InstructionId, InstructionKind, MemoryId,
    MessageId, Pilot, verify,
};
use celerity_regions::{Box3, Region};
use celerity_tdag::BrokenEdge;
use celerity_testkit::check::{Configuration, any_configuration};
use celerity_testkit::corpus;
use celerity_testkit::program::{Program, Sizes, any_program};
use celerity_testkit::trace::InstructionTrace;
use proptest::prelude::*;

fn generate(program: &Program, configuration: &Configuration) -> Vec<InstructionTrace> {
    InstructionTrace::of_program(program, configuration).unwrap()
}

proptest! {
    #[test]
    fn random_programs_keep_the_contract(
        program in any_program(Sizes::default().with_objects()),
        configuration in any_configuration(),
    ) {
        for node in generate(&program, &configuration) {
            let InstructionTrace { instructions, pilots, user_allocations, .. } = &node;
            let memory = configuration.device_memory;
            prop_assert_eq!(verify(instructions, pilots, memory, user_allocations), Ok(()));
        }
    }
}

#[test]
fn the_corpus_keeps_the_contract() {
    for (name, program) in corpus::all(6) {
        for (nodes, devices) in [(1, 1), (1, 3), (2, 2), (4, 1)] {
            for device_memory in [DeviceMemory::Own, DeviceMemory::Host] {
                let cluster = Configuration::new(nodes, devices);
                for node in generate(&program, &Configuration { device_memory, ..cluster }) {
                    let InstructionTrace { instructions, pilots, user_allocations, .. } = &node;
                    let kept = verify(instructions, pilots, device_memory, user_allocations);
                    assert_eq!(kept, Ok(()), "{name}");
                }
            }
        }
    }
}

/// What is wrong with a node's sound instructions after `change`.
fn broken(change: impl FnOnce(&mut Vec<Instruction>, &mut Vec<Pilot>)) -> Vec<Broken> {
    let configuration = Configuration { horizon_step: 2, ..Configuration::new(2, 2) };
    let node = generate(&corpus::jacobi([12, 8], 6), &configuration).remove(0);
    let (mut instructions, mut pilots) = (node.instructions, node.pilots);
    let judge = |instructions: &[Instruction], pilots: &[Pilot]| {
        verify(instructions, pilots, DeviceMemory::Own, &node.user_allocations)
    };
    assert_eq!(judge(&instructions, &pilots), Ok(()));
    change(&mut instructions, &mut pilots);
    judge(&instructions, &pilots).expect_err("something has been broken")
}

fn first(
    instructions: &mut [Instruction],
    is: impl Fn(&InstructionKind) -> bool,
) -> &mut Instruction {
    let mut all = instructions.iter_mut();
    all.find(|one| is(&one.kind)).expect("the program has one")
}

fn is_copy(kind: &InstructionKind) -> bool {
    matches!(kind, InstructionKind::Copy { source, .. } if source.memory != MemoryId::USER)
}

fn is_kernel(kind: &InstructionKind) -> bool {
    matches!(kind, InstructionKind::Kernel { .. })
}

fn is_send(kind: &InstructionKind) -> bool {
    matches!(kind, InstructionKind::Send { .. })
}

fn says(found: &[Broken], words: &str) -> bool {
    found.iter().any(|one| one.to_string().contains(words))
}

#[test]
fn ids_are_dense() {
    let found = broken(|instructions, _| drop(instructions.remove(3)));
    assert_eq!(found[0].to_string(), "I4 comes where I3 is due");
}

#[test]
fn edges_lead_to_what_is_older_and_not_too_old() {
    let add = |on: fn(InstructionId) -> InstructionId| {
        broken(|instructions, _| {
            let last = instructions.iter_mut().rev().find(|one| is_kernel(&one.kind)).unwrap();
            last.dependencies.push(on(last.id));
        })
    };
    assert!(says(&add(|id| id), "which is not older"));
    assert!(says(&add(|_| InstructionId::from_index(0)), "older than the synchronisation point"));
    let found = broken(|instructions, _| {
        let kernel = first(instructions, is_kernel);
        kernel.dependencies.push(kernel.dependencies[0]);
    });
    assert!(says(&found, "a second time"), "{found:?}");
}

#[test]
fn everything_waits_for_something() {
    let found = broken(|instructions, _| first(instructions, is_kernel).dependencies.clear());
    assert!(says(&found, "waits for nothing"), "{found:?}");
}

#[test]
fn horizons_wait_for_all_that_is_older() {
    let found = broken(|instructions, _| {
        let is_horizon = |kind: &_| matches!(kind, InstructionKind::Horizon { .. });
        first(instructions, is_horizon).dependencies.pop();
    });
    assert!(matches!(found[0], Broken::Edge(BrokenEdge::NotReached { .. })), "{found:?}");
}

#[test]
fn allocations_are_made_once_and_freed_last() {
    let memory = |change: fn(&mut InstructionKind)| {
        broken(|instructions, _| {
            let is_alloc = |kind: &_| matches!(kind, InstructionKind::Alloc { .. });
            change(&mut first(instructions, is_alloc).kind);
        })
    };
    let found = memory(|kind| {
        let InstructionKind::Alloc { allocation, .. } = kind else { return };
        *allocation = AllocationId::from_index(0);
    });
    assert!(says(&found, "was never allocated"), "{found:?}");
    let found = memory(|kind| {
        let InstructionKind::Alloc { memory, .. } = kind else { return };
        *memory = MemoryId::USER;
    });
    assert!(says(&found, "is the user's") && says(&found, "another memory"), "{found:?}");
    let found = memory(|kind| {
        let InstructionKind::Alloc { bytes, .. } = kind else { return };
        *bytes += 1;
    });
    assert!(says(&found, "not the size"), "{found:?}");
    let found = memory(|kind| {
        let InstructionKind::Alloc { allocation, memory, .. } = *kind else { return };
        *kind = InstructionKind::Free { allocation, memory };
    });
    assert!(says(&found, "is freed and was never allocated"), "{found:?}");
}

#[test]
fn nobody_uses_what_has_been_freed() {
    let found = broken(|instructions, _| {
        let uses = |kind: &InstructionKind| match kind {
            InstructionKind::Kernel { accesses, .. } => accesses[0].placement,
            _ => None,
        };
        let placement = instructions.iter().rev().find_map(|one| uses(&one.kind));
        let placement = placement.expect("kernels touch memory");
        // A horizon before the last kernel gives its memory back instead.
        let horizon = instructions
            .iter_mut()
            .rfind(|one| matches!(one.kind, InstructionKind::Horizon { .. }));
        let (allocation, memory) = (placement.allocation, placement.memory);
        horizon.unwrap().kind = InstructionKind::Free { allocation, memory };
    });
    assert!(says(&found, "is used after it was freed"), "{found:?}");
}

#[test]
fn memory_is_touched_where_it_lies() {
    let copy = |change: fn(&mut InstructionKind)| {
        broken(|instructions, _| change(&mut first(instructions, is_copy).kind))
    };
    let found = copy(|kind| {
        let InstructionKind::Copy { source, target, .. } = kind else { return };
        *target = *source;
    });
    assert!(says(&found, "copied to itself"), "{found:?}");
    let found = copy(|kind| {
        let InstructionKind::Copy { region, .. } = kind else { return };
        *region = Box3::from_range([100, 100]).into();
    });
    assert!(says(&found, "does not hold all"), "{found:?}");
    let found = copy(|kind| {
        let InstructionKind::Copy { source, .. } = kind else { return };
        source.extent = Box3::from_range([100, 100]);
    });
    assert!(says(&found, "another extent"), "{found:?}");
    let found = broken(|instructions, _| {
        let InstructionKind::Kernel { device, .. } = &mut first(instructions, is_kernel).kind
        else {
            return;
        };
        *device = device.next();
    });
    assert!(says(&found, "out of reach"), "{found:?}");
}

#[test]
fn sends_are_announced_one_by_one() {
    let found = broken(|_, pilots| pilots.truncate(1));
    assert!(says(&found, "without a pilot"), "{found:?}");
    let found = broken(|_, pilots| pilots.push(pilots[0].clone()));
    assert!(says(&found, "msg0 is announced and never sent"), "{found:?}");
    let found = broken(|_, pilots| pilots.swap(0, 1));
    assert!(says(&found, "not what its pilot announces"), "{found:?}");
    let found = broken(|instructions, _| {
        let InstructionKind::Send { message, .. } = &mut first(instructions, is_send).kind else {
            return;
        };
        *message = MessageId::from_index(7);
    });
    assert!(says(&found, "msg7 is not the next message"), "{found:?}");
    let with_boxes = |boxes: u64| {
        let region =
            Region::from_boxes((0..boxes).map(|at| Box3::new([2 * at, 0, 0], [2 * at + 1, 1, 1])));
        broken(|instructions, _| {
            let InstructionKind::Send { region: sent, .. } = &mut first(instructions, is_send).kind
            else {
                return;
            };
            *sent = region.clone();
        })
    };
    assert!(says(&with_boxes(65), "brings more boxes than a message may"));
    assert!(!says(&with_boxes(64), "brings more boxes than a message may"));
}

#[test]
fn what_arrives_is_awaited() {
    let program = corpus::transpose(8, 2);
    let node = generate(&program, &Configuration::new(2, 2)).remove(0);
    let awaits = |kind: &InstructionKind| matches!(kind, InstructionKind::AwaitReceive { .. });
    let mut instructions = node.instructions;
    let await_receive = first(&mut instructions, awaits);
    let InstructionKind::AwaitReceive { transfer, .. } = &mut await_receive.kind else {
        unreachable!("it has just been found")
    };
    transfer.consumer = transfer.consumer.next();
    let found = verify(&instructions, &node.pilots, DeviceMemory::Own, &node.user_allocations);
    let found = found.unwrap_err();
    assert!(says(&found, "no split receive has begun"), "{found:?}");
    assert!(says(&found, "nobody awaits all of it"), "{found:?}");
}
