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

use celerity::Queue;
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
    /// Print a line of comma-separated values (iterations per point, points, seconds) for each of these numbers
    /// of iterations, in the place of the suite's report
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = clap::value_parser!(i64).range(0..))]
    iterations: Vec<i64>,
    /// With `--iterations`: as many steps as have about so many iterations at each place, 8 to 256
    #[arg(long, value_name = "ITERATIONS", value_parser = clap::value_parser!(i64).range(1..), requires = "iterations")]
    work: Option<i64>,
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
    let suite = suite::load(&options.library)?;
    let app = |words: &[String]| Ok::<_, Failure>(suite.app(arguments::check(words)?));
    let turns = options.turns;
    if options.iterations.is_empty() {
        let app = app(&options.suite)?;
        let (graphs, iterations) = graphs(&app);
        let measured = celerity::run(|queue| measure(queue, &graphs, &iterations, turns))?;
        if let Some(least) = measured {
            app.display();
            app.report(least);
        }
        return Ok(());
    }
    let all = options.iterations.iter().map(|&iterations| {
        let steps = options.work.map(|work| steps_of(work, iterations).to_string());
        let more = steps.into_iter().flat_map(|steps| ["-steps".to_owned(), steps]);
        let words: Vec<_> = options.suite.iter().cloned().chain(more).collect();
        Ok((iterations, graphs(&app(&words)?).0))
    });
    let all = all.collect::<Result<Vec<_>, Failure>>()?;
    celerity::run(|queue| {
        for (iterations, graphs) in &all {
            let each = vec![*iterations; graphs.len()];
            if let Some(least) = measure(queue, graphs, &each, turns)? {
                let points: usize = graphs.iter().map(|graph| graph::points(&**graph)).sum();
                println!("{iterations},{points},{:.9}", least.as_secs_f64());
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// The suite's graphs, and iterations of their kernels.
fn graphs(app: &App) -> (Vec<Arc<SuiteGraph>>, Vec<i64>) {
    let graphs: Vec<_> = app.graphs().into_iter().map(Arc::new).collect();
    let iterations = graphs.iter().map(|graph| graph.iterations()).collect();
    (graphs, iterations)
}

/// The least time of some turns, for the one node that is to print it.
fn measure(
    queue: &Queue,
    graphs: &[Arc<SuiteGraph>],
    iterations: &[i64],
    turns: u32,
) -> celerity::Result<Option<Duration>> {
    let programs: Vec<_> = graphs.iter().map(|graph| Program::new(queue, graph)).collect();
    let least = steps::least(queue, &programs, iterations, turns)?;
    Ok(queue.is_root().then_some(least))
}

/// Steps that have so many iterations in all: few of long ones, as a short measure meets fewer others on its
/// cores.
fn steps_of(work: i64, iterations: i64) -> i64 {
    (work / iterations.max(1)).clamp(8, 256)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_points_have_few_steps() {
        assert_eq!(
            [0, 1, 1 << 12, 1 << 20].map(|each| steps_of(1 << 20, each)),
            [256, 256, 256, 8]
        );
    }

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Options::command().debug_assert();
    }
}
