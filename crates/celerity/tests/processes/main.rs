//! A program whose nodes are processes, undisturbed and disturbed: one is killed, stands
//! still, computes something else, returns an error, or is interrupted; or its code does what
//! code should not. Each process is a node and looks at what it is told itself; what a launcher
//! makes of it is up to whoever starts it.
//!
//! `PROCESSES_ROLE=stuck mpirun -n 3 processes`; without a role, nothing is disturbed.

mod calibration;
mod captures;
mod code;
mod endurance;
mod faults;
mod graphs;
mod host_tasks;
mod objects;
mod panics;
mod program;
#[path = "../common/scarcity.rs"]
mod scarcity;
mod starts;
mod trace;

use std::process::ExitCode;

use celerity::kernels;

static MODULE: kernels::Module =
    kernels::Module::without_code("processes", "not built for devices");

fn main() -> ExitCode {
    match std::env::var("PROCESSES_ROLE").as_deref() {
        Err(_) => program::undisturbed(),
        Ok("traced") => trace::run(),
        Ok("graphed") => graphs::run(),
        Ok("unwritable") => graphs::unwritable(),
        Ok("killed-and-traced") => return trace::killed(),
        Ok("killed") => return faults::killed(),
        Ok("interrupted") => return faults::interrupted(),
        Ok("diverging") => faults::diverging(),
        Ok("other-contents") => faults::other_contents(),
        Ok("failing") => faults::failing(),
        Ok("stuck") => faults::stuck(),
        Ok("lingering") => return code::lingering(),
        Ok("blocked") => code::blocked(),
        Ok("fickle") => return code::fickle(),
        Ok("overflowing") => return code::overflowing(),
        Ok("dropping") => return code::dropping(),
        Ok("fence") => return code::fence(),
        Ok("host-tasks") => host_tasks::all_forms(),
        Ok("mpi-groups") => host_tasks::mpi_groups(),
        Ok("mpi-refused") => host_tasks::mpi_refused(),
        Ok("collective-panic") => return host_tasks::panics(),
        Ok("collective-mpi-panic") => return host_tasks::panics_while_others_wait_in_mpi(),
        Ok("collective-mpi-absent") => return host_tasks::panics_while_others_ask_for_mpi(),
        Ok("collective-mpi-late") => return host_tasks::panics_before_others_use_mpi(),
        Ok("combiner-panic") => return panics::combiner(),
        Ok("combination-panic") => return panics::combination(),
        Ok("mapper-panic") => return panics::range_mapper(),
        Ok("host-task-panic") => return panics::host_task(),
        Ok("cannot-start") => starts::cannot_start(),
        Ok("fewer-runs") => return starts::makes_fewer_runs(),
        Ok("exits") => return starts::exits_between(),
        Ok("killed-between") => return starts::killed_between(),
        Ok("killed-at-the-end") => return starts::killed_at_the_end(),
        Ok("no-threads") => return starts::short_of_threads(),
        Ok("no-memory") => return starts::short_of_memory(),
        Ok("calibration") => calibration::run(),
        Ok("objects") => objects::run(),
        Ok("captures") => captures::run(),
        Ok("capture-in-a-branch") => captures::in_a_branch(),
        Ok("many-runs") => endurance::many_runs(),
        Ok("slow-node") => endurance::slow_node(),
        Ok(other) => panic!("there is no role {other}"),
    }
    ExitCode::SUCCESS
}

/// The last line of a check, as Rust's own test runner has it; for node 0 to print.
fn passed() {
    println!("\ntest result: ok. 1 passed; 0 failed; 0 ignored");
}
