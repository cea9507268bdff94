//! Products of square matrices, `x ← a x`: rows over processes, which all know all of `x` after each
//! product.

#[path = "../../../crates/celerity/examples/matmul/panels.rs"]
mod panels;

use std::time::Duration;

use celerity::prelude::*;
use celerity_example_kernels::linear::{element, matrix_fill};
use mpi::topology::SimpleCommunicator;
use mpi::traits::CommunicatorCollectives;

use crate::spread::{compare, share, timed};
use crate::{PROGRAM_WINDOWS, place, shortest};

/// Rows and columns of the matrices.
const SIZE: usize = 768;
const _: () = assert!(SIZE.is_multiple_of(panels::MULTIPLE));

/// In each measure.
const PRODUCTS: usize = 2;

/// Which matrices.
const SEED_A: u64 = 1;
const SEED_X: u64 = 2;

/// Rows and columns of `x` whose sums are in registers together.
const ROWS: usize = 4;
const COLUMNS: usize = 8;

/// Rows of `a`, column by column.
type Band = [[f32; ROWS]; SIZE];

/// Rows of `x`.
type Rows = [[f32; SIZE]; ROWS];

/// A row of a table for each of our kernels, that of the example and the loops by hand: the number of
/// processes, and how many operations both ways do.
pub(crate) fn print(world: &SimpleCommunicator, repetitions: usize) -> celerity::Result<()> {
    let millions = (2 * SIZE * SIZE * SIZE * PRODUCTS) as f64 / 1e6;
    let name = format!("matmul, {SIZE}×{SIZE} [Mflop/s]");
    compare(world, repetitions, (&name, millions), || by_hand(world), ours)?;
    let name = format!("matmul, {SIZE}×{SIZE}, one kernel [Mflop/s]");
    compare(world, repetitions, (&name, millions), || by_hand(world), ours_by_hand)
}

/// Keeps products from growing.
fn scale() -> f32 {
    1.0 / (SIZE as f32).sqrt()
}

fn by_hand(world: &SimpleCommunicator) -> (Duration, Vec<f32>) {
    let (rank, nodes) = place(world);
    let bands = share(SIZE / ROWS, nodes);
    let a: Vec<Band> = (rank * bands..(rank + 1) * bands).map(band).collect();
    let mut x: Vec<Rows> = (0..SIZE / ROWS).map(rows).collect();
    let mut own = vec![[[0.0; SIZE]; ROWS]; bands];
    let time = timed(world, || {
        for _ in 0..PRODUCTS {
            multiply(&mut own, &a, &x);
            let (own, x) = (own.as_flattened(), x.as_flattened_mut());
            world.all_gather_into(own.as_flattened(), x.as_flattened_mut());
        }
    });
    (time, x.as_flattened().as_flattened().to_vec())
}

/// Some rows of `a` at the start.
fn band(number: usize) -> Band {
    let at = |row, column| element([number * ROWS + row, column], SEED_A, scale());
    std::array::from_fn(|column| std::array::from_fn(|row| at(row, column)))
}

/// Some rows of `x` at the start.
fn rows(number: usize) -> Rows {
    let at = |row, column| element([number * ROWS + row, column], SEED_X, 1.0);
    std::array::from_fn(|row| std::array::from_fn(|column| at(row, column)))
}

/// Some rows of a product. Columns of `x` are packed strip by strip, so that both factors are read in
/// order.
fn multiply(own: &mut [Rows], a: &[Band], x: &[Rows]) {
    let mut strip = vec![[0.0; COLUMNS]; SIZE];
    for first in (0..SIZE).step_by(COLUMNS) {
        for (packed, row) in strip.iter_mut().zip(x.as_flattened()) {
            packed.copy_from_slice(&row[first..first + COLUMNS]);
        }
        for (own, band) in own.iter_mut().zip(a) {
            for (row, sums) in own.iter_mut().zip(block(band, &strip)) {
                row[first..first + COLUMNS].copy_from_slice(&sums);
            }
        }
    }
}

/// A block of a product, summed in order.
#[inline]
fn block(band: &Band, strip: &[[f32; COLUMNS]]) -> [[f32; COLUMNS]; ROWS] {
    let mut sums = [[0.0; COLUMNS]; ROWS];
    for (a, x) in band.iter().zip(strip) {
        for row in 0..ROWS {
            for column in 0..COLUMNS {
                sums[row][column] += a[row] * x[column];
            }
        }
    }
    sums
}

fn ours() -> celerity::Result<(Duration, Vec<f32>)> {
    celerity::run(|queue| {
        let range = [SIZE; 2];
        let [a, mut x, mut next] =
            ["a", "x", "next"].map(|name| queue.buffer::<f32, 2>(range).named(name));
        for (matrix, seed, scale) in [(&a, SEED_A, scale()), (&x, SEED_X, 1.0)] {
            let fill = matrix_fill { seed, scale };
            queue.task("fill").launch(range, matrix.write(one_to_one()), fill)?;
        }
        let time = shortest(PROGRAM_WINDOWS, || {
            for _ in 0..PRODUCTS {
                panels::product(panels::task(queue), &next, &a, &x)?;
                std::mem::swap(&mut x, &mut next);
            }
            queue.barrier()
        })?;
        Ok((time, queue.fence(&x)?.wait()?.into_vec()))
    })
}

/// With the loops by hand as a kernel, called for all rows of a process at once.
fn ours_by_hand() -> celerity::Result<(Duration, Vec<f32>)> {
    celerity::run(|queue| {
        let bands = SIZE / ROWS;
        let a: Vec<Band> = (0..bands).map(band).collect();
        let x: Vec<Rows> = (0..bands).map(rows).collect();
        let a = queue.buffer_from(bands, a)?.named("a");
        let mut x = queue.buffer_from(bands, x)?.named("x");
        let mut next = queue.buffer::<Rows, 1>(bands).named("next");
        let time = shortest(PROGRAM_WINDOWS, || {
            for _ in 0..PRODUCTS {
                let accesses = (next.write(one_to_one()), a.read(one_to_one()), x.read(all()));
                queue.task("product").parallel_for_rows(bands, accesses, |_, (next, a, x)| {
                    multiply(next, a, x.as_slice());
                })?;
                std::mem::swap(&mut x, &mut next);
            }
            queue.barrier()
        })?;
        let x = queue.fence(&x)?.wait()?;
        Ok((time, x.as_slice().as_flattened().as_flattened().to_vec()))
    })
}
