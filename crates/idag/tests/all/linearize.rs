//! Copies with short rows between devices and the host. (That random programs
//! hold with any idea of a short row is among what `random_programs.rs` shows.)

use celerity_idag::{Instruction, InstructionKind, MemoryId};
use celerity_regions::Box3;
use celerity_tdag::AccessMode::{Read, ReadWrite, Write};
use celerity_tdag::{IndexSpace, Split};
use celerity_testkit::check::{Configuration, check_corpus, check_idag, check_schedule};
use celerity_testkit::corpus;
use celerity_testkit::program::{MapperSpec, Program, ProgramBuilder};
use celerity_testkit::trace::InstructionTrace;

/// Columns are short rows, half a tile is none: elements have 8 bytes.
const ROWS_BELOW: u64 = 24;

fn linearized(configuration: Configuration) -> Configuration {
    Configuration { linearize_below: ROWS_BELOW, ..configuration }
}

fn instructions(program: &Program, configuration: &Configuration) -> Vec<Instruction> {
    let nodes = InstructionTrace::of_program(program, configuration).unwrap();
    nodes.into_iter().flat_map(|node| node.instructions).collect()
}

/// Copies between a device and the host, and copies inside a memory.
fn copies(instructions: &[Instruction]) -> (usize, usize) {
    let mut counts = (0, 0);
    for instruction in instructions {
        let InstructionKind::Copy { source, target, .. } = &instruction.kind else { continue };
        let (from, to) = (source.memory, target.memory);
        counts.0 += usize::from(from.device().is_some() != to.device().is_some());
        counts.1 += usize::from(from == to);
    }
    counts
}

fn allocations(instructions: &[Instruction]) -> usize {
    let allocs = |one: &&Instruction| matches!(one.kind, InstructionKind::Alloc { .. });
    instructions.iter().filter(allocs).count()
}

/// Two devices side by side, which exchange columns through the host.
fn side_by_side(linearize_below: u64) -> Configuration {
    Configuration { links: 0, linearize_below, ..Configuration::new(1, 2) }
}

/// A stencil over columns, so that borders are columns.
fn columns(steps: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let (mut now, mut before) = (program.buffer([16, 16]), program.buffer([16, 16]));
    let space =
        IndexSpace { split: Split::Along(1), ..IndexSpace::new(2, Box3::from_range([16, 16])) };
    for buffer in [now, before] {
        program.kernel("fill", space, &[(buffer, Write, MapperSpec::OneToOne)]);
    }
    let shape = celerity_tdag::NeighborhoodShape::AlongAxes;
    let halo = MapperSpec::Neighborhood { border: [0, 1, 0], shape };
    for _ in 0..steps {
        let accesses = [(before, ReadWrite, MapperSpec::OneToOne), (now, Read, halo.clone())];
        program.kernel("step", space, &accesses);
        std::mem::swap(&mut now, &mut before);
    }
    program.finish()
}

#[test]
fn the_corpus_keeps_the_contract() {
    check_corpus(3, |program, configuration| {
        check_idag(program, &linearized(*configuration))?;
        check_schedule(program, &linearized(*configuration))
    });
}

#[test]
fn only_rows_of_less_than_the_limit_are_staged() {
    let counted = |limit| copies(&instructions(&columns(4), &side_by_side(limit)));
    assert_eq!(counted(8), counted(0), "a row of 8 bytes is not less than 8 bytes");
    let ((straight, resized), (crossing, inside)) = (counted(0), counted(9));
    assert_eq!(crossing, straight, "the same columns cross");
    assert!(inside > resized);
}

#[test]
fn columns_cross_in_one_piece() {
    let width = |part: &Box3| part.max()[1] - part.min()[1];
    let mut crossed = 0;
    for instruction in instructions(&columns(4), &side_by_side(ROWS_BELOW)) {
        let InstructionKind::Copy { source, target, region, .. } = &instruction.kind else {
            continue;
        };
        let crosses = source.memory.device().is_some() != target.memory.device().is_some();
        if crosses && width(&region.bounding_box()) == 1 {
            // A column is in one piece where nothing is beside it.
            let dense = width(&source.extent) == 1 && width(&target.extent) == 1;
            assert!(dense, "{instruction:?}");
            crossed += 1;
        }
    }
    assert!(crossed > 10, "{crossed}");
}

#[test]
fn stages_are_made_once_and_used_in_every_step() {
    let program = |steps| instructions(&columns(steps), &side_by_side(ROWS_BELOW));
    let (short, long) = (program(10), program(30));
    assert_eq!(allocations(&short), allocations(&long));
    assert!(copies(&long).1 > 2 * copies(&short).1);
}

/// Stages that nobody uses any more are given back, though their buffers live.
#[test]
fn stages_out_of_use_are_freed() {
    let mut program = ProgramBuilder::default();
    let (field, count) = (program.buffer([16, 16]), program.buffer([16]));
    let space =
        IndexSpace { split: Split::Tiled, ..IndexSpace::new(2, Box3::from_range([16, 16])) };
    program.kernel("fill", space, &[(field, Write, MapperSpec::OneToOne)]);
    let column = MapperSpec::Fixed(vec![Box3::from_offset_range([0, 7], [16, 1])]);
    program.host_once("look", &[(field, Read, column)]);
    let items = IndexSpace::new(1, Box3::from_range([16]));
    program.kernel("start", items, &[(count, Write, MapperSpec::OneToOne)]);
    for _ in 0..100 {
        program.kernel("count", items, &[(count, ReadWrite, MapperSpec::OneToOne)]);
    }
    let configuration = Configuration { horizon_step: 2, ..linearized(Configuration::new(1, 1)) };
    let made = instructions(&program.finish(), &configuration);
    let allocated = made.iter().find_map(|one| match one.kind {
        InstructionKind::Alloc { allocation, memory, bytes: 128, .. }
            if memory != MemoryId::HOST =>
        {
            Some(allocation)
        }
        _ => None,
    });
    let freed = made.iter().any(
        |one| matches!(one.kind, InstructionKind::Free { allocation, .. } if Some(allocation) == allocated),
    );
    assert!(allocated.is_some() && freed);
}

/// A column that two devices need is gathered on the host once.
#[test]
fn a_broadcast_is_gathered_once() {
    let mut program = ProgramBuilder::default();
    let [field, result] = [program.buffer([16, 16]), program.buffer([16])];
    program.host_once("fill", &[(field, Write, MapperSpec::All)]);
    let column = MapperSpec::Fixed(vec![Box3::from_offset_range([0, 7], [16, 1])]);
    let space = IndexSpace::new(1, Box3::from_range([16]));
    let accesses = [(field, Read, column), (result, Write, MapperSpec::OneToOne)];
    program.kernel("look", space, &accesses);
    let made = instructions(&program.finish(), &linearized(Configuration::new(1, 4)));
    let gathers = made.iter().filter(|one| match &one.kind {
        InstructionKind::Copy { source, target, .. } => {
            source.memory == MemoryId::HOST && target.memory == MemoryId::HOST
        }
        _ => false,
    });
    assert_eq!(gathers.count(), 1);
    assert!(copies(&made).0 >= 4, "every device gets it");
}

/// The tiles of a corpus program, too: what a node sends lies dense in the host.
#[test]
fn tiles_gather_their_columns_on_the_device() {
    let program = corpus::wave_sim([24, 24], 6);
    let configuration = linearized(Configuration::new(4, 1));
    let (crossing, inside) = copies(&instructions(&program, &configuration));
    assert!(inside > 0 && crossing > inside / 2, "{crossing}, {inside}");
}
