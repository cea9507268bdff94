//! Configuration: what a run can be told, by the program or by environment
//! variables.

mod distance;
mod env;
mod platform;

use std::path::PathBuf;
use std::time::Duration;

use celerity_executor::{CheckLevel, ClusterConfig, Collectives, DeviceMemory, Lookahead, Wires};
use celerity_tdag::UninitializedRead;

use crate::graphs::GraphsTo;
use crate::log::LogLevel;
use crate::pinning::Pinning;

pub use platform::Platform;

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
    pub(crate) cluster: ClusterConfig,
    pub(crate) platform: Platform,
    /// The nodes of a dry run.
    pub(crate) dry_run: Option<usize>,
    /// Which of them the dry run is of.
    pub(crate) dry_run_node: usize,
    /// Where the schedule of a dry run goes.
    pub(crate) dry_run_schedule: Option<PathBuf>,
    /// If that was said.
    devices: Option<usize>,
    share_gpus: bool,
    pub(crate) pinning: Pinning,
    pub(crate) peer_timeout: Duration,
    pub(crate) mpi_thread_multiple: bool,
    pub(crate) start_timeout: Duration,
    pub(crate) interruptible: bool,
    pub(crate) log_level: LogLevel,
    pub(crate) graphs: GraphsTo,
    pub(crate) profile_kernels: bool,
    pub(crate) explain_collectives: bool,
    /// Where the constants of this machine are.
    pub(crate) calibration: Option<PathBuf>,
}

impl Default for Config {
    /// One node with one device; nothing from the environment.
    fn default() -> Self {
        Self {
            cluster: ClusterConfig::default(),
            platform: Platform::default(),
            dry_run: None,
            dry_run_node: 0,
            dry_run_schedule: None,
            devices: None,
            share_gpus: false,
            pinning: Pinning::default(),
            peer_timeout: Duration::from_secs(10),
            mpi_thread_multiple: false,
            start_timeout: Duration::from_secs(60),
            interruptible: false,
            log_level: LogLevel::default(),
            graphs: GraphsTo::default(),
            profile_kernels: false,
            explain_collectives: false,
            calibration: None,
        }
    }
}

impl Config {
    /// Sets the number of nodes, 1 to 1024; each runs the program on a thread of its own.
    #[must_use]
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.cluster.nodes = nodes;
        self
    }

    /// Schedules the program as node 0 of so many nodes, 1 to 1,048,576, and executes nothing: no
    /// memory is allocated, kernels and host tasks are not called, and fences deliver zeroes. When
    /// it ends, the numbers of tasks, commands and instructions are logged, with the time that it
    /// took. The node has [CPU devices](Self::devices), whatever the [platform](Self::platform):
    /// as many as a node of the cluster would have.
    ///
    /// ```
    /// use celerity::Config;
    /// use celerity::prelude::*;
    ///
    /// let config = Config::default().dry_run(512).devices(4);
    /// let sum = config.run(|queue| {
    ///     assert!(queue.is_dry_run() && queue.nodes() == 512);
    ///     let a = queue.buffer::<f32, 2>([1 << 20, 1 << 20]);
    ///     queue.task("fill").parallel_for([1 << 20, 1 << 20], a.write(one_to_one()), |_, a| *a = 1.0)?;
    ///     Ok(queue.fence_part(&a, Subrange { offset: [0, 0], range: [1, 8] })?.wait()?[[0, 3]])
    /// })?;
    /// assert_eq!(sum, 0.0);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    #[must_use]
    pub fn dry_run(mut self, nodes: usize) -> Self {
        self.dry_run = Some(nodes);
        self
    }

    /// Sets which node a [dry run](Self::dry_run) is of, counted from 0: the first, unless this says
    /// otherwise. It counts in dry runs alone.
    ///
    /// ```
    /// use celerity::Config;
    /// let node = Config::default().dry_run(512).dry_run_node(300).run(|queue| Ok(queue.node()))?;
    /// assert_eq!(node, 300);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    #[must_use]
    pub fn dry_run_node(mut self, node: usize) -> Self {
        self.dry_run_node = node;
        self
    }

    /// Writes the instructions of a [dry run](Self::dry_run) to a file, as text: what each does, how
    /// many items or bytes it is about, and what it waits for. `cargo xtask predict` reads such
    /// files; docs/prediction.md has the format. Each dry run replaces the file; other runs write none.
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// # let path = std::env::temp_dir().join(format!("celerity-schedule-{}.txt", std::process::id()));
    /// Config::default().dry_run(2).dry_run_node(1).dry_run_schedule(&path).run(|queue| {
    ///     let water = queue.buffer::<f32, 1>(8);
    ///     queue.task("fill").parallel_for(8, water.write(one_to_one()), |_, x| *x = 1.0)
    /// })?;
    /// let schedule = std::fs::read_to_string(&path)?;
    /// assert!(schedule.starts_with("celerity-schedule 1\nnode 1 of 2, 1 devices\n"));
    /// assert!(schedule.contains(" kernel task=T1 device=D0 items=4 after="));
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), celerity::Error>(())
    /// ```
    #[must_use]
    pub fn dry_run_schedule(mut self, path: impl Into<PathBuf>) -> Self {
        self.dry_run_schedule = Some(path.into());
        self
    }

    /// Sets the number of devices per node, 1 to 61. By default, there is one made of CPU
    /// threads, or as many GPUs as there are for each node.
    #[must_use]
    pub fn devices(mut self, devices: usize) -> Self {
        self.cluster.devices = devices;
        self.devices = Some(devices);
        self
    }

    /// Sets which memory CPU devices work in. By default, one device works in the
    /// host's, so that nothing is copied between them; several have each their own,
    /// as GPUs do. GPUs always have their own.
    #[must_use]
    pub fn device_memory(mut self, memory: DeviceMemory) -> Self {
        self.cluster.device_memory = Some(memory);
        self
    }

    /// Sets what kernels run on.
    #[must_use]
    pub fn platform(mut self, platform: Platform) -> Self {
        self.platform = platform;
        self
    }

    /// Sets whether nodes may share GPUs if there are fewer GPUs than nodes on a
    /// host.
    #[must_use]
    pub fn share_gpus(mut self, share: bool) -> Self {
        self.share_gpus = share;
        self
    }

    /// Sets whether threads of the runtime stay on cores of their own. By default,
    /// they go where the system puts them.
    #[must_use]
    pub fn pinning(mut self, pinning: Pinning) -> Self {
        self.pinning = pinning;
        self
    }

    /// Sets after how much silence another process counts as dead, where nodes are
    /// processes.
    #[must_use]
    pub fn peer_timeout(mut self, timeout: Duration) -> Self {
        self.peer_timeout = timeout;
        self
    }

    /// Sets whether MPI is asked for `MPI_THREAD_MULTIPLE`, where nodes are MPI processes: what
    /// host tasks need that call MPI themselves. It counts in the first run of a process, which
    /// fails if MPI does not grant it. Off by default, since it makes each call of MPI slower.
    #[must_use]
    pub fn mpi_thread_multiple(mut self, multiple: bool) -> Self {
        self.mpi_thread_multiple = multiple;
        self
    }

    /// Sets how long a process waits for the others when they first meet, in its first run,
    /// where nodes are processes: 60 s. Nobody can tell a process that is late from one that
    /// has died before. Later runs wait for processes as long as they live.
    #[must_use]
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = timeout;
        self
    }

    /// Sets whether SIGINT (Ctrl-C) and SIGTERM end the run on all nodes with
    /// [`RunError::Interrupted`](crate::RunError::Interrupted), once what is running
    /// has ended; a second one ends the process. One that whoever started the process has told it to
    /// ignore stays ignored. [`from_env`](Self::from_env) sets
    /// it: it is for programs, not for libraries, to decide on signals.
    #[must_use]
    pub fn interruptible(mut self, interruptible: bool) -> Self {
        self.interruptible = interruptible;
        self
    }

    /// What a run of this configuration is made of.
    pub(crate) fn cluster(&self) -> ClusterConfig {
        let nodes = self.dry_run.unwrap_or(self.cluster.nodes);
        ClusterConfig { nodes, warnings: self.log_level.warnings(), ..self.cluster.clone() }
    }

    pub(crate) fn nodes_in_process(&self) -> usize {
        self.cluster.nodes
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn gpus(&self) -> crate::cuda::Wish {
        crate::cuda::Wish {
            per_node: self.devices,
            shared: self.share_gpus,
            memory_limit: self.cluster.device_memory_limit,
        }
    }

    /// Sets after how many tasks in a row the runtime forgets older ones (instruction-graph
    /// preprint, §3.5): 1 to 1,048,576.
    #[must_use]
    pub fn horizon_step(mut self, step: u64) -> Self {
        self.cluster.horizon_step = step;
        self
    }

    /// Sets after how many tasks side by side the runtime forgets older ones: 1 to
    /// 1,048,576.
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
    /// it is infinite. 1 to 1,048,576. Where nodes are processes, a horizon is outstanding also
    /// while another node that this one sends to is more than so many behind it: so data that
    /// a slow node has not asked for cannot pile up.
    #[must_use]
    pub fn run_ahead(mut self, horizons: usize) -> Self {
        self.cluster.run_ahead = horizons;
        self
    }

    /// Sets how long work that will allocate is held back, so that memory is
    /// allocated once and not grown step by step (instruction-graph preprint, §4.3). A
    /// [queue](crate::Queue::set_lookahead) can change it.
    #[must_use]
    pub fn lookahead(mut self, lookahead: Lookahead) -> Self {
        self.cluster.lookahead = lookahead;
        self
    }

    /// Sets which data that is written on some nodes and read on others moves in collective
    /// operations, such as an all-gather: what is worth it of all that is found
    /// ([`Collectives::Auto`], the default), all of that, what IJPP 2024 finds, or none. Others move between pairs of nodes, and results are the same
    /// bits. With one node, nothing moves.
    #[must_use]
    pub fn collectives(mut self, collectives: Collectives) -> Self {
        self.cluster.collectives = collectives;
        self
    }

    /// Sets whether a line is logged, at level [`Info`](LogLevel::Info), for each decision about
    /// data that may move in a [collective operation](Self::collectives): for which task, at which
    /// source line, which buffer, how it moves, and, if that was weighed, what it is taken to cost
    /// either way. Decisions that are the same are logged once.
    #[must_use]
    pub fn explain_collectives(mut self, explain: bool) -> Self {
        self.explain_collectives = explain;
        self.cluster.tells_weighed = explain;
        self
    }

    /// Sets a file of constants by which [`Collectives::Auto`] decides what is worth a collective
    /// operation, as `cargo xtask calibrate` writes it. Without one, a table counts that is part of
    /// this crate. The file is read when a run begins, by the process of node 0, which tells the others.
    #[must_use]
    pub fn calibration(mut self, path: impl Into<PathBuf>) -> Self {
        self.calibration = Some(path.into());
        self
    }

    /// Sets which way data goes between the GPUs of different processes: straight from GPU to GPU between those
    /// of one host where that works ([`Wires::Auto`], the default), or through host memory ([`Wires::Host`]).
    /// With [`Wires::Ipc`], a run does not begin if a process cannot reach the GPUs of all others; with
    /// [`Wires::Nccl`], if collective operations cannot take place between GPUs. What the process of node 0 has
    /// decides whether processes look for wires. Results are the same bits. GPUs of one process need no wires.
    #[must_use]
    pub fn wires(mut self, wires: Wires) -> Self {
        self.cluster.wires = wires;
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
        self.graphs = if print { GraphsTo::StandardError } else { GraphsTo::Nowhere };
        self
    }

    /// Writes the graphs of all layers and nodes to a file when the run ends, instead of
    /// [printing](Self::print_graphs) them: by the end of its name as a picture (`.svg`), in
    /// Graphviz's language (`.dot`), or as text (`.txt`). Each run replaces the file.
    ///
    /// Where nodes are processes, each process writes a file of its own: `graphs.N1.svg` for
    /// `graphs.svg` and node 1. A picture shows the first 2,000 nodes of each graph, and says
    /// how many are left out; the other formats keep all of them in memory until the end.
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// # let path = std::env::temp_dir().join(format!("celerity-graphs-{}.svg", std::process::id()));
    /// Config::default().devices(2).write_graphs(&path).run(|queue| {
    ///     let water = queue.buffer::<f32, 1>(8).named("water");
    ///     queue.task("fill").parallel_for(8, water.write(one_to_one()), |_, x| *x = 1.0)?;
    ///     Ok(())
    /// })?;
    /// let picture = std::fs::read_to_string(&path)?;
    /// assert!(picture.starts_with("<svg ") && picture.contains("write B0 &quot;water&quot;"));
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), celerity::Error>(())
    /// ```
    #[must_use]
    pub fn write_graphs(mut self, path: impl Into<PathBuf>) -> Self {
        self.graphs = GraphsTo::File(path.into());
        self
    }

    /// Sets whether a table is logged when the run ends, at level
    /// [`Info`](LogLevel::Info): for each kernel, by the name of its tasks, how often it
    /// was launched on devices of this process, how long it took on them, and how many
    /// bytes it touched per second.
    #[must_use]
    pub fn profile_kernels(mut self, profile: bool) -> Self {
        self.profile_kernels = profile;
        self
    }

    /// Writes a trace of the run to a file, for Perfetto or `chrome://tracing`: what
    /// every thread, lane and device did and when, what was sent and received, and
    /// how much memory was in use. Each run replaces the file.
    #[must_use]
    pub fn trace(mut self, path: impl Into<PathBuf>) -> Self {
        self.cluster.trace = Some(path.into());
        self
    }

    /// Sets how long a node that waits for something may make no progress before
    /// what it waits for is logged as a warning, and again at doubling intervals;
    /// 0: for ever.
    #[must_use]
    pub fn watchdog(mut self, period: Duration) -> Self {
        self.cluster.watchdog = period;
        self
    }

    /// Sets how much to print to standard error.
    #[must_use]
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.log_level = level;
        self
    }
}
