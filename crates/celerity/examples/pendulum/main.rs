//! A pendulum over a board with magnets, on every node and device there is: a point of the picture is
//! where it is let go, its colour the magnet that it ends at.
//!
//! ```text
//! cargo run --release --example pendulum -- --size 512 --magnets 5
//! CELERITY_NODES=2 CELERITY_DEVICES=2 cargo run --release --example pendulum -- --verify
//! ```
//!
//! No point needs another one, so nothing travels but the magnets' places and the result (Euro-Par
//! 2019, section 4). How long a point takes differs by much, though: the farther from the centre, the
//! longer its pendulum swings.

#[path = "../support/cut.rs"]
mod cut;
#[path = "../support/numbers.rs"]
mod numbers;
#[path = "../support/stopwatch.rs"]
mod stopwatch;
#[path = "../support/mod.rs"]
mod support;

use std::f32::consts::TAU;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use celerity::prelude::*;
use celerity_example_kernels::pendulum::{LOWEST, Rest, Swing, pendulum, place, swing};
use clap::Parser;
use image::{ImageFormat, Rgb, RgbImage};

use cut::Cuts;
use numbers::positive;
use stopwatch::{Measure, Measured, Stopwatch, cluster, counted};
use support::{OutputError, check_writable, progress_bar};

/// Finds out over which magnet a pendulum comes to rest, from each point of a board, and draws the
/// board.
///
/// CELERITY_NODES and CELERITY_DEVICES choose how many nodes and devices share
/// the work; the result does not depend on them.
#[derive(Parser, Debug)]
struct Options {
    /// Points along each side of the board.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=32_768))]
    size: u32,
    /// Steps after which a pendulum is left where it is.
    #[arg(long, default_value_t = 4000)]
    steps: u32,
    /// Magnets, evenly on a circle around the centre of radius 1.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=64))]
    magnets: u32,
    /// How far the board reaches from the centre.
    #[arg(long, default_value_t = 2.0, value_parser = positive::<f32>)]
    reach: f32,
    /// How much the pendulum's speed falls, per time and speed.
    #[arg(long, default_value_t = Swing::USUAL.friction, value_parser = positive::<f32>)]
    friction: f32,
    /// How strongly it is drawn back to the centre, per distance.
    #[arg(long, default_value_t = Swing::USUAL.gravity, value_parser = positive::<f32>)]
    gravity: f32,
    /// How high above the board it swings, at least a millionth.
    #[arg(long, default_value_t = Swing::USUAL.height, value_parser = height)]
    height: f32,
    /// The time of a step.
    #[arg(long, default_value_t = Swing::USUAL.step, value_parser = positive::<f32>)]
    dt: f32,
    /// How often the board is computed, to be measured: always with the same result.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// The picture.
    #[arg(long, value_name = "FILE.png", default_value = "pendulum.png")]
    out: PathBuf,
    #[command(flatten)]
    cuts: Cuts,
    /// Compares the board with that of a sequential program.
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    measure: Measure,
}

fn height(text: &str) -> Result<f32, String> {
    match positive(text)? {
        height if height >= LOWEST => Ok(height),
        _ => Err(format!("give a number of at least {LOWEST:e}")),
    }
}

impl Options {
    fn swing(&self) -> Swing {
        let Self { friction, gravity, height, dt, .. } = *self;
        Swing { friction, gravity, height, step: dt }
    }

    /// Where magnets stand, the first to the right of the centre.
    fn places(&self) -> Vec<[f32; 2]> {
        let angle = |magnet: u32| TAU * magnet as f32 / self.magnets as f32;
        (0..self.magnets).map(|magnet| angle(magnet).sin_cos().into()).collect()
    }
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Runtime(#[from] celerity::Error),
    #[error(
        "verification failed: {count} of {points} points differ from the sequential program, \
         first at row {row}, column {column}: magnet {} after {} steps instead of {} after {}",
        .actual.magnet, .actual.steps, .expected.magnet, .expected.steps
    )]
    Mismatch {
        count: usize,
        points: usize,
        row: usize,
        column: usize,
        actual: Rest,
        expected: Rest,
    },
}

struct Outcome {
    is_root: bool,
    nodes: usize,
    devices: usize,
    elapsed: Duration,
    /// Row by row.
    board: Vec<Rest>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("pendulum: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    check_writable(&options.out)?;
    let outcome = celerity::run(|queue| let_go(queue, options))?;
    if !outcome.is_root {
        return Ok(());
    }
    save(options, &outcome.board)?;
    report(options, &outcome);
    if options.verify {
        compare(options, &outcome.board)?;
        println!("verified: every point equals that of the sequential program");
    }
    Ok(())
}

/// The program that every node runs.
fn let_go(queue: &Queue, options: &Options) -> celerity::Result<Outcome> {
    if options.verify {
        queue.require_results("--verify")?;
    }
    let range = [options.size as usize; 2];
    let places = options.places();
    let magnets = queue.buffer_from(places.len(), places)?.named("magnets");
    let [rest, after] = ["rest", "after"].map(|name| queue.buffer::<u32, 2>(range).named(name));
    let mut stopwatch = Stopwatch::start(options.measure);
    let bar = progress_bar(u64::from(options.rounds), queue.is_root());
    for round in 0..options.rounds {
        stopwatch.before_step(queue, u64::from(round))?;
        let accesses = (rest.write(one_to_one()), after.write(one_to_one()), magnets.read(all()));
        let kernel =
            pendulum { reach: options.reach, parameters: options.swing(), steps: options.steps };
        options.cuts.in_chunks(queue.task("swing")).launch(range, accesses, kernel)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    let elapsed = stopwatch.stop(queue)?;
    let (rest, after) = (queue.fence(&rest)?.wait()?, queue.fence(&after)?.wait()?);
    let both = rest.as_slice().iter().zip(after.as_slice());
    let board = both.map(|(&magnet, &steps)| Rest { magnet, steps }).collect();
    let (is_root, nodes, devices) = (queue.is_root(), queue.nodes(), queue.devices());
    Ok(Outcome { is_root, nodes, devices, elapsed, board })
}

/// Compares with the same by a plain loop. O(size² · steps · magnets).
fn compare(options: &Options, board: &[Rest]) -> Result<(), Failure> {
    let size = options.size as usize;
    let (places, parameters) = (options.places(), options.swing());
    let expected = |point: usize| {
        let from = place([point / size, point % size], size, options.reach);
        swing(from, parameters, options.steps, places.len(), |magnet| places[magnet])
    };
    let both = board.iter().enumerate().map(|(point, &actual)| (point, actual, expected(point)));
    let mut different = both.filter(|(_, actual, expected)| actual != expected);
    match different.next() {
        None => Ok(()),
        Some((point, actual, expected)) => Err(Failure::Mismatch {
            count: 1 + different.count(),
            points: board.len(),
            row: point / size,
            column: point % size,
            actual,
            expected,
        }),
    }
}

/// A hue per magnet; the darker, the longer it took.
fn save(options: &Options, board: &[Rest]) -> Result<(), OutputError> {
    let slowest = board.iter().map(|rest| rest.steps).max().unwrap_or(0).max(1) as f32;
    let picture = RgbImage::from_fn(options.size, options.size, |x, y| {
        let Rest { magnet, steps } = board[y as usize * options.size as usize + x as usize];
        colour(magnet as f32 / options.magnets as f32, 1.0 - 0.85 * steps as f32 / slowest)
    });
    write(&options.out, &picture)
}

fn write(path: &Path, picture: &RgbImage) -> Result<(), OutputError> {
    picture
        .save_with_format(path, ImageFormat::Png)
        .map_err(|error| OutputError::new(path, std::io::Error::other(error)))
}

/// The colour of a hue, as a part of a circle, in this light, from 0 to 1.
fn colour(hue: f32, light: f32) -> Rgb<u8> {
    let channel = |shift: f32| 0.55 + 0.45 * (TAU * (hue + shift)).cos();
    Rgb([0.0, 2.0 / 3.0, 1.0 / 3.0].map(|shift| (255.0 * light * channel(shift)) as u8))
}

fn report(options: &Options, outcome: &Outcome) {
    let steps: u64 = outcome.board.iter().map(|rest| u64::from(rest.steps)).sum();
    let measured = Measured {
        program: "pendulum",
        devices: outcome.nodes * outcome.devices,
        size: options.size as usize,
        steps: u64::from(options.rounds),
        elapsed: outcome.elapsed,
        work: steps as f64,
        unit: "swings",
    };
    println!(
        "pendulum: {size}×{size} points, {magnets}, {steps} on average, {cluster}, {seconds:.3} s, \
         {rate:.1} million steps/s, {out}",
        size = options.size,
        magnets = counted(options.magnets, "magnet"),
        steps = counted(steps / outcome.board.len() as u64, "step"),
        cluster = cluster(outcome.nodes, outcome.devices),
        seconds = outcome.elapsed.as_secs_f64(),
        rate = measured.rate(options.measure) / 1e6,
        out = options.out.display(),
    );
    let numbers: Vec<u32> =
        outcome.board.iter().flat_map(|rest| [rest.magnet, rest.steps]).collect();
    measured.print(options.measure, &[bytemuck::cast_slice(&numbers)]);
}
