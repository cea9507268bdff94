//! `b += aᵀ`, and `a` changes each time.

use celerity::Sum;
use celerity::prelude::*;
use celerity_example_kernels::prk::reduce::fill_cube;
use celerity_example_kernels::prk::stencil::increment;
use celerity_example_kernels::prk::transpose::{transpose_add, transpose_error, transpose_fill};

use crate::bench::{Bench, Benchmark, Verdict, cut, rate};

#[derive(clap::Args, Debug)]
pub(crate) struct Options {
    /// How often the matrix is transposed, after a first time.
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    iterations: u32,
    /// Rows and columns of the matrix.
    order: usize,
    /// Columns of a tile, which must divide the order; 0 for no tiles.
    #[arg(default_value_t = 32)]
    tile: usize,
}

impl Options {
    /// How wide a band of the result is.
    fn width(&self) -> usize {
        if self.tile > 0 && self.tile < self.order { self.tile } else { self.order }
    }
}

impl Benchmark for Options {
    const TITLE: &'static str = "matrix transpose: B = A^T";

    fn check(&self, ranks: usize) -> Result<(), String> {
        let order = self.order;
        match () {
            () if order < ranks => {
                Err(format!("matrix order {order} should at least # procs {ranks}"))
            }
            () if !order.is_multiple_of(self.width()) => {
                Err(format!("matrix order {order} should be divisible by tile size {}", self.tile))
            }
            () => Ok(()),
        }
    }

    fn parameters(&self, ranks: usize) -> Vec<String> {
        let tile = match self.width() == self.order {
            true => "Untiled".to_owned(),
            false => format!("Tile size            = {}", self.tile),
        };
        vec![
            format!("Number of ranks      = {ranks}"),
            format!("Matrix order         = {}", self.order),
            format!("Number of iterations = {}", self.iterations),
            tile,
            "Non-Blocking messages".to_owned(),
        ]
    }

    fn run(&self, bench: &Bench<'_>) -> celerity::Result<Verdict> {
        let (queue, order, width) = (bench.queue, self.order, self.width());
        let (range, bands) = ([order; 2], [order / width, order, width]);
        let a = queue.buffer::<f64, 2>(range).named("a");
        let b = queue.buffer::<f64, 3>(bands).named("b");
        let task = |name| queue.task(name).hint(cut(bands[0], bench.ranks));
        queue.task("fill").launch(range, a.write(one_to_one()), transpose_fill)?;
        task("clear").launch(bands, b.write(one_to_one()), fill_cube { value: 0.0 })?;
        let turned = per_dimension([Side::along(0).stride(width), Side::along(1)]);
        let seconds = bench.time(self.iterations, |_| {
            let accesses = (b.read_write(one_to_one()), a.read(turned));
            task("transpose").launch(bands, accesses, transpose_add)?;
            queue.task("increment").launch(range, a.read_write(one_to_one()), increment)?;
            Ok(())
        })?;
        let sum = queue.buffer::<f64, 0>([]).named("error");
        let accesses = (b.read(one_to_one()), sum.reduce(Sum));
        let iterations = self.iterations as usize;
        task("error").launch(bands, accesses, transpose_error { iterations })?;
        let error = bench.value(&sum)?;
        let wrong = (error >= 1e-8)
            .then(|| format!("Aggregate squared error {error:.6} exceeds threshold 1e-8"));
        let bytes = 2.0 * 8.0 * (order as f64).powi(2);
        Ok(Verdict { wrong, rate: rate("MB/s", bytes / seconds, seconds) })
    }
}
