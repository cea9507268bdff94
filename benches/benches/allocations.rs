//! How many heap allocations a task costs in each graph: a count, not a time,
//! so it is the same in every run and on every machine. Prints a table.
//!
//! Counted is what a sample of the benchmark `graphs` does, including the
//! making of range mappers and access lists by the program itself.

use celerity_benches::counting::CountingAllocator;
use celerity_benches::pipeline::{Depth, Pipeline, Shape};
use celerity_benches::topologies::Topology;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

const COLUMNS: [(&str, Shape); 4] = [
    ("tasks", Shape { nodes: 1, local: 0, devices: 1, depth: Depth::Tasks }),
    ("+commands, 4 nodes", Shape { nodes: 4, local: 0, devices: 1, depth: Depth::Commands }),
    ("+instructions, 2×1", Shape { nodes: 2, local: 0, devices: 1, depth: Depth::Instructions }),
    ("+instructions, 4×4", Shape { nodes: 4, local: 0, devices: 4, depth: Depth::Instructions }),
];

fn main() {
    // Test runners ask every target for its tests; there are none.
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    print!("{:<18}", "allocations/task");
    COLUMNS.iter().for_each(|(column, _)| print!("{column:>20}"));
    println!();
    for topology in Topology::ALL {
        print!("{:<18}", topology.name());
        for (_, shape) in COLUMNS {
            let allocations = count(topology, shape) as f64 / topology.tasks() as f64;
            print!("{allocations:>20.2}");
        }
        println!();
    }
}

fn count(topology: Topology, shape: Shape) -> u64 {
    let before = ALLOCATOR.allocations();
    let mut pipeline = Pipeline::new(shape);
    topology.submit(&mut pipeline);
    assert!(pipeline.finish().tasks > topology.tasks(), "epochs are tasks, too");
    ALLOCATOR.allocations() - before
}
