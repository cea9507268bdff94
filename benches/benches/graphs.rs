//! How fast the graphs are generated, workload for workload as the C++
//! original's own benchmarks measure it.
//!
//! One sample is what it is there: build fresh graphs, submit every task and the
//! shutdown epoch, destroy everything; only node 0's graphs are built. Groups
//! and functions bear the names of the columns `test_case` and `benchmark` of
//! `benches/reference/celerity-cpp-baseline.csv`; groups of device kernels
//! those of `variant`, `num_nodes` and `devices` of
//! `celerity-cpp-device-kernels.csv`, with slashes between them, and their
//! functions those of `topology`.
//!
//! The original's instruction-graph benchmarks use host tasks that are split
//! over nodes but not over devices. There are no such tasks here; kernels on one
//! device per node stand for them, whatever the number in the name.

use std::hint::black_box;
use std::time::Duration;

use celerity_benches::pipeline::{Depth, Output, Pipeline, Shape};
use celerity_benches::topologies::Topology;
use celerity_tdag::TaskGraphConfig;
use criterion::{Criterion, Throughput};

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(20)
        .configure_from_args();
    task_handling(&mut criterion);
    task_graphs(&mut criterion);
    command_graphs(&mut criterion);
    instruction_graphs(&mut criterion);
    device_kernels(&mut criterion);
    steady_state(&mut criterion);
    criterion.final_summary();
}

/// Tasks that touch nothing, a horizon after each, as the original provokes
/// them; old tasks are dropped on the way.
fn task_handling(criterion: &mut Criterion) {
    const TASKS: u64 = 10_000;
    let mut group = criterion.benchmark_group("benchmark task handling");
    group.throughput(Throughput::Elements(TASKS));
    let config = TaskGraphConfig { horizon_step: 0, ..TaskGraphConfig::default() };
    group.bench_function("generating and deleting tasks", |bencher| {
        bencher.iter(|| {
            let shape = Shape::new(Depth::Tasks, 1, 1);
            let mut pipeline = Pipeline::with_config(shape, config).forgetting();
            (0..TASKS).for_each(|_| pipeline.host_task());
            pipeline.finish()
        });
    });
}

fn task_graphs(criterion: &mut Criterion) {
    all_topologies(criterion, "generating large task graphs", Shape::new(Depth::Tasks, 1, 1));
}

fn command_graphs(criterion: &mut Criterion) {
    for nodes in [1, 4, 16] {
        let group = format!("generating large command graphs for N nodes - {nodes}");
        all_topologies(criterion, &group, Shape::new(Depth::Commands, nodes, 1));
    }
}

fn instruction_graphs(criterion: &mut Criterion) {
    for devices in [1, 4, 16] {
        let group = format!("generating large instruction graphs for N devices - {devices}");
        all_topologies(criterion, &group, Shape::new(Depth::Instructions, 2, 1));
    }
}

fn device_kernels(criterion: &mut Criterion) {
    for (nodes, devices) in [1, 2, 4].into_iter().flat_map(|nodes| [1, 4, 16].map(|d| (nodes, d))) {
        let mut group = criterion.benchmark_group(format!("idag_device_kernel/{nodes}/{devices}"));
        for topology in Topology::ALL {
            group.throughput(Throughput::Elements(topology.tasks() as u64));
            let shape = Shape::new(Depth::Instructions, nodes, devices);
            group.bench_function(topology.name(), |bencher| {
                bencher.iter(|| build(black_box(topology), shape));
            });
        }
    }
}

/// A long program on a node in the middle, with everything older than a
/// horizon or two forgotten.
fn steady_state(criterion: &mut Criterion) {
    let topology = Topology::LongWaveSim { steps: 5000 };
    for (nodes, devices) in [(1, 1), (1, 4), (4, 1), (4, 4), (16, 4), (64, 4), (256, 1)] {
        let name = format!("steady_pruned_tdag_cdag_idag_middle_node/{nodes}/{devices}");
        let mut group = criterion.benchmark_group(name);
        group.sample_size(10).throughput(Throughput::Elements(topology.tasks() as u64));
        let shape = Shape { local: nodes / 2, ..Shape::new(Depth::Instructions, nodes, devices) };
        group.bench_function(topology.name(), |bencher| {
            bencher.iter(|| {
                let mut pipeline = Pipeline::new(shape).forgetting();
                black_box(topology).submit(&mut pipeline);
                pipeline.finish()
            });
        });
    }
}

fn all_topologies(criterion: &mut Criterion, group: &str, shape: Shape) {
    let mut group = criterion.benchmark_group(group);
    for topology in Topology::ALL {
        group.throughput(Throughput::Elements(topology.tasks() as u64));
        group.bench_function(topology.original_name(), |bencher| {
            bencher.iter(|| build(black_box(topology), shape));
        });
    }
}

fn build(topology: Topology, shape: Shape) -> Output {
    let mut pipeline = Pipeline::new(shape);
    topology.submit(&mut pipeline);
    pipeline.finish()
}
