//! `cargo xtask miri`: unit tests of the pure crates, and of the host's side of kernels, interpreted by
//! Miri, which sees undefined behaviour, leaks and races that no processor shows.
//!
//! Owns which crates those are, how Miri is to judge each, and how it gets here. Tests that would take long
//! under Miri take fewer steps under `cfg(miri)`, which is their own business.

use std::num::NonZeroUsize;
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::runner::{describe, stream};
use crate::tally::Tally;
use crate::workspace::Workspace;

/// What is interpreted.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run integration tests of `regions` and `codec`, too: their laws, with a few random inputs each
    #[arg(long)]
    all: bool,
    /// Only crates whose names contain this
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
}

/// The toolchain that has Miri.
const TOOLCHAIN: &str = "nightly";

/// A crate, and how Miri is to judge it.
struct Subject {
    package: &'static str,
    /// Flags for Miri. Without any, it judges aliasing by Stacked Borrows.
    flags: &'static str,
    /// Whether it has integration tests that need no other crate of ours but `codec`.
    has_laws: bool,
}

const fn subject(package: &'static str, flags: &'static str, has_laws: bool) -> Subject {
    Subject { package, flags, has_laws }
}

/// In the order in which they begin: those that take longest first.
const SUBJECTS: &[Subject] = &[
    // Its entry points take references without a size that lead to all of an allocation
    // (`kernel/src/abi/pointer.rs`), which Tree Borrows allows and Stacked Borrows does not; and
    // they take addresses as numbers, as devices have them, of which Miri would only warn.
    subject("celerity-kernel", "-Zmiri-tree-borrows -Zmiri-permissive-provenance", false),
    subject("celerity-tdag", "", false),
    subject("celerity-regions", "", true),
    subject("celerity-idag", "", false),
    subject("celerity-cdag", "", false),
    subject("celerity-codec", "", true),
];

/// Random inputs per law, instead of hundreds.
const CASES: &str = "3";

/// Installs Miri if it is not here, and runs the tests under it, as many crates at a time as there are
/// cores. Returns whether all passed.
///
/// # Errors
/// If a program cannot be run. Failing tests are no error, nor is a Miri that cannot be installed.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, Error> {
    if !is_here() && !install()? {
        println!("\nMiri cannot be installed: what rustup says of it stands above");
        return Ok(false);
    }
    let chosen: Vec<_> =
        SUBJECTS.iter().filter(|subject| subject.package.contains(&options.only)).collect();
    // All are built before any runs, since Cargo builds one at a time.
    let mut build = miri(workspace);
    build.args(["test", "--no-run", "--lib"]);
    build.args(chosen.iter().flat_map(|subject| ["--package", subject.package]));
    if !stream(&mut build, |_| ())?.success() {
        println!("{}", Tally::one(false));
        return Ok(false);
    }
    let (next, outcomes) = (Mutex::new(chosen.into_iter()), Mutex::new(Vec::new()));
    let work = || {
        while let Some(subject) = { next.lock().expect("nobody panics").next() } {
            let start = Instant::now();
            let tally = test(workspace, subject, options.all);
            let outcome = tally.map(|tally| (subject.package, start.elapsed(), tally));
            outcomes.lock().expect("nobody panics").push(outcome);
        }
    };
    let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    let outcomes: Vec<_> =
        outcomes.into_inner().expect("nobody panics").into_iter().collect::<Result<_, _>>()?;
    print!("{}", report(&outcomes));
    Ok(outcomes.iter().all(|(.., tally)| tally.failed == 0))
}

/// The tests of one crate. What dies without counting counts as one failure.
fn test(workspace: &Workspace, subject: &Subject, all: bool) -> Result<Tally, Error> {
    let mut tests = miri(workspace);
    tests.args(["test", "--no-fail-fast", "--package", subject.package, "--lib"]);
    if all && subject.has_laws {
        tests.args(["--test", "*"]);
    }
    tests.env("MIRIFLAGS", flags(subject, all)).env("PROPTEST_CASES", CASES);
    let tally = Mutex::new(Tally::default());
    let status = stream(&mut tests, |line| {
        if let Some(counted) = Tally::parse(line) {
            *tally.lock().expect("nobody panics") += counted;
        }
    })?;
    let mut tally = tally.into_inner().expect("nobody panics");
    if !status.success() && tally.failed == 0 {
        tally.failed = 1;
    }
    Ok(tally)
}

/// What Miri is told of a crate.
fn flags(subject: &Subject, all: bool) -> String {
    // Laws keep failing inputs in files.
    let isolation = if all && subject.has_laws { " -Zmiri-disable-isolation" } else { "" };
    format!("{}{isolation}", subject.flags).trim_start().to_owned()
}

/// Cargo under Miri.
fn miri(workspace: &Workspace) -> Command {
    let mut command = nightly("cargo");
    command.arg("miri").current_dir(&workspace.root);
    // Colours would hide the summary lines from the tally.
    command.env("CARGO_TERM_COLOR", "never");
    command
}

/// A program of the toolchain that has Miri, whichever runs us.
fn nightly(program: &str) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", TOOLCHAIN, program]);
    for of_ours in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN", "RUSTFLAGS"] {
        command.env_remove(of_ours);
    }
    command
}

/// Whether Miri is installed, and the source of the standard library, which it interprets as well.
fn is_here() -> bool {
    let mut probe = nightly("cargo");
    probe.args(["miri", "setup"]);
    probe.output().is_ok_and(|output| output.status.success())
}

fn install() -> Result<bool, Error> {
    let mut install = Command::new("rustup");
    install.args(["toolchain", "install", TOOLCHAIN, "--profile", "minimal"]);
    install.args(["--component", "miri", "--component", "rust-src"]);
    println!("=== {}", describe(&install));
    Ok(stream(&mut install, |_| ())?.success())
}

/// A table of crates, and the closing line.
fn report(outcomes: &[(&str, Duration, Tally)]) -> String {
    let mut text = format!("\n{:<28}{:>9}{:>8}{:>8}\n", "crate", "seconds", "passed", "failed");
    let mut total = Tally::default();
    for (package, time, tally) in outcomes {
        let seconds = time.as_secs_f64();
        text += &format!("{package:<28}{seconds:>9.1}{:>8}{:>8}\n", tally.passed, tally.failed);
        total += *tally;
    }
    text + &format!("{total} under Miri\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{SUBJECTS, flags, report};
    use crate::tally::Tally;
    use crate::workspace::Workspace;

    #[test]
    fn what_is_interpreted_exists() {
        let workspace = Workspace::load().unwrap();
        for subject in SUBJECTS {
            let package = workspace.packages.iter().find(|package| package.name == subject.package);
            let package = package.unwrap_or_else(|| panic!("there is no {}", subject.package));
            let laws = package.targets.iter().any(|target| target.kind == "test");
            assert!(laws || !subject.has_laws, "{} has no integration tests", subject.package);
        }
    }

    #[test]
    fn only_laws_may_look_around() {
        for subject in SUBJECTS {
            assert!(!flags(subject, false).contains("isolation"), "{}", subject.package);
            assert_eq!(flags(subject, true).contains("isolation"), subject.has_laws);
        }
    }

    #[test]
    fn the_closing_line_sums_over_crates_and_is_none_of_the_tests_stage() {
        let tally = |passed, failed| Tally { passed, failed, skipped: 0 };
        let seconds = Duration::from_secs(2);
        let text = report(&[("a", seconds, tally(3, 0)), ("b", seconds, tally(2, 1))]);
        assert_eq!(text.lines().last(), Some("5 passed, 1 failed under Miri"));
    }
}
