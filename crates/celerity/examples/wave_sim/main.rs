//! The 2-D wave equation on every node and device there is.
//!
//! ```text
//! cargo run --release --example wave_sim -- --size 1024 --steps 600 --verify
//! CELERITY_NODES=2 CELERITY_DEVICES=3 cargo run --release --example wave_sim
//! ```
//!
//! The field comes out the same, bit for bit, however it is split.

#[path = "../support/cut.rs"]
mod cut;
#[path = "../support/film.rs"]
mod film;
mod physics;
mod picture;
#[path = "../support/stopwatch.rs"]
mod stopwatch;
#[path = "../support/mod.rs"]
mod support;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use celerity::prelude::*;
use celerity_example_kernels::wave::{wave_fill, wave_first, wave_step, wave_step_row};
use clap::{Parser, ValueEnum};

use cut::Cuts;
use film::Film;
use physics::COURANT_SQUARED;
use picture::paint;
use stopwatch::{Measure, Measured, Stopwatch, cluster, counted};
use support::{OutputError, progress_bar};

/// Simulates the 2-D wave equation and writes a picture of the field.
///
/// CELERITY_NODES and CELERITY_DEVICES choose how many nodes and devices share
/// the work; the result does not depend on them.
#[derive(Parser, Debug)]
struct Options {
    /// Cells along each side of the square field.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    size: u32,
    /// Time steps.
    #[arg(long, default_value_t = 300)]
    steps: u64,
    /// The picture; with several frames, FILE_000.png and so on.
    #[arg(long, value_name = "FILE.png", default_value = "wave_sim.png")]
    out: PathBuf,
    /// Pictures, spread evenly over the steps; the last one after the last step. With 0
    /// there are none.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(..=10_000))]
    frames: u32,
    /// How the kernel is written: for one cell or for a run of cells.
    #[arg(long, value_enum, default_value_t = Kernel::Row)]
    kernel: Kernel,
    #[command(flatten)]
    cuts: Cuts,
    /// Compares the final field with that of a sequential program.
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    measure: Measure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kernel {
    /// Called for each cell.
    Item,
    /// Called for each run of cells of a row; vectorises.
    Row,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{frames} frames need at least as many steps, but there are {steps}")]
    MoreFramesThanSteps { frames: u32, steps: u64 },
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Runtime(#[from] celerity::Error),
    #[error(
        "verification failed: {count} of {cells} cells differ from the sequential program, \
         first at row {row}, column {column}: {actual:e} instead of {expected:e}"
    )]
    Mismatch { count: usize, cells: usize, row: usize, column: usize, actual: f32, expected: f32 },
}

/// What a node knows after the run.
struct Outcome {
    /// Whether the host tasks of this process have gathered anything.
    is_root: bool,
    nodes: usize,
    devices: usize,
    /// Of all steps that are timed, without the last picture.
    elapsed: Duration,
}

/// The final field, on the node that gathers it.
type FinalField = Arc<Mutex<Vec<f32>>>;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("wave_sim: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    let Options { frames, steps, .. } = *options;
    if u64::from(frames) > steps.max(1) {
        return Err(Failure::MoreFramesThanSteps { frames, steps });
    }
    let film = Arc::new(Film::new(&options.out, frames as usize));
    film.check_writable()?;
    let field = FinalField::default();
    let outcome = celerity::run(|queue| simulate(queue, options, &film, &field))?;
    if !outcome.is_root {
        return Ok(());
    }
    film.finish()?;
    if options.verify {
        let field = field.lock().expect("no host task panicked");
        compare(&field, &physics::reference(options.size as usize, steps), options.size as usize)?;
        println!("verified: every cell equals that of the sequential program, bit for bit");
    }
    report(options, &film, &outcome, &field.lock().expect("no host task panicked"));
    Ok(())
}

/// The program that every node runs.
fn simulate(
    queue: &Queue,
    options: &Options,
    film: &Arc<Film>,
    field: &FinalField,
) -> celerity::Result<Outcome> {
    if options.verify {
        queue.require_results("--verify")?;
    }
    let mut stopwatch = Stopwatch::start(options.measure);
    let size = options.size as usize;
    let mut current = queue.buffer::<f32, 2>([size, size]).named("u");
    let mut other = queue.buffer::<f32, 2>([size, size]).named("up");
    fill(queue, options, &current)?;

    let bar = progress_bar(options.steps, queue.is_root());
    let mut frame = 0;
    for number in 0..options.steps {
        stopwatch.before_step(queue, number)?;
        match number {
            0 => first_step(queue, options, &other, &current)?,
            _ => step(queue, options, &other, &current)?,
        }
        std::mem::swap(&mut current, &mut other);
        if film.is_due(frame, number + 1, options.steps) && number + 1 < options.steps {
            shoot(queue, &current, film, frame)?;
            frame += 1;
        }
        bar.inc(1);
    }
    let elapsed = stopwatch.stop(queue)?;
    if options.frames > 0 || options.verify || options.measure.checksum {
        shoot_last(queue, &current, film, frame, field)?;
    }
    queue.barrier()?;
    bar.finish_and_clear();
    let (nodes, devices) = (queue.nodes(), queue.devices());
    Ok(Outcome { is_root: queue.is_root(), nodes, devices, elapsed })
}

fn fill(queue: &Queue, options: &Options, u: &Buffer<f32, 2>) -> celerity::Result<()> {
    let fill = wave_fill { size: u.range()[0] };
    let task = options.cuts.among_devices(queue.task("fill"));
    task.launch(u.range(), u.write(one_to_one()), fill)?;
    Ok(())
}

fn first_step(
    queue: &Queue,
    options: &Options,
    up: &Buffer<f32, 2>,
    u: &Buffer<f32, 2>,
) -> celerity::Result<()> {
    let accesses = (up.write(one_to_one()), u.read(neighborhood_along_axes([1, 1])));
    let first = wave_first { c: COURANT_SQUARED };
    let task = options.cuts.among_devices(queue.task("first_step"));
    task.launch(u.range(), accesses, first)?;
    Ok(())
}

fn step(
    queue: &Queue,
    options: &Options,
    up: &Buffer<f32, 2>,
    u: &Buffer<f32, 2>,
) -> celerity::Result<()> {
    let accesses = (up.read_write(one_to_one()), u.read(neighborhood_along_axes([1, 1])));
    let (range, c) = (u.range(), COURANT_SQUARED);
    let task = options.cuts.in_chunks(queue.task("step"));
    match options.kernel {
        Kernel::Item => task.launch(range, accesses, wave_step { c })?,
        Kernel::Row => task.launch(range, accesses, wave_step_row { c })?,
    };
    Ok(())
}

/// Writes a picture on one node, while the others and the devices go on.
fn shoot(
    queue: &Queue,
    u: &Buffer<f32, 2>,
    film: &Arc<Film>,
    frame: usize,
) -> celerity::Result<()> {
    let film = Arc::clone(film);
    queue.host_task("picture").once(u.read(all()), move |u| {
        film.shoot(frame, &paint(u.as_slice(), u.range()[0]));
    })?;
    Ok(())
}

/// The last picture, if there is one, whose field is also kept to be verified.
fn shoot_last(
    queue: &Queue,
    u: &Buffer<f32, 2>,
    film: &Arc<Film>,
    frame: usize,
    field: &FinalField,
) -> celerity::Result<()> {
    let (film, field) = (Arc::clone(film), Arc::clone(field));
    queue.host_task("last_picture").once(u.read(all()), move |u| {
        if !film.paths().is_empty() {
            film.shoot(frame, &paint(u.as_slice(), u.range()[0]));
        }
        *field.lock().expect("nobody panics with the lock held") = u.as_slice().to_vec();
    })?;
    Ok(())
}

fn compare(actual: &[f32], expected: &[f32], size: usize) -> Result<(), Failure> {
    let differs = |cell: &usize| actual[*cell].to_bits() != expected[*cell].to_bits();
    let mut different = (0..expected.len()).filter(differs);
    match different.next() {
        None => Ok(()),
        Some(first) => Err(Failure::Mismatch {
            count: 1 + different.count(),
            cells: expected.len(),
            row: first / size,
            column: first % size,
            actual: actual[first],
            expected: expected[first],
        }),
    }
}

fn report(options: &Options, film: &Film, outcome: &Outcome, field: &[f32]) {
    let measured = Measured {
        program: "wave_sim",
        devices: outcome.nodes * outcome.devices,
        size: options.size as usize,
        steps: options.steps,
        elapsed: outcome.elapsed,
        work: f64::from(options.size).powi(2),
        unit: "cells",
    };
    println!(
        "wave_sim: {size}×{size}, {steps}, {cluster}, {seconds:.3} s, {rate:.0} Mcell/s{pictures}",
        size = options.size,
        steps = counted(options.steps, "step"),
        cluster = cluster(outcome.nodes, outcome.devices),
        seconds = outcome.elapsed.as_secs_f64(),
        rate = measured.rate(options.measure) / 1e6,
        pictures = match film.paths() {
            [] => String::new(),
            [only] => format!(", {}", only.display()),
            [first, .., last] => format!(", {} to {}", first.display(), last.display()),
        },
    );
    measured.print(options.measure, &[bytemuck::cast_slice(field)]);
}
