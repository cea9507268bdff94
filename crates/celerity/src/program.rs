//! A program from its configuration to its result: finds the place where it runs, observes and
//! times it if that is asked for, and tells other processes if it cannot begin.

use std::ops::Range;

use celerity_executor::{KernelTimes, Observer};

use crate::config::Config;
use crate::dry_run::DryRunTally;
use crate::error::{ConfigError, Result};
use crate::explain::Explanations;
use crate::graphs::Graphs;
use crate::log::LogLevel;
use crate::place::{misconfigured, place};
use crate::queue::Queue;
use crate::schedule_file::ScheduleFile;

/// Runs a program on the cluster that the environment describes: short for
/// [`Config::from_env`] and [`Config::run`].
///
/// # Errors
/// A [`ConfigError`], or as [`Config::run`].
pub fn run<R: Send>(program: impl Fn(&Queue) -> Result<R> + Sync) -> Result<R> {
    Config::read_env().map_err(misconfigured)?.run(program)
}

impl Config {
    /// The configuration that the process's environment asks for. The variables, their
    /// values and the defaults are in the [crate's documentation](crate#what-to-run-on).
    ///
    /// If a launcher has started several processes, and this fails in one of them, the others
    /// are told: their next run fails, too, and does not wait for this process.
    ///
    /// # Errors
    /// For any other variable that begins with `CELERITY_`, and for any other
    /// value.
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::read_env().inspect_err(|error| drop(misconfigured(error.clone())))
    }

    /// Runs a program: `program` is called once per node, each time with that
    /// node's queue, and when all calls have returned, what they submitted is
    /// completed. Returns node 0's value.
    ///
    /// # Errors
    /// [`RunError::Start`] if there cannot be such a cluster: a setting is 0 or too large, or a
    /// file that the run is to write cannot be written. Where nodes are processes,
    /// [`RunError::NotStarted`] if that is so in one of them. Otherwise what the program returned
    /// on the node of this process that failed first, or the run's first error, with its task,
    /// node and buffer. The work of all nodes ends with the first error.
    ///
    /// # Panics
    /// If the program panics, once everything has stopped.
    ///
    /// [`RunError::Start`]: crate::RunError::Start
    /// [`RunError::NotStarted`]: crate::RunError::NotStarted
    pub fn run<R: Send>(&self, program: impl Fn(&Queue) -> Result<R> + Sync) -> Result<R> {
        let body = |frontend: &_| program(&Queue::new(frontend, self));
        let level = self.log_level;
        let cluster = self.cluster();
        let tally = self.dry_run.map(|nodes| DryRunTally::new(nodes, self.dry_run_node, level));
        let schedule = ScheduleFile::of(self)?;
        let mut run = place(self, &cluster)?.interruptible(self.interruptible);
        self.log_level.print(LogLevel::Debug, || format!("run on {run}"));
        let kernels = self.profile_kernels.then(|| LoggedKernels::new(run.nodes_here(), level));
        if let Some(kernels) = &kernels {
            run = run.timing(&kernels.times);
        }
        if let Some(tally) = &tally {
            run = run.observed(|_| Some(tally.observer()));
        }
        if let Some(schedule) = &schedule {
            run = run.observed(|_| Some(schedule.observer()));
        }
        if self.explain_collectives {
            // Where nodes are processes, one of them speaks for all, which decide alike.
            run = run.observed(move |node| {
                let explanations = (node.slot() == 0).then(|| Explanations::at(level));
                explanations.map(|one| Box::new(one) as Box<dyn Observer>)
            });
        }
        let outcome = match Graphs::new(&self.graphs, &run.nodes_here(), run.nodes(), level) {
            None => run.execute(body),
            Some(graphs) => {
                run.preparing(|| graphs.open()).observed(|node| graphs.observer(node)).execute(body)
            }
        };
        match (outcome, schedule) {
            (Ok(value), Some(schedule)) => schedule.finish().map(|()| value),
            (outcome, _) => outcome,
        }
    }
}

/// Logged when dropped: also if the program fails or panics.
struct LoggedKernels {
    nodes: Range<usize>,
    times: KernelTimes,
    level: LogLevel,
}

impl LoggedKernels {
    fn new(nodes: Range<usize>, level: LogLevel) -> Self {
        Self { nodes, times: KernelTimes::default(), level }
    }
}

impl Drop for LoggedKernels {
    fn drop(&mut self) {
        let (first, last) = (self.nodes.start, self.nodes.end.saturating_sub(1));
        let several = if first == last { String::new() } else { format!(" to N{last}") };
        let message =
            || format!("kernels on N{first}{several}:\n{}", self.times).trim_end().to_owned();
        self.level.print(LogLevel::Info, message);
    }
}
