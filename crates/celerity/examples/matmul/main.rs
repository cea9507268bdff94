//! Products of square matrices on every node and device there is: `x ← a x`, again
//! and again.
//!
//! ```text
//! cargo run --release --example matmul -- --size 512 --verify
//! CELERITY_NODES=2 CELERITY_DEVICES=2 cargo run --release --example matmul -- --steps 4 --cut tiles
//! ```
//!
//! The result is the same, bit for bit, however the work is split. A band of it needs all of `x`, a tile only columns.
//!
//! On GPUs, and built with feature `cublas`, `--cublas` lets cuBLAS multiply; its sums are in an
//! order of its own.

mod cublas;
#[path = "../support/cut.rs"]
mod cut;
mod panels;
#[path = "../support/stopwatch.rs"]
mod stopwatch;

use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use celerity::prelude::*;
use celerity::{Platform, TaskBuilder};
use celerity_example_kernels::blocks::{BLOCK, EDGE, SIDE, matmul_blocks};
use celerity_example_kernels::groups::{TILE, matmul};
use celerity_example_kernels::linear::{element, matrix_fill, multiply};
use clap::{Parser, ValueEnum};

use cublas::Cublas;
use cut::Cuts;
use stopwatch::{Measure, Measured, Stopwatch, cluster, counted};

/// Which matrices.
const SEED_A: u64 = 1;
const SEED_X: u64 = 2;

/// Multiplies a square matrix by another one, and by each result again.
///
/// CELERITY_NODES and CELERITY_DEVICES choose how many nodes and devices share
/// the work; the result does not depend on them.
#[derive(Parser, Debug)]
struct Options {
    /// Rows and columns of the matrices: a multiple of 16 in groups, of 32 in panels, of 128 in groups of blocks.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    size: u32,
    /// Products.
    #[arg(long, default_value_t = 1)]
    steps: u32,
    /// How the kernel is written: for one element, or for a group of them.
    #[arg(long, value_enum, default_value_t = Kernel::Group)]
    kernel: Kernel,
    /// Calls cuBLAS instead of a kernel, which needs GPUs.
    #[arg(long, conflicts_with = "kernel")]
    cublas: bool,
    #[command(flatten)]
    cuts: Cuts,
    /// Compares the result with that of a sequential program.
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    measure: Measure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kernel {
    /// Called for each element.
    Item,
    /// Called for groups of elements, which share tiles of both factors.
    Group,
    /// Called for stacks of blocks of 4 × 8 elements, which share packed strips of the second factor: what CPUs like most. On
    /// CPUs alone: blocks are counted by columns, through a mapper that only hosts evaluate.
    Panel,
    /// Called for groups of blocks of 8 × 8 elements, of which 16 × 16 share tiles of both factors. In
    /// the fast form: GPUs fuse products and sums, so that --verify allows for differences.
    Block,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Runtime(#[from] celerity::Error),
    #[error(transparent)]
    Config(#[from] celerity::ConfigError),
    #[error(
        "verification failed: the result differs from that of the sequential program by {error:e} \
         of its norm"
    )]
    Inexact { error: f64 },
    #[error(
        "verification failed: {count} of {elements} elements differ from the sequential program, \
         first at row {row}, column {column}: {actual:e} instead of {expected:e}"
    )]
    Mismatch {
        count: usize,
        elements: usize,
        row: usize,
        column: usize,
        actual: f32,
        expected: f32,
    },
}

struct Outcome {
    /// Whether the host tasks of this process have gathered anything.
    is_root: bool,
    nodes: usize,
    devices: usize,
    elapsed: Duration,
}

/// The final matrix, on the node that gathers it.
type Gathered = Arc<Mutex<Vec<f32>>>;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("matmul: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    let result = Gathered::default();
    let outcome = match options.cublas {
        true => {
            Cublas::check()?;
            let config = celerity::Config::from_env()?.platform(Platform::Cuda);
            config.run(|queue| simulate(queue, options, &result))?
        }
        false => celerity::run(|queue| simulate(queue, options, &result))?,
    };
    if !outcome.is_root {
        return Ok(());
    }
    report(options, &outcome, &result.lock().expect("no host task panicked"));
    if options.verify {
        let result = result.lock().expect("no host task panicked");
        if options.cublas || options.kernel == Kernel::Block {
            let error = check_close(&result, &reference(options))?;
            println!("verified: off from the sequential program by {error:.1e} of its norm");
        } else {
            compare(&result, &reference(options), options.size as usize)?;
            println!("verified: every element equals that of the sequential program, bit for bit");
        }
    }
    Ok(())
}

/// The program that every node runs.
fn simulate(queue: &Queue, options: &Options, result: &Gathered) -> celerity::Result<Outcome> {
    if options.verify {
        queue.require_results("--verify")?;
    }
    let range = [options.size as usize; 2];
    let a = queue.buffer::<f32, 2>(range).named("a");
    let mut x = queue.buffer::<f32, 2>(range).named("x");
    let mut next = queue.buffer::<f32, 2>(range).named("next");
    fill(queue, options, &a, SEED_A, scale(options))?;
    fill(queue, options, &x, SEED_X, 1.0)?;
    queue.barrier()?;

    let cublas = Cublas::default();
    let mut stopwatch = Stopwatch::start(options.measure);
    for number in 0..options.steps {
        stopwatch.before_step(queue, u64::from(number))?;
        match options.cublas {
            true => cublas.product(options.cuts.in_chunks(queue.task("cublas")), &next, &a, &x)?,
            false => product(queue, options, &next, &a, &x)?,
        }
        std::mem::swap(&mut x, &mut next);
    }
    let elapsed = stopwatch.stop(queue)?;
    if options.verify || options.measure.checksum {
        let result = Arc::clone(result);
        queue.host_task("gather").once(x.read(all()), move |x| {
            *result.lock().expect("nobody panics with the lock held") = x.as_slice().to_vec();
        })?;
        queue.barrier()?;
    }
    let (nodes, devices) = (queue.nodes(), queue.devices());
    Ok(Outcome { is_root: queue.is_root(), nodes, devices, elapsed })
}

fn fill(
    queue: &Queue,
    options: &Options,
    matrix: &Buffer<f32, 2>,
    seed: u64,
    scale: f32,
) -> celerity::Result<()> {
    let task = options.cuts.among_devices(queue.task("fill"));
    task.launch(matrix.range(), matrix.write(one_to_one()), matrix_fill { seed, scale })?;
    Ok(())
}

/// `next = a x`: rows of `next` need rows of `a`, and columns the same of `x`. So a band needs all of `x`, a tile
/// a part of both.
fn product(
    queue: &Queue,
    options: &Options,
    next: &Buffer<f32, 2>,
    a: &Buffer<f32, 2>,
    x: &Buffer<f32, 2>,
) -> celerity::Result<()> {
    let accesses = (next.write(one_to_one()), a.read(slice(1)), x.read(slice(0)));
    let (task, range) = (options.cuts.in_chunks(queue.task("product")), next.range());
    match options.kernel {
        Kernel::Item => task.launch(range, accesses, multiply)?,
        Kernel::Group => {
            task.launch(nd_range(range, [TILE, TILE]), accesses, matmul { shared: range[0] })?
        }
        Kernel::Panel => {
            check_size("panel", range, panels::MULTIPLE)?;
            return panels::product(options.cuts.in_chunks(panels::task(queue)), next, a, x);
        }
        Kernel::Block => return product_by_blocks(task, next, a, x),
    };
    Ok(())
}

/// Makes sure that the matrices are made of whole groups of a kernel.
fn check_size(kernel: &str, [size, _]: [usize; 2], multiple: usize) -> celerity::Result<()> {
    if size.is_multiple_of(multiple) {
        return Ok(());
    }
    let what =
        format!("--kernel {kernel} takes a --size that is a multiple of {multiple}, not {size}");
    Err(celerity::Error::user(what))
}

/// The same, with an item for each block of `next`.
fn product_by_blocks(
    task: TaskBuilder<'_>,
    next: &Buffer<f32, 2>,
    a: &Buffer<f32, 2>,
    x: &Buffer<f32, 2>,
) -> celerity::Result<()> {
    let [size, _] = next.range();
    check_size("block", next.range(), EDGE)?;
    let rows = per_dimension([Side::along(0).stride(BLOCK), Side::all()]);
    let columns = per_dimension([Side::all(), Side::along(1).stride(BLOCK)]);
    let accesses = (next.write(blocks([BLOCK; 2])), a.read(rows), x.read(columns));
    let kernel = matmul_blocks { shared: size };
    task.launch(nd_range([size / BLOCK; 2], [SIDE; 2]), accesses, kernel)?;
    Ok(())
}

/// Keeps products from growing.
fn scale(options: &Options) -> f32 {
    1.0 / (options.size as f32).sqrt()
}

/// The same by plain loops. O(size³ · steps).
fn reference(options: &Options) -> Vec<f32> {
    let size = options.size as usize;
    let matrix = |seed, scale| -> Vec<f32> {
        (0..size * size).map(|at| element([at / size, at % size], seed, scale)).collect()
    };
    let (a, mut x) = (matrix(SEED_A, scale(options)), matrix(SEED_X, 1.0));
    for _ in 0..options.steps {
        let mut next = vec![0.0; size * size];
        for (next, a) in next.chunks_exact_mut(size).zip(a.chunks_exact(size)) {
            for (x, factor) in x.chunks_exact(size).zip(a) {
                next.iter_mut().zip(x).for_each(|(sum, x)| *sum += factor * x);
            }
        }
        x = next;
    }
    x
}

fn compare(actual: &[f32], expected: &[f32], size: usize) -> Result<(), Failure> {
    let differs = |at: &usize| actual[*at].to_bits() != expected[*at].to_bits();
    let mut different = (0..expected.len()).filter(differs);
    match different.next() {
        None => Ok(()),
        Some(first) => Err(Failure::Mismatch {
            count: 1 + different.count(),
            elements: expected.len(),
            row: first / size,
            column: first % size,
            actual: actual[first],
            expected: expected[first],
        }),
    }
}

/// How far sums in another order may be off, in parts of the norm.
const TOLERANCE: f64 = 1e-5;

/// The norm of the difference, in parts of that of what is expected.
fn check_close(actual: &[f32], expected: &[f32]) -> Result<f64, Failure> {
    let square = |value: f64| value * value;
    let pairs = actual.iter().zip(expected);
    let off: f64 = pairs.map(|(a, e)| square(f64::from(*a) - f64::from(*e))).sum();
    let norm: f64 = expected.iter().map(|e| square(f64::from(*e))).sum();
    let error = (off / norm).sqrt();
    // Neither is a number that is none.
    if actual.len() == expected.len() && error <= TOLERANCE {
        return Ok(error);
    }
    Err(Failure::Inexact { error })
}

fn report(options: &Options, outcome: &Outcome, result: &[f32]) {
    let measured = Measured {
        program: "matmul",
        devices: outcome.nodes * outcome.devices,
        size: options.size as usize,
        steps: u64::from(options.steps),
        elapsed: outcome.elapsed,
        work: 2.0 * f64::from(options.size).powi(3),
        unit: "flop",
    };
    println!(
        "matmul: {size}×{size}, {steps}, {cluster}, {seconds:.3} s, {rate:.2} GFLOP/s",
        size = options.size,
        steps = counted(options.steps, "product"),
        cluster = cluster(outcome.nodes, outcome.devices),
        seconds = outcome.elapsed.as_secs_f64(),
        rate = measured.rate(options.measure) / 1e9,
    );
    measured.print(options.measure, &[bytemuck::cast_slice(result)]);
}
