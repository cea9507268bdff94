//! Whole kernels that price options, as the example has them: arithmetic, and little memory.

use celerity::prelude::*;
use celerity::{Result, TaskId};
use celerity_example_kernels::finance::{Contract, Prices, black_scholes, contract, prices};
use rayon::prelude::*;

use crate::spent::Spent;
use crate::turns::{Case, case, timed, timed_by_hand};

const OPTIONS: usize = 1 << 16;
const ELAPSED: f32 = 0.1;
const RATE: f32 = 0.02;
const VOLATILITY: f32 = 0.3;

pub(crate) fn cases() -> Vec<Case> {
    let of = |form: &str, submit: Submit| {
        let name = format!("black_scholes, by {form}");
        case(name, (OPTIONS, 10), by_hand, move |steps| ours(steps, submit))
    };
    vec![
        of("items", |queue, out, contracts| {
            let accesses = (out.write(one_to_one()), contracts.read(one_to_one()));
            let kernel = black_scholes { elapsed: ELAPSED, rate: RATE, volatility: VOLATILITY };
            queue.task("price").launch(OPTIONS, accesses, kernel)
        }),
        of("items of a closure", |queue, out, contracts| {
            let accesses = (out.write(one_to_one()), contracts.read(one_to_one()));
            queue.task("price").parallel_for(OPTIONS, accesses, |_, (out, contract)| {
                *out = price(*contract);
            })
        }),
        of("rows of a closure", |queue, out, contracts| {
            let accesses = (out.write(one_to_one()), contracts.read(one_to_one()));
            queue.task("price").parallel_for_rows(OPTIONS, accesses, |_, (out, contracts)| {
                for (out, contract) in out.iter_mut().zip(contracts) {
                    *out = price(*contract);
                }
            })
        }),
    ]
}

/// Submits a task that prices contracts.
type Submit = fn(&Queue, &Buffer<Prices, 1>, &Buffer<Contract, 1>) -> Result<TaskId>;

#[inline]
fn price([share, strike, years]: Contract) -> Prices {
    prices([share, strike, years - ELAPSED], RATE, VOLATILITY)
}

fn given() -> Vec<Contract> {
    (0..OPTIONS).map(contract).collect()
}

fn by_hand(steps: usize) -> (Spent, Vec<Prices>) {
    let (contracts, mut out) = (given(), vec![[0.0; 2]; OPTIONS]);
    let time = timed_by_hand(steps, || {
        let options = out.par_iter_mut().zip(&contracts);
        options.for_each(|(out, contract)| *out = price(*contract));
    });
    (time, out)
}

fn ours(steps: usize, submit: Submit) -> Result<(Spent, Vec<Prices>)> {
    Config::default().run(|queue| {
        let (contracts, out) = (queue.buffer_from(OPTIONS, given())?, queue.buffer(OPTIONS));
        let time = timed(queue, steps, || submit(queue, &out, &contracts).map(drop))?;
        Ok((time, queue.fence(&out)?.wait()?.into_vec()))
    })
}
