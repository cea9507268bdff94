//! `a += b + scalar · c` on long vectors.

use celerity::Sum;
use celerity::prelude::*;
use celerity_example_kernels::linear::fill;
use celerity_example_kernels::prk::nstream::triad;
use celerity_example_kernels::reductions::total;

use crate::bench::{Bench, Benchmark, Verdict, rate};

#[derive(clap::Args, Debug)]
pub(crate) struct Options {
    /// How often the triad is computed, after a first time.
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    iterations: u32,
    /// Elements of each vector, on all ranks together.
    length: usize,
    /// Elements between two vectors in memory. Here each vector is memory of its own: without
    /// effect.
    offset: usize,
}

const SCALAR: f64 = 3.0;

impl Benchmark for Options {
    const TITLE: &'static str = "stream triad: A = B + scalar*C";

    fn check(&self, ranks: usize) -> Result<(), String> {
        match self.length < ranks {
            true => Err(format!("Invalid vector length: {}", self.length)),
            false => Ok(()),
        }
    }

    fn parameters(&self, ranks: usize) -> Vec<String> {
        vec![
            format!("Number of ranks      = {ranks}"),
            format!("Vector length        = {}", self.length),
            format!("Offset               = {}", self.offset),
            format!("Number of iterations = {}", self.iterations),
        ]
    }

    fn run(&self, bench: &Bench<'_>) -> celerity::Result<Verdict> {
        let (queue, length) = (bench.queue, self.length);
        let [a, b, c] = ["a", "b", "c"].map(|name| queue.buffer::<f64, 1>(length).named(name));
        for (vector, value) in [(&a, 0.0), (&b, 2.0), (&c, 2.0)] {
            queue.task("fill").launch(length, vector.write(one_to_one()), fill { value })?;
        }
        let seconds = bench.time(self.iterations, |_| {
            let accesses = (a.read_write(one_to_one()), b.read(one_to_one()), c.read(one_to_one()));
            queue.task("triad").launch(length, accesses, triad { scalar: SCALAR })?;
            Ok(())
        })?;
        let sum = queue.buffer::<f64, 0>([]).named("sum");
        let accesses = (a.read(one_to_one()), sum.reduce(Sum));
        queue.task("sum").launch(length, accesses, total::<f64>::new())?;
        let found = bench.value(&sum)?;
        let expected = f64::from(self.iterations + 1) * (2.0 + SCALAR * 2.0) * length as f64;
        let wrong = ((expected - found).abs() / found > 1e-8).then(|| {
            format!("Failed Validation on output array: checksum {found} instead of {expected}")
        });
        let bytes = 4.0 * 8.0 * length as f64;
        Ok(Verdict { wrong, rate: rate("MB/s", bytes / seconds, seconds) })
    }
}
