//! The simulator: lawful runs pass it, and a seed is a run.

use std::collections::HashSet;

use celerity_idag::{DeviceMemory, Lookahead};
use celerity_regions::Box3;
use celerity_tdag::AccessMode::{Read, ReadWrite};
use celerity_tdag::IndexSpace;
use celerity_testkit::check::Configuration;
use celerity_testkit::corpus;
use celerity_testkit::program::{MapperSpec, Program, ProgramBuilder};
use celerity_testkit::sim::{Scenario, Simulation, SlowNode, simulate};

#[test]
fn random_programs_pass() {
    let (mut with_faults, mut computing, mut configurations) = (0, 0, HashSet::new());
    for seed in 0..1000 {
        let scenario = Scenario::new(seed);
        match scenario.simulate() {
            Ok(report) => {
                with_faults += usize::from(report.error.is_some());
                computing += usize::from(report.computed > 0);
            }
            Err(failure) => panic!("{failure}"),
        }
        configurations.insert((scenario.configuration.nodes, scenario.configuration.devices));
    }
    assert!((50..350).contains(&with_faults), "{with_faults} of 1000 runs had faults");
    let some = "some nodes have run kernels on the threads that poll them";
    assert!((150..350).contains(&computing), "in {computing} of 1000 runs {some}");
    assert_eq!(configurations.len(), 32, "all of 1-8 nodes × 1-4 devices");
}

#[test]
fn the_corpus_passes() {
    for (name, program) in corpus::all(4) {
        for (seed, (nodes, devices)) in (0..).zip([(1, 3), (2, 1), (3, 2), (5, 1), (8, 4)]) {
            let configuration = Configuration::new(nodes, devices);
            if let Err(failure) = simulate(&program, &configuration, seed) {
                panic!("{name}: {failure}");
            }
        }
    }
}

#[test]
fn bundles_arrive_whatever_comes_first() {
    for seed in 0..60 {
        let (nodes, devices) = [(2, 1), (2, 2), (3, 1), (4, 2)][seed as usize % 4];
        let device_memory = [DeviceMemory::Host, DeviceMemory::Own][seed as usize / 4 % 2];
        let configuration = Configuration { device_memory, ..Configuration::new(nodes, devices) };
        if let Err(failure) = simulate(&corpus::table(160, 1, 1, 2), &configuration, seed) {
            panic!("{failure}");
        }
    }
}

#[test]
fn a_seed_is_a_run() {
    for seed in 0..40 {
        let scenario = Scenario::new(seed);
        let run =
            || Simulation::new(&scenario.program, &scenario.configuration, seed).with_log().run();
        let (once, again) = (run().unwrap(), run().unwrap());
        assert_eq!(once, again, "seed {seed}");
        assert_eq!(once.events, once.log.len() as u64);
        let in_order = once.log.is_sorted_by_key(|entry| entry.at);
        assert!(in_order, "seed {seed}: time goes back");
        // Without the log the run is the same, and so is its hash.
        assert_eq!(scenario.simulate().unwrap().hash, once.hash);
    }
}

#[test]
fn seeds_differ_in_what_happens_when() {
    let (program, configuration) = (corpus::wave_sim([9, 5], 3), Configuration::new(3, 2));
    let hashes = (0..50).map(|seed| simulate(&program, &configuration, seed).unwrap().hash);
    assert_eq!(hashes.collect::<HashSet<_>>().len(), 50);
}

/// In each step the first node changes an element that all nodes read. It needs nothing
/// from any other node.
fn one_way(items: usize, steps: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let (from, to) = (program.initialized([items]), program.initialized([items]));
    let space = IndexSpace::new(1, Box3::from_range([items]));
    let first = MapperSpec::Fixed(vec![Box3::from_range([1])]);
    for _ in 0..steps {
        program.kernel("change", space, &[(from, ReadWrite, MapperSpec::OneToOne)]);
        let accesses = [(from, Read, first.clone()), (to, ReadWrite, MapperSpec::OneToOne)];
        program.kernel("read", space, &accesses);
    }
    program.finish()
}

/// The most payloads that wait anywhere, if the last of some nodes is slow.
fn most_waiting(nodes: usize, steps: usize, lead: u64, run_ahead: u64) -> usize {
    let (program, lookahead) = (one_way(3 * nodes, steps), Lookahead::None);
    let configuration = Configuration { lookahead, ..Configuration::new(nodes, 1) };
    let slow = SlowNode { node: nodes - 1, lead, run_ahead };
    let simulation = Simulation::new(&program, &configuration, 7).with_slow_node(slow);
    simulation.run().unwrap_or_else(|failure| panic!("{failure}")).most_waiting
}

#[test]
fn what_waits_at_a_slow_node_has_a_bound() {
    for (nodes, lead, run_ahead) in [(2, 0, 1), (2, 4, 2), (3, 16, 16), (5, 1, 8)] {
        // The slow node is in one interval, and the others are at most so many later: of
        // two tasks, one brings a payload, and an interval has as many tasks as a horizon
        // waits for.
        let step = usize::try_from(Configuration::new(1, 1).horizon_step).unwrap();
        let bound = usize::try_from(lead + run_ahead + 1).unwrap() * step.div_ceil(2);
        for steps in [100, 300] {
            let most = most_waiting(nodes, steps, lead, run_ahead);
            assert!(most <= bound, "{most} of {steps} payloads wait, and {bound} may");
        }
        let without = most_waiting(nodes, 300, u64::MAX / 2, run_ahead);
        assert!(without > 2 * bound, "{without} wait without credit: the test shows nothing");
    }
}

#[test]
fn a_slow_node_ends_as_all_others_do() {
    for (nodes, lead, run_ahead) in [(1, 0, 1), (2, 0, 1), (4, 2, 1), (8, 3, 5)] {
        for (name, program) in corpus::all(5) {
            let configuration = Configuration::new(nodes, 2);
            let slow = SlowNode { node: nodes / 2, lead, run_ahead };
            let simulation = Simulation::new(&program, &configuration, 3).with_slow_node(slow);
            assert!(simulation.run().is_ok_and(|report| report.error.is_none()), "{name}");
        }
    }
}
