//! Whole kernels that multiply matrices: element by element, as the example has it, row by row, and tile by tile in groups.

use celerity::prelude::*;
use celerity::{Result, TaskId};
use celerity_example_kernels::groups::{TILE, matmul};
use celerity_example_kernels::linear::{element, multiply};
use rayon::prelude::*;

use crate::spent::Spent;
use crate::turns::{Case, case, timed, timed_by_hand};

const N: usize = 256;
const RANGE: [usize; 2] = [N, N];

pub(crate) fn cases() -> Vec<Case> {
    let of = |form: &str, by_hand: Row, submit: Submit| {
        let name = format!("matmul, by {form}");
        let steps = (N * N * N, 4);
        case(name, steps, move |steps| hand(steps, by_hand), move |steps| ours(steps, submit))
    };
    vec![
        of("items", elements_of_row, |queue, out, a, b| {
            let accesses = (out.write(one_to_one()), a.read(slice(1)), b.read(slice(0)));
            queue.task("product").launch(RANGE, accesses, multiply)
        }),
        of("rows", row_of_rows, |queue, out, a, b| {
            let accesses = (out.write(one_to_one()), a.read(slice(1)), b.read(all()));
            queue.task("product").parallel_for_rows(RANGE, accesses, |row, (out, a, b)| {
                let [y, x] = row.start();
                let a = a.row([y]);
                out.fill(0.0);
                for k in a.indices() {
                    add_scaled(out, a[k], &b.row([k])[x..x + out.len()]);
                }
            })
        }),
        of("groups", row_of_rows, |queue, out, a, b| {
            let accesses = (out.write(one_to_one()), a.read(slice(1)), b.read(slice(0)));
            let kernel = matmul { shared: N };
            queue.task("product").launch(nd_range(RANGE, [TILE, TILE]), accesses, kernel)
        }),
    ]
}

/// Makes a row of the product: of a row of the first factor, and all of the second.
type Row = fn(&mut [f32], &[f32], &[f32]);

/// Submits a product.
type Submit = fn(&Queue, &Buffer<f32, 2>, &Buffer<f32, 2>, &Buffer<f32, 2>) -> Result<TaskId>;

fn elements_of_row(out: &mut [f32], a: &[f32], b: &[f32]) {
    for (x, out) in out.iter_mut().enumerate() {
        let column = b[x..].iter().step_by(N);
        *out = a.iter().zip(column).fold(0.0, |sum, (a, b)| sum + a * b);
    }
}

fn row_of_rows(out: &mut [f32], a: &[f32], b: &[f32]) {
    out.fill(0.0);
    for (a, b) in a.iter().zip(b.chunks_exact(N)) {
        add_scaled(out, *a, b);
    }
}

#[inline]
fn add_scaled(sums: &mut [f32], factor: f32, row: &[f32]) {
    sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += factor * x);
}

fn given(seed: u64) -> Vec<f32> {
    (0..N * N).map(|at| element([at / N, at % N], seed, 1.0)).collect()
}

fn hand(steps: usize, row: Row) -> (Spent, Vec<f32>) {
    let (a, b, mut out) = (given(1), given(2), vec![0.0; N * N]);
    let time = timed_by_hand(steps, || {
        let rows = out.par_chunks_mut(N).zip(a.par_chunks(N));
        rows.for_each(|(out, a)| row(out, a, &b));
    });
    (time, out)
}

fn ours(steps: usize, submit: Submit) -> Result<(Spent, Vec<f32>)> {
    Config::default().run(|queue| {
        let (a, b) = (queue.buffer_from(RANGE, given(1))?, queue.buffer_from(RANGE, given(2))?);
        let out = queue.buffer(RANGE);
        let time = timed(queue, steps, || submit(queue, &out, &a, &b).map(drop))?;
        Ok((time, queue.fence(&out)?.wait()?.into_vec()))
    })
}
