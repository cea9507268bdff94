//! Which programs are launched, how, and what must come of it. What is done to processes, and
//! what others must say of that, has a module of its own.

mod code;
mod disturbed;
pub(super) mod slurm;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use super::Mpi;
use super::build::Program;
use super::installed::Kind;
use super::judge::{End, Expected};

/// A program under a launcher.
#[derive(Clone)]
pub(super) struct Stage<'a> {
    pub(super) name: String,
    program: &'a Program,
    arguments: Vec<String>,
    /// Options of the launcher.
    pub(super) launch: Vec<&'static str>,
    variables: Vec<(&'static str, String)>,
    pub(super) expected: Expected,
}

/// What examples are told so that they do not take long; others just verify.
const EXAMPLES: [(&str, &[&str]); 12] = [
    ("jacobi", &["--size", "40"]),
    ("distr_io", &["--rows", "61", "--columns", "33"]),
    ("black_scholes", &["--options", "20000", "--steps", "3"]),
    ("matmul", &["--size", "128", "--steps", "2"]),
    ("rsim", &["--edge", "5", "--steps", "20"]),
    ("wave_sim", &["--size", "61", "--steps", "40"]),
    ("game_of_life", &["--size", "61", "--steps", "40"]),
    ("cahn_hilliard", &["--size", "21", "--steps", "20", "--cut", "tiles"]),
    ("mesh", &["--sphere", "3", "--steps", "40"]),
    ("pendulum", &["--size", "21", "--steps", "300"]),
    ("mandelbrot", &["--size", "61", "--bands", "5"]),
    ("nbody", &["--steps", "24", "--dt", "14400"]),
];

/// Kernels of the example `prk` with arguments that take no long.
const PRK: [&str; 8] = [
    "nstream 3 1001 0",
    "stencil 3 61",
    "transpose 3 96",
    "reduce 3 101",
    "sparse 3 5 2",
    "dgemm 2 36 12 1",
    "p2p 3 61 23",
    "pic 5 24 500 1 2 GEOMETRIC 0.9",
];

/// Random programs per number of nodes. No run before has seen them; a failure names its seed.
const PROGRAMS: &str = "500";

/// The same, where every message takes its time.
const FEW_PROGRAMS: &str = "100";

/// Clusters that examples run on: nodes and devices.
const CLUSTERS: [(&str, &str); 4] = [("1", "1"), ("2", "1"), ("2", "3"), ("4", "1")];

/// Free memory that two times two GiB need, in KiB.
const MEMORY_FOR_LARGE: u64 = 6 << 20;

/// All of them, for one MPI.
pub(super) fn all<'a>(mpi: &Mpi, programs: &'a [Program], scratch: &Path) -> Vec<Stage<'a>> {
    let find = |name: &str| programs.iter().find(|program| program.name == name);
    let (cluster, processes) = (find("cluster"), find("processes"));
    let mut stages = Vec::new();
    stages.extend(cluster.iter().flat_map(|program| communicator(mpi, program)));
    stages.extend(cluster.iter().flat_map(|program| disturbed::communicator(mpi, program)));
    stages.extend(programs.iter().filter(|program| program.is_example).flat_map(example));
    stages.extend(processes.iter().flat_map(|program| facade(program, scratch)));
    stages.extend(processes.iter().flat_map(|program| disturbed::facade(mpi, program, scratch)));
    stages.extend(processes.iter().flat_map(|program| code::facade(mpi, program, scratch)));
    stages.extend(find("ping_pong").map(|program| Stage {
        arguments: vec!["3".to_owned()],
        ..Stage::new("ping-pong", program, &["-n", "2"], Expected::Success)
    }));
    stages
}

/// What runs between two hosts; only Open MPI can be told how to get from one to the other.
pub(super) fn between_hosts<'a>(mpi: &Mpi, programs: &'a [Program]) -> Vec<Stage<'a>> {
    if mpi.kind != Kind::Open {
        return Vec::new();
    }
    let find = |name: &str| programs.iter().find(|program| program.name == name);
    let stage = |name: &str, program, expected| {
        Stage::new(format!("two hosts: {name}"), program, &["-n", "2"], expected)
    };
    let mut stages = Vec::new();
    if let Some(program) = find("cluster") {
        stages.push(stage("checks", program, Expected::Checks));
        let random = stage("random programs", program, Expected::Checks).role("programs");
        stages.push(random.with("CLUSTER_PROGRAMS", FEW_PROGRAMS).with("CLUSTER_SEED", &seed()));
    }
    if let Some(program) = find("wave_sim") {
        let verified = stage("wave_sim", program, Expected::Told(&["verified"], End::Well));
        let arguments = ["--size", "61", "--steps", "40", "--verify"].map(str::to_owned);
        stages.push(Stage { arguments: arguments.to_vec(), ..verified });
    }
    stages
}

/// The communicator, and whole programs on it.
fn communicator<'a>(mpi: &Mpi, program: &'a Program) -> Vec<Stage<'a>> {
    let mut stages = Vec::new();
    for nodes in ["1", "2", "4"] {
        let launch = ["-n", nodes];
        let name = format!("checks of {}", nodes_of(nodes));
        stages.push(Stage::new(name, program, &launch, Expected::Checks));
        let name = format!("random programs on {}", nodes_of(nodes));
        let random = Stage::new(name, program, &launch, Expected::Checks).role("programs");
        stages.push(random.with("CLUSTER_PROGRAMS", PROGRAMS).with("CLUSTER_SEED", &seed()));
    }
    // Where each has less than two cores, nodes compute on their own threads.
    let name = "random programs on 4 nodes of one thread";
    let random = Stage::new(name, program, &["-n", "4"], Expected::Checks).role("programs");
    let random = random.with("CLUSTER_PROGRAMS", PROGRAMS).with("CLUSTER_SEED", &seed());
    stages.push(random.with("RAYON_NUM_THREADS", "1"));
    if mpi.kind == Kind::Open {
        for (name, wires) in [("TCP", "tcp,self"), ("shared memory", "vader,self")] {
            let launch = ["-n", "2", "--mca", "btl", wires];
            let name = format!("checks of 2 nodes over {name}");
            stages.push(Stage::new(name, program, &launch, Expected::Checks));
        }
    }
    match free_memory() {
        Some(free) if free < MEMORY_FOR_LARGE => {
            println!("SKIPPED mpi-large: {free} KiB are free, {MEMORY_FOR_LARGE} are needed");
        }
        _ => {
            let name = "a message of 2.06 GiB";
            let large = Stage::new(name, program, &["-n", "2"], Expected::Checks);
            stages.push(large.role("large"));
        }
    }
    stages
}

/// An example, which compares what it has computed with a sequential program.
fn example(program: &Program) -> Vec<Stage<'_>> {
    if program.name == "prk" {
        let kernels = PRK.iter().map(|arguments| arguments.split(' ').collect::<Vec<_>>());
        return kernels.flat_map(|arguments| prk(program, &arguments)).collect();
    }
    if program.name == "accuracy" {
        // It judges the hardware's functions, and has nothing to be verified against.
        let arguments = ["--every", "1048576"].into_iter();
        return on_clusters(program, &program.name, arguments, &["erfc"]);
    }
    let known = EXAMPLES.iter().find(|(name, _)| *name == program.name);
    let arguments = known.map_or(&[][..], |(_, arguments)| arguments).iter().chain(&["--verify"]);
    on_clusters(program, &program.name, arguments.copied(), &["verified"])
}

/// One of the Parallel Research Kernels, which validate what they have computed without being asked.
fn prk<'a>(program: &'a Program, arguments: &[&str]) -> Vec<Stage<'a>> {
    let name = format!("{} {}", program.name, arguments[0]);
    on_clusters(program, &name, arguments.iter().copied(), &["Solution validates"])
}

/// A program that must say so on all clusters.
fn on_clusters<'a, 'b>(
    program: &'a Program,
    name: &str,
    arguments: impl Iterator<Item = &'b str>,
    told: &'static [&'static str],
) -> Vec<Stage<'a>> {
    let arguments: Vec<_> = arguments.map(str::to_owned).collect();
    let stage = |(nodes, devices)| {
        let name = format!("{name} on {}, devices of each: {devices}", nodes_of(nodes));
        let stage = Stage::new(name, program, &["-n", nodes], Expected::Told(told, End::Well));
        let stage = stage.with("CELERITY_DEVICES", devices).with("CELERITY_CHECK", "on");
        Stage { arguments: arguments.clone(), ..stage }
    };
    CLUSTERS.into_iter().map(stage).collect()
}

/// A program of the facade: its trace and graphs, and what goes on for long.
fn facade<'a>(program: &'a Program, scratch: &Path) -> Vec<Stage<'a>> {
    let stage = |name: &str, nodes, role| {
        Stage::new(format!("facade: {name}"), program, &["-n", nodes], Expected::Checks).role(role)
    };
    let file = |name| scratch.join(name).display().to_string();
    vec![
        stage("one trace of all nodes", "3", "traced").with("CELERITY_TRACE", &file("trace.json")),
        stage("a file of graphs per node", "3", "graphed")
            .with("CELERITY_PRINT_GRAPHS", &file("graphs.txt")),
        stage("host objects", "3", "objects"),
        stage("captures", "3", "captures"),
        stage("constants of node 0", "3", "calibration"),
        stage("a capture in a branch", "3", "capture-in-a-branch"),
        stage("many runs", "3", "many-runs"),
        stage("a slow node of 2", "2", "slow-node").with("PROCESSES_LOG", &file("steps")),
        stage("a slow node of 4", "4", "slow-node").with("PROCESSES_LOG", &file("steps")),
        stage("host tasks of every form, one node", "1", "host-tasks"),
        stage("host tasks of every form, 2 nodes", "2", "host-tasks"),
        stage("host tasks of every form, 4 nodes", "4", "host-tasks"),
        stage("host tasks that call MPI, 2 nodes", "2", "mpi-groups"),
        stage("host tasks that call MPI, 4 nodes", "4", "mpi-groups"),
        stage("host tasks that must not call MPI", "2", "mpi-refused"),
    ]
}

impl<'a> Stage<'a> {
    fn new(
        name: impl Into<String>,
        program: &'a Program,
        launch: &[&'static str],
        expected: Expected,
    ) -> Self {
        let (arguments, variables) = (Vec::new(), Vec::new());
        Self { name: name.into(), program, arguments, launch: launch.to_vec(), variables, expected }
    }

    /// What the program is to do instead of what it does by default.
    fn role(self, role: &str) -> Self {
        let variable =
            if self.program.name == "cluster" { "CLUSTER_ROLE" } else { "PROCESSES_ROLE" };
        self.with(variable, role)
    }

    fn with(mut self, variable: &'static str, value: &str) -> Self {
        self.variables.push((variable, value.to_owned()));
        self
    }

    /// The whole command, which `launcher` begins; what the program writes goes to `scratch`.
    pub(super) fn command(&self, launcher: Command, scratch: &Path) -> Command {
        let mut command = launcher;
        command.arg(&self.program.path).args(&self.arguments).current_dir(scratch);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CELERITY_") {
                command.env_remove(name);
            }
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

fn nodes_of(count: &str) -> String {
    format!("{count} node{}", if count == "1" { "" } else { "s" })
}

fn seed() -> String {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().to_string()
}

/// KiB, where the system tells.
fn free_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::super::installed::{MPICH, OPEN};
    use super::{CLUSTERS, all};
    use crate::mpi::build::Program;
    use crate::mpi::judge::Expected;

    fn programs() -> Vec<Program> {
        let program = |(name, is_example): (&str, bool)| {
            let (name, path) = (name.to_owned(), name.into());
            Program { name, is_example, path }
        };
        let names =
            [("cluster", false), ("processes", false), ("ping_pong", false), ("new_one", true)];
        names.map(program).to_vec()
    }

    #[test]
    fn each_number_of_nodes_is_checked() {
        let programs = programs();
        for mpi in [OPEN, MPICH] {
            let stages = all(&mpi, &programs, Path::new("."));
            for nodes in ["1", "2", "4"] {
                let checked = stages.iter().filter(|stage| {
                    stage.launch == ["-n", nodes] && stage.expected == Expected::Checks
                });
                assert!(checked.count() >= 2, "{nodes} nodes of {}", mpi.name);
            }
        }
    }

    #[test]
    fn each_stage_has_a_name_of_its_own() {
        let programs = programs();
        for mpi in [OPEN, MPICH] {
            let stages = all(&mpi, &programs, Path::new("."));
            let names: BTreeSet<_> = stages.iter().map(|stage| &stage.name).collect();
            assert_eq!(names.len(), stages.len(), "{names:?}");
        }
    }

    #[test]
    fn an_example_that_nobody_has_listed_verifies() {
        let programs = programs();
        let stages = all(&OPEN, &programs, Path::new("."));
        let of_new: Vec<_> = stages.iter().filter(|stage| stage.program.is_example).collect();
        assert_eq!(of_new.len(), CLUSTERS.len());
        assert!(of_new.iter().all(|stage| stage.arguments == ["--verify"]));
    }
}
