//! Networks that reach devices' memories: what leaves from a device and arrives there does not touch
//! the host; everything else goes as it does without them.

use celerity_idag::{Instruction, InstructionKind, MemoryId};
use celerity_testkit::check::{Configuration, check_corpus, check_idag, check_schedule};
use celerity_testkit::corpus;
use celerity_testkit::program::{Op, Program, TaskKind};
use celerity_testkit::trace::InstructionTrace;

/// Where the payloads of a node lie.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    sends: [usize; 2],
    receives: [usize; 2],
    /// Copies to or from the host.
    staged: usize,
}

fn of_all(mut program: Program, configuration: &Configuration) -> Vec<InstructionTrace> {
    program.ops.retain(|op| !matches!(op, Op::Task(task) if task.kind == TaskKind::Fence));
    InstructionTrace::of_program(&program, configuration).unwrap()
}

fn tally(instructions: &[Instruction]) -> Tally {
    let mut tally = Tally::default();
    let slot = |memory: MemoryId| usize::from(memory.device().is_some());
    for instruction in instructions {
        match &instruction.kind {
            InstructionKind::Send { source, .. } => tally.sends[slot(source.memory)] += 1,
            InstructionKind::Receive(inbound) | InstructionKind::SplitReceive(inbound) => {
                tally.receives[slot(inbound.target.memory)] += 1;
            }
            InstructionKind::Copy { source, target, .. } => {
                tally.staged +=
                    usize::from([source, target].iter().any(|it| it.memory == MemoryId::HOST));
            }
            _ => {}
        }
    }
    tally
}

fn wired(nodes: usize, devices: usize) -> Configuration {
    Configuration { wires_from: 1, ..Configuration::new(nodes, devices) }
}

#[test]
fn borders_go_from_device_to_device() {
    let steps = 6;
    for trace in of_all(corpus::wave_sim([16, 16], steps), &wired(2, 1)) {
        let tally = tally(&trace.instructions);
        assert_eq!((tally.sends[0], tally.receives[0], tally.staged), (0, 0, 0), "{tally:?}");
        assert!(tally.sends[1] >= steps - 1 && tally.receives[1] >= steps - 1, "{tally:?}");
        assert!(trace.pilots.iter().all(|pilot| pilot.from_device), "{:?}", trace.pilots);
    }
}

#[test]
fn what_several_devices_read_arrives_on_the_host() {
    for trace in of_all(corpus::nbody(64, 4), &wired(2, 2)) {
        let tally = tally(&trace.instructions);
        assert_eq!((tally.sends[0], tally.receives[1]), (0, 0), "{tally:?}");
        assert!(tally.sends[1] > 0 && tally.receives[0] > 0, "{tally:?}");
    }
}

/// A row of 16 elements of 8 bytes.
#[test]
fn little_goes_through_the_host() {
    for (least, on_devices) in [(16 * 8, true), (16 * 8 + 1, false)] {
        let configuration = Configuration { wires_from: least, ..wired(2, 1) };
        for trace in of_all(corpus::wave_sim([16, 16], 4), &configuration) {
            let tally = tally(&trace.instructions);
            assert_eq!(tally.sends[1] > 0, on_devices, "{least}: {tally:?}");
            assert_eq!(tally.receives[1] > 0, on_devices, "{least}: {tally:?}");
        }
    }
}

/// Who cannot be told apart from a node out of reach gets its data on the host.
#[test]
fn nodes_out_of_reach_are_sent_to_from_the_host() {
    // `N0` and `N1`, but neither of them and `N2`.
    let configuration = Configuration { wired: 1 << 1, ..wired(3, 1) };
    for trace in of_all(corpus::wave_sim([18, 18], 4), &configuration) {
        let of_device = trace.pilots.iter().filter(|pilot| pilot.from_device);
        let reached = of_device.map(|pilot| (trace.node.index(), pilot.to.index()));
        assert!(reached.clone().all(|pair| pair == (0, 1) || pair == (1, 0)), "{:?}", trace.pilots);
        assert_eq!(reached.count() > 0, trace.node.index() < 2);
        assert_eq!(tally(&trace.instructions).receives[1], 0, "{}", trace.node);
    }
}

/// What a transposition sends of a square has rows of half its side: 8 elements of 8 bytes.
#[test]
fn short_rows_go_through_the_host() {
    for (linearize_below, on_devices) in [(8 * 8, true), (8 * 8 + 1, false)] {
        let configuration = Configuration { linearize_below, ..wired(2, 1) };
        for trace in of_all(corpus::transpose(16, 3), &configuration) {
            let tally = tally(&trace.instructions);
            assert_eq!(tally.sends[1] > 0, on_devices, "{linearize_below}: {tally:?}");
            assert_eq!(tally.sends[0] > 0, !on_devices, "{linearize_below}: {tally:?}");
        }
    }
}

#[test]
fn a_network_that_reaches_nobody_changes_nothing() {
    for (name, program) in corpus::all(3) {
        let without = of_all(program.clone(), &Configuration::new(3, 2));
        let nobody = of_all(program, &Configuration { wired: 0, ..wired(3, 2) });
        for (without, nobody) in without.iter().zip(&nobody) {
            assert_eq!(
                format!("{:?}", without.instructions),
                format!("{:?}", nobody.instructions),
                "{name}"
            );
        }
    }
}

#[test]
fn the_corpus_keeps_the_contract() {
    let wire = |configuration: &Configuration| Configuration { wires_from: 1, ..*configuration };
    check_corpus(4, |program, configuration| check_idag(program, &wire(configuration)));
    check_corpus(4, |program, configuration| check_schedule(program, &wire(configuration)));
}
