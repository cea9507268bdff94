//! Compilers for devices: which there are, and whether compiler and source of
//! `core` belong together. Compiles nothing.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;

/// A compiler to use before all others, and the source of `core` that goes with it.
const RUSTC: &str = "CELERITY_DEVICE_RUSTC";
const RUST_SRC: &str = "CELERITY_DEVICE_RUST_SRC";

/// Whether there is to be code for devices at all.
const CODE: &str = "CELERITY_DEVICE_CODE";

/// The environment variables that choose a compiler, or none.
pub(crate) const VARIABLES: [&str; 4] = [CODE, RUSTC, RUST_SRC, "PATH"];

/// Where distributions put their compiler.
const SYSTEM_RUSTC: &str = "/usr/bin/rustc";

/// A compiler with the source of `core`, of one version as far as that is written
/// down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Toolchain {
    pub(crate) rustc: PathBuf,
    /// The folder that holds `core`.
    pub(crate) library: PathBuf,
    /// What the compiler says of itself, for hashes.
    pub(crate) verbose_version: String,
}

/// Whether code for devices is wanted, as it is unless [`CODE`] says otherwise.
///
/// # Errors
/// If that is set to something else than a way of saying yes or no.
pub(crate) fn is_wanted() -> Result<bool, Error> {
    env::var_os(CODE).map_or(Ok(true), |value| means_yes(&value.to_string_lossy()))
}

fn means_yes(value: &str) -> Result<bool, Error> {
    match value {
        "on" | "1" | "true" => Ok(true),
        "off" | "0" | "false" => Ok(false),
        _ => Err(Error::Word { name: CODE, value: value.to_owned() }),
    }
}

/// What to do where no code was wanted.
pub(crate) const LEFT_OUT: &str =
    "CELERITY_DEVICE_CODE=off has left that out; build without the variable";

/// The first that can be used: the one that [`RUSTC`] names, the one that compiles
/// the program, rustup's nightly, the system's.
///
/// # Errors
/// If the one that is named cannot be used, or if compiler and source of the first
/// one found do not belong together.
pub(crate) fn find() -> Result<Option<Toolchain>, Error> {
    let source = env::var_os(RUST_SRC).map(PathBuf::from);
    if let Some(rustc) = env::var_os(RUSTC) {
        return named(rustc.into(), source).map(Some);
    }
    let compiling = env::var_os("RUSTC").map(PathBuf::from);
    let nightly = compiling.is_some().then(rustup_nightly).flatten();
    for rustc in compiling.into_iter().chain(nightly).chain([SYSTEM_RUSTC.into()]) {
        let Some((version, library)) = probe(&rustc, source.as_deref()) else { continue };
        if library.join("core/src/lib.rs").is_file() {
            return paired(rustc, library, version).map(Some);
        }
    }
    Ok(None)
}

/// What to install where nothing was found.
pub(crate) fn remedy() -> String {
    let command = match on_path("rustup") {
        true => "`rustup component add rust-src`",
        false if Path::new("/usr/bin/apt-get").exists() => {
            "`apt-get install rustc-web rust-web-src` (Debian 12; elsewhere `rustc rust-src`)"
        }
        false => "rustup (https://rustup.rs), then `rustup component add rust-src`",
    };
    format!(
        "kernels run on CPUs only, since there is no compiler for devices: it takes the source of \
         Rust's `core` beside the compiler; install it with {command} and build again"
    )
}

fn named(rustc: PathBuf, source: Option<PathBuf>) -> Result<Toolchain, Error> {
    let Some((version, library)) = probe(&rustc, source.as_deref()) else {
        return Err(Error::Unusable { rustc, what: "`rustc -vV` does not run".into() });
    };
    if !library.join("core/src/lib.rs").is_file() {
        let what = format!(
            "there is no source of `core` in {}; name its folder in {RUST_SRC}",
            library.display()
        );
        return Err(Error::Unusable { rustc, what });
    }
    paired(rustc, library, version)
}

/// What a compiler says of itself, and where its source of `core` should be.
fn probe(rustc: &Path, source: Option<&Path>) -> Option<(String, PathBuf)> {
    let version = output(rustc, &["-vV"])?;
    let library = match source {
        Some(source) => source.to_owned(),
        None => {
            let sysroot = output(rustc, &["--print", "sysroot"])?;
            Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library")
        }
    };
    Some((version, library))
}

fn paired(rustc: PathBuf, library: PathBuf, verbose_version: String) -> Result<Toolchain, Error> {
    let release = release(&verbose_version).to_owned();
    match source_version(&library) {
        Some(found) if number(&found) != number(&release) => {
            Err(Error::Versions { rustc, version: release, source_folder: library, found })
        }
        _ => Ok(Toolchain { rustc, library, verbose_version }),
    }
}

fn release(verbose_version: &str) -> &str {
    verbose_version.lines().find_map(|line| line.strip_prefix("release: ")).unwrap_or("unknown")
}

/// The version that a release of the source carries. rustup's lacks it, and comes
/// with its compiler.
fn source_version(library: &Path) -> Option<String> {
    let root = fs::canonicalize(library).ok()?;
    let root = root.parent()?;
    let text =
        ["src/version", "version"].iter().find_map(|at| fs::read_to_string(root.join(at)).ok());
    text.map(|text| text.trim().to_owned())
}

/// `1.96.0` of `1.96.0-nightly (0123 2026-05-19)`.
fn number(version: &str) -> &str {
    version.split(['-', ' ']).next().unwrap_or(version)
}

fn rustup_nightly() -> Option<PathBuf> {
    let path = output(Path::new("rustup"), &["which", "--toolchain", "nightly", "rustc"])?;
    Some(path.trim().into())
}

fn on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn output(program: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    // Of the toolchain that runs us, not of the one that is asked.
    command.args(arguments).env_remove("LD_LIBRARY_PATH");
    let output = command.output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION: &str = "rustc 1.96.0 (ac68 2026-05-25)\nbinary: rustc\nrelease: 1.96.0\n";

    fn root(name: &str) -> PathBuf {
        env::temp_dir().join(format!("celerity-kernel-build-{}-{name}", std::process::id()))
    }

    fn remove(name: &str) {
        fs::remove_dir_all(root(name)).unwrap();
    }

    /// A source tree of the given version, below the tests' own folder.
    fn source(name: &str, version: &str) -> PathBuf {
        let root = root(name);
        fs::create_dir_all(root.join("library/core/src")).unwrap();
        fs::create_dir_all(root.join("src")).unwrap();
        fs::write(root.join("src/version"), version).unwrap();
        fs::write(root.join("library/core/src/lib.rs"), "").unwrap();
        root.join("library")
    }

    #[test]
    fn code_is_wanted_or_not() {
        for (value, wanted) in [("on", true), ("1", true), ("off", false), ("false", false)] {
            assert_eq!(means_yes(value).unwrap(), wanted);
        }
        let error = means_yes("nein").unwrap_err().to_string();
        assert_eq!(error, "CELERITY_DEVICE_CODE is \"nein\", and can be `on` or `off`");
    }

    #[test]
    fn source_of_another_version_is_an_error_that_names_both() {
        let library = source("other-version", "1.95.0\n");
        let error = paired("rustc".into(), library, VERSION.into()).unwrap_err().to_string();
        assert!(error.contains("version 1.96.0") && error.contains("version 1.95.0"), "{error}");
        remove("other-version");
    }

    #[test]
    fn source_of_the_same_version_is_a_pair() {
        let library = source("same-version", "1.96.0\n");
        let toolchain = paired("rustc".into(), library.clone(), VERSION.into()).unwrap();
        assert_eq!(toolchain.library, library);
        assert_eq!(number("1.96.0-nightly (0123)"), "1.96.0");
        remove("same-version");
    }

    #[test]
    fn a_compiler_that_is_named_must_work() {
        let error = named("no-such-rustc".into(), None).unwrap_err().to_string();
        assert!(error.contains("no-such-rustc"), "{error}");
    }
}
