//! What a reduction costs: the sum of many floats, and sums of them by kind, in the order that gives
//! the same bits everywhere, and in any order.
//!
//! ```text
//! CELERITY_NODES=1 CELERITY_DEVICES=1 cargo run --release --example reduce_cost -- --log2 26
//! ```
//!
//! Before anything is timed, the kernel's sum is compared with a closure's on one CPU, bit for bit.

#[path = "../support/rounds.rs"]
mod rounds;

use std::process::ExitCode;

use celerity::prelude::*;
use celerity::{Error, Platform, Result, Sum};
use celerity_example_kernels::reductions::{draw, sums_by_kind, total, unordered};
use clap::Parser;

use rounds::fastest;

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
    /// Kinds of floats, for sums by kind
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    kinds: u32,
    /// Only forms whose names contain this: groups take their time on CPUs
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Only compare the bits
    #[arg(long)]
    verify: bool,
}

/// What there is to add up, and where to.
struct Data {
    values: Buffer<f32, 1>,
    sum: Buffer<f32, 0>,
    by_kind: Buffer<f32, 1>,
}

/// A way to add up.
type Step = fn(&Queue, &Data) -> Result<()>;

const FORMS: [(&str, Step); 7] = [
    ("in one order, never looked at", |queue, data| total_of(queue, data, true)),
    ("in any order, never looked at", |queue, data| total_of(queue, data, false)),
    ("in one order, looked at", |queue, data| {
        total_of(queue, data, true)?;
        queue.fence(&data.sum)?.wait().map(drop)
    }),
    ("in any order, looked at", |queue, data| {
        total_of(queue, data, false)?;
        queue.fence(&data.sum)?.wait().map(drop)
    }),
    ("in any order, by groups", |queue, Data { values, sum, .. }| {
        let accesses = (sum.update(all()), values.read(one_to_one()));
        // One chunk, since it updates one element.
        let task = queue.task("any").granularity(values.range());
        task.launch(nd_range(values.range(), 256), accesses, unordered).map(drop)
    }),
    ("by kind, in one order, looked at", |queue, data| {
        sums_of(queue, data, true)?;
        queue.fence(&data.by_kind)?.wait().map(drop)
    }),
    ("by kind, in any order, looked at", |queue, data| {
        sums_of(queue, data, false)?;
        queue.fence(&data.by_kind)?.wait().map(drop)
    }),
];

fn total_of(queue: &Queue, Data { values, sum, .. }: &Data, is_ordered: bool) -> Result<()> {
    let reduction = sum.reduce(Sum);
    let reduction = if is_ordered { reduction } else { reduction.unordered() };
    let accesses = (values.read(one_to_one()), reduction);
    queue.task("sum").launch(values.range(), accesses, total::<f32>::new()).map(drop)
}

fn sums_of(queue: &Queue, Data { values, by_kind, .. }: &Data, is_ordered: bool) -> Result<()> {
    let reduction = by_kind.reduce(Sum);
    let reduction = if is_ordered { reduction } else { reduction.unordered() };
    let accesses = (values.read(one_to_one()), reduction);
    queue.task("by kind").launch(values.range(), accesses, sums_by_kind).map(drop)
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
    let data = Data {
        values: values(queue, count)?,
        sum: queue.buffer_from([], vec![0.0])?,
        by_kind: queue.buffer(options.kinds as usize),
    };
    for (name, step) in FORMS.into_iter().filter(|(name, _)| name.contains(&options.only)) {
        let seconds = match fastest(queue, (options.rounds, options.steps), || step(queue, &data)) {
            Ok(seconds) => seconds,
            // GPUs combine floats into arrays in any order only.
            Err(Error::Kernel(_)) => continue,
            Err(error) => return Err(error),
        };
        if queue.is_root() {
            let rate = 4.0 * count as f64 / seconds / 1e9;
            println!("{name:34}{:9.3} ms{rate:9.1} GB/s", seconds * 1e3);
        }
    }
    Ok(())
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
            let data = Data { values, sum, by_kind: queue.buffer(1) };
            total_of(queue, &data, true)?;
            let found = queue.fence(&data.sum)?.wait()?[[]].to_bits();
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
