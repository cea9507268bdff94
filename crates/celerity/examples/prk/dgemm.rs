//! `c += a b` for dense matrices.

use celerity::Sum;
use celerity::prelude::*;
use celerity_example_kernels::prk::dgemm::{
    BLOCK, SIDE, TILE, dgemm_fill, dgemm_fill_bands, dgemm_multiply, dgemm_tiles, sum_of_elements,
};
use celerity_example_kernels::prk::reduce::fill_cube;

use crate::bench::{Bench, Benchmark, Kernel, Verdict, cut, rate};

#[derive(clap::Args, Debug)]
pub(crate) struct Options {
    /// How often matrices are multiplied, after a first time.
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    iterations: u32,
    /// Rows and columns of the matrices.
    #[arg(value_parser = clap::value_parser!(u32).range(2..))]
    order: u32,
    /// Columns that are computed one after the other; must divide the order.
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    block: u32,
    /// Whether there are blocks: 0 for no.
    flag: i32,
    /// How the kernel is written: for a run of elements, or for a group of them, which has a tile of 64² of the result.
    #[arg(long, value_enum, default_value_t = Kernel::Row)]
    kernel: Kernel,
}

impl Options {
    /// How wide a band of the result is.
    fn width(&self) -> usize {
        if self.flag != 0 && self.block < self.order {
            self.block as usize
        } else {
            self.order as usize
        }
    }
}

impl Benchmark for Options {
    const TITLE: &'static str = "Dense matrix-matrix multiplication: C = A x B";

    fn check(&self, ranks: usize) -> Result<(), String> {
        let order = self.order as usize;
        match () {
            () if order < ranks => Err(format!("matrix order too small: {order}")),
            () if !order.is_multiple_of(self.width()) => Err(format!(
                "matrix order {order} should be divisible by block size {}",
                self.block
            )),
            () => self.kernel.check(TILE, [order, self.width()], ("block", self.block as usize)),
        }
    }

    fn parameters(&self, ranks: usize) -> Vec<String> {
        let bands = self.order as usize / self.width();
        let (rows, columns) = if bands < ranks { (ranks, 1) } else { (1, ranks) };
        let blocking = match self.flag {
            0 => "No local dgemm blocking",
            _ => "Using local dgemm blocking",
        };
        vec![
            format!("Number of ranks      = {ranks}"),
            format!("Rank grid            = {rows} rows x {columns} columns"),
            format!("Matrix order         = {}", self.order),
            format!("Outer block size     = {}", self.block),
            format!("Number of iterations = {}", self.iterations),
            blocking.to_owned(),
        ]
    }

    fn run(&self, bench: &Bench<'_>) -> celerity::Result<Verdict> {
        let (queue, order, width) = (bench.queue, self.order as usize, self.width());
        let bands = [order / width, order, width];
        let a = queue.buffer::<f64, 2>([order; 2]).named("a");
        let [b, c] = ["b", "c"].map(|name| queue.buffer::<f64, 3>(bands).named(name));
        let task = |name| queue.task(name).hint(cut(bands[0], bench.ranks));
        queue.task("fill").launch([order; 2], a.write(one_to_one()), dgemm_fill)?;
        task("fill").launch(bands, b.write(one_to_one()), dgemm_fill_bands)?;
        task("clear").launch(bands, c.write(one_to_one()), fill_cube { value: 0.0 })?;
        let rows = |count| per_dimension([Side::along(1).stride(count), Side::all()]);
        let own_bands = per_dimension([Side::along(0), Side::all(), Side::all()]);
        let seconds = bench.time(self.iterations, |_| {
            let task = task("multiply");
            match self.kernel {
                Kernel::Row => {
                    let accesses = (c.read_write(one_to_one()), a.read(rows(1)), b.read(own_bands));
                    task.launch(bands, accesses, dgemm_multiply).map(drop)
                }
                Kernel::Group => {
                    let own = blocks([1, BLOCK, BLOCK]);
                    let accesses = (c.read_write(own), a.read(rows(BLOCK)), b.read(own_bands));
                    let items = [bands[0], order / BLOCK, width / BLOCK];
                    let tiles = dgemm_tiles { order };
                    task.launch(nd_range(items, [1, SIDE, SIDE]), accesses, tiles).map(drop)
                }
            }
        })?;
        let sum = queue.buffer::<f64, 0>([]).named("sum");
        let accesses = (c.read(one_to_one()), sum.reduce(Sum));
        task("sum").launch(bands, accesses, sum_of_elements)?;
        let (found, n) = (bench.value(&sum)?, f64::from(self.order));
        let expected = 0.25 * n.powi(3) * (n - 1.0).powi(2) * f64::from(self.iterations + 1);
        let wrong = (((found - expected) / expected).abs() > 1e-8)
            .then(|| format!("Checksum = {found:.6}, Reference checksum = {expected:.6}"));
        Ok(Verdict { wrong, rate: rate("MFlops/s", 2.0 * n.powi(3) / seconds, seconds) })
    }
}
