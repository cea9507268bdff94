//! What a reduction costs: the sum of many floats, in the order that gives the same bits everywhere,
//! and in any order.
//!
//! ```text
//! CELERITY_NODES=1 CELERITY_DEVICES=1 cargo run --release --example reduce_cost -- --log2 26
//! ```
//!
//! Before anything is timed, the kernel's sum is compared with a closure's on one CPU, bit for bit.

use std::process::ExitCode;
use std::time::Instant;

use celerity::prelude::*;
use celerity::{Error, Platform, Result, Sum};
use celerity_example_kernels::reductions::{draw, total, unordered};
use clap::Parser;

/// Times sums of floats.
#[derive(Parser, Debug)]
struct Options {
    /// Logarithm of the number of floats
    #[arg(long, default_value_t = 22, value_parser = clap::value_parser!(u32).range(1..=34))]
    log2: u32,
    /// Sums of each round
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// Rounds, the fastest of which counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Only compare the bits
    #[arg(long)]
    verify: bool,
}

/// A way to add up.
type Step = fn(&Queue, &Buffer<f32, 1>, &Buffer<f32, 0>) -> Result<()>;

const FORMS: [(&str, Step); 3] = [
    ("in one order, never looked at", in_order),
    ("in one order, looked at", |queue, values, sum| {
        in_order(queue, values, sum)?;
        queue.fence(sum)?.wait().map(drop)
    }),
    ("in any order, by groups", |queue, values, sum| {
        let accesses = (sum.update(all()), values.read(one_to_one()));
        // One chunk, since it updates one element.
        let task = queue.task("any").granularity(values.range());
        task.launch_groups(values.range(), 256, accesses, unordered).map(drop)
    }),
];

fn in_order(queue: &Queue, values: &Buffer<f32, 1>, sum: &Buffer<f32, 0>) -> Result<()> {
    let accesses = (values.read(one_to_one()), sum.reduce(Sum));
    queue.task("sum").launch(values.range(), accesses, total::<f32>::new()).map(drop)
}

fn main() -> ExitCode {
    let options = Options::parse();
    match compare().and_then(|()| celerity::run(|queue| measure(queue, &options))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("reduce_cost: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(queue: &Queue, options: &Options) -> Result<()> {
    if options.verify {
        queue.require_results("--verify")?;
        if queue.is_root() {
            println!("verified: kernels and closures give the same sums, bit for bit");
        }
        return Ok(());
    }
    let count = 1_usize << options.log2.max(8);
    let values = values(queue, count)?;
    for (name, step) in FORMS {
        let sum = queue.buffer_from([], vec![0.0_f32])?;
        let seconds = fastest(queue, options, || step(queue, &values, &sum))?;
        if queue.is_root() {
            let rate = 4.0 * count as f64 / seconds / 1e9;
            println!("{name:32}{:9.3} ms{rate:9.1} GB/s", seconds * 1e3);
        }
    }
    Ok(())
}

/// Seconds of a sum, in the fastest of several rounds.
fn fastest(queue: &Queue, options: &Options, step: impl Fn() -> Result<()>) -> Result<f64> {
    // What is allocated for the first time is not the sum's cost.
    step()?;
    let mut best = f64::INFINITY;
    for _ in 0..options.rounds {
        queue.barrier()?;
        let start = Instant::now();
        for _ in 0..options.steps {
            step()?;
        }
        queue.barrier()?;
        best = best.min(start.elapsed().as_secs_f64() / f64::from(options.steps));
    }
    Ok(best)
}

fn values(queue: &Queue, count: usize) -> Result<Buffer<f32, 1>> {
    let values = queue.buffer::<f32, 1>(count);
    queue.task("draw").launch(count, values.write(one_to_one()), draw)?;
    Ok(values)
}

/// Whether kernels on whatever there is give what closures give on a CPU.
fn compare() -> Result<()> {
    for count in [1000, 1_000_003] {
        let cpu = Config::default().platform(Platform::Cpu).devices(1);
        let expected = cpu.run(|queue| {
            let (values, sum) = (values(queue, count)?, queue.buffer::<f32, 0>([]));
            let accesses = (values.read(one_to_one()), sum.reduce(Sum));
            queue.task("sum").parallel_for(count, accesses, |_, (value, sum)| {
                sum.combine(*value);
            })?;
            Ok(queue.fence(&sum)?.wait()?[[]].to_bits())
        })?;
        celerity::run(|queue| {
            if queue.is_dry_run() {
                return Ok(());
            }
            let (values, sum) = (values(queue, count)?, queue.buffer::<f32, 0>([]));
            in_order(queue, &values, &sum)?;
            let found = queue.fence(&sum)?.wait()?[[]].to_bits();
            match found == expected {
                true => Ok(()),
                false => Err(Error::user(format!(
                    "{count} values: the kernel's sum has the bits {found:08x}, the closure's \
                     {expected:08x}"
                ))),
            }
        })?;
    }
    Ok(())
}
