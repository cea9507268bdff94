//! What an instruction graph says about user mappers that break their promises
//! between the devices of one node.

use celerity_cdag::{CommandGraph, CommandGraphConfig, NodeId};
use celerity_idag::{Diagnostic, InstructionGraph, InstructionGraphConfig, Schedule};
use celerity_regions::{Box3, Region};
use celerity_tdag::MapperInput;
use celerity_testkit::on_trust;

/// The diagnostics of one node with two devices for a task over `[0..8]` that
/// writes a buffer of 8 elements through `mapper`, which claims to be disjoint.
fn diagnose(mapper: fn(&MapperInput) -> Region) -> Vec<Diagnostic> {
    let (buffer, tasks) = on_trust::write(mapper);
    let local = NodeId::from_index(0);
    let mut commands = CommandGraph::new(CommandGraphConfig { nodes: 1, local });
    let mut graph = InstructionGraph::new(InstructionGraphConfig { devices: 2 });
    commands.register_buffer(&buffer);
    assert_eq!(graph.register_buffer(&buffer), None);
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
