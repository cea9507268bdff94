//! Items that move several elements at once, wherever in memory these lie.

use celerity_kernel::math::Float;
use celerity_kernel::{Item, PartView, PartViewMut, WholeView, kernel};

/// Elements of a vector.
pub const VECTOR: usize = 4;

/// Turns each run of [`VECTOR`] elements of a row around. An item has one of these runs; what is left at
/// the end of rows stays as it is.
#[kernel(instances(f32, f64))]
pub fn mirror_vectors<T: Float>(
    item: Item<2>,
    (mut out, u): (PartViewMut<'_, T, 2>, PartView<'_, T, 2>),
) {
    let [y, x] = item.id();
    let at = [y, x * VECTOR];
    let [a, b, c, d] = u.vector(at);
    out.set_vector(at, [d, c, b, a]);
}

/// The sum of the [`VECTOR`] elements from each item's on.
#[kernel(instances(f32, f64))]
pub fn sum_vectors<T: Float>(item: Item<1>, (sum, u): (&mut T, WholeView<'_, T, 1>)) {
    let [a, b, c, d] = u.vector(item.id());
    *sum = a + b + c + d;
}
