//! Random programs whose kernels are one Rust source, on the machine's own GPUs or on
//! CPUs, against the sequential twin.
//!
//! One binary for a machine that has a driver and no Rust. It exits with 0 if every
//! program computed what its twin did.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use celerity_cuda::{CudaConfig, CudaDevices, Gpu, Gpus};
use celerity_executor::{ClusterConfig, InProcess, Run};
use celerity_idag::Lookahead;
use celerity_testkit::campaign::seed_of_now;
use celerity_testkit::check::Configuration;
use celerity_testkit::corpus;
use celerity_testkit::hash::Mixer;
use celerity_testkit::program::{Program, Sizes, seeded};
use celerity_testkit::run::run_on;
use celerity_testkit::shrink::shrink;
use celerity_testkit::twin::interpret;
use clap::Parser;

mod compiled;

use compiled::Statement;

/// Runs random programs, and compares what they compute with their sequential twins.
#[derive(Parser)]
struct Arguments {
    /// How many programs to run, with consecutive seeds
    #[arg(long, default_value_t = 1000)]
    programs: u64,
    /// The first seed [default: chosen by the time]
    #[arg(long)]
    seed: Option<u64>,
    /// Begin no program after so many seconds
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// GPUs to use; 0 for CPUs [default: all there are]
    #[arg(long)]
    gpus: Option<usize>,
    /// Programs that run at the same time
    #[arg(long, default_value_t = 4)]
    at_once: usize,
}

/// CPU devices of a node, at most.
const CPU_DEVICES: usize = 3;

/// Runs of smaller programs, at most, when one has failed.
const ATTEMPTS: usize = 500;

/// Nodes, all of this process, at most.
const NODES: usize = 2;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match Machine::find(arguments.gpus) {
        Ok(machine) if search(&machine, &arguments) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What programs run on.
struct Machine {
    /// None for CPUs.
    gpus: Option<Arc<Gpus>>,
    devices: usize,
}

impl Machine {
    fn find(wanted: Option<usize>) -> Result<Self, String> {
        if wanted == Some(0) {
            return Ok(Self { gpus: None, devices: NODES * CPU_DEVICES });
        }
        let gpus = gpus()?;
        let found = gpus.infos().len();
        match wanted.unwrap_or(found) {
            wanted if wanted > found => Err(format!("there are {found} GPUs, not {wanted}")),
            devices => Ok(Self { gpus: Some(gpus), devices }),
        }
    }

    /// The program of a seed, and what it runs on: the same on machines with as many
    /// devices.
    fn case(&self, seed: u64) -> (Program, Configuration) {
        let draw = |what: usize, below: usize| Mixer::for_item(what, [seed, 0, 0]).below(below);
        let nodes = 1 + draw(0, NODES);
        let devices = 1 + draw(1, (self.devices / nodes).max(1));
        let configuration = Configuration {
            horizon_step: 1 + draw(2, 6) as u64,
            horizon_max_parallelism: 2 + draw(3, 9) as u64,
            lookahead: [Lookahead::None, Lookahead::Auto, Lookahead::Infinite][draw(4, 3)],
            // Rarely on GPUs, where an allocation that grows takes 100 µs.
            grow_from: if draw(5, 4) > 0 { 0 } else { 1 + draw(6, 500) as u64 },
            seed,
            ..Configuration::new(nodes, devices)
        };
        (seeded(Sizes::default(), seed), configuration)
    }

    /// Runs a program; what is wrong with it.
    fn judge(&self, program: &Program, configuration: &Configuration) -> Result<(), String> {
        let run = || self.compare(program, configuration);
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err("panicked".to_owned()))
    }

    /// Runs a program, and compares what it computes with its twin.
    ///
    /// # Panics
    /// If a GPU cannot be used any more.
    fn compare(&self, program: &Program, configuration: &Configuration) -> Result<(), String> {
        let place = |config: &ClusterConfig| self.place(config, configuration);
        let found = run_on(program, configuration, place, |task, _| Arc::new(Statement::new(task)));
        let (found, expected) = (found.map_err(|error| error.to_string())?, interpret(program));
        match found.iter().position(|observation| *observation != expected) {
            None => Ok(()),
            Some(node) => Err(format!("N{node} has observed something else than the twin")),
        }
    }

    /// A smaller program that fails, too, and what is wrong with it, if one can be found. A
    /// fault may leave a GPU behind on which everything fails: then the search is over.
    fn shrink(
        &self,
        program: &Program,
        configuration: &Configuration,
    ) -> Option<(Program, String)> {
        let (simple, usual) = (corpus::black_scholes(10, 1), Configuration::new(1, 1));
        let works = || self.judge(&simple, &usual).is_ok();
        let (mut works_still, mut reason) = (works(), None);
        let smallest = shrink(program, ATTEMPTS, |candidate| {
            let failure = works_still.then(|| self.judge(candidate, configuration).err()).flatten();
            let Some(failure) = failure else { return false };
            works_still = works();
            reason = Some(failure);
            true
        });
        reason.map(|reason| (smallest, reason))
    }

    /// # Panics
    /// If a GPU cannot be used any more.
    fn place(&self, config: &ClusterConfig, configuration: &Configuration) -> Run<'static> {
        let Some(gpus) = &self.gpus else { return Run::new(config) };
        let Configuration { nodes, devices, seed, .. } = *configuration;
        let used = (nodes * devices).min(self.devices);
        let slots = 0..u16::try_from(used).expect("a host has few GPUs");
        let selected: Vec<_> = slots.map(Gpu::from_slot).collect();
        let cuda = CudaConfig {
            lane_waits: !seed.is_multiple_of(4),
            peer_copies: !seed.is_multiple_of(3),
            growing: configuration.growing(),
            least_chunk: 0,
            ..CudaConfig::default()
        };
        let devices = CudaDevices::deal(gpus, &selected, 0..nodes, true, &cuda);
        let devices = devices.unwrap_or_else(|error| panic!("{error}"));
        Run::new(config).on(InProcess { nodes }).with_devices(devices)
    }
}

#[cfg(feature = "cuda")]
fn gpus() -> Result<Arc<Gpus>, String> {
    let driver = celerity_cuda::NvidiaDriver::new().map_err(|error| error.to_string())?;
    Gpus::new(Arc::new(driver), None).map_err(|error| error.to_string())
}

#[cfg(not(feature = "cuda"))]
fn gpus() -> Result<Arc<Gpus>, String> {
    Err("this was built without feature `cuda`; CPUs are `--gpus 0`".to_owned())
}

/// Runs programs until one fails; returns whether none does.
fn search(machine: &Machine, arguments: &Arguments) -> bool {
    let first = arguments.seed.unwrap_or_else(seed_of_now);
    let what = if machine.gpus.is_some() { "GPUs" } else { "CPU devices" };
    println!(
        "{} programs on up to {} {what}, from seed {first}",
        arguments.programs, machine.devices
    );
    let (start, limit) = (Instant::now(), Duration::from_secs(arguments.seconds));
    let (next, done, failed) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(u64::MAX));
    let work = || {
        while failed.load(Relaxed) == u64::MAX && start.elapsed() < limit {
            let nth = next.fetch_add(1, Relaxed);
            if nth >= arguments.programs {
                break;
            }
            let (program, configuration) = machine.case(first.wrapping_add(nth));
            if let Err(what) = machine.judge(&program, &configuration) {
                failed.fetch_min(nth, Relaxed);
                println!("seed {}: {what}", first.wrapping_add(nth));
            }
            let done = done.fetch_add(1, Relaxed) + 1;
            if done.is_multiple_of(1000) {
                println!("{done} programs in {:.1} s", start.elapsed().as_secs_f64());
            }
        }
    };
    thread::scope(|scope| (0..arguments.at_once.max(1)).for_each(|_| drop(scope.spawn(work))));
    let (done, seconds) = (done.into_inner(), start.elapsed().as_secs_f64());
    println!("{done} programs in {seconds:.1} s, {:.0} per second", done as f64 / seconds);
    let failed = failed.into_inner();
    if failed < u64::MAX {
        explain(machine, first.wrapping_add(failed));
    } else if done < arguments.programs {
        println!("ended by the limit of {} s", arguments.seconds);
    }
    failed == u64::MAX && done > 0
}

fn explain(machine: &Machine, seed: u64) {
    let (program, configuration) = machine.case(seed);
    let devices = machine.gpus.as_ref().map_or(0, |_| machine.devices);
    println!("\n{configuration:?}\n{program}");
    if let Some((smaller, what)) = machine.shrink(&program, &configuration) {
        println!("made smaller, of which {what}:\n{smaller}");
    }
    println!("repeat: random_programs --seed {seed} --programs 1 --gpus {devices}");
}
