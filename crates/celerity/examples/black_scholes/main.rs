//! Prices of options by the formula of Black and Scholes, on every node and device
//! there is, day after day.
//!
//! ```text
//! cargo run --release --example black_scholes -- --verify
//! CELERITY_NODES=2 cargo run --release --example black_scholes -- --options 4000000 --steps 90
//! ```
//!
//! The prices are the same, bit for bit, however the work is split, and on CPUs and
//! GPUs: logarithms, exponentials and error functions are the same code on both.

#[path = "../support/stopwatch.rs"]
mod stopwatch;

use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use celerity::prelude::*;
use celerity_example_kernels::finance::{
    Contract, Prices, black_scholes, black_scholes_fast, contract, draw_contracts, prices,
};
use clap::Parser;

use stopwatch::{Measure, Measured, Stopwatch, cluster, counted};

/// Interest and volatility of a year.
const RATE: f32 = 0.02;
const VOLATILITY: f32 = 0.3;

/// Prices may be off by so much of the larger of share and contract price.
const TOLERANCE: f64 = 4.0e-7;

/// And by so much in the fast form.
const FAST_TOLERANCE: f64 = 3.0e-6;

/// Prices options that look random, as days pass.
///
/// CELERITY_NODES and CELERITY_DEVICES choose how many nodes and devices share
/// the work; the result does not depend on them.
#[derive(Parser, Debug)]
struct Options {
    /// How many options.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    options: u64,
    /// Days; the first options run out after 91.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=90))]
    steps: u32,
    /// Computes in the fast form: GPUs fuse and approximate, and prices are compared with those in
    /// double precision alone.
    #[arg(long)]
    fast: bool,
    /// Compares the last prices with those of a sequential program, and with those of
    /// one that computes in double precision.
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    measure: Measure,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Runtime(#[from] celerity::Error),
    #[error(
        "verification failed: prices of option {number}, {contract:?}, are {actual:?} instead of \
         {expected:?}"
    )]
    Mismatch { number: usize, contract: Contract, actual: Prices, expected: Prices },
    #[error(
        "verification failed: prices of option {number}, {contract:?}, are {actual:?}, in double \
         precision {expected:?}, which is off by {off:e} instead of at most {tolerance:e}"
    )]
    Inaccurate {
        number: usize,
        contract: Contract,
        actual: Prices,
        expected: [f64; 2],
        off: f64,
        tolerance: f64,
    },
}

struct Outcome {
    /// Whether the host tasks of this process have gathered anything.
    is_root: bool,
    nodes: usize,
    devices: usize,
    elapsed: Duration,
}

/// The last prices, on the node that gathers them.
type Gathered = Arc<Mutex<Vec<Prices>>>;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("black_scholes: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    let gathered = Gathered::default();
    let outcome = celerity::run(|queue| simulate(queue, options, &gathered))?;
    if !outcome.is_root {
        return Ok(());
    }
    let gathered = gathered.lock().expect("no host task panicked");
    report(options, &outcome, &gathered);
    if options.verify {
        let off = check(options, &gathered)?;
        if !options.fast {
            println!("verified: every price equals that of the sequential program, bit for bit");
        }
        println!("verified: in double precision they differ by at most {off:.1e}");
    }
    Ok(())
}

/// The program that every node runs.
fn simulate(queue: &Queue, options: &Options, gathered: &Gathered) -> celerity::Result<Outcome> {
    if options.verify {
        queue.require_results("--verify")?;
    }
    let count = options.options as usize;
    let contracts = queue.buffer::<Contract, 1>([count]).named("contracts");
    let prices = queue.buffer::<Prices, 1>([count]).named("prices");
    queue.task("draw").launch([count], contracts.write(one_to_one()), draw_contracts)?;
    queue.barrier()?;

    let mut stopwatch = Stopwatch::start(options.measure);
    for day in 1..=options.steps {
        stopwatch.before_step(queue, u64::from(day - 1))?;
        let accesses = (prices.write(one_to_one()), contracts.read(one_to_one()));
        let (task, elapsed, rate, volatility) = (queue.task("price"), years(day), RATE, VOLATILITY);
        match options.fast {
            true => {
                task.launch([count], accesses, black_scholes_fast { elapsed, rate, volatility })?
            }
            false => task.launch([count], accesses, black_scholes { elapsed, rate, volatility })?,
        };
    }
    let elapsed = stopwatch.stop(queue)?;
    if options.verify || options.measure.checksum {
        let gathered = Arc::clone(gathered);
        queue.host_task("gather").once(prices.read(all()), move |prices| {
            *gathered.lock().expect("nobody panics with the lock held") =
                prices.as_slice().to_vec();
        })?;
        queue.barrier()?;
    }
    let (nodes, devices) = (queue.nodes(), queue.devices());
    Ok(Outcome { is_root: queue.is_root(), nodes, devices, elapsed })
}

fn years(days: u32) -> f32 {
    days as f32 / 365.0
}

/// Compares with plain loops; returns how far prices are from those in double
/// precision, as a fraction of the larger of share and contract price.
fn check(options: &Options, actual: &[Prices]) -> Result<f64, Failure> {
    let tolerance = if options.fast { FAST_TOLERANCE } else { TOLERANCE };
    let mut most: f64 = 0.0;
    for (number, &actual) in actual.iter().enumerate() {
        let [share, strike, left] = contract(number);
        let contract = [share, strike, left - years(options.steps)];
        let expected = prices(contract, RATE, VOLATILITY);
        if !options.fast && actual.map(f32::to_bits) != expected.map(f32::to_bits) {
            return Err(Failure::Mismatch { number, contract, actual, expected });
        }
        let expected = in_double_precision(contract);
        let error = |side: usize| (f64::from(actual[side]) - expected[side]).abs();
        let off = error(0).max(error(1)) / f64::from(share.max(strike));
        // Written so that what is not a number fails.
        if off <= tolerance {
            most = most.max(off);
        } else {
            let failure =
                Failure::Inaccurate { number, contract, actual, expected, off, tolerance };
            return Err(failure);
        }
    }
    Ok(most)
}

fn in_double_precision(contract: Contract) -> [f64; 2] {
    let [share, strike, years] = contract.map(f64::from);
    let [rate, volatility] = [RATE, VOLATILITY].map(f64::from);
    let normal = |x: f64| 0.5 * celerity_kernel::math::erfc(-x * std::f64::consts::FRAC_1_SQRT_2);
    let deviation = volatility * years.sqrt();
    let d1 = ((share / strike).ln() + (rate + 0.5 * volatility * volatility) * years) / deviation;
    let d2 = d1 - deviation;
    let strike = strike * (-rate * years).exp();
    [share * normal(d1) - strike * normal(d2), strike * normal(-d2) - share * normal(-d1)]
}

fn report(options: &Options, outcome: &Outcome, prices: &[Prices]) {
    let measured = Measured {
        program: "black_scholes",
        devices: outcome.nodes * outcome.devices,
        size: options.options as usize,
        steps: u64::from(options.steps),
        elapsed: outcome.elapsed,
        work: options.options as f64,
        unit: "options",
    };
    println!(
        "black_scholes: {count}, {steps}, {cluster}, {seconds:.3} s, {rate:.1} million options/s",
        count = counted(options.options, "option"),
        steps = counted(options.steps, "day"),
        cluster = cluster(outcome.nodes, outcome.devices),
        seconds = outcome.elapsed.as_secs_f64(),
        rate = measured.rate(options.measure) / 1e6,
    );
    measured.print(options.measure, &[bytemuck::cast_slice(prices)]);
}
