//! Runs of a program that a prediction is made from: one that measures kernels, dry runs of every node,
//! and real ones to compare with. Owns processes, their environment and the files between them.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cluster::{ClusterModel, DeviceMemoryModel, Nanos};
use crate::error::PredictError;
use crate::pace::Pace;
use crate::recorded::RecordedRun;
use crate::schedule::NodeSchedule;

/// A program with its arguments, and a folder for what its runs write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramRuns {
    /// The program, of which every node runs a copy.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Words that launch the program as processes, in which `{}` stands for their number; without any,
    /// nodes are parts of one process.
    pub launcher: Vec<String>,
    /// Devices of each node.
    pub devices: usize,
    /// Variables for all of its runs, before those of the cluster and of the run itself.
    pub environment: Vec<(String, String)>,
    /// A folder that is there; files in it are replaced.
    pub scratch: PathBuf,
}

/// The variables by which launchers tell a process that it is one of several: a dry run refuses them.
const LAUNCHERS: [&str; 4] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "MPI_LOCALNRANKS"];

/// The variable by which a program is told its machine's constants.
const CALIBRATION: &str = "CELERITY_CALIBRATION";

/// Dry runs of all nodes together, at least: a median of few times is no more than one of them.
const LEAST_DRY_RUNS: usize = 5;

/// How much of what a failed program has said is told.
const TOLD: usize = 2000;

impl ProgramRuns {
    /// Runs the program on one node, and returns what its kernels cost.
    ///
    /// # Errors
    /// If the program cannot be started, fails or leaves no trace.
    pub fn reference(&self, model: &ClusterModel) -> Result<RecordedRun, PredictError> {
        let trace = self.scratch.join("reference.json");
        let mut command = self.launched(1);
        command.envs(&model.reference).env("CELERITY_TRACE", &trace);
        self.finish(&mut command, "the run that measures")?;
        let run = RecordedRun::read(&trace);
        remove(&trace);
        run
    }

    /// Schedules the program as each of so many nodes, one after the other; where these are few, several
    /// times, as it is measured how long that takes.
    ///
    /// # Errors
    /// If the program cannot be started or fails, or if what it writes is malformed.
    pub fn schedules(
        &self,
        model: &ClusterModel,
        nodes: usize,
    ) -> Result<(Vec<NodeSchedule>, Vec<Pace>), PredictError> {
        let dry_runs = (0..nodes.max(LEAST_DRY_RUNS)).map(|run| run % nodes);
        let weights = self.weights(model, nodes)?;
        let both = dry_runs.map(|node| self.schedule(model, (node, nodes), weights.as_deref()));
        let both = both.collect::<Result<Vec<_>, _>>()?;
        weights.iter().for_each(|path| remove(path));
        let (mut schedules, runs): (Vec<_>, Vec<_>) = both.into_iter().unzip();
        // Those of a node are the same each time; what they took is not.
        schedules.truncate(nodes);
        let paces = Pace::of_all(&schedules, &runs, model.engine.scheduling_percent);
        Ok((schedules, paces))
    }

    fn schedule(
        &self,
        model: &ClusterModel,
        (node, nodes): (usize, usize),
        weights: Option<&Path>,
    ) -> Result<(NodeSchedule, RecordedRun), PredictError> {
        let [schedule, trace] =
            ["schedule.txt", "dry-run.json"].map(|name| self.scratch.join(name));
        let memory = match model.device.memory {
            DeviceMemoryModel::Own => "own",
            DeviceMemoryModel::Host => "host",
        };
        let mut command = self.command(&self.program, &self.arguments);
        command
            .envs(weights.map(|path| (CALIBRATION, path)))
            .env("CELERITY_DRY_RUN_NODES", nodes.to_string())
            .env("CELERITY_DRY_RUN_NODE", node.to_string())
            .env("CELERITY_DRY_RUN_SCHEDULE", &schedule)
            .env("CELERITY_TRACE", &trace)
            .env("CELERITY_DEVICES", self.devices.to_string())
            .env("CELERITY_DEVICE_MEMORY", memory)
            .env("CELERITY_LOG_LEVEL", "warn");
        self.finish(&mut command, &format!("N{node} of {nodes}"))?;
        let read = NodeSchedule::read(&schedule).and_then(|schedule| {
            let run = RecordedRun::read(&trace)?;
            Ok((schedule, run))
        });
        [schedule, trace].iter().for_each(|path| remove(path));
        read
    }

    /// A file with what runs on so many nodes weigh collective operations by: the cluster's constants, unless the caller
    /// names others.
    fn weights(&self, model: &ClusterModel, nodes: usize) -> Result<Option<PathBuf>, PredictError> {
        if self.environment.iter().any(|(name, _)| name == CALIBRATION) {
            return Ok(None);
        }
        let path = self.scratch.join("weights.txt");
        std::fs::write(&path, model.weights(nodes).to_string())
            .map_err(|source| PredictError::Write { path: path.clone(), source })?;
        Ok(Some(path))
    }

    /// Runs the program on so many nodes, and returns how long it took.
    ///
    /// # Errors
    /// If the program cannot be started, fails or leaves no trace of its end.
    pub fn measure(&self, model: &ClusterModel, nodes: usize) -> Result<Nanos, PredictError> {
        let trace = self.scratch.join("measured.json");
        let mut command = self.launched(nodes);
        command
            .envs(&model.reference)
            .env("CELERITY_TRACE", &trace)
            .env("CELERITY_DEVICES", self.devices.to_string())
            .env("CELERITY_LOG_LEVEL", "warn");
        if self.launcher.is_empty() {
            command.env("CELERITY_NODES", nodes.to_string());
        }
        // As what is predicted decides.
        let weights = self.weights(model, nodes)?;
        command.envs(weights.as_ref().map(|path| (CALIBRATION, path)));
        self.finish(&mut command, &format!("{nodes} nodes"))?;
        let end = RecordedRun::read(&trace)?.end;
        weights.iter().chain([&trace]).for_each(|path| remove(path));
        end.ok_or_else(|| PredictError::Malformed {
            path: trace,
            line: 1,
            what: "the trace does not tell of the program's end".to_owned(),
        })
    }

    /// The program, launched as so many processes if there is a launcher.
    fn launched(&self, nodes: usize) -> Command {
        let mut words = self.launcher.iter().map(|word| word.replace("{}", &nodes.to_string()));
        let Some(first) = words.next() else { return self.command(&self.program, &self.arguments) };
        let program = self.program.clone().into_os_string();
        let rest = words.map(OsString::from).chain([program]);
        let all: Vec<_> = rest.chain(self.arguments.iter().cloned()).collect();
        self.command(Path::new(&first), &all)
    }

    /// A program, without what the caller's environment says of Celerity.
    fn command(&self, program: &Path, arguments: &[OsString]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let of_celerity = |name: &OsStr| name.as_encoded_bytes().starts_with(b"CELERITY_");
        for (name, _) in std::env::vars_os().filter(|(name, _)| of_celerity(name)) {
            command.env_remove(name);
        }
        LAUNCHERS.iter().for_each(|name| {
            command.env_remove(name);
        });
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    fn finish(&self, command: &mut Command, run: &str) -> Result<(), PredictError> {
        let program = self.program.display().to_string();
        let output = command
            .output()
            .map_err(|source| PredictError::Start { program: program.clone(), source })?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let from = said.len().saturating_sub(TOLD);
        let from = (from..said.len()).find(|at| said.is_char_boundary(*at)).unwrap_or(0);
        let (run, status) = (run.to_owned(), output.status.to_string());
        Err(PredictError::Failed { program, run, status, said: said[from..].to_owned() })
    }
}

/// What cannot be removed is replaced by the next run.
fn remove(path: &Path) {
    drop(std::fs::remove_file(path));
}
