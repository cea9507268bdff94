//! Compiled kernels reduce by items or by groups.

use celerity::prelude::*;
use celerity::kernels::{Code, Module};
use celerity::{Sum, kernel};

static MODULE: Module = Module { name: "case", code: Code::Missing("") };

#[kernel]
fn sum_of_rows(row: Row<1>, (u, sum): (&[f32], celerity::Reducer<'_, f32, Sum>)) {
    u.iter().for_each(|&u| sum.combine(u));
}

fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let (u, sum) = (queue.buffer_from(8, vec![0.0; 8])?, queue.buffer::<f32, 0>([]));
        let accesses = (u.read(one_to_one()), sum.reduce(Sum));
        queue.task("sum").launch_rows(8, accesses, sum_of_rows)?;
        Ok(())
    })
}
