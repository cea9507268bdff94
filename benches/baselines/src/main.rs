//! What Celerity costs beside MPI used by hand: messages, barriers, reductions, collective operations,
//! and whole programs, taking turns in one run.
//!
//! ```sh
//! mpirun -n 2 target/release/network
//! ```
//!
//! Without a launcher, messages are exchanged between two nodes in one process.
//!
//! Prints tables for a page of docs. Each figure is the least of some repetitions, so that
//! other work on the machine matters little; of whole programs, which are compared bit for
//! bit, there is also the median of the ratios of single turns.

mod black_scholes;
mod cahn_hilliard;
mod collectives;
mod latency;
mod matmul;
mod mesh;
mod nbody;
mod pendulum;
mod ping_pong;
mod reductions;
mod rsim;
mod spread;
mod turns;
mod wave;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use mpi::topology::{Communicator, SimpleCommunicator};

/// Compares Celerity with MPI used by hand.
#[derive(Parser)]
struct Options {
    /// Measures of each kind, of which the least counts
    #[arg(long, default_value_t = 10)]
    repetitions: usize,
    /// Sizes of messages
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        default_value = "8,512,4096,16384,65536,262144,1048576,4194304"
    )]
    sizes: Vec<usize>,
    /// Of how many numbers there is a reduction in each step: their binary logarithms
    #[arg(
        long,
        value_name = "LOG2",
        value_delimiter = ',',
        default_value = "14,18,20,22,24",
        value_parser = clap::value_parser!(u32).range(1..=32)
    )]
    numbers: Vec<u32>,
    /// What to measure: messages (two processes), barriers, reductions,
    /// collectives, programs, or one program by its name (default: all)
    #[arg(value_name = "GROUP")]
    groups: Vec<String>,
}

/// Prints the rows of one program.
type Print = fn(&SimpleCommunicator, usize) -> celerity::Result<()>;

/// Whole programs, each by the name of its example.
const PROGRAMS: [(&str, Print); 8] = [
    ("wave_sim", wave::print),
    ("nbody", nbody::print),
    ("matmul", matmul::print),
    ("rsim", rsim::print),
    ("black_scholes", black_scholes::print),
    ("cahn_hilliard", cahn_hilliard::print),
    ("mesh", mesh::print),
    ("pendulum", pendulum::print),
];

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("network: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> celerity::Result<()> {
    // The first run initialises MPI, and leaves it so for what is done by hand.
    celerity::run(|queue| queue.barrier())?;
    if !mpi::environment::is_initialized() {
        return ping_pong::print_in_process(&options.sizes, options.repetitions);
    }
    let world = SimpleCommunicator::world();
    let wanted = |group: &str| {
        options.groups.is_empty() || options.groups.iter().any(|wanted| wanted == group)
    };
    if wanted("messages") && world.size() == 2 {
        ping_pong::print(&world, &options.sizes, options.repetitions)?;
    }
    if wanted("barriers") {
        latency::print(&world, options.repetitions)?;
    }
    if wanted("reductions") {
        reduction_steps(&world, &options.numbers, options.repetitions)?;
    }
    if wanted("collectives") {
        collectives::print(&world, &options.sizes, options.repetitions)?;
    }
    let wanted_programs: Vec<Print> = PROGRAMS
        .into_iter()
        .filter_map(|(name, print)| (wanted("programs") || wanted(name)).then_some(print))
        .collect();
    programs(&world, &wanted_programs, options.repetitions)
}

/// A table of steps with a reduction: of few numbers it is the reduction that takes time.
fn reduction_steps(
    world: &SimpleCommunicator,
    numbers: &[u32],
    repetitions: usize,
) -> celerity::Result<()> {
    if is_root(world) {
        println!("\n| program | processes | MPI by hand [µs] | Celerity [µs] | ratio |");
        println!("| --- | --- | --- | --- | --- |");
    }
    numbers.iter().try_for_each(|log2| reductions::print(world, 1 << log2, repetitions))
}

/// A table of whole programs.
fn programs(
    world: &SimpleCommunicator,
    programs: &[Print],
    repetitions: usize,
) -> celerity::Result<()> {
    if is_root(world) && !programs.is_empty() {
        println!("\n| program | processes | MPI by hand | Celerity | ratio | median ratio |");
        println!("| --- | --- | --- | --- | --- | --- |");
    }
    programs.iter().try_for_each(|print| print(world, repetitions))
}

/// Measures in each run: short ones, so that some of them have the machine for themselves.
const WINDOWS: usize = 20;

/// Measures of a whole program in each turn. Few: how fast it is depends on where its memory
/// happens to lie, and the next turn gets other memory.
const PROGRAM_WINDOWS: usize = 4;

/// The least time of so many measures of the same, after one that does not count.
fn shortest(
    windows: usize,
    mut measured: impl FnMut() -> celerity::Result<()>,
) -> celerity::Result<Duration> {
    measured()?;
    let mut least = Duration::MAX;
    for _ in 0..windows {
        let start = Instant::now();
        measured()?;
        least = least.min(start.elapsed());
    }
    Ok(least)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Whether this process is the one to print.
fn is_root(world: &SimpleCommunicator) -> bool {
    world.rank() == 0
}

/// This process's place, and how many there are.
fn place(world: &SimpleCommunicator) -> (usize, usize) {
    let number = |number: i32| usize::try_from(number).expect("MPI counts from 0");
    (number(world.rank()), number(world.size()))
}
