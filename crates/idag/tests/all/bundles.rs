//! What leaves together: many small boxes for one node, and nothing else.

use celerity_idag::{DeviceMemory, InstructionKind, MemoryId, Pilot};
use celerity_regions::{Box3, Region};
use celerity_testkit::check::{Configuration, check_idag, check_schedule};
use celerity_testkit::corpus;
use celerity_testkit::program::{Op, Program, TaskKind};
use celerity_testkit::trace::InstructionTrace;

/// The boxes of each message of node 0 for the first buffer, in the first step.
fn messages(mut program: Program, configuration: &Configuration) -> Vec<Vec<Box3>> {
    program.ops.retain(|op| !matches!(op, Op::Task(task) if task.kind == TaskKind::Fence));
    let mut nodes = InstructionTrace::of_program(&program, configuration).unwrap();
    let first = nodes.remove(0);
    let sent = first.instructions.iter().filter_map(|one| match &one.kind {
        InstructionKind::Send { region, transfer, .. } => Some((*transfer, region.clone())),
        _ => None,
    });
    let sent: Vec<_> = sent.collect();
    let transfer = sent[0].0;
    let of_first = sent.into_iter().filter(|(one, _)| *one == transfer);
    of_first.map(|(_, region)| region.boxes().to_vec()).collect()
}

fn on_host(nodes: usize) -> Configuration {
    Configuration { device_memory: DeviceMemory::Host, ..Configuration::new(nodes, 1) }
}

#[test]
fn many_small_boxes_leave_in_few_messages() {
    // 200 elements of node 0, in their order.
    let sent = messages(corpus::table(1200, 1, 2, 1), &on_host(2));
    assert_eq!(sent.iter().map(Vec::len).collect::<Vec<_>>(), [64, 64, 64, 8]);
    assert_eq!(Pilot::MOST_BOXES, 64);
    let all = sent.concat();
    let expected = (0..200).map(|nth| Box3::from_offset_range([3 * nth], [1]));
    assert!(all.into_iter().eq(expected));
}

#[test]
fn few_boxes_leave_one_by_one() {
    for (boxes, messages_of) in [(16, 16), (17, 1)] {
        let sent = messages(corpus::table(boxes * 6, 1, 2, 1), &on_host(2));
        assert_eq!(sent.len(), messages_of, "{boxes} boxes for the other node");
    }
}

#[test]
fn large_boxes_leave_one_by_one() {
    // Elements have eight bytes.
    for (run, boxes_of_largest) in [(128, 20), (129, 1)] {
        let sent = messages(corpus::table(40 * (run + 1), run, 1, 1), &on_host(2));
        let largest = sent.iter().map(Vec::len).max();
        assert_eq!(largest, Some(boxes_of_largest), "runs of {run} elements");
        let all = Region::from_boxes(sent.concat());
        assert_eq!(all.boxes().len(), 20, "nothing is sent twice, or left out");
    }
}

#[test]
fn beside_device_wires_boxes_that_leave_from_the_host_leave_together() {
    let mut configuration = Configuration::new(2, 1);
    configuration.wires_from = 1 << 20;
    let sent = messages(corpus::table(120, 1, 2, 1), &configuration);
    assert_eq!((sent.len(), sent[0].len()), (1, 20));
    configuration.wires_from = 1;
    let sent = messages(corpus::table(120, 1, 2, 1), &configuration);
    assert_eq!((sent.len(), sent[0].len()), (20, 1), "from a device's memory");
}

#[test]
fn many_boxes_are_brought_in_one_copy() {
    let copies = |boxes: usize| {
        let configuration = Configuration::new(2, 1);
        let nodes =
            InstructionTrace::of_program(&corpus::table(boxes * 6, 1, 2, 1), &configuration);
        let instructions = nodes.unwrap().remove(0).instructions;
        let boxes = instructions.into_iter().filter_map(|instruction| match instruction.kind {
            InstructionKind::Copy { region, source, target, .. }
                if source.memory != MemoryId::USER && source.memory != target.memory =>
            {
                Some(region.boxes().len())
            }
            _ => None,
        });
        boxes.collect::<Vec<_>>()
    };
    // First to the host what leaves, and from there what has arrived.
    assert_eq!(copies(17)[..2], [17, 17]);
    assert_eq!(copies(16)[..32], [1; 32]);
}

#[test]
fn tables_keep_the_contract() {
    for device_memory in [DeviceMemory::Host, DeviceMemory::Own] {
        for (nodes, devices) in [(2, 1), (2, 2), (3, 1)] {
            let wires = |wires_from| Configuration {
                wires_from,
                device_memory,
                ..Configuration::new(nodes, devices)
            };
            for configuration in [wires(0), wires(1), Configuration { wired: 0b1001, ..wires(1) }] {
                // Of each node, 17 elements are read by all others.
                let program = corpus::table(34 * nodes, 1, 1, 2);
                check_idag(&program, &configuration).unwrap();
                check_schedule(&program, &configuration).unwrap();
            }
        }
    }
}
