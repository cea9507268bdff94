//! What nodes send each other when every item reads everything, one item does all the work, rows
//! become columns, or neighbours look at each other, on every node and device there is.
//!
//! ```text
//! cargo run --release --example patterns -- --pattern all-gather --verify
//! CELERITY_NODES=4 cargo run --release --example patterns -- --pattern all-to-all --size 1024
//! CELERITY_DRY_RUN_NODES=256 cargo run --release --example patterns -- --pattern all-gather
//! CELERITY_NODES=2 cargo run --release --example patterns -- --pattern bare-all-gather --size 16777216
//! ```
//!
//! These are the five programs by which the paper on the discovery of collectives measures (IJPP
//! 2024, table 3). Each step reads one buffer and writes another one, and both change places.

#[path = "../support/stopwatch.rs"]
mod stopwatch;

mod twin;

use std::process::ExitCode;
use std::time::Duration;

use celerity::IntoRange;
use celerity::prelude::*;
use celerity_example_kernels::patterns::{
    mix_all, mix_alone, mix_around, mix_own, mix_turned, touch_nothing,
};
use clap::{Parser, ValueEnum};

use stopwatch::{Measure, Measured, Stopwatch, cluster, counted};

/// Lets nodes exchange elements in one of five patterns, and says how long a step takes.
///
/// CELERITY_NODES and CELERITY_DEVICES choose how many nodes and devices share
/// the work; the result does not depend on them.
#[derive(Parser, Debug)]
struct Options {
    /// Who reads what.
    #[arg(long, value_enum, default_value_t = Pattern::AllGather)]
    pattern: Pattern,
    /// Elements, or elements of a side where the buffers have two dimensions.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    size: u32,
    /// How often.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// Compares with a sequential program.
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    measure: Measure,
}

/// Who reads what (IJPP 2024, table 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Pattern {
    /// Every item reads all elements and writes its own.
    AllGather,
    /// The same, by kernels that touch nothing, so that a step is what nodes send each other. Elements lie in
    /// rows, of which an item has one.
    BareAllGather,
    /// One item reads and writes all elements; then each item reads its own.
    GatherScatter,
    /// One item reads and writes all elements; then every item reads all of them.
    GatherBroadcast,
    /// Each item reads the element with its two indices exchanged.
    AllToAll,
    /// Each item reads its neighbours: no collective.
    Stencil,
}

impl Pattern {
    /// How many dimensions the buffers have.
    const fn dims(self) -> u32 {
        match self {
            Self::AllGather | Self::GatherScatter | Self::GatherBroadcast => 1,
            Self::BareAllGather | Self::AllToAll | Self::Stencil => 2,
        }
    }
}

/// Rows of elements of the pattern whose kernels touch nothing.
const ROWS: usize = 1024;

/// What an element is at the beginning.
fn beginning(index: usize) -> u32 {
    (index as u32).wrapping_mul(0x85eb_ca6b) ^ 0x5bd1_e995
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0} is too large; choose less than 16,384 elements per side")]
    TooLarge(u32),
    #[error("{0} elements are no {ROWS} rows; choose a multiple")]
    Uneven(u32),
    #[error("a pattern whose kernels touch nothing has no results to verify")]
    NothingToVerify,
    #[error(transparent)]
    Runtime(#[from] celerity::Error),
    #[error("verification failed: element {index} is {actual:#x} instead of {expected:#x}")]
    Mismatch { index: usize, actual: u32, expected: u32 },
}

struct Outcome {
    nodes: usize,
    devices: usize,
    elapsed: Duration,
    /// The elements at the end, on node 0.
    elements: Option<Vec<u32>>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("patterns: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    match options.pattern {
        Pattern::BareAllGather if options.verify => return Err(Failure::NothingToVerify),
        Pattern::BareAllGather if !(options.size as usize).is_multiple_of(ROWS) => {
            return Err(Failure::Uneven(options.size));
        }
        Pattern::AllToAll | Pattern::Stencil if options.size >= 1 << 14 => {
            return Err(Failure::TooLarge(options.size));
        }
        _ => {}
    }
    let outcome = celerity::run(|queue| exchange(queue, options))?;
    let Some(elements) = &outcome.elements else { return Ok(()) };
    report(options, &outcome, elements);
    if options.verify {
        compare(options, elements)?;
        println!("verified: every element equals that of the sequential program");
    }
    Ok(())
}

/// The program that every node runs.
fn exchange(queue: &Queue, options: &Options) -> celerity::Result<Outcome> {
    if options.verify {
        queue.require_results("--verify")?;
    }
    let size = options.size as usize;
    let rows = [ROWS, size / ROWS];
    let elapsed_and_elements = match options.pattern.dims() {
        _ if options.pattern == Pattern::BareAllGather => {
            steps(queue, options, rows, |_, from, to| {
                let accesses = (from.read(all()), to.write(slice(1)));
                queue.task("nothing").launch([ROWS, 1], accesses, touch_nothing {}).map(drop)
            })
        }
        1 => steps(queue, options, size, |pattern, from, to| {
            step_of_line(queue, pattern, size, from, to)
        }),
        _ => steps(queue, options, [size; 2], |pattern, from, to| {
            step_of_field(queue, pattern, [size; 2], from, to)
        }),
    };
    let (elapsed, elements) = elapsed_and_elements?;
    let (nodes, devices) = (queue.nodes(), queue.devices());
    Ok(Outcome { nodes, devices, elapsed, elements })
}

/// All steps over buffers of some dimensions; returns how long they took, and the elements.
fn steps<const D: usize>(
    queue: &Queue,
    options: &Options,
    range: impl IntoRange<D> + Copy,
    step: impl Fn(Pattern, &mut Buffer<u32, D>, &mut Buffer<u32, D>) -> celerity::Result<()>,
) -> celerity::Result<(Duration, Option<Vec<u32>>)> {
    let mut stopwatch = Stopwatch::start(options.measure);
    let count: usize = range.into_range().iter().product();
    let beginning: Vec<u32> = (0..count).map(beginning).collect();
    let mut from = queue.buffer_from(range, beginning)?.named("from");
    let mut to = queue.buffer::<u32, D>(range).named("to");
    for number in 0..options.steps {
        stopwatch.before_step(queue, u64::from(number))?;
        step(options.pattern, &mut from, &mut to)?;
        std::mem::swap(&mut from, &mut to);
    }
    let elapsed = stopwatch.stop(queue)?;
    let elements = queue.finish(from.capture().on_node(0))?.map(Snapshot::into_vec);
    Ok((elapsed, elements.filter(|_| queue.is_root())))
}

/// A step over buffers of one dimension, the result in `to`.
fn step_of_line(
    queue: &Queue,
    pattern: Pattern,
    size: usize,
    from: &mut Buffer<u32, 1>,
    to: &mut Buffer<u32, 1>,
) -> celerity::Result<()> {
    if pattern != Pattern::AllGather {
        let accesses = (from.read(all()), to.write(slice(0)));
        queue.task("alone").launch(1, accesses, mix_alone {})?;
        std::mem::swap(from, to);
    }
    match pattern {
        Pattern::GatherScatter => {
            let accesses = (from.read(one_to_one()), to.write(one_to_one()));
            queue.task("own").launch(size, accesses, mix_own {})?;
        }
        _ => {
            let accesses = (from.read(all()), to.write(one_to_one()));
            queue.task("all").launch(size, accesses, mix_all {})?;
        }
    }
    Ok(())
}

/// A step over buffers of two dimensions.
fn step_of_field(
    queue: &Queue,
    pattern: Pattern,
    size: [usize; 2],
    from: &mut Buffer<u32, 2>,
    to: &mut Buffer<u32, 2>,
) -> celerity::Result<()> {
    match pattern {
        Pattern::AllToAll => {
            let accesses = (from.read(transposed()), to.write(one_to_one()));
            queue.task("turn").launch(size, accesses, mix_turned {})?;
        }
        _ => {
            let accesses = (from.read(neighborhood([1, 1])), to.write(one_to_one()));
            queue.task("around").launch(size, accesses, mix_around {})?;
        }
    }
    Ok(())
}

fn compare(options: &Options, elements: &[u32]) -> Result<(), Failure> {
    let expected = twin::after(options.pattern, options.size as usize, options.steps);
    let mut both = elements.iter().zip(&expected).enumerate();
    match both.find(|(_, (actual, expected))| actual != expected) {
        Some((index, (&actual, &expected))) => Err(Failure::Mismatch { index, actual, expected }),
        None => Ok(()),
    }
}

fn report(options: &Options, outcome: &Outcome, elements: &[u32]) {
    let steps = u64::from(options.steps);
    let measured = Measured {
        program: "patterns",
        devices: outcome.nodes * outcome.devices,
        size: options.size as usize,
        steps,
        elapsed: outcome.elapsed,
        work: elements.len() as f64,
        unit: "elements",
    };
    println!(
        "patterns: {pattern}, {count} elements, {steps}, {cluster}, {seconds:.3} s, \
         {rate:.1} million elements/s",
        pattern = options.pattern.to_possible_value().expect("none is hidden").get_name(),
        count = elements.len(),
        steps = counted(steps, "step"),
        cluster = cluster(outcome.nodes, outcome.devices),
        seconds = outcome.elapsed.as_secs_f64(),
        rate = measured.rate(options.measure) / 1e6,
    );
    measured.print(options.measure, &[bytemuck::cast_slice(elements)]);
}
