//! Programs of other packages under one roof: `cargo xtask sim`, `check`, `graph` and `quality` of
//! the testkit, `gpu-figure` and `roofline` of the benchmarks.
//!
//! Owns how they are started. They are built in release mode by Cargo, so that this crate depends
//! on none of ours; what their options mean is their own business.

use crate::error::Error;
use crate::runner::describe;
use crate::workspace::{Workspace, cargo};

const TESTKIT: &str = "celerity-testkit";

/// A program of the testkit or of the benchmarks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Program {
    /// Simulates clusters.
    Sim,
    /// Checks random programs.
    Check,
    /// Prints graphs.
    Graph,
    /// Prints what schedules cost.
    Quality,
    /// Draws how programs scale with GPUs.
    GpuFigure,
    /// Draws what kernels reach of what a GPU can do.
    Roofline,
}

/// Builds and runs `program` in the foreground; `false` if it ended with a failure.
///
/// # Errors
/// If Cargo cannot be started.
pub(crate) fn run(
    workspace: &Workspace,
    program: Program,
    arguments: &[String],
) -> Result<bool, Error> {
    let (package, name) = match program {
        Program::Sim => (TESTKIT, "sim"),
        Program::Check => (TESTKIT, "check"),
        Program::Graph => (TESTKIT, "graph"),
        Program::Quality => (TESTKIT, "quality"),
        Program::GpuFigure => ("celerity-benches", "gpu_figure"),
        Program::Roofline => ("celerity-benches", "roofline"),
    };
    // Not in the workspace's folder: files on the command line are relative to the user's.
    let manifest = workspace.root.join("Cargo.toml");
    let mut command = cargo();
    command.args(["run", "--quiet", "--release", "-p", package, "--bin", name]);
    command.arg("--manifest-path").arg(manifest).arg("--").args(arguments);
    let status = command.status();
    let status = status.map_err(|source| Error::Start { program: describe(&command), source })?;
    Ok(status.success())
}
