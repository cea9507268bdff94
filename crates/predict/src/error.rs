//! All that can be wrong with what a prediction is made from, with the file, the line and what to do.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why there is no prediction. `Debug` writes the text, as `main` prints it.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum PredictError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file or folder cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A cluster file, a schedule or a trace does not hold what it should.
    #[error("{}:{line}: {what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong, and what was expected.
        what: String,
    },
    /// A kernel or host task runs that the run which measures has not run.
    #[error(
        "{}:{line}: N{node} runs T{task} \"{name}\", which the measured run has not: there is no cost \
         per item; measure with the same arguments, or give a trace that has it with `--kernels`",
        path.display()
    )]
    NoCost {
        /// The schedule.
        path: PathBuf,
        /// The line of the instruction, counted from 1.
        line: usize,
        /// The node of the schedule.
        node: usize,
        /// The task.
        task: u64,
        /// What the program calls it.
        name: String,
    },
    /// Schedules that are not those of one cluster.
    #[error("{}: {what}", path.display())]
    Mismatch {
        /// The schedule that does not fit.
        path: PathBuf,
        /// What does not fit.
        what: String,
    },
    /// Instructions wait for each other, or for data that nobody sends.
    #[error("nothing goes on after {at_ns} ns: {}", waits.join("; "))]
    Deadlock {
        /// When the last thing happened, in simulated time.
        at_ns: u64,
        /// The first instruction of each node that has not completed, and what it waits for.
        waits: Vec<String>,
    },
    /// A program cannot be started.
    #[error("cannot start `{program}`: {source}")]
    Start {
        /// Its path.
        program: String,
        /// What the system says.
        source: io::Error,
    },
    /// A program has failed.
    #[error("`{program}` failed as {run}: {status}; it has said:\n{said}")]
    Failed {
        /// Its path.
        program: String,
        /// Which run it was: `N3 of 4`, say.
        run: String,
        /// How it has ended.
        status: String,
        /// The end of what it has written to standard error.
        said: String,
    },
    /// A list of numbers of nodes means nothing.
    #[error("\"{given}\" is no list of numbers of nodes: write 4, 1,2,4 or 1..128 (which doubles)")]
    BadNodes {
        /// What was given.
        given: String,
    },
}

impl fmt::Debug for PredictError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
