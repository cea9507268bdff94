//! Runs cases of the benchmarks `graphs` and `regions` and prints the least time
//! of each: what to run under a profiler, and what to compare two builds by on a
//! machine that others use as well.
//!
//! ```sh
//! cargo build --profile bench -p celerity-benches --bin sample
//! valgrind --tool=callgrind target/release/sample "large task graphs/chain" --samples 100
//! ```

use std::hint::black_box;
use std::time::{Duration, Instant};

use celerity_benches::dependency_cases::DependencyCase;
use celerity_benches::graph_cases::Case;
use celerity_benches::region_cases::RegionCase;
use clap::Parser;

/// Runs cases of the benchmarks `graphs` and `regions` and prints the least time of each.
#[derive(Parser)]
struct Options {
    /// Parts of the wanted cases' names, `GROUP/FUNCTION` (default: all cases)
    cases: Vec<String>,
    /// How often each case is timed
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    samples: u32,
}

impl Options {
    fn want(&self, name: &str) -> bool {
        self.cases.is_empty() || self.cases.iter().any(|part| name.contains(part))
    }

    /// Times a case and prints its line, if it is wanted.
    fn sample<T>(&self, group: &str, function: &str, case: impl Fn() -> T) {
        let name = format!("{group}/{function}");
        if self.want(&name) {
            println!("{:>12.1}  {name}", least_ns(self.samples, case));
        }
    }
}

fn main() {
    let options = Options::parse();
    println!("{:>12}  case", "least ns");
    for case in RegionCase::all() {
        options.sample(&case.group, &case.function, || black_box(&case).compute());
    }
    for case in DependencyCase::all() {
        options.sample(&case.group, case.function, || black_box(&case).run());
    }
    for case in Case::all() {
        options.sample(&case.group, case.function, || black_box(&case).sample());
    }
}

/// The least time of `case`, in nanoseconds. Short ones are timed several in a row:
/// long enough for the clock, too short for being interrupted each time.
fn least_ns<T>(samples: u32, case: impl Fn() -> T) -> f64 {
    const ROW: Duration = Duration::from_micros(10);
    let time = |count: u32| {
        let start = Instant::now();
        (0..count).for_each(|_| drop(black_box(case())));
        start.elapsed()
    };
    let mut count = 1;
    while time(count) < ROW {
        count *= 2;
    }
    let least = (0..samples).map(|_| time(count)).min().unwrap_or_default();
    least.as_secs_f64() * 1e9 / f64::from(count)
}
