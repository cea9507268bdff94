//! Allocations that grow where they are. (That random programs hold with any size
//! of growing buffers is among what `random_programs.rs` shows.)

use std::collections::BTreeMap;

use celerity_idag::{InstructionKind, Lookahead, MemoryId};
use celerity_regions::Box3;
use celerity_tdag::AccessMode::{self, Read, ReadWrite, Write};
use celerity_tdag::IndexSpace;
use celerity_testkit::check::{Configuration, check_corpus, check_idag, check_schedule};
use celerity_testkit::corpus;
use celerity_testkit::program::{MapperSpec, Program, ProgramBuilder};
use celerity_testkit::trace::InstructionTrace;

/// What a program's instructions do with the memories of one node's devices.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    allocs: usize,
    reserves: usize,
    grows: usize,
    /// Copies within a memory.
    moves: usize,
    frees: usize,
}

fn growing(configuration: Configuration) -> Configuration {
    Configuration { grow_from: 1, ..configuration }
}

/// By memory; of all nodes together.
fn tally(program: &Program, configuration: &Configuration) -> BTreeMap<MemoryId, Tally> {
    check_schedule(program, configuration).unwrap();
    check_idag(program, configuration).unwrap();
    let mut tallies = BTreeMap::<_, Tally>::new();
    for node in InstructionTrace::of_program(program, configuration).unwrap() {
        for instruction in node.instructions {
            let (memory, field): (_, fn(&mut Tally) -> &mut usize) = match instruction.kind {
                InstructionKind::Alloc { memory, .. } => (memory, |tally| &mut tally.allocs),
                InstructionKind::Reserve { memory, .. } => (memory, |tally| &mut tally.reserves),
                InstructionKind::Grow { memory, .. } => (memory, |tally| &mut tally.grows),
                InstructionKind::Free { memory, .. } => (memory, |tally| &mut tally.frees),
                InstructionKind::Copy { source, target, .. } if source.memory == target.memory => {
                    (source.memory, |tally| &mut tally.moves)
                }
                _ => continue,
            };
            *field(tallies.entry(memory).or_default()) += 1;
        }
    }
    tallies.retain(|memory, _| memory.device().is_some());
    tallies
}

/// A kernel for each box of a field, which writes it.
fn on_boxes(boxes: &[[[usize; 2]; 2]]) -> Program {
    on_boxes_of([12, 8], Write, boxes)
}

/// The same with a field of another size, which is accessed in this mode.
fn on_boxes_of(range: [usize; 2], mode: AccessMode, boxes: &[[[usize; 2]; 2]]) -> Program {
    let mut program = ProgramBuilder::default();
    let field = match mode {
        Write => program.buffer(range),
        _ => program.initialized(range),
    };
    for &[offset, range] in boxes {
        let part = MapperSpec::Fixed(vec![Box3::from_offset_range(offset, range)]);
        let once = IndexSpace::new(1, Box3::from_range([1]));
        program.kernel("touch", once, &[(field, mode, part)]);
    }
    program.finish()
}

#[test]
fn the_corpus_keeps_the_contract() {
    check_corpus(3, |program, configuration| {
        check_idag(program, &growing(*configuration))?;
        check_schedule(program, &growing(*configuration))
    });
}

#[test]
fn a_history_that_grows_by_rows_is_never_moved() {
    let steps = 20;
    let program = corpus::rsim(9, steps);
    for devices in 1..=3 {
        let moved = tally(&program, &Configuration::new(1, devices));
        assert!(moved.values().all(|tally| tally.moves > steps / 4), "{moved:?}");
        // Not what is as short as a row.
        let configuration = Configuration { grow_from: 100, ..Configuration::new(1, devices) };
        let grown = tally(&program, &configuration);
        for (memory, Tally { reserves, grows, moves, .. }) in grown {
            assert_eq!((reserves, moves), (1, 0), "{memory}");
            assert!((steps..=2 * (steps + 1)).contains(&grows), "{memory} grows {grows} times");
        }
    }
}

/// Where nothing can grow in place, and nobody looks ahead.
#[test]
fn what_grows_step_by_step_moves_a_few_times() {
    let moves = |program: &Program, devices| {
        let lookahead = Lookahead::None;
        let configuration = Configuration { lookahead, ..Configuration::new(1, devices) };
        let tallies = tally(program, &configuration);
        tallies.values().map(|tally| tally.moves).max().unwrap()
    };
    for devices in [1, 2] {
        // A history of so many rows.
        let [short, long] = [40, 160].map(|steps| moves(&corpus::rsim(9, steps), devices));
        assert!((5..20).contains(&short) && long <= short + 10, "{short} and {long} moves");
    }
    // From the middle of a field to its corners, and along its last dimension.
    let squares: Vec<_> = (1..=40).map(|n| [[40 - n, 40 - n], [2 * n, 2 * n]]).collect();
    let columns: Vec<_> = (1..=80).map(|n| [[0, 0], [80, n]]).collect();
    for boxes in [squares, columns] {
        let most = moves(&on_boxes_of([80, 80], AccessMode::ReadWrite, &boxes), 1);
        assert!((5..14).contains(&most), "{most} moves");
    }
    // Back and forth between two columns that never meet, nothing moves.
    let apart: Vec<_> = (0..40).map(|n| [[0, n % 2 * 70], [80, 3]]).collect();
    assert_eq!(moves(&on_boxes_of([80, 80], AccessMode::ReadWrite, &apart), 1), 0);
}

#[test]
fn what_lies_in_pieces_is_moved_out_and_what_lies_in_rows_comes_back() {
    let configuration = growing(Configuration::new(1, 1));
    let of = |boxes: &[[[usize; 2]; 2]]| {
        let mut tallies = tally(&on_boxes(boxes), &configuration);
        let tally = tallies.remove(&MemoryId::from_index(2)).unwrap();
        (tally.reserves, tally.grows, tally.allocs, tally.moves)
    };
    let (rows, row, columns) = ([[0, 0], [4, 8]], [[7, 2], [1, 3]], [[2, 1], [6, 2]]);
    assert_eq!(of(&[rows, row]), (1, 2, 0, 0), "two pieces of one reservation");
    assert_eq!(of(&[columns]), (0, 0, 1, 0));
    assert_eq!(of(&[[[0, 0], [12, 8]]]), (0, 0, 1, 0), "all of it need not grow");
    assert_eq!(of(&[rows, columns]), (1, 2, 0, 0), "together they lie in rows");
    assert_eq!(of(&[row, columns]), (1, 1, 1, 1), "together they lie in pieces");
    assert_eq!(of(&[columns, rows]), (1, 1, 1, 1), "columns are moved to where the rows are");
    assert_eq!(of(&[row, columns, row]), (1, 1, 1, 1), "what has been moved stays there");
}

#[test]
fn what_was_left_behind_is_still_there_unless_it_has_been_written() {
    let configuration = growing(Configuration::new(1, 1));
    let moves = |mode| {
        let mut program = ProgramBuilder::default();
        let field = program.initialized([12, 8]);
        // A row, a part of another, columns that take that part out, and rows around both.
        let parts = [([10, 0], [1, 8]), ([7, 2], [1, 3]), ([2, 1], [6, 2]), ([2, 0], [6, 8])];
        for ((offset, range), mode) in parts.into_iter().zip([Read, Read, mode, Read]) {
            let part = MapperSpec::Fixed(vec![Box3::from_offset_range(offset, range)]);
            let once = IndexSpace::new(1, Box3::from_range([1]));
            program.kernel("touch", once, &[(field, mode, part)]);
        }
        tally(&program.finish(), &configuration)[&MemoryId::from_index(2)].moves
    };
    // The part is taken out, and columns come back: around it, or with what was written of it.
    assert_eq!((moves(Read), moves(ReadWrite)), (3, 2));
}

#[test]
fn only_buffers_of_the_given_sizes_grow() {
    let program = on_boxes(&[[[0, 0], [4, 8]], [[2, 0], [4, 8]]]);
    for (grow_from, reserves) in [(0, 0), (12 * 8 * 8, 1), (12 * 8 * 8 + 1, 0)] {
        let configuration = Configuration { grow_from, ..Configuration::new(1, 1) };
        let tally = &tally(&program, &configuration)[&MemoryId::from_index(2)];
        assert_eq!((tally.reserves, tally.moves), (reserves, 1 - reserves), "from {grow_from}");
    }
}

#[test]
fn a_buffer_that_ends_gives_its_addresses_back() {
    let mut program = ProgramBuilder::default();
    let field = program.buffer([12, 8]);
    let half = IndexSpace::new(2, Box3::from_range([6, 8]));
    program.kernel("fill", half, &[(field, Write, MapperSpec::OneToOne)]);
    program.kernel("use", half, &[(field, ReadWrite, MapperSpec::OneToOne)]);
    program.drop_buffer(field);
    let other = program.buffer([4]);
    let all = IndexSpace::new(1, Box3::from_range([4]));
    program.kernel("other", all, &[(other, Write, MapperSpec::OneToOne)]);
    program.kernel("look", all, &[(other, Read, MapperSpec::OneToOne)]);
    let tally =
        &tally(&program.finish(), &growing(Configuration::new(1, 1)))[&MemoryId::from_index(2)];
    assert_eq!((tally.reserves, tally.frees), (1, 1));
}
