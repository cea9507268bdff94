//! The simulator: lawful runs pass it, and a seed is a run.

use std::collections::HashSet;

use celerity_testkit::check::Configuration;
use celerity_testkit::corpus;
use celerity_testkit::sim::{Scenario, Simulation, simulate};

#[test]
fn random_programs_pass() {
    let (mut with_faults, mut configurations) = (0, HashSet::new());
    for seed in 0..1000 {
        let scenario = Scenario::new(seed);
        match scenario.simulate() {
            Ok(report) => with_faults += usize::from(report.error.is_some()),
            Err(failure) => panic!("{failure}"),
        }
        configurations.insert((scenario.configuration.nodes, scenario.configuration.devices));
    }
    assert!((50..350).contains(&with_faults), "{with_faults} of 1000 runs had faults");
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
