//! What is recorded of an instruction graph survives, and what could not be in one is refused.
#![cfg(feature = "serde")]

use celerity_cdag::{NodeId, TransferId};
use celerity_codec::{RecordingKind, decode, encode};
use celerity_idag::{
    AllocationId, BoundAccess, DeviceId, Inbound, Instruction, InstructionId, InstructionKind,
    MemoryId, MessageId, Pilot, Placement,
};
use celerity_regions::{Box3, Region};
use celerity_tdag::{BufferId, Conflicts, EpochAction, TaskId};

const KIND: RecordingKind = RecordingKind::InstructionGraph;
const BUFFER: BufferId = BufferId::from_index(1);
const TASK: TaskId = TaskId::from_index(2);
const TRANSFER: TransferId = TransferId { consumer: TASK, buffer: BUFFER };

fn placement(allocation: u64) -> Placement {
    let extent = Box3::from_range([8]);
    Placement { allocation: AllocationId::from_index(allocation), memory: MemoryId::HOST, extent }
}

fn row(from: usize, len: usize) -> Box3 {
    Box3::from_offset_range([from], [len])
}

fn access() -> BoundAccess {
    BoundAccess { buffer: BUFFER, placement: Some(placement(3)), region: row(2, 4).into() }
}

fn inbound() -> Inbound {
    Inbound { transfer: TRANSFER, target: placement(3), region: row(0, 2).into(), elem_size: 8 }
}

fn alloc(bytes: u64, alignment: u64) -> InstructionKind {
    let allocation = AllocationId::from_index(3);
    InstructionKind::Alloc { allocation, memory: MemoryId::HOST, buffer: BUFFER, bytes, alignment }
}

fn copy(target: u64, elements: Box3, elem_size: u64) -> InstructionKind {
    let (source, target) = (placement(3), placement(target));
    InstructionKind::Copy { buffer: BUFFER, source, target, region: elements.into(), elem_size }
}

fn send(elements: Box3, elem_size: u64) -> InstructionKind {
    InstructionKind::Send {
        to: NodeId::from_index(1),
        message: MessageId::from_index(0),
        transfer: TRANSFER,
        source: placement(3),
        region: elements.into(),
        elem_size,
    }
}

fn kernel(chunk: Box3) -> InstructionKind {
    let untouched = BoundAccess { buffer: BUFFER, placement: None, region: Region::empty() };
    let accesses = [access(), untouched].into();
    InstructionKind::Kernel { device: DeviceId::from_index(0), task: TASK, chunk, accesses }
}

fn instruction(kind: InstructionKind, dependencies: &[u64]) -> Instruction {
    let dependencies = dependencies.iter().map(|&on| InstructionId::from_index(on)).collect();
    Instruction { id: InstructionId::from_index(9), kind, dependencies }
}

fn assert_refused(instruction: &Instruction, words: &str) {
    let bytes = encode(KIND, instruction).unwrap();
    let error = decode::<Instruction>(KIND, &bytes).unwrap_err().to_string();
    assert!(error.contains(words), "{error}");
}

#[test]
fn every_kind_of_instruction_survives() {
    let (allocation, memory) = (AllocationId::from_index(3), MemoryId::HOST);
    for kind in [
        alloc(64, 8),
        InstructionKind::Free { allocation, memory },
        copy(4, row(0, 8), 8),
        send(row(1, 2), 8),
        InstructionKind::Receive(inbound()),
        InstructionKind::SplitReceive(inbound()),
        InstructionKind::AwaitReceive { transfer: TRANSFER, region: row(0, 1).into() },
        kernel(row(0, 4)),
        InstructionKind::HostTask {
            task: TASK,
            chunk: Box3::UNIT,
            accesses: [access()].into(),
            conflicts: Conflicts::default(),
        },
        InstructionKind::Horizon { task: TASK },
        InstructionKind::Epoch { task: TASK, action: EpochAction::Init },
    ] {
        let instruction = instruction(kind, &[1, 8, 3, 7, 2, 0]);
        let decoded: Instruction = decode(KIND, &encode(KIND, &instruction).unwrap()).unwrap();
        assert_eq!(decoded.kind, instruction.kind);
        assert_eq!(decoded.dependencies, instruction.dependencies);
    }
}

#[test]
fn instructions_that_cannot_be_are_refused() {
    let refused = |kind, words: &str| assert_refused(&instruction(kind, &[]), words);
    refused(alloc(0, 8), "0 bytes");
    refused(alloc(64, 24), "aligned to 24");
    refused(copy(3, row(0, 8), 8), "A3 is copied to itself");
    refused(copy(4, row(4, 5), 8), "does not lie in A3");
    refused(copy(4, row(4, 2), 0), "no bytes");
    refused(send(Box3::EMPTY, 8), "does not lie in A3");
    refused(kernel(Box3::EMPTY), "no items");
    let region = Region::empty();
    refused(InstructionKind::AwaitReceive { transfer: TRANSFER, region }, "nothing of T2.B1");
    let region = row(7, 2).into();
    refused(InstructionKind::Receive(Inbound { region, ..inbound() }), "does not lie in A3");
    let nowhere = BoundAccess { placement: None, ..access() };
    let task = |access| InstructionKind::HostTask {
        task: TASK,
        chunk: Box3::UNIT,
        accesses: [access].into(),
        conflicts: Conflicts::default(),
    };
    refused(task(nowhere), "lies nowhere");
    refused(task(BoundAccess { region: row(4, 9).into(), ..access() }), "does not lie in A3");
    let extent = Box3::EMPTY;
    let empty = Some(Placement { extent, ..placement(3) });
    refused(task(BoundAccess { placement: empty, ..access() }), "A3 holds nothing");
}

#[test]
fn edges_that_cannot_be_are_refused() {
    assert_refused(&instruction(alloc(8, 8), &[4, 2, 4]), "I9 waits twice for I4");
    assert_refused(&instruction(alloc(8, 8), &[4, 9]), "I9 waits for I9, which is not older");
}

#[test]
fn pilots_bring_something() {
    let (to, message) = (NodeId::from_index(1), MessageId::from_index(5));
    let region = row(1, 4).into();
    let pilot = Pilot { to, message, transfer: TRANSFER, region, from_device: true };
    assert_eq!(decode::<Pilot>(KIND, &encode(KIND, &pilot).unwrap()), Ok(pilot.clone()));
    let bytes = encode(KIND, &Pilot { region: Region::empty(), ..pilot.clone() }).unwrap();
    let error = decode::<Pilot>(KIND, &bytes).unwrap_err();
    assert!(error.to_string().contains("msg5 brings nothing"), "{error}");
    let many = Region::from_boxes((0..65).map(|at| row(2 * at, 1)));
    let bytes = encode(KIND, &Pilot { region: many, ..pilot }).unwrap();
    let error = decode::<Pilot>(KIND, &bytes).unwrap_err();
    assert!(error.to_string().contains("msg5 brings 65 boxes"), "{error}");
}
