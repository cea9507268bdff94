//! What can be wrong with a configuration before anything runs.

use std::fmt;

use celerity_executor::NotCosts;
use celerity_tdag::Count;

/// What is wrong with the environment variables. `Debug` writes the text, as `main` prints it.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A variable that begins like ours, but is none.
    #[error("there is no environment variable {name}; did you mean {nearest}?")]
    UnknownVariable {
        /// The variable's name, as it was found in the environment.
        name: String,
        /// The valid name nearest to it.
        nearest: &'static str,
    },
    /// A variable of the C++ original that sets what there is nothing of here.
    #[error("{name} is a variable of Celerity in C++, and means nothing here: unset it{instead}")]
    ForeignVariable {
        /// The variable's name.
        name: &'static str,
        /// What serves the same purpose, in words; empty if nothing does.
        instead: &'static str,
    },
    /// A variable whose value means nothing.
    #[error("environment variable {name} is \"{value}\", but must be {expected}")]
    BadValue {
        /// The variable's name: `CELERITY_NODES`, say.
        name: &'static str,
        /// The variable's value, as it was found.
        value: String,
        /// The values that would be valid, in words.
        expected: &'static str,
    },
    /// The file of a machine's constants cannot be read.
    #[error(
        "the calibration {path} (CELERITY_CALIBRATION or `Config::calibration`) cannot be read: \
         {what}"
    )]
    UnreadableCalibration {
        /// Where it should be.
        path: String,
        /// What the system says.
        what: String,
    },
    /// The file of a machine's constants is malformed.
    #[error(
        "the calibration {path} (CELERITY_CALIBRATION or `Config::calibration`) is malformed: \
         {error}; `cargo xtask calibrate` writes such files"
    )]
    BadCalibration {
        /// The path of the file, as it was configured.
        path: String,
        /// What is wrong, and in which line.
        error: NotCosts,
    },
    /// Fewer cores were listed than there are processes on the host.
    #[error(
        "threads are to be pinned to {} (CELERITY_THREAD_PINNING or `Config::pinning`), but this \
         host has {processes} of the run's processes: list at least one for each",
        Count(*cores, "core")
    )]
    TooFewCores {
        /// How many were listed.
        cores: usize,
        /// How many processes there are.
        processes: usize,
    },
    /// A core was listed twice.
    #[error(
        "threads are to be pinned to core {core} twice (CELERITY_THREAD_PINNING or \
         `Config::pinning`): list each core once"
    )]
    RepeatedCore {
        /// The core.
        core: usize,
    },
    /// Nodes in one process were asked for, but a launcher makes processes.
    #[error(
        "several nodes per process were asked for (CELERITY_NODES or `Config::nodes`), but a \
         launcher has set {variable}: each process is one node; let the launcher start more"
    )]
    NodesUnderLauncher {
        /// By which variable the launcher is known.
        variable: &'static str,
    },
    /// A dry run of a node that the cluster does not have.
    #[error(
        "a dry run was asked for of N{node} (CELERITY_DRY_RUN_NODE or `Config::dry_run_node`), but \
         of {} (CELERITY_DRY_RUN_NODES or `Config::dry_run`) the last is N{}",
        Count(*nodes, "node"),
        nodes.saturating_sub(1)
    )]
    NoSuchDryRunNode {
        /// The node that was asked for.
        node: usize,
        /// How many there are.
        nodes: usize,
    },
    /// A dry run was asked for, but a launcher makes processes.
    #[error(
        "a dry run was asked for (CELERITY_DRY_RUN_NODES or `Config::dry_run`), but a launcher has \
         set {variable}: one process schedules for node 0; start the program without the launcher"
    )]
    DryRunUnderLauncher {
        /// By which variable the launcher is known.
        variable: &'static str,
    },
}

impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
