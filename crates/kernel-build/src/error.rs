//! What can keep kernels from being compiled.

use std::io;
use std::path::PathBuf;

use crate::places::SourceLocations;

/// Why a crate of kernels was not compiled for devices.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// This is no build script.
    #[error("Cargo has not set {name}: call this from a build script")]
    NoScript {
        /// The variable that is missing.
        name: &'static str,
    },
    /// A variable says neither yes nor no.
    #[error("{name} is {value:?}, and can be `on` or `off`")]
    Word {
        /// The variable.
        name: &'static str,
        /// What it is set to.
        value: String,
    },
    /// A compiler that was asked for by name cannot be used.
    #[error("CELERITY_DEVICE_RUSTC is {}, which cannot be used: {what}", rustc.display())]
    Unusable {
        /// The path of the compiler.
        rustc: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Compiler and source of `core` do not belong together.
    #[error(
        "the compiler {} is version {version}, but the source of `core` in {} is version {found}: \
         install both in one version, or point CELERITY_DEVICE_RUST_SRC at the other one",
        rustc.display(), source_folder.display()
    )]
    Versions {
        /// The path of the compiler.
        rustc: PathBuf,
        /// The version that the compiler says it has.
        version: String,
        /// The folder of the source.
        source_folder: PathBuf,
        /// The version that the source of `core` says it has.
        found: String,
    },
    /// `core` did not compile.
    #[error(
        "`core` did not compile for devices with {}, from {}: do they belong together?\n{output}",
        rustc.display(), source_folder.display()
    )]
    Core {
        /// The path of the compiler.
        rustc: PathBuf,
        /// The folder of the source.
        source_folder: PathBuf,
        /// What the compiler said.
        output: String,
    },
    /// The kernels did not compile. The compiler has said why.
    #[error("the kernels of `{package}` did not compile for devices (sm_{architecture})")]
    Kernels {
        /// The crate of kernels.
        package: String,
        /// The architecture, as in `sm_80`: 80.
        architecture: u32,
    },
    /// A kernel needs something that devices do not have.
    #[error(
        "`{function}` is called on devices, but has no code there: it comes from a library that \
         is not Rust, or from `alloc`; kernels can use neither"
    )]
    NoCode {
        /// The function, as the compiler calls it.
        function: String,
    },
    /// A kernel calls itself, directly or not.
    #[error(
        "kernels cannot be recursive, since devices have small stacks: write a loop; a cycle of \
         calls: {}",
        cycle.join(" -> ")
    )]
    Recursion {
        /// The functions, each with its line.
        cycle: Vec<String>,
    },
    /// A kernel uses a static variable that can change: `static mut`, or one of atomics or cells.
    #[error(
        "kernel `{kernel}` uses {variable}, a static variable that can change: each device would \
         have one of its own, that no host sees; put the data into a buffer that the task \
         accesses, or pass it by value"
    )]
    Static {
        /// The kernel, or a kernel that calls a function that uses it.
        kernel: String,
        /// The variable, with its line.
        variable: String,
    },
    /// A kernel uses a static variable whose contents were not found.
    #[error("the contents of `{name}` were not found in any of the libraries that kernels use")]
    NoData {
        /// The variable, as the compiler calls it.
        name: String,
    },
    /// A program could not be started.
    #[error("cannot start {}: {source}", program.display())]
    Start {
        /// The path of the program that was called.
        program: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A file or folder could not be used.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

impl Error {
    /// The error with functions and variables as users know them, not as the compiler does, and
    /// with their lines; `places` is called only if there are any.
    pub(crate) fn located(self, places: impl FnOnce() -> SourceLocations) -> Self {
        match self {
            Self::Recursion { cycle } => {
                let places = places();
                Self::Recursion { cycle: cycle.iter().map(|name| places.describe(name)).collect() }
            }
            Self::Static { kernel, variable } => {
                Self::Static { kernel, variable: places().describe(&variable) }
            }
            other => other,
        }
    }

    /// For `map_err`, with the path that could not be used.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
