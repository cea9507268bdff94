//! Kernels, parameters and constants that are called what generated code could call something: names are
//! the program's to choose.
#![allow(non_upper_case_globals, reason = "constants are called what variables could be called")]

use celerity_kernel::{Item, Local, NdItem, Reducer, Row, Sum, kernel};

/// A kernel that is its own value, as those without parameters are.
#[kernel]
pub fn place(_item: Item<1>, x: &mut u32) {
    *x += team + lanes + DIMS;
}

/// The same over groups.
#[kernel]
pub fn tile(item: NdItem<'_, 1>, views: &mut u32, state0: Local<'_, u32, 64>) {
    state0.set(item.local_linear_id() % 64, *views);
    *views += state0.get(item.local_linear_id() % 64);
}

/// The same over rows.
#[kernel]
pub fn entry(_row: Row<1>, pointer0: &mut [u32]) {
    pointer0.fill(LOCAL);
}

const team: u32 = 1;
const lanes: u32 = 2;
const DIMS: u32 = 4;
const LOCAL: u32 = 8;

/// The sum of its parameters, in every element, and of all elements.
#[kernel]
pub fn view(
    item: Item<1>,
    (out, sum): (&mut u32, Reducer<'_, u32, Sum>),
    launch: u32,
    tiles: u32,
    block0: u32,
    tile1: u32,
    at: u32,
    local: u32,
    sink: u32,
    call: u32,
) {
    *out = item[0] as u32 + launch + tiles + block0 + tile1 + at + local + sink + call;
    sum.combine(*out);
}

/// The same in groups.
#[kernel]
pub fn views(
    item: NdItem<'_, 1>,
    (out, sum): (&mut u32, Reducer<'_, u32, Sum>),
    launch: u32,
    state1: u32,
    run: u32,
) {
    *out = item.local_linear_id() as u32 + launch + state1 + run;
    sum.combine(*out);
}
