//! A sparse matrix times a vector of which every rank needs everything.

use celerity::Sum;
use celerity::prelude::*;
use celerity_example_kernels::linear::fill;
use celerity_example_kernels::prk::sparse::{grow, sparse_fill, sparse_multiply};
use celerity_example_kernels::reductions::total;

use crate::bench::{Bench, Benchmark, Verdict};

#[derive(clap::Args, Debug)]
pub(crate) struct Options {
    /// How often the matrix is multiplied, after a first time.
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    iterations: u32,
    /// The logarithm, to base 2, of the points along each side of the grid.
    #[arg(value_parser = clap::value_parser!(u32).range(..=15))]
    log2: u32,
    /// How far a point reaches along both axes.
    #[arg(value_parser = clap::value_parser!(u32).range(..=1024))]
    radius: u32,
}

impl Options {
    /// Points of the star.
    fn points(&self) -> usize {
        4 * self.radius as usize + 1
    }
}

impl Benchmark for Options {
    const TITLE: &'static str = "sparse matrix-vector multiplication";

    fn check(&self, ranks: usize) -> Result<(), String> {
        let (size, radius) = (1 << self.log2, self.radius as usize);
        match () {
            () if size < ranks => {
                Err(format!("Grid size {size} must be at least equal to # procs {ranks}"))
            }
            () if size < 2 * radius + 1 => Err(format!(
                "Grid extent {size} smaller than stencil diameter 2*{radius}+1= {}",
                2 * radius + 1
            )),
            () => Ok(()),
        }
    }

    fn parameters(&self, ranks: usize) -> Vec<String> {
        let order = 1_u64 << (2 * self.log2);
        vec![
            format!("Number of ranks       = {ranks:>16}"),
            format!("Matrix order          = {order:>16}"),
            format!("Stencil diameter      = {:>16}", 2 * self.radius + 1),
            format!("Sparsity              = {:>16.10}", self.points() as f64 / order as f64),
            format!("Number of iterations  = {:>16}", self.iterations),
            "Indexing              = scrambled".to_owned(),
            "Matrix storage format = Compressed Sparse Row".to_owned(),
        ]
    }

    fn run(&self, bench: &Bench<'_>) -> celerity::Result<Verdict> {
        let (queue, rows, points) = (bench.queue, 1 << (2 * self.log2), self.points());
        let columns = queue.buffer::<u64, 2>([rows, points]).named("columns");
        let values = queue.buffer::<f64, 2>([rows, points]).named("values");
        let [vector, result] =
            ["vector", "result"].map(|name| queue.buffer::<f64, 1>(rows).named(name));
        let fill_matrix = sparse_fill { log2: self.log2, radius: u64::from(self.radius) };
        let accesses = (columns.write(slice(1)), values.write(slice(1)));
        queue.task("matrix").launch([rows, 1], accesses, fill_matrix)?;
        for vector in [&vector, &result] {
            let zero = fill { value: 0.0 };
            queue.task("fill").launch(rows, vector.write(one_to_one()), zero)?;
        }
        let entries = per_dimension([Side::along(0), Side::all()]);
        let seconds = bench.time(self.iterations, |_| {
            queue.task("grow").launch(rows, vector.read_write(one_to_one()), grow)?;
            let accesses = (
                result.read_write(one_to_one()),
                columns.read(entries),
                values.read(entries),
                vector.read(all()),
            );
            queue.task("multiply").launch(rows, accesses, sparse_multiply)?;
            Ok(())
        })?;
        let sum = queue.buffer::<f64, 0>([]).named("sum");
        let accesses = (result.read(one_to_one()), sum.reduce(Sum));
        queue.task("sum").launch(rows, accesses, total::<f64>::new())?;
        let (found, n) = (bench.value(&sum)?, f64::from(self.iterations));
        let entries = rows as f64 * points as f64;
        let expected = 0.5 * entries * (n + 1.0) * (n + 2.0);
        // The suite's tolerance is absolute, and below the rounding of large sums.
        let wrong = ((found - expected).abs() > 1e-8 * expected)
            .then(|| format!("Vector sum = {found:.6}, Reference vector sum = {expected:.6}"));
        let rate = format!(
            "Rate (MFlops/s): {:.6}  Avg time (s): {seconds:.6}",
            1e-6 * 2.0 * entries / seconds
        );
        Ok(Verdict { wrong, rate })
    }
}
