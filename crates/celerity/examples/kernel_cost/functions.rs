//! How many values of functions a device finds in a second, strict and fast: the same as the baseline `functions` by hand.

use celerity::prelude::*;
use celerity::{Element, Result};
use celerity_example_kernels::functions::{FUNCTIONS, fast_sums_of_values, sums_of_values};
use celerity_kernel::ItemKernel;

use crate::rounds::fastest;

/// Items, each of which finds …
const ITEMS: usize = 1 << 20;

/// … so many values.
const VALUES: u32 = 256;

/// A step over all items, as `function precision form`.
struct Case<'a> {
    name: String,
    step: Box<dyn Fn() -> Result<()> + 'a>,
}

/// Both forms of a function.
fn both<'a, T: Element>(
    (queue, out): (&'a Queue, &'a Buffer<T, 1>),
    name: String,
    strict: impl for<'b> ItemKernel<1, &'b mut T> + Copy + 'a,
    fast: impl for<'b> ItemKernel<1, &'b mut T> + Copy + 'a,
) -> [Case<'a>; 2] {
    let strict =
        move || queue.task("strict").launch(ITEMS, out.write(one_to_one()), strict).map(drop);
    let fast = move || queue.task("fast").launch(ITEMS, out.write(one_to_one()), fast).map(drop);
    [
        Case { name: format!("{name} strict"), step: Box::new(strict) },
        Case { name: format!("{name} fast"), step: Box::new(fast) },
    ]
}

macro_rules! cases {
    ($queue:expr, $out:expr, $type:ident, $($function:literal),*) => {
        [$(both(
            ($queue, $out),
            format!("{} {}", FUNCTIONS[$function], stringify!($type)),
            sums_of_values::<$type, $function>::new(VALUES),
            fast_sums_of_values::<$type, $function>::new(VALUES),
        )),*]
    };
}

/// Measures all functions, in so many rounds of so many steps.
pub(crate) fn measure(queue: &Queue, rounds: (u32, u32)) -> Result<()> {
    let (single, double) = (queue.buffer::<f32, 1>(ITEMS), queue.buffer::<f64, 1>(ITEMS));
    let cases = cases!(queue, &single, f32, 0, 1, 2, 3, 4, 5, 6);
    let of_double = cases!(queue, &double, f64, 0, 1, 2, 3, 4, 5, 6);
    for Case { name, step } in cases.into_iter().chain(of_double).flatten() {
        let seconds = fastest(queue, rounds, step)?;
        if queue.is_root() {
            let rate = ITEMS as f64 * f64::from(VALUES) / seconds / 1e9;
            println!("{name:16}{:9.3} ms{rate:9.1} G values/s", seconds * 1e3);
        }
    }
    Ok(())
}
