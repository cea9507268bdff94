//! `cargo xtask calibrate`: writes the constants of this machine by which `Collectives::Auto` decides, and a cluster file
//! for predictions.
//!
//! Owns how often and where the measuring program runs, and where its figures go. What it measures, and
//! how constants follow from that, is the program's business (`benches/baselines/src/bin/calibrate.rs`); how a cluster file
//! follows from that and from traces, that of `crates/predict`.

use std::fs;
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
/// Makes the cluster file.
const WRITER: [&str; 2] = ["celerity-predict", "cluster_file"];

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
    /// Also measure kernels, copies and the runtime, and write a cluster file for `cargo xtask predict`, of the
    /// greatest number of nodes
    #[arg(long, value_name = "FILE.toml")]
    cluster: Option<PathBuf>,
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
    let (counts, load) = (numbers(&options.processes), load());
    for &nodes in &counts {
        let mut command = command(&program, mpi.as_ref(), "measure", nodes);
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
    let Some(file) = &options.cluster else { return Ok(true) };
    let nodes = counts.into_iter().max().unwrap_or(2);
    let machine = Machine { workspace, program: &program, mpi: mpi.as_ref(), nodes, load: &load };
    machine.write_cluster(&path, file)
}

/// What a cluster file is of.
struct Machine<'r> {
    workspace: &'r Workspace,
    program: &'r Path,
    mpi: Option<&'r Mpi>,
    nodes: usize,
    /// When measuring began.
    load: &'r str,
}

impl Machine<'_> {
    /// Measures what is not in the constants of exchanges, and writes the file. `false` if a program fails.
    fn write_cluster(&self, exchanges: &Path, file: &Path) -> Result<bool, Error> {
        let [package, name] = WRITER;
        let Some(writer) = program(self.workspace, None, package, ["--bin", name])? else {
            return Ok(false);
        };
        let runs = [("alone", 1, 1), ("together", self.nodes, 1), ("copies", 1, 2)];
        let mut command = Command::new(writer);
        for (run, nodes, devices) in runs {
            let trace = self.workspace.target_dir.join(format!("calibration-{run}.json"));
            if !self.trace(&trace, nodes, devices)? {
                return Ok(false);
            }
            command.arg(format!("--{run}")).arg(trace);
        }
        let (eager, by) =
            self.mpi.map_or((0, "payloads are copied once there is memory for them"), Mpi::eager);
        command.arg("--exchanges").arg(exchanges).args(["--nodes", &self.nodes.to_string()]);
        command.args(["--eager", &eager.to_string(), "--eager-by", by]);
        command.args(["--name", &self.name(), "--circumstances"]);
        command.arg(format!("the load was {} when it began", self.load));
        command.args(self.mpi.map(|_| "--processes"));
        let Some(text) = output(&mut command)? else { return Ok(false) };
        write(file, &text)?;
        println!("=== written to {}\n{text}", file.display());
        println!("=== to use it: cargo xtask predict EXAMPLE --cluster {}", file.display());
        Ok(true)
    }

    /// Leaves the trace of a run of the measuring program. `false` if it fails.
    fn trace(&self, trace: &Path, nodes: usize, devices: usize) -> Result<bool, Error> {
        let mut command = command(self.program, self.mpi, "machine", nodes);
        let memory = if devices > 1 { "own" } else { "host" };
        command.env("CELERITY_TRACE", trace).env("CELERITY_DEVICES", devices.to_string());
        command.env("CELERITY_DEVICE_MEMORY", memory);
        println!("=== {}", describe(&command));
        Ok(output(&mut command)?.is_some())
    }

    fn name(&self) -> String {
        let nodes = self.nodes;
        let what = match self.mpi {
            Some(mpi) => format!("{nodes} processes of {}", mpi.title()),
            None => "nodes of one process".to_owned(),
        };
        let cores = available_parallelism().map_or(1, usize::from);
        let plural = if cores == 1 { "" } else { "s" };
        let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        format!("{what} on {cores} core{plural} of {}", processor(&text))
    }
}

/// How the system names its processor.
fn processor(text: &str) -> String {
    let value = |key: &str| {
        let of_key = |line: &str| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == key).then(|| value.trim().to_owned())
        };
        text.lines().find_map(of_key)
    };
    match (value("model name"), value("cpu family"), value("model")) {
        (Some(name), Some(family), Some(model)) => {
            format!("an {name} (family {family}, model {model})")
        }
        _ => "an unknown processor".to_owned(),
    }
}

/// How many programs have wanted a core in the last minute, where the system tells.
fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().filter(|load| !load.is_empty()).unwrap_or("unknown").to_owned()
}

/// How many nodes are measured, one after the other.
fn numbers(given: &[u16]) -> Vec<usize> {
    if !given.is_empty() {
        return given.iter().copied().map(usize::from).collect();
    }
    let cores = available_parallelism().map_or(2, |cores| cores.get().min(8));
    if cores > 2 { vec![2, cores] } else { vec![2] }
}

/// One run of the program that does something. Processes have a thread each: together they have as many cores as there
/// are.
fn command(program: &Path, mpi: Option<&Mpi>, what: &str, nodes: usize) -> Command {
    let nodes = nodes.to_string();
    match mpi {
        Some(mpi) => {
            let mut command = mpi.launch(&["-n", &nodes]);
            command.arg(program).arg(what).env("RAYON_NUM_THREADS", "1");
            command
        }
        None => {
            let mut command = Command::new(program);
            command.args([what, "--nodes", &nodes]);
            command
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{command, numbers, processor};
    use crate::runner::describe;

    #[test]
    fn two_nodes_are_always_measured_unless_others_are_named() {
        assert_eq!(numbers(&[])[0], 2);
        assert_eq!(numbers(&[3, 6]), [3, 6]);
        let command = command("/t/calibrate".as_ref(), None, "measure", 3);
        assert_eq!(describe(&command), "calibrate measure --nodes 3");
    }

    #[test]
    fn processors_have_names() {
        let text = "processor\t: 0\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n";
        assert_eq!(processor(text), "an AMD EPYC (family 26, model 2)");
        assert_eq!(processor(""), "an unknown processor");
    }
}
