//! How fast the graphs are generated, workload for workload as the C++
//! original's own benchmarks measure it ([`graph_cases`](celerity_benches::graph_cases)),
//! and how fast they go on in the steady state: the time of one task, with its
//! share of the horizons.

use std::hint::black_box;
use std::time::Duration;

use celerity_benches::dependency_cases::DependencyCase;
use celerity_benches::graph_cases::{Case, SteadyCase};
use criterion::{Criterion, Throughput};

fn main() {
    // There are nearly 200 cases. With `--quick`, none goes on for longer than it is measured
    // otherwise: together less than three minutes, even if others use the machine.
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(500))
        .sample_size(20)
        .configure_from_args();
    DependencyCase::all().iter().for_each(|case| dependencies(&mut criterion, case));
    Case::all().iter().for_each(|case| fresh(&mut criterion, case));
    SteadyCase::all().iter().for_each(|case| steady(&mut criterion, case));
    criterion.final_summary();
}

fn dependencies(criterion: &mut Criterion, case: &DependencyCase) {
    let mut group = criterion.benchmark_group(&case.group);
    group.bench_function(case.function, |bencher| bencher.iter(|| black_box(case).run()));
}

fn fresh(criterion: &mut Criterion, case: &Case) {
    let mut group = criterion.benchmark_group(&case.group);
    if case.is_long() {
        group.sample_size(10);
    }
    group.throughput(Throughput::Elements(case.tasks() as u64));
    group.bench_function(case.function, |bencher| bencher.iter(|| black_box(case).sample()));
}

fn steady(criterion: &mut Criterion, case: &SteadyCase) {
    let mut group = criterion.benchmark_group(case.group);
    group.throughput(Throughput::Elements(1));
    group.bench_function(case.program.name(), |bencher| {
        let mut running = case.start();
        bencher.iter_custom(|tasks| running.time(tasks));
    });
}
