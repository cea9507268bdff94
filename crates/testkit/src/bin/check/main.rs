//! `cargo xtask check`: random programs in random configurations, at length.
//!
//! Owns the command line, the progress bar and the closing report; what is checked is the business
//! of [`celerity_testkit::campaign`].

mod report;

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use celerity_testkit::campaign::{Campaign, check_everything, seed_of_now};
use celerity_testkit::check::FailedCheck;
use celerity_testkit::recording::{RecordingError, load_program, save_program};
use celerity_testkit::supervise::{Notes, is_alone, supervised};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};

/// Checks the graphs of random programs, and runs some of them.
#[derive(Parser)]
#[command(name = "cargo xtask check", bin_name = "cargo xtask check")]
struct Arguments {
    /// Pairs of a program and a configuration to check
    #[arg(long, default_value_t = 1000)]
    programs: u64,
    /// Seed of the first program; the others follow (default: drawn from the clock)
    #[arg(long)]
    seed: Option<u64>,
    /// Nodes of the cluster: a number, or a range with both ends
    #[arg(long, default_value = "1..8", value_parser = range)]
    nodes: RangeInclusive<usize>,
    /// Devices of each node: a number, or a range with both ends
    #[arg(long, default_value = "1..4", value_parser = range)]
    devices: RangeInclusive<usize>,
    /// Also run one of so many programs on real threads; 0 for none
    #[arg(long, default_value_t = 16)]
    run_every: u64,
    /// Check the recorded program of a failure instead
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Where to save the program of a failure (default: the folder for temporary files)
    #[arg(long, value_name = "FOLDER")]
    save_to: Option<PathBuf>,
    /// Abort at this seed, as a bug might: for tests
    #[arg(long, value_name = "SEED", hide = true)]
    die_at: Option<u64>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match &arguments.replay {
        None => search_supervised(&arguments),
        Some(file) => match replay(file) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        },
    }
}

/// Searches in a process of its own, whose death is a finding.
fn search_supervised(arguments: &Arguments) -> ExitCode {
    let single = |seed| {
        let Arguments { nodes, devices, run_every, die_at, .. } = arguments;
        let range = |range: &RangeInclusive<usize>| format!("{}..{}", range.start(), range.end());
        let mut single = format!("--seed {seed} --programs 1 --run-every {}", run_every.min(&1));
        single += &format!(" --nodes {} --devices {}", range(nodes), range(devices));
        if let Some(seed) = die_at {
            single += &format!(" --die-at {seed}");
        }
        single.split(' ').map(str::to_owned).collect()
    };
    let found_nothing = |notes: &Notes| match search(arguments, notes) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    };
    supervised(found_nothing, single, |death| {
        println!("\n{death}");
        let culprits = if death.alone.is_empty() { &death.seeds } else { &death.alone };
        for seed in culprits {
            println!("replay: cargo xtask check {}", single(*seed).join(" "));
        }
    })
}

/// Checks one recorded program; whether it passes.
fn replay(file: &Path) -> Result<bool, RecordingError> {
    let (program, configuration) = load_program(file)?;
    println!("{configuration:?}\n{program}");
    match check_everything(&program, &configuration) {
        Ok(counts) => println!("passes: {} instructions", counts.instructions),
        Err(failure) => {
            println!("fails: {}", failure.violation);
            return Ok(false);
        }
    }
    Ok(true)
}

/// Checks random programs; whether all pass.
fn search(arguments: &Arguments, notes: &Notes) -> bool {
    let Arguments { programs, run_every, .. } = *arguments;
    let (nodes, devices) = (arguments.nodes.clone(), arguments.devices.clone());
    let seed = arguments.seed.unwrap_or_else(seed_of_now);
    println!("{programs} programs from seed {seed}");
    let campaign = Campaign { programs, seed, nodes, devices, run_every };
    let die = |seed| {
        if arguments.die_at == Some(seed) {
            std::process::abort();
        }
    };
    // Drawn on a terminal only.
    let bar = ProgressBar::new(programs).with_style(style());
    // A panic is a failure that is reported at the end; shrinking repeats it a thousand times.
    if !is_alone() {
        std::panic::set_hook(Box::new(|_| ()));
    }
    let report = campaign.run(notes, die, || bar.inc(1));
    drop(std::panic::take_hook());
    bar.finish_and_clear();
    print!("{}", report::text(&report));
    if let Some((seed, failure)) = &report.failure {
        let folder = arguments.save_to.clone().unwrap_or_else(std::env::temp_dir);
        print_failure(*seed, failure, &folder);
    }
    report.failure.is_none()
}

fn print_failure(seed: u64, failure: &FailedCheck, folder: &Path) {
    println!("\nseed {seed} fails; made smaller:\n{failure}");
    let file = folder.join(format!("failure-{seed}.celerity"));
    match save_program(&file, &failure.program, &failure.configuration) {
        Ok(()) => println!("replay: cargo xtask check --replay {}", file.display()),
        Err(error) => {
            eprintln!("error: {error}");
            println!("replay: cargo xtask check --seed {seed} --programs 1 --run-every 1");
        }
    }
}

fn style() -> ProgressStyle {
    let template = "{bar:40} {pos}/{len} programs, {per_sec}, {eta} left";
    ProgressStyle::with_template(template).expect("the template is well-formed")
}

/// `4`, or `1..8` for all from 1 to 8.
fn range(text: &str) -> Result<RangeInclusive<usize>, String> {
    let number = |part: &str| part.parse::<usize>().map_err(|error| format!("{part:?}: {error}"));
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let range = number(first)?..=number(last.trim_start_matches('='))?;
    match *range.start() > 0 && !range.is_empty() && *range.end() <= 16 {
        true => Ok(range),
        false => Err("give numbers from 1 to 16, the smaller one first".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::{Arguments, range};

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn ranges_have_both_ends() {
        assert_eq!(range("1..8"), Ok(1..=8));
        assert_eq!(range("2..=3"), Ok(2..=3));
        assert_eq!(range("4"), Ok(4..=4));
        for text in ["", "0", "3..2", "1..99", "a..b", "1..", "-1"] {
            assert!(range(text).is_err(), "{text:?}");
        }
    }
}
