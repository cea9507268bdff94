//! Why a command could not do its work. Failing tests and broken rules are results, not errors.

use std::io;
use std::ops::Range;
use std::path::PathBuf;

/// Everything that keeps an xtask command from finishing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A program could not be started at all.
    #[error("cannot start `{program}`: {source}; is it installed and on PATH?")]
    Start {
        /// The program as it was called.
        program: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The output of a program that was started could not be read.
    #[error("lost the output of `{program}`: {source}")]
    Output {
        /// The program as it was called.
        program: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// `cargo metadata` failed or printed something unexpected.
    #[error("cannot read the workspace from `cargo metadata`: {what}")]
    Metadata {
        /// Cargo's own message, or the part that was missing.
        what: String,
    },
    /// A file or folder could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A file was read but does not hold what it should.
    #[error("{} is malformed: {what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Which part, and what was expected.
        what: String,
    },
    /// A part of a trace was asked for in which nothing happened.
    #[error(
        "{}: nothing happened between {:e} and {:e} µs; the trace has {} to {} µs",
        path.display(), asked.start, asked.end, trace.start, trace.end
    )]
    NothingThen {
        /// The trace.
        path: PathBuf,
        /// Which part, in µs.
        asked: Range<f64>,
        /// All that there is.
        trace: Range<f64>,
    },
    /// A program that is not part of the bundle was asked for.
    #[error("there is no program `{name}` to bundle; choose from: {}", known.join(", "))]
    UnknownProgram {
        /// The name as given.
        name: String,
        /// All programs that can be bundled.
        known: Vec<String>,
    },
    /// A library that is not published was asked for.
    #[error("there is no published library `{name}`; choose from: {}", known.join(", "))]
    UnknownLibrary {
        /// The name as given.
        name: String,
        /// All published libraries.
        known: Vec<String>,
    },
    /// A benchmark that does not exist was asked for.
    #[error("there is no benchmark `{name}`; choose from: {}", known.join(", "))]
    UnknownBench {
        /// The name as given.
        name: String,
        /// All benchmarks of the workspace.
        known: Vec<String>,
    },
    /// A figure that does not exist was asked for.
    #[error("there is no figure `{name}`; choose from: {}", known.join(", "))]
    UnknownFigure {
        /// The name as given.
        name: String,
        /// All figures.
        known: Vec<&'static str>,
    },
    /// Traces were given for a figure of something else.
    #[error("figure `{name}` is not made of traces; choose from: {}", known.join(", "))]
    NotOfTraces {
        /// The name as given.
        name: &'static str,
        /// Those that are.
        known: Vec<&'static str>,
    },
    /// An example that does not exist was asked for.
    #[error("there is no example `{name}`; choose from: {}", known.join(", "))]
    UnknownExample {
        /// The name as given.
        name: String,
        /// All examples of the facade.
        known: Vec<String>,
    },
    /// A figure needs processes.
    #[error("neither Open MPI nor MPICH is installed, and `{program}` needs processes")]
    NoMpi {
        /// What was to be launched.
        program: &'static str,
    },
    /// The package of benchmarks has none.
    #[error("package `{package}` has no benchmark; add one under benches/benches")]
    NoBench {
        /// The package that was searched.
        package: &'static str,
    },
    /// Times were to be checked or blessed.
    #[error(
        "`--check` and `--bless` are for `cargo xtask bench instructions` alone: times are not committed"
    )]
    OnlyCounts,
}
