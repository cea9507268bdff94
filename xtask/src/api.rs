//! `cargo xtask api`: users of the facade can name every type that its public signatures mention, and what may
//! grow says so.
//!
//! Owns which crates rustdoc describes, and how; `surface` owns what the descriptions say, `complete` which types
//! never grow.

mod complete;
mod surface;

use std::fs;
use std::path::Path;

use crate::error::Error;
use crate::package::{FEATURES, libraries};
use crate::runner;
use crate::skip;
use crate::toolchain::nightly;
use crate::workspace::Workspace;
use surface::Surface;

/// The crate that users depend on.
const FACADE: &str = "celerity";

/// How the check is run.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Without a nightly toolchain, print `SKIPPED api: reason` and succeed
    #[arg(long)]
    or_skip: bool,
}

/// Lets rustdoc describe all published crates, and prints the types of ours in public signatures of the
/// facade that it does not export, and those that it exports, that may grow and do not say so. Returns whether
/// there are none.
///
/// # Errors
/// If Cargo cannot be run, or describes crates in a format that is not known here.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, Error> {
    if !has_nightly() {
        let reason = "only nightly Rust describes crates as JSON: rustup toolchain install nightly";
        println!("{}", skip::line("api", options.or_skip, reason));
        return Ok(options.or_skip);
    }
    let target = workspace.target_dir.join("api");
    if !describe(workspace, &target)? {
        return Ok(false);
    }
    let surface = read(workspace, &target.join("doc"))?;
    let unnameable = surface.unnameable(FACADE)?;
    for (ty, places) in &unnameable {
        println!(
            "{ty} is in the signature of {}, but `{FACADE}` does not export it",
            places.join(", ")
        );
    }
    let names = surface.exported(FACADE)?.len();
    println!("{names} public names, {} types in their signatures that are none", unnameable.len());
    let closed = complete::faults(&surface.exhaustive(FACADE)?);
    closed.iter().for_each(|fault| println!("{fault}"));
    Ok(unnameable.is_empty() && closed.is_empty())
}

fn has_nightly() -> bool {
    nightly("rustc").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// One JSON file for each published crate.
fn describe(workspace: &Workspace, target: &Path) -> Result<bool, Error> {
    let mut command = nightly("cargo");
    command.current_dir(&workspace.root);
    command.args(["doc", "--no-deps", "--lib", "--features", FEATURES]);
    command.arg("--target-dir").arg(target);
    for package in libraries(workspace) {
        command.args(["--package", package]);
    }
    command.env("RUSTDOCFLAGS", "-Z unstable-options --output-format json");
    Ok(runner::stream(&mut command, |_| ())?.success())
}

fn read(workspace: &Workspace, folder: &Path) -> Result<Surface, Error> {
    let crates = libraries(workspace).map(|package| {
        let name = package.replace('-', "_");
        let path = folder.join(format!("{name}.json"));
        let text = fs::read(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
        let json = serde_json::from_slice(&text)
            .map_err(|error| Error::Malformed { path, what: error.to_string() })?;
        Ok((name, json))
    });
    Ok(Surface::new(crates.collect::<Result<_, _>>()?))
}
