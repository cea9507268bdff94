//! What an instruction graph says about user mappers that break their promises
//! between the devices of one node.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use celerity_cdag::{CommandGraph, CommandGraphConfig, NodeId};
use celerity_idag::{Diagnostic, InstructionGraph, InstructionGraphConfig, Schedule};
use celerity_regions::{Box3, Region};
use celerity_tdag::{BufferInfo, MapperInput, Task};
use celerity_testkit::on_trust;

/// The diagnostics of one node with two devices for a task over `[0..8]` that
/// writes a buffer of 8 elements through `mapper`, which claims to be disjoint.
fn diagnose(mapper: fn(&MapperInput) -> Region) -> Vec<Diagnostic> {
    diagnose_task(2, on_trust::write(mapper))
}

fn diagnose_task(
    devices: usize,
    (buffer, tasks): (Arc<BufferInfo>, Vec<Arc<Task>>),
) -> Vec<Diagnostic> {
    let local = NodeId::from_index(0);
    let mut commands = CommandGraph::new(CommandGraphConfig { nodes: 1, local });
    let mut graph = InstructionGraph::new(InstructionGraphConfig { devices });
    commands.register_buffer(&buffer);
    let _ = graph.register_buffer(&buffer);
    let (mut schedule, mut diagnostics) = (Schedule::default(), vec![]);
    for task in &tasks {
        let mut batch = vec![];
        commands.schedule(task, &mut batch, &mut vec![]);
        for command in &batch {
            graph.schedule(command, task, &mut schedule, &mut diagnostics);
        }
    }
    diagnostics
}

#[test]
fn devices_that_write_the_same_are_noticed() {
    let all = |_: &MapperInput| Box3::from_range([8]).into();
    let found = diagnose(all);
    let [Diagnostic::OverlappingWrites { region, .. }] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!(*region, Box3::from_range([8]).into());
}

#[test]
fn elements_that_no_device_writes_are_noticed() {
    let gap = |input: &MapperInput| match input.chunk == input.global {
        true => input.buffer.into(),
        false => Box3::from_offset_range([input.chunk.min()[0] as usize], [3]).into(),
    };
    let found = diagnose(gap);
    let [Diagnostic::UnwrittenElements { region, .. }] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!(region.to_string(), "{[3..4], [7..8]}");
}

#[test]
fn elements_that_only_a_device_writes_are_noticed() {
    let beyond = |input: &MapperInput| match input.chunk == input.global {
        true => Box3::from_range([7]).into(),
        false => input.chunk.into(),
    };
    let found = diagnose(beyond);
    let [Diagnostic::UndeclaredWrites { region, .. }] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!(region.to_string(), "{[7..8]}");
}

#[test]
fn launches_that_read_what_their_task_writes_are_noticed() {
    let lying = |input: &MapperInput| match input.chunk == input.global {
        true => Box3::from_range([8]).into(),
        false => input.chunk.into(),
    };
    let of_one = |input: &MapperInput| match input.chunk.min() == [8, 0, 0] {
        true => Box3::from_range([8]).into(),
        // The second device reads what the first one writes.
        false => Box3::from_offset_range([9], [1]).into(),
    };
    for (mapper, expected) in
        [(lying as fn(&MapperInput) -> Region, "{[8..16]}"), (of_one, "{[9..10]}")]
    {
        let found = diagnose_task(2, on_trust::read_beside_write(mapper));
        let [Diagnostic::SharedElements { region, accesses, .. }] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!(region.to_string(), expected);
        assert!(accesses[0].starts_with("reads") && accesses[1].starts_with("writes"));
    }
}

/// A node that runs all of it, on one device, asks the mapper again.
#[test]
fn a_mapper_that_changes_its_mind_is_noticed() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let fickle = |input: &MapperInput| match ASKED.fetch_add(1, Ordering::Relaxed) {
        0 => Box3::from_range([8]).into(),
        _ => input.chunk.into(),
    };
    let found = diagnose_task(1, on_trust::read_beside_write(fickle));
    assert!(matches!(found.as_slice(), [Diagnostic::SharedElements { .. }]), "{found:?}");
}

#[test]
fn reading_beside_what_a_task_writes_is_not_complained_about() {
    let shifted = |input: &MapperInput| {
        let (min, max) = (input.chunk.min()[0], input.chunk.max()[0]);
        Box3::new([min - 8, 0, 0], [max - 8, 1, 1]).into()
    };
    for devices in 1..4 {
        assert_eq!(diagnose_task(devices, on_trust::read_beside_write(shifted)), vec![]);
    }
}
