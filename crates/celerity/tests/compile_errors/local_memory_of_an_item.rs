//! Items alone share nothing, whether the kernel or the launch says how much.

use celerity::prelude::*;
use celerity::{LocalSlice, kernel};

#[kernel]
fn grow(_item: Item<1>, x: &mut f32, table: LocalSlice<'_, f32>) {
    *x += table.get(0);
}

fn main() {}
