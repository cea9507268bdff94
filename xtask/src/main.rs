//! Automation of the workspace, run as `cargo xtask <command>`.
//!
//! Owns how tests are run and counted, how benchmarks are compared with the reference figures, and
//! the repository rules that no compiler checks. Refuses to know what any other crate of the
//! workspace does: it depends on none of them, so that it builds first and builds fast.

mod api;
mod baselines;
mod bench;
mod book;
mod bundle;
mod calibrate;
mod error;
mod figures;
mod files;
mod kernels;
mod messages;
mod miri;
mod mpi;
mod msrv;
mod package;
mod predict;
mod runner;
mod semver;
mod skip;
mod tally;
mod task_bench;
mod test;
mod testkit;
mod tidy;
mod timeline;
mod toolchain;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::Error;
use crate::testkit::Program;
use crate::workspace::Workspace;

/// Automation of the Celerity workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the tests: in minutes, or all of them.
    ///
    /// Unit, integration and doc tests are run, the former two with cargo-nextest where it is
    /// installed. What takes long is left out, and listed at the end; `--all` runs it. The last line is
    /// `N passed, N failed`.
    Test(test::Options),
    /// Run benchmarks and compare them with the reference figures.
    ///
    /// Prints our median beside the best build of the C++ original for every case that both have,
    /// and writes the same figures to `bench-results.json` in the target directory. With `graphs`,
    /// heap allocations per task are counted, too. After `scaling`, named as a group, the picture
    /// docs/figures/scheduling-scaling.svg is drawn anew; of a quick run, in the target directory.
    ///
    /// The group `instructions` counts the instructions of fixed cases under valgrind, and compares them
    /// with those committed in benches/instructions/counts.txt.
    Bench(bench::Options),
    /// Check that the programs by hand in CUDA C++ compile.
    ///
    /// Installs nvcc into the target directory, by Python's pip, if there is none (`NVCC`, or on the path).
    Baselines(baselines::Options),
    /// Build the book from the pages that docs/SUMMARY.md lists, and follow all of its links.
    ///
    /// Installs mdBook into the target directory if it is not there, which takes minutes.
    Book(book::Options),
    /// Check that users of the facade can name every type in its public signatures, and that those which may grow
    /// are `#[non_exhaustive]`.
    ///
    /// Reads rustdoc's JSON, which needs a nightly toolchain.
    Api(api::Options),
    /// Compile what is published with the oldest Rust that manifests promise.
    ///
    /// Installs that Rust by rustup if it is not there.
    Msrv(msrv::Options),
    /// Compare the public API of published crates with an earlier one: what breaks programs needs a new version.
    ///
    /// Needs cargo-semver-checks, and says how to install it.
    Semver(semver::Options),
    /// Check the repository rules: dependency arrows, module docs, manifests, forbidden text.
    ///
    /// The same rules run as tests under `cargo xtask test`.
    Tidy,
    /// Simulate clusters: the real scheduler and executor under simulated time, network and devices.
    #[command(disable_help_flag = true)]
    Sim(Options),
    /// Check random programs on random clusters with everything that can judge a schedule.
    #[command(disable_help_flag = true)]
    Check(Options),
    /// Print the task, command or instruction graph of a program as text or as a picture.
    #[command(disable_help_flag = true)]
    Graph(Options),
    /// Compile all kernels for devices, list them, and check them against their hosts' side.
    ///
    /// Needs a compiler for devices; without one, says how to install it.
    Kernels,
    /// Run what needs MPI under each MPI that is installed: checks and random programs on 1, 2 and 4
    /// nodes, all examples, nodes that die, and a ping-pong beside a plain one.
    ///
    /// Looks for Open MPI and MPICH, side by side as Debian names them, or for plain `mpirun`.
    Mpi(mpi::Options),
    /// Run unit tests under Miri, which sees undefined behaviour, leaks and races.
    ///
    /// Those of the pure crates and of the host's side of kernels, in minutes. Installs a nightly toolchain
    /// with Miri by rustup if there is none.
    Miri(miri::Options),
    /// Build examples and tests into one folder for a machine that has GPUs and no Rust.
    ///
    /// The folder is `bundle` in the target directory, of at most 60 MiB, with the programs in one
    /// compressed archive (by `tar` and `xz`), which the scripts unpack; its `run.sh` runs all of it
    /// there and counts what passed, its `compare.sh` measures the examples beside programs in CUDA C++.
    Bundle {
        /// With nodes as MPI processes, of the MPI that is installed here
        #[arg(long)]
        mpi: bool,
        /// Only these programs; all, if none is named
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
    /// Measure what exchanges between nodes take on this machine, and write the constants by which
    /// programs decide what is worth a collective operation (`CELERITY_CALIBRATION`); with `--cluster`, also
    /// a file of costs for predictions.
    ///
    /// With processes of the MPI that is installed, or nodes of one process. Leave the machine idle
    /// meanwhile.
    Calibrate(calibrate::Options),
    /// Predict how an example would run on a cluster: its schedules as every node, executed in simulated
    /// time by what a calibration says.
    ///
    /// `cargo xtask predict wave_sim --nodes 1..128 --cluster FILE.toml -- --size 4096`; kernels are
    /// measured in a run on one node first. docs/prediction.md has the options and what they are worth.
    Predict(predict::Options),
    /// Package every crate that is meant to be published, and build each from its package.
    ///
    /// From a clean clone of the last commit, in order, against each other's packages; then uses them by
    /// versions, from a registry in a folder. Uploads nothing.
    Package,
    /// Draw what the bundle's `compare.sh` has measured as a picture (SVG): how programs scale with GPUs.
    #[command(disable_help_flag = true)]
    GpuFigure(Options),
    /// Draw what the bundle's `roofline.sh` has counted as a picture (SVG), and print it as a table.
    #[command(disable_help_flag = true)]
    Roofline(Options),
    /// Draw a trace as a picture (SVG): a row per thread and lane, a colour per kind of work.
    Timeline(timeline::Options),
    /// Print what the schedules of well-known programs cost per step: a table for docs.
    #[command(disable_help_flag = true)]
    Quality(Options),
    /// Make the figures of the papers anew: data, pictures, and tables for docs/figures.md.
    ///
    /// Measures for minutes, best on an idle machine. `--check` compares this machine with the committed data.
    Figures(figures::Options),
    /// Measure how small the tasks of Task Bench may be, pattern by pattern: a table for docs.
    ///
    /// Needs the suite's core as a shared library, built elsewhere. Nodes in one process, and, where MPI is
    /// installed, two processes.
    TaskBench(task_bench::Options),
}

/// Options of a program of another package; `--help` lists them.
#[derive(clap::Args)]
struct Options {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
    options: Vec<String>,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one command; `false` means that it ran and found something wrong.
fn run(command: Command) -> Result<bool, Error> {
    let workspace = Workspace::load()?;
    match command {
        Command::Test(options) => test::run(&workspace, &options),
        Command::Bench(options) => bench::run(&workspace, &options),
        Command::Baselines(options) => baselines::run(&workspace, &options),
        Command::Book(options) => book::run(&workspace, &options),
        Command::Api(options) => api::run(&workspace, &options),
        Command::Msrv(options) => msrv::run(&workspace, &options),
        Command::Semver(options) => semver::run(&workspace, &options),
        Command::Tidy => tidy::run(&workspace),
        Command::Miri(options) => miri::run(&workspace, &options),
        Command::Mpi(options) => mpi::run(&workspace, &options),
        Command::Bundle { mpi, names } => bundle::run(&workspace, mpi, &names),
        Command::Calibrate(options) => calibrate::run(&workspace, &options),
        Command::Predict(options) => predict::run(&workspace, &options),
        Command::Kernels => kernels::run(&workspace),
        Command::Package => package::run(&workspace),
        Command::Sim(given) => testkit::run(&workspace, Program::Sim, &given.options),
        Command::Check(given) => testkit::run(&workspace, Program::Check, &given.options),
        Command::Graph(given) => testkit::run(&workspace, Program::Graph, &given.options),
        Command::GpuFigure(given) => testkit::run(&workspace, Program::GpuFigure, &given.options),
        Command::Roofline(given) => testkit::run(&workspace, Program::Roofline, &given.options),
        Command::Timeline(options) => timeline::run(&options),
        Command::Quality(given) => testkit::run(&workspace, Program::Quality, &given.options),
        Command::Figures(options) => figures::run(&workspace, &options),
        Command::TaskBench(options) => task_bench::run(&workspace, &options),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Cli;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
