//! How long the search for the largest set of host tasks without conflicts takes, and how large a
//! set it finds, against the candidates that it may reject (IJPP 2022, fig. 8): on graphs of
//! conflicts drawn uniformly among tasks that nothing else connects.

use celerity_executor::independent_set;
use criterion::{BenchmarkId, Criterion};

/// Ready tasks, and conflicts among them.
const GRAPHS: [(usize, usize); 4] = [(16, 32), (64, 128), (64, 512), (128, 1024)];
const CANDIDATES: [usize; 5] = [1, 10, 100, 1_000, 10_000];
/// Graphs of each kind, of which figures are the mean.
const SAMPLES: u64 = 32;

/// Time per search; sizes are printed.
pub(crate) fn candidates(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("model: the largest set without conflicts");
    for (tasks, conflicts) in GRAPHS {
        let graphs: Vec<_> = (0..SAMPLES).map(|seed| graph(tasks, conflicts, seed)).collect();
        for candidates in CANDIDATES {
            let sizes = graphs.iter().map(|graph| independent_set(graph, candidates).len());
            let mean = sizes.sum::<usize>() as f64 / SAMPLES as f64;
            println!("{tasks} tasks, {conflicts} conflicts, {candidates} candidates: {mean:.2}");
            let name = format!("{tasks} tasks and {conflicts} conflicts");
            let mut next = graphs.iter().cycle();
            group.bench_function(BenchmarkId::new(name, candidates), |bencher| {
                bencher.iter(|| independent_set(next.next().expect("without end"), candidates));
            });
        }
    }
    group.finish();
}

/// So many different conflicts.
fn graph(tasks: usize, conflicts: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut random = seed;
    let mut below = |bound: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        usize::try_from(random >> 33).expect("31 bits") % bound
    };
    let mut neighbors = vec![Vec::new(); tasks];
    let mut left = conflicts;
    while left > 0 {
        let (one, other) = (below(tasks), below(tasks));
        if one != other && !neighbors[one].contains(&other) {
            neighbors[one].push(other);
            neighbors[other].push(one);
            left -= 1;
        }
    }
    neighbors
}
