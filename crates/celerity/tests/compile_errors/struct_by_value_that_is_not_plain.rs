//! What a kernel takes by value is plain data: the message names the struct, and what to derive.

use celerity::kernels::Module;
use celerity::{Item, kernel};

static MODULE: Module = Module::without_code("case", "");

#[derive(Debug)]
pub struct Pull {
    along: [f32; 3],
    seconds: f32,
}

#[kernel]
fn fall(_item: Item<1>, velocity: &mut [f32; 3], pull: Pull) {
    velocity[0] += pull.along[0] * pull.seconds;
}

fn main() {}
