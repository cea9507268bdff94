//! `cargo xtask bench`: runs the criterion benchmarks and compares them with the C++ original.
//!
//! A pipeline of three passes: run, collect ([`estimates`]), compare and print ([`report`] against
//! [`mod@reference`]). Knows nothing of what a benchmark measures; a case is matched with its reference
//! by name alone.

mod estimates;
mod reference;
mod report;

use std::fs;
use std::time::SystemTime;

use crate::error::Error;
use crate::runner;
use crate::workspace::{Workspace, cargo};
use reference::Reference;
use report::Comparison;

const PACKAGE: &str = "celerity-benches";
const REFERENCE: &str = "benches/reference/celerity-cpp-baseline.csv";
const RESULTS: &str = "bench-results.json";

/// Runs the benchmarks named in `groups` (all, if there are none), prints the comparison and
/// writes it as JSON into the target directory. Returns whether every benchmark ran to its end.
///
/// # Errors
/// An unknown group, or files that cannot be read or written.
pub(crate) fn run(workspace: &Workspace, groups: &[String], quick: bool) -> Result<bool, Error> {
    let selected = select(known_benches(workspace), groups)?;
    let reference = Reference::load(&workspace.root.join(REFERENCE))?;
    let start = SystemTime::now();
    if !run_criterion(workspace, &selected, quick)? {
        return Ok(false);
    }
    let cases = estimates::collect(&workspace.target_dir.join("criterion"), start)?;
    let comparison = Comparison::new(cases, &reference);
    print!("\n{comparison}");
    let path = workspace.target_dir.join(RESULTS);
    fs::write(&path, comparison.to_json(quick))
        .map_err(|source| Error::Write { path: path.clone(), source })?;
    println!("written to {}", path.display());
    Ok(true)
}

fn known_benches(workspace: &Workspace) -> Vec<String> {
    let package = workspace.packages.iter().find(|package| package.name == PACKAGE);
    package
        .into_iter()
        .flat_map(|package| &package.targets)
        .filter(|target| target.kind == "bench")
        .map(|target| target.name.clone())
        .collect()
}

fn select(known: Vec<String>, groups: &[String]) -> Result<Vec<String>, Error> {
    if known.is_empty() {
        return Err(Error::NoBench { package: PACKAGE });
    }
    if let Some(name) = groups.iter().find(|name| !known.contains(name)) {
        return Err(Error::UnknownBench { name: name.clone(), known });
    }
    Ok(if groups.is_empty() { known } else { groups.to_vec() })
}

/// Each benchmark is named to Cargo, because a bare `cargo bench` would also hand criterion's
/// options to the unit-test harness of the library, which rejects them.
fn run_criterion(workspace: &Workspace, benches: &[String], quick: bool) -> Result<bool, Error> {
    let mut command = cargo();
    command.current_dir(&workspace.root).args(["bench", "--package", PACKAGE]);
    command.env("CRITERION_HOME", workspace.target_dir.join("criterion"));
    for bench in benches {
        command.args(["--bench", bench]);
    }
    if quick {
        command.args(["--", "--quick"]);
    }
    let status = command
        .status()
        .map_err(|source| Error::Start { program: runner::describe(&command), source })?;
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use super::{REFERENCE, Reference, select};
    use crate::error::Error;
    use crate::workspace::Workspace;

    #[test]
    fn groups_are_all_or_those_named() {
        let known = || vec!["regions".to_owned(), "tdag".to_owned()];
        assert_eq!(select(known(), &[]).unwrap(), known());
        assert_eq!(select(known(), &["tdag".to_owned()]).unwrap(), ["tdag"]);
    }

    #[test]
    fn an_unknown_group_is_answered_with_the_known_ones() {
        let error = select(vec!["regions".to_owned()], &["region".to_owned()]).unwrap_err();
        assert!(error.to_string().ends_with("choose from: regions"), "{error}");
        assert!(matches!(select(Vec::new(), &[]), Err(Error::NoBench { .. })));
    }

    #[test]
    fn the_committed_reference_can_be_read() {
        let workspace = Workspace::load().unwrap();
        let reference = Reference::load(&workspace.root.join(REFERENCE)).unwrap();
        let soup = reference.best_ns("generating large task graphs", "soup topology");
        assert!(soup.is_some_and(|ns| ns > 0.0));
    }
}
