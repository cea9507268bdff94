//! What several nodes want of a node is copied to its host memory once, whoever asks first and
//! whatever their parts have in common; and how a node cuts its own work is nobody else's business.

use std::collections::BTreeMap;

use celerity_idag::{Instruction, InstructionKind, MemoryId};
use celerity_regions::{Box3, Region};
use celerity_tdag::AccessMode::{Read, Write};
use celerity_tdag::{IndexSpace, NeighborhoodShape};
use celerity_testkit::check::Configuration;
use celerity_testkit::corpus;
use celerity_testkit::program::{MapperSpec, Op, Program, ProgramBuilder, TaskKind, TaskOp};
use celerity_testkit::trace::InstructionTrace;

/// One node's instructions, without the fences at the end, which copy to the host, too.
fn instructions(mut program: Program, nodes: usize, node: usize) -> Vec<Instruction> {
    program.ops.retain(|op| !matches!(op, Op::Task(task) if task.kind == TaskKind::Fence));
    let configuration = Configuration::new(nodes, 2);
    InstructionTrace::of_program(&program, &configuration).unwrap().remove(node).instructions
}

/// Elements copied from devices to the host, and elements sent.
fn to_host_and_sent(instructions: &[Instruction]) -> (u64, u64) {
    let (mut to_host, mut sent) = (0, 0);
    for instruction in instructions {
        match &instruction.kind {
            InstructionKind::Copy { target, region, .. } if target.memory == MemoryId::HOST => {
                to_host += region.volume();
            }
            InstructionKind::Send { region, .. } => sent += region.volume(),
            _ => {}
        }
    }
    (to_host, sent)
}

#[test]
fn an_all_gather_copies_every_part_to_the_host_once() {
    let (bodies, steps, nodes) = (64, 5, 4);
    for node in 0..nodes {
        let (to_host, sent) =
            to_host_and_sent(&instructions(corpus::nbody(bodies, steps), nodes, node));
        // The first step reads initial contents, which every node has.
        let own = (bodies / nodes * (steps - 1)) as u64;
        assert_eq!((to_host, sent), (own, own * (nodes as u64 - 1)), "N{node}");
    }
}

/// The targets' parts overlap without being the same.
#[test]
fn parts_that_overlap_are_copied_to_the_host_once() {
    let (size, nodes) = (16, 4);
    let mut program = ProgramBuilder::default();
    let [field, result] = [program.buffer([size]), program.buffer([size])];
    let space = IndexSpace::new(1, Box3::from_range([size]));
    program.kernel("fill", space, &[(field, Write, MapperSpec::OneToOne)]);
    // Reaches over the next node's chunk of 4 into the one after.
    let far = MapperSpec::Neighborhood { border: [6, 0, 0], shape: NeighborhoodShape::AlongAxes };
    program.kernel("look", space, &[(field, Read, far), (result, Write, MapperSpec::OneToOne)]);
    let (to_host, sent) = to_host_and_sent(&instructions(program.finish(), nodes, 0));
    // `N1` and `N2` read all or half of what `N0` has.
    assert_eq!((to_host, sent), (4, 4 + 2));
}

/// The borders of a tile overlap in a corner; the host has memory for the borders only, and sends
/// each of them in one message, or two if two devices have written it.
#[test]
fn borders_of_a_tile_are_packed_one_by_one() {
    let side = 8;
    let made = instructions(corpus::wave_sim([2 * side, 2 * side], 6), 4, 0);
    let on_host = made.iter().filter_map(|one| match one.kind {
        InstructionKind::Alloc { memory: MemoryId::HOST, bytes, .. } => Some(bytes),
        _ => None,
    });
    // Two buffers, two borders that go and two that come.
    assert_eq!(on_host.sum::<u64>(), 2 * (2 + 2) * 8 * side as u64);
    let (to_host, sent) = to_host_and_sent(&made);
    assert_eq!(to_host, sent);
}

/// What every node announces to every other one: for each transfer, all of its elements.
fn announced(program: &Program) -> Vec<BTreeMap<String, Region>> {
    let nodes = InstructionTrace::of_program(program, &Configuration::new(4, 2)).unwrap();
    let of_node = |node: InstructionTrace| {
        let mut regions = BTreeMap::<String, Region>::new();
        for pilot in node.pilots {
            let what = format!("{:?} to {}", pilot.transfer, pilot.to);
            regions.entry(what).or_default().union_with(&pilot.region);
        }
        regions
    };
    nodes.into_iter().map(of_node).collect()
}

#[test]
fn oversubscription_is_not_seen_from_outside() {
    for (name, program) in corpus::all(4) {
        let mut finer = program.clone();
        for op in &mut finer.ops {
            if let Op::Task(TaskOp { kind: TaskKind::Device(space), .. }) = op {
                space.oversubscription = 3;
            }
        }
        assert_eq!(announced(&finer), announced(&program), "{name}");
    }
}
