//! What a cluster is made of. Reads no environment: that is the facade's.

use std::path::PathBuf;
use std::time::Duration;

use celerity_cpd::{Collectives, Costs};
use celerity_idag::{DeviceMemory, Lookahead};
use celerity_tdag::{TaskGraphConfig, UninitializedRead};

use crate::error::RunError;
use crate::warning::WarningSink;
use crate::wires::Wires;

/// An in-process cluster.
///
/// ```
/// use celerity_executor::ClusterConfig;
/// let config = ClusterConfig { nodes: 4, devices: 3, ..ClusterConfig::default() };
/// assert_eq!(config.horizon_step, 4);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    /// Nodes, each with its own user thread: 1 to 1024 in one process, 1,048,576 in all.
    pub nodes: usize,
    /// Devices per node, 1 to 61.
    pub devices: usize,
    /// Which memory CPU devices work in; see
    /// [`memory_of_devices`](Self::memory_of_devices).
    pub device_memory: Option<DeviceMemory>,
    /// Critical-path length after which a horizon is inserted (instruction-graph preprint,
    /// §3.5): 1 to 1,048,576.
    pub horizon_step: u64,
    /// Number of parallel tasks after which a horizon is inserted: 1 to 1,048,576.
    pub horizon_max_parallelism: u64,
    /// What reading never-written elements is.
    pub uninitialized_read: UninitializedRead,
    /// Horizons that may be outstanding before submission blocks, beside those
    /// that the lookahead holds back (64 at most, 1024 if it is infinite): 1 to
    /// 1,048,576. Where nodes are processes, a horizon is outstanding also while another
    /// node that this one sends to is more than so many behind it.
    pub run_ahead: usize,
    /// How long work that will allocate is held back, so that allocations are
    /// made once (instruction-graph preprint, §4.3).
    pub lookahead: Lookahead,
    /// Which collective operations between nodes are looked for (IJPP 2024). With one node, none.
    pub collectives: Collectives,
    /// Which way data goes between devices of different processes.
    pub wires: Wires,
    /// What messages and collective operations cost, by which [`Collectives::Auto`] decides. Where
    /// nodes are processes, those of node 0 count for all.
    pub costs: Costs,
    /// Whether observers are told what is [weighed](crate::Observer::weighed).
    pub tells_weighed: bool,
    /// How much of every schedule is checked before it runs.
    pub check: CheckLevel,
    /// Bytes that may be resident in each device's own memory, if limited.
    pub device_memory_limit: Option<u64>,
    /// How long a node that waits for something may make no progress before it
    /// [warns](crate::Warning::Stalled); 0: for ever.
    pub watchdog: Duration,
    /// Where to write a trace of what every thread and lane did and when, if
    /// anywhere.
    pub trace: Option<PathBuf>,
    /// Who is told of warnings.
    pub warnings: WarningSink,
}

/// What the instruction graph can track, besides the two host memories.
const MOST_DEVICES: u64 = 61;

/// More than the largest machines have; tables of a node grow with their number.
const MOST_NODES: u64 = 1 << 20;

/// Each node has a thread for its program, and a table of all chunks of a task: so many take
/// 0.8 s and 176 MB for a program of one kernel on two cores of an AMD EPYC, twice as many
/// 3.6 s, and 16 times as many do not come to their end.
const MOST_NODES_OF_A_PROCESS: usize = 1024;

/// With more, the runtime would hardly ever forget what has been done, and submission hardly
/// ever wait.
const MOST_HORIZONS: u64 = 1 << 20;

impl Default for ClusterConfig {
    fn default() -> Self {
        Self {
            nodes: 1,
            devices: 1,
            device_memory: None,
            horizon_step: 4,
            horizon_max_parallelism: 64,
            uninitialized_read: UninitializedRead::Error,
            run_ahead: 16,
            lookahead: Lookahead::default(),
            collectives: Collectives::default(),
            wires: Wires::default(),
            costs: Costs::default(),
            tells_weighed: false,
            check: CheckLevel::default(),
            device_memory_limit: None,
            watchdog: Duration::from_secs(30),
            trace: None,
            warnings: WarningSink::default(),
        }
    }
}

impl ClusterConfig {
    /// Which memory CPU devices work in: what `device_memory` says. Without that,
    /// the host's if a node has one device: that is what it is made of, and copies
    /// would cost more than kernels and messages. But if there are several, or
    /// their memory has a limit, they stand for GPUs, and each has its own.
    #[must_use]
    pub fn memory_of_devices(&self) -> DeviceMemory {
        let is_host = self.devices == 1 && self.device_memory_limit.is_none();
        let usual = if is_host { DeviceMemory::Host } else { DeviceMemory::Own };
        self.device_memory.unwrap_or(usual)
    }

    /// Rejects what no cluster can be made of.
    ///
    /// # Errors
    /// [`RunError::Start`] if a count is 0 or too large, or a limit on memory is given
    /// that no device has.
    pub fn validate(&self) -> Result<(), RunError> {
        let counts = [
            ("nodes", self.nodes as u64, MOST_NODES),
            ("devices", self.devices as u64, MOST_DEVICES),
            ("run_ahead", self.run_ahead as u64, MOST_HORIZONS),
            ("horizon_step", self.horizon_step, MOST_HORIZONS),
            ("horizon_max_parallelism", self.horizon_max_parallelism, MOST_HORIZONS),
        ];
        let impossible = |&(_, count, most): &(_, u64, u64)| !(1..=most).contains(&count);
        let what = match counts.into_iter().find(impossible) {
            Some((name, count, most)) => {
                format!("`{name}` is {count}, but must be a number from 1 to {most}")
            }
            None if self.limits_host_memory() => {
                "devices have a limit on memory, but work in the host's, which has none; \
                 give them memory of their own, or no limit"
                    .to_owned()
            }
            None => return Ok(()),
        };
        Err(RunError::Start { what })
    }

    /// Rejects more nodes in this process than one can have.
    pub(crate) fn check_nodes_here(&self, nodes: usize) -> Result<(), RunError> {
        if nodes <= MOST_NODES_OF_A_PROCESS {
            return Ok(());
        }
        let what = format!(
            "{nodes} nodes in one process, but {MOST_NODES_OF_A_PROCESS} at most are possible, as \
             each has threads and tables of its own; for more, let a launcher start processes \
             (feature `mpi`)"
        );
        Err(RunError::Start { what })
    }

    fn limits_host_memory(&self) -> bool {
        self.device_memory_limit.is_some() && self.memory_of_devices() == DeviceMemory::Host
    }

    pub(crate) fn task_graph(&self) -> TaskGraphConfig {
        TaskGraphConfig {
            horizon_step: self.horizon_step,
            horizon_max_parallelism: self.horizon_max_parallelism,
            uninitialized_read: self.uninitialized_read,
        }
    }
}

/// How much of every schedule is checked before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckLevel {
    /// No schedule is checked.
    Off,
    /// What is cheap: shape, lifetimes, placements and bindings, at about half
    /// the cost of scheduling.
    Cheap,
    /// Everything: also that every read sees what sequential execution would
    /// give it, and that nothing races, at about the cost of scheduling again.
    Full,
}

impl Default for CheckLevel {
    /// [`Cheap`](Self::Cheap) in debug builds.
    fn default() -> Self {
        if cfg!(debug_assertions) { Self::Cheap } else { Self::Off }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_counts_are_named() {
        let config = ClusterConfig { devices: 0, ..ClusterConfig::default() };
        let error = config.validate().unwrap_err();
        assert!(error.to_string().contains("`devices` is 0"), "{error}");
        assert_eq!(ClusterConfig::default().validate(), Ok(()));
    }

    #[test]
    fn numbers_that_cannot_work_are_named_with_those_that_can() {
        let usual = ClusterConfig::default;
        let impossible = [
            (ClusterConfig { nodes: usize::MAX, ..usual() }, "`nodes` is 18446744073709551615"),
            (ClusterConfig { devices: 62, ..usual() }, "`devices` is 62, but must be a number"),
            (ClusterConfig { devices: 62, ..usual() }, "from 1 to 61"),
            (ClusterConfig { run_ahead: usize::MAX, ..usual() }, "`run_ahead` is"),
            (ClusterConfig { horizon_step: u64::MAX, ..usual() }, "from 1 to 1048576"),
            (ClusterConfig { horizon_max_parallelism: 1 << 21, ..usual() }, "parallelism` is 2097"),
        ];
        for (config, part) in impossible {
            let error = config.validate().unwrap_err();
            assert!(error.to_string().contains(part), "{error} does not say {part}");
        }
        let most = 1 << 20;
        let most = ClusterConfig {
            nodes: most as usize,
            devices: 61,
            run_ahead: most as usize,
            horizon_step: most,
            horizon_max_parallelism: most,
            ..usual()
        };
        assert_eq!(most.validate(), Ok(()));
        assert_eq!(most.check_nodes_here(1024), Ok(()));
        let error = most.check_nodes_here(20_000).unwrap_err();
        assert!(error.to_string().contains("20000 nodes in one process, but 1024"), "{error}");
    }

    #[test]
    fn one_device_works_in_the_memory_of_the_host_unless_told_otherwise() {
        let usual = ClusterConfig::default();
        assert_eq!(usual.memory_of_devices(), DeviceMemory::Host);
        let several = ClusterConfig { devices: 2, ..usual.clone() };
        assert_eq!(several.memory_of_devices(), DeviceMemory::Own);
        let limited = ClusterConfig { device_memory_limit: Some(1), ..usual.clone() };
        assert_eq!(limited.memory_of_devices(), DeviceMemory::Own);
        assert_eq!(limited.validate(), Ok(()));
        let told = ClusterConfig { device_memory: Some(DeviceMemory::Host), ..limited };
        let error = told.validate().unwrap_err();
        assert!(error.to_string().contains("no limit"), "{error}");
    }
}
