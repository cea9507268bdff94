//! Many bodies that attract each other.

use celerity_kernel::{Item, WholeView, kernel, math};

/// Where a body is, and its mass times G.
pub type Place = [f32; 4];

/// The change of a body's velocity in a time `dt`. `softening` bounds the pull of
/// close encounters, and must be above 0.
#[kernel]
#[allow(clippy::needless_range_loop)]
pub fn kick(
    item: Item<1>,
    (velocity, places): (&mut [f32; 3], WholeView<'_, Place, 1>),
    softening: f32,
    dt: f32,
) {
    let [x, y, z, _] = places[item.id()];
    let places = places.as_slice();
    let mut pull = [0.0; 3];
    // By index: devices then know that each place is aligned to 16 bytes, and load it at once.
    for i in 0..places.len() {
        let other = places[i];
        let apart = [other[0] - x, other[1] - y, other[2] - z];
        let distance2 =
            apart[0] * apart[0] + apart[1] * apart[1] + apart[2] * apart[2] + softening * softening;
        let strength = other[3] / (distance2 * math::sqrt(distance2));
        for axis in 0..3 {
            pull[axis] += strength * apart[axis];
        }
    }
    for axis in 0..3 {
        velocity[axis] += dt * pull[axis];
    }
}

/// The change of a body's place in a time `dt`.
#[kernel]
pub fn drift(_item: Item<1>, (place, velocity): (&mut Place, &[f32; 3]), dt: f32) {
    for axis in 0..3 {
        place[axis] += dt * velocity[axis];
    }
}
