//! The sums of all elements up to each: blocks are summed up, then gone through with what comes
//! before them. Once with everything in place, and once from a `Vec` on.
#![allow(unsafe_code)]

use std::sync::Mutex;

use celerity::prelude::*;
use rayon::prelude::*;

use crate::spent::{Spent, Stopwatch};
use crate::turns::{Case, case, timed, timed_by_hand};

const N: usize = 1 << 22;
const BLOCK: usize = 4096;
const BLOCKS: usize = N / BLOCK;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case("scan, by slices", (N, 20), by_hand, |steps| ours(steps, Form::Slices)),
        case("scan, by index", (N, 20), by_hand, |steps| ours(steps, Form::Index)),
        case("scan, to new memory each time", (N, 20), anew_by_hand, anew),
        case("scan, the first of a new `Vec`", (N, 1), |_| once_by_hand(), |_| once()),
    ]
}

/// How a kernel goes through a block.
#[derive(Clone, Copy)]
enum Form {
    Slices,
    Index,
}

fn given() -> Vec<u64> {
    (0..N as u64).map(|i| i * 7919 % 1009).collect()
}

fn scan_by_hand(values: &[u64], out: &mut [u64]) {
    let mut sums: Vec<u64> = values.par_chunks(BLOCK).map(|block| block.iter().sum()).collect();
    let mut before = 0;
    for sum in &mut sums {
        before += std::mem::replace(sum, before);
    }
    let blocks = out.par_chunks_mut(BLOCK).zip(values.par_chunks(BLOCK));
    blocks.zip(sums).for_each(|((out, values), mut sum)| {
        for (out, value) in out.iter_mut().zip(values) {
            sum += value;
            *out = sum;
        }
    });
}

fn by_hand(steps: usize) -> (Spent, Vec<u64>) {
    let (values, mut out) = (given(), vec![0; N]);
    let time = timed_by_hand(steps, || scan_by_hand(&values, &mut out));
    (time, out)
}

fn anew_by_hand(steps: usize) -> (Spent, Vec<u64>) {
    let (values, mut out) = (given(), Vec::new());
    let time = timed_by_hand(steps, || {
        out = vec![0; N];
        scan_by_hand(&values, &mut out);
    });
    (time, out)
}

fn once_by_hand() -> (Spent, Vec<u64>) {
    let values = given();
    let watch = Stopwatch::start();
    let mut out = vec![0; N];
    scan_by_hand(&values, &mut out);
    (watch.read(), out)
}

/// What blocks hold.
fn elements(blocks: Chunk<1>, _: [usize; 1]) -> Subrange<1> {
    Subrange { offset: [blocks.offset[0] * BLOCK], range: [blocks.range[0] * BLOCK] }
}

/// A buffer for the results, and one for the sums of blocks.
fn room(queue: &Queue) -> (Buffer<u64, 1>, Buffer<u64, 1>) {
    (queue.buffer::<u64, 1>(N).named("out"), queue.buffer::<u64, 1>(BLOCKS).named("sums"))
}

/// Submits a scan.
fn scan(
    queue: &Queue,
    values: &Buffer<u64, 1>,
    (out, sums): &(Buffer<u64, 1>, Buffer<u64, 1>),
    form: Form,
) -> celerity::Result<()> {
    let read = || values.read(mapper("elements of blocks", elements));
    let accesses = (sums.write(one_to_one()), read());
    queue.task("sums").parallel_for(BLOCKS, accesses, |item, (sum, values)| {
        *sum = values[item[0] * BLOCK..(item[0] + 1) * BLOCK].iter().sum();
    })?;
    queue.host_task("before").once(sums.read_write(all()), |mut sums| {
        let mut before = 0;
        for sum in sums.as_mut_slice() {
            before += std::mem::replace(sum, before);
        }
    })?;
    // SAFETY: blocks share no elements.
    let own = unsafe { disjoint_mapper("elements of blocks", elements) };
    let (task, accesses) = (queue.task("scan"), (out.write(own), read(), sums.read(one_to_one())));
    match form {
        Form::Slices => task.parallel_for(BLOCKS, accesses, |_, (mut out, values, &sum)| {
            let (mut sum, values) = (sum, &values[out.indices()]);
            for (out, value) in out.iter_mut().zip(values) {
                sum += value;
                *out = sum;
            }
        })?,
        Form::Index => task.parallel_for(BLOCKS, accesses, |item, (mut out, values, &sum)| {
            let mut sum = sum;
            for i in item[0] * BLOCK..(item[0] + 1) * BLOCK {
                sum += values[i];
                out[i] = sum;
            }
        })?,
    };
    Ok(())
}

fn ours(steps: usize, form: Form) -> celerity::Result<(Spent, Vec<u64>)> {
    Config::default().run(|queue| {
        let (values, room) = (queue.buffer_from(N, given())?, room(queue));
        let time = timed(queue, steps, || scan(queue, &values, &room, form))?;
        Ok((time, queue.fence(&room.0)?.wait()?.into_vec()))
    })
}

/// With a buffer of its own for each step's results.
fn anew(steps: usize) -> celerity::Result<(Spent, Vec<u64>)> {
    Config::default().run(|queue| {
        let (values, mut room) = (queue.buffer_from(N, given())?, room(queue));
        let time = timed(queue, steps, || {
            room.0 = queue.buffer(N);
            scan(queue, &values, &room, Form::Slices)
        })?;
        Ok((time, queue.fence(&room.0)?.wait()?.into_vec()))
    })
}

/// From a `Vec` to the results, which are not fetched.
fn once() -> celerity::Result<(Spent, Vec<u64>)> {
    let values = Mutex::new(given());
    Config::default().run(|queue| {
        let values = std::mem::take(&mut *values.lock().expect("nobody panics with it"));
        queue.barrier()?;
        let watch = Stopwatch::start();
        let (values, room) = (queue.buffer_from(N, values)?, room(queue));
        scan(queue, &values, &room, Form::Slices)?;
        queue.barrier()?;
        Ok((watch.read(), queue.fence(&room.0)?.wait()?.into_vec()))
    })
}
