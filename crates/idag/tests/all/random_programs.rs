//! Instruction graphs of whole clusters against the brute-force model: random programs and the corpus.

use celerity_regions::Box3;
use celerity_tdag::AccessMode::{Read, Write};
use celerity_tdag::IndexSpace;
use celerity_testkit::check::{Configuration, any_configuration, check_corpus, check_idag};
use celerity_testkit::forwards::Forwards;
use celerity_testkit::program::{MapperSpec, ProgramBuilder, Sizes, any_program};
use proptest::prelude::*;

proptest! {
    #[test]
    fn random_programs_keep_the_contract(
        program in any_program(Sizes::default().with_objects()),
        configuration in any_configuration(),
    ) {
        let verdict = check_idag(&program, &configuration);
        prop_assert!(verdict.is_ok(), "{}", verdict.unwrap_err());
    }

    #[test]
    fn random_programs_with_collectives_keep_the_contract(
        program in any_program(Sizes::default().with_objects()),
        configuration in any_configuration(),
        more_nodes in 0..3usize,
    ) {
        let nodes = configuration.nodes + more_nodes;
        let configuration = Configuration { nodes, forwards: Forwards::Random, ..configuration };
        let verdict = check_idag(&program, &configuration);
        prop_assert!(verdict.is_ok(), "{}", verdict.unwrap_err());
    }
}

#[test]
fn the_corpus_keeps_the_contract() {
    check_corpus(5, check_idag);
}

/// A host task reads two parts that touch no common element, and data for both
/// arrives as one piece: the memory for all of this is allocated at once.
#[test]
fn accesses_and_arrivals_share_one_allocation() {
    let mut program = ProgramBuilder::default();
    let buffer = program.buffer([4, 2]);
    let space = IndexSpace::new(2, Box3::from_range([4, 2]));
    program.kernel("fill", space, &[(buffer, Write, MapperSpec::OneToOne)]);
    let column = MapperSpec::Fixed(vec![Box3::from_offset_range([1, 0], [3, 1])]);
    let element = MapperSpec::Fixed(vec![Box3::from_offset_range([2, 1], [1, 1])]);
    program.host_once("use", &[(buffer, Read, column), (buffer, Read, element)]);
    if let Err(failure) = check_idag(&program.finish(), &Configuration::new(2, 1)) {
        panic!("{failure}");
    }
}
