//! How many heap allocations a task costs in each case of the benchmark
//! `graphs`: a count, not a time, so it is the same in every run and on every
//! machine. Prints a table, and writes `allocations.json` for `cargo xtask bench`
//! into the folder that criterion keeps its own results in, if it is told where.
//!
//! Counted is what a sample does, including the making of range mappers and
//! access lists by the program itself. Epochs and horizons count as cost of the
//! tasks between them.

use std::path::Path;

use celerity_benches::counting::CountingAllocator;
use celerity_benches::graph_cases::{Case, SteadyCase};
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// Tasks of the steady state over which allocations are averaged.
const STEADY_TASKS: u64 = 1000;

fn main() -> std::io::Result<()> {
    // Test runners ask every target for its tests; there are none.
    if std::env::args().any(|argument| argument == "--list") {
        return Ok(());
    }
    let fresh = Case::all().into_iter().map(|case| {
        let per_task = per_task(&case);
        (case.group, case.function, per_task)
    });
    let steady = SteadyCase::all().into_iter().map(|case| {
        let per_task = per_steady_task(&case);
        (case.group.to_owned(), case.program.name(), per_task)
    });
    println!("{:>10}  case", "per task");
    let count = |(group, function, per_task): (String, &str, f64)| {
        println!("{per_task:>10.2}  {group} / {function}");
        json!({ "group": group, "function": function, "allocations_per_task": per_task })
    };
    let counts: Vec<Value> = fresh.chain(steady).map(count).collect();
    match std::env::var_os("CRITERION_HOME") {
        Some(folder) => write(Path::new(&folder), &json!({ "cases": counts })),
        None => Ok(()),
    }
}

fn write(folder: &Path, counts: &Value) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("allocations.json"), format!("{counts:#}\n"))
}

fn per_task(case: &Case) -> f64 {
    // Lists that a thread keeps from call to call are there from the first one on.
    let first = case.sample();
    let (again, allocations) = ALLOCATOR.count(|| case.sample());
    assert_eq!(first, again);
    allocations as f64 / case.tasks() as f64
}

fn per_steady_task(case: &SteadyCase) -> f64 {
    let mut running = case.start();
    let ((), allocations) = ALLOCATOR.count(|| running.advance(STEADY_TASKS));
    allocations as f64 / STEADY_TASKS as f64
}
