#![doc = include_str!("../README.md")]

mod attempts;
mod cargo;
mod embed;
mod entry_points;
mod error;
mod hints;
mod instruction;
mod ir;
mod left;
mod limits;
mod link;
mod merge;
mod parameters;
mod places;
mod products;
mod sysroot;
mod toolchain;

use attempts::Attempt;
use cargo::Nested;
pub use error::Error;
use std::env;
use std::path::{Path, PathBuf};
use toolchain::Toolchain;

/// The target of the code that devices run.
const TARGET: &str = "nvptx64-nvidia-cuda";

/// The oldest devices that kernels are compiled for unless asked otherwise: newer
/// ones take the same code, which their driver compiles.
const DEFAULT_ARCHITECTURE: u32 = 80;

/// Compiles the crate that the running build script belongs to, for devices, with
/// the default settings. Everything a `build.rs` needs:
///
/// ```no_run
/// celerity_kernel_build::build();
/// ```
///
/// A failure ends the build with an error. A missing compiler is a warning: the
/// program then runs on CPUs, and says what was missing when asked for more.
pub fn build() {
    Build::new().run();
}

/// Settings, for a build script that wants others than [`build`].
#[derive(Clone, Debug)]
#[must_use = "nothing is compiled before `run`"]
pub struct Build {
    architectures: Vec<u32>,
}

impl Default for Build {
    fn default() -> Self {
        Self::new()
    }
}

impl Build {
    /// The default: portable code for compute capability 8.0 and newer.
    pub fn new() -> Self {
        Self { architectures: vec![DEFAULT_ARCHITECTURE] }
    }

    /// Compiles for these architectures, as in `sm_80`: 80. A device takes the
    /// newest that is not newer than itself.
    pub fn architectures(mut self, architectures: impl IntoIterator<Item = u32>) -> Self {
        self.architectures = architectures.into_iter().collect();
        self.architectures.sort_unstable();
        self.architectures.dedup();
        self
    }

    /// Compiles. To be called from a build script, and once.
    pub fn run(self) {
        // The compilation for the device runs the same build script.
        if env::var("TARGET").is_ok_and(|target| target == TARGET) {
            return;
        }
        if let Err(error) = self.try_run() {
            // Cargo shows what the compiler has said only if the script fails.
            eprintln!("error: {error}");
            std::process::exit(1);
        }
    }

    fn try_run(&self) -> Result<(), Error> {
        let script = Script::from_env()?;
        for name in toolchain::VARIABLES {
            println!("cargo::rerun-if-env-changed={name}");
        }
        if !toolchain::is_wanted()? {
            return embed::missing(&script, toolchain::LEFT_OUT);
        }
        match toolchain::find()? {
            Some(toolchain) => self.compile(&script, &toolchain),
            None => {
                let remedy = toolchain::remedy();
                println!("cargo::warning={}", one_line(&remedy));
                // A file that is never there: look again with every build.
                println!("cargo::rerun-if-changed={}", script.out.join("missing").display());
                embed::missing(&script, &remedy)
            }
        }
    }

    fn compile(&self, script: &Script, toolchain: &Toolchain) -> Result<(), Error> {
        let mut modules = Vec::new();
        for &architecture in &self.architectures {
            let best = |fast| best(script, toolchain, architecture, fast);
            let strict = best(false)?;
            let ptx = match merge::needs_fast(&strict) {
                true => merge::merge(strict, &best(true)?, merge::SUFFIX),
                false => strict,
            };
            modules.push((architecture, parameters::allow(ptx)));
        }
        embed::modules(script, &modules)
    }
}

/// The code of a compilation, and of further ones where these keep less in memory of threads.
fn best(
    script: &Script,
    toolchain: &Toolchain,
    architecture: u32,
    fast: bool,
) -> Result<String, Error> {
    let attempted = |attempt, entries: &[String]| {
        let sysroot = &sysroot::prepare(toolchain, architecture, attempt, &script.shared)?;
        complete(&Nested { script, toolchain, sysroot, architecture, fast, attempt, entries })
    };
    let mut ptx = attempted(Attempt::Usual, &[])?;
    for attempt in Attempt::MORE {
        let entries = attempt.entries(&ptx);
        if !entries.is_empty() {
            ptx = attempt.take(ptx, &attempted(attempt, &entries)?);
        }
    }
    Ok(ptx)
}

/// The code of one compilation, with the data that it refers to.
fn complete(nested: &Nested<'_>) -> Result<String, Error> {
    let compiled = nested.run()?;
    for source in &compiled.sources {
        println!("cargo::rerun-if-changed={}", source.display());
    }
    ir::check_statics(&compiled.ir, &compiled.libraries)
        .and_then(|()| link::complete(&compiled.ptx, &compiled.libraries))
        .map(limits::apply)
        .map(|ptx| left::keep(&ptx))
        .map(|ptx| products::narrow(&ptx))
        .map_err(|error| error.located(|| nested.places()))
}

/// What Cargo tells a build script.
struct Script {
    /// The package's name.
    package: String,
    /// Its folder.
    manifest: PathBuf,
    /// Where to put what the package includes.
    out: PathBuf,
    /// Where all packages of the build keep what they share.
    shared: PathBuf,
    /// Cargo itself.
    cargo: PathBuf,
}

impl Script {
    fn from_env() -> Result<Self, Error> {
        let variable = |name| env::var_os(name).ok_or(Error::NoScript { name });
        let out = PathBuf::from(variable("OUT_DIR")?);
        Ok(Self {
            package: variable("CARGO_PKG_NAME")?.to_string_lossy().into_owned(),
            manifest: variable("CARGO_MANIFEST_DIR")?.into(),
            shared: shared(&out),
            out,
            cargo: variable("CARGO")?.into(),
        })
    }
}

/// From `target/debug/build/PACKAGE-HASH/out` to `target/celerity-device`.
fn shared(out: &Path) -> PathBuf {
    out.ancestors().nth(4).unwrap_or(out).join("celerity-device")
}

/// Cargo's instructions end with the line.
fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_a_build_share_a_folder() {
        let out = Path::new("/p/target/debug/build/waves-0123/out");
        assert_eq!(shared(out), Path::new("/p/target/celerity-device"));
    }

    #[test]
    fn architectures_are_in_order() {
        assert_eq!(Build::new().architectures([90, 80, 90]).architectures, [80, 90]);
    }
}
