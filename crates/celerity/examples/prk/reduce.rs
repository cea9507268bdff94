//! Vectors, one per rank, whose sum becomes the first one.

use celerity::prelude::*;
use celerity_example_kernels::prk::reduce::{add_ones, fill_rows, sum_vectors};

use crate::bench::{Bench, Benchmark, Verdict};

#[derive(clap::Args, Debug)]
pub(crate) struct Options {
    /// How often vectors are added up, after a first time.
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    iterations: u32,
    /// Elements of each rank's vector.
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    length: u64,
}

impl Benchmark for Options {
    const TITLE: &'static str = "vector reduction";

    fn check(&self, _: usize) -> Result<(), String> {
        Ok(())
    }

    fn parameters(&self, ranks: usize) -> Vec<String> {
        vec![
            format!("Number of ranks      = {ranks}"),
            format!("Vector length        = {}", self.length),
            format!("Number of iterations = {}", self.iterations),
        ]
    }

    /// A rank's vector is a row. Each rank adds up a share of all columns, in the first row, which the
    /// first rank needs again when it adds ones.
    fn run(&self, bench: &Bench<'_>) -> celerity::Result<Verdict> {
        let (queue, ranks, length) = (bench.queue, bench.ranks, self.length as usize);
        let range = [ranks, length];
        let [vectors, ones] =
            ["vectors", "ones"].map(|name| queue.buffer::<f64, 2>(range).named(name));
        for buffer in [&vectors, &ones] {
            let fill = fill_rows { value: 1.0 };
            queue.task("fill").launch(range, buffer.write(one_to_one()), fill)?;
        }
        let others = per_dimension([Side::only(1..ranks), Side::along(1)]);
        let seconds = bench.time(self.iterations, |_| {
            let accesses = (vectors.read_write(one_to_one()), ones.read(one_to_one()));
            queue.task("add").launch(range, accesses, add_ones)?;
            if ranks > 1 {
                let accesses = (vectors.read_write(one_to_one()), vectors.read(others));
                let task = queue.task("sum").hint(Hint::SplitAlong(1));
                task.launch([1, length], accesses, sum_vectors { ranks })?;
            }
            Ok(())
        })?;
        let first = Subrange::new([0, 0], [1, length]);
        let found = queue.fence_part(&vectors, first)?.wait()?;
        let (n, others) = (f64::from(self.iterations), ranks as f64 - 1.0);
        let expected = n + 2.0 + (n * n + 5.0 * n + 4.0) * others / 2.0;
        let mut elements = found.as_slice().iter().enumerate();
        let wrong = elements.find(|(_, value)| (*value - expected).abs() >= 1e-8);
        let wrong = wrong.map(|(i, value)| {
            format!("First error at i={i}; value: {value:.6}; reference value: {expected:.6}")
        });
        let flops = (2.0 * ranks as f64 - 1.0) * length as f64;
        let rate =
            format!("Rate (MFlops/s): {:.6}  Avg time (s): {seconds:.6}", 1e-6 * flops / seconds);
        Ok(Verdict { wrong, rate })
    }
}
