//! `cargo xtask package`: what `cargo publish` would upload, packaged and built, and uploaded nowhere.
//!
//! Owns what is packaged from where, and what must be in each package. The order, and that crates are built
//! against each other's packages instead of this workspace, are Cargo's business.

mod by_versions;
mod dependencies;
mod home;
mod licences;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use crate::error::Error;
use crate::files::remove;
use crate::runner::{self, describe};
use crate::workspace::{Package, Workspace, cargo};

/// What each package holds beside its sources.
const FRONT_MATTER: [&str; 2] = ["LICENSE", "README.md"];

/// Features that packages are built with: what adds crates and needs nothing that is not Rust.
pub(crate) const FEATURES: &str =
    "celerity/cuda,celerity/half,celerity/ndarray,celerity/npy,celerity/num-complex";

/// Packages all crates that are meant to be published, in the order in which they can be, as they are
/// in a clean clone of the last commit. Builds each from its package, with the packages of the others,
/// and prints them; then uses them as programs of others would. Returns whether all is well.
///
/// # Errors
/// If Cargo or Git cannot be run, or a package cannot be read.
pub(crate) fn run(workspace: &Workspace) -> Result<bool, Error> {
    let folder = workspace.target_dir.join("publish");
    let Some(clone) = clone(workspace, &folder)? else { return Ok(false) };
    let home = home::provide(&folder)?;
    // Cargo takes what it has built of a version for good, and ours do not change with each commit.
    let built = folder.join("build");
    remove(&built)?;
    let Some(order) = package(workspace, &clone, &built, &home)? else { return Ok(false) };
    let licence = clone.join("LICENSE");
    let licence = fs::read(&licence).map_err(|source| Error::Read { path: licence, source })?;
    let mut well = !order.is_empty() && dependencies::check(&clone, &home)?;
    println!("\n{:<40}{:>6}{:>8}", "package", "files", "KiB");
    for name in &order {
        let path = built.join("package").join(format!("{name}.crate"));
        let archive = Archive::open(path)?;
        println!("{name:<40}{:>6}{:>8}", archive.files.len(), archive.bytes.div_ceil(1024));
        for wrong in archive.faults(name, &licence)? {
            println!("{name}: {wrong}");
            well = false;
        }
    }
    Ok(well && by_versions::check(&folder, &clone, &built, &home, &order)?)
}

/// A clone of the last commit: what only lies about in this folder cannot help.
fn clone(workspace: &Workspace, folder: &Path) -> Result<Option<PathBuf>, Error> {
    let mut changes = git(&workspace.root);
    changes.args(["status", "--porcelain"]);
    let changed = changes.output();
    let changed = changed.map_err(|source| Error::Start { program: describe(&changes), source })?;
    if !changed.stdout.is_empty() {
        println!("what is not committed is left out");
    }
    let clone = folder.join("clone");
    remove(&clone)?;
    fs::create_dir_all(folder)
        .map_err(|source| Error::Write { path: folder.to_owned(), source })?;
    let mut command = git(&workspace.root);
    command.args(["clone", "--quiet", "."]).arg(&clone);
    Ok(runner::stream(&mut command, |_| ())?.success().then_some(clone))
}

fn git(folder: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(folder);
    git
}

/// Lets Cargo package and build; `None` if that fails, else the packages, `name-version`, in order.
fn package(
    workspace: &Workspace,
    clone: &Path,
    built: &Path,
    home: &Path,
) -> Result<Option<Vec<String>>, Error> {
    let mut command = cargo();
    // No metadata: where a repository can be found is not known yet.
    command.current_dir(clone).args(["package", "--no-metadata", "--features", FEATURES]);
    command.arg("--target-dir").arg(built).env("CARGO_TERM_COLOR", "never").env("CARGO_HOME", home);
    for package in published(workspace) {
        command.args(["--package", &package.name]);
    }
    println!("=== packages: {}", describe(&command));
    let order = Mutex::new(Vec::new());
    let status = runner::stream(&mut command, |line| {
        order.lock().expect("no holder of the lock panics").extend(packaged(line));
    })?;
    let order = order.into_inner().expect("no holder of the lock panics");
    Ok(status.success().then_some(order))
}

pub(crate) fn published(workspace: &Workspace) -> impl Iterator<Item = &Package> {
    workspace.packages.iter().filter(|package| package.is_published)
}

/// Published packages that are libraries.
pub(crate) fn libraries(workspace: &Workspace) -> impl Iterator<Item = &str> {
    let library = |kind: &str| kind == "lib";
    let packages = workspace.packages.iter().filter(move |package| {
        package.is_published && package.targets.iter().any(|target| library(&target.kind))
    });
    packages.map(|package| package.name.as_str())
}

/// The package that Cargo says it makes: `Packaging name v0.1.0 (/folder)`.
fn packaged(line: &str) -> Option<String> {
    let (name, rest) = line.trim_start().strip_prefix("Packaging ")?.split_once(" v")?;
    Some(format!("{name}-{}", rest.split(' ').next()?))
}

/// A package as it would be uploaded.
struct Archive {
    path: PathBuf,
    bytes: u64,
    /// Paths in it, which begin with the package's name and version.
    files: Vec<String>,
}

impl Archive {
    fn open(path: PathBuf) -> Result<Self, Error> {
        let unreadable = |source| Error::Read { path: path.clone(), source };
        let bytes = fs::metadata(&path).map_err(unreadable)?.len();
        let list = tar(&["--list", "--gzip", "--file"], &path, &[])?;
        let files = String::from_utf8_lossy(&list).lines().map(str::to_owned).collect();
        Ok(Self { path, bytes, files })
    }

    /// What is missing in the package of this name and version.
    fn faults(&self, name: &str, licence: &[u8]) -> Result<Vec<String>, Error> {
        let mut faults = missing(name, &self.files);
        if faults.is_empty() {
            let file = format!("{name}/LICENSE");
            let text =
                tar(&["--extract", "--to-stdout", "--gzip", "--file"], &self.path, &[&file])?;
            if text != licence {
                faults.push("its LICENSE is not that of the workspace".to_owned());
            }
        }
        Ok(faults)
    }
}

fn missing(name: &str, files: &[String]) -> Vec<String> {
    let absent = |file: &&str| !files.iter().any(|path| *path == format!("{name}/{file}"));
    FRONT_MATTER.iter().copied().filter(absent).map(|file| format!("{file} is missing")).collect()
}

/// What `tar` prints.
fn tar(options: &[&str], archive: &Path, members: &[&str]) -> Result<Vec<u8>, Error> {
    let mut tar = Command::new("tar");
    tar.args(options).arg(archive).args(members);
    let output = tar.output();
    let output = output.map_err(|source| Error::Start { program: describe(&tar), source })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let what = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Malformed { path: archive.to_owned(), what })
}

#[cfg(test)]
mod tests {
    use super::{missing, packaged, published};
    use crate::workspace::Workspace;

    #[test]
    fn the_order_is_read_from_what_cargo_says() {
        let line = "   Packaging celerity-regions v0.1.0 (/clone/crates/regions)";
        assert_eq!(packaged(line).as_deref(), Some("celerity-regions-0.1.0"));
        assert_eq!(packaged("    Packaged 7 files, 8.0KiB (3.5KiB compressed)"), None);
        assert_eq!(packaged("   Verifying celerity-regions v0.1.0 (/clone/crates/regions)"), None);
    }

    #[test]
    fn a_package_without_a_licence_is_noticed() {
        let files = ["a-0.1.0/Cargo.toml", "a-0.1.0/README.md", "a-0.1.0/src/LICENSE"];
        assert_eq!(missing("a-0.1.0", &files.map(str::to_owned)), ["LICENSE is missing"]);
    }

    #[test]
    fn the_facade_is_published_and_the_tests_are_not() {
        let workspace = Workspace::load().unwrap();
        let names: Vec<_> = published(&workspace).map(|package| package.name.as_str()).collect();
        assert!(
            names.contains(&"celerity") && names.contains(&"celerity-kernel-build"),
            "{names:?}"
        );
        let kept = ["celerity-testkit", "celerity-example-kernels", "celerity-benches", "xtask"];
        assert!(kept.iter().all(|name| !names.contains(name)), "{names:?}");
    }
}
