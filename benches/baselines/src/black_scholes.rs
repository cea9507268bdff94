//! Prices of options: contracts over processes, which need nothing of each other.

use std::time::Duration;

use celerity::prelude::*;
use celerity_example_kernels::finance::{
    Contract, Prices, black_scholes, contract, draw_contracts, prices,
};
use mpi::topology::SimpleCommunicator;

use crate::spread::{compare, gathered, share, timed};
use crate::{PROGRAM_WINDOWS, place, shortest};

const OPTIONS: usize = 960_000;

/// In each measure.
const DAYS: usize = 4;

/// Interest and volatility of a year.
const RATE: f32 = 0.02;
const VOLATILITY: f32 = 0.3;

/// A row of a table: the number of processes, and how many prices both ways find.
pub(crate) fn print(world: &SimpleCommunicator, repetitions: usize) -> celerity::Result<()> {
    let name = format!("black_scholes, {OPTIONS} options [Moption/s]");
    let millions = (OPTIONS * DAYS) as f64 / 1e6;
    compare(world, repetitions, (&name, millions), || by_hand(world), ours)
}

fn by_hand(world: &SimpleCommunicator) -> (Duration, Vec<f32>) {
    let (rank, nodes) = place(world);
    let share = share(OPTIONS, nodes);
    let contracts: Vec<Contract> = (rank * share..(rank + 1) * share).map(contract).collect();
    let mut own: Vec<Prices> = vec![[0.0; 2]; share];
    let time = timed(world, || {
        for elapsed in (1..=DAYS).map(years) {
            for (own, &[price, strike, years]) in own.iter_mut().zip(&contracts) {
                *own = prices([price, strike, years - elapsed], RATE, VOLATILITY);
            }
        }
    });
    (time, gathered(world, own.as_flattened()))
}

fn ours() -> celerity::Result<(Duration, Vec<f32>)> {
    celerity::run(|queue| {
        let contracts = queue.buffer::<Contract, 1>(OPTIONS).named("contracts");
        let prices = queue.buffer::<Prices, 1>(OPTIONS).named("prices");
        queue.task("draw").launch(OPTIONS, contracts.write(one_to_one()), draw_contracts)?;
        let time = shortest(PROGRAM_WINDOWS, || {
            for elapsed in (1..=DAYS).map(years) {
                let accesses = (prices.write(one_to_one()), contracts.read(one_to_one()));
                let kernel = black_scholes { elapsed, rate: RATE, volatility: VOLATILITY };
                queue.task("price").launch(OPTIONS, accesses, kernel)?;
            }
            queue.barrier()
        })?;
        Ok((time, queue.fence(&prices)?.wait()?.as_slice().as_flattened().to_vec()))
    })
}

fn years(days: usize) -> f32 {
    days as f32 / 365.0
}
