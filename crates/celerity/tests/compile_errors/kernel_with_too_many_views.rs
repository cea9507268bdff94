//! More views than a launch has room for.

use celerity::kernel;
use celerity::prelude::*;

#[kernel]
fn clear(
    _item: Item<1>,
    (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u): (
        &mut f32,
        &mut f32,
        &mut f32,
        &mut f32,
        &mut f32,
        &mut f32,
        &mut f32,
        &mut f32,
        &mut f32,
        &mut f32,
        &mut f32,
        &mut f32,
        &mut f32,
        &mut f32,
        &mut f32,
        &mut f32,
        &mut f32,
        &mut f32,
        &mut f32,
        &mut f32,
        &mut f32,
    ),
) {
    *a = 0.0;
}

fn main() {}
