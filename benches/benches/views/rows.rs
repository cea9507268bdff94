//! Rows of a matrix, each divided by its sum: parts of items, read and written, short and long.

use celerity::prelude::*;
use rayon::prelude::*;

use crate::spent::Spent;
use crate::turns::{Case, case, timed, timed_by_hand};

const N: usize = 1 << 21;

pub(crate) fn cases() -> Vec<Case> {
    let both = |width| {
        let by_slices = case(
            format!("rows of {width}, by slices"),
            (N, 20),
            move |steps| by_hand(width, steps, scale_slices),
            move |steps| ours(width, steps, Form::Slices),
        );
        let by_index = case(
            format!("rows of {width}, by index"),
            (N, 20),
            move |steps| by_hand(width, steps, scale_by_index),
            move |steps| ours(width, steps, Form::Index),
        );
        [by_slices, by_index]
    };
    [16, 64, 1024].into_iter().flat_map(both).collect()
}

/// How a kernel goes through a row.
#[derive(Clone, Copy)]
enum Form {
    Slices,
    Index,
}

fn given() -> Vec<f32> {
    (0..N).map(|i| (i * 7919 % 1009 + 1) as f32).collect()
}

fn scale_slices(out: &mut [f32], row: &[f32]) {
    let sum: f32 = row.iter().sum();
    for (out, x) in out.iter_mut().zip(row) {
        *out = x / sum;
    }
}

#[expect(clippy::needless_range_loop, reason = "that is what is compared")]
fn scale_by_index(out: &mut [f32], row: &[f32]) {
    let mut sum = 0.0;
    for x in 0..row.len() {
        sum += row[x];
    }
    for x in 0..row.len() {
        out[x] = row[x] / sum;
    }
}

fn by_hand(
    width: usize,
    steps: usize,
    scale: impl Fn(&mut [f32], &[f32]) + Sync,
) -> (Spent, Vec<f32>) {
    let (values, mut out) = (given(), vec![0.0; N]);
    let rows = |out: &mut [f32]| {
        let rows = out.par_chunks_mut(width).zip(values.par_chunks(width));
        rows.for_each(|(out, row)| scale(out, row));
    };
    let time = timed_by_hand(steps, || rows(&mut out));
    (time, out)
}

fn ours(width: usize, steps: usize, form: Form) -> celerity::Result<(Spent, Vec<f32>)> {
    Config::default().run(|queue| {
        let rows = N / width;
        let values = queue.buffer_from([rows, width], given())?;
        let out = queue.buffer::<f32, 2>([rows, width]);
        let time = timed(queue, steps, || {
            let (task, accesses) =
                (queue.task("scale"), (out.write(slice(1)), values.read(slice(1))));
            match form {
                Form::Slices => {
                    task.parallel_for([rows, 1], accesses, |item, (mut out, values)| {
                        let (mut out, row) = (out.row_mut([item[0]]), values.row([item[0]]));
                        let sum: f32 = row.iter().sum();
                        for (out, x) in out.iter_mut().zip(row) {
                            *out = x / sum;
                        }
                    })?
                }
                Form::Index => {
                    task.parallel_for([rows, 1], accesses, |item, (mut out, values)| {
                        let (mut out, row) = (out.row_mut([item[0]]), values.row([item[0]]));
                        let mut sum = 0.0;
                        for x in row.indices() {
                            sum += row[x];
                        }
                        for x in row.indices() {
                            out[x] = row[x] / sum;
                        }
                    })?
                }
            };
            Ok(())
        })?;
        Ok((time, queue.fence(&out)?.wait()?.into_vec()))
    })
}
