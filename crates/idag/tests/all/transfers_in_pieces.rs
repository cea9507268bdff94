//! What is large and goes to other nodes through host memory goes in pieces: each is copied, sent,
//! received and copied by itself. (That random programs hold with pieces of any size is among what
//! `random_programs.rs` shows.)

use celerity_idag::{Instruction, InstructionKind};
use celerity_regions::{Box3, Region};
use celerity_testkit::check::{Configuration, check_idag, check_schedule};
use celerity_testkit::copies::Copies;
use celerity_testkit::corpus;
use celerity_testkit::program::{Op, Program, TaskKind};
use celerity_testkit::trace::InstructionTrace;

/// 64 bodies of 8 bytes on each node: 512 bytes.
fn nbody() -> Program {
    let mut program = corpus::nbody(128, 2);
    program.ops.retain(|op| !matches!(op, Op::Task(task) if task.kind == TaskKind::Fence));
    program
}

fn in_pieces_of(piece: u64) -> Configuration {
    Configuration { piece, ..Configuration::new(2, 1) }
}

fn of_all(configuration: &Configuration) -> Vec<Vec<Instruction>> {
    let nodes = InstructionTrace::of_program(&nbody(), configuration).unwrap();
    nodes.into_iter().map(|node| node.instructions).collect()
}

fn sent(instructions: &[Instruction]) -> Vec<Box3> {
    let elements = |one: &Instruction| match &one.kind {
        InstructionKind::Send { region, .. } => Some(region.bounding_box()),
        _ => None,
    };
    instructions.iter().filter_map(elements).collect()
}

fn awaited(instructions: &[Instruction]) -> Vec<Region> {
    let region = |one: &Instruction| match &one.kind {
        InstructionKind::AwaitReceive { region, .. } => Some(region.clone()),
        _ => None,
    };
    instructions.iter().filter_map(region).collect()
}

#[test]
fn both_ends_cut_alike() {
    let nodes = of_all(&in_pieces_of(100));
    for (from, to) in [(0, 1), (1, 0)] {
        // Eight elements to a piece.
        let pieces: Vec<_> =
            (0..8).map(|nth| Box3::from_offset_range([from * 64 + nth * 8], [8])).collect();
        let (sent, awaited) = (sent(&nodes[from]), awaited(&nodes[to]));
        assert_eq!(sent, pieces);
        assert!(awaited.iter().map(Region::boxes).eq(pieces.iter().map(std::slice::from_ref)));
        let copies = Copies::among(&nodes[from]);
        let [out, back] = [copies.to_host, copies.from_host].map(|one| (one.count, one.bytes));
        // All positions and the node's velocities come from the user.
        assert_eq!((out, back), ((8, 512), (8 + 2, 512 + 1024 + 512)), "N{from}");
    }
}

/// A piece leaves as soon as it is on the host.
#[test]
fn no_piece_waits_for_another() {
    for instructions in of_all(&in_pieces_of(100)) {
        for send in &instructions {
            let InstructionKind::Send { region: leaving, .. } = &send.kind else { continue };
            let [copy] = send.dependencies[..] else { panic!("{:?}", send.dependencies) };
            let copy = &instructions[usize::try_from(copy.index()).unwrap()];
            let copied = match &copy.kind {
                InstructionKind::Copy { region, .. } => region,
                other => panic!("{other:?}"),
            };
            assert_eq!(copied, leaving);
        }
    }
}

#[test]
fn what_is_no_larger_than_a_piece_goes_as_before() {
    let text = |piece| format!("{:?}", of_all(&in_pieces_of(piece)));
    assert_eq!(text(512), text(0));
    assert_ne!(text(511), text(0));
}

/// What stops in a dense stage is not cut into more stages.
#[test]
fn short_rows_are_not_cut() {
    let text = |linearize_below| {
        let of = |piece| of_all(&Configuration { linearize_below, ..in_pieces_of(piece) });
        (format!("{:?}", of(8)), format!("{:?}", of(0)))
    };
    let (cut, whole) = text(513);
    assert_eq!(cut, whole);
    let (cut, whole) = text(512);
    assert_ne!(cut, whole);
}

#[test]
fn the_corpus_keeps_the_contract() {
    for (name, program) in corpus::all(3) {
        for (nodes, devices, piece, share_from) in [(2, 1, 8, 0), (2, 3, 16, 1), (4, 2, 24, 0)] {
            let cluster = Configuration::new(nodes, devices);
            let configuration = Configuration { piece, share_from, ..cluster };
            for check in [check_idag, check_schedule] {
                let verdict = check(&program, &configuration);
                assert!(verdict.is_ok(), "{name}: {}", verdict.unwrap_err());
            }
        }
    }
}
