//! A flash of light in a closed room, step by step, on every node and device there is.
//!
//! ```text
//! cargo run --release --example rsim -- --edge 12 --steps 60 --verify
//! CELERITY_NODES=2 CELERITY_LOOKAHEAD=none cargo run --release --example rsim
//! ```
//!
//! Each step reads what all patches have sent in all steps before, and writes the next row of
//! the same buffer: memory that is allocated for what is used now grows with every step. The
//! pattern is that of RSim, a simulation for time-of-flight cameras (instruction-graph preprint,
//! §5).

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
use celerity_example_kernels::radiosity::{
    Patch, arriving, build_room, flash, patch, patches, radiosity, send_flash,
};
use clap::Parser;

use stopwatch::{Measure, Measured, Stopwatch, cluster, counted};
use support::{OutputError, check_writable, progress_bar};

/// Follows a flash of light through a closed room, and draws a picture: a row for each
/// step, a column for each patch of the walls.
///
/// CELERITY_NODES and CELERITY_DEVICES choose how many nodes and devices share
/// the work; the result does not depend on them.
#[derive(Parser, Debug)]
struct Options {
    /// Patches along each edge of the room.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=256))]
    edge: u32,
    /// Time steps after the flash; light crosses a patch in one.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    steps: u32,
    /// The picture.
    #[arg(long, value_name = "FILE.png", default_value = "rsim.png")]
    out: PathBuf,
    /// Compares all steps with those of a sequential program.
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    measure: Measure,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Runtime(#[from] celerity::Error),
    #[error(
        "verification failed: in step {step} patch {patch} has sent {actual:e} instead of \
         {expected:e}"
    )]
    Mismatch { step: usize, patch: usize, actual: f32, expected: f32 },
}

struct Outcome {
    /// Whether the host tasks of this process have gathered anything.
    is_root: bool,
    nodes: usize,
    devices: usize,
    elapsed: Duration,
}

/// What all patches have sent in all steps, on the node that gathers it.
type Gathered = Arc<Mutex<Vec<f32>>>;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("rsim: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    check_writable(&options.out)?;
    let gathered = Gathered::default();
    let outcome = celerity::run(|queue| simulate(queue, options, &gathered))?;
    if !outcome.is_root {
        return Ok(());
    }
    let history = gathered.lock().expect("no host task panicked");
    picture::save(&options.out, &history, patches(options.edge as usize))?;
    report(options, &outcome, &history);
    if options.verify {
        compare(&history, &reference(options), patches(options.edge as usize))?;
        println!("verified: every number equals that of the sequential program, bit for bit");
    }
    Ok(())
}

/// The buffers of a simulation.
struct Room {
    edge: usize,
    patches: Buffer<Patch, 1>,
    /// A row for each step.
    history: Buffer<f32, 2>,
}

/// The program that every node runs.
fn simulate(queue: &Queue, options: &Options, gathered: &Gathered) -> celerity::Result<Outcome> {
    if options.verify {
        queue.require_results("--verify")?;
    }
    let mut stopwatch = Stopwatch::start(options.measure);
    let (edge, steps) = (options.edge as usize, options.steps as usize);
    let room = Room {
        edge,
        patches: queue.buffer(patches(edge)).named("patches"),
        history: queue.buffer([steps + 1, patches(edge)]).named("history"),
    };
    room.begin(queue)?;
    let bar = progress_bar(u64::from(options.steps), queue.is_root());
    for step in 1..=steps {
        stopwatch.before_step(queue, step as u64 - 1)?;
        room.step(queue, step)?;
        bar.inc(1);
    }
    let elapsed = stopwatch.stop(queue)?;
    let gathered = Arc::clone(gathered);
    queue.host_task("gather").once(room.history.read(all()), move |history| {
        *gathered.lock().expect("nobody panics with the lock held") = history.as_slice().to_vec();
    })?;
    queue.barrier()?;
    bar.finish_and_clear();
    let (nodes, devices) = (queue.nodes(), queue.devices());
    Ok(Outcome { is_root: queue.is_root(), nodes, devices, elapsed })
}

impl Room {
    fn begin(&self, queue: &Queue) -> celerity::Result<()> {
        let edge = self.edge;
        let (walls, first) = (self.patches.write(one_to_one()), self.history.write(one_to_one()));
        queue.task("room").launch(self.patches.range(), walls, build_room { edge })?;
        queue.task("flash").launch([1, patches(edge)], first, send_flash { edge })?;
        Ok(())
    }

    /// Reads all rows before `step`, and writes that one: separate parts of one buffer.
    fn step(&self, queue: &Queue, step: usize) -> celerity::Result<()> {
        let [_, width] = self.history.range();
        let (row, earlier) = (one_to_one(), fixed(Subrange::new([0, 0], [step, width])));
        let accesses =
            (self.history.write(row), self.patches.read(all()), self.history.read(earlier));
        // The space is one row: its columns are what devices share.
        let task = queue.task("radiosity").offset([step, 0]).hint(Hint::SplitAlong(1));
        task.launch([1, width], accesses, radiosity { edge: self.edge })?;
        Ok(())
    }
}

/// The same by plain loops. O(patches² · steps).
fn reference(options: &Options) -> Vec<f32> {
    let edge = options.edge as usize;
    let room: Vec<Patch> = (0..patches(edge)).map(|number| patch(number, edge)).collect();
    let mut history: Vec<f32> = (0..room.len()).map(|number| flash(number, edge)).collect();
    for step in 1..=options.steps as usize {
        let sent = |step: usize, patch: usize| history[step * room.len() + patch];
        let row: Vec<f32> =
            room.iter().map(|here| arriving(here, &room, step, edge, sent)).collect();
        history.extend(row);
    }
    history
}

fn compare(actual: &[f32], expected: &[f32], width: usize) -> Result<(), Failure> {
    let differs = |at: &usize| actual[*at].to_bits() != expected[*at].to_bits();
    match (0..expected.len()).find(differs) {
        None => Ok(()),
        Some(at) => Err(Failure::Mismatch {
            step: at / width,
            patch: at % width,
            actual: actual[at],
            expected: expected[at],
        }),
    }
}

fn report(options: &Options, outcome: &Outcome, history: &[f32]) {
    let patches = patches(options.edge as usize);
    let measured = Measured {
        program: "rsim",
        devices: outcome.nodes * outcome.devices,
        size: patches,
        steps: u64::from(options.steps),
        elapsed: outcome.elapsed,
        work: (patches as f64).powi(2),
        unit: "pairs",
    };
    println!(
        "rsim: {patches} patches, {steps}, {cluster}, \
         {seconds:.3} s, {rate:.1} million pairs/s, {out}",
        steps = counted(options.steps, "step"),
        cluster = cluster(outcome.nodes, outcome.devices),
        seconds = outcome.elapsed.as_secs_f64(),
        rate = measured.rate(options.measure) / 1e6,
        out = options.out.display(),
    );
    measured.print(options.measure, &[bytemuck::cast_slice(history)]);
}
