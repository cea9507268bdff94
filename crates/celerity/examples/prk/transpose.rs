//! `b += aᵀ`, and `a` changes each time.

use celerity::Sum;
use celerity::prelude::*;
use celerity_example_kernels::prk::reduce::fill_cube;
use celerity_example_kernels::prk::stencil::increment;
use celerity_example_kernels::prk::transpose::{
    BLOCK, GROUP, TILE, transpose_add, transpose_and_increment, transpose_error, transpose_fill,
    transpose_tiles,
};

use crate::bench::{Bench, Benchmark, Kernel, Verdict, rate};

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
    /// How the kernel is written: for a run of elements, each of which it takes from a column, or for a group of them, which turns a
    /// tile of 32² in its memory.
    #[arg(long, value_enum, default_value_t = Kernel::Row)]
    kernel: Kernel,
}

impl Options {
    /// How wide a band of the result is.
    fn width(&self) -> usize {
        if self.tile > 0 && self.tile < self.order { self.tile } else { self.order }
    }

    /// `b += aᵀ`, and then `a += 1`.
    fn step(
        &self,
        bench: &Bench<'_>,
        a: &Buffer<f64, 2>,
        b: &Buffer<f64, 3>,
    ) -> celerity::Result<()> {
        let [bands, order, width] = b.range();
        let task = bench.queue.task("transpose").hint(BY_ROWS);
        let ([rows, columns], [y, x]) = (BLOCK, GROUP);
        let items = nd_range([bands, order / rows, width / columns], [1, y, x]);
        let turned =
            |rows| per_dimension([Side::along(0).stride(width), Side::along(1).stride(rows)]);
        match self.kernel {
            Kernel::Row => {
                let accesses = (b.read_write(one_to_one()), a.read(turned(1)));
                task.launch(b.range(), accesses, transpose_add)?;
            }
            // One rank has all of both: it need not go through `a` again.
            Kernel::Group if bench.ranks == 1 => {
                let accesses = (b.read_write(blocks([1, rows, columns])), a.update(turned(rows)));
                task.launch(items, accesses, transpose_and_increment)?;
                return Ok(());
            }
            Kernel::Group => {
                let accesses = (b.read_write(blocks([1, rows, columns])), a.read(turned(rows)));
                task.launch(items, accesses, transpose_tiles)?;
            }
        }
        let task = bench.queue.task("increment");
        task.launch(a.range(), a.read_write(one_to_one()), increment)?;
        Ok(())
    }
}

/// How the result is cut: along its rows, for which a rank needs what all others have of its columns of `a`.
const BY_ROWS: Hint = Hint::SplitAlong(1);

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
            () => self.kernel.check(TILE, [order, self.width()], ("tile", self.tile)),
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
        let task = |name| queue.task(name).hint(BY_ROWS);
        queue.task("fill").launch(range, a.write(one_to_one()), transpose_fill)?;
        task("clear").launch(bands, b.write(one_to_one()), fill_cube { value: 0.0 })?;
        let seconds = bench.time(self.iterations, |_| self.step(bench, &a, &b))?;
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
