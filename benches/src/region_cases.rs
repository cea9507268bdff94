//! The region cases of the C++ original's grid benchmarks, in one list: one program times
//! them with criterion, another by their least sample. Knows nothing of either.
//!
//! Group and function names are the `test_case` and `benchmark` columns of
//! `benches/reference/celerity-cpp-baseline.csv`. The original measures 1-D and 2-D sets both
//! in types of their own dimensionality ("native") and embedded in 3-D; here there is only
//! the embedded form, under both names: the native rows are mostly the faster to beat.
//! The random boxes in `regions_boxes.csv` are those that the original's generator yields
//! with libstdc++, so that the workloads are the same to the last box.

use celerity_regions::{Box3, Region};

/// One case: an operation on operands that are made beforehand.
#[derive(Clone, Debug)]
pub struct RegionCase {
    /// Criterion's group.
    pub group: String,
    /// Criterion's function.
    pub function: String,
    operation: Operation,
}

#[derive(Clone, Debug)]
enum Operation {
    Normalize(Vec<Box3>),
    Union([Region; 2]),
    Intersection([Region; 2]),
    Difference([Region; 2]),
}

impl RegionCase {
    /// All cases, in the order in which they are measured.
    #[must_use]
    pub fn all() -> Vec<Self> {
        [random_sets(), tilings(), complex_tilings(), set_operations()].concat()
    }

    /// Computes the case's result once.
    #[must_use]
    pub fn compute(&self) -> Region {
        match &self.operation {
            Operation::Normalize(boxes) => Region::from_boxes(boxes.iter().copied()),
            Operation::Union([left, right]) => left.union(right),
            Operation::Intersection([left, right]) => left.intersection(right),
            Operation::Difference([left, right]) => left.difference(right),
        }
    }
}

/// The case under the name of the original's native row, and, where there is one, of its
/// embedded row.
fn in_both_forms(
    dims: usize,
    group: &str,
    function: &str,
    operation: &Operation,
) -> Vec<RegionCase> {
    let forms = if dims < 3 { &["native", "embedded in 3d"][..] } else { &["native"] };
    let case = |form: &&str| RegionCase {
        group: group.to_owned(),
        function: format!("{function}, {form}"),
        operation: operation.clone(),
    };
    forms.iter().map(case).collect()
}

fn random_sets() -> Vec<RegionCase> {
    let planes = SIZES.into_iter().flat_map(|size| {
        let boxes = Operation::Normalize(random_boxes(size, 2, 42));
        in_both_forms(2, "normalizing randomized box sets - 2d", size, &boxes)
    });
    let volumes = SIZES.into_iter().map(|size| RegionCase {
        group: "normalizing randomized box sets - 3d".into(),
        function: format!("{size} - native"),
        operation: Operation::Normalize(random_boxes(size, 3, 42)),
    });
    planes.chain(volumes).collect()
}

fn tilings() -> Vec<RegionCase> {
    let sizes = SIZES.into_iter().zip([4, 50, 1000]);
    let cases = (1..=3).flat_map(|dims| sizes.clone().map(move |size| (dims, size)));
    let tiled = |(dims, (size, count))| {
        let group = format!("normalizing a fully mergeable tiling of boxes - {dims}");
        with_shuffled(dims, &group, size, tiling(dims, count))
    };
    cases.flat_map(tiled).collect()
}

fn complex_tilings() -> Vec<RegionCase> {
    let group = "normalizing a fully mergeable, complex tiling of boxes - 2d";
    let sizes = [("small", 10), ("large", 200)].into_iter();
    sizes
        .flat_map(|(size, per_side)| with_shuffled(2, group, size, interlocking(per_side)))
        .collect()
}

/// The original's cases, and one of the same boxes out of order.
fn with_shuffled(dims: usize, group: &str, size: &str, boxes: Vec<Box3>) -> Vec<RegionCase> {
    let shuffled = RegionCase {
        group: group.to_owned(),
        function: format!("{size}, shuffled"),
        operation: Operation::Normalize(shuffled(&boxes)),
    };
    let mut cases = in_both_forms(dims, group, size, &Operation::Normalize(boxes));
    cases.push(shuffled);
    cases
}

fn set_operations() -> Vec<RegionCase> {
    let sets = [2, 3].into_iter().flat_map(|dims| SIZES.map(|size| (dims, size)));
    let operations = |(dims, size)| {
        let group = format!("performing set operations between randomized regions - {dims}d");
        let operands = [13, 37].map(|seed| Region::from_boxes(random_boxes(size, dims, seed)));
        let operations = [
            ("union", Operation::Union(operands.clone())),
            ("intersection", Operation::Intersection(operands.clone())),
            ("difference", Operation::Difference(operands)),
        ];
        operations.into_iter().flat_map(move |(name, operation)| {
            in_both_forms(dims, &group, &format!("{name}, {size}"), &operation)
        })
    };
    sets.flat_map(operations).collect()
}

const RANDOM_BOXES: &str = include_str!("../benches/regions_boxes.csv");

const SIZES: [&str; 3] = ["small", "medium", "large"];

/// A recorded set of random boxes.
fn random_boxes(size: &str, dims: usize, seed: u32) -> Vec<Box3> {
    let key = format!("{size},{dims},{seed},");
    let boxes: Vec<Box3> = RANDOM_BOXES
        .lines()
        .filter_map(|line| line.strip_prefix(&key))
        .map(|line| {
            let ends: Vec<u64> = line.split(',').map(|n| n.parse().expect("a number")).collect();
            Box3::new([ends[0], ends[2], ends[4]], [ends[1], ends[3], ends[5]])
        })
        .collect();
    assert!(!boxes.is_empty(), "no boxes recorded for {key}");
    boxes
}

/// A square tiling of about `count` tiles, the slowest dimension running fastest.
fn tiling(dims: usize, count: usize) -> Vec<Box3> {
    const LENGTH: u64 = 5;
    let per_side = (count as f64).powf(1.0 / dims as f64).round() as u64;
    let tile = |i: u64| {
        let step =
            |d: usize| if d < dims { i / per_side.pow(d as u32) % per_side * LENGTH } else { 0 };
        let min = std::array::from_fn(step);
        let max = std::array::from_fn(|d| min[d] + if d < dims { LENGTH } else { 1 });
        Box3::new(min, max)
    };
    (0..per_side.pow(dims as u32)).map(tile).collect()
}

/// Rows and columns, peeled off a square alternately.
fn interlocking(per_side: u64) -> Vec<Box3> {
    let pair = |i: u64| {
        let row = Box3::new([i, i, 0], [i + 1, per_side, 1]);
        let column = Box3::new([i + 1, i, 0], [per_side, i + 1, 1]);
        [row, column]
    };
    (0..per_side).flat_map(pair).filter(|part| !part.is_empty()).collect()
}

/// The same boxes in an order in which neighbours do not meet.
fn shuffled(boxes: &[Box3]) -> Vec<Box3> {
    let stride = (0..).map(|i| boxes.len() * 2 / 3 + i).find(|&s| gcd(s, boxes.len()) == 1);
    let stride = stride.expect("a coprime stride exists");
    (0..boxes.len()).map(|i| boxes[i * stride % boxes.len()]).collect()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_cases_share_a_name() {
        let cases = RegionCase::all();
        let names: BTreeSet<_> = cases.iter().map(|case| (&case.group, &case.function)).collect();
        assert_eq!(names.len(), cases.len());
    }

    #[test]
    fn tilings_merge_into_one_box_in_any_order() {
        let is_tiling = |case: &&RegionCase| case.group.contains("fully mergeable");
        for case in RegionCase::all().iter().filter(is_tiling) {
            let region = case.compute();
            assert!(region.as_box().is_some(), "{}, {}: {region}", case.group, case.function);
        }
    }
}
