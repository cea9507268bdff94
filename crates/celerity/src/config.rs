//! Configuration: what a run can be told, by the program or by environment
//! variables.

mod env;

use celerity_executor::{CheckLevel, ClusterConfig, Lookahead, run_cluster, run_cluster_observed};
use celerity_tdag::UninitializedRead;

use crate::error::Result;
use crate::log::LogLevel;
use crate::queue::Queue;
use crate::recorder::Recorder;

pub use env::ConfigError;

/// What to run on, and how.
///
/// ```
/// use celerity::Config;
/// let nodes = Config::default().nodes(2).devices(3).run(|queue| Ok(queue.nodes()))?;
/// assert_eq!(nodes, 2);
/// # Ok::<(), celerity::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    cluster: ClusterConfig,
    log_level: LogLevel,
    print_graphs: bool,
}

impl Default for Config {
    /// One node with one device; nothing from the environment.
    fn default() -> Self {
        let (cluster, log_level) = (ClusterConfig::default(), LogLevel::default());
        Self { cluster, log_level, print_graphs: false }
    }
}

impl Config {
    /// Sets the number of nodes; each runs the program on a thread of its own.
    #[must_use]
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.cluster.nodes = nodes;
        self
    }

    /// Sets the number of devices per node.
    #[must_use]
    pub fn devices(mut self, devices: usize) -> Self {
        self.cluster.devices = devices;
        self
    }

    /// Sets after how many tasks in a row the runtime forgets older ones (002
    /// §3.5).
    #[must_use]
    pub fn horizon_step(mut self, step: u64) -> Self {
        self.cluster.horizon_step = step;
        self
    }

    /// Sets after how many tasks side by side the runtime forgets older ones.
    #[must_use]
    pub fn horizon_max_parallelism(mut self, tasks: u64) -> Self {
        self.cluster.horizon_max_parallelism = tasks;
        self
    }

    /// Sets what a read of elements is that nothing has written.
    #[must_use]
    pub fn uninitialized_read(mut self, policy: UninitializedRead) -> Self {
        self.cluster.uninitialized_read = policy;
        self
    }

    /// Sets how many horizons may be outstanding before submission waits, beside
    /// those that the [lookahead](Self::lookahead) holds back: 64 at most, 1024 if
    /// it is infinite.
    #[must_use]
    pub fn run_ahead(mut self, horizons: usize) -> Self {
        self.cluster.run_ahead = horizons;
        self
    }

    /// Sets how long work that will allocate is held back, so that memory is
    /// allocated once and not grown step by step (002 §4.3). A
    /// [queue](Queue::set_lookahead) can change it.
    #[must_use]
    pub fn lookahead(mut self, lookahead: Lookahead) -> Self {
        self.cluster.lookahead = lookahead;
        self
    }

    /// Sets how much of every schedule is proved right before it runs. Debug
    /// builds check what is cheap.
    #[must_use]
    pub fn check(mut self, level: CheckLevel) -> Self {
        self.cluster.check = level;
        self
    }

    /// Sets whether the graphs of all layers and nodes are printed to standard
    /// error when the run ends, as text. They are kept until then.
    #[must_use]
    pub fn print_graphs(mut self, print: bool) -> Self {
        self.print_graphs = print;
        self
    }

    /// Sets how much to print to standard error.
    #[must_use]
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.log_level = level;
        self
    }

    /// Runs a program: `program` is called once per node, each time with that
    /// node's queue, and when all calls have returned, what they submitted is
    /// completed. Returns node 0's value.
    ///
    /// # Errors
    /// [`RunError::Start`] if there cannot be such a cluster: a setting is 0, or
    /// there are too many devices. Otherwise node 0's own error, or the run's
    /// first, with its task, node and buffer. The work of all nodes ends with the
    /// first error.
    ///
    /// [`RunError::Start`]: crate::RunError::Start
    pub fn run<R: Send>(&self, program: impl Fn(&Queue) -> Result<R> + Sync) -> Result<R> {
        let ClusterConfig { nodes, devices, .. } = self.cluster;
        self.log_level
            .print(LogLevel::Debug, || format!("run on {nodes} nodes x {devices} devices"));
        let body = |frontend: &_| program(&Queue::new(frontend, self.log_level));
        if !self.print_graphs {
            return run_cluster(&self.cluster, body);
        }
        // Printed when dropped: also if the program panics.
        let recorder = PrintedRecorder(Recorder::default());
        run_cluster_observed(&self.cluster, |node| recorder.0.observer(node), body)
    }
}

struct PrintedRecorder(Recorder);

impl Drop for PrintedRecorder {
    fn drop(&mut self) {
        eprint!("{}", self.0);
    }
}
