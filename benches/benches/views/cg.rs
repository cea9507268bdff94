//! Conjugate gradients over a sparse matrix in compressed rows.
use std::sync::Arc;

use celerity::prelude::*;
use rayon::prelude::*;

use crate::cpu_time::{Stopwatch, Times};

/// Unknowns along each edge of the grid.
const EDGE: usize = 512;
const N: usize = EDGE * EDGE;
const BLOCK: usize = 1024;
const BLOCKS: usize = N / BLOCK;

pub struct Matrix {
    ptr: Vec<usize>,
    col: Vec<u32>,
    val: Vec<f64>,
}

pub fn laplacian() -> Matrix {
    let (mut ptr, mut col, mut val) = (vec![0], vec![], vec![]);
    for (y, x) in (0..EDGE).flat_map(|y| (0..EDGE).map(move |x| (y, x))) {
        let mut put = |y: usize, x: usize, v: f64| {
            col.push((y * EDGE + x) as u32);
            val.push(v);
        };
        if y > 0 { put(y - 1, x, -1.0); }
        if x > 0 { put(y, x - 1, -1.0); }
        put(y, x, 4.0);
        if x + 1 < EDGE { put(y, x + 1, -1.0); }
        if y + 1 < EDGE { put(y + 1, x, -1.0); }
        ptr.push(col.len());
    }
    Matrix { ptr, col, val }
}

fn right_hand_side() -> Vec<f64> {
    (0..N).map(|i| ((i * 7919 + 13) % 1009) as f64 * 1e-3).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    let blocks: Vec<f64> = a
        .par_chunks(BLOCK)
        .zip(b.par_chunks(BLOCK))
        .map(|(a, b)| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>())
        .collect();
    blocks.iter().sum()
}

pub fn by_hand(a: &Matrix, steps: usize) -> (Times, Vec<f64>) {
    let b = right_hand_side();
    let (mut x, mut r, mut p, mut q) = (vec![0.0; N], b.clone(), b, vec![0.0; N]);
    let mut rr = dot(&r, &r);
    let mut watch = Stopwatch::start();
    for step in 0..=steps {
        if step == 1 {
            watch = Stopwatch::start();
        }
        q.par_iter_mut().enumerate().for_each(|(i, q)| {
            let mut sum = 0.0;
            for k in a.ptr[i]..a.ptr[i + 1] {
                sum += a.val[k] * p[a.col[k] as usize];
            }
            *q = sum;
        });
        let alpha = rr / dot(&p, &q);
        x.par_iter_mut().zip(&mut r).zip(&p).zip(&q).for_each(|(((x, r), p), q)| {
            *x += alpha * p;
            *r -= alpha * q;
        });
        let next = dot(&r, &r);
        let beta = next / rr;
        rr = next;
        p.par_iter_mut().zip(&r).for_each(|(p, r)| *p = r + beta * *p);
    }
    (watch.read(), x)
}

fn block(chunk: Chunk<1>, _: [usize; 1]) -> Subrange<1> {
    Subrange { offset: [chunk.offset[0] * BLOCK], range: [chunk.range[0] * BLOCK] }
}

fn submit_dot(
    queue: &Queue,
    partial: &Buffer<f64, 1>,
    a: &Buffer<f64, 1>,
    b: &Buffer<f64, 1>,
) -> celerity::Result<()> {
    let blocks = || mapper("blocks", block);
    let accesses = (partial.write(one_to_one()), a.read(blocks()), b.read(blocks()));
    if std::ptr::eq(a, b) {
        let accesses = (partial.write(one_to_one()), a.read(blocks()));
        queue.task("norm").parallel_for(BLOCKS, accesses, |item, (partial, a)| {
            let mut sum = 0.0;
            for i in item[0] * BLOCK..(item[0] + 1) * BLOCK {
                sum += a[i] * a[i];
            }
            *partial = sum;
        })?;
        return Ok(());
    }
    queue.task("dot").parallel_for(BLOCKS, accesses, |item, (partial, a, b)| {
        let mut sum = 0.0;
        for i in item[0] * BLOCK..(item[0] + 1) * BLOCK {
            sum += a[i] * b[i];
        }
        *partial = sum;
    })?;
    Ok(())
}

pub fn ours(a: &Matrix, steps: usize) -> celerity::Result<(Times, Vec<f64>)> {
    let rows: Arc<[usize]> = a.ptr.clone().into();
    Config::default().run(|queue| {
        let nnz = a.val.len();
        let ptr = queue.buffer_from(N + 1, a.ptr.clone())?;
        let col = queue.buffer_from(nnz, a.col.clone())?;
        let val = queue.buffer_from(nnz, a.val.clone())?;
        let b = right_hand_side();
        let x = queue.buffer_from(N, vec![0.0; N])?;
        let r = queue.buffer_from(N, b.clone())?;
        let p = queue.buffer_from(N, b)?;
        let q = queue.buffer::<f64, 1>(N);
        let partial = queue.buffer::<f64, 1>(BLOCKS);
        let (rr, alpha, beta) =
            (queue.buffer::<f64, 0>([]), queue.buffer::<f64, 0>([]), queue.buffer::<f64, 0>([]));
        submit_dot(queue, &partial, &r, &r)?;
        queue.task("rr").parallel_for([], (rr.write(one_to_one()), partial.read(all())), |_, (rr, partial)| {
            *rr = partial.iter().sum();
        })?;
        let ends = mapper("row ends", |chunk: Chunk<1>, _: [usize; 1]| Subrange {
            offset: chunk.offset,
            range: [chunk.range[0] + 1],
        });
        let rows = rows.clone();
        let entries = mapper("rows", move |chunk: Chunk<1>, _: [usize; 1]| {
            let first = rows[chunk.offset[0]];
            Subrange { offset: [first], range: [rows[chunk.offset[0] + chunk.range[0]] - first] }
        });
        let mut watch = Stopwatch::start();
        for step in 0..=steps {
            if step == 1 {
                queue.barrier()?;
                watch = Stopwatch::start();
            }
            let accesses = (
                q.write(one_to_one()),
                ptr.read(ends.clone()),
                col.read(entries.clone()),
                val.read(entries.clone()),
                p.read(all()),
            );
            queue.task("spmv").parallel_for(N, accesses, |item, (q, ptr, col, val, p)| {
                let i = item[0];
                let mut sum = 0.0;
                for k in ptr[i]..ptr[i + 1] {
                    sum += val[k] * p[col[k] as usize];
                }
                *q = sum;
            })?;
            submit_dot(queue, &partial, &p, &q)?;
            let accesses = (alpha.write(one_to_one()), rr.read(all()), partial.read(all()));
            queue.task("alpha").parallel_for([], accesses, |_, (alpha, rr, partial)| {
                *alpha = rr[[]] / partial.iter().sum::<f64>();
            })?;
            let accesses = (
                x.read_write(one_to_one()),
                r.read_write(one_to_one()),
                p.read(one_to_one()),
                q.read(one_to_one()),
                alpha.read(all()),
            );
            queue.task("advance").parallel_for(N, accesses, |_, (x, r, p, q, alpha)| {
                let alpha = alpha[[]];
                *x += alpha * p;
                *r -= alpha * q;
            })?;
            submit_dot(queue, &partial, &r, &r)?;
            let accesses =
                (beta.write(one_to_one()), rr.read_write(one_to_one()), partial.read(all()));
            queue.task("beta").parallel_for([], accesses, |_, (beta, rr, partial)| {
                let next: f64 = partial.iter().sum();
                *beta = next / *rr;
                *rr = next;
            })?;
            let accesses = (p.read_write(one_to_one()), r.read(one_to_one()), beta.read(all()));
            queue.task("direction").parallel_for(N, accesses, |_, (p, r, beta)| {
                *p = r + beta[[]] * *p;
            })?;
        }
        queue.barrier()?;
        let times = watch.read();
        let x = queue.fence(&x)?.wait()?;
        Ok((times, x.into_vec()))
    })
}
