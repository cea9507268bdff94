//! Conjugate gradients: a sparse matrix in compressed rows times a vector, dot products in blocks,
//! scalars in buffers without dimensions.

use std::sync::Arc;

use celerity::prelude::*;
use rayon::prelude::*;

use crate::spent::Spent;
use crate::turns::{Case, case, timed, timed_by_hand};

/// Unknowns along each edge of a square grid.
const EDGE: usize = 512;
const N: usize = EDGE * EDGE;
/// Elements that are summed up at once.
const BLOCK: usize = 1024;
const BLOCKS: usize = N / BLOCK;

pub(crate) fn cases() -> Vec<Case> {
    let [hand, ours] = [(); 2].map(|()| Arc::new(Matrix::laplacian()));
    let whole = case(
        "conjugate gradients, a step",
        (N, 50),
        {
            let hand = hand.clone();
            move |steps| solve_by_hand(&hand, steps)
        },
        {
            let ours = ours.clone();
            move |steps| solve(&ours, steps)
        },
    );
    let product = case(
        "sparse matrix times vector",
        (N, 100),
        move |steps| product_by_hand(&hand, steps),
        move |steps| product(&ours, steps),
    );
    vec![product, whole]
}

/// A sparse matrix in compressed rows.
struct Matrix {
    /// Where each row begins in the other two, and where the last one ends.
    ends: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Matrix {
    /// The five-point stencil of Laplace's equation on the grid.
    fn laplacian() -> Self {
        let mut matrix = Self { ends: vec![0], columns: Vec::new(), values: Vec::new() };
        for (y, x) in (0..EDGE).flat_map(|y| (0..EDGE).map(move |x| (y, x))) {
            let north = y.checked_sub(1).map(|y| (y, x, -1.0));
            let west = x.checked_sub(1).map(|x| (y, x, -1.0));
            let east = (x + 1 < EDGE).then_some((y, x + 1, -1.0));
            let south = (y + 1 < EDGE).then_some((y + 1, x, -1.0));
            let row = [north, west, Some((y, x, 4.0)), east, south].into_iter().flatten();
            for (y, x, value) in row {
                matrix.columns.push((y * EDGE + x) as u32);
                matrix.values.push(value);
            }
            matrix.ends.push(matrix.columns.len());
        }
        matrix
    }
}

/// The right-hand side.
fn given() -> Vec<f64> {
    (0..N).map(|i| ((i * 7919 + 13) % 1009) as f64 * 1e-3).collect()
}

fn multiply_by_hand(a: &Matrix, x: &[f64], y: &mut [f64]) {
    y.par_iter_mut().enumerate().for_each(|(row, y)| {
        let mut sum = 0.0;
        for at in a.ends[row]..a.ends[row + 1] {
            sum += a.values[at] * x[a.columns[at] as usize];
        }
        *y = sum;
    });
}

fn dot_by_hand(a: &[f64], b: &[f64]) -> f64 {
    let blocks: Vec<f64> = a
        .par_chunks(BLOCK)
        .zip(b.par_chunks(BLOCK))
        .map(|(a, b)| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>())
        .collect();
    blocks.iter().sum()
}

fn product_by_hand(a: &Matrix, steps: usize) -> (Spent, Vec<f64>) {
    let (x, mut y) = (given(), vec![0.0; N]);
    let time = timed_by_hand(steps, || multiply_by_hand(a, &x, &mut y));
    (time, y)
}

fn solve_by_hand(a: &Matrix, steps: usize) -> (Spent, Vec<f64>) {
    let (mut x, mut r, mut p, mut q) = (vec![0.0; N], given(), given(), vec![0.0; N]);
    let mut rr = dot_by_hand(&r, &r);
    let time = timed_by_hand(steps, || {
        multiply_by_hand(a, &p, &mut q);
        let alpha = rr / dot_by_hand(&p, &q);
        x.par_iter_mut().zip(&mut r).zip(&p).zip(&q).for_each(|(((x, r), p), q)| {
            *x += alpha * p;
            *r -= alpha * q;
        });
        let next = dot_by_hand(&r, &r);
        let beta = next / rr;
        rr = next;
        p.par_iter_mut().zip(&r).for_each(|(p, r)| *p = r + beta * *p);
    });
    (time, x)
}

/// The matrix in buffers, with the mappers that say what of it a run of rows needs.
struct Sparse {
    ends: Buffer<usize, 1>,
    columns: Buffer<u32, 1>,
    values: Buffer<f64, 1>,
    /// Where rows begin, for range mappers.
    starts: Arc<[usize]>,
}

impl Sparse {
    fn new(queue: &Queue, matrix: &Matrix) -> celerity::Result<Self> {
        Ok(Self {
            ends: queue.buffer_from(N + 1, matrix.ends.clone())?.named("ends"),
            columns: queue.buffer_from(matrix.columns.len(), matrix.columns.clone())?,
            values: queue.buffer_from(matrix.values.len(), matrix.values.clone())?,
            starts: matrix.ends.as_slice().into(),
        })
    }

    /// Submits `y = a x`.
    fn multiply(
        &self,
        queue: &Queue,
        x: &Buffer<f64, 1>,
        y: &Buffer<f64, 1>,
    ) -> celerity::Result<()> {
        let ends = mapper("ends of rows", |rows: Chunk<1>, _| Subrange {
            offset: rows.offset,
            range: [rows.range[0] + 1],
        });
        let entries = || {
            let starts = self.starts.clone();
            mapper("entries of rows", move |rows: Chunk<1>, _| {
                let [first] = rows.offset;
                let [start, end] = [starts[first], starts[first + rows.range[0]]];
                Subrange { offset: [start], range: [end - start] }
            })
        };
        let accesses = (
            y.write(one_to_one()),
            self.ends.read(ends),
            self.columns.read(entries()),
            self.values.read(entries()),
            x.read(all()),
        );
        queue.task("multiply").parallel_for(
            N,
            accesses,
            |item, (y, ends, columns, values, x)| {
                let mut sum = 0.0;
                for at in ends[item[0]]..ends[item[0] + 1] {
                    sum += values[at] * x[columns[at] as usize];
                }
                *y = sum;
            },
        )?;
        Ok(())
    }
}

/// What blocks of a vector hold of it.
fn elements(blocks: Chunk<1>, _: [usize; 1]) -> Subrange<1> {
    Subrange { offset: [blocks.offset[0] * BLOCK], range: [blocks.range[0] * BLOCK] }
}

/// Submits the dot products of all blocks of two vectors.
fn dot(
    queue: &Queue,
    blocks: &Buffer<f64, 1>,
    a: &Buffer<f64, 1>,
    b: &Buffer<f64, 1>,
) -> celerity::Result<()> {
    let own = || mapper("elements of blocks", elements);
    let accesses = (blocks.write(one_to_one()), a.read(own()), b.read(own()));
    queue.task("dot").parallel_for(BLOCKS, accesses, |item, (sum, a, b)| {
        let own = item[0] * BLOCK..(item[0] + 1) * BLOCK;
        *sum = a[own.clone()].iter().zip(&b[own]).map(|(a, b)| a * b).sum();
    })?;
    Ok(())
}

/// As [`dot`], of a vector with itself.
fn norm(queue: &Queue, blocks: &Buffer<f64, 1>, a: &Buffer<f64, 1>) -> celerity::Result<()> {
    let accesses = (blocks.write(one_to_one()), a.read(mapper("elements of blocks", elements)));
    queue.task("norm").parallel_for(BLOCKS, accesses, |item, (sum, a)| {
        *sum = a[item[0] * BLOCK..(item[0] + 1) * BLOCK].iter().map(|a| a * a).sum();
    })?;
    Ok(())
}

fn product(a: &Matrix, steps: usize) -> celerity::Result<(Spent, Vec<f64>)> {
    Config::default().run(|queue| {
        let (a, x) = (Sparse::new(queue, a)?, queue.buffer_from(N, given())?);
        let y = queue.buffer::<f64, 1>(N);
        let time = timed(queue, steps, || a.multiply(queue, &x, &y))?;
        Ok((time, queue.fence(&y)?.wait()?.into_vec()))
    })
}

fn solve(a: &Matrix, steps: usize) -> celerity::Result<(Spent, Vec<f64>)> {
    Config::default().run(|queue| {
        let a = Sparse::new(queue, a)?;
        let x = queue.buffer_from(N, vec![0.0; N])?.named("x");
        let r = queue.buffer_from(N, given())?.named("r");
        let p = queue.buffer_from(N, given())?.named("p");
        let q = queue.buffer::<f64, 1>(N).named("q");
        let blocks = queue.buffer::<f64, 1>(BLOCKS).named("sums of blocks");
        let [rr, alpha, beta] = [(); 3].map(|()| queue.buffer::<f64, 0>([]));
        norm(queue, &blocks, &r)?;
        let accesses = (rr.write(one_to_one()), blocks.read(all()));
        queue.task("r r").parallel_for([], accesses, |_, (rr, blocks)| {
            *rr = blocks.iter().sum();
        })?;
        let time = timed(queue, steps, || {
            a.multiply(queue, &p, &q)?;
            dot(queue, &blocks, &p, &q)?;
            let accesses = (alpha.write(one_to_one()), rr.read(one_to_one()), blocks.read(all()));
            queue.task("alpha").parallel_for([], accesses, |_, (alpha, rr, blocks)| {
                *alpha = rr / blocks.iter().sum::<f64>();
            })?;
            let accesses = (
                x.read_write(one_to_one()),
                r.read_write(one_to_one()),
                p.read(one_to_one()),
                q.read(one_to_one()),
                alpha.read(all()),
            );
            queue.task("advance").parallel_for(N, accesses, |_, (x, r, p, q, alpha)| {
                *x += alpha[[]] * p;
                *r -= alpha[[]] * q;
            })?;
            norm(queue, &blocks, &r)?;
            let accesses =
                (beta.write(one_to_one()), rr.read_write(one_to_one()), blocks.read(all()));
            queue.task("beta").parallel_for([], accesses, |_, (beta, rr, blocks)| {
                let next = blocks.iter().sum::<f64>();
                *beta = next / *rr;
                *rr = next;
            })?;
            let accesses = (p.read_write(one_to_one()), r.read(one_to_one()), beta.read(all()));
            queue.task("direction").parallel_for(N, accesses, |_, (p, r, beta)| {
                *p = r + beta[[]] * *p;
            })?;
            Ok(())
        })?;
        Ok((time, queue.fence(&x)?.wait()?.into_vec()))
    })
}
