//! What `#[kernel]` does not know is named, with what it knows.

use celerity::kernel;
use celerity::prelude::*;

#[kernel(fsat)]
fn grow(_item: Item<1>, x: &mut f32, by: f32) {
    *x += by;
}

fn main() {}
