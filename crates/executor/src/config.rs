//! What a cluster is made of. Reads no environment: that is the facade's.

use std::path::PathBuf;
use std::time::Duration;

use celerity_idag::{DeviceMemory, Lookahead};
use celerity_tdag::{TaskGraphConfig, UninitializedRead};

use crate::check::CheckLevel;
use crate::error::RunError;
use crate::warning::WarningSink;

/// An in-process cluster.
///
/// ```
/// use celerity_executor::ClusterConfig;
/// let config = ClusterConfig { nodes: 4, devices: 3, ..ClusterConfig::default() };
/// assert_eq!(config.horizon_step, 4);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    /// Nodes, each with its own user thread; at least 1.
    pub nodes: usize,
    /// Devices per node, 1 to 61.
    pub devices: usize,
    /// Which memory CPU devices work in; see
    /// [`memory_of_devices`](Self::memory_of_devices).
    pub device_memory: Option<DeviceMemory>,
    /// Critical-path length after which a horizon is inserted (002 §3.5).
    pub horizon_step: u64,
    /// Number of parallel tasks after which a horizon is inserted.
    pub horizon_max_parallelism: u64,
    /// What reading never-written elements is.
    pub uninitialized_read: UninitializedRead,
    /// Horizons that may be outstanding before submission blocks, beside those
    /// that the lookahead holds back (64 at most, 1024 if it is infinite); at
    /// least 1.
    pub run_ahead: usize,
    /// How long work that will allocate is held back, so that allocations are
    /// made once (002 §4.3).
    pub lookahead: Lookahead,
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
const MOST_DEVICES: usize = 61;

/// More than the largest machines have; tables of a node grow with their number.
const MOST_NODES: usize = 1 << 20;

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
    /// [`RunError::Start`] if a count is 0, there are too many nodes or devices, or a
    /// limit on memory is given that no device has.
    pub fn validate(&self) -> Result<(), RunError> {
        let counts = [
            ("nodes", self.nodes as u64),
            ("devices", self.devices as u64),
            ("run_ahead", self.run_ahead as u64),
            ("horizon_step", self.horizon_step),
            ("horizon_max_parallelism", self.horizon_max_parallelism),
        ];
        let what = match counts.iter().find(|(_, count)| *count == 0) {
            Some((name, _)) => format!("`{name}` is 0, but must be at least 1"),
            None if self.nodes > MOST_NODES => {
                format!("{} nodes, but at most {MOST_NODES} can be", self.nodes)
            }
            None if self.devices > MOST_DEVICES => {
                format!("{} devices per node, but at most {MOST_DEVICES} can be", self.devices)
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
