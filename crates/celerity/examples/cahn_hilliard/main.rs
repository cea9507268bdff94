//! How an alloy of two metals separates, in three dimensions, on every node and device there is.
//!
//! ```text
//! cargo run --release --example cahn_hilliard -- --size 64 --steps 500 --verify
//! CELERITY_NODES=2 CELERITY_DEVICES=2 cargo run --release --example cahn_hilliard -- --cut tiles
//! ```
//!
//! The equation of Cahn and Hilliard as a stencil of seven points and three kernels per step:
//! potentials, a step of the mixture, free energies. Two of three need their neighbours' planes,
//! which are large in three dimensions. How the box is cut, and into how many chunks per device,
//! counts more than in two: `--cut` and `--oversubscribe`, as in CCGrid 2023, figure 4.

#[path = "../support/cut.rs"]
mod cut;
#[path = "../support/film.rs"]
mod film;
#[path = "../support/numbers.rs"]
mod numbers;
mod picture;
#[path = "../support/stopwatch.rs"]
mod stopwatch;
#[path = "../support/mod.rs"]
mod support;
mod twin;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use celerity::Sum;
use celerity::prelude::*;
use celerity_example_kernels::cahn_hilliard::{
    alloy_energy, alloy_energy_row, alloy_evolve, alloy_evolve_row, alloy_fill, alloy_potential,
    alloy_potential_row, alloy_total,
};
use clap::{Parser, ValueEnum};

use cut::Cuts;
use film::Film;
use numbers::positive;
use stopwatch::{Measure, Measured, Stopwatch, cluster, counted};
use support::{OutputError, progress_bar};

/// Simulates how an alloy of two metals separates in a box whose opposite faces meet, and draws the
/// plane in its middle.
///
/// CELERITY_NODES and CELERITY_DEVICES choose how many nodes and devices share
/// the work; the result does not depend on them.
#[derive(Parser, Debug)]
#[command(allow_negative_numbers = true)]
struct Options {
    /// Cells along each edge of the box.
    #[arg(long, default_value_t = 96, value_parser = clap::value_parser!(u32).range(1..=4096))]
    size: u32,
    /// Time steps.
    #[arg(long, default_value_t = 1000)]
    steps: u64,
    /// How much more there is of one metal than of the other: from -1 to 1, and 0 is even.
    #[arg(long, default_value_t = 0.0, value_parser = between_metals)]
    mean: f64,
    /// What a border between the metals costs, in squares of a cell's side.
    #[arg(long, default_value_t = 0.5, value_parser = positive::<f64>)]
    gamma: f64,
    /// How far a step goes: mobility times time. At most 1 / (72 γ + 12) is stable.
    #[arg(long, default_value_t = 0.015, value_parser = positive::<f64>)]
    rate: f64,
    /// Chooses the noise at the start.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The picture; with several frames, FILE_000.png and so on.
    #[arg(long, value_name = "FILE.png", default_value = "cahn_hilliard.png")]
    out: PathBuf,
    /// Pictures, spread evenly over the steps; the last one after the last step. With 0
    /// there are none.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(..=10_000))]
    frames: u32,
    /// How the kernels are written: for one cell or for a run of cells.
    #[arg(long, value_enum, default_value_t = Kernel::Row)]
    kernel: Kernel,
    #[command(flatten)]
    cuts: Cuts,
    /// Compares mixture and energies with those of a sequential program.
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    measure: Measure,
}

fn between_metals(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(mean) if (-1.0..=1.0).contains(&mean) => Ok(mean),
        _ => Err("give a number from -1 to 1".into()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kernel {
    /// Called for each cell.
    Item,
    /// Called for each run of cells; vectorises.
    Row,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{frames} frames need at least as many steps, but there are {steps}")]
    MoreFramesThanSteps { frames: u32, steps: u64 },
    #[error(
        "steps of {rate} are not stable with a γ of {gamma}: mixtures would grow without end; \
         choose a --rate of at most {most:.4}"
    )]
    Unstable { rate: f64, gamma: f64, most: f64 },
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Runtime(#[from] celerity::Error),
    #[error(transparent)]
    Mismatch(#[from] twin::Mismatch),
}

/// What a node knows after the run.
struct Outcome {
    is_root: bool,
    nodes: usize,
    devices: usize,
    /// Of all steps that are timed, without pictures.
    elapsed: Duration,
    /// The free energy before the first step and after the last one.
    energies: [f64; 2],
    /// The mixture and the free energy of all cells, if somebody asks for them.
    cells: [Vec<f64>; 2],
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("cahn_hilliard: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    let Options { frames, steps, rate, gamma, .. } = *options;
    if u64::from(frames) > steps.max(1) {
        return Err(Failure::MoreFramesThanSteps { frames, steps });
    }
    // The Laplacian's largest eigenvalue is 12, that of the potential is 12 γ + 2: c³ - c is as steep as
    // that at most, where c is at most 1.
    let most = 2.0 / (12.0 * (12.0 * gamma + 2.0));
    if rate > most {
        return Err(Failure::Unstable { rate, gamma, most });
    }
    let film = Arc::new(Film::new(&options.out, frames as usize));
    film.check_writable()?;
    let outcome = celerity::run(|queue| simulate(queue, options, &film))?;
    if !outcome.is_root {
        return Ok(());
    }
    film.finish()?;
    report(options, &film, &outcome);
    if options.verify {
        twin::compare(options, outcome.energies, &outcome.cells)?;
        println!("verified: every cell equals that of the sequential program, bit for bit");
    }
    Ok(())
}

/// The program that every node runs.
fn simulate(queue: &Queue, options: &Options, film: &Arc<Film>) -> celerity::Result<Outcome> {
    if options.verify {
        queue.require_results("--verify")?;
    }
    let alloy = Alloy::new(queue, options)?;
    let first = alloy.total_energy()?;
    let mut stopwatch = Stopwatch::start(options.measure);
    let bar = progress_bar(options.steps, queue.is_root());
    let mut frame = 0;
    for number in 0..options.steps {
        stopwatch.before_step(queue, number)?;
        alloy.step()?;
        if film.is_due(frame, number + 1, options.steps) && number + 1 < options.steps {
            alloy.shoot(film, frame)?;
            frame += 1;
        }
        bar.inc(1);
    }
    let elapsed = stopwatch.stop(queue)?;
    if options.frames > 0 {
        alloy.shoot(film, frame)?;
    }
    let energies = [first.wait()?[[]], alloy.total_energy()?.wait()?[[]]];
    let cells = match options.verify || options.measure.checksum {
        true => alloy.cells()?,
        false => [Vec::new(), Vec::new()],
    };
    queue.barrier()?;
    bar.finish_and_clear();
    let (is_root, nodes, devices) = (queue.is_root(), queue.nodes(), queue.devices());
    Ok(Outcome { is_root, nodes, devices, elapsed, energies, cells })
}

/// The alloy in buffers.
struct Alloy<'q> {
    queue: &'q Queue,
    options: &'q Options,
    range: [usize; 3],
    c: Buffer<f64, 3>,
    mu: Buffer<f64, 3>,
    energy: Buffer<f64, 3>,
    total: Buffer<f64, 0>,
}

impl<'q> Alloy<'q> {
    /// The alloy before the first step.
    fn new(queue: &'q Queue, options: &'q Options) -> celerity::Result<Self> {
        let range = [options.size as usize; 3];
        let [c, mu, energy] =
            ["c", "mu", "energy"].map(|name| queue.buffer::<f64, 3>(range).named(name));
        let total = queue.buffer::<f64, 0>([]).named("total energy");
        let alloy = Self { queue, options, range, c, mu, energy, total };
        let fill = alloy_fill { mean: options.mean, seed: options.seed };
        alloy.task("fill").launch(range, alloy.c.write(one_to_one()), fill)?;
        alloy.energies()?;
        Ok(alloy)
    }

    fn step(&self) -> celerity::Result<()> {
        let (around, gamma) = (neighborhood_along_axes([1; 3]).periodic(), self.options.gamma);
        let (task, accesses) =
            (self.task("potential"), (self.mu.write(one_to_one()), self.c.read(around)));
        match self.options.kernel {
            Kernel::Item => task.launch(self.range, accesses, alloy_potential { gamma })?,
            Kernel::Row => task.launch(self.range, accesses, alloy_potential_row { gamma })?,
        };
        let (task, rate) = (self.task("evolve"), self.options.rate);
        let accesses = (self.c.read_write(one_to_one()), self.mu.read(around));
        match self.options.kernel {
            Kernel::Item => task.launch(self.range, accesses, alloy_evolve { rate })?,
            Kernel::Row => task.launch(self.range, accesses, alloy_evolve_row { rate })?,
        };
        self.energies()
    }

    fn energies(&self) -> celerity::Result<()> {
        let (around, gamma) = (neighborhood_along_axes([1; 3]).periodic(), self.options.gamma);
        let (task, accesses) =
            (self.task("energy"), (self.energy.write(one_to_one()), self.c.read(around)));
        match self.options.kernel {
            Kernel::Item => task.launch(self.range, accesses, alloy_energy { gamma })?,
            Kernel::Row => task.launch(self.range, accesses, alloy_energy_row { gamma })?,
        };
        Ok(())
    }

    /// A task, cut as the options say.
    fn task(&self, name: &str) -> celerity::TaskBuilder<'q> {
        self.options.cuts.in_chunks(self.queue.task(name))
    }

    /// The sum of all cells' energies, when they are known.
    fn total_energy(&self) -> celerity::Result<Fence<f64, 0>> {
        let accesses = (self.energy.read(one_to_one()), self.total.reduce(Sum));
        // Cut as what it reads: otherwise all of it moves.
        self.task("total").launch(self.range, accesses, alloy_total)?;
        self.queue.fence(&self.total)
    }

    fn cells(&self) -> celerity::Result<[Vec<f64>; 2]> {
        let (c, energy) = (self.queue.fence(&self.c)?, self.queue.fence(&self.energy)?);
        Ok([c.wait()?.into_vec(), energy.wait()?.into_vec()])
    }

    /// Draws the plane in the middle on one node, while the others and the devices go on.
    fn shoot(&self, film: &Arc<Film>, frame: usize) -> celerity::Result<()> {
        let [size, ..] = self.range;
        let film = Arc::clone(film);
        let plane = fixed(Subrange::new([size / 2, 0, 0], [1, size, size]));
        self.queue.host_task("picture").once(self.c.read(plane), move |c| {
            let mut cells = Vec::with_capacity(size * size);
            (0..size).for_each(|y| cells.extend(c.row([size / 2, y]).iter()));
            film.shoot(frame, &picture::paint(&cells, size));
        })?;
        Ok(())
    }
}

fn report(options: &Options, film: &Film, outcome: &Outcome) {
    let cells = f64::from(options.size).powi(3);
    let measured = Measured {
        program: "cahn_hilliard",
        devices: outcome.nodes * outcome.devices,
        size: options.size as usize,
        steps: options.steps,
        elapsed: outcome.elapsed,
        work: cells,
        unit: "cells",
    };
    let [first, last] = outcome.energies.map(|energy| energy / cells);
    println!(
        "cahn_hilliard: {size}³, {steps}, energy per cell {first:.6} to {last:.6}, {cluster}, \
         {seconds:.3} s, {rate:.0} Mcell/s{pictures}",
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
    let [c, energy] = &outcome.cells;
    measured.print(options.measure, &[bytemuck::cast_slice(c), bytemuck::cast_slice(energy)]);
}
