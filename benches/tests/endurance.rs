//! A program that runs for long takes no more memory than one that does not.

use celerity_benches::counting::CountingAllocator;
use celerity_benches::endless::{Program, Running};
use celerity_benches::pipeline::{Depth, Pipeline, Shape};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// Tasks behind which everything has reached its size.
const WARM_UP: u64 = 10_000;
const TASKS: u64 = 200_000;

/// Bytes by which one state of the steady state may be larger than another:
/// much less than one for each task.
const SLACK: u64 = 8 << 10;

/// All programs in one test, since the allocator counts for the whole process.
#[test]
fn memory_does_not_grow_with_the_number_of_tasks() {
    for program in Program::ALL {
        let pipeline = Pipeline::new(Shape::new(Depth::Instructions, 4, 2)).forgetting();
        let mut running = Running::new(program, pipeline);
        running.advance(WARM_UP);
        let early = ALLOCATOR.live_bytes();
        running.advance(TASKS / Program::ALL.len() as u64);
        let late = ALLOCATOR.live_bytes();
        assert!(late <= early + SLACK, "{}: {early} bytes, then {late}", program.name());
    }
}
