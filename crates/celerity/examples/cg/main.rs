//! A sparse system of equations by conjugate gradients, on every node and device there is.
//!
//! ```text
//! cargo run --release --example cg -- --edge 200 --verify
//! CELERITY_NODES=2 cargo run --release --example cg -- --edge 40 --dims 3
//! ```
//!
//! How a membrane, or a block, gives way to a constant force: Poisson's equation on a square or cubic
//! grid that is held at its edges. The matrix is stored by rows, and a device has the rows that it
//! multiplies, and of the vector the elements that these rows have a column for.
//!
//! Each step has two dot products, which are *reductions*. What follows from them, how far to go and
//! where to go next, is computed by the kernels that need it: no step waits for the program. The
//! program looks at the residual every few steps, and at one that is some steps old.

mod matrix;
mod plot;
#[path = "../support/stopwatch.rs"]
mod stopwatch;
#[path = "../support/mod.rs"]
mod support;
mod twin;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use celerity::Sum;
use celerity::prelude::*;
use celerity_example_kernels::conjugate::{
    conjugate_advance, conjugate_begin, conjugate_multiply, conjugate_turn, ratio,
};
use clap::Parser;
use image::ImageFormat;

use matrix::{Matrix, Sparse};
use stopwatch::{Measure, Measured, Stopwatch, cluster, counted};
use support::{OutputError, check_writable, progress_bar};
use twin::Dots;

/// Solves Poisson's equation on a grid until the residual is small, and draws how it shrank.
///
/// CELERITY_NODES and CELERITY_DEVICES choose how many nodes and devices share
/// the work; the result does not depend on them.
#[derive(Parser, Debug)]
struct Options {
    /// Points along each edge of the grid.
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=1290))]
    edge: u32,
    /// Dimensions of the grid.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=3))]
    dims: u32,
    /// Ends when the residual is so much smaller than at the beginning.
    #[arg(long, default_value_t = 1e-8, value_parser = tolerance)]
    tolerance: f64,
    /// Ends after so many steps in any case.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// Looks at the residual every so many steps.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    look: u32,
    /// The picture.
    #[arg(long, value_name = "FILE.png", default_value = "cg.png")]
    out: PathBuf,
    /// Compares the solution, and all dot products, with those of a sequential program.
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    measure: Measure,
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(tolerance) if tolerance > 0.0 => Ok(tolerance),
        _ => Err("give a number above 0".into()),
    }
}

/// Each node has all of the matrix to begin with: so many rows take 6 GB.
const MOST_UNKNOWNS: u64 = 1 << 26;

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(
        "{unknowns} unknowns are too many for this example, which takes {MOST_UNKNOWNS}; choose a smaller --edge, or fewer --dims"
    )]
    TooMany { unknowns: u64 },
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Runtime(#[from] celerity::Error),
    #[error(transparent)]
    Mismatch(#[from] twin::Mismatch),
}

struct Outcome {
    is_root: bool,
    nodes: usize,
    devices: usize,
    steps: u32,
    solution: Vec<f64>,
    /// At some steps, relative to the beginning.
    residuals: Vec<(u32, f64)>,
    /// Of all steps, if they are to be verified.
    dots: Dots,
    elapsed: Duration,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("cg: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    let unknowns = u64::from(options.edge).pow(options.dims);
    if unknowns > MOST_UNKNOWNS {
        return Err(Failure::TooMany { unknowns });
    }
    check_writable(&options.out)?;
    let matrix = Matrix::poisson(options.edge as usize, options.dims);
    let outcome = celerity::run(|queue| solve(queue, options, &matrix))?;
    if !outcome.is_root {
        return Ok(());
    }
    save(&options.out, &outcome.residuals)?;
    report(options, &matrix, &outcome);
    if options.verify {
        twin::compare(&matrix, &outcome.dots, &outcome.solution)?;
        println!(
            "verified: the solution equals that of the sequential program, bit for bit, and dot \
             products but for rounding"
        );
    }
    Ok(())
}

/// The program that every node runs.
fn solve(queue: &Queue, options: &Options, matrix: &Matrix) -> celerity::Result<Outcome> {
    if options.verify {
        queue.require_results("--verify")?;
    }
    let mut stopwatch = Stopwatch::start(options.measure);
    let mut solver = Solver::new(queue, matrix)?;
    let bar = progress_bar(u64::from(options.steps), queue.is_root());
    let mut dots = Vec::new();
    let mut residuals = Residuals::new(options.tolerance, solver.rr(queue)?);
    if options.verify {
        dots.push([None, Some(solver.rr(queue)?)]);
    }
    let mut steps = 0;
    while steps < options.steps {
        stopwatch.before_step(queue, u64::from(steps))?;
        solver.step(queue)?;
        steps += 1;
        bar.inc(1);
        if options.verify {
            dots.push([Some(queue.fence(&solver.pq)?), Some(solver.rr(queue)?)]);
        }
        if steps % options.look == 0 && residuals.look(steps, solver.rr(queue)?)? {
            break;
        }
    }
    let residuals = residuals.finish(steps, solver.rr(queue)?)?;
    let elapsed = stopwatch.stop(queue)?;
    bar.finish_and_clear();
    let solution = queue.fence(&solver.x)?.wait()?.into_vec();
    let value = |fence: Option<Fence<f64, 0>>| match fence {
        Some(fence) => fence.wait().map(|value| value[[]]),
        None => Ok(0.0),
    };
    let dots = dots.into_iter().map(|[pq, rr]| Ok([value(pq)?, value(rr)?]));
    let dots = dots.collect::<celerity::Result<_>>()?;
    let (is_root, nodes, devices) = (queue.is_root(), queue.nodes(), queue.devices());
    Ok(Outcome { is_root, nodes, devices, steps, solution, residuals, dots, elapsed })
}

/// What a step goes on from.
struct Solver {
    matrix: Sparse,
    rows: usize,
    x: Buffer<f64, 1>,
    /// The residual, the right-hand side minus the matrix times `x`.
    r: Buffer<f64, 1>,
    /// The direction to go in.
    p: Buffer<f64, 1>,
    /// The matrix times `p`.
    q: Buffer<f64, 1>,
    pq: Buffer<f64, 0>,
    /// The residual's square, and that of the step before.
    rr: [Buffer<f64, 0>; 2],
}

impl Solver {
    fn new(queue: &Queue, matrix: &Matrix) -> celerity::Result<Self> {
        let rows = matrix.rows();
        let [x, r, p, q] =
            ["x", "r", "p", "q"].map(|name| queue.buffer::<f64, 1>(rows).named(name));
        let [pq, rr, earlier] =
            ["pq", "rr", "earlier rr"].map(|name| queue.buffer::<f64, 0>([]).named(name));
        let written = (x.write(one_to_one()), r.write(one_to_one()), p.write(one_to_one()));
        let accesses = (written.0, written.1, written.2, rr.reduce(Sum));
        queue.task("begin").launch(rows, accesses, conjugate_begin {})?;
        let matrix = Sparse::new(queue, matrix)?;
        Ok(Self { matrix, rows, x, r, p, q, pq, rr: [rr, earlier] })
    }

    /// Asks for the residual's square, and does not wait for it.
    fn rr(&self, queue: &Queue) -> celerity::Result<Fence<f64, 0>> {
        queue.fence(&self.rr[0])
    }

    fn step(&mut self, queue: &Queue) -> celerity::Result<()> {
        self.multiply(queue)?;
        self.rr.swap(0, 1);
        self.advance(queue)?;
        self.turn(queue)
    }

    /// `q = A p`, and `p · q`.
    fn multiply(&self, queue: &Queue) -> celerity::Result<()> {
        let accesses = (
            self.q.write(one_to_one()),
            self.matrix.ends.read(Sparse::ends_of_rows()),
            self.matrix.columns.read(self.matrix.entries_of_rows()),
            self.matrix.values.read(self.matrix.entries_of_rows()),
            self.p.read(self.matrix.columns_of_rows()),
            self.pq.reduce(Sum),
        );
        queue.task("multiply").launch(self.rows, accesses, conjugate_multiply {})?;
        Ok(())
    }

    /// Goes as far as is best in the direction `p`: `x += α p`, `r -= α q`, and `r · r`.
    fn advance(&self, queue: &Queue) -> celerity::Result<()> {
        let [rr, earlier] = &self.rr;
        let accesses = (
            self.x.read_write(one_to_one()),
            self.r.read_write(one_to_one()),
            self.p.read(one_to_one()),
            self.q.read(one_to_one()),
            earlier.read(all()),
            self.pq.read(all()),
            rr.reduce(Sum),
        );
        queue.task("advance").launch(self.rows, accesses, conjugate_advance {})?;
        Ok(())
    }

    /// The next direction: `p = r + β p`.
    fn turn(&self, queue: &Queue) -> celerity::Result<()> {
        let [rr, earlier] = &self.rr;
        let accesses = (
            self.p.read_write(one_to_one()),
            self.r.read(one_to_one()),
            rr.read(all()),
            earlier.read(all()),
        );
        queue.task("turn").launch(self.rows, accesses, conjugate_turn {})?;
        Ok(())
    }
}

/// Residuals that were asked for, the last of which may be under way.
struct Residuals {
    tolerance: f64,
    asked: Option<(u32, Fence<f64, 0>)>,
    /// Squares.
    seen: Vec<(u32, f64)>,
}

impl Residuals {
    fn new(tolerance: f64, first: Fence<f64, 0>) -> Self {
        Self { tolerance, asked: Some((0, first)), seen: Vec::new() }
    }

    /// Takes note of a residual, and waits for the one before. Whether that is small enough.
    fn look(&mut self, step: u32, rr: Fence<f64, 0>) -> celerity::Result<bool> {
        if let Some((step, earlier)) = self.asked.replace((step, rr)) {
            self.seen.push((step, earlier.wait()?[[]]));
        }
        let relative = self.relative();
        Ok(relative.last().is_some_and(|&(_, residual)| residual <= self.tolerance))
    }

    fn relative(&self) -> Vec<(u32, f64)> {
        let first = self.seen.first().map_or(0.0, |&(_, rr)| rr);
        let relative = |&(step, rr)| (step, ratio(rr, first).sqrt());
        self.seen.iter().map(relative).collect()
    }

    /// All residuals, the last being that of the last step.
    fn finish(mut self, step: u32, rr: Fence<f64, 0>) -> celerity::Result<Vec<(u32, f64)>> {
        self.look(step, rr)?;
        if let Some((step, last)) = self.asked.take()
            && self.seen.last().is_none_or(|&(seen, _)| seen < step)
        {
            self.seen.push((step, last.wait()?[[]]));
        }
        Ok(self.relative())
    }
}

fn save(path: &Path, residuals: &[(u32, f64)]) -> Result<(), OutputError> {
    plot::convergence(residuals)
        .save_with_format(path, ImageFormat::Png)
        .map_err(|error| OutputError::new(path, std::io::Error::other(error)))
}

fn report(options: &Options, matrix: &Matrix, outcome: &Outcome) {
    let steps = u64::from(outcome.steps);
    let measured = Measured {
        program: "cg",
        devices: outcome.nodes * outcome.devices,
        size: matrix.rows(),
        steps,
        elapsed: outcome.elapsed,
        work: matrix.entries() as f64,
        unit: "entries",
    };
    println!(
        "cg: {rows} unknowns, {entries} entries, {steps}, residual {residual:.3e} of the first, \
         {cluster}, {seconds:.3} s, {rate:.1} million entries/s, {out}",
        rows = matrix.rows(),
        entries = matrix.entries(),
        steps = counted(steps, "step"),
        residual = outcome.residuals.last().map_or(0.0, |&(_, residual)| residual),
        cluster = cluster(outcome.nodes, outcome.devices),
        seconds = outcome.elapsed.as_secs_f64(),
        rate = measured.rate(options.measure) / 1e6,
        out = options.out.display(),
    );
    measured.print(options.measure, &[bytemuck::cast_slice(&outcome.solution)]);
}
