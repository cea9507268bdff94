//! The Mandelbrot set on every node and device there is: for each point c of a square, after how many
//! steps z² + c escapes.
//!
//! ```text
//! cargo run --release --example mandelbrot -- --size 1024
//! cargo run --release --example mandelbrot -- --centre -0.743644 0.131826 --reach 2e-5 --limit 5000 --precision double
//! CELERITY_NODES=2 CELERITY_DEVICES=2 cargo run --release --example mandelbrot -- --bands 8 --verify
//! ```
//!
//! No point needs another one, and nothing travels but the result. Points within the set take all
//! steps, those far away a few. So it is not enough that all devices have as many points: with `--bands`,
//! rows are computed band by band, and each device has a part of each.

#[path = "../support/cut.rs"]
mod cut;
#[path = "../support/numbers.rs"]
mod numbers;
mod picture;
#[path = "../support/stopwatch.rs"]
mod stopwatch;
#[path = "../support/mod.rs"]
mod support;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use celerity::prelude::*;
use celerity_example_kernels::mandelbrot::{Complex, escape, mandelbrot, mandelbrot_fast, place};
use celerity_kernel::Kernel as Compiled;
use celerity_kernel::math::Float;
use clap::{Parser, ValueEnum};

use cut::Cuts;
use numbers::positive;
use stopwatch::{Measure, Measured, Stopwatch, cluster, counted};
use support::{OutputError, check_writable, progress_bar};

/// Of the points, as many may escape earlier or later in the fast form: there are no more than that
/// close to the border of the set, where what is rounded decides.
const FAST_SHARE: f64 = 0.25;

/// Finds out after how many steps z² + c escapes, for each point c of a square, and draws it.
///
/// CELERITY_NODES and CELERITY_DEVICES choose how many nodes and devices share
/// the work; the result does not depend on them.
#[derive(Parser, Debug)]
struct Options {
    /// Points along each side of the square.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=32_768))]
    size: u32,
    /// Steps after which a point counts as one of the set.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    limit: u32,
    /// The point in the middle.
    #[arg(long, num_args = 2, value_names = ["RE", "IM"], allow_negative_numbers = true,
        default_values_t = [-0.75, 0.0], value_parser = finite)]
    centre: Vec<f64>,
    /// How far the square reaches from its centre.
    #[arg(long, default_value_t = 1.25, value_parser = positive::<f64>)]
    reach: f64,
    /// The numbers to compute with. Squares smaller than about a hundred thousandth want double ones.
    #[arg(long, value_enum, default_value_t = Precision::Single)]
    precision: Precision,
    /// How often the square is computed, to be measured: always with the same result.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// The picture, of at most 1024² pixels: of more points, several make a pixel.
    #[arg(long, value_name = "FILE.png", default_value = "mandelbrot.png")]
    out: PathBuf,
    /// Bands of rows, of which each is shared by all devices: the more, the more even is what they have to do.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    bands: u32,
    #[command(flatten)]
    cuts: Cuts,
    /// Computes in the fast form: GPUs fuse, and points close to the border of the set escape earlier
    /// or later.
    #[arg(long)]
    fast: bool,
    /// Compares with a sequential program.
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    measure: Measure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Precision {
    /// `f32`.
    Single,
    /// `f64`.
    Double,
}

fn finite(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if f64::is_finite(number) => Ok(number),
        _ => Err("give a number".into()),
    }
}

/// `f32` or `f64`.
trait Number: Float + Into<f64> {
    /// The nearest one.
    fn nearest(x: f64) -> Self;
}

impl Number for f32 {
    fn nearest(x: f64) -> Self {
        x as f32
    }
}

impl Number for f64 {
    fn nearest(x: f64) -> Self {
        x
    }
}

/// The points, as kernels are told of them.
#[derive(Clone, Copy, Debug)]
struct Square<T> {
    size: usize,
    corner: Complex<T>,
    pitch: T,
    limit: u32,
}

impl<T: Number> Square<T> {
    /// The points of the options, if they are different numbers.
    fn new(options: &Options) -> Result<Self, Failure> {
        let (size, pitch) = (options.size as usize, 2.0 * options.reach / f64::from(options.size));
        // The first point is in the middle of its pixel.
        let offset = options.reach - pitch / 2.0;
        let corner = [options.centre[0] - offset, options.centre[1] + offset].map(T::nearest);
        let square = Self { size, corner, pitch: T::nearest(pitch), limit: options.limit };
        let are_different = |a: usize, b: usize| {
            let (a, b) = (square.place([a; 2]), square.place([b; 2]));
            a[0] < b[0] && a[1] > b[1]
        };
        match size == 1 || are_different(0, 1) && are_different(size - 2, size - 1) {
            true => Ok(square),
            false => Err(Failure::TooClose { pitch, precision: options.precision }),
        }
    }

    fn place(&self, index: [usize; 2]) -> Complex<T> {
        place(index, self.corner, self.pitch)
    }
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(
        "points {pitch:e} apart are the same in {} precision; choose a larger --reach{}",
        .precision.name(), .precision.remedy()
    )]
    TooClose { pitch: f64, precision: Precision },
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Runtime(#[from] celerity::Error),
    #[error(
        "verification failed: {count} of {points} points differ from the sequential program, \
         first at row {row}, column {column}: {actual} steps instead of {expected}"
    )]
    Mismatch { count: usize, points: usize, row: usize, column: usize, actual: u32, expected: u32 },
}

impl Precision {
    fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Double => "double",
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Self::Single => ", or --precision double",
            Self::Double => "",
        }
    }
}

struct Outcome {
    is_root: bool,
    nodes: usize,
    devices: usize,
    elapsed: Duration,
    /// After how many steps points escape, row by row.
    escapes: Vec<u32>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let result = match options.precision {
        Precision::Single => run::<f32>(&options),
        Precision::Double => run::<f64>(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("mandelbrot: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run<T: Number>(options: &Options) -> Result<(), Failure>
where
    mandelbrot<T>: Compiled,
    mandelbrot_fast<T>: Compiled,
{
    let square = Square::<T>::new(options)?;
    check_writable(&options.out)?;
    let outcome = celerity::run(|queue| look(queue, options, &square))?;
    if !outcome.is_root {
        return Ok(());
    }
    picture::save(&options.out, &square, &outcome.escapes)?;
    report(options, &outcome);
    if options.verify {
        let differing = compare(options, &square, &outcome.escapes)?;
        match options.fast {
            true => println!(
                "verified: all but {differing:.2e} of the points equal those of the sequential program"
            ),
            false => println!("verified: every point equals that of the sequential program"),
        }
    }
    Ok(())
}

/// The program that every node runs.
fn look<T: Number>(
    queue: &Queue,
    options: &Options,
    square: &Square<T>,
) -> celerity::Result<Outcome>
where
    mandelbrot<T>: Compiled,
    mandelbrot_fast<T>: Compiled,
{
    if options.verify {
        queue.require_results("--verify")?;
    }
    let escapes = queue.buffer::<u32, 2>([square.size; 2]).named("escapes");
    let mut stopwatch = Stopwatch::start(options.measure);
    let bar = progress_bar(u64::from(options.steps), queue.is_root());
    for step in 0..options.steps {
        stopwatch.before_step(queue, u64::from(step))?;
        for band in 0..options.bands as usize {
            compute(queue, options, square, band, &escapes)?;
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let elapsed = stopwatch.stop(queue)?;
    let escapes = queue.fence(&escapes)?.wait()?.into_vec();
    let (is_root, nodes, devices) = (queue.is_root(), queue.nodes(), queue.devices());
    Ok(Outcome { is_root, nodes, devices, elapsed, escapes })
}

/// Computes the rows of one band.
fn compute<T: Number>(
    queue: &Queue,
    options: &Options,
    &Square { size, corner, pitch, limit }: &Square<T>,
    band: usize,
    escapes: &Buffer<u32, 2>,
) -> celerity::Result<()>
where
    mandelbrot<T>: Compiled,
    mandelbrot_fast<T>: Compiled,
{
    let [begin, end] = [band, band + 1].map(|band| band * size / options.bands as usize);
    let (range, accesses) = ([end - begin, size], escapes.write(one_to_one()));
    // The threads of a warp then have 4 × 8 points, which take more alike times than 32 of a row.
    let task = queue.task("escape").offset([begin, 0]).block([32, 8]);
    let task = options.cuts.in_chunks(task);
    match options.fast {
        true => task.launch(range, accesses, mandelbrot_fast::new(corner, pitch, limit))?,
        false => task.launch(range, accesses, mandelbrot::new(corner, pitch, limit))?,
    };
    Ok(())
}

/// Compares with the same by a plain loop; returns the share of points that differ, of which there may
/// be some in the fast form. O(size² · limit).
fn compare<T: Number>(
    options: &Options,
    square: &Square<T>,
    escapes: &[u32],
) -> Result<f64, Failure> {
    let index = |point: usize| [point / square.size, point % square.size];
    let expected = |point: usize| escape(square.place(index(point)), square.limit);
    let both = escapes.iter().enumerate().map(|(at, &actual)| (at, actual, expected(at)));
    let mut different = both.filter(|(_, actual, expected)| actual != expected);
    let Some((point, actual, expected)) = different.next() else { return Ok(0.0) };
    let (count, points, [row, column]) = (1 + different.count(), escapes.len(), index(point));
    match count as f64 / points as f64 {
        share if options.fast && share <= FAST_SHARE => Ok(share),
        _ => Err(Failure::Mismatch { count, points, row, column, actual, expected }),
    }
}

fn report(options: &Options, outcome: &Outcome) {
    let steps: u64 = outcome.escapes.iter().copied().map(u64::from).sum();
    let measured = Measured {
        program: "mandelbrot",
        devices: outcome.nodes * outcome.devices,
        size: options.size as usize,
        steps: u64::from(options.steps),
        elapsed: outcome.elapsed,
        work: steps as f64,
        unit: "iterations",
    };
    println!(
        "mandelbrot: {size}×{size} points, {steps} on average, {cluster}, {seconds:.3} s, \
         {rate:.1} million steps/s, {out}",
        size = options.size,
        steps = counted(steps / outcome.escapes.len() as u64, "step"),
        cluster = cluster(outcome.nodes, outcome.devices),
        seconds = outcome.elapsed.as_secs_f64(),
        rate = measured.rate(options.measure) / 1e6,
        out = options.out.display(),
    );
    measured.print(options.measure, &[bytemuck::cast_slice(&outcome.escapes)]);
}
