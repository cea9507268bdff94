//! Every row of the original's figures has a twin among our cases.

use std::collections::BTreeSet;

use celerity_benches::dependency_cases::DependencyCase;
use celerity_benches::graph_cases::Case;
use celerity_benches::region_cases::RegionCase;

const REFERENCE: &str = include_str!("../reference/celerity-cpp-baseline.csv");

fn ours() -> BTreeSet<(String, String)> {
    let name = |group: &str, function: &str| (group.to_owned(), function.to_owned());
    let mut names = BTreeSet::new();
    names.extend(Case::all().iter().map(|case| name(&case.group, case.function)));
    names.extend(DependencyCase::all().iter().map(|case| name(&case.group, case.function)));
    names.extend(RegionCase::all().iter().map(|case| name(&case.group, &case.function)));
    names
}

/// The first two fields of a line; the second may be in quotes.
fn test_case_and_benchmark(line: &str) -> (String, String) {
    let (test_case, rest) = line.split_once(',').expect("two fields at least");
    // Only one group has a comma in its name, and is in quotes then.
    let (test_case, rest) = match test_case.strip_prefix('"') {
        Some(_) => line[1..].split_once("\",").expect("a closing quote"),
        None => (test_case, rest),
    };
    let benchmark = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => rest.split(',').next(),
    };
    (test_case.to_owned(), benchmark.expect("a field").to_owned())
}

#[test]
fn every_reference_has_a_twin() {
    let ours = ours();
    let missing: Vec<_> = REFERENCE
        .lines()
        .skip(1)
        .map(test_case_and_benchmark)
        .filter(|name| !ours.contains(name))
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}
