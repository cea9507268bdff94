//! Runs one of the fixed cases whose instructions are counted, or lists them.
//!
//! `cargo xtask bench instructions` starts this program under `valgrind --tool=callgrind`,
//! once per case, and tells it to count what [`counted`] does and nothing else. A case is
//! the same in every run: its steps depend on no clock, no address and no thread.
//!
//! ```sh
//! cargo build --profile bench -p celerity-instructions
//! valgrind --tool=callgrind --collect-atstart=no --toggle-collect='*counted*' \
//!     target/release/celerity-instructions "instructions on 2 nodes/soup"
//! ```

mod case;
mod cases;
mod checker;
mod engine;

use std::hint::black_box;
use std::process::ExitCode;

use case::Case;

fn main() -> ExitCode {
    let cases = cases::all();
    let Some(wanted) = std::env::args().nth(1) else {
        cases.iter().for_each(|case| println!("{}", case.name));
        return ExitCode::SUCCESS;
    };
    let Some(case) = cases.iter().find(|case| case.name == wanted) else {
        eprintln!("error: there is no case `{wanted}`; without an argument, all are listed");
        return ExitCode::FAILURE;
    };
    counted(&mut *case.warm());
    ExitCode::SUCCESS
}

/// What is counted: its name is what callgrind is told.
#[inline(never)]
fn counted(work: &mut dyn FnMut()) {
    black_box(work)();
}

impl Case {
    /// The case, ready to be counted: lists that a thread keeps from call to call are there.
    fn warm(&self) -> Box<dyn FnMut()> {
        let mut work = (self.start)();
        work();
        work
    }
}
