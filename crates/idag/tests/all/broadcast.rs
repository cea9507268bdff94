//! What several devices of a node read alike: linked devices pass it on to each other, so that there
//! are fewer copies, and no memory is the source of all. (That random programs hold with it, with any
//! links and any idea of a share, is among what `random_programs.rs` shows.)

use std::collections::BTreeMap;

use celerity_idag::{InstructionKind, MemoryId};
use celerity_regions::Box3;
use celerity_tdag::AccessMode::{Read, Write};
use celerity_tdag::{BufferId, IndexSpace};
use celerity_testkit::check::{Configuration, check_idag, check_schedule};
use celerity_testkit::copies::Copies;
use celerity_testkit::corpus;
use celerity_testkit::program::{MapperSpec, Op, Program, ProgramBuilder, TaskKind};
use celerity_testkit::trace::InstructionTrace;

/// Copies of one step in the steady state, all nodes together.
fn of_step(program: fn(usize) -> Program, configuration: &Configuration) -> [(u64, u64); 3] {
    let of_steps = |steps| {
        let mut program = program(steps);
        program.ops.retain(|op| !matches!(op, Op::Task(task) if task.kind == TaskKind::Fence));
        let nodes = InstructionTrace::of_program(&program, configuration).unwrap();
        nodes.iter().map(|node| Copies::among(&node.instructions)).fold([(0, 0); 3], |sum, one| {
            let kinds = [one.to_host, one.from_host, one.between_devices];
            [0, 1, 2].map(|at| (sum[at].0 + kinds[at].count, sum[at].1 + kinds[at].bytes))
        })
    };
    let (shorter, longer) = (of_steps(4), of_steps(5));
    [0, 1, 2].map(|at| (longer[at].0 - shorter[at].0, longer[at].1 - shorter[at].1))
}

fn nbody(steps: usize) -> Program {
    corpus::nbody(120, steps)
}

/// Bytes of all positions.
const POSITIONS: u64 = 120 * 8;

/// Links between devices of the same group of so many, and no others.
fn islands(size: u64, devices: u64) -> u64 {
    let pairs = (0..devices).flat_map(|from| (0..devices).map(move |to| (from, to)));
    let linked = pairs.filter(|(from, to)| from / size == to / size);
    linked.fold(0, |links, (from, to)| links | 1 << (5 * from + to))
}

#[test]
fn an_all_gather_takes_as_many_rounds_as_devices_double() {
    for (devices, copies) in [(1, 0), (2, 2), (3, 5), (4, 8), (5, 12), (6, 16), (8, 24)] {
        let [to_host, from_host, between] = of_step(nbody, &Configuration::new(1, devices));
        assert_eq!((to_host, from_host), ((0, 0), (0, 0)), "{devices} devices");
        assert_eq!(between, (copies, POSITIONS * (devices as u64 - 1)), "{devices} devices");
    }
}

#[test]
fn what_arrives_is_copied_once_in_shares() {
    let configuration = Configuration::new(2, 4);
    let arrives = POSITIONS / 2;
    let [_, from_host, between] = of_step(nbody, &configuration);
    assert_eq!(from_host, (8, 2 * 4 * arrives));
    assert_eq!(between, (16, 2 * 3 * POSITIONS / 2));
    // A share of 120 bytes is enough.
    let shared = Configuration { share_from: arrives / 4, ..configuration };
    let [_, from_host, between] = of_step(nbody, &shared);
    assert_eq!(from_host, (8, 2 * arrives), "a share for each device");
    assert_eq!(between, (32, 2 * 3 * POSITIONS));
    let above = Configuration { share_from: arrives / 4 + 1, ..configuration };
    assert_eq!(of_step(nbody, &above), of_step(nbody, &configuration));
}

/// Between groups of devices that are not linked, everything goes to the host once, and from there to
/// each device, or a share of it.
#[test]
fn linked_devices_share_what_the_others_have_written() {
    let links = islands(2, 4);
    let apart = Configuration { links, ..Configuration::new(1, 4) };
    let quarter = POSITIONS / 4;
    assert_eq!(of_step(nbody, &apart), [(4, 4 * quarter), (8, 8 * quarter), (4, 4 * quarter)]);
    let shared = Configuration { share_from: 1, ..apart };
    let [to_host, from_host, between] = of_step(nbody, &shared);
    assert_eq!((to_host, from_host), ((4, 4 * quarter), (4, 4 * quarter)));
    assert_eq!(between.1, 8 * quarter);
    for configuration in [apart, shared] {
        for check in [check_idag, check_schedule] {
            let verdict = check(&nbody(3), &configuration);
            assert!(verdict.is_ok(), "{}", verdict.unwrap_err());
        }
    }
}

/// One device writes, all devices read.
fn from_one(_: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let [all, sums] = [program.buffer([64]), program.buffer([64])];
    let space = |items| IndexSpace::new(1, Box3::from_range([items]));
    program.kernel("fill", space(1), &[(all, Write, MapperSpec::All)]);
    let accesses = [(all, Read, MapperSpec::All), (sums, Write, MapperSpec::OneToOne)];
    program.kernel("sum", space(64), &accesses);
    program.finish()
}

#[test]
fn what_one_device_has_written_goes_down_a_tree() {
    let (all, devices) = (BufferId::from_index(0), 8);
    let nodes = InstructionTrace::of_program(&from_one(1), &Configuration::new(1, devices));
    let mut served = BTreeMap::<MemoryId, usize>::new();
    for instruction in &nodes.unwrap()[0].instructions {
        let InstructionKind::Copy { buffer, source, target, .. } = &instruction.kind else {
            continue;
        };
        if *buffer == all && target.memory.device().is_some() {
            *served.entry(source.memory).or_default() += 1;
        }
    }
    assert_eq!(served.values().sum::<usize>(), devices - 1);
    assert_eq!(served.values().max(), Some(&3), "the source itself serves three: {served:?}");
}

/// Chunks of a device that has several are on their way while the next one is computed: no copy
/// waits for two of them.
#[test]
fn copies_wait_for_no_later_chunk() {
    let mut program = ProgramBuilder::default();
    let [from, to] = [program.buffer([64]), program.buffer([64])];
    let once = IndexSpace::new(1, Box3::from_range([64]));
    let space = IndexSpace { oversubscription: 2, ..once };
    program.kernel("fill", space, &[(from, Write, MapperSpec::OneToOne)]);
    let accesses = [(from, Read, MapperSpec::All), (to, Write, MapperSpec::OneToOne)];
    program.kernel("gather", once, &accesses);
    let nodes = InstructionTrace::of_program(&program.finish(), &Configuration::new(1, 4));
    let between = Copies::among(&nodes.unwrap()[0].instructions).between_devices;
    assert_eq!((between.count, between.bytes), (24, 3 * 64 * 8));
}

#[test]
fn the_corpus_keeps_the_contract() {
    for (name, program) in corpus::all(3) {
        for (nodes, devices, share_from) in [(1, 3, 0), (1, 8, 1), (2, 4, 1), (3, 5, 9)] {
            let configuration = Configuration { share_from, ..Configuration::new(nodes, devices) };
            for check in [check_idag, check_schedule] {
                let verdict = check(&program, &configuration);
                assert!(verdict.is_ok(), "{name}: {}", verdict.unwrap_err());
            }
        }
    }
}
