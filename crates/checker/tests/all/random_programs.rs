//! Graphs of whole clusters against the checker: random programs and the
//! corpus, on up to 8 nodes of up to 4 devices.

use celerity_testkit::check::{Configuration, check_corpus, check_schedule};
use celerity_testkit::program::{Sizes, any_program};
use proptest::prelude::*;

fn any_cluster() -> impl Strategy<Value = Configuration> {
    (1..9usize, 1..5usize, 1..6u64, 2..10u64).prop_map(
        |(nodes, devices, horizon_step, horizon_max_parallelism)| Configuration {
            horizon_step,
            horizon_max_parallelism,
            ..Configuration::new(nodes, devices)
        },
    )
}

proptest! {
    #[test]
    fn random_programs_keep_every_rule(
        program in any_program(Sizes::default().with_objects()),
        configuration in any_cluster(),
    ) {
        let verdict = check_schedule(&program, &configuration);
        prop_assert!(verdict.is_ok(), "{}", verdict.unwrap_err());
    }
}

#[test]
fn the_corpus_keeps_every_rule() {
    check_corpus(9, check_schedule);
}
