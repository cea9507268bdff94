//! `cargo xtask calibrate`: writes the constants of this machine by which `Collectives::Auto` decides.
//!
//! Owns how often and where the measuring program runs, and where its figures go. What it measures, and
//! how constants follow from that, is the program's business (`benches/baselines/src/bin/calibrate.rs`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::available_parallelism;

use clap::Args;

use crate::error::Error;
use crate::files::write;
use crate::mpi::{Mpi, installed, program};
use crate::runner::{describe, output};
use crate::workspace::Workspace;

const PACKAGE: &str = "celerity-baselines";
const PROGRAM: &str = "calibrate";

/// What is measured, and where the constants go.
#[derive(Args)]
pub(crate) struct Options {
    /// Numbers of processes, or of nodes with `--in-process`: from two on (default: 2, and as many as
    /// there are cores, up to 8)
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(2..))]
    processes: Vec<u16>,
    /// Measure nodes in one process
    #[arg(long)]
    in_process: bool,
    /// Where to write the constants (default: `calibration.txt` in the target directory)
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Measures, and writes the file. `false` means that a program has failed, and has said why.
///
/// # Errors
/// If a program cannot be started, or a file not be written.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, Error> {
    let mpi = if options.in_process { None } else { installed().into_iter().next() };
    if mpi.is_none() && !options.in_process {
        println!("neither Open MPI nor MPICH is installed: nodes of one process are measured");
    }
    let Some(program) = program(workspace, mpi.as_ref(), PACKAGE, ["--bin", PROGRAM])? else {
        return Ok(false);
    };
    let mut samples = String::new();
    for nodes in numbers(&options.processes) {
        let mut command = measure(&program, mpi.as_ref(), nodes);
        println!("=== {}", describe(&command));
        let Some(found) = output(&mut command)? else { return Ok(false) };
        print!("{found}");
        samples += &found;
    }
    let folder = &workspace.target_dir;
    let measured = folder.join("calibration-samples.txt");
    write(&measured, &samples)?;
    let Some(constants) = output(Command::new(&program).arg("fit").arg(&measured))? else {
        return Ok(false);
    };
    let path = options.output.clone().unwrap_or_else(|| folder.join("calibration.txt"));
    write(&path, &constants)?;
    println!("=== written to {}\n{constants}", path.display());
    println!("=== to use it: CELERITY_CALIBRATION={}", path.display());
    Ok(true)
}

/// How many nodes are measured, one after the other.
fn numbers(given: &[u16]) -> Vec<usize> {
    if !given.is_empty() {
        return given.iter().copied().map(usize::from).collect();
    }
    let cores = available_parallelism().map_or(2, |cores| cores.get().min(8));
    if cores > 2 { vec![2, cores] } else { vec![2] }
}

/// One run of the program. Processes have a thread each: together they have as many cores as there
/// are.
fn measure(program: &Path, mpi: Option<&Mpi>, nodes: usize) -> Command {
    let nodes = nodes.to_string();
    match mpi {
        Some(mpi) => {
            let mut command = mpi.launch(&["-n", &nodes]);
            command.arg(program).arg("measure").env("RAYON_NUM_THREADS", "1");
            command
        }
        None => {
            let mut command = Command::new(program);
            command.args(["measure", "--nodes", &nodes]);
            command
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{measure, numbers};
    use crate::runner::describe;

    #[test]
    fn two_nodes_are_always_measured_unless_others_are_named() {
        assert_eq!(numbers(&[])[0], 2);
        assert_eq!(numbers(&[3, 6]), [3, 6]);
        let command = measure("/t/calibrate".as_ref(), None, 3);
        assert_eq!(describe(&command), "calibrate measure --nodes 3");
    }
}
