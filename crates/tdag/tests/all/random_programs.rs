//! Task graphs against the brute-force model: random programs and the corpus.

use celerity_testkit::check::{Configuration, any_configuration, check_corpus, check_tdag};
use celerity_testkit::forwards::Forwards;
use celerity_testkit::program::{Sizes, any_program};
use proptest::prelude::*;

proptest! {
    #[test]
    fn random_programs_keep_the_contract(
        program in any_program(Sizes::default().with_objects()),
        configuration in any_configuration(),
    ) {
        let verdict = check_tdag(&program, &configuration);
        prop_assert!(verdict.is_ok(), "{}", verdict.unwrap_err());
    }

    #[test]
    fn random_programs_with_forwards_keep_the_contract(
        program in any_program(Sizes::default()),
        configuration in any_configuration(),
    ) {
        for forwards in [Forwards::Random, Forwards::Paper, Forwards::Auto] {
            let configuration = Configuration { forwards, ..configuration };
            let verdict = check_tdag(&program, &configuration);
            prop_assert!(verdict.is_ok(), "{}", verdict.unwrap_err());
        }
    }
}

#[test]
fn the_corpus_keeps_the_contract() {
    check_corpus(5, check_tdag);
}
