//! A deterministic simulation of whole clusters: the real node machines,
//! generators, engines and arbiters, driven by a simulated clock, network and
//! devices, all from one seed.
//!
//! What the simulation decides: which node is polled next and how much it finds,
//! when each job starts and ends and at which of the two it reads and writes,
//! when pilots, parts of payloads, barriers and aborts arrive, whether small payloads
//! wait for their receivers or at them, when each program submits its next statement,
//! which jobs run while they are put on their lane or on the thread that polls the node,
//! whether that has to look at the network, and what fails. What it does not touch: anything
//! that the contracts of [`Communicator`] and
//! [`Backend`] promise. Messages are not lost.
//!
//! Data is real. Memory is allocated, copied and, when given back, poisoned;
//! kernels run; each fence is compared with the [twin](crate::twin). So a wrong
//! order, a too early *free* or a mismatched message changes a word, and a lost
//! wake-up ends in a [deadlock](Breach::Deadlock), which names the instructions
//! that wait. One run in six has a fault, after which all nodes must end with the
//! same error, in bounded simulated time.
//!
//! One thread, no clock: the same seed gives the same run, event by event.
//!
//! ```
//! use celerity_testkit::check::Configuration;
//! use celerity_testkit::{corpus, sim};
//!
//! let (program, configuration) = (corpus::wave_sim([9, 5], 3), Configuration::new(3, 2));
//! let once = sim::simulate(&program, &configuration, 42).unwrap();
//! let again = sim::simulate(&program, &configuration, 42).unwrap();
//! assert_eq!(once.hash, again.hash);
//! ```

mod backend;
mod breach;
mod cluster;
mod communicator;
mod conditions;
mod log;
mod scenario;
mod threads;
mod user;
mod world;

use std::fmt;

use celerity_executor::{Backend, Communicator, RunError, Time, contain};

use crate::check::Configuration;
use crate::program::Program;

pub use backend::SimBackend;
pub use breach::{Breach, Stuck};
pub use communicator::SimCommunicator;
pub use conditions::SlowNode;
pub use log::{LogEntry, What};
pub use scenario::Scenario;

use cluster::Cluster;

/// What happened in a run that kept all promises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulationReport {
    /// Simulated time from start to end.
    pub simulated: Time,
    /// Lines of the event log.
    pub events: u64,
    /// A hash over the event log.
    pub hash: u64,
    /// What the run ended with, if it had a fault.
    pub error: Option<RunError>,
    /// The most payloads that have waited at one node, sent ahead and not asked for.
    pub most_waiting: usize,
    /// Kernels that were run by the threads that poll their nodes.
    pub computed: usize,
    /// The event log, if it was [asked for](Simulation::with_log); else its end.
    pub log: Vec<LogEntry>,
}

/// A run that broke a promise, with everything that is needed to repeat it.
#[derive(Debug)]
pub struct FailedRun {
    /// What was found.
    pub breach: Breach,
    /// On what.
    pub configuration: Configuration,
    /// Of the simulation.
    pub seed: u64,
    /// The program.
    pub program: Program,
    /// The event log, if it was [asked for](Simulation::with_log); else its end.
    pub log: Vec<LogEntry>,
}

/// Runs a program on a simulated cluster; `seed` decides everything that the
/// contracts leave open. [`Configuration::seed`] is not used.
///
/// # Errors
/// The first broken promise.
///
/// # Panics
/// If the configuration has no nodes or no devices.
pub fn simulate(
    program: &Program,
    configuration: &Configuration,
    seed: u64,
) -> Result<SimulationReport, Box<FailedRun>> {
    Simulation::new(program, configuration, seed).run()
}

/// Wraps a node's end of the network and its devices into others: how tests
/// plant a defect.
type Doubles<'a> =
    dyn Fn(SimCommunicator, SimBackend) -> (Box<dyn Communicator>, Box<dyn Backend>) + 'a;

/// A simulation that can be changed before it runs.
pub struct Simulation<'a> {
    program: &'a Program,
    configuration: &'a Configuration,
    seed: u64,
    keeps_log: bool,
    slow_node: Option<SlowNode>,
    doubles: Box<Doubles<'a>>,
}

impl<'a> Simulation<'a> {
    /// What [`simulate`] runs.
    #[must_use]
    pub fn new(program: &'a Program, configuration: &'a Configuration, seed: u64) -> Self {
        let doubles = Box::new(|end, backend| -> (Box<dyn Communicator>, Box<dyn Backend>) {
            (Box::new(end), Box::new(backend))
        });
        Self { program, configuration, seed, keeps_log: false, slow_node: None, doubles }
    }

    /// Keeps the whole event log.
    #[must_use]
    pub fn with_log(self) -> Self {
        Self { keeps_log: true, ..self }
    }

    /// Slows one node down, and lets all payloads leave when they are offered. The seed
    /// still decides the order of what happens, but neither speeds nor faults.
    #[must_use]
    pub fn with_slow_node(self, slow: SlowNode) -> Self {
        Self { slow_node: Some(slow), ..self }
    }

    /// Lets `doubles` stand between each node and the simulation. It is called
    /// once per node.
    #[must_use]
    pub fn with_doubles(
        self,
        doubles: impl Fn(SimCommunicator, SimBackend) -> (Box<dyn Communicator>, Box<dyn Backend>) + 'a,
    ) -> Self {
        Self { doubles: Box::new(doubles), ..self }
    }

    /// Runs it. O(events · log events), and what kernels and fences cost.
    ///
    /// # Errors
    /// The first broken promise.
    ///
    /// # Panics
    /// If the configuration has no nodes or no devices.
    pub fn run(self) -> Result<SimulationReport, Box<FailedRun>> {
        // Machines may also panic when they are dropped.
        contain::caught(|| self.run_to_its_end()).unwrap_or_else(|message| {
            Err(Box::new(self.failure(Breach::Crashed { message }, Vec::new())))
        })
    }

    fn run_to_its_end(&self) -> Result<SimulationReport, Box<FailedRun>> {
        let mut cluster = Cluster::new(self);
        let outcome = cluster.run().and_then(|()| cluster.error());
        let mut world = cluster.world.lock();
        let log = world.log.take();
        match outcome {
            Ok(error) => Ok(SimulationReport {
                simulated: world.now,
                events: world.log.count(),
                hash: world.log.hash(),
                error,
                most_waiting: world.network.most_waiting(),
                computed: world.computed,
                log,
            }),
            Err(breach) => Err(Box::new(self.failure(breach, log))),
        }
    }

    fn failure(&self, breach: Breach, log: Vec<LogEntry>) -> FailedRun {
        let (configuration, program) = (*self.configuration, self.program.clone());
        FailedRun { breach, configuration, seed: self.seed, program, log }
    }
}

impl fmt::Display for FailedRun {
    /// The latest events, the program, the violation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { breach, configuration, seed, program, log } = self;
        for entry in log {
            writeln!(f, "{entry}")?;
        }
        write!(f, "\n{program}\nseed {seed}, {configuration:?}\n{breach}")
    }
}

impl std::error::Error for FailedRun {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.breach)
    }
}
