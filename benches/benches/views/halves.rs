//! Whole kernels in groups that meet often and do little in between: sums by halves, for each group of numbers.

use celerity::Result;
use celerity::prelude::*;
use celerity_example_kernels::groups::{SUMMANDS, group_sum};
use rayon::prelude::*;

use crate::spent::Spent;
use crate::turns::{Case, case, timed, timed_by_hand};

const N: usize = 1 << 17;

pub(crate) fn cases() -> Vec<Case> {
    vec![case("sums by halves, by groups".to_owned(), (N, 4), hand, ours)]
}

fn given() -> Vec<f64> {
    (0..N).map(|at| (at * 7919 % 1009) as f64 / 1009.0).collect()
}

/// The loops over items between two barriers, one after the other.
fn hand(steps: usize) -> (Spent, Vec<f64>) {
    let (values, mut sums) = (given(), vec![0.0; N]);
    let time = timed_by_hand(steps, || {
        let groups = sums.par_chunks_mut(SUMMANDS).zip(values.par_chunks(SUMMANDS));
        groups.for_each(|(sums, values)| {
            let mut partial = [0.0; SUMMANDS];
            partial.copy_from_slice(values);
            let mut half = SUMMANDS / 2;
            while half > 0 {
                let (into, from) = partial.split_at_mut(half);
                into.iter_mut().zip(from).for_each(|(into, from)| *into += *from);
                half /= 2;
            }
            sums.fill(partial[0]);
        });
    });
    (time, sums)
}

fn ours(steps: usize) -> Result<(Spent, Vec<f64>)> {
    Config::default().run(|queue| {
        let (values, sums) = (queue.buffer_from(N, given())?, queue.buffer::<f64, 1>(N));
        let time = timed(queue, steps, || {
            let accesses = (sums.write(one_to_one()), values.read(one_to_one()));
            queue.task("sum").launch(nd_range(N, SUMMANDS), accesses, group_sum).map(drop)
        })?;
        Ok((time, queue.fence(&sums)?.wait()?.into_vec()))
    })
}
