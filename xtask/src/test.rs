//! `cargo xtask test`: every test of the workspace, in stages, counted.
//!
//! Owns which stages there are and what a stage's outcome means; how a runner phrases its results
//! is [`crate::tally`]'s business.

use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::tally::Tally;
use crate::workspace::{Workspace, cargo};
use crate::{mpi, runner};

/// Runs all stages and prints their times, what was skipped, and the closing line.
/// Returns whether everything passed.
///
/// # Errors
/// If Cargo cannot be run. Failing tests are no error.
pub(crate) fn run(workspace: &Workspace) -> Result<bool, Error> {
    let mut outcomes = Vec::new();
    for stage in plan(has_nextest()) {
        let outcome = execute(stage, workspace)?;
        // Without a build each test stage would only repeat the compiler's messages.
        let stop = outcome.name == BUILD && !outcome.succeeded;
        outcomes.push(outcome);
        if stop {
            break;
        }
    }
    if outcomes.iter().all(|outcome| outcome.succeeded) {
        outcomes.push(under_mpi(workspace)?);
    }
    print!("{}", report(&outcomes));
    Ok(outcomes.iter().all(|outcome| outcome.succeeded))
}

/// Nodes as processes, under each MPI that is installed. Takes minutes to build, so it comes last
/// and only if the rest is well.
fn under_mpi(workspace: &Workspace) -> Result<Outcome, Error> {
    let start = Instant::now();
    let tally = mpi::test(workspace, "")?;
    Ok(Outcome::new("MPI", start.elapsed(), tally, true))
}

const BUILD: &str = "build";

/// Together about a minute.
const RANDOM_PROGRAMS: &[&str] =
    &["run", "-p", "celerity-testkit", "--bin", "check", "--", "--programs", "5000"];
const SIMULATED_CLUSTERS: &[&str] =
    &["run", "-p", "celerity-testkit", "--bin", "sim", "--", "--programs", "8000"];

const MUTATION_PROOF: &[&str] =
    &["test", "--package", "celerity-testkit", "--features", "mutants", "--test", "mutants"];

/// A command to run and the name under which to report it.
struct Stage {
    name: &'static str,
    arguments: &'static [&'static str],
}

/// What became of a stage.
struct Outcome {
    name: &'static str,
    time: Duration,
    tally: Tally,
    succeeded: bool,
}

/// The stages. Benchmarks and examples are compiled by the first; `--tests` then selects every
/// target that Cargo calls tested (unit tests of libraries and programs, integration tests, and
/// examples that ask for it), so no benchmark is run. Then come random programs and
/// simulated clusters that no run before has seen; a failure prints its seed. The mutation proof
/// comes last: it needs a build of its own, with deliberate bugs.
fn plan(nextest: bool) -> [Stage; 6] {
    let tests: &[&str] = if nextest {
        &["nextest", "run", "--workspace", "--tests", "--no-fail-fast"]
    } else {
        &["test", "--workspace", "--tests", "--no-fail-fast"]
    };
    [
        Stage { name: BUILD, arguments: &["build", "--workspace", "--all-targets"] },
        Stage { name: "unit and integration tests", arguments: tests },
        Stage { name: "doc tests", arguments: &["test", "--workspace", "--doc", "--no-fail-fast"] },
        Stage { name: "random programs", arguments: RANDOM_PROGRAMS },
        Stage { name: "simulated clusters", arguments: SIMULATED_CLUSTERS },
        Stage { name: "mutation proof", arguments: MUTATION_PROOF },
    ]
}

fn has_nextest() -> bool {
    cargo()
        .args(["nextest", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn execute(stage: Stage, workspace: &Workspace) -> Result<Outcome, Error> {
    let mut command: Command = cargo();
    command.args(stage.arguments).current_dir(&workspace.root);
    // Colours would hide the summary lines from the tally.
    command.env("CARGO_TERM_COLOR", "never");
    println!("=== {}: {}", stage.name, runner::describe(&command));
    let tally = Mutex::new(Tally::default());
    let start = Instant::now();
    let status = runner::stream(&mut command, |line| {
        if let Some(counted) = Tally::parse(line) {
            *tally.lock().expect("no holder of the lock panics") += counted;
        }
    })?;
    let tally = tally.into_inner().expect("no holder of the lock panics");
    Ok(Outcome::new(stage.name, start.elapsed(), tally, status.success()))
}

impl Outcome {
    /// A stage that fails without having counted a failure (it did not compile, a test process
    /// died) counts as one failure, so that the closing line never looks green by accident.
    fn new(name: &'static str, time: Duration, mut tally: Tally, succeeded: bool) -> Self {
        if !succeeded && tally.failed == 0 {
            tally.failed = 1;
        }
        Self { name, time, tally, succeeded: succeeded && tally.failed == 0 }
    }
}

/// A table of stages, a line for each stage that left tests out, and the closing line.
fn report(outcomes: &[Outcome]) -> String {
    let mut text = format!("\n{:<28}{:>9}{:>8}{:>8}\n", "stage", "seconds", "passed", "failed");
    let mut total = Tally::default();
    for Outcome { name, time, tally, .. } in outcomes {
        let seconds = time.as_secs_f64();
        text += &format!("{name:<28}{seconds:>9.1}{:>8}{:>8}\n", tally.passed, tally.failed);
        total += *tally;
    }
    for Outcome { name, tally, .. } in outcomes.iter().filter(|outcome| outcome.tally.skipped > 0) {
        text += &format!("SKIPPED {name}: {} marked as ignored\n", tally.skipped);
    }
    text + &format!("{total}\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{BUILD, Outcome, Stage, plan, report};
    use crate::tally::Tally;

    #[test]
    fn the_closing_line_sums_over_stages() {
        let tests = Tally { passed: 5, failed: 1, skipped: 0 };
        let docs = Tally { passed: 2, failed: 0, skipped: 3 };
        let text = report(&[
            Outcome::new("tests", Duration::from_millis(1250), tests, false),
            Outcome::new("doc tests", Duration::ZERO, docs, true),
        ]);
        assert_eq!(text.lines().last(), Some("7 passed, 1 failed"));
        assert!(text.contains("SKIPPED doc tests: 3 marked as ignored"), "{text}");
        assert!(!text.contains("SKIPPED tests"), "{text}");
    }

    #[test]
    fn a_stage_that_dies_uncounted_is_a_failure() {
        let outcome = Outcome::new(BUILD, Duration::ZERO, Tally::default(), false);
        assert_eq!(outcome.tally.failed, 1);
        assert!(!outcome.succeeded);
    }

    #[test]
    fn a_counted_failure_outweighs_the_exit_status() {
        let tally = Tally { passed: 1, failed: 1, skipped: 0 };
        assert!(!Outcome::new("tests", Duration::ZERO, tally, true).succeeded);
    }

    #[test]
    fn doc_tests_are_run_under_either_runner() {
        for nextest in [false, true] {
            assert!(plan(nextest).iter().any(|stage| stage.arguments.contains(&"--doc")));
        }
    }

    #[test]
    fn deliberate_bugs_stay_out_of_the_other_stages() {
        for nextest in [false, true] {
            let with_bugs = |stage: &Stage| stage.arguments.contains(&"mutants");
            let stages: Vec<_> =
                plan(nextest).into_iter().map(|s| (s.name, with_bugs(&s))).collect();
            let (last, others) = stages.split_last().unwrap();
            assert_eq!(*last, ("mutation proof", true));
            assert!(others.iter().all(|(_, with_bugs)| !with_bugs));
        }
    }
}
