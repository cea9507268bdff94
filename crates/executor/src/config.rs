//! What a cluster is made of. Reads no environment: that is the facade's.

use std::path::PathBuf;
use std::time::Duration;

use celerity_idag::Lookahead;
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
    /// Devices per node, each with its own memory; 1 to 61.
    pub devices: usize,
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
    /// Bytes that may be resident in each device's memory, if limited.
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

impl Default for ClusterConfig {
    fn default() -> Self {
        Self {
            nodes: 1,
            devices: 1,
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
    /// Rejects what no cluster can be made of.
    ///
    /// # Errors
    /// [`RunError::Start`] if a count is 0, or there are too many devices.
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
            None if self.devices > MOST_DEVICES => {
                format!("{} devices per node, but at most {MOST_DEVICES} can be", self.devices)
            }
            None => return Ok(()),
        };
        Err(RunError::Start { what })
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
}
