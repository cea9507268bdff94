//! Where a run takes place: the network and the devices that features, launcher
//! and configuration call for. Runs nothing.

use std::io;
use std::path::Path;

use celerity_executor::{ClusterConfig, Costs, Run, RunError, available_cores, online_cores};

use crate::config::{Config, Platform};
use crate::error::{ConfigError, Error, Result};
use crate::log::LogLevel;
use crate::pinning::Pinning;

/// The nodes of this host, as far as cores and devices are dealt to them.
struct Host {
    /// The index in the cluster of this process's first node.
    first: usize,
    /// Nodes in this process.
    here: usize,
    /// Nodes of this host that other processes have, before this one's.
    before: usize,
    /// All nodes on this host.
    all: usize,
    /// All nodes of the cluster.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "CPUs need not know"))]
    cluster: usize,
}

/// The run that `config` describes, on the network and devices that there are. If it cannot
/// be, the processes of other nodes are told.
pub(crate) fn place<'r>(config: &Config, cluster: &ClusterConfig) -> Result<Run<'r>> {
    if config.dry_run.is_some() {
        return dry(config, cluster);
    }
    if config.dry_run_schedule.is_some() {
        config.log_level.print(LogLevel::Warn, || {
            "warning: a schedule is to be written (CELERITY_DRY_RUN_SCHEDULE or \
             `Config::dry_run_schedule`), but this is no dry run: that takes \
             CELERITY_DRY_RUN_NODES or `Config::dry_run`"
                .to_owned()
        });
    }
    let site = Site::find(config)?;
    let placed = site.place(config, cluster);
    placed.map_err(|error| site.refuse(error))
}

/// A dry run is this process's alone: not that of one among several, who are told.
fn dry<'r>(config: &Config, cluster: &ClusterConfig) -> Result<Run<'r>> {
    match launcher_variable() {
        Some(variable) => Err(misconfigured(ConfigError::DryRunUnderLauncher { variable })),
        None if config.dry_run_node >= cluster.nodes.max(1) => {
            let (node, nodes) = (config.dry_run_node, cluster.nodes);
            Err(ConfigError::NoSuchDryRunNode { node, nodes }.into())
        }
        None => Ok(weighing(config, Run::new(cluster).dry_as(config.dry_run_node))?),
    }
}

/// The error of a run whose configuration is wrong in this process. The processes of other
/// nodes, if a launcher has started some, end the run with it, too.
pub(crate) fn misconfigured(error: ConfigError) -> Error {
    match Site::find(&Config::default()) {
        Ok(site) => site.refuse(error.into()),
        // The other processes end as this one does: they do not meet.
        Err(_) => error.into(),
    }
}

/// The processes that a launcher has started together, or this one alone.
#[derive(Debug)]
struct Site {
    #[cfg(feature = "mpi")]
    network: Option<(celerity_mpi::MpiNetwork, &'static str)>,
}

impl Site {
    fn place<'r>(&self, config: &Config, cluster: &ClusterConfig) -> Result<Run<'r>> {
        let (run, host) = self.connect(config, Run::new(cluster))?;
        let run = if host.first == 0 { weighing(config, run)? } else { run };
        let level = config.log_level;
        let inform = move |text: &str| level.print(LogLevel::Info, || text.to_owned());
        let run = run.pinned(cores(config, &host)?).informing(inform);
        devices(config, run, &host)
    }
}

/// The run with the constants of its machine. Only node 0's count.
fn weighing<'r>(config: &Config, run: Run<'r>) -> Result<Run<'r>, ConfigError> {
    let Some(file) = &config.calibration else { return Ok(run) };
    let path = || file.display().to_string();
    let text = read_small(file).map_err(|error| ConfigError::UnreadableCalibration {
        path: path(),
        what: error.to_string(),
    })?;
    let costs: Costs =
        text.parse().map_err(|error| ConfigError::BadCalibration { path: path(), error })?;
    Ok(run.with_costs(costs))
}

/// The text of a file that has some lines. What is no file may have no end, or nobody who writes.
fn read_small(file: &Path) -> io::Result<String> {
    const MOST: u64 = 1 << 20;
    let about = std::fs::metadata(file)?;
    if about.is_file() && about.len() <= MOST {
        return std::fs::read_to_string(file);
    }
    let what = if about.is_file() { "it is larger than 1 MiB" } else { "it is no file" };
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

/// The cores that threads of this process stay on; none if they go anywhere.
fn cores(config: &Config, host: &Host) -> Result<Vec<usize>> {
    if config.pinning == Pinning::Off {
        return Ok(Vec::new());
    }
    let process = (host.before / host.here, host.all / host.here);
    let (available, online) = (available_cores()?, online_cores()?);
    let cores = config.pinning.cores(process, &available, online)?;
    if cores.is_empty() {
        let (process, of) = process;
        config.log_level.print(LogLevel::Warn, || {
            format!("no thread is pinned: too few cores for process {process} of {of} on this host")
        });
    }
    Ok(cores)
}

#[cfg(not(feature = "cuda"))]
fn start_error(what: impl ToString) -> RunError {
    RunError::Start { what: what.to_string() }
}

#[cfg(feature = "mpi")]
impl Site {
    /// Meets the other processes, if a launcher has started any.
    fn find(config: &Config) -> Result<Self> {
        use celerity_mpi::{MpiNetwork, MpiOptions, ThreadLevel};

        let Some(variable) = launcher_variable() else { return Ok(Self { network: None }) };
        let level = config.log_level;
        let options = MpiOptions {
            threads: match config.mpi_thread_multiple {
                true => ThreadLevel::Multiple,
                false => ThreadLevel::Serialized,
            },
            peer_timeout: config.peer_timeout,
            start_timeout: config.start_timeout,
            watchdog: config.cluster.watchdog,
            warnings: level.warnings(),
            ..MpiOptions::default()
        };
        let network = MpiNetwork::join(options).map_err(RunError::from)?;
        Ok(Self { network: Some((network, variable)) })
    }

    fn connect<'r>(&self, config: &Config, run: Run<'r>) -> Result<(Run<'r>, Host)> {
        use celerity_executor::Network as _;

        let Some((network, variable)) = &self.network else { return Ok((run, in_process(config))) };
        if config.nodes_in_process() > 1 {
            return Err(ConfigError::NodesUnderLauncher { variable }.into());
        }
        let (before, all) = network.place_on_host();
        let (first, cluster) = (network.local().start, network.nodes());
        let host = Host { first, here: 1, before, all, cluster };
        Ok((run.on(network.clone()), host))
    }

    /// This process cannot take part in the run. Returns what the run ends with.
    fn refuse(&self, error: Error) -> Error {
        use celerity_executor::Network as _;

        match &self.network {
            Some((network, _)) if network.nodes() > 1 => {
                let error = match error {
                    Error::Run(error) => *error,
                    other => RunError::Start { what: other.to_string() },
                };
                network.refuse(error).into()
            }
            _ => error,
        }
    }
}

#[cfg(not(feature = "mpi"))]
impl Site {
    #[expect(clippy::unnecessary_wraps, reason = "with feature `mpi` it may fail")]
    fn find(_: &Config) -> Result<Self> {
        Ok(Self {})
    }

    /// `mpirun` starts such a program, too, and each process does all of the work.
    #[expect(clippy::unnecessary_wraps, reason = "as above")]
    fn connect<'r>(&self, config: &Config, run: Run<'r>) -> Result<(Run<'r>, Host)> {
        if let Some(variable) = launcher_variable() {
            config.log_level.print(LogLevel::Warn, || {
                format!(
                    "a launcher has set {variable}, but the program was built without feature \
                     `mpi`: this process is a cluster of its own"
                )
            });
        }
        Ok((run, in_process(config)))
    }

    fn refuse(&self, error: Error) -> Error {
        error
    }
}

/// The variable by which a launcher tells a process that it is one of several,
/// if there is one. Open MPI, MPICH and its relatives, and Slurm set one each.
fn launcher_variable() -> Option<&'static str> {
    let known = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "MPI_LOCALNRANKS"];
    known.into_iter().find(|name| std::env::var_os(name).is_some())
}

fn in_process(config: &Config) -> Host {
    let nodes = config.nodes_in_process();
    Host { first: 0, here: nodes, before: 0, all: nodes, cluster: nodes }
}

#[cfg(feature = "cuda")]
fn devices<'r>(config: &Config, run: Run<'r>, host: &Host) -> Result<Run<'r>> {
    use crate::cuda;

    let found = match config.platform {
        Platform::Cpu => return Ok(run),
        Platform::Cuda => Some(cuda::gpus()?),
        Platform::Auto => cuda::gpus().map_err(|error| say_why_cpu(config, &error)).ok(),
    };
    match found {
        Some(gpus) => {
            let here = host.first..host.first + host.here;
            let nodes =
                cuda::Nodes { here, before: host.before, all: host.all, cluster: host.cluster };
            Ok(run.with_devices(cuda::deal(&gpus, &nodes, config.gpus())?))
        }
        None => Ok(run),
    }
}

#[cfg(feature = "cuda")]
fn say_why_cpu(config: &Config, error: &RunError) {
    config.log_level.print(crate::LogLevel::Info, || format!("running on CPUs: {error}"));
}

#[cfg(not(feature = "cuda"))]
fn devices<'r>(config: &Config, run: Run<'r>, _: &Host) -> Result<Run<'r>> {
    match config.platform {
        Platform::Auto | Platform::Cpu => Ok(run),
        Platform::Cuda => {
            let what = "GPUs were asked for, but the program was built without feature `cuda`";
            Err(start_error(what).into())
        }
    }
}
