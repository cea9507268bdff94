//! Whole programs on in-process clusters against the sequential twin: random
//! programs and the corpus, on 1 to 4 nodes of 1 to 3 devices. Kernels hash all
//! that they read, so a single stale element changes the result.

use celerity_idag::DeviceMemory;
use celerity_testkit::check::{Configuration, any_configuration, check_corpus, check_run};
use celerity_testkit::corpus;
use celerity_testkit::program::{Sizes, any_program};
use proptest::prelude::*;

proptest! {
    #[test]
    fn random_programs_compute_what_the_twin_computes(
        program in any_program(Sizes::default().with_objects()),
        configuration in any_configuration(),
    ) {
        let verdict = check_run(&program, &configuration);
        prop_assert!(verdict.is_ok(), "{}", verdict.unwrap_err());
    }
}

#[test]
fn what_tables_name_is_what_the_twin_reads() {
    for (nodes, devices) in [(1, 2), (2, 1), (2, 2), (3, 1), (4, 2)] {
        for device_memory in [DeviceMemory::Host, DeviceMemory::Own] {
            let configuration =
                Configuration { device_memory, ..Configuration::new(nodes, devices) };
            // Of each node, 17 runs are read by all others.
            for (run, apart) in [(1, 1), (2, 3)] {
                let elements = 17 * nodes * (run + apart);
                check_run(&corpus::table(elements, run, apart, 3), &configuration).unwrap();
            }
        }
    }
}

#[test]
fn the_corpus_computes_what_the_twin_computes() {
    check_corpus(8, check_run);
}
