//! Regions and region maps: the C++ original's grid workloads
//! ([`region_cases`](celerity_benches::region_cases)), and maps of the sizes that decide
//! between their representations, which have no counterpart in the original.
#![allow(missing_docs)] // criterion's macros

use std::hint::black_box;

use celerity_benches::region_cases::RegionCase;
use celerity_regions::{Box3, RegionMap, split_1d, split_2d};
use criterion::{Criterion, criterion_group, criterion_main};

fn regions(c: &mut Criterion) {
    for case in RegionCase::all() {
        let mut group = c.benchmark_group(&case.group);
        group.bench_function(&case.function, |b| b.iter(|| black_box(&case).compute()));
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

criterion_group!(benches, regions, region_maps);
criterion_main!(benches);
