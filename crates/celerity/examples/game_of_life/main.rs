//! Conway's Game of Life on a torus, on every node and device there is.
//!
//! ```text
//! cargo run --release --example game_of_life -- --size 256 --steps 400 --verify
//! CELERITY_NODES=2 CELERITY_DEVICES=3 cargo run --release --example game_of_life -- --frames 40
//! ```
//!
//! Opposite edges of the world meet: its kernel reads a periodic neighbourhood, and nothing in this
//! program copies borders.

#[path = "../support/cut.rs"]
mod cut;
#[path = "../support/film.rs"]
mod film;
#[path = "../support/stopwatch.rs"]
mod stopwatch;
#[path = "../support/mod.rs"]
mod support;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use celerity::prelude::*;
use celerity_example_kernels::life::{life_fill, life_step, life_step_row};
use clap::{Parser, ValueEnum};

use cut::Cuts;
use film::Film;
use stopwatch::{Measure, Measured, Stopwatch, cluster, counted};
use support::{OutputError, progress_bar};

/// Plays Conway's Game of Life on a torus and writes pictures of it.
///
/// CELERITY_NODES and CELERITY_DEVICES choose how many nodes and devices share
/// the work; the result does not depend on them.
#[derive(Parser, Debug)]
struct Options {
    /// Cells along each side of the world.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    size: u32,
    /// Generations.
    #[arg(long, default_value_t = 400)]
    steps: u64,
    /// Which cells live at the start: a world is the same for the same number.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The picture; with several frames, FILE_000.png and so on.
    #[arg(long, value_name = "FILE.png", default_value = "game_of_life.png")]
    out: PathBuf,
    /// Pictures, spread evenly over the generations; the last one after the last generation. With
    /// 0 there are none.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(..=10_000))]
    frames: u32,
    /// How the kernel is written: for one cell or for a run of cells.
    #[arg(long, value_enum, default_value_t = Kernel::Row)]
    kernel: Kernel,
    #[command(flatten)]
    cuts: Cuts,
    /// Compares the last generation with that of a sequential program.
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
         first at row {row}, column {column}"
    )]
    Mismatch { count: usize, cells: usize, row: usize, column: usize },
}

/// What a node knows after the run.
struct Outcome {
    /// Whether the host tasks of this process have gathered anything.
    is_root: bool,
    nodes: usize,
    devices: usize,
    /// Of all generations that are timed, without the last picture.
    elapsed: Duration,
}

/// The last generation, on the node that gathers it.
type Last = Arc<Mutex<Vec<u8>>>;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("game_of_life: {failure}");
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
    let last = Last::default();
    let outcome = celerity::run(|queue| play(queue, options, &film, &last))?;
    if !outcome.is_root {
        return Ok(());
    }
    film.finish()?;
    let cells = last.lock().expect("no host task panicked");
    if options.verify {
        compare(&cells, &world::reference(options.size as usize, steps, options.seed), options)?;
        println!("verified: every cell equals that of the sequential program");
    }
    report(options, &film, &outcome, &cells);
    Ok(())
}

/// The program that every node runs.
fn play(
    queue: &Queue,
    options: &Options,
    film: &Arc<Film>,
    last: &Last,
) -> celerity::Result<Outcome> {
    if options.verify {
        queue.require_results("--verify")?;
    }
    let mut stopwatch = Stopwatch::start(options.measure);
    let range = [options.size as usize; 2];
    let mut current = queue.buffer::<u8, 2>(range).named("world");
    let mut other = queue.buffer::<u8, 2>(range).named("next world");
    let fill = life_fill { seed: options.seed };
    let task = options.cuts.among_devices(queue.task("fill"));
    task.launch(range, current.write(one_to_one()), fill)?;

    let bar = progress_bar(options.steps, queue.is_root());
    let mut frame = 0;
    for number in 0..options.steps {
        stopwatch.before_step(queue, number)?;
        step(queue, options, &other, &current)?;
        std::mem::swap(&mut current, &mut other);
        if film.is_due(frame, number + 1, options.steps) && number + 1 < options.steps {
            shoot(queue, &current, film, frame)?;
            frame += 1;
        }
        bar.inc(1);
    }
    let elapsed = stopwatch.stop(queue)?;
    if options.frames > 0 || options.verify || options.measure.checksum {
        shoot_last(queue, &current, film, frame, last)?;
    }
    queue.barrier()?;
    bar.finish_and_clear();
    let (nodes, devices) = (queue.nodes(), queue.devices());
    Ok(Outcome { is_root: queue.is_root(), nodes, devices, elapsed })
}

/// One generation. What a part reads beyond its own cells comes from its neighbours, and at opposite edges of the
/// world from each other.
fn step(
    queue: &Queue,
    options: &Options,
    next: &Buffer<u8, 2>,
    world: &Buffer<u8, 2>,
) -> celerity::Result<()> {
    let accesses = (next.write(one_to_one()), world.read(neighborhood([1, 1]).periodic()));
    let (range, task) = (next.range(), options.cuts.in_chunks(queue.task("step")));
    match options.kernel {
        Kernel::Item => task.launch(range, accesses, life_step)?,
        Kernel::Row => task.launch(range, accesses, life_step_row)?,
    };
    Ok(())
}

/// Writes a picture on one node, while the others and the devices go on.
fn shoot(
    queue: &Queue,
    cells: &Buffer<u8, 2>,
    film: &Arc<Film>,
    frame: usize,
) -> celerity::Result<()> {
    let film = Arc::clone(film);
    queue.host_task("picture").once(cells.read(all()), move |cells| {
        film.shoot(frame, &world::paint(cells.as_slice(), cells.range()[0]));
    })?;
    Ok(())
}

/// The last picture, if there is one, whose cells are also kept to be verified.
fn shoot_last(
    queue: &Queue,
    cells: &Buffer<u8, 2>,
    film: &Arc<Film>,
    frame: usize,
    last: &Last,
) -> celerity::Result<()> {
    let (film, last) = (Arc::clone(film), Arc::clone(last));
    queue.host_task("last_picture").once(cells.read(all()), move |cells| {
        if !film.paths().is_empty() {
            film.shoot(frame, &world::paint(cells.as_slice(), cells.range()[0]));
        }
        *last.lock().expect("nobody panics with the lock held") = cells.as_slice().to_vec();
    })?;
    Ok(())
}

fn compare(actual: &[u8], expected: &[u8], options: &Options) -> Result<(), Failure> {
    let mut different = (0..expected.len()).filter(|&cell| actual[cell] != expected[cell]);
    let size = options.size as usize;
    match different.next() {
        None => Ok(()),
        Some(first) => Err(Failure::Mismatch {
            count: 1 + different.count(),
            cells: expected.len(),
            row: first / size,
            column: first % size,
        }),
    }
}

fn report(options: &Options, film: &Film, outcome: &Outcome, cells: &[u8]) {
    let measured = Measured {
        program: "game_of_life",
        devices: outcome.nodes * outcome.devices,
        size: options.size as usize,
        steps: options.steps,
        elapsed: outcome.elapsed,
        work: f64::from(options.size).powi(2),
        unit: "cells",
    };
    println!(
        "game_of_life: {size}×{size}, {steps}, {cluster}, {seconds:.3} s, {rate:.0} Mcell/s{pictures}",
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
    measured.print(options.measure, &[cells]);
}
