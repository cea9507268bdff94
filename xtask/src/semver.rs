//! `cargo xtask semver`: what programs may use of published crates is still there, or their versions say so.
//!
//! Owns which crates are compared, with which features, and with what. Which changes break programs is known to
//! cargo-semver-checks.

use std::process::Command;

use crate::error::Error;
use crate::package::{FEATURES, libraries};
use crate::runner;
use crate::workspace::{Workspace, cargo};

/// Crates some of whose features need an installed MPI or CUDA toolkit to build. Such features are left out.
const NEED_MORE_THAN_RUST: [&str; 2] = ["celerity", "celerity-mpi"];

/// With what published crates are compared.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Compare with a commit, branch or tag of this repository. Without it: with the last version in the registry
    #[arg(long, value_name = "REV", conflicts_with = "baseline_version")]
    baseline_rev: Option<String>,
    /// Compare with this version in the registry
    #[arg(long, value_name = "VERSION")]
    baseline_version: Option<String>,
    /// Compare this crate alone; several, if it is given several times
    #[arg(long = "package", short, value_name = "NAME")]
    packages: Vec<String>,
}

/// Compares the published libraries one by one: the facade re-exports what others define, and cargo-semver-checks
/// judges definitions. Prints which are compatible. Returns whether all are.
///
/// # Errors
/// If Cargo cannot be run, or there is no published library of a given name.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, Error> {
    let chosen = chosen(workspace, options)?;
    if !is_installed() {
        println!(
            "cargo-semver-checks is not installed: cargo install cargo-semver-checks --locked"
        );
        return Ok(false);
    }
    let mut table = String::new();
    let mut all = true;
    for package in chosen {
        let mut check = check(package, options);
        check.current_dir(&workspace.root);
        println!("=== {}", runner::describe(&check));
        let is_compatible = runner::stream(&mut check, |_| ())?.success();
        all &= is_compatible;
        table += &format!(
            "{package:<24}{}\n",
            if is_compatible { "compatible" } else { "NOT compatible" }
        );
    }
    print!("\n{table}");
    Ok(all)
}

/// The libraries that are asked for.
fn chosen<'w>(workspace: &'w Workspace, options: &Options) -> Result<Vec<&'w str>, Error> {
    let known: Vec<_> = libraries(workspace).collect();
    if let Some(name) = options.packages.iter().find(|name| !known.contains(&name.as_str())) {
        let known = known.into_iter().map(str::to_owned).collect();
        return Err(Error::UnknownLibrary { name: name.clone(), known });
    }
    let is_chosen =
        |name: &&str| options.packages.is_empty() || options.packages.iter().any(|it| it == name);
    Ok(known.into_iter().filter(is_chosen).collect())
}

fn is_installed() -> bool {
    let mut version = cargo();
    version.args(["semver-checks", "--version"]);
    version.output().is_ok_and(|output| output.status.success())
}

fn check(package: &str, options: &Options) -> Command {
    let mut check = cargo();
    check.args(["semver-checks", "--package", package]);
    if let Some(revision) = &options.baseline_rev {
        check.args(["--baseline-rev", revision]);
    }
    if let Some(version) = &options.baseline_version {
        check.args(["--baseline-version", version]);
    }
    if NEED_MORE_THAN_RUST.contains(&package) {
        check.arg("--only-explicit-features");
        features(package).for_each(|feature| {
            check.args(["--features", feature]);
        });
    }
    check
}

/// Those of [`FEATURES`] that a package has.
fn features(package: &str) -> impl Iterator<Item = &str> {
    FEATURES.split(',').filter_map(move |feature| feature.strip_prefix(package)?.strip_prefix('/'))
}

#[cfg(test)]
mod tests {
    use super::{Options, check, chosen};
    use crate::workspace::Workspace;

    fn options(packages: &[&str]) -> Options {
        let packages = packages.iter().map(|&name| name.to_owned()).collect();
        Options { baseline_rev: Some("v0.1.0".to_owned()), baseline_version: None, packages }
    }

    #[test]
    fn the_facade_and_what_it_re_exports_are_compared() {
        let workspace = Workspace::load().unwrap();
        let all = chosen(&workspace, &options(&[])).unwrap();
        for name in ["celerity", "celerity-kernel", "celerity-tdag"] {
            assert!(all.contains(&name), "{all:?}");
        }
        assert!(
            !all.contains(&"celerity-testkit") && !all.contains(&"celerity-kernel-macros"),
            "{all:?}"
        );
        assert_eq!(chosen(&workspace, &options(&["celerity-cdag"])).unwrap(), ["celerity-cdag"]);
        let error = chosen(&workspace, &options(&["celerity-testkit"])).unwrap_err().to_string();
        assert!(error.contains("celerity-testkit") && error.contains("celerity-cdag"), "{error}");
    }

    #[test]
    fn features_that_need_more_than_rust_are_left_out() {
        let words = |package| {
            let check = check(package, &options(&[]));
            let words = check.get_args().map(|word| word.to_string_lossy().into_owned());
            words.collect::<Vec<_>>().join(" ")
        };
        let facade = words("celerity");
        assert!(
            facade.contains("--baseline-rev v0.1.0 --only-explicit-features --features cuda"),
            "{facade}"
        );
        assert!(
            facade.contains("npy") && !facade.contains("mpi") && !facade.contains("cust"),
            "{facade}"
        );
        assert!(words("celerity-mpi").ends_with("--only-explicit-features"));
        assert_eq!(
            words("celerity-cdag"),
            "semver-checks --package celerity-cdag --baseline-rev v0.1.0"
        );
    }
}
