//! What the programming model beyond kernels and buffers costs, against what a program would do
//! without it: run by `cargo xtask bench model`.
#![allow(missing_docs, reason = "criterion's macros generate undocumented functions")]

mod independent_sets;
mod residuals;
mod side_effects;

use criterion::{criterion_group, criterion_main};

criterion_group!(benches, side_effects::chains, independent_sets::candidates, residuals::looks);
criterion_main!(benches);
