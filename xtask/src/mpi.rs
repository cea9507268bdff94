//! `cargo xtask mpi`: everything that needs an MPI, with each that is installed.
//!
//! Owns in which order things happen, and what they come to. What is installed, what is run with it
//! and what that must lead to have modules of their own.

mod build;
mod cable;
mod installed;
mod judge;
mod namespaces;
mod slurm;
mod stages;

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

use crate::error::Error;
use crate::runner;
use crate::tally::{Tally, failed_lines};
use crate::workspace::Workspace;

pub(crate) use build::program;
pub(crate) use installed::{Mpi, installed};
use judge::Expected;
use namespaces::Namespaces;
use slurm::Slurm;
use stages::Stage;

/// What names of stages have that need daemons of Slurm. These run if they are asked for by name, so that what is to
/// be merged does not depend on whether Slurm launches a job at its first attempt.
const SLURM: &str = "Slurm";

/// What is launched.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Launch programs only in stages whose names contain this
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Launch each so many times: for what fails only now and then
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    times: u32,
}

impl Options {
    /// Everything, once.
    pub(crate) fn all() -> Self {
        Self { only: String::new(), times: 1 }
    }

    /// The stages that are asked for, as often as they are.
    fn of<'a>(&self, stages: Vec<Stage<'a>>) -> impl Iterator<Item = Stage<'a>> {
        let asked = stages.into_iter().filter(|stage| stage.name.contains(&self.only));
        asked.flat_map(|stage| std::iter::repeat_n(stage, self.times as usize))
    }
}

/// Builds and runs all of it, and prints what ran. Returns whether everything passed; without any
/// MPI that is so, unless `CI` is set.
///
/// # Errors
/// If Cargo cannot be run. Failing tests are no error.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, Error> {
    let tally = test(workspace, options)?;
    println!("{tally}");
    Ok(tally.failed == 0)
}

/// As [`run`], but for the closing line: says how many checks passed and failed.
///
/// # Errors
/// As [`run`].
pub(crate) fn test(workspace: &Workspace, options: &Options) -> Result<Tally, Error> {
    let scratch = workspace.target_dir.join("mpi");
    std::fs::create_dir_all(&scratch)
        .map_err(|source| Error::Write { path: scratch.clone(), source })?;
    let mut log = Log::default();
    let (installed, mut slurm) = (installed(), None);
    for (nth, mpi) in installed.iter().enumerate() {
        let built = build::programs(mpi, workspace, nth == 0 && options.only.is_empty(), &mut log)?;
        let stages = built.iter().flat_map(|programs| stages::all(mpi, programs, &scratch));
        for stage in options.of(stages.collect()) {
            let command = stage.command(mpi.launch(&stage.launch), &scratch);
            log.run(mpi, &stage.name, command, &stage.expected)?;
        }
        let remote = built.iter().flat_map(|programs| stages::between_hosts(mpi, programs));
        log.run_between_hosts(mpi, options.of(remote.collect()), &scratch)?;
        if options.only.contains(SLURM) {
            let queued = built.iter().flat_map(|programs| stages::slurm::all(mpi, programs));
            log.run_under_slurm(mpi, options.of(queued.collect()), &mut slurm, &scratch)?;
        }
    }
    print!("\n{}{}", log.table, log.failures);
    if installed.is_empty() {
        println!("SKIPPED mpi: neither Open MPI nor MPICH is installed");
        log.total.failed += u64::from(std::env::var_os("CI").is_some());
    }
    Ok(log.total)
}

/// What ran, and what came of it.
#[derive(Default)]
struct Log {
    table: String,
    /// A line for each stage that has failed, and what has failed in it.
    failures: String,
    total: Tally,
}

impl Log {
    /// Runs stages on the two hosts that this machine can pretend to be, if it can.
    fn run_between_hosts<'a>(
        &mut self,
        mpi: &Mpi,
        stages: impl Iterator<Item = Stage<'a>>,
        scratch: &Path,
    ) -> Result<(), Error> {
        let mut stages = stages.peekable();
        if stages.peek().is_none() {
            return Ok(());
        }
        let hosts = match Namespaces::make(scratch) {
            Ok(hosts) => hosts,
            Err(why) => {
                println!("SKIPPED mpi-namespaces: {why}");
                return Ok(());
            }
        };
        self.check_cable(mpi, &hosts);
        stages.try_for_each(|stage| {
            let command = stage.command(hosts.launch(mpi, &stage.launch), scratch);
            self.run(mpi, &stage.name, command, &stage.expected).map(drop)
        })
    }

    /// Runs stages under Slurm, if it can be started here: it is when the first stage comes. Without it they have
    /// failed, since they were asked for.
    fn run_under_slurm<'a>(
        &mut self,
        mpi: &Mpi,
        stages: impl Iterator<Item = Stage<'a>>,
        slurm: &mut Option<Result<Slurm, String>>,
        scratch: &Path,
    ) -> Result<(), Error> {
        for stage in stages {
            let slurm = slurm.get_or_insert_with(|| {
                Slurm::start().inspect_err(|why| println!("there is no Slurm here: {why}"))
            });
            let Ok(slurm) = slurm else {
                self.total.failed += 1;
                return Ok(());
            };
            let command = stage.command(slurm.launch(&stage.launch), scratch);
            self.run(mpi, &stage.name, command, &stage.expected)?;
        }
        Ok(())
    }

    /// What runs between two hosts shows little if they are as close as two processes.
    fn check_cable(&mut self, mpi: &Mpi, hosts: &Namespaces) {
        let start = Instant::now();
        let proof = hosts.prove_cable();
        match &proof {
            Ok(proof) => println!("=== the cable between two hosts: {proof}"),
            Err(why) => println!("=== the cable between two hosts carries nothing: {why}"),
        }
        let holds = proof.is_ok_and(|proof| proof.holds());
        self.note(mpi, "two hosts: the cable", start, Tally::one(holds), "see above");
    }

    /// Runs a command to its end, counts and notes. Returns whether all was as expected.
    fn run(
        &mut self,
        mpi: &Mpi,
        name: &str,
        mut command: Command,
        expected: &Expected,
    ) -> Result<bool, Error> {
        println!("=== {}, {name}: {}", mpi.name, runner::describe(&command));
        let (start, lines) = (Instant::now(), Mutex::new(Vec::new()));
        let status = runner::stream(&mut command, |line| {
            lines.lock().expect("no holder of the lock panics").push(line.to_owned());
        })?;
        let lines = lines.into_inner().expect("no holder of the lock panics");
        let tally = expected.judge(status.code(), &lines);
        self.note(mpi, name, start, tally, &judge::blame(status.code(), &lines));
        Ok(tally.failed == 0)
    }

    /// `blame`: what has failed, if something has.
    fn note(&mut self, mpi: &Mpi, name: &str, start: Instant, tally: Tally, blame: &str) {
        let seconds = start.elapsed().as_secs_f64();
        if tally.failed > 0 {
            let failed = format!("{name}, after {seconds:.0} s: {blame}");
            self.failures += &failed_lines(mpi.name, &[failed]);
        }
        self.table += &format!("{:<9}{name:<50}{seconds:>8.1}  {tally}\n", mpi.name);
        self.total += tally;
    }
}
