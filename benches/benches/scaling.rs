//! What a task costs on 1 to 1024 nodes, in the steady state, with its share of
//! the horizons (CCGrid 2023, fig. 1). A dry run: graphs are generated, nothing runs.
//!
//! *one node* is what each node of the cluster does for itself: the task graph,
//! its own commands, and its instructions for one device. Measured is a node in
//! the middle, which has neighbours on both sides. *one node, commands* stops
//! before the instructions. *central* is one scheduler that generates the
//! commands of all nodes ([`central`](celerity_benches::central)): what it does
//! compares with *one node, commands*, since its workers generate instructions,
//! too.
//!
//! Problems grow with the cluster, so that the share of a node stays the same.

use std::time::Duration;

use celerity_benches::central::CentralPipeline;
use celerity_benches::endless::{Program, Running};
use celerity_benches::pipeline::{Depth, Pipeline, Shape};
use celerity_benches::topologies::Sink;
use criterion::{BenchmarkId, Criterion, SamplingMode};

fn main() {
    // An iteration is one task, but whole periods of horizons are run.
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(10)
        .configure_from_args();
    for program in [Program::AllGather, Program::Stencil] {
        for nodes in (0..=10).map(|doublings| 1 << doublings) {
            let one_node =
                |depth| Pipeline::new(Shape::new(depth, nodes, 1).in_the_middle()).forgetting();
            let commands = one_node(Depth::Commands);
            measure(&mut criterion, program, "one node", one_node(Depth::Instructions));
            measure(&mut criterion, program, "one node, commands", commands);
            measure(&mut criterion, program, "central", CentralPipeline::new(nodes));
        }
    }
    criterion.final_summary();
}

fn measure(criterion: &mut Criterion, program: Program, who: &str, sink: impl Sink) {
    let mut group = criterion.benchmark_group(format!("scaling/{}", program.name()));
    group.sampling_mode(SamplingMode::Flat);
    let id = BenchmarkId::new(who, sink.nodes());
    let mut running = Running::new(program, sink);
    group.bench_function(id, |bencher| bencher.iter_custom(|tasks| running.time(tasks)));
}
