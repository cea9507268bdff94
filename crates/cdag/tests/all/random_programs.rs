//! Command graphs of whole clusters against the brute-force model: random programs and the corpus.

use celerity_testkit::check::{Configuration, any_configuration, check_cdag, check_corpus};
use celerity_testkit::forwards::Forwards;
use celerity_testkit::program::{Sizes, any_program};
use proptest::prelude::*;

proptest! {
    #[test]
    fn random_programs_keep_the_contract(
        program in any_program(Sizes::default().with_objects()),
        configuration in any_configuration(),
    ) {
        let verdict = check_cdag(&program, &configuration);
        prop_assert!(verdict.is_ok(), "{}", verdict.unwrap_err());
    }

    #[test]
    fn random_programs_with_collectives_keep_the_contract(
        program in any_program(Sizes::default().with_objects()),
        configuration in any_configuration(),
        more_nodes in 0..5usize,
    ) {
        let nodes = configuration.nodes + more_nodes;
        for forwards in [Forwards::Random, Forwards::Paper, Forwards::Auto] {
            let configuration = Configuration { nodes, forwards, ..configuration };
            let verdict = check_cdag(&program, &configuration);
            prop_assert!(verdict.is_ok(), "{}", verdict.unwrap_err());
        }
    }
}

#[test]
fn the_corpus_keeps_the_contract() {
    check_corpus(5, check_cdag);
}

#[test]
fn the_corpus_with_collectives_keeps_the_contract() {
    for forwards in [Forwards::Paper, Forwards::Always] {
        check_corpus(5, |program, configuration| {
            check_cdag(program, &Configuration { forwards, ..*configuration })
        });
    }
}
