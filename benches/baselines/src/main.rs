//! What Celerity costs beside MPI used by hand: messages, barriers, and whole programs,
//! taking turns in one run.
//!
//! ```sh
//! mpirun -n 2 target/release/network
//! ```
//!
//! Without a launcher, messages are exchanged between two nodes in one process.
//!
//! Prints tables for a page of docs. Each figure is the least of some repetitions, so that
//! other work on the machine matters little. Whole programs are compared bit for bit.

mod latency;
mod nbody;
mod ping_pong;
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
    /// What to measure: messages (two processes), barriers, programs (default: all)
    #[arg(value_name = "GROUP")]
    groups: Vec<String>,
}

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
    if wanted("programs") {
        wave::print(&world, options.repetitions)?;
        nbody::print(&world, options.repetitions)?;
    }
    Ok(())
}

/// Measures in each run: short ones, so that some of them have the machine for themselves.
const WINDOWS: usize = 20;

/// The least time of some measures of the same, after one that does not count.
fn shortest(mut measured: impl FnMut() -> celerity::Result<()>) -> celerity::Result<Duration> {
    measured()?;
    let mut least = Duration::MAX;
    for _ in 0..WINDOWS {
        let start = Instant::now();
        measured()?;
        least = least.min(start.elapsed());
    }
    Ok(least)
}

/// The least time of each of two ways to do the same, which take turns.
fn least<R>(
    repetitions: usize,
    mut by_hand: impl FnMut() -> (Duration, R),
    mut ours: impl FnMut() -> celerity::Result<(Duration, R)>,
) -> celerity::Result<[(Duration, R); 2]> {
    let (mut best_by_hand, mut best_ours) = (by_hand(), ours()?);
    for _ in 1..repetitions {
        let (hand, own) = (by_hand(), ours()?);
        best_by_hand = if hand.0 < best_by_hand.0 { hand } else { best_by_hand };
        best_ours = if own.0 < best_ours.0 { own } else { best_ours };
    }
    Ok([best_by_hand, best_ours])
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
