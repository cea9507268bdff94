//! `cargo xtask quality`: prints what the corpus's schedules cost per step, as a
//! table in Markdown. Owns nothing but its exit status.

use std::process::ExitCode;

use celerity_testkit::quality;

fn main() -> ExitCode {
    match quality::table() {
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
