//! What execution costs besides the work itself: the engine per instruction,
//! and whole tasks, which do nothing, from submission to completion.
#![allow(unsafe_code)]
#![allow(missing_docs, reason = "criterion's macros generate undocumented functions")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use celerity_executor::{
    BoundMemory, ClusterConfig, DeviceKernel, Engine, LaneGroup, LaneId, NodeFrontend, Payload,
    RunError, Target, run_cluster,
};
use celerity_idag::InstructionId;
use celerity_regions::Box3;
use celerity_tdag::{Access, AccessMode, BufferId, IndexSpace, Mapper, NewBuffer, TaskSpec, Work};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

criterion_group!(benches, engine, tasks, round_trips);
criterion_main!(benches);

const INSTRUCTIONS: u64 = 10_000;

/// Submission, selection and retirement, with a window of 32 in flight.
fn engine(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("engine");
    group.throughput(Throughput::Elements(INSTRUCTIONS));
    for (name, distances) in [
        ("independent", &[][..]),
        ("chain", &[1]),
        ("stencil of 4 devices", &[3, 4, 5]),
        ("eight dependencies", &[1, 2, 3, 4, 5, 6, 7, 8]),
    ] {
        group.bench_function(name, |bencher| {
            let mut driver = EngineDriver::new();
            bencher.iter(|| (0..INSTRUCTIONS).for_each(|_| driver.step(distances)));
        });
    }
    group.finish();
}

struct EngineDriver {
    engine: Engine,
    newest: u64,
    running: std::collections::VecDeque<InstructionId>,
}

impl EngineDriver {
    fn new() -> Self {
        Self { engine: Engine::new(16), newest: 0, running: std::collections::VecDeque::new() }
    }

    fn step(&mut self, distances: &[u64]) {
        let mut dependencies = [InstructionId::from_index(0); 8];
        let mut count = 0;
        for distance in distances.iter().filter(|distance| **distance <= self.newest) {
            dependencies[count] = InstructionId::from_index(self.newest - distance);
            count += 1;
        }
        let first = u16::try_from(self.newest % 4).expect("below 4") * 3;
        let target = Target::Lanes(LaneGroup::new(LaneId::from_slot(first), 2));
        let id = InstructionId::from_index(self.newest);
        let _ = self.engine.submit(id, &dependencies[..count], target);
        self.newest += 1;
        while let Some(assignment) = self.engine.next_assignment() {
            self.running.push_back(assignment.instruction);
        }
        if self.running.len() > 32 || count == 8 {
            let oldest = self.running.pop_front().expect("something runs");
            let _ = self.engine.complete(oldest);
        }
    }
}

struct Nothing;

impl DeviceKernel for Nothing {
    unsafe fn run(&self, _: &Box3, _: &[BoundMemory<'_>]) {}

    /// As the facade says of kernels with one item.
    fn is_serial(&self, _: &Box3) -> bool {
        true
    }
}

fn submit(node: &NodeFrontend, space: Box3, accesses: Vec<Access>) {
    let work = Work::Device(IndexSpace::new(1, space));
    let spec = TaskSpec { name: "nothing".into(), work, accesses, location: None };
    node.submit(spec, Payload::Kernel(Arc::new(Nothing))).expect("the task is right");
}

fn buffer(node: &NodeFrontend, extent: Box3) -> BufferId {
    let new = NewBuffer {
        name: None,
        dims: 1,
        extent,
        elem_size: 8,
        elem_align: 8,
        host_initialized: false,
    };
    node.create_buffer(new, None)
}

/// Time from the first submission to the completion of the last, per task.
fn timed(
    nodes: usize,
    devices: usize,
    rounds: u64,
    round: impl Fn(&NodeFrontend, Box3, BufferId) + Sync,
) -> Duration {
    let config = ClusterConfig { nodes, devices, ..ClusterConfig::default() };
    let space = Box3::from_range([nodes * devices]);
    run_cluster(&config, |node| {
        let data = buffer(node, space);
        let write = Access::buffer(data, AccessMode::Write, Mapper::OneToOne);
        submit(node, space, vec![write]);
        node.barrier()?;
        let start = Instant::now();
        (0..rounds).for_each(|_| round(node, space, data));
        node.barrier()?;
        Ok::<_, RunError>(start.elapsed())
    })
    .expect("nothing can go wrong")
}

/// Tasks submitted as fast as they are accepted.
fn tasks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("tasks");
    group.sample_size(10);
    for (nodes, devices) in [(1, 1), (1, 4), (2, 1), (4, 1)] {
        let cluster = format!("{nodes} nodes of {devices} devices");
        group.bench_function(BenchmarkId::new("independent", &cluster), |bencher| {
            bencher.iter_custom(|tasks| {
                timed(nodes, devices, tasks, |node, space, _| submit(node, space, Vec::new()))
            });
        });
        group.bench_function(BenchmarkId::new("chain", &cluster), |bencher| {
            bencher.iter_custom(|tasks| {
                timed(nodes, devices, tasks, |node, space, data| {
                    let mode = AccessMode::ReadWrite;
                    let update = Access::buffer(data, mode, Mapper::OneToOne);
                    submit(node, space, vec![update]);
                })
            });
        });
        group.bench_function(BenchmarkId::new("all-gather", &cluster), |bencher| {
            bencher.iter_custom(|tasks| {
                timed(nodes, devices, tasks, |node, space, data| {
                    let read = Access::buffer(data, AccessMode::Read, Mapper::All);
                    let write = Access::buffer(data, AccessMode::Write, Mapper::OneToOne);
                    submit(node, space, vec![read]);
                    submit(node, space, vec![write]);
                })
            });
        });
    }
    group.finish();
}

/// Submission to completion of one task at a time: hand-offs between threads.
fn round_trips(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("round trip");
    group.sample_size(10);
    for nodes in [1, 4] {
        group.bench_function(BenchmarkId::new("task and barrier", nodes), |bencher| {
            bencher.iter_custom(|rounds| {
                timed(nodes, 1, rounds, |node, space, _| {
                    submit(node, space, Vec::new());
                    node.barrier().expect("nothing can go wrong");
                })
            });
        });
    }
    group.finish();
}
