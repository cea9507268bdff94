//! Reductions whose last step reads other partial results than nodes have left.

use celerity_checker::Violation;
use celerity_regions::{Box3, Region};
use celerity_tdag::{IndexSpace, Split};
use celerity_testkit::reduction::ReductionCase;

/// On one to four nodes, as bands and as tiles. The second has several ranges of tiles on a node.
fn reductions() -> impl Iterator<Item = ReductionCase> {
    let line = IndexSpace::new(1, Box3::from_range([50_000]));
    let plane =
        IndexSpace { split: Split::Tiled, ..IndexSpace::new(2, Box3::from_range([300, 200])) };
    let few = IndexSpace::new(1, Box3::from_range([70]));
    let spaces = [line, plane, few].into_iter();
    spaces.flat_map(|space| (1..5).map(move |nodes| ReductionCase { space, nodes, devices: 2 }))
}

fn assert_found(reduction: &ReductionCase, read: impl FnOnce(Region) -> Region, expected: &str) {
    let finding = reduction.check(read).unwrap_err();
    let text = finding.to_string();
    assert!(matches!(finding.violation, Violation::Roots { .. }), "{text}");
    assert!(text.contains(expected), "{reduction:?}: {text}");
}

/// A region without its last element along dimension 0.
fn shortened(region: &Region) -> Region {
    let last = region.boxes().iter().map(|part| part.max()[0]).max().unwrap_or(0);
    region.difference(&Box3::new([last - 1, 0, 0], [last, 1, 1]).into())
}

#[test]
fn what_nodes_have_left_is_what_counts() {
    for reduction in reductions() {
        reduction.check(|left| left).unwrap_or_else(|finding| panic!("{reduction:?}: {finding}"));
    }
}

#[test]
fn a_root_that_is_left_out_is_found() {
    for reduction in reductions() {
        assert_found(&reduction, |left| shortened(&left), "leaves out what this node has left");
    }
}

#[test]
fn a_tile_that_would_count_twice_is_found() {
    // With a tile per node, nobody has combined anything.
    for reduction in reductions().filter(|reduction| reduction.tiles() > 4) {
        let all = |_| Box3::from_range([reduction.tiles()]).into();
        assert_found(&reduction, all, "reads what this node has combined with another tile's");
    }
}
