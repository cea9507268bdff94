//! Generates the graphs of one node for very many tasks, and prints how much
//! memory that takes: a program may run for ever, so it must not grow.
//!
//! ```sh
//! cargo run --release -p celerity-benches --bin endurance -- --tasks 10000000
//! ```

use std::time::Instant;

use celerity_benches::endless::{Program, Running};
use celerity_benches::pipeline::{Depth, Pipeline, Shape};
use celerity_benches::resident::resident_bytes;
use clap::Parser;

/// Generates task, command and instruction graphs of one node for very many tasks.
#[derive(Parser)]
struct Options {
    /// Tasks of each program
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    tasks: u64,
    /// Tasks between two lines of output
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// Nodes in the cluster; the graphs are node 0's
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    nodes: u16,
    /// Devices of each node
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=61))]
    devices: u16,
}

fn main() {
    let options = Options::parse();
    println!("{:<12}{:>14}{:>14}{:>14}", "program", "tasks", "resident KiB", "µs per task");
    for program in [Program::Stencil, Program::AllGather] {
        run(program, &options);
    }
}

fn run(program: Program, options: &Options) {
    let shape = Shape::new(Depth::Instructions, options.nodes.into(), options.devices.into());
    let mut running = Running::new(program, Pipeline::new(shape).forgetting());
    let mut done = 0;
    while done < options.tasks {
        let tasks = options.every.min(options.tasks - done);
        let start = Instant::now();
        running.advance(tasks);
        let micros = start.elapsed().as_secs_f64() * 1e6 / tasks as f64;
        done += tasks;
        let resident =
            resident_bytes().map_or("only on Linux".to_owned(), |bytes| (bytes / 1024).to_string());
        println!("{:<12}{done:>14}{resident:>14}{micros:>14.2}", program.name());
    }
}
