//! What users' code can do to the runtime besides computing something wrong: it panics where
//! nobody expects it, takes all memory, overflows its stack, blocks, or calls the runtime from
//! where it must not. Never a hang, an abort without a word, or a lost result; always a message
//! that says whose code it is.

mod drops;
mod limits;
mod mappers;
mod memory;
mod process;
#[cfg(target_os = "linux")]
#[path = "../common/scarcity.rs"]
mod scarcity;
mod silence;
mod stacks;
mod traces;

use celerity::prelude::*;
use celerity::{Error, Result, RunError, kernels};

static MODULE: kernels::Module = kernels::Module::without_code("faults", "not built for devices");

/// Nodes and devices: one, several of each, and both.
const CLUSTERS: [(usize, usize); 4] = [(1, 1), (1, 3), (3, 1), (2, 2)];

fn clusters() -> impl Iterator<Item = Config> {
    CLUSTERS.into_iter().map(cluster)
}

fn cluster((nodes, devices): (usize, usize)) -> Config {
    Config::default().nodes(nodes).devices(devices)
}

/// Tells what `program` ends with on each cluster.
fn errors_of<R: Send>(program: impl Fn(&Queue) -> Result<R> + Sync) -> impl Iterator<Item = Error> {
    clusters().map(move |cluster| {
        let outcome = cluster.run(&program);
        assert_next_run_works(&cluster);
        outcome.err().unwrap_or_else(|| panic!("the program should have failed on {cluster:?}"))
    })
}

/// The error that stopped a run.
#[track_caller]
fn run_error(error: &Error) -> &RunError {
    match error {
        Error::Run(error) => error,
        other => panic!("no error of the run: {other}"),
    }
}

#[track_caller]
fn assert_says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "\"{message}\" does not say \"{part}\"");
    }
}

fn assert_next_run_works(cluster: &Config) {
    let next = cluster.run(|queue| {
        let a = queue.buffer::<i32, 1>(16);
        queue.task("good").parallel_for(16, a.write(one_to_one()), |_, a| *a = 5)?;
        queue.fence(&a)?.wait().map(|snapshot| snapshot.into_vec())
    });
    assert_eq!(next.unwrap(), [5; 16]);
}
