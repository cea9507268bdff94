//! A discrete divergence on a square grid.

use celerity::Sum;
use celerity::prelude::*;
use celerity_example_kernels::prk::reduce::fill_rows;
use celerity_example_kernels::prk::stencil::{
    increment, stencil_fill, stencil_square, stencil_square_of, stencil_star, stencil_star_of,
    sum_of_sizes,
};
use clap::ValueEnum;

use crate::bench::{Bench, Benchmark, Verdict};

#[derive(clap::Args, Debug)]
pub(crate) struct Options {
    /// How often the stencil is applied, after a first time.
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    iterations: u32,
    /// Points along each side of the grid.
    size: usize,
    /// Which points are looked at.
    #[arg(value_enum, default_value_t = Shape::Star)]
    shape: Shape,
    /// How far points are looked at.
    #[arg(default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    radius: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shape {
    /// Those along both axes.
    Star,
    /// Those in a square.
    Grid,
}

impl Options {
    /// Points of the stencil.
    fn points(&self) -> u32 {
        match self.shape {
            Shape::Star => 4 * self.radius + 1,
            Shape::Grid => (2 * self.radius + 1).pow(2),
        }
    }
}

impl Benchmark for Options {
    const TITLE: &'static str = "stencil execution on 2D grid";

    fn check(&self, ranks: usize) -> Result<(), String> {
        let Self { size, radius, .. } = *self;
        match () {
            () if size.saturating_mul(size) < ranks => {
                Err(format!("grid size {} must be at least # ranks: {ranks}", size * size))
            }
            () if 2 * radius as usize + 1 > size => {
                Err(format!("Stencil radius {radius} exceeds grid size {size}"))
            }
            () => Ok(()),
        }
    }

    fn parameters(&self, ranks: usize) -> Vec<String> {
        let shape = match self.shape {
            Shape::Star => "star",
            Shape::Grid => "compact",
        };
        vec![
            format!("Number of ranks        = {ranks}"),
            format!("Grid size              = {}", self.size),
            format!("Radius of stencil      = {}", self.radius),
            format!("Tiles in x/y-direction = 1/{ranks}"),
            format!("Type of stencil        = {shape}"),
            "Data type              = double precision".to_owned(),
            "Compact representation of stencil loop body".to_owned(),
            format!("Number of iterations   = {}", self.iterations),
        ]
    }

    fn run(&self, bench: &Bench<'_>) -> celerity::Result<Verdict> {
        let (queue, radius) = (bench.queue, self.radius as usize);
        let (range, inner) = ([self.size; 2], [self.size - 2 * radius; 2]);
        let [u, out] = ["in", "out"].map(|name| queue.buffer::<f64, 2>(range).named(name));
        queue.task("fill").launch(range, u.write(one_to_one()), stencil_fill)?;
        let zero = fill_rows { value: 0.0 };
        queue.task("clear").launch(range, out.write(one_to_one()), zero)?;
        let seconds = bench.time(self.iterations, |_| {
            let (task, out) =
                (queue.task("stencil").offset([radius; 2]), out.read_write(one_to_one()));
            match self.shape {
                Shape::Star => {
                    let accesses = (out, u.read(neighborhood_along_axes([radius; 2])));
                    match radius {
                        1 => task.launch(inner, accesses, stencil_star::<1>::new())?,
                        2 => task.launch(inner, accesses, stencil_star::<2>::new())?,
                        3 => task.launch(inner, accesses, stencil_star::<3>::new())?,
                        4 => task.launch(inner, accesses, stencil_star::<4>::new())?,
                        _ => task.launch(inner, accesses, stencil_star_of { radius })?,
                    }
                }
                Shape::Grid => {
                    let accesses = (out, u.read(neighborhood([radius; 2])));
                    match radius {
                        1 => task.launch(inner, accesses, stencil_square::<1, 3>::new())?,
                        2 => task.launch(inner, accesses, stencil_square::<2, 5>::new())?,
                        3 => task.launch(inner, accesses, stencil_square::<3, 7>::new())?,
                        4 => task.launch(inner, accesses, stencil_square::<4, 9>::new())?,
                        _ => task.launch(inner, accesses, stencil_square_of { radius })?,
                    }
                }
            };
            queue.task("increment").launch(range, u.read_write(one_to_one()), increment)?;
            Ok(())
        })?;
        let sum = queue.buffer::<f64, 0>([]).named("norm");
        let accesses = (out.read(one_to_one()), sum.reduce(Sum));
        queue.task("norm").launch(range, accesses, sum_of_sizes)?;
        let points = (inner[0] * inner[1]) as f64;
        let (norm, reference) = (bench.value(&sum)? / points, 2.0 * f64::from(self.iterations + 1));
        let wrong = ((norm - reference).abs() > 1e-8)
            .then(|| format!("L1 norm = {norm:.6}, Reference L1 norm = {reference:.6}"));
        let rate = format!(
            "Rate (MFlops/s): {:.6}  Avg time (s): {seconds:.6}",
            1e-6 * f64::from(2 * self.points() + 1) * points / seconds
        );
        Ok(Verdict { wrong, rate })
    }
}
