//! What one command needs becomes one allocation where its parts lie one behind the other, also
//! without lookahead: nothing is wasted, and what follows need not be cut.

use celerity_idag::{InstructionKind, MemoryId};
use celerity_regions::Box3;
use celerity_tdag::AccessMode::{Read, Write};
use celerity_tdag::{BufferId, IndexSpace, Split};
use celerity_testkit::check::{Configuration, check_idag, check_schedule};
use celerity_testkit::program::{MapperSpec, Op, Program, ProgramBuilder, TaskKind};
use celerity_testkit::trace::InstructionTrace;

/// Sizes in elements of the allocations for a buffer on devices, by node and in order.
fn on_devices(program: &Program, configuration: &Configuration, buffer: BufferId) -> Vec<u64> {
    let nodes = InstructionTrace::of_program(program, configuration).unwrap();
    let instructions = nodes.iter().flat_map(|node| &node.instructions);
    let sizes = instructions.filter_map(|one| match one.kind {
        InstructionKind::Alloc { memory, buffer: of, bytes, .. }
            if memory > MemoryId::HOST && of == buffer =>
        {
            Some(bytes / 8)
        }
        _ => None,
    });
    sizes.collect()
}

/// A kernel that fills a buffer, in three chunks per device.
fn filled(extent: Box3, dims: u8, split: Split) -> (Program, BufferId) {
    let mut program = ProgramBuilder::default();
    let [planes, rows, columns] = extent.range().map(|side| side as usize);
    let buffer = match dims {
        1 => program.buffer([planes]),
        2 => program.buffer([planes, rows]),
        _ => program.buffer([planes, rows, columns]),
    };
    let space = IndexSpace { split, oversubscription: 3, ..IndexSpace::new(dims, extent) };
    program.kernel("fill", space, &[(buffer, Write, MapperSpec::OneToOne)]);
    let mut program = program.finish();
    program.ops.retain(|op| !matches!(op, Op::Task(task) if task.kind == TaskKind::Fence));
    (program, buffer)
}

#[test]
fn chunks_of_a_device_share_an_allocation() {
    let along = [
        (Box3::from_range([24]), 1, Split::OneDimensional),
        (Box3::from_range([24, 5]), 2, Split::OneDimensional),
        (Box3::from_range([24, 3, 2]), 3, Split::OneDimensional),
        (Box3::from_range([1, 24]), 2, Split::Along(1)),
        (Box3::from_range([1, 1, 24]), 3, Split::Along(2)),
    ];
    for (extent, dims, split) in along {
        for (nodes, devices) in [(1, 1), (1, 2), (2, 2), (4, 1)] {
            let configuration = Configuration::new(nodes, devices);
            let (program, buffer) = filled(extent, dims, split);
            let places = nodes * devices;
            let share = extent.volume() / places as u64;
            let sizes = on_devices(&program, &configuration, buffer);
            assert_eq!(sizes, vec![share; places], "{extent} on {nodes} × {devices}");
            check_idag(&program, &configuration).unwrap();
            check_schedule(&program, &configuration).unwrap();
        }
    }
}

/// Columns would lie in one allocation in pieces.
#[test]
fn parts_side_by_side_have_allocations_of_their_own() {
    let extent = Box3::from_range([4, 24]);
    let (program, buffer) = filled(extent, 2, Split::Along(1));
    let sizes = on_devices(&program, &Configuration::new(1, 2), buffer);
    assert_eq!(sizes, [16; 6]);
}

/// In the middle of a buffer, by three accesses in any order, the last of which closes the gap.
#[test]
fn accesses_of_a_task_share_an_allocation_where_they_touch() {
    let rows = |first: usize, count: usize| {
        MapperSpec::Fixed(vec![Box3::from_offset_range([first, 0], [count, 6])])
    };
    for order in [[0, 1, 2], [0, 2, 1], [2, 1, 0], [1, 0, 2]] {
        let parts = [rows(2, 2), rows(4, 1), rows(5, 4)];
        let mut program = ProgramBuilder::default();
        let (field, result) = (program.initialized([12, 6]), program.buffer([1, 6]));
        let mut accesses: Vec<_> =
            order.iter().map(|&part| (field, Read, parts[part].clone())).collect();
        accesses.push((result, Write, MapperSpec::OneToOne));
        program.kernel("look", IndexSpace::new(2, Box3::from_range([1, 6])), &accesses);
        let program = program.finish();
        let sizes = on_devices(&program, &Configuration::new(1, 1), field);
        assert_eq!(sizes, [7 * 6], "{order:?}");
        check_schedule(&program, &Configuration::new(1, 1)).unwrap();
    }
}
