//! What is done to processes: one dies, stands still, differs from the others, or cannot
//! start: the last one, or `N0`. All others must say so, and end.

use std::path::Path;

use super::Stage;
use crate::mpi::Mpi;
use crate::mpi::build::Program;
use crate::mpi::judge::{End, Expected};

/// What three processes print, each with its name before it.
macro_rules! all_told {
    ($what:literal) => {
        &[concat!("N0: ", $what), concat!("N1: ", $what), concat!("N2: ", $what)]
    };
}

/// What those print that live on.
macro_rules! others_told {
    ($what:literal) => {
        &[concat!("N0: ", $what), concat!("N1: ", $what)]
    };
}

const SURVIVORS: &[&str] = others_told!("N2 has died");
const TRACED: &[&str] = &["N0: N2 has died", "N0: one trace of all that live", "N1: N2 has died"];
/// What is said by who waits in MPI for a member that has said that it comes.
const FOUNDING: &[&str] = &["N1 and N2 make a communicator of MPI, and N2 has died: "];
const INTERRUPTED: &[&str] = all_told!("interrupted");
/// Who waits, for what, of which buffer, from whom.
const STUCK: &[&str] = &[
    "N0 has made no progress",
    "receive of \"slow\" for T131 \"see\"",
    "waits for elements {[2..3]}, announced by N2",
    "kernel of T130 \"sleep\" at ",
    "on D0) has been running for ",
    "test result: ok. 1 passed",
];
/// What of `N0`, which others have given up, and what of them.
const GIVEN_UP: &[&str] = &["has given N0 up: it has been silent for 2s", "N0 has died"];
const ALONE: &[&str] =
    others_told!("cannot start the cluster: not all processes that the launcher has started");
const FEWER_RUNS: &[&str] =
    others_told!("N2 could not start: its process has ended after 5 runs, and this is run 6");
const NO_THREADS: &[&str] = all_told!("N2 could not start: no threads");
/// The system names one of those that have noticed.
const GONE: &[&str] = &["N0: communication failed", "N1: communication failed", "N2 has died"];
const HUB_GONE: &[&str] = &["N1: communication failed", "N2: communication failed", "N0 has died"];
const HUB_ENDED: &[&str] = &[
    "N1: N0 could not start: its process has ended after 5 runs",
    "N2: N0 could not start: its process has ended after 5 runs",
];
const HUB_DONE: &[&str] = &["N1: done", "N2: done"];
const DONE: &[&str] = others_told!("done");

/// Why a process cannot start, and what all say of that.
const CANNOT_START: [(&str, &[&str]); 5] = [
    ("devices", all_told!("N2 could not start: `devices` is 100")),
    ("trace", all_told!("N2 could not start: cannot create the trace no/such/folder/trace.json")),
    ("cores", all_told!("N2 could not start: threads are to be pinned to 1 core ")),
    ("nodes", all_told!("N2 could not start: several nodes per process were asked for")),
    ("platform", all_told!("N2 could not start: GPUs were asked for")),
];

/// What is wrong in the environment, which is read once.
const WRONG_ENVIRONMENT: [(&str, &[&str]); 2] = [
    (
        "variable",
        all_told!("N2 could not start: there is no environment variable CELERITY_DEVICE;"),
    ),
    (
        "from_env",
        others_told!("N2 could not start: environment variable CELERITY_DEVICES is \"none\""),
    ),
];

/// What happens where some processes end early. Most launchers then end the others, which may
/// not get to say why; if they are told to let them live, each says it.
struct Ending {
    name: &'static str,
    role: &'static str,
    when: Option<&'static str>,
    told: &'static [&'static str],
    /// How a launcher ends that ends all processes.
    end: End,
}

const ENDINGS: [Ending; 7] = [
    Ending::new("a node killed in a run", "killed", None, SURVIVORS, End::Badly),
    Ending::new("fewer runs", "fewer-runs", None, FEWER_RUNS, End::Badly),
    Ending::new("an exit between runs", "exits", None, FEWER_RUNS, End::Badly),
    Ending::new("a node killed between runs", "killed-between", Some("later"), GONE, End::Badly),
    // The others have succeeded, and MPICH's launcher takes that for enough.
    Ending::new("a node killed at the end", "killed-at-the-end", None, DONE, End::Somehow),
    Ending::new("no memory in the first run", "no-memory", Some("start"), GONE, End::Badly),
    Ending::new("no memory in a later run", "no-memory", Some("later"), GONE, End::Badly),
];

impl Ending {
    const fn new(
        name: &'static str,
        role: &'static str,
        when: Option<&'static str>,
        told: &'static [&'static str],
        end: End,
    ) -> Self {
        Self { name, role, when, told, end }
    }
}

/// Nodes that die or stand still, as the communicator sees them.
pub(super) fn communicator<'a>(mpi: &Mpi, program: &'a Program) -> Vec<Stage<'a>> {
    let stage = |name: &str, role: &str, launch: &[&'static str], expected| {
        Stage::new(name, program, launch, expected).role(role)
    };
    let (three, survivors) = (["-n", "3"], mpi.three_with_survivors());
    let (unkept, kept) =
        (Expected::Told(&[], End::Badly), |told| Expected::Told(told, End::Somehow));
    vec![
        stage("a node dies: kill", "kill", &three, unkept),
        stage("a node dies: stop", "stop", &three, unkept),
        stage("survivors of a node that dies: kill", "kill", survivors, kept(SURVIVORS)),
        stage("a member dies: kill", "found-kill", survivors, kept(FOUNDING)),
        stage("a member dies: stop", "found-stop", survivors, kept(FOUNDING)),
        stage("N0 stopped for 6 s", "pause", &three, Expected::Checks),
        stage("N0 stopped for too long", "give-up", survivors, kept(GIVEN_UP)),
    ]
}

/// The same through the facade, before, in, between and after runs.
pub(super) fn facade<'a>(mpi: &Mpi, program: &'a Program, scratch: &Path) -> Vec<Stage<'a>> {
    let stage = |name: &str, role: &str, expected| {
        Stage::new(format!("facade: {name}"), program, &["-n", "3"], expected).role(role)
    };
    let mut stages = vec![
        stage("different programs", "diverging", Expected::Checks),
        stage("different initial contents", "other-contents", Expected::Checks),
        stage("a stuck node", "stuck", Expected::Told(STUCK, End::Well)),
        stage("Ctrl-C", "interrupted", Expected::Told(INTERRUPTED, mpi.end_of_interrupted())),
    ];
    let cannot = |fault: &str, when: &str, told| {
        let name = format!("cannot start ({fault}, {when})");
        let stage = stage(&name, "cannot-start", Expected::Told(told, End::Well));
        stage.with("PROCESSES_FAULT", fault).with("PROCESSES_WHEN", when)
    };
    for (fault, told) in CANNOT_START {
        stages.extend(["start", "later"].map(|when| cannot(fault, when, told)));
    }
    stages.extend(WRONG_ENVIRONMENT.map(|(fault, told)| cannot(fault, "start", told)));
    stages.extend(ENDINGS.iter().flat_map(|ending| endings(mpi, program, ending)));
    stages.push(traced(mpi, program, &scratch.join("killed.json")));
    stages.extend(without_mpi(mpi, program));
    stages.extend(of_hub(mpi, program));
    stages
}

/// A node is killed in a run of which there is to be a trace.
fn traced<'a>(mpi: &Mpi, program: &'a Program, trace: &Path) -> Stage<'a> {
    let told = Expected::Told(TRACED, End::Somehow);
    let name = "facade: a trace without a node that was killed";
    let stage = Stage::new(name, program, mpi.three_with_survivors(), told);
    stage.role("killed-and-traced").with("CELERITY_TRACE", &trace.display().to_string())
}

/// The same of `N0`, which all others are connected to.
fn of_hub<'a>(mpi: &Mpi, program: &'a Program) -> Vec<Stage<'a>> {
    let stage = |name: &str, role: &str, launch: &[&'static str], expected| {
        let stage = Stage::new(format!("facade: N0 {name}"), program, launch, expected);
        stage.role(role).with("PROCESSES_WHO", "0")
    };
    let cannot = |fault: &str, when: &str, told| {
        let name = format!("cannot start ({fault}, {when})");
        let stage = stage(&name, "cannot-start", &["-n", "3"], Expected::Told(told, End::Well));
        stage.with("PROCESSES_FAULT", fault).with("PROCESSES_WHEN", when)
    };
    let kept = |name: &str, role: &str, told| {
        stage(name, role, mpi.three_with_survivors(), Expected::Told(told, End::Somehow))
    };
    vec![
        cannot("devices", "start", all_told!("N0 could not start: `devices` is 100")),
        cannot("trace", "later", all_told!("N0 could not start: cannot create the trace")),
        kept("without threads", "no-threads", all_told!("N0 could not start: no threads")),
        kept("makes fewer runs", "fewer-runs", HUB_ENDED),
        kept("exits between runs", "exits", HUB_ENDED),
        kept("killed between runs", "killed-between", HUB_GONE).with("PROCESSES_WHEN", "later"),
        kept("killed at the end", "killed-at-the-end", HUB_DONE),
        kept("without memory", "no-memory", HUB_GONE).with("PROCESSES_WHEN", "later"),
    ]
}

/// With the launcher as it is, and with survivors.
fn endings<'a>(mpi: &Mpi, program: &'a Program, ending: &Ending) -> [Stage<'a>; 2] {
    let survivors = format!("survivors of {}", ending.name);
    let plain = Expected::Told(&[], ending.end);
    let kept = Expected::Told(ending.told, End::Somehow);
    let launches =
        [(ending.name, &["-n", "3"][..], plain), (&*survivors, mpi.three_with_survivors(), kept)];
    launches.map(|(name, launch, expected)| {
        let stage = Stage::new(format!("facade: {name}"), program, launch, expected);
        let stage = stage.role(ending.role);
        match ending.when {
            Some(when) => stage.with("PROCESSES_WHEN", when),
            None => stage,
        }
    })
}

/// A process that is killed before MPI is there, of which the others only know that it does
/// not come; and one that has MPI and no threads.
fn without_mpi<'a>(mpi: &Mpi, program: &'a Program) -> [Stage<'a>; 3] {
    let stage = |name: &str, launch: &[&'static str], expected| {
        Stage::new(format!("facade: {name}"), program, launch, expected)
    };
    let survivors = mpi.three_with_survivors();
    let killed = |stage: Stage<'a>| {
        let stage = stage.role("killed-between").with("PROCESSES_WHEN", "start");
        stage.with("CELERITY_START_TIMEOUT", "5")
    };
    let unkept = Expected::Told(&[], End::Badly);
    [
        killed(stage("a node killed at the start", &["-n", "3"], unkept)),
        killed(stage(
            "survivors of a node killed at the start",
            survivors,
            Expected::Told(ALONE, End::Somehow),
        )),
        stage("no threads", survivors, Expected::Told(NO_THREADS, End::Somehow)).role("no-threads"),
    ]
}
