//! What all kernels of the suite have in common: what they print, in which order, and how their
//! iterations are timed. Knows nothing of what is computed.

use std::time::Instant;

use celerity::prelude::*;
use clap::ValueEnum;

/// How a kernel is written, of those that are written in two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kernel {
    /// Called for runs of elements. For CPUs.
    Row,
    /// Called for groups of elements, which share what they need in their memory: sizes must be multiples of a tile. For GPUs.
    Group,
}

impl Kernel {
    /// Refuses matrices of `order`, in bands of `width` columns, that groups do not cover with tiles; `named` is what the program was
    /// told of bands, and how it calls that.
    ///
    /// # Errors
    /// What sizes must be.
    pub(crate) fn check(
        self,
        tile: usize,
        [order, width]: [usize; 2],
        (name, named): (&str, usize),
    ) -> Result<(), String> {
        match self {
            Self::Group if !width.is_multiple_of(tile) => Err(format!(
                "--kernel group takes an order and a {name} size that are multiples of {tile}, not {order} and {named}"
            )),
            _ => Ok(()),
        }
    }
}

/// A kernel of the suite with its arguments.
pub(crate) trait Benchmark: Sync {
    /// What it says of itself, behind the name of the programming model.
    const TITLE: &'static str;

    /// Refuses arguments that do not go together, or not with so many ranks.
    ///
    /// # Errors
    /// What is wrong, in the words of the suite.
    fn check(&self, ranks: usize) -> Result<(), String>;

    /// The lines that say what is done.
    fn parameters(&self, ranks: usize) -> Vec<String>;

    /// All iterations.
    ///
    /// # Errors
    /// As tasks.
    fn run(&self, bench: &Bench<'_>) -> celerity::Result<Verdict>;
}

/// What came out.
pub(crate) struct Verdict {
    /// What is wrong with the numbers.
    pub(crate) wrong: Option<String>,
    /// The line with the rate.
    pub(crate) rate: String,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("ERROR: {0}")]
    Arguments(String),
    #[error("ERROR: {0}; the solution does not validate")]
    Solution(String),
    #[error(transparent)]
    Runtime(#[from] celerity::Error),
}

/// The version of the suite whose output this is.
const VERSION: &str = "2.17";

/// Runs a kernel on all nodes, and prints what the suite's programs print.
///
/// # Errors
/// Arguments that do not go together, numbers that are wrong, and what ends a run.
pub(crate) fn run<B: Benchmark>(benchmark: &B) -> Result<(), Failure> {
    let verdict = celerity::run(|queue| {
        let bench = Bench { queue, ranks: queue.nodes() * queue.devices() };
        bench.say(&format!("Parallel Research Kernels version {VERSION}"));
        bench.say(&format!("Celerity {}", B::TITLE));
        if let Err(wrong) = benchmark.check(bench.ranks) {
            return Ok(Err(wrong));
        }
        benchmark.parameters(bench.ranks).iter().for_each(|line| bench.say(line));
        let verdict = benchmark.run(&bench)?;
        Ok(Ok(queue.is_root().then_some(verdict)))
    })?;
    match verdict.map_err(Failure::Arguments)? {
        None => Ok(()),
        Some(Verdict { wrong: Some(wrong), .. }) => Err(Failure::Solution(wrong)),
        Some(Verdict { wrong: None, rate }) => {
            println!("Solution validates\n{rate}");
            Ok(())
        }
    }
}

/// What a kernel runs on.
pub(crate) struct Bench<'q> {
    pub(crate) queue: &'q Queue,
    /// Devices of all nodes.
    pub(crate) ranks: usize,
}

impl Bench<'_> {
    /// Prints a line, once for all nodes.
    pub(crate) fn say(&self, line: &str) {
        if self.queue.is_root() {
            println!("{line}");
        }
    }

    /// Seconds that an iteration takes on average, without a first one that warms up. `step` gets the
    /// iteration's number, from 0.
    ///
    /// # Errors
    /// As `step`.
    pub(crate) fn time(
        &self,
        iterations: u32,
        mut step: impl FnMut(u32) -> celerity::Result<()>,
    ) -> celerity::Result<f64> {
        step(0)?;
        self.queue.barrier()?;
        let start = Instant::now();
        (1..=iterations).try_for_each(step)?;
        self.queue.barrier()?;
        Ok(start.elapsed().as_secs_f64() / f64::from(iterations))
    }

    /// A number that a task has made.
    ///
    /// # Errors
    /// As [`Queue::fence`].
    pub(crate) fn value(&self, buffer: &Buffer<f64, 0>) -> celerity::Result<f64> {
        Ok(self.queue.fence(buffer)?.wait()?[[]])
    }
}

/// The line with a rate, as most kernels print it.
pub(crate) fn rate(unit: &str, per_second: f64, seconds: f64) -> String {
    format!("Rate ({unit}): {:.6} Avg time (s): {seconds:.6}", 1e-6 * per_second)
}

/// Cut along dimension 0 if it has something for every rank, and along dimension 1 else.
pub(crate) fn cut(bands: usize, ranks: usize) -> Hint {
    Hint::SplitAlong(usize::from(bands < ranks))
}
