//! `cargo xtask bench`: runs the criterion benchmarks and compares them with the C++ original.
//!
//! A group of its own is `instructions`, which counts instead of timing ([`instructions`]); all
//! others are a pipeline of passes: run, collect ([`estimates`], [`counts`]), compare and print ([`report`]
//! against [`mod@reference`]), draw. Knows nothing of what a benchmark measures; a case is matched with
//! its reference and its count by name alone.

mod counts;
mod estimates;
mod instructions;
mod reference;
mod report;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use clap::Args;

use crate::error::Error;
use crate::runner;
use crate::workspace::{Workspace, cargo};
use counts::AllocationCounts;
use instructions::CountsAction;
use reference::Reference;
use report::Comparison;

const PACKAGE: &str = "celerity-benches";
const REFERENCE: &str = "benches/reference/celerity-cpp-baseline.csv";
const DEVICE_KERNELS: &str = "benches/reference/celerity-cpp-device-kernels.csv";
const RESULTS: &str = "bench-results.json";

/// The benchmark whose cases [`COUNTS`] counts the heap allocations of.
const COUNTED: &str = "graphs";
const COUNTS: &str = "allocations";

/// The benchmark that is also a picture, the program that draws it, and the picture.
const DRAWN: &str = "scaling";
const DRAW: &str = "scaling_figure";
const FIGURE: &str = "docs/figures/scheduling-scaling.svg";

/// The group whose cases are counted, and timed by nobody.
const INSTRUCTIONS: &str = "instructions";

/// The group that is a program, which prints tables.
const COLLECTIVES: &str = "collectives";

/// What `cargo xtask bench` is asked for.
#[derive(Args)]
pub(crate) struct Options {
    /// Benchmark files to run, as named in benches/benches (default: all of them), or
    /// `instructions`, or `collectives`
    #[arg(value_name = "GROUP")]
    groups: Vec<String>,
    /// Stop each case as soon as its estimate settles: fast, less exact
    #[arg(long)]
    quick: bool,
    /// With `instructions`: fail where a count differs by more than 3 % from the one committed
    #[arg(long, conflicts_with = "quick")]
    check: bool,
    /// With `instructions`: commit the counts, for a reason that reviewers will read
    #[arg(long, value_name = "REASON", conflicts_with_all = ["quick", "check"])]
    bless: Option<String>,
}

/// Counts instructions, if they are what is asked for, or else times benchmarks.
///
/// # Errors
/// As [`time`] and [`instructions::run`].
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, Error> {
    let Options { groups, quick, check, bless } = options;
    let purpose = match (check, bless) {
        (_, Some(reason)) => CountsAction::Bless(reason),
        (true, None) => CountsAction::Check,
        (false, None) => CountsAction::Show,
    };
    match groups.as_slice() {
        [only] if only == INSTRUCTIONS => instructions::run(workspace, purpose),
        [only] if only == COLLECTIVES => print_collectives(workspace),
        _ if *check || bless.is_some() => Err(Error::OnlyCounts),
        _ => time(workspace, groups, *quick),
    }
}

/// Runs the benchmarks named in `groups` (all, if there are none), prints the comparison and
/// writes it as JSON into the target directory. The scaling of the scheduler is drawn, too, if it was
/// asked for by name: the picture is under version control, but one of a quick run goes into the target directory. Returns
/// whether everything ran to its end.
///
/// # Errors
/// An unknown group, or files that cannot be read or written.
fn time(workspace: &Workspace, groups: &[String], quick: bool) -> Result<bool, Error> {
    let selected = with_counts(select(known_benches(workspace), groups)?);
    let reference = load_reference(workspace)?;
    let start = SystemTime::now();
    if !run_criterion(workspace, &selected, quick)? {
        return Ok(false);
    }
    let folder = workspace.target_dir.join("criterion");
    let (cases, counts) =
        (estimates::collect(&folder, start)?, AllocationCounts::load(&folder, start)?);
    let comparison = Comparison::new(cases, &reference, &counts);
    print!("\n{comparison}");
    let path = workspace.target_dir.join(RESULTS);
    fs::write(&path, comparison.to_json(quick))
        .map_err(|source| Error::Write { path: path.clone(), source })?;
    println!("written to {}", path.display());
    if !groups.iter().any(|group| group == DRAWN) {
        return Ok(true);
    }
    let picture = workspace.root.join(FIGURE);
    match (quick, picture.file_name()) {
        // Less exact than what is under version control.
        (true, Some(name)) => draw(workspace, &path, &workspace.target_dir.join(name)),
        _ => draw(workspace, &path, &picture),
    }
}

/// Runs a benchmark, and returns what it has written of it: `None` if it has failed.
///
/// # Errors
/// As [`run`].
pub(crate) fn results(
    workspace: &Workspace,
    bench: &str,
) -> Result<Option<serde_json::Value>, Error> {
    let start = SystemTime::now();
    if !run_criterion(workspace, &select(known_benches(workspace), &[bench.to_owned()])?, true)? {
        return Ok(None);
    }
    let cases = estimates::collect(&workspace.target_dir.join("criterion"), start)?;
    let case = |case: &estimates::CriterionEstimate| serde_json::json!({"group": case.group, "function": case.function, "median_ns": case.median_ns});
    Ok(Some(serde_json::json!({"cases": cases.iter().map(case).collect::<Vec<_>>()})))
}

/// How collectives are scheduled, and what is sent with them and without.
///
/// # Errors
/// If the program cannot be started.
fn print_collectives(workspace: &Workspace) -> Result<bool, Error> {
    let mut command = cargo();
    command.current_dir(&workspace.root).args(["run", "--release", "--package", PACKAGE]);
    command.args(["--bin", COLLECTIVES]);
    finish(command)
}

fn load_reference(workspace: &Workspace) -> Result<Reference, Error> {
    let [own, device_kernels] = [REFERENCE, DEVICE_KERNELS].map(|path| workspace.root.join(path));
    Reference::load(&own, &device_kernels)
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

/// Whoever measures the graphs also wants to know what they allocate.
fn with_counts(mut selected: Vec<String>) -> Vec<String> {
    let has = |name: &str| selected.iter().any(|selected| selected == name);
    if has(COUNTED) && !has(COUNTS) {
        selected.push(COUNTS.to_owned());
    }
    selected
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
    finish(command)
}

/// Draws the results in the file `results`.
fn draw(workspace: &Workspace, results: &Path, picture: &Path) -> Result<bool, Error> {
    let mut command = cargo();
    command.current_dir(&workspace.root);
    command.args(["run", "--quiet", "--release", "--package", PACKAGE, "--bin", DRAW, "--"]);
    command.arg(results).arg(picture);
    let is_drawn = finish(command)?;
    if is_drawn {
        println!("drawn to {}", picture.display());
    }
    Ok(is_drawn)
}

/// Runs `command` in the foreground; `false` if it ended with a failure.
fn finish(mut command: Command) -> Result<bool, Error> {
    let status = command
        .status()
        .map_err(|source| Error::Start { program: runner::describe(&command), source })?;
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use super::{load_reference, select, with_counts};
    use crate::error::Error;
    use crate::workspace::Workspace;

    #[test]
    fn groups_are_all_or_those_named() {
        let known = || vec!["regions".to_owned(), "tdag".to_owned()];
        assert_eq!(select(known(), &[]).unwrap(), known());
        assert_eq!(select(known(), &["tdag".to_owned()]).unwrap(), ["tdag"]);
    }

    #[test]
    fn allocations_are_counted_wherever_graphs_are_timed() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(with_counts(names(&["graphs"])), ["graphs", "allocations"]);
        assert_eq!(with_counts(names(&["allocations", "graphs"])), ["allocations", "graphs"]);
        assert_eq!(with_counts(names(&["regions"])), ["regions"]);
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
        let reference = load_reference(&workspace).unwrap();
        let soup = reference.best_ns("generating large task graphs", "soup topology");
        assert!(soup.is_some_and(|ns| ns > 0.0));
        let jacobi = reference.best_ns("idag_device_kernel/4/4", "jacobi");
        assert!(jacobi.is_some_and(|ns| ns > 0.0));
    }
}
