//! Task Bench (`StanfordLegion/task-bench`) through Celerity: its task graphs, its kernels and its
//! validation, which a library of the suite's own has, loaded at run time.
//!
//! ```sh
//! task-bench --library core/libcore.so -- -type stencil_1d -width 8 -steps 1000 -kernel compute_bound -iter 64
//! CELERITY_NODES=2 task-bench --library core/libcore.so --iterations 0,64,4096 -- -type fft -width 8
//! ```
//!
//! A point of the suite's graph is an item of a task, and a step of the graph is a task. `docs/task-bench.md`
//! has figures, and `cargo xtask task-bench` makes them.

mod arguments;
mod graph;
mod reads;
mod steps;
mod suite;
#[cfg(test)]
mod twin;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;

use crate::steps::Program;
use crate::suite::{App, SuiteGraph};

/// Runs task graphs of Task Bench on every node and device there is.
///
/// CELERITY_NODES and CELERITY_DEVICES choose how many nodes and devices share the work.
#[derive(Parser)]
struct Options {
    /// The suite's core as a shared library: `libcore.so`, which `make -C core` builds there
    #[arg(long, value_name = "FILE")]
    library: PathBuf,
    /// How often each measure is made, after one that does not count; the least counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    turns: u32,
    /// Print a line of comma-separated values (iterations per point, seconds) for each of these numbers
    /// of iterations, in the place of the suite's report
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = clap::value_parser!(i64).range(0..))]
    iterations: Vec<i64>,
    /// The suite's own arguments: `-type`, `-width`, `-steps`, `-kernel`, `-iter`, `-output`, …
    #[arg(last = true, value_name = "ARGUMENT")]
    suite: Vec<String>,
}

/// Why there is no measure.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Arguments(#[from] arguments::Refused),
    #[error(transparent)]
    Library(#[from] suite::LoadError),
    #[error(transparent)]
    Runtime(#[from] celerity::Error),
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("task-bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    let arguments = arguments::check(&options.suite)?;
    let app = suite::load(&options.library)?.app(arguments);
    let graphs: Vec<Arc<SuiteGraph>> = app.graphs().into_iter().map(Arc::new).collect();
    celerity::run(|queue| {
        let programs: Vec<_> = graphs.iter().map(|graph| Program::new(queue, graph)).collect();
        if options.iterations.is_empty() {
            let iterations: Vec<_> = graphs.iter().map(|graph| graph.iterations()).collect();
            let least = steps::least(queue, &programs, &iterations, options.turns)?;
            if queue.is_root() {
                report(&app, least);
            }
        }
        for &iterations in &options.iterations {
            let all = vec![iterations; programs.len()];
            let least = steps::least(queue, &programs, &all, options.turns)?;
            if queue.is_root() {
                println!("{iterations},{:.9}", least.as_secs_f64());
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// The suite's own words.
fn report(app: &App, elapsed: Duration) {
    app.display();
    app.report(elapsed);
}
