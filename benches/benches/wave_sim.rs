//! A step of the two-dimensional wave equation on one node and one device: a
//! vectorised rayon loop by hand against row and item kernels, called directly
//! and through a whole run.
//!
//! The target: row kernels at 0.9 of the hand-written loop's speed, item kernels
//! at 0.8.
#![allow(missing_docs)] // criterion's macros
#![allow(unsafe_code)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use celerity::by_hand::{item_kernel, row_kernel};
use celerity::prelude::*;
use celerity_example_kernels::wave::{Star, next, wave_step, wave_step_row};
use celerity_executor::{BoundMemory, DeviceKernel};
use celerity_kernel::{ItemKernel, RowKernel};
use celerity_regions::{Box3, Region};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rayon::prelude::*;

/// Items per side.
const N: usize = 2048;

/// Steps per sample: enough to hide what a run costs once.
const STEPS: usize = 20;

const C: f32 = 0.1;

#[inline]
fn update(before: f32, centre: f32, [north, south, west, east]: [f32; 4]) -> f32 {
    next(before, Star { centre, north, south, west, east }, C)
}

/// No two elements alike, so that nothing can be skipped.
fn initial() -> Vec<f32> {
    (0..N * N).map(initial_at).collect()
}

#[inline]
fn initial_at(i: usize) -> f32 {
    ((i * 7919 + 13) % 10_007) as f32 * 1e-4
}

fn step_by_hand(up: &mut [f32], u: &[f32]) {
    up.par_chunks_mut(N).enumerate().for_each(|(y, up)| {
        let row = |y: usize| &u[y * N..][..N];
        let (north, here, south) = (row(y.saturating_sub(1)), row(y), row((y + 1).min(N - 1)));
        let edge = |x: usize, before| {
            let (west, east) = (here[x.saturating_sub(1)], here[(x + 1).min(N - 1)]);
            update(before, here[x], [north[x], south[x], west, east])
        };
        (up[0], up[N - 1]) = (edge(0, up[0]), edge(N - 1, up[N - 1]));
        let (west, east) = (&here[..N - 2], &here[2..]);
        let (north, here, south) = (&north[1..N - 1], &here[1..N - 1], &south[1..N - 1]);
        for (i, up) in up[1..N - 1].iter_mut().enumerate() {
            *up = update(*up, here[i], [north[i], south[i], west[i], east[i]]);
        }
    });
}

/// The kernels on their own, and the two together with the fields they work on.
struct Direct {
    kernel: Arc<dyn DeviceKernel>,
    region: Region,
}

impl Direct {
    fn new(kernel: Arc<dyn DeviceKernel>) -> Self {
        Self { kernel, region: Box3::from_range([N, N]).into() }
    }

    fn step(&self, up: &mut [f32], u: &mut [f32]) {
        let extent = Box3::from_range([N, N]);
        let memory = [up, u].map(|field| {
            assert_eq!(field.len(), N * N);
            // SAFETY: all of a field, which is borrowed alone for as long as the kernel runs.
            unsafe { BoundMemory::new(field.as_mut_ptr().cast(), extent, &self.region) }
        });
        // SAFETY: fields of the accesses that `kernels` has made it with.
        unsafe { self.kernel.run(&extent, &memory) };
    }
}

fn kernels() -> [Direct; 2] {
    let build = |queue: &Queue| {
        let (up, u) = (queue.buffer::<f32, 2>([N, N]), queue.buffer::<f32, 2>([N, N]));
        let accesses = || (up.read_write(one_to_one()), u.read(neighborhood([1, 1])));
        let item = queue.task("item");
        let row = queue.task("row");
        // SAFETY: they are run by `Direct::step` alone, with two fields of this size.
        let (item, row) = unsafe {
            (
                item_kernel(item, [N, N], accesses(), |item, views| {
                    wave_step { c: C }.item(item, views);
                })?,
                row_kernel(row, [N, N], accesses(), |row, views| {
                    wave_step_row { c: C }.row(row, views);
                })?,
            )
        };
        Ok([Direct::new(item), Direct::new(row)])
    };
    Config::default().run(build).expect("kernels are built without a device")
}

/// Times `STEPS` steps in a run of their own; allocation, what fills the fields, and the first step are not counted.
/// The fields are memory of the runtime: where `Vec`s lie, whose memory it would take over, is chance, and counts.
fn timed_run(form: &str) -> Duration {
    let program = |queue: &Queue| {
        let filled = || -> celerity::Result<Buffer<f32, 2>> {
            let field = queue.buffer::<f32, 2>([N, N]);
            queue.task("fill").parallel_for([N, N], field.write(one_to_one()), |item, cell| {
                *cell = initial_at(item.linear_id());
            })?;
            Ok(field)
        };
        let (mut up, mut u) = (filled()?, filled()?);
        let mut start = Instant::now();
        for step in 0..=STEPS {
            if step == 1 {
                queue.barrier()?;
                start = Instant::now();
            }
            let accesses = (up.read_write(one_to_one()), u.read(neighborhood([1, 1])));
            match form {
                "row" => queue.task("row").launch([N, N], accesses, wave_step_row { c: C })?,
                _ => queue.task("item").launch([N, N], accesses, wave_step { c: C })?,
            };
            std::mem::swap(&mut up, &mut u);
        }
        queue.barrier()?;
        Ok(start.elapsed())
    };
    Config::default().run(program).expect("the wave equation runs")
}

/// All kernels compute the same bits.
fn check(item: &Direct, row: &Direct) {
    let fields = || (initial(), initial().into_iter().rev().collect::<Vec<_>>());
    let (mut expected, u) = fields();
    step_by_hand(&mut expected, &u);
    for direct in [item, row] {
        let (mut up, mut u) = fields();
        direct.step(&mut up, &mut u);
        assert!(up == expected, "kernels and the hand-written loop disagree");
    }
}

fn wave_sim(criterion: &mut Criterion) {
    let [item, row] = kernels();
    check(&item, &row);
    let mut group = criterion.benchmark_group(format!("wave_sim {N}x{N}"));
    group.throughput(Throughput::Elements((N * N * STEPS) as u64)).sample_size(20);
    let (mut up, mut u) = (initial(), initial());
    // Kernels are called on a thread of a pool.
    let mut steps = |step: &(dyn Fn(&mut [f32], &mut [f32]) + Sync)| {
        for _ in 0..STEPS {
            rayon::scope(|_| step(&mut up, &mut u));
            std::mem::swap(&mut up, &mut u);
        }
    };
    group.bench_function("by hand", |bencher| {
        bencher.iter(|| steps(&|up, u| step_by_hand(up, u)));
    });
    group.bench_function("row kernel", |bencher| {
        bencher.iter(|| steps(&|up, u| row.step(up, u)));
    });
    group.bench_function("item kernel", |bencher| {
        bencher.iter(|| steps(&|up, u| item.step(up, u)));
    });
    for form in ["row", "item"] {
        group.bench_function(format!("{form} kernel, whole run"), |bencher| {
            bencher.iter_custom(|samples| (0..samples).map(|_| timed_run(form)).sum());
        });
    }
    group.finish();
}

criterion_group!(benches, wave_sim);
criterion_main!(benches);
