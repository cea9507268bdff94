//! `cargo xtask task-bench`: how small the tasks of Task Bench may be, pattern by pattern, until half of the
//! time is overhead (METG, the minimum effective task granularity).
//!
//! Owns which programs run, on what, and with which arguments. What follows from the times is [`metg`]'s; what a
//! pattern means is the suite's business.

mod metg;

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::error::Error;
use crate::mpi::{Mpi, installed, program};
use crate::runner::output;
use crate::workspace::Workspace;
use metg::Sample;

const PACKAGE: &str = "celerity-task-bench";
const PROGRAM: &str = "task-bench";

/// Iterations of a place in one measure: less than a millisecond, so that on a busy machine some measures have
/// their cores for themselves.
const WORK: u64 = 1 << 17;

/// Bytes that take next to no time.
const LITTLE: u64 = 4096;

/// What is measured.
#[derive(Args)]
pub(crate) struct Options {
    /// The suite's core as a shared library: `libcore.so`, which `make -C core` builds in a copy of the suite
    #[arg(long, value_name = "FILE")]
    library: PathBuf,
    /// The suite's `mpi/nonblock`, to be measured beside ours
    #[arg(long, value_name = "PROGRAM")]
    nonblock: Option<PathBuf>,
    /// The suite's `openmp/main`, the same
    #[arg(long, value_name = "PROGRAM")]
    openmp: Option<PathBuf>,
    /// The suite's `starpu/main_expl`, the same
    #[arg(long, value_name = "PROGRAM")]
    starpu: Option<PathBuf>,
    /// Patterns, as the suite names them
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "trivial,no_comm,stencil_1d,stencil_1d_periodic,dom,tree,fft,all_to_all,nearest,spread,random_nearest"
    )]
    patterns: Vec<String>,
    /// Places of a step
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "2,8")]
    widths: Vec<u32>,
    /// Bytes that a point hands on
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "16")]
    output: Vec<u64>,
    /// What points compute: `compute_bound`, `memory_bound`, or `empty`, of which the time of a task is printed
    #[arg(long, value_parser = ["compute_bound", "memory_bound", "empty"], default_value = "compute_bound")]
    kernel: String,
    /// Measures of each kind in one process, of which the least counts
    #[arg(long, default_value_t = 50)]
    turns: u32,
    /// How often each program is started; the suite's measures once each time
    #[arg(long, default_value_t = 2)]
    starts: u32,
}

/// A program on some processes.
struct Way {
    name: &'static str,
    /// Nodes in each process.
    nodes: usize,
    /// Cores of all of them.
    cores: u64,
    /// Processes, if a launcher starts them.
    processes: Option<usize>,
    by: By,
}

/// Whose program it is.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Us,
    /// The suite's own, over MPI.
    Nonblock,
    /// The suite's own: tasks with dependencies on the threads of one process.
    OpenMp,
    /// The same.
    StarPu,
}

/// A process under a launcher has a core.
const WAYS: [Way; 10] = [
    Way::new("1 process", (1, 1), Some(1), By::Us),
    Way::new("1 node, 2 threads", (1, 2), None, By::Us),
    Way::new("2 nodes in process", (2, 2), None, By::Us),
    Way::new("2 processes", (1, 2), Some(2), By::Us),
    Way::new("nonblock, 1", (1, 1), Some(1), By::Nonblock),
    Way::new("nonblock, 2", (1, 2), Some(2), By::Nonblock),
    Way::new("OpenMP, 1 thread", (1, 1), None, By::OpenMp),
    Way::new("OpenMP, 2 threads", (1, 2), None, By::OpenMp),
    Way::new("StarPU, 1 worker", (1, 1), Some(1), By::StarPu),
    Way::new("StarPU, 2 workers", (1, 2), None, By::StarPu),
];

impl Way {
    const fn new(
        name: &'static str,
        (nodes, cores): (usize, u64),
        processes: Option<usize>,
        by: By,
    ) -> Self {
        Self { name, nodes, cores, processes, by }
    }

    /// The suite's program for it, if that is given; nothing if it is ours.
    fn theirs<'a>(&self, options: &'a Options) -> Option<&'a Path> {
        let program = match self.by {
            By::Us => &None,
            By::Nonblock => &options.nonblock,
            By::OpenMp => &options.openmp,
            By::StarPu => &options.starpu,
        };
        program.as_deref()
    }

    /// What the suite's program has to be told, beside the graph.
    fn arguments(&self) -> Vec<String> {
        let flag = match self.by {
            By::Us | By::Nonblock => return Vec::new(),
            By::OpenMp => "-worker",
            By::StarPu => "-core",
        };
        vec![flag.to_owned(), self.cores.to_string()]
    }
}

/// A graph.
#[derive(Clone, Copy)]
struct Case<'a> {
    pattern: &'a str,
    width: u32,
    output: u64,
    kernel: &'a str,
}

/// Measures, and prints a table. `false` means that our program has failed, and has said why; the suite's may, and the
/// table says so.
///
/// # Errors
/// If the suite is not where it should be, or a program cannot be started.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, Error> {
    let theirs = [&options.nonblock, &options.openmp, &options.starpu].into_iter().flatten();
    for path in std::iter::once(&options.library).chain(theirs) {
        std::fs::metadata(path).map_err(|source| Error::Read { path: path.clone(), source })?;
    }
    let mpi = installed().into_iter().next();
    if mpi.is_none() {
        println!(
            "neither Open MPI nor MPICH is installed: nothing but nodes of one process is measured"
        );
    }
    let Some(ours) = program(workspace, mpi.as_ref(), PACKAGE, ["--bin", PROGRAM])? else {
        return Ok(false);
    };
    let is_possible = |way: &&Way| {
        (way.processes.is_none() || mpi.is_some())
            && (way.by == By::Us || way.theirs(options).is_some())
    };
    let ways: Vec<&Way> = WAYS.iter().filter(is_possible).collect();
    let is_empty = options.kernel == "empty";
    let what = if is_empty { "time of a task" } else { "METG(50 %)" };
    println!("{what} in µs, {} kernel, load {}\n", options.kernel, load());
    let names: Vec<_> = ways.iter().map(|way| way.name).collect();
    println!("| pattern | width | bytes | {} |", names.join(" | "));
    println!("| --- | --- | --- |{}", " --- |".repeat(names.len()));
    let runner = Runner { options, ours: &ours, mpi: mpi.as_ref() };
    for case in cases(options) {
        let mut cells = Vec::new();
        for way in &ways {
            cells.push(match runner.samples(way, case)? {
                Some(samples) => {
                    let found =
                        if is_empty { metg::of_empty(&samples) } else { metg::metg(&samples) };
                    found.map_or_else(|| "–".to_owned(), |found| found.to_string())
                }
                None if way.by == By::Us => return Ok(false),
                // It does not have all patterns at all widths.
                None => "fails".to_owned(),
            });
        }
        println!("| {} | {} | {} | {} |", case.pattern, case.width, case.output, cells.join(" | "));
    }
    println!("\nload {} at the end", load());
    Ok(true)
}

fn cases(options: &Options) -> impl Iterator<Item = Case<'_>> {
    let sizes = options
        .output
        .iter()
        .flat_map(|&output| options.widths.iter().map(move |&width| (output, width)));
    sizes.flat_map(move |(output, width)| {
        let patterns = options.patterns.iter().map(String::as_str);
        let case = move |pattern| Case { pattern, width, output, kernel: &options.kernel };
        // On fewer places this one is another one, and the suite refuses it.
        patterns.filter(move |&pattern| pattern != "stencil_1d_periodic" || width > 2).map(case)
    })
}

impl Case<'_> {
    fn arguments(&self) -> Vec<String> {
        let Self { pattern, width, output, kernel } = self;
        let line = format!("-type {pattern} -width {width} -kernel {kernel} -output {output}");
        let mut words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        let mut add = |text: &str| words.extend(text.split(' ').map(str::to_owned));
        if *pattern == "spread" && *width < 7 {
            // The suite's defaults, three neighbours in three turns, need seven places.
            add("-radix 2 -period 1");
        }
        if *kernel == "memory_bound" {
            add("-scratch 65536");
        }
        words
    }

    /// Iterations of a point, from where overhead is nearly all to where it is nearly nothing.
    fn iterations(&self) -> Vec<u64> {
        match self.kernel {
            "empty" => vec![0],
            // Of a point that hands on much, the longest of these must be as much longer than its overhead.
            _ if self.output > LITTLE => (3..=10).map(|power| 4_u64.pow(power)).collect(),
            _ => (1..=8).map(|power| 4_u64.pow(power)).collect(),
        }
    }
}

/// The programs, and what starts them.
struct Runner<'a> {
    options: &'a Options,
    ours: &'a Path,
    mpi: Option<&'a Mpi>,
}

impl Runner<'_> {
    /// Times for all numbers of iterations; `None` if the program fails.
    fn samples(&self, way: &Way, case: Case<'_>) -> Result<Option<Vec<Sample>>, Error> {
        let mut samples = Vec::new();
        for _ in 0..self.options.starts {
            let found = match way.theirs(self.options) {
                Some(program) => self.theirs(way, program, case)?,
                None => self.ours(way, case)?,
            };
            let Some(found) = found else { return Ok(None) };
            samples.extend(found);
        }
        Ok(Some(metg::least(&samples)))
    }

    fn ours(&self, way: &Way, case: Case<'_>) -> Result<Option<Vec<Sample>>, Error> {
        let mut command = self.start(way, self.ours);
        let iterations = case.iterations().iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        command.arg("--library").arg(&self.options.library);
        command.args(["--iterations", &iterations, "--work", &WORK.to_string()]);
        command.args(["--turns", &self.options.turns.to_string(), "--"]).args(case.arguments());
        command.env("CELERITY_NODES", way.nodes.to_string());
        // That devices stand idle is what is measured.
        command.env("CELERITY_LOG_LEVEL", "error");
        let Some(text) = output(&mut command)? else { return Ok(None) };
        Ok(Some(text.lines().filter_map(|line| metg::of_line(line, way.cores)).collect()))
    }

    fn theirs(
        &self,
        way: &Way,
        program: &Path,
        case: Case<'_>,
    ) -> Result<Option<Vec<Sample>>, Error> {
        let mut samples = Vec::new();
        for iterations in case.iterations() {
            let mut command = self.start(way, program);
            let steps = (WORK / iterations.max(1)).clamp(8, 256);
            command.args(case.arguments()).args(way.arguments());
            command.args(["-iter", &iterations.to_string(), "-steps", &steps.to_string()]);
            let Some(text) = output(&mut command)? else { return Ok(None) };
            samples.extend(metg::of_report(&text, iterations, way.cores));
        }
        Ok(Some(samples))
    }

    /// Processes have a thread each: together they have two cores, as one process has.
    fn start(&self, way: &Way, program: &Path) -> Command {
        match (way.processes, self.mpi) {
            (Some(processes), Some(mpi)) => {
                let mut command = mpi.launch(&["-n", &processes.to_string()]);
                command.arg(program).env("RAYON_NUM_THREADS", "1");
                command
            }
            _ => {
                let mut command = Command::new(program);
                command.env("RAYON_NUM_THREADS", "2");
                command
            }
        }
    }
}

/// How many programs have wanted a core in the last minute, where the system tells.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().filter(|load| !load.is_empty()).unwrap_or("unknown").to_owned()
}
