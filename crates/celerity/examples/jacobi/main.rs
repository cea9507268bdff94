//! How heat spreads in a plate until nothing changes any more, on every node and device there is.
//!
//! ```text
//! cargo run --release --example jacobi -- --size 64 --tolerance 1e-4 --verify
//! CELERITY_NODES=2 CELERITY_TRACE=trace.json cargo run --release --example jacobi
//! ```
//!
//! The plate is hot along its upper edge and cold along the others. Each step of Jacobi's method
//! replaces every cell by the mean of its four neighbours, and *reduces* how much that has changed
//! the cells: the greatest change of all. The loop ends when that is small. It looks at the change
//! of an earlier step while later ones are under way, so that no device waits for the program to
//! decide: with `--ahead 0` one can see what that would cost.

#[path = "../support/cut.rs"]
mod cut;
#[path = "../support/stopwatch.rs"]
mod stopwatch;
#[path = "../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use celerity::Max;
use celerity::prelude::*;
use celerity_example_kernels::plate::{beginning, is_edge, mean, plate_heat, plate_relax};
use clap::Parser;
use image::{ImageFormat, Rgb, RgbImage};

use cut::Cuts;
use stopwatch::{Measure, Measured, Stopwatch, cluster, counted};
use support::{OutputError, check_writable, progress_bar};

/// Lets heat spread in a square plate until no cell changes by more than a tolerance, and draws the
/// plate.
///
/// CELERITY_NODES and CELERITY_DEVICES choose how many nodes and devices share
/// the work; the result does not depend on them.
#[derive(Parser, Debug)]
struct Options {
    /// Cells along each edge of the plate.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(3..=32_768))]
    size: u32,
    /// Ends when no cell changes by more than this in a step.
    #[arg(long, default_value_t = 1e-4, value_parser = tolerance)]
    tolerance: f32,
    /// Ends after so many steps in any case.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// Steps that are submitted before the change of one is looked at.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(0..=1024))]
    ahead: u32,
    /// The picture.
    #[arg(long, value_name = "FILE.png", default_value = "jacobi.png")]
    out: PathBuf,
    #[command(flatten)]
    cuts: Cuts,
    /// Compares the plate, and all changes, with those of a sequential program.
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    measure: Measure,
}

fn tolerance(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(tolerance) if tolerance > 0.0 => Ok(tolerance),
        _ => Err("give a number above 0".into()),
    }
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Runtime(#[from] celerity::Error),
    #[error("verification failed: {what} is {actual:e} instead of {expected:e}")]
    Mismatch { what: String, actual: f32, expected: f32 },
}

struct Outcome {
    nodes: usize,
    devices: usize,
    /// The greatest change of each step.
    changes: Vec<f32>,
    elapsed: Duration,
    /// The plate at the end, on node 0.
    plate: Option<Vec<f32>>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("jacobi: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    check_writable(&options.out)?;
    let outcome = celerity::run(|queue| relax(queue, options))?;
    let Some(plate) = &outcome.plate else { return Ok(()) };
    save(&options.out, plate, options.size)?;
    report(options, &outcome, plate);
    if options.verify {
        compare(options.size as usize, plate, &outcome.changes)?;
        println!("verified: every number equals that of the sequential program, bit for bit");
    }
    Ok(())
}

/// The program that every node runs.
fn relax(queue: &Queue, options: &Options) -> celerity::Result<Outcome> {
    if options.verify {
        queue.require_results("--verify")?;
    }
    let mut stopwatch = Stopwatch::start(options.measure);
    let size = options.size as usize;
    let mut plate = queue.buffer::<f32, 2>([size; 2]).named("plate");
    let mut next = queue.buffer::<f32, 2>([size; 2]).named("next");
    let change = queue.buffer::<f32, 0>([]).named("change");
    let task = options.cuts.among_devices(queue.task("heat"));
    task.launch([size; 2], plate.write(one_to_one()), plate_heat {})?;
    let bar = progress_bar(u64::from(options.steps), queue.is_root());
    let (mut behind, mut changes) = (LookBehind::new(options.ahead as usize), Vec::new());
    for step in 0..options.steps {
        stopwatch.before_step(queue, u64::from(step))?;
        let around = plate.read(neighborhood_along_axes([1, 1]));
        let accesses = (around, next.write(one_to_one()), change.reduce(Max));
        let task = options.cuts.in_chunks(queue.task("relax"));
        task.launch([size; 2], accesses, plate_relax {})?;
        std::mem::swap(&mut plate, &mut next);
        bar.inc(1);
        // The change of an earlier step, while this one and others are under way.
        if let Some(change) = behind.look(queue.fence(&change)?)? {
            changes.push(change[[]]);
            if change[[]] <= options.tolerance {
                break;
            }
        }
    }
    for change in behind.rest() {
        changes.push(change?[[]]);
    }
    let elapsed = stopwatch.stop(queue)?;
    bar.finish_and_clear();
    let plate = queue.finish(plate.capture().on_node(0))?.map(Snapshot::into_vec);
    let plate = plate.filter(|_| queue.is_root());
    let (nodes, devices) = (queue.nodes(), queue.devices());
    Ok(Outcome { nodes, devices, changes, elapsed, plate })
}

/// Compares with the same by plain loops. O(size² · steps).
fn compare(size: usize, plate: &[f32], changes: &[f32]) -> Result<(), Failure> {
    let cells = || (0..size).flat_map(|y| (0..size).map(move |x| [y, x]));
    let mut expected: Vec<f32> = cells().map(beginning).collect();
    for (step, &actual) in changes.iter().enumerate() {
        let relaxed = |[y, x]: [usize; 2]| match is_edge([y, x], size) {
            true => expected[y * size + x],
            false => {
                let at = |y: usize, x: usize| expected[y * size + x];
                mean([at(y - 1, x), at(y + 1, x), at(y, x - 1), at(y, x + 1)])
            }
        };
        let next: Vec<f32> = cells().map(relaxed).collect();
        let change = next.iter().zip(&expected).map(|(next, here)| (next - here).abs());
        let change = change.fold(0.0, f32::max);
        check(|| format!("the change in step {step}"), actual, change)?;
        expected = next;
    }
    let both = plate.iter().zip(&expected).zip(cells());
    let mut checks = both
        .map(|((&actual, &expected), cell)| check(|| format!("cell {cell:?}"), actual, expected));
    checks.try_for_each(|check| check)
}

fn check(what: impl Fn() -> String, actual: f32, expected: f32) -> Result<(), Failure> {
    match actual.to_bits() == expected.to_bits() {
        true => Ok(()),
        false => Err(Failure::Mismatch { what: what(), actual, expected }),
    }
}

/// Draws the plate: cold blue, hot red.
fn save(path: &Path, plate: &[f32], size: u32) -> Result<(), OutputError> {
    let picture = RgbImage::from_fn(size, size, |x, y| {
        let heat = plate[(y * size + x) as usize].clamp(0.0, 1.0).sqrt();
        let channel = |cold: f32, hot: f32| (cold + (hot - cold) * heat) as u8;
        Rgb([channel(20.0, 230.0), channel(40.0, 80.0), channel(110.0, 30.0)])
    });
    picture
        .save_with_format(path, ImageFormat::Png)
        .map_err(|error| OutputError::new(path, std::io::Error::other(error)))
}

fn report(options: &Options, outcome: &Outcome, plate: &[f32]) {
    let steps = outcome.changes.len() as u64;
    let measured = Measured {
        program: "jacobi",
        devices: outcome.nodes * outcome.devices,
        size: options.size as usize,
        steps,
        elapsed: outcome.elapsed,
        work: f64::from(options.size).powi(2),
        unit: "cells",
    };
    println!(
        "jacobi: {size}² cells, {steps}, last change {change:e}, {cluster}, {seconds:.3} s, \
         {rate:.1} million cells/s, {out}",
        size = options.size,
        steps = counted(steps, "step"),
        change = outcome.changes.last().copied().unwrap_or_default(),
        cluster = cluster(outcome.nodes, outcome.devices),
        seconds = outcome.elapsed.as_secs_f64(),
        rate = measured.rate(options.measure) / 1e6,
        out = options.out.display(),
    );
    measured.print(options.measure, &[bytemuck::cast_slice(plate)]);
}
