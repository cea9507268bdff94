//! Simulated clusters by the thousand, from the command line: random programs on
//! random configurations, and the replay of a seed. What `cargo xtask sim` runs.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use celerity_testkit::campaign::seed_of_now;
use celerity_testkit::check::Configuration;
use celerity_testkit::sim::{FailedRun, Scenario, Simulation, SimulationReport};
use celerity_testkit::supervise::{Notes, is_alone, supervised};
use clap::Parser;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Run random programs on simulated clusters, and compare what their fences see
/// with the sequential twin.
#[derive(Parser)]
#[command(name = "cargo xtask sim", bin_name = "cargo xtask sim")]
struct Arguments {
    /// The first seed; alone, exactly this program is run [default: chosen by the time]
    #[arg(long)]
    seed: Option<u64>,
    /// How many programs to run, with consecutive seeds [default: 1000]
    #[arg(long, value_name = "N")]
    programs: Option<u64>,
    /// How long to run programs
    #[arg(long, value_name = "T")]
    seconds: Option<u64>,
    /// Print the event log of a single run
    #[arg(long)]
    log: bool,
    /// Abort at this seed, as a bug might: for tests
    #[arg(long, value_name = "SEED", hide = true)]
    die_at: Option<u64>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Panics of the runtime are findings here, and reported as such.
    if !is_alone() {
        std::panic::set_hook(Box::new(|_| {}));
    }
    match arguments.seed {
        Some(seed) if arguments.programs.is_none() && arguments.seconds.is_none() => {
            code(replay(seed, arguments.log))
        }
        seed => search_supervised(seed.unwrap_or_else(seed_of_now), &arguments),
    }
}

fn code(found_nothing: bool) -> ExitCode {
    if found_nothing { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Searches in a process of its own, whose death is a finding.
fn search_supervised(first: u64, arguments: &Arguments) -> ExitCode {
    let single = |seed| {
        let mut single = format!("--seed {seed} --programs 1");
        if let Some(seed) = arguments.die_at {
            single += &format!(" --die-at {seed}");
        }
        single.split(' ').map(str::to_owned).collect()
    };
    let search = |notes: &Notes| code(search(first, arguments, notes));
    supervised(search, single, |death| {
        println!("\n{death}");
        for seed in &death.seeds {
            println!("replay: cargo xtask sim --seed {seed}");
        }
    })
}

/// Runs one seed; returns whether it keeps all promises.
fn replay(seed: u64, log: bool) -> bool {
    let scenario = Scenario::new(seed);
    println!("{scenario}\n{}", scenario.program);
    let simulation = Simulation::new(&scenario.program, &scenario.configuration, seed);
    match if log { simulation.with_log() } else { simulation }.run() {
        Ok(report) => {
            print_report(&report, log);
            true
        }
        Err(failure) => {
            println!("{failure}");
            false
        }
    }
}

fn print_report(report: &SimulationReport, log: bool) {
    if log {
        report.log.iter().for_each(|entry| println!("{entry}"));
    }
    let SimulationReport { simulated, events, hash, error, .. } = report;
    println!("{events} events in {simulated} of simulated time, log {hash:016x}");
    match error {
        Some(error) => println!("ended on all nodes, by a simulated fault, with: {error}"),
        None => println!("all fences agree with the sequential twin"),
    }
}

/// What a search has seen.
#[derive(Default)]
struct Tally {
    programs: u64,
    with_faults: u64,
    events: u64,
    /// By nodes − 1 and devices − 1.
    configurations: [[bool; 4]; 8],
}

impl Tally {
    fn add(&mut self, configuration: &Configuration, report: &SimulationReport) {
        let Configuration { nodes, devices, .. } = *configuration;
        self.programs += 1;
        self.with_faults += u64::from(report.error.is_some());
        self.events += report.events;
        self.configurations[nodes - 1][devices - 1] = true;
    }

    fn print(&self, elapsed: Duration, failures: usize) {
        let Self { programs, with_faults, events, configurations } = self;
        let covered = configurations.iter().flatten().filter(|&&covered| covered).count();
        let seconds = elapsed.as_secs_f64();
        let rate = |count: u64| count as f64 / seconds;
        println!(
            "{programs} programs in {seconds:.1} s, {:.0} per second; {with_faults} of them with \
             faults\n{events} events, {:.0} per second\n{covered} configurations of nodes 1-8 × \
             devices 1-4\n{failures} failures",
            rate(*programs),
            rate(*events)
        );
    }
}

/// Runs programs until one fails; returns whether none does. What it is at is in `notes`.
fn search(first: u64, arguments: &Arguments, notes: &Notes) -> bool {
    println!("first seed {first}");
    let limit = match (arguments.programs, arguments.seconds) {
        (Some(programs), _) => programs,
        (None, Some(_)) => u64::MAX,
        (None, None) => 1000,
    };
    let time = arguments.seconds.map_or(Duration::MAX, Duration::from_secs);
    let (start, mut tally, bar) = (Instant::now(), Tally::default(), progress_bar(limit));
    let mut found = None;
    for nth in 0..limit {
        if start.elapsed() >= time {
            break;
        }
        let seed = first.wrapping_add(nth);
        let simulate = || {
            if arguments.die_at == Some(seed) {
                std::process::abort();
            }
            let scenario = Scenario::new(seed);
            (scenario.simulate(), scenario)
        };
        match notes.at(0, seed, simulate) {
            (Ok(report), scenario) => tally.add(&scenario.configuration, &report),
            (Err(_), scenario) => found = Some(scenario),
        }
        bar.inc(1);
        if found.is_some() {
            break;
        }
    }
    bar.finish_and_clear();
    tally.print(start.elapsed(), found.iter().len());
    match found {
        Some(scenario) => {
            let seed = scenario.seed;
            notes.at(0, seed, || print_failure(scenario));
            false
        }
        None => true,
    }
}

fn progress_bar(limit: u64) -> ProgressBar {
    let bar = if limit == u64::MAX { ProgressBar::no_length() } else { ProgressBar::new(limit) };
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} programs, {per_sec}");
    bar.with_style(style.expect("the template is well-formed"))
}

fn print_failure(scenario: Scenario) {
    let (seed, statements) = (scenario.seed, scenario.program.ops.len());
    let Some((smaller, failure)): Option<(Scenario, Box<FailedRun>)> = scenario.shrink() else {
        println!("\nseed {seed} fails, but not twice: replay: cargo xtask sim --seed {seed}");
        return;
    };
    let left = smaller.program.ops.len();
    println!("\nseed {seed} fails; shrunk from {statements} to {left} statements:\n{failure}");
    println!("\nreplay, not shrunk: cargo xtask sim --seed {seed}");
}
