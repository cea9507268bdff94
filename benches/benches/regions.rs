//! Regions and region maps on the C++ original's grid workloads.
//!
//! Group and benchmark names are the `test_case` and `benchmark` columns of
//! `reference/celerity-cpp-baseline.csv`. The original measures 1-D and 2-D sets both in
//! types of their own dimensionality ("native") and embedded in 3-D; here there is only the
//! embedded form, compared with the row of the original's native one, mostly the faster.
//! The random boxes in `regions_boxes.csv` are those that the original's generator yields
//! with libstdc++, so that the workloads are the same to the last box.
//!
//! Groups named "region map" have no counterpart in the baseline: they hold the sizes that
//! decide between the map's representations.
#![allow(missing_docs)] // criterion's macros

use std::hint::black_box;

use celerity_regions::{Box3, Region, RegionMap, split_1d, split_2d};
use criterion::{Criterion, criterion_group, criterion_main};

const RANDOM_BOXES: &str = include_str!("regions_boxes.csv");

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

fn normalize(c: &mut Criterion, group: &str, benchmark: &str, boxes: &[Box3]) {
    let mut group = c.benchmark_group(group);
    group.bench_function(benchmark, |b| {
        b.iter(|| Region::from_boxes(black_box(boxes).iter().copied()));
    });
    group.finish();
}

fn normalizing(c: &mut Criterion) {
    for size in SIZES {
        let group = "normalizing randomized box sets - 2d";
        normalize(c, group, &format!("{size}, native"), &random_boxes(size, 2, 42));
        let group = "normalizing randomized box sets - 3d";
        normalize(c, group, &format!("{size} - native"), &random_boxes(size, 3, 42));
    }
    for dims in 1..=3 {
        let group = format!("normalizing a fully mergeable tiling of boxes - {dims}");
        for (size, count) in SIZES.iter().zip([4, 50, 1000]) {
            let boxes = tiling(dims, count);
            normalize(c, &group, &format!("{size}, native"), &boxes);
            normalize(c, &group, &format!("{size}, shuffled"), &shuffled(&boxes));
        }
    }
    let group = "normalizing a fully mergeable, complex tiling of boxes - 2d";
    for (size, per_side) in [("small", 10), ("large", 200)] {
        let boxes = interlocking(per_side);
        normalize(c, group, &format!("{size}, native"), &boxes);
        normalize(c, group, &format!("{size}, shuffled"), &shuffled(&boxes));
    }
}

fn set_operations(c: &mut Criterion) {
    for (dims, size) in [2, 3].into_iter().flat_map(|d| SIZES.map(|size| (d, size))) {
        let name = format!("performing set operations between randomized regions - {dims}d");
        let [left, right] = [13, 37].map(|seed| Region::from_boxes(random_boxes(size, dims, seed)));
        let mut group = c.benchmark_group(name);
        group.bench_function(format!("union, {size}, native"), |b| {
            b.iter(|| black_box(&left).union(black_box(&right)));
        });
        group.bench_function(format!("intersection, {size}, native"), |b| {
            b.iter(|| black_box(&left).intersection(black_box(&right)));
        });
        group.bench_function(format!("difference, {size}, native"), |b| {
            b.iter(|| black_box(&left).difference(black_box(&right)));
        });
        group.finish();
    }
}

/// The shapes that a scheduler's maps have: whole buffers, rows and tiles, values replaced
/// in turn.
fn region_maps(c: &mut Criterion) {
    let space = Box3::from_range([4096, 4096]);
    let layouts = [1, 4, 16, 64, 256, 1024, 4096].into_iter().flat_map(|count| {
        [("rows", split_1d(&space, [1; 3], count)), ("tiles", split_2d(&space, [1; 3], count))]
    });
    for (shape, parts) in layouts {
        let mut map = RegionMap::new(space, 0);
        let name = format!("{} {shape}", parts.len());
        let mut turn = 0;
        let mut step = |map: &mut RegionMap<usize>| {
            turn += 1;
            // A stride coprime to all powers of two: neighbours are never updated in a row.
            map.update_box(black_box(&parts[turn * 37 % parts.len()]), turn);
        };
        (0..parts.len()).for_each(|_| step(&mut map));
        let mut group = c.benchmark_group("region map");
        group.bench_function(format!("update one of {name}"), |b| b.iter(|| step(&mut map)));
        group.bench_function(format!("query one of {name}"), |b| {
            let mut turn = 0;
            b.iter(|| {
                turn += 1;
                let mut sum = 0;
                let at = black_box(&parts[turn * 37 % parts.len()]);
                map.for_each_in(at, |part, value| sum += part.volume() as usize ^ value);
                sum
            });
        });
        group.finish();
    }
    let mut map = RegionMap::new(space, 0);
    let mut turn = 0;
    c.benchmark_group("region map").bench_function("update all, then the upper half", |b| {
        b.iter(|| {
            turn += 1;
            map.update_box(black_box(&space), turn);
            map.update_box(black_box(&Box3::from_range([2048, 4096])), turn + 1);
        });
    });
}

criterion_group!(benches, normalizing, set_operations, region_maps);
criterion_main!(benches);
