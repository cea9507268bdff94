//! Command graphs of whole clusters against the brute-force model: random programs and the corpus.

use celerity_testkit::check::{Configuration, any_configuration, check_cdag};
use celerity_testkit::corpus;
use celerity_testkit::program::{Sizes, any_program};
use proptest::prelude::*;

proptest! {
    #[test]
    fn random_programs_keep_the_contract(
        program in any_program(Sizes::default()),
        configuration in any_configuration(),
    ) {
        let verdict = check_cdag(&program, &configuration);
        prop_assert!(verdict.is_ok(), "{}", verdict.unwrap_err());
    }
}

#[test]
fn the_corpus_keeps_the_contract() {
    for (name, program) in corpus::all(5) {
        for nodes in 1..=4 {
            for devices in 1..=3 {
                let configuration = Configuration::new(nodes, devices);
                if let Err(failure) = check_cdag(&program, &configuration) {
                    panic!("{name}: {failure}");
                }
            }
        }
    }
}
