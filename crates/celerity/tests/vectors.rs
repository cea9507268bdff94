//! Vectors of elements through views, on whatever devices there are: with rows that are aligned for wide
//! loads and rows that are not, however a task is split. On a machine with GPUs and a facade that has
//! them, the same tests run there.

use celerity::prelude::*;
use celerity::{Platform, Result};
use celerity_example_kernels::vectors::{VECTOR, mirror_vectors, sum_vectors};

/// Runs the program on CPUs, and on what there is on one node and on several, which share a GPU if need be.
fn everywhere<R: Send>(program: impl Fn(&Queue) -> Result<R> + Sync, check: impl Fn(R)) {
    let cpu = || Config::default().platform(Platform::Cpu);
    let there = || Config::from_env().unwrap();
    let cpus = [[1, 1], [1, 3], [2, 2], [5, 1]].map(|cluster| (cpu(), cluster));
    let others = [1, 2].map(|nodes| (there(), [nodes, 1]));
    for (config, [nodes, devices]) in cpus.into_iter().chain(others) {
        let run = config.nodes(nodes).devices(devices).share_gpus(true).run(&program);
        check(run.unwrap_or_else(|error| panic!("on {nodes} × {devices}: {error}")));
    }
}

macro_rules! check_vectors {
    ($number:ty, $rows:expr, $columns:expr) => {{
        let (rows, columns, runs): (usize, usize, usize) = ($rows, $columns, $columns / VECTOR);
        let value = |at: usize| at as $number + 0.5;
        let program = |queue: &Queue| {
            let values: Vec<$number> = (0..rows * columns).map(value).collect();
            let u = queue.buffer_from([rows, columns], values.clone())?;
            let line = queue.buffer_from(rows * columns, values.clone())?;
            let mirrored = queue.buffer_from([rows, columns], values)?;
            let sums = queue.buffer::<$number, 1>(rows * columns - VECTOR + 1);
            let of_run = per_dimension([Side::along(0), Side::along(1).stride(VECTOR)]);
            let accesses = (mirrored.read_write(blocks([1, VECTOR])), u.read(of_run));
            queue.task("mirror").launch(
                [rows, runs],
                accesses,
                mirror_vectors::<$number>::new(),
            )?;
            let accesses = (sums.write(one_to_one()), line.read(all()));
            queue.task("sum").launch(sums.range(), accesses, sum_vectors::<$number>::new())?;
            let (mirrored, sums) = (queue.fence(&mirrored)?, queue.fence(&sums)?);
            Ok((mirrored.wait()?.into_vec(), sums.wait()?.into_vec()))
        };
        everywhere(program, |(mirrored, sums)| {
            for (at, found) in mirrored.into_iter().enumerate() {
                let (row, x) = (at / columns, at % columns);
                let of = if x < runs * VECTOR {
                    x / VECTOR * VECTOR + VECTOR - 1 - x % VECTOR
                } else {
                    x
                };
                assert_eq!(found, value(row * columns + of), "{row}, {x} of {rows} × {columns}");
            }
            for (at, found) in sums.into_iter().enumerate() {
                let expected: $number = (at..at + VECTOR).map(value).sum();
                assert_eq!(found, expected, "from {at} on, of {}", rows * columns);
            }
        });
    }};
}

#[test]
fn vectors_of_rows_that_are_aligned() {
    check_vectors!(f32, 6, 32);
    check_vectors!(f64, 6, 16);
}

#[test]
fn vectors_of_rows_that_are_not_aligned() {
    check_vectors!(f32, 7, 33);
    check_vectors!(f32, 5, 18);
    check_vectors!(f64, 7, 23);
}

#[test]
fn one_vector_and_none_in_rows_that_are_too_short() {
    check_vectors!(f32, 1, 4);
    check_vectors!(f64, 2, 3);
}
