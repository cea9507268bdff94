//! `cargo xtask test`: the tests of the workspace, in stages, counted.
//!
//! Owns which stages there are, which of them somebody waits for who has just come, and what a stage's
//! outcome means; how a runner phrases its results is [`crate::tally`]'s business.

use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::tally::{Tally, failed_lines, failure};
use crate::workspace::{Workspace, cargo};
use crate::{mpi, runner};

/// How much is run.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run what takes longer, too: every target is compiled, then come all tests, random programs,
    /// simulated clusters, deliberate bugs, and nodes as processes under each MPI
    #[arg(long)]
    all: bool,
}

/// Runs all stages and prints their times, what was skipped or left out, and the closing line.
/// Returns whether everything passed.
///
/// # Errors
/// If Cargo cannot be run. Failing tests are no error.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, Error> {
    let mut outcomes = Vec::new();
    for stage in plan(options.all, has_nextest()) {
        let outcome = execute(stage, workspace)?;
        // Without a build each test stage would only repeat the compiler's messages.
        let stop = outcome.name == BUILD && !outcome.succeeded;
        outcomes.push(outcome);
        if stop {
            break;
        }
    }
    if options.all && outcomes.iter().all(|outcome| outcome.succeeded) {
        outcomes.push(under_mpi(workspace)?);
    }
    print!("{}", report(&outcomes, options.all));
    Ok(outcomes.iter().all(|outcome| outcome.succeeded))
}

/// Nodes as processes, under each MPI that is installed. Takes minutes to build, so it comes last
/// and only if the rest is well.
fn under_mpi(workspace: &Workspace) -> Result<Outcome, Error> {
    let start = Instant::now();
    let tally = mpi::test(workspace, &mpi::Options::all())?;
    Ok(Outcome::new("MPI", start.elapsed(), tally, true))
}

const BUILD: &str = "build";
const TESTS: &str = "unit and integration tests";
const DOC_TESTS: &str = "doc tests";

/// Together about a minute.
const RANDOM_PROGRAMS: &[&str] =
    &["run", "-p", "celerity-testkit", "--bin", "check", "--", "--programs", "5000"];
const SIMULATED_CLUSTERS: &[&str] =
    &["run", "-p", "celerity-testkit", "--bin", "sim", "--", "--programs", "8000"];

const MUTATION_PROOF: &[&str] =
    &["test", "--package", "celerity-testkit", "--features", "mutants", "--test", "mutants"];

/// Tests that only `--all` runs, and why: what others do in seconds, they do in minutes.
const LONG: &[(&str, &str)] = &[
    ("the_project_to_begin_with_builds_and_runs_anywhere", FACADE_ANEW),
    ("a_program_that_fails_prints_what_people_read", FACADE_ANEW),
    ("the_compiler_says_what_is_wrong_and_where", FACADE_ANEW),
    ("what_must_not_compile_says_why", "compiles `celerity` anew, for `trybuild`"),
];

const FACADE_ANEW: &str = "compiles `celerity` anew, outside of the workspace";

/// A command to run and the name under which to report it.
struct Stage {
    name: &'static str,
    arguments: Vec<&'static str>,
}

/// What became of a stage.
struct Outcome {
    name: &'static str,
    time: Duration,
    tally: Tally,
    /// Names of tests that have failed, as often as the runner names them.
    failures: Vec<String>,
    succeeded: bool,
}

/// The stages. `--tests` selects every target that Cargo calls tested (unit tests of libraries and
/// programs, integration tests, and examples that ask for it), so no benchmark is run.
///
/// With `all`, benchmarks are compiled as well, and last come random programs and simulated
/// clusters that no run before has seen (a failure prints its seed), and the mutation proof, which needs
/// a build of its own, with deliberate bugs.
fn plan(all: bool, nextest: bool) -> Vec<Stage> {
    let runner: &[&str] = if nextest { &["nextest", "run"] } else { &["test"] };
    let tests = |more: &[&'static str]| {
        [runner, &["--workspace", "--tests", "--no-fail-fast"], more].concat()
    };
    let stage = |name, arguments: &[&'static str]| Stage { name, arguments: arguments.to_vec() };
    let doc_tests = stage(DOC_TESTS, &["test", "--workspace", "--doc", "--no-fail-fast"]);
    if !all {
        let skipped = LONG.iter().flat_map(|(name, _)| ["--skip", name]);
        let options: Vec<_> = ["--"].into_iter().chain(skipped).collect();
        return vec![
            stage(BUILD, &["build", "--workspace", "--tests", "--examples"]),
            stage(TESTS, &tests(&options)),
            doc_tests,
        ];
    }
    vec![
        stage(BUILD, &["build", "--workspace", "--all-targets"]),
        stage(TESTS, &tests(&[])),
        doc_tests,
        stage("random programs", RANDOM_PROGRAMS),
        stage("simulated clusters", SIMULATED_CLUSTERS),
        stage("mutation proof", MUTATION_PROOF),
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
    command.args(&stage.arguments).current_dir(&workspace.root);
    // Colours would hide the summary lines from the tally.
    command.env("CARGO_TERM_COLOR", "never");
    // For tests that build something themselves, so that they build it as it has been built.
    command.env("XTASK_WHOLE_WORKSPACE", "1");
    println!("=== {}: {}", stage.name, runner::describe(&command));
    let counted = Mutex::new((Tally::default(), Vec::new()));
    let start = Instant::now();
    let status = runner::stream(&mut command, |line| {
        let (tally, failures) = &mut *counted.lock().expect("no holder of the lock panics");
        *tally += Tally::parse(line).unwrap_or_default();
        failures.extend(failure(line).map(str::to_owned));
    })?;
    let (tally, failures) = counted.into_inner().expect("no holder of the lock panics");
    let outcome = Outcome::new(stage.name, start.elapsed(), tally, status.success());
    Ok(Outcome { failures, ..outcome })
}

impl Outcome {
    /// A stage that fails without having counted a failure (it did not compile, a test process
    /// died) counts as one failure, so that the closing line never looks green by accident.
    fn new(name: &'static str, time: Duration, mut tally: Tally, succeeded: bool) -> Self {
        if !succeeded && tally.failed == 0 {
            tally.failed = 1;
        }
        let succeeded = succeeded && tally.failed == 0;
        Self { name, time, tally, failures: Vec::new(), succeeded }
    }
}

/// A table of stages, a line for each stage that left tests out, what only `--all` runs, a line for each test
/// that has failed, and the closing line.
fn report(outcomes: &[Outcome], all: bool) -> String {
    let mut text = format!("\n{:<28}{:>9}{:>8}{:>8}\n", "stage", "seconds", "passed", "failed");
    let mut total = Tally::default();
    for Outcome { name, time, tally, .. } in outcomes {
        let seconds = time.as_secs_f64();
        text += &format!("{name:<28}{seconds:>9.1}{:>8}{:>8}\n", tally.passed, tally.failed);
        total += *tally;
    }
    // One of the runners counts what a filter leaves out, too, which is listed below.
    let is_filtered = |outcome: &&Outcome| !all && outcome.name == TESTS;
    let unfiltered = outcomes.iter().filter(|outcome| !is_filtered(outcome));
    for Outcome { name, tally, .. } in unfiltered.filter(|outcome| outcome.tally.skipped > 0) {
        text += &format!("SKIPPED {name}: {} marked as ignored\n", tally.skipped);
    }
    if !all {
        text += &left_out();
    }
    text.extend(outcomes.iter().map(|outcome| failed_lines(outcome.name, &outcome.failures)));
    text + &format!("{total}\n")
}

/// What only `--all` runs.
fn left_out() -> String {
    let rest = "\nLeft out, and run by `cargo xtask test --all`: the build of benchmarks, new random programs and\n\
                simulated clusters, the mutation proof, nodes as processes under each MPI, and:\n";
    let tests = LONG.iter().map(|(name, why)| format!("  {name}: {why}\n"));
    std::iter::once(rest.to_owned()).chain(tests).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{BUILD, LONG, Outcome, Stage, TESTS, plan, report};
    use crate::tally::Tally;
    use crate::workspace::Workspace;

    #[test]
    fn the_closing_line_sums_over_stages() {
        let tests = Tally { passed: 5, failed: 1, skipped: 0 };
        let docs = Tally { passed: 2, failed: 0, skipped: 3 };
        let mut outcomes = [
            Outcome::new("tests", Duration::from_millis(1250), tests, false),
            Outcome::new("doc tests", Duration::ZERO, docs, true),
        ];
        outcomes[0].failures.push("borders::narrow".to_owned());
        let text = report(&outcomes, true);
        assert!(text.ends_with("FAILED tests: borders::narrow\n7 passed, 1 failed\n"), "{text}");
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
    fn what_is_left_out_is_said_before_the_closing_line() {
        let text = report(&[], false);
        assert!(text.contains("`cargo xtask test --all`"), "{text}");
        assert!(LONG.iter().all(|(name, _)| text.contains(name)), "{text}");
        assert_eq!(text.lines().last(), Some("0 passed, 0 failed"));
        assert!(!report(&[], true).contains("Left out"));

        let skipped = Tally { passed: 5, failed: 0, skipped: LONG.len() as u64 };
        let tests = [Outcome::new(TESTS, Duration::ZERO, skipped, true)];
        assert!(!report(&tests, false).contains("SKIPPED"));
        assert!(report(&tests, true).contains("SKIPPED"));
    }

    /// All runs: the short and the long one, under either runner.
    fn plans() -> impl Iterator<Item = (bool, Vec<Stage>)> {
        let runs = [(false, false), (false, true), (true, false), (true, true)];
        runs.into_iter().map(|(all, nextest)| (all, plan(all, nextest)))
    }

    #[test]
    fn doc_tests_are_always_run() {
        for (_, stages) in plans() {
            assert!(stages.iter().any(|stage| stage.arguments.contains(&"--doc")));
        }
    }

    #[test]
    fn nothing_is_left_out_of_all() {
        for (all, stages) in plans() {
            let leaves_out = stages.iter().any(|stage| stage.arguments.contains(&"--skip"));
            assert_ne!(all, leaves_out);
        }
    }

    /// Else a test that has been renamed would be run twice as long as the list says: unseen.
    #[test]
    fn tests_that_are_left_out_exist() {
        let root = Workspace::load().unwrap().root;
        let sources = crate::tidy::texts(&root).unwrap();
        for (name, _) in LONG {
            let function = format!("fn {}()", name.rsplit("::").next().unwrap());
            assert!(sources.iter().any(|text| text.contains(&function)), "there is no {name}");
        }
    }

    #[test]
    fn deliberate_bugs_stay_out_of_the_other_stages() {
        for (all, stages) in plans() {
            let with_bugs = |stage: &&Stage| stage.arguments.contains(&"mutants");
            let names: Vec<_> = stages.iter().filter(with_bugs).map(|stage| stage.name).collect();
            assert_eq!(names, if all { &["mutation proof"][..] } else { &[] });
            assert!(!all || stages.last().unwrap().name == "mutation proof");
        }
    }
}
