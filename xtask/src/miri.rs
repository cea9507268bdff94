//! `cargo xtask miri`: unit tests of the pure crates, and of the host's side of kernels, interpreted by
//! Miri, which sees undefined behaviour, leaks and races that no processor shows.
//!
//! Owns which crates those are, and how Miri is to judge each. Tests that would take long
//! under Miri take fewer steps under `cfg(miri)`, which is their own business.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::runner::stream;
use crate::skip;
use crate::tally::Tally;
use crate::toolchain;
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
    /// Where Miri cannot be installed, print `SKIPPED miri: reason` and succeed
    #[arg(long)]
    or_skip: bool,
}

/// Crates that Miri judges alike, so that one build and one run does for them.
#[derive(Clone, Copy)]
struct Group {
    packages: &'static [&'static str],
    /// Which of their tests, and with which features: Cargo's words.
    targets: &'static [&'static str],
    /// What the names of tests must contain, one of it; all tests, if there is nothing here.
    names: &'static [&'static str],
    /// Flags for Miri. Without any, it judges aliasing by Stacked Borrows.
    flags: &'static str,
}

/// Side by side, as many as there are cores.
const GROUPS: &[Group] = &[
    // Its entry points take references without a size that lead to all of an allocation
    // (`kernel/src/abi/pointer.rs`), which Tree Borrows allows and Stacked Borrows does not; and
    // they take addresses as numbers, as devices have them, of which Miri would only warn.
    Group {
        packages: &["celerity-kernel"],
        // Without inline assembly, by which `libm` asks what the processor can do.
        targets: &["--lib", "--features", "libm/force-soft-floats"],
        names: &[],
        flags: "-Zmiri-tree-borrows -Zmiri-permissive-provenance",
    },
    // Unit tests of both are few, since what makes commands and instructions is tested from outside: here
    // without the models, which would take minutes for each program.
    Group {
        packages: &["celerity-cdag", "celerity-idag"],
        targets: &["--test", "all"],
        names: &["answers::", "diagnostics::", "objects::", "collectives::", "least_chunk::"],
        flags: "",
    },
    Group {
        packages: &[
            "celerity-regions",
            "celerity-tdag",
            "celerity-cpd",
            "celerity-cdag",
            "celerity-idag",
            "celerity-codec",
        ],
        targets: &["--lib"],
        names: &[],
        flags: "",
    },
];

/// Crates whose integration tests need no other crate of ours but `codec`. They keep failing inputs in files,
/// so Miri lets them at these.
const LAWS: Group = Group {
    packages: &["celerity-regions", "celerity-codec"],
    targets: &["--test", "*"],
    names: &[],
    flags: "-Zmiri-disable-isolation",
};

/// Random inputs per law, instead of hundreds.
const CASES: &str = "3";

/// Installs Miri if it is not here, and runs the tests under it, as many groups at a time as there are
/// cores. Returns whether all passed.
///
/// # Errors
/// If a program cannot be run. Failing tests are no error, nor is a Miri that cannot be installed.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, Error> {
    if let Err(reason) = toolchain::provide_miri() {
        println!("{}", without(&reason, options.or_skip));
        return Ok(options.or_skip);
    }
    let chosen = chosen(options);
    let (next, outcomes) = (Mutex::new(chosen.into_iter()), Mutex::new(Vec::new()));
    let work = || {
        while let Some((group, packages)) = { next.lock().expect("nobody panics").next() } {
            let start = Instant::now();
            let tally = test(workspace, &group, &packages);
            let outcome = tally.map(|tally| (packages.join(" "), start.elapsed(), tally));
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

/// The groups to run, and which of their packages.
fn chosen(options: &Options) -> Vec<(Group, Vec<&'static str>)> {
    let groups = GROUPS.iter().chain(options.all.then_some(&LAWS));
    let packages = |group: &Group| -> Vec<_> {
        group.packages.iter().copied().filter(|name| name.contains(&options.only)).collect()
    };
    groups
        .map(|group| (*group, packages(group)))
        .filter(|(_, packages)| !packages.is_empty())
        .collect()
}

/// The tests of some packages of a group. What dies without counting counts as one failure.
fn test(workspace: &Workspace, group: &Group, packages: &[&str]) -> Result<Tally, Error> {
    let mut tests = toolchain::miri(workspace);
    tests.args(["test", "--no-fail-fast"]).args(group.targets);
    tests.args(packages.iter().flat_map(|package| ["--package", package]));
    tests.arg("--").args(group.names);
    tests.env("MIRIFLAGS", group.flags).env("PROPTEST_CASES", CASES);
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

/// What is said where Miri cannot be had.
fn without(reason: &str, may_skip: bool) -> String {
    let reason = format!("nightly Rust with Miri cannot be installed: {reason}");
    skip::line("miri", may_skip, &reason)
}

/// A table of groups, and the closing line.
fn report(outcomes: &[(String, Duration, Tally)]) -> String {
    let mut text = format!("\n{:>9}{:>8}{:>8}  crates\n", "seconds", "passed", "failed");
    let mut total = Tally::default();
    for (packages, time, tally) in outcomes {
        let seconds = time.as_secs_f64();
        text += &format!("{seconds:>9.1}{:>8}{:>8}  {packages}\n", tally.passed, tally.failed);
        total += *tally;
    }
    text + &format!("{total} under Miri\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{GROUPS, LAWS, Options, chosen, report, without};
    use crate::tally::Tally;
    use crate::workspace::Workspace;

    fn options(all: bool, only: &str) -> Options {
        Options { all, only: only.to_owned(), or_skip: false }
    }

    #[test]
    fn what_is_interpreted_exists() {
        let workspace = Workspace::load().unwrap();
        let has = |name: &str, kind: &str| {
            let package = workspace.packages.iter().find(|package| package.name == name);
            let package = package.unwrap_or_else(|| panic!("there is no {name}"));
            package.targets.iter().any(|target| target.kind == kind)
        };
        for group in GROUPS.iter().chain([&LAWS]) {
            let kind = if group.targets[0] == "--lib" { "lib" } else { "test" };
            assert!(group.packages.iter().all(|name| has(name, kind)), "{:?}", group.packages);
        }
    }

    #[test]
    fn laws_are_for_all_and_a_name_chooses_crates() {
        let names = |all, only: &str| -> Vec<_> {
            chosen(&options(all, only))
                .into_iter()
                .map(|(_, packages)| packages.join(" "))
                .collect()
        };
        assert_eq!(names(false, "").len(), GROUPS.len());
        assert_eq!(names(true, "").len(), GROUPS.len() + 1);
        let pure = "celerity-tdag celerity-cdag celerity-idag";
        assert_eq!(names(false, "dag"), ["celerity-cdag celerity-idag", pure]);
        assert_eq!(names(true, "codec"), ["celerity-codec", "celerity-codec"]);
        assert_eq!(names(true, "nothing"), [""; 0]);
    }

    #[test]
    fn only_laws_may_look_around() {
        assert!(GROUPS.iter().all(|group| !group.flags.contains("isolation")));
    }

    #[test]
    fn only_who_may_skip_it_reads_that_it_is_skipped() {
        let text = without("rustup: not found", true);
        assert!(text.starts_with("SKIPPED miri: ") && text.ends_with("rustup: not found"));
        assert!(!without("rustup: not found", false).contains("SKIPPED"));
    }

    #[test]
    fn the_closing_line_sums_over_groups_and_is_none_of_the_tests_stage() {
        let tally = |passed, failed| Tally { passed, failed, skipped: 0 };
        let seconds = Duration::from_secs(2);
        let outcomes =
            [("a".to_owned(), seconds, tally(3, 0)), ("b c".to_owned(), seconds, tally(2, 1))];
        let text = report(&outcomes);
        assert_eq!(text.lines().last(), Some("5 passed, 1 failed under Miri"));
    }
}
