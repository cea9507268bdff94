//! `cargo xtask quality`: prints what the corpus's schedules cost per step, or with
//! `--census` what schedules of whole programs consist of, or with `--copies` how data gets to
//! devices, as a table in Markdown. Owns the command line and the exit status.

use std::process::ExitCode;

use celerity_testkit::violation::Violation;
use celerity_testkit::{census, copies, quality};
use clap::Parser;

/// Prints what schedules cost, as a table in Markdown.
#[derive(Parser)]
#[command(name = "cargo xtask quality", bin_name = "cargo xtask quality")]
struct Arguments {
    /// Count what the schedules of the corpus, and of so many random programs, consist of
    #[arg(long, value_name = "PROGRAMS")]
    census: Option<u64>,
    /// Seed of the first random program; the others follow
    #[arg(long, default_value_t = 1, requires = "census")]
    seed: u64,
    /// Also print a row for every single case, for a comparison of two states
    #[arg(long, requires = "census")]
    cases: bool,
    /// Count the copies by which data gets to the devices of a node
    #[arg(long, conflicts_with = "census")]
    copies: bool,
}

fn main() -> ExitCode {
    match table(&Arguments::parse()) {
        Ok(table) => {
            print!("{table}");
            ExitCode::SUCCESS
        }
        Err(violation) => {
            eprintln!("error: {violation}");
            ExitCode::FAILURE
        }
    }
}

fn table(arguments: &Arguments) -> Result<String, Violation> {
    if arguments.copies {
        return copies::table();
    }
    let Some(programs) = arguments.census else { return quality::table() };
    census::table(programs, arguments.seed, |case, census| {
        if arguments.cases {
            println!("| {case} |{census}");
        }
    })
}
