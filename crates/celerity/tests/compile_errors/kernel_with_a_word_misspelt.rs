//! What `#[kernel]` does not know is named, with what it knows.

use celerity_kernel::{Item, kernel};

#[kernel(fsat)]
pub fn grow(_item: Item<1>, x: &mut f32, by: f32) {
    *x += by;
}

fn main() {}
