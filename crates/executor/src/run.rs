//! A whole run: starts the nodes of this process, calls user code once per node,
//! and ends it all, whatever happens.

use std::fmt::{self, Display};
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Instant;

use celerity_cdag::{CommandGraphConfig, NodeId};
use celerity_cpd::Costs;
use celerity_tdag::Count;

use crate::backend::Backend;
use crate::check::{NetworkReach, ScheduleCheck};
use crate::config::ClusterConfig;
use crate::error::{CommunicationError, RunError};
use crate::frontend::{NodeFrontend, NodeHandle};
use crate::kernel_times::KernelTimes;
use crate::machine::NodeMachine;
use crate::node::Executor;
use crate::observe::Observer;
use crate::pinning::{Cores, PinnedJobs, available_cores};
use crate::polling::Waker;
use crate::pool::CpuPool;
use crate::profile::Profile;
use crate::progress::Progress;
use crate::pulse::UserCalls;
use crate::reactor::Reactor;
use crate::scheduler::Scheduler;
use crate::threads::refuse_runs;
use crate::time::real_clock;
use crate::warning::Warning;
use crate::wires::Wired;
use wires::WantedWires;

mod interrupt;
mod place;
mod program;
mod threads;
mod watch;
mod wires;

use interrupt::Interrupts;
use place::OneNode;
pub use place::{CpuDevices, Devices, InProcess, Network};
use program::run_program;
use threads::{Setting, stages, start};
use watch::{Duty, Sight, Watch};

/// Runs a program on a cluster of `config.nodes` nodes in this process, on CPU
/// devices: short for [`Run::new`] and [`Run::execute`].
///
/// # Errors
/// As [`Run::execute`].
///
/// # Panics
/// As [`Run::execute`].
pub fn run_cluster<R, E>(
    config: &ClusterConfig,
    body: impl Fn(&Arc<NodeFrontend>) -> Result<R, E> + Sync,
) -> Result<R, E>
where
    R: Send,
    E: From<RunError> + Display + Send,
{
    Run::new(config).execute(body)
}

/// A run that has not started.
///
/// ```
/// use celerity_executor::{ClusterConfig, Run, RunError};
/// let config = ClusterConfig { nodes: 2, devices: 3, ..ClusterConfig::default() };
/// let nodes = Run::new(&config).execute(|node| Ok::<_, RunError>(node.nodes()))?;
/// assert_eq!(nodes, 2);
/// # Ok::<(), RunError>(())
/// ```
pub struct Run<'r> {
    config: ClusterConfig,
    network: Box<dyn Network + 'r>,
    devices: Box<dyn Devices + 'r>,
    observers: Vec<Box<MakeObserver<'r>>>,
    preparation: Box<dyn Fn() -> Result<(), RunError> + 'r>,
    inform: Box<dyn Fn(&str) + 'r>,
    kernel_times: Option<KernelTimes>,
    interruptible: bool,
    /// Whether nothing is performed.
    is_dry: bool,
    /// What threads of this process stay on; none: they go where they like.
    cores: Vec<usize>,
}

type MakeObserver<'r> = dyn Fn(NodeId) -> Option<Box<dyn Observer>> + 'r;

impl<'r> Run<'r> {
    /// A run with `config.nodes` nodes in this process, of `config.devices` CPU
    /// devices each.
    #[must_use]
    pub fn new(config: &ClusterConfig) -> Self {
        let ClusterConfig { nodes, devices: per_node, device_memory_limit, .. } = *config;
        let memory = config.memory_of_devices();
        Self {
            config: config.clone(),
            network: Box::new(InProcess { nodes }),
            devices: Box::new(CpuDevices { per_node, memory, memory_limit: device_memory_limit }),
            observers: Vec::new(),
            preparation: Box::new(|| Ok(())),
            inform: Box::new(|_| {}),
            kernel_times: None,
            interruptible: false,
            is_dry: false,
            cores: Vec::new(),
        }
    }

    /// Runs on the nodes of another network; the configuration's number of nodes
    /// does not count.
    #[must_use]
    pub fn on(mut self, network: impl Network + 'r) -> Self {
        self.config.nodes = network.nodes();
        self.network = Box::new(network);
        self
    }

    /// Schedules the program as node 0 of the configuration's number of nodes, and performs nothing of
    /// the schedule: no memory is allocated, no function of the program called but range mappers,
    /// and fences deliver zeroes. So a laptop shows what a thousand nodes cost. A network that was
    /// given does not count; of devices, those of [`CpuDevices`] are enough.
    ///
    /// ```
    /// use celerity_executor::{ClusterConfig, Run, RunError};
    /// let config = ClusterConfig { nodes: 1024, devices: 4, ..ClusterConfig::default() };
    /// let nodes = Run::new(&config).dry().execute(|node| Ok::<_, RunError>(node.nodes()))?;
    /// assert_eq!(nodes, 1024);
    /// # Ok::<(), RunError>(())
    /// ```
    #[must_use]
    pub fn dry(self) -> Self {
        self.dry_as(0)
    }

    /// As [`dry`](Self::dry), but as another node of the cluster, counted from 0.
    ///
    /// # Panics
    /// If the configuration has nodes, and this is none of them.
    #[must_use]
    pub fn dry_as(mut self, node: usize) -> Self {
        let nodes = self.config.nodes;
        assert!(node < nodes.max(1), "there is no N{node} among {nodes} nodes");
        self.network = Box::new(OneNode { nodes, node });
        self.is_dry = true;
        self
    }

    /// Runs on other devices; the configuration's number, memory and memory limit
    /// do not count.
    #[must_use]
    pub fn with_devices(mut self, devices: impl Devices + 'r) -> Self {
        self.config.devices = devices.per_node();
        self.devices = Box::new(devices);
        self
    }

    /// Weighs collective operations by these constants, if node 0 is in this process: its constants
    /// are those of all nodes.
    #[must_use]
    pub fn with_costs(mut self, costs: Costs) -> Self {
        self.config.costs = costs;
        self
    }

    /// Gives nodes somebody who is shown their graphs, beside whom they have already.
    #[must_use]
    pub fn observed(mut self, observer: impl Fn(NodeId) -> Option<Box<dyn Observer>> + 'r) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// Lets `prepare` run before the nodes meet, such as to open what the run writes. If it
    /// fails, so does the run.
    #[must_use]
    pub fn preparing(mut self, prepare: impl Fn() -> Result<(), RunError> + 'r) -> Self {
        self.preparation = Box::new(prepare);
        self
    }

    /// Tells `inform` what is good to know, before the program starts.
    #[must_use]
    pub fn informing(mut self, inform: impl Fn(&str) + 'r) -> Self {
        self.inform = Box::new(move |text| {
            tracing::info!("{text}");
            inform(text);
        });
        self
    }

    /// Adds the kernels that run on this process's nodes to a table. On GPUs this costs
    /// events for each launch.
    #[must_use]
    pub fn timing(mut self, table: &KernelTimes) -> Self {
        self.kernel_times = Some(table.clone());
        self
    }

    /// Lets SIGINT (Ctrl-C) and SIGTERM end the run on all nodes with
    /// [`RunError::Interrupted`], once what is running has ended. The second one
    /// ends the process, and so does one that comes too late for the run to end by it.
    #[must_use]
    pub fn interruptible(mut self, interruptible: bool) -> Self {
        self.interruptible = interruptible;
        self
    }

    /// Lets this process's threads stay on `cores` while the run lasts: the
    /// scheduler's and the executor's, or the reactor's, on the first ones, one
    /// each, and those that compute on the others. If there are too few for that,
    /// all share them. Threads of host tasks and of the program go where they like.
    /// An empty list pins nothing.
    ///
    /// Runs side by side in one process share the threads that compute: of those that
    /// go on, the last one to start decides.
    #[must_use]
    pub fn pinned(mut self, cores: Vec<usize>) -> Self {
        self.cores = cores;
        self
    }

    /// The number of nodes of the whole cluster.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.network.nodes()
    }

    /// The nodes of this process.
    #[must_use]
    pub fn nodes_here(&self) -> Range<usize> {
        self.network.local()
    }

    /// Runs the program.
    ///
    /// `body` is called once per node of this process: for the first on the
    /// calling thread, for the others on threads of their own. When it has
    /// returned, the node completes everything that was submitted. The value is
    /// that of this process's first node.
    ///
    /// Nobody hangs: if a task panics or cannot be run, or `body` fails or panics
    /// on any node, all nodes stop, calls of the frontends return the run's first
    /// error, and `execute` returns when nothing runs any more. Runs in one
    /// process are independent; one that has failed does not disturb the next.
    ///
    /// # Errors
    /// Before `body` is called: [`RunError::Start`] if the configuration is
    /// [invalid](ClusterConfig::validate), if this process is to have more than 1024 nodes,
    /// if the system gives no threads, or if a
    /// kernel or host task calls this, as it would wait on threads that it
    /// occupies; or what network or devices object to. If that happens in one of several
    /// processes, all get [`RunError::NotStarted`].
    ///
    /// Later, what the node of this process returned that failed first, as it returned
    /// it: so a mistake that all nodes make is the same error, whoever is the fastest.
    /// If that was in another process, or not in `body`, the run's first error, as the
    /// first node has passed it on. [`RunError::Schedule`] if an observer objects.
    ///
    /// # Panics
    /// With the panic of `body`, if that came first, once everything has stopped.
    pub fn execute<R, E>(
        self,
        body: impl Fn(&Arc<NodeFrontend>) -> Result<R, E> + Sync,
    ) -> Result<R, E>
    where
        R: Send,
        E: From<RunError> + Display + Send,
    {
        // The other processes wait for the run that this thread is a job of.
        refuse_runs()?;
        let ClusterConfig { nodes, devices, .. } = self.config;
        let _span = tracing::info_span!("run", nodes, devices).entered();
        let since = Instant::now();
        let prepared = self.prepare(since).map_err(|error| self.network.refuse(error))?;
        let Prepared { pool, profile, _pinned } = prepared;
        let computes = self.computes(&pool);
        let means = Means { pool: &pool, computes, since, profile: profile.as_ref() };
        let mut dead = None;
        let outcome = thread::scope(|scope| {
            let Started { frontends, threads, sights } = self.start(scope, means)?;
            let watch = self.watch(since, sights, &frontends);
            let interrupts = self.listen(&frontends, watch.as_ref());
            let outcome = run_program(&frontends, &body);
            threads.into_iter().for_each(|thread| drop(thread.join()));
            if let Some(interrupts) = interrupts {
                interrupts.end(matches!(outcome, Ok(Ok(_))));
            }
            drop(watch);
            dead = frontends.iter().find_map(|node| dead_node(&node.error()?));
            match outcome {
                Ok(value) => value,
                Err(panic) => resume_unwind(panic),
            }
        });
        if let Some(profile) = profile {
            self.end_trace(profile, dead);
        }
        outcome
    }

    /// All that can fail before the nodes are connected, but for the devices.
    fn prepare(&self, since: Instant) -> Result<Prepared, RunError> {
        self.config.validate()?;
        self.config.check_nodes_here(self.network.local().len())?;
        let pool = CpuPool::of_process()?;
        let _pinned = self.pin(&pool)?;
        let profile = self.profile(since)?;
        (self.preparation)()?;
        Ok(Prepared { pool, profile, _pinned })
    }

    fn pin(&self, pool: &CpuPool) -> Result<Option<PinnedJobs>, RunError> {
        if self.cores.is_empty() {
            return Ok(None);
        }
        Cores::check(&self.cores)?;
        pool.pin(&self.dealt()).map(Some)
    }

    fn dealt(&self) -> Cores {
        Cores::deal(&self.cores, if self.is_split() { 2 } else { 1 })
    }

    /// Whether this process has one node, which waits for a network or for devices as
    /// quick as itself.
    fn is_alone(&self) -> bool {
        let shared = self.network.local().len() > 1;
        !shared && (self.network.nodes() > 1 || self.devices.are_fast())
    }

    /// Whether a node has a thread for each half.
    fn is_split(&self) -> bool {
        self.is_alone() && !self.has_one_core()
    }

    /// Whether its only node may compute on its own thread: another would only take turns
    /// with it.
    fn computes(&self, pool: &CpuPool) -> bool {
        self.is_alone() && self.has_one_core() && pool.threads() == 1
    }

    /// Whether all threads of this process have one core between them.
    fn has_one_core(&self) -> bool {
        match &self.cores[..] {
            [] => {
                let sharers = self.network.sharers_of_cores();
                available_cores().is_ok_and(|cores| cores.len() < 2 * sharers)
            }
            pinned => pinned.len() == 1,
        }
    }

    /// Lets somebody look at the engine's threads, if they are to be looked at.
    fn watch(
        &self,
        since: Instant,
        sights: Vec<Sight>,
        nodes: &[Arc<NodeFrontend>],
    ) -> Option<Watch> {
        let ClusterConfig { watchdog, warnings, .. } = &self.config;
        if watchdog.is_zero() {
            return None;
        }
        let watch = Watch::start(*watchdog, since, sights, nodes, warnings.clone());
        watch.map_err(|error| abort(nodes, &error)).ok()
    }

    /// Lets signals end the run, if they are to.
    fn listen(&self, nodes: &[Arc<NodeFrontend>], watch: Option<&Watch>) -> Option<Interrupts> {
        let hurry = watch.map(Watch::hurry);
        let watched = self.interruptible.then(|| Interrupts::watch(nodes, hurry))?;
        let failed = |error| {
            let what = format!(
                "cannot watch for signals: {error}; allow this process more open files and threads, \
                 or let the run be no `interruptible` one"
            );
            RunError::Start { what }
                .of_start_on(NodeId::from_index(self.network.local().start as u64))
        };
        watched.map_err(|error| abort(nodes, &failed(error))).ok()
    }

    /// Begins the trace, if there is to be one.
    fn profile(&self, since: Instant) -> Result<Option<Profile>, RunError> {
        let Some(path) = &self.config.trace else { return Ok(None) };
        let local = self.network.local();
        let nodes = if self.is_dry { local.len() } else { self.network.nodes() };
        // Processes have as many nodes as each other.
        let processes = (0..nodes as u64).step_by(local.len()).collect();
        Profile::begin(path, since, local.start as u64, processes).map(Some)
    }

    /// Ends the trace of a run in which a node may have died.
    fn end_trace(&self, profile: Profile, dead: Option<NodeId>) {
        for error in profile.finish(self.network.local().start == 0, dead) {
            self.config.warnings.warn(&Warning::Trace { message: error.to_string() });
        }
    }

    /// Connects the nodes and starts the threads that drive them.
    fn start<'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        means: Means<'_>,
    ) -> Result<Started<'scope>, RunError> {
        let Means { computes, since, .. } = means;
        let local = self.network.local();
        let has_others = self.network.nodes() > local.len();
        let blamed = has_others.then(|| NodeId::from_index(local.start as u64));
        let setting = Setting { scope, cores: self.dealt(), computes, since, blamed };
        match self.is_split() {
            true => self.start_split(&setting, means),
            false => self.start_shared(&setting, means),
        }
    }

    /// One thread for all nodes of this process, with both halves of each.
    fn start_shared<'scope>(
        &self,
        setting: &Setting<'scope, '_>,
        means: Means<'_>,
    ) -> Result<Started<'scope>, RunError> {
        let reactor = Reactor::new();
        let nodes = self.open(means, || reactor.waker())?;
        let progress = nodes.iter().map(|node| node.handle.progress.clone()).collect();
        let frontend = |(slot, node): (usize, &Node)| {
            let rounds = reactor.rounds();
            NodeFrontend::new(
                &self.config,
                node.handle.clone(),
                reactor.feeder(slot),
                rounds,
                means.since,
            )
        };
        let frontends = nodes.iter().enumerate().map(frontend).map(Arc::new).collect();
        // One thread is in one call at a time.
        let calls =
            nodes.iter().flat_map(|node| node.calls.clone().map(|calls| (node.handle.id, calls)));
        let (pulse, calls) = (reactor.pulse(), calls.collect());
        let sights = vec![Sight { pulse, duty: Duty::Both, calls }];
        let machines = nodes.into_iter().map(|node| NodeMachine::of(node.scheduler, node.executor));
        let machines = machines.collect();
        let thread = start(setting, (0, "celerity-reactor"), reactor, machines, progress)?;
        Ok(Started { frontends, threads: vec![thread], sights })
    }

    /// One thread that schedules and one that executes, for this process's only
    /// node.
    fn start_split<'scope>(
        &self,
        setting: &Setting<'scope, '_>,
        means: Means<'_>,
    ) -> Result<Started<'scope>, RunError> {
        let (scheduling, executing) = (Reactor::new(), Reactor::new());
        let mut nodes = self.open(means, || executing.waker())?;
        let node = nodes.pop().expect("this process has a node");
        let rounds = executing.rounds();
        let feeder = scheduling.feeder(0);
        let frontend =
            NodeFrontend::new(&self.config, node.handle.clone(), feeder, rounds, means.since);
        let Node { handle: NodeHandle { id, progress, .. }, scheduler, executor, calls } = node;
        let duties = [(Duty::Scheduling, scheduling.pulse()), (Duty::Execution, executing.pulse())];
        let sight = |((duty, pulse), calls)| Sight { pulse, duty, calls: vec![(id, calls)] };
        let sights = duties.into_iter().zip(calls).map(sight).collect();
        let (first, second) = stages(scheduler, executor, executing.feeder(0), progress.clone());
        let progress = vec![progress];
        let execute = (0, "celerity-execute");
        let second = start(setting, execute, executing, vec![second], progress.clone())?;
        let schedule = (1, "celerity-schedule");
        let first = start(setting, schedule, scheduling, vec![first], progress)?;
        Ok(Started { frontends: vec![Arc::new(frontend)], threads: vec![first, second], sights })
    }

    /// The two halves of each node of this process. The network comes last: what fails
    /// before is told to other processes by a refusal.
    fn open(&self, means: Means<'_>, waker: impl Fn() -> Waker) -> Result<Vec<Node>, RunError> {
        let local = self.network.local();
        let devices =
            |index| self.devices.open(NodeId::from_index(index as u64), means.pool, waker());
        let backends = local.clone().map(devices).collect::<Result<Vec<_>, _>>();
        let backends = backends.map_err(|error| self.network.refuse(error))?;
        let mut ends =
            self.network.connect(local.clone().map(|_| waker()).collect(), means.pool)?;
        let agreed = self.agree();
        let agreed =
            agreed.inspect_err(|error| ends.iter_mut().for_each(|end| end.abort(error)))?;
        let Agreed { costs, wires, member_sets } = agreed;
        let wired = self.wire(ends.into_iter().zip(backends), wires)?;
        let memory = self.devices.memory();
        let reach = NetworkReach {
            payloads: wired.iter().any(|(wired, _)| !wired.reached.is_empty()),
            collectives: wired.iter().any(|(wired, _)| wired.collectives.is_ok()),
        };
        let checks = ScheduleCheck::of_all(&self.config, (memory, reach), local.clone());
        let mut checks = checks.into_iter();
        let node = |(index, (wired, backend)): (usize, (Wired, Box<dyn Backend>))| {
            let id = NodeId::from_index(index as u64);
            let collectives = self.collectives(&wired);
            let on_devices = wired.collectives.as_ref().ok().map(|terms| terms.least);
            let check = checks.next().map(|check| Box::new(check) as Box<dyn Observer>);
            let commands = CommandGraphConfig { nodes: self.config.nodes, local: id };
            let mut scheduler = Scheduler::new(commands, self.instruction_graph(&wired));
            scheduler.set_lookahead(self.config.lookahead);
            scheduler.limit_member_sets(member_sets);
            let others = self.observers.iter().filter_map(|observer| observer(id));
            let observers = check.into_iter().chain(others);
            observers.for_each(|observer| scheduler.observe(observer));
            let kernel_check = self.devices.kernel_check();
            let progress = Arc::<Progress>::default();
            let lanes = backend.layout();
            let calls: [Arc<UserCalls>; 2] = Default::default();
            scheduler.tell_calls(&calls[0]);
            let mut executor = Executor::new(wired.end, backend, progress.clone())
                .with_lead(self.config.run_ahead as u64)
                .configured(&self.config)
                .with_watchdog(self.config.watchdog)
                .with_warnings(self.config.warnings.clone())
                .with_calls(&calls[1])
                .woken_by(waker())
                .noting_begins(real_clock(means.since));
            if self.is_dry {
                executor = executor.dry();
            }
            if means.computes {
                executor = executor.sharing_core();
            }
            if let Some(table) = &self.kernel_times {
                executor.time_kernels(table.clone(), real_clock(means.since));
            }
            let profile = means.profile.map(|profile| {
                executor.record(profile.node(id, lanes));
                scheduler.record(profile.scheduler(id));
                Arc::new(profile.program(id))
            });
            let handle =
                NodeHandle { id, progress, costs, on_devices, kernel_check, profile, collectives };
            Node { handle, scheduler, executor, calls }
        };
        Ok(local.zip(wired).map(node).collect())
    }

    /// What node 0's process says for all.
    fn agree(&self) -> Result<Agreed, RunError> {
        let mut words = [0; 20];
        words[..18].copy_from_slice(&self.config.costs.to_words());
        words[18] = self.wanted_wires().to_word();
        words[19] = self.network.member_sets() as u64;
        self.network.share(&mut words)?;
        let [costs @ .., wires, member_sets] = words;
        Ok(Agreed {
            costs: Costs::from_words(costs),
            wires: WantedWires::of_word(wires),
            member_sets: usize::try_from(member_sets).unwrap_or(usize::MAX),
        })
    }
}

/// What all nodes of a run must have alike.
struct Agreed {
    costs: Costs,
    /// What devices are asked for.
    wires: WantedWires,
    /// How many sets of some nodes may exchange data in collective operations.
    member_sets: usize,
}

impl fmt::Display for Run<'_> {
    /// `2 nodes × 3 devices`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ClusterConfig { nodes, devices, .. } = self.config;
        write!(f, "{} × {}", Count(nodes, "node"), Count(devices, "device"))
    }
}

/// What a run has before it has nodes.
struct Prepared {
    pool: Arc<CpuPool>,
    profile: Option<Profile>,
    _pinned: Option<PinnedJobs>,
}

/// What the nodes of a process share.
#[derive(Clone, Copy)]
struct Means<'a> {
    pool: &'a Arc<CpuPool>,
    /// Whether the node runs jobs on its own thread.
    computes: bool,
    /// When the run has started.
    since: Instant,
    profile: Option<&'a Profile>,
}

/// What a node of this process is made of, before it has threads.
struct Node {
    /// For its program.
    handle: NodeHandle,
    scheduler: Scheduler,
    executor: Executor,
    /// What of the user's its halves are in.
    calls: [Arc<UserCalls>; 2],
}

/// The nodes of this process at work.
struct Started<'scope> {
    frontends: Vec<Arc<NodeFrontend>>,
    threads: Vec<ScopedJoinHandle<'scope, ()>>,
    /// The same threads, to be watched.
    sights: Vec<Sight>,
}

/// The node whose death is why the run has failed.
fn dead_node(error: &RunError) -> Option<NodeId> {
    let RunError::Communication { error, .. } = error else { return None };
    match **error {
        CommunicationError::Died { node, .. } => Some(node),
        _ => None,
    }
}

fn abort(nodes: &[Arc<NodeFrontend>], error: &RunError) {
    nodes.iter().for_each(|node| node.abort(error.clone()));
}
