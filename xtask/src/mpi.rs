//! `cargo xtask mpi`: everything that needs an MPI, with each that is installed.
//!
//! Owns how MPI programs are built and launched, and what is to be seen when a node dies. Which
//! checks there are is the business of `celerity-mpi`'s test program.

use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use crate::error::Error;
use crate::runner;
use crate::tally::Tally;
use crate::workspace::{Workspace, cargo};

/// Builds and runs all of it, and prints what ran. Returns whether everything passed; without any
/// MPI that is so, unless `CI` is set.
///
/// # Errors
/// If Cargo cannot be run. Failing tests are no error.
pub(crate) fn run(workspace: &Workspace) -> Result<bool, Error> {
    let tally = test(workspace)?;
    println!("{tally}");
    Ok(tally.failed == 0)
}

/// As [`run`], but for the closing line: says how many checks passed and failed.
///
/// # Errors
/// As [`run`].
fn test(workspace: &Workspace) -> Result<Tally, Error> {
    let mut total = Tally::default();
    let mut table = String::new();
    for mpi in installed() {
        for stage in mpi.stages(table.is_empty()) {
            let start = Instant::now();
            let tally = mpi.execute(&stage, workspace)?;
            let (seconds, name) = (start.elapsed().as_secs_f64(), &stage.name);
            table += &format!("{:<9}{name:<36}{seconds:>8.1}  {tally}\n", mpi.name);
            total += tally;
        }
    }
    print!("\n{table}");
    if table.is_empty() {
        println!("SKIPPED mpi: neither Open MPI nor MPICH is installed");
        total.failed += u64::from(std::env::var_os("CI").is_some());
    }
    Ok(total)
}

/// An installed MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mpi {
    name: &'static str,
    kind: Kind,
    compiler: &'static str,
    launcher: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Open,
    Mpich,
}

/// As Debian names them, side by side; otherwise whichever goes by the plain name.
fn installed() -> Vec<Mpi> {
    let named = [
        (Kind::Open, "openmpi", "mpicc.openmpi", "mpirun.openmpi"),
        (Kind::Mpich, "mpich", "mpicc.mpich", "mpirun.mpich"),
    ];
    let both = named.into_iter().filter(|(.., launcher)| version(launcher).is_some());
    let both: Vec<_> = both
        .map(|(kind, name, compiler, launcher)| Mpi { name, kind, compiler, launcher })
        .collect();
    if !both.is_empty() {
        return both;
    }
    let plain = version("mpirun").map(|version| {
        let kind = if version.contains("Open MPI") { Kind::Open } else { Kind::Mpich };
        Mpi { name: "mpi", kind, compiler: "mpicc", launcher: "mpirun" }
    });
    plain.into_iter().collect()
}

fn version(launcher: &str) -> Option<String> {
    let output = Command::new(launcher).arg("--version").stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What is expected of a stage.
enum Expected {
    /// Success, as for any command.
    Success,
    /// A summary of checks, all passed.
    Checks,
    /// One node dies. Without lines to look for, the launcher ends all others, with an exit status
    /// that says so; otherwise those print the lines.
    Death(&'static [&'static str]),
}

/// A command of Cargo's, perhaps under a launcher.
struct Stage {
    name: String,
    cargo: &'static [&'static str],
    launch: Vec<&'static str>,
    fault: Option<&'static str>,
    expected: Expected,
}

const LINTS: &[&str] = &[
    "clippy",
    "--package",
    "celerity-mpi",
    "--features",
    "mpi",
    "--all-targets",
    "--",
    "-D",
    "warnings",
];
const UNIT_TESTS: &[&str] = &["test", "--package", "celerity-mpi", "--features", "mpi", "--lib"];
const CLUSTER: &[&str] =
    &["test", "--package", "celerity-mpi", "--features", "mpi", "--test", "cluster"];
const PING_PONG: &[&str] =
    &["run", "--package", "celerity-mpi", "--features", "mpi", "--example", "ping_pong", "--", "3"];
const SURVIVORS: &[&str] = &["N0: N2 has died", "N1: N2 has died"];

impl Mpi {
    /// What depends on no particular MPI is done with the first one only.
    fn stages(&self, first: bool) -> Vec<Stage> {
        let plain = |name: &str, cargo, expected| {
            let (name, launch) = (name.to_owned(), Vec::new());
            Stage { name, cargo, launch, fault: None, expected }
        };
        let checks = |name: String, launch: Vec<&'static str>| Stage {
            name,
            cargo: CLUSTER,
            launch,
            fault: None,
            expected: Expected::Checks,
        };
        let death = |fault: &'static str, flag: &[&'static str], lines| Stage {
            name: [&["a node dies:", fault][..], flag].concat().join(" "),
            cargo: CLUSTER,
            launch: [flag, &["-n", "3"]].concat(),
            fault: Some(fault),
            expected: Expected::Death(lines),
        };
        let mut stages = Vec::new();
        if first {
            stages.push(plain("lints", LINTS, Expected::Success));
            stages.push(plain("unit tests", UNIT_TESTS, Expected::Checks));
        }
        for nodes in ["1", "2", "4"] {
            stages.push(checks(format!("checks of {nodes} nodes"), vec!["-n", nodes]));
        }
        let recovery = match self.kind {
            Kind::Open => {
                for (name, wires) in [("TCP", "tcp,self"), ("shared memory", "vader,self")] {
                    let launch = vec!["-n", "2", "--mca", "btl", wires];
                    stages.push(checks(format!("checks of 2 nodes over {name}"), launch));
                }
                "--enable-recovery"
            }
            Kind::Mpich => "-disable-auto-cleanup",
        };
        stages.push(death("kill", &[], &[]));
        stages.push(death("stop", &[], &[]));
        stages.push(death("kill", &[recovery], SURVIVORS));
        let launch = vec!["-n", "2"];
        stages.push(Stage { launch, ..plain("ping-pong", PING_PONG, Expected::Success) });
        stages
    }

    fn execute(&self, stage: &Stage, workspace: &Workspace) -> Result<Tally, Error> {
        let mut command = self.command(stage, workspace);
        println!("=== {}, {}: {}", self.name, stage.name, runner::describe(&command));
        let seen = Mutex::new((Tally::default(), Vec::new()));
        let status = runner::stream(&mut command, |line| {
            let mut seen = seen.lock().expect("no holder of the lock panics");
            seen.0 += Tally::parse(line).unwrap_or_default();
            seen.1.push(line.to_owned());
        })?;
        let (tally, lines) = seen.into_inner().expect("no holder of the lock panics");
        Ok(stage.judge(status.success(), tally, &lines))
    }

    /// A build folder of its own, since the bindings are made from the headers of one MPI.
    fn command(&self, stage: &Stage, workspace: &Workspace) -> Command {
        let mut command = cargo();
        command.current_dir(&workspace.root).env("CARGO_TERM_COLOR", "never");
        command.env("MPICC", self.compiler);
        command.env("CARGO_TARGET_DIR", workspace.target_dir.join(format!("mpi-{}", self.name)));
        if let Some(fault) = stage.fault {
            command.env("CLUSTER_FAULT", fault);
        }
        if !stage.launch.is_empty() {
            let program = self.launcher(&stage.launch).map(|word| format!("{word:?}"));
            let program = program.collect::<Vec<_>>().join(",");
            command.arg("--config").arg(format!("target.'cfg(all())'.runner=[{program}]"));
        }
        command.args(stage.cargo);
        command
    }

    /// Nothing here takes minutes, so whatever does hangs, and is ended.
    fn launcher<'a>(&self, launch: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
        let own: &[&str] = match self.kind {
            Kind::Open => &["--allow-run-as-root", "--oversubscribe"],
            Kind::Mpich => &[],
        };
        let bounded = ["timeout", "--kill-after=5", "300", self.launcher];
        bounded.into_iter().chain(own.iter().copied()).chain(launch.iter().copied())
    }
}

impl Stage {
    fn judge(&self, succeeded: bool, tally: Tally, lines: &[String]) -> Tally {
        let passed = match self.expected {
            Expected::Success => succeeded,
            Expected::Checks if succeeded && tally.passed > 0 => return tally,
            Expected::Checks => return Tally { failed: tally.failed.max(1), ..tally },
            Expected::Death([]) => {
                !succeeded && !lines.iter().any(|line| line.contains("panicked"))
            }
            Expected::Death(wanted) => {
                wanted.iter().all(|wanted| lines.iter().any(|line| line.contains(wanted)))
            }
        };
        Tally { passed: u64::from(passed), failed: u64::from(!passed), skipped: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::{Expected, Kind, Mpi, SURVIVORS, Stage};
    use crate::tally::Tally;

    const MPI: Mpi =
        Mpi { name: "openmpi", kind: Kind::Open, compiler: "mpicc", launcher: "mpirun" };

    fn stage(expected: Expected) -> Stage {
        Stage { name: String::new(), cargo: &[], launch: Vec::new(), fault: None, expected }
    }

    fn failed(expected: Expected, succeeded: bool, passed: u64, lines: &[&str]) -> u64 {
        let lines: Vec<_> = lines.iter().map(|line| (*line).to_owned()).collect();
        let tally = Tally { passed, ..Tally::default() };
        stage(expected).judge(succeeded, tally, &lines).failed
    }

    #[test]
    fn checks_that_did_not_run_are_a_failure() {
        assert_eq!(failed(Expected::Checks, true, 3, &[]), 0);
        assert_eq!(failed(Expected::Checks, true, 0, &[]), 1);
        assert_eq!(failed(Expected::Checks, false, 3, &[]), 1);
    }

    #[test]
    fn a_death_has_to_be_seen() {
        assert_eq!(failed(Expected::Death(&[]), false, 0, &[]), 0);
        assert_eq!(failed(Expected::Death(&[]), true, 0, &[]), 1);
        assert_eq!(failed(Expected::Death(&[]), false, 0, &["thread panicked at"]), 1);
        let told = ["N1: N2 has died: silent", "N0: N2 has died: silent"];
        assert_eq!(failed(Expected::Death(SURVIVORS), true, 0, &told), 0);
        assert_eq!(failed(Expected::Death(SURVIVORS), true, 0, &told[1..]), 1);
    }

    #[test]
    fn each_number_of_nodes_is_checked_under_the_launcher() {
        for kind in [Kind::Open, Kind::Mpich] {
            let stages = Mpi { kind, ..MPI }.stages(false);
            for nodes in ["1", "2", "4"] {
                let checked = |stage: &Stage| {
                    stage.launch == ["-n", nodes] && matches!(stage.expected, Expected::Checks)
                };
                assert!(stages.iter().any(checked), "{nodes} nodes of {kind:?}");
            }
        }
        let line: Vec<_> = MPI.launcher(&["-n", "2"]).collect();
        assert!(line.ends_with(&["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]));
    }
}
