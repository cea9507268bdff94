//! Where data leaves from: a host allocation that arrivals need anyway, or a dense stage.

use celerity_idag::{Instruction, InstructionKind, Lookahead, MemoryId};
use celerity_regions::Box3;
use celerity_tdag::AccessMode::{Read, Write};
use celerity_tdag::{IndexSpace, NeighborhoodShape, Split};
use celerity_testkit::check::Configuration;
use celerity_testkit::program::{MapperSpec, Op, Program, ProgramBuilder, TaskKind};
use celerity_testkit::trace::InstructionTrace;

/// So large that the test kit does not look at single elements.
const LARGE: [usize; 2] = [1024, 1024];

/// A stencil with corners on tiles of two fields in turns.
fn stencil(size: [usize; 2], steps: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let (mut from, mut to) = (program.buffer(size), program.buffer(size));
    let tiles = IndexSpace { split: Split::Tiled, ..IndexSpace::new(2, Box3::from_range(size)) };
    for buffer in [from, to] {
        program.kernel("fill", tiles, &[(buffer, Write, MapperSpec::OneToOne)]);
    }
    let halo =
        MapperSpec::Neighborhood { border: [1, 1, 0], shape: NeighborhoodShape::BoundingBox };
    for _ in 0..steps {
        let accesses = [(from, Read, halo.clone()), (to, Write, MapperSpec::OneToOne)];
        program.kernel("step", tiles, &accesses);
        std::mem::swap(&mut from, &mut to);
    }
    without_fences(program.finish())
}

fn without_fences(mut program: Program) -> Program {
    program.ops.retain(|op| !matches!(op, Op::Task(task) if task.kind == TaskKind::Fence));
    program
}

fn instructions(program: &Program, configuration: &Configuration) -> Vec<Instruction> {
    let nodes = InstructionTrace::of_program(program, configuration).unwrap();
    nodes.into_iter().flat_map(|node| node.instructions).collect()
}

fn allocations(instructions: &[Instruction]) -> usize {
    let allocs = |one: &&Instruction| matches!(one.kind, InstructionKind::Alloc { .. });
    instructions.iter().filter(allocs).count()
}

/// What is sent, with the extent of the allocation that it leaves from.
fn sent(instructions: &[Instruction]) -> Vec<(Box3, Box3)> {
    let departures = instructions.iter().filter_map(|one| match &one.kind {
        InstructionKind::Send { source, region, .. } => {
            Some((region.bounding_box(), source.extent))
        }
        _ => None,
    });
    departures.collect()
}

fn is_column(part: &Box3) -> bool {
    part.range()[0] > 1 && part.range()[1] == 1
}

fn ahead(nodes: usize) -> Configuration {
    Configuration { lookahead: Lookahead::Auto, ..Configuration::new(nodes, 1) }
}

/// Elements have 8 bytes: a row of four is short, one of eight is not.
fn slow_rows(configuration: Configuration) -> Configuration {
    Configuration { linearize_below: 64, ..configuration }
}

/// A tile with its border, on the device and on the host, for each of the two fields: what
/// arrives there is known before the first message leaves.
#[test]
fn first_messages_leave_from_where_data_will_arrive() {
    for (nodes, size) in [(2, [8, 8]), (4, [16, 12]), (6, [12, 20]), (8, LARGE), (9, LARGE)] {
        let made = instructions(&stencil(size, 20), &ahead(nodes));
        assert_eq!(allocations(&made), nodes * 2 * 2, "{nodes} nodes, {size:?}");
    }
    // Without foresight the first messages of either field leave from stages.
    let program = stencil(LARGE, 20);
    assert!(allocations(&instructions(&program, &Configuration::new(8, 1))) > 8 * 2 * 2);
}

#[test]
fn a_column_leaves_from_the_stage_in_which_it_crossed() {
    let program = stencil(LARGE, 20);
    let (slow, fast) =
        (instructions(&program, &slow_rows(ahead(8))), instructions(&program, &ahead(8)));
    let columns = |made: &[Instruction]| {
        let columns = sent(made).into_iter().filter(|(part, _)| is_column(part));
        columns.collect::<Vec<_>>()
    };
    assert!(columns(&slow).len() > 100);
    for (part, extent) in columns(&slow) {
        assert_eq!(part, extent, "dense, though the host has room for the whole tile");
    }
    for (part, extent) in columns(&fast) {
        assert_ne!(part, extent, "no copy is worth a stage where rows are not slow");
    }
    // Rows lie in one piece where data arrives, and leave from there in both cases.
    let strided = sent(&slow).into_iter().filter(|(part, _)| part.range()[0] == 1);
    assert!(strided.clone().count() > 100 && strided.clone().any(|(part, at)| part != at));
}

/// Inside of a host's memory, only what has arrived is gathered: nothing is scattered to leave.
#[test]
fn what_leaves_is_not_moved_inside_the_host() {
    let made = instructions(&stencil(LARGE, 20), &slow_rows(ahead(8)));
    let moved = made.iter().filter(|one| {
        let InstructionKind::Copy { source, target, .. } = &one.kind else { return false };
        source.memory == MemoryId::HOST && target.memory == MemoryId::HOST
    });
    let arrived = sent(&made).into_iter().filter(|(part, _)| is_column(part));
    assert_eq!(moved.count(), arrived.count());
}

/// What the host has already leaves from where it is, however it lies there.
#[test]
fn what_is_on_the_host_is_not_gathered() {
    let mut program = ProgramBuilder::default();
    let field = program.buffer([16, 16]);
    program.host_once("fill", &[(field, Write, MapperSpec::All)]);
    let whole = Box3::from_range([16, 16]);
    let columns = IndexSpace { split: Split::Along(1), ..IndexSpace::new(2, whole) };
    program.kernel("look", columns, &[(field, Read, MapperSpec::OneToOne)]);
    let made = instructions(&without_fences(program.finish()), &slow_rows(ahead(4)));
    let column = |node: usize| Box3::from_offset_range([0, 4 * node], [16, 4]);
    assert_eq!(sent(&made), [1, 2, 3].map(|node| (column(node), whole)));
}
