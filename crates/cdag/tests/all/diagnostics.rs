//! What a command graph says about user mappers that break their promises.

use std::sync::Arc;

use celerity_cdag::{CommandGraph, CommandGraphConfig, Diagnostic, NodeId};
use celerity_regions::{Box3, Region};
use celerity_tdag::{BufferInfo, MapperInput, Task};
use celerity_testkit::on_trust;

/// The diagnostics of each of two nodes for a task over `[0..8]` that writes a
/// buffer of 8 elements through `mapper`, which claims to be disjoint.
fn diagnose(mapper: fn(&MapperInput) -> Region) -> [Vec<Diagnostic>; 2] {
    diagnose_task(&on_trust::write(mapper))
}

fn diagnose_task(program: &(Arc<BufferInfo>, Vec<Arc<Task>>)) -> [Vec<Diagnostic>; 2] {
    [0, 1].map(|node| diagnose_on(node, 2, program))
}

/// Those of one node of so many.
fn diagnose_on(
    node: u64,
    nodes: usize,
    (buffer, tasks): &(Arc<BufferInfo>, Vec<Arc<Task>>),
) -> Vec<Diagnostic> {
    let local = NodeId::from_index(node);
    let mut graph = CommandGraph::new(CommandGraphConfig { nodes, local });
    graph.register_buffer(buffer);
    let (mut commands, mut diagnostics) = (vec![], vec![]);
    tasks.iter().for_each(|task| graph.schedule(task, &mut commands, &mut diagnostics));
    diagnostics
}

/// What is not written falls into many pieces while one node after the other is looked at.
#[test]
fn chunks_that_write_far_apart_are_held_to_the_same_promises() {
    /// Enough that they are checked together. Under Miri, 128 took more than half an hour.
    const NODES: usize = if cfg!(miri) { 32 } else { 128 };
    const MISTAKEN: usize = NODES / 2 + 13;
    /// Where an item writes: at its index with the bits in the opposite order.
    fn element(item: usize) -> usize {
        item.reverse_bits() >> (usize::BITS - NODES.trailing_zeros())
    }
    /// Of an item the element whose index has its bits in the opposite order.
    fn reversed(input: &MapperInput) -> Region {
        let items = input.chunk.min()[0]..input.chunk.max()[0];
        Region::from_boxes(items.map(|item| Box3::from_offset_range([element(item as usize)], [1])))
    }
    /// The same, but for two items, which share an element as chunks.
    fn mistaken(input: &MapperInput) -> Region {
        match (input.chunk == input.global, input.chunk.min()[0]) {
            (false, item) if item == MISTAKEN as u64 => Box3::from_range([1]).into(),
            _ => reversed(input),
        }
    }
    let lawful = on_trust::write_of(NODES, reversed);
    let unlawful = on_trust::write_of(NODES, mistaken);
    for node in [0, 1, NODES as u64 / 2, NODES as u64 - 1] {
        assert_eq!(diagnose_on(node, NODES, &lawful), []);
        let found = diagnose_on(node, NODES, &unlawful);
        let unwritten = Box3::from_offset_range([element(MISTAKEN)], [1]).into();
        let is_missing = |one: &Diagnostic| matches!(one, Diagnostic::UnwrittenElements { region, .. } if *region == unwritten);
        let is_shared = |one: &Diagnostic| matches!(one, Diagnostic::OverlappingWrites { .. });
        assert!(found.iter().any(is_missing), "{node}: {found:?}");
        assert_eq!(found.iter().any(is_shared), node == 0, "{node}: {found:?}");
    }
}

#[test]
fn a_lawful_mapper_is_not_complained_about() {
    let mirrored = |input: &MapperInput| {
        let (min, max) = (input.chunk.min()[0], input.chunk.max()[0]);
        Box3::new([8 - max, 0, 0], [8 - min, 1, 1]).into()
    };
    assert_eq!(diagnose(mirrored), [vec![], vec![]]);
}

#[test]
fn both_nodes_notice_that_they_write_the_same() {
    let all = |_: &MapperInput| Box3::from_range([8]).into();
    for diagnostics in diagnose(all) {
        let [Diagnostic::OverlappingWrites { region, .. }] = diagnostics.as_slice() else {
            panic!("{diagnostics:?}")
        };
        assert_eq!(*region, Box3::from_range([8]).into());
    }
}

#[test]
fn both_nodes_notice_elements_that_only_the_whole_space_writes() {
    let gap = |input: &MapperInput| match input.chunk == input.global {
        true => input.buffer.into(),
        false => Box3::from_offset_range([input.chunk.min()[0] as usize], [3]).into(),
    };
    for diagnostics in diagnose(gap) {
        let [Diagnostic::UnwrittenElements { region, .. }] = diagnostics.as_slice() else {
            panic!("{diagnostics:?}")
        };
        assert_eq!(region.to_string(), "{[3..4], [7..8]}");
    }
}

/// The second node's chunk writes one element more than the whole index space, the first one's all that it is said to.
#[test]
fn both_nodes_notice_elements_that_only_a_chunk_writes() {
    let beyond = |input: &MapperInput| match input.chunk == input.global {
        true => Box3::from_range([7]).into(),
        false => input.chunk.into(),
    };
    for diagnostics in diagnose(beyond) {
        let [Diagnostic::UndeclaredWrites { region, node, .. }] = diagnostics.as_slice() else {
            panic!("{diagnostics:?}")
        };
        assert_eq!((region.to_string(), node.index()), ("{[7..8]}".to_owned(), 1));
    }
}

#[test]
fn reading_beside_what_the_task_writes_is_not_complained_about() {
    let shifted = |input: &MapperInput| {
        let (min, max) = (input.chunk.min()[0], input.chunk.max()[0]);
        Box3::new([min - 8, 0, 0], [max - 8, 1, 1]).into()
    };
    let task = on_trust::read_beside_write(shifted);
    assert_eq!(diagnose_task(&task), [vec![], vec![]]);
}

/// Each of them reads only elements that the other one writes.
#[test]
fn both_nodes_notice_that_one_reads_what_the_other_writes() {
    let mirrored = |input: &MapperInput| match input.chunk == input.global {
        true => Box3::from_range([8]).into(),
        false => Region::from(input.global).difference(&input.chunk.into()),
    };
    let found = diagnose_task(&on_trust::read_beside_write(mirrored));
    for (diagnostics, here) in found.iter().zip(["N0", "N1"]) {
        let [first, second] = diagnostics.as_slice() else { panic!("{diagnostics:?}") };
        for (diagnostic, mode) in [(first, "reads"), (second, "writes")] {
            let text = diagnostic.to_string();
            assert!(text.contains(&format!("it {mode} through ")), "{text}");
            assert!(text.contains(&format!(" on {here}, and ")), "{text}");
        }
    }
}
