//! The sequential twin of the kernels: Newton's law and the leapfrog (velocity
//! Verlet) step, one pair of bodies after the other. Knows nothing of the runtime.

use celerity_example_kernels::gravity::{Position, Velocity};
use celerity_kernel::math::sqrt;

use crate::units::{Number, State};

/// The state after `steps` leapfrog steps in a time `dt` each. O(bodies² · steps).
pub(crate) fn reference<T: Number>(
    (mut places, mut velocities): State<T>,
    softening: T,
    dt: T,
    steps: u64,
) -> State<T> {
    let half = T::nearest(0.5) * dt;
    for step in 0..steps {
        kick(&places, &mut velocities, softening, if step == 0 { half } else { dt });
        drift(&mut places, &velocities, dt);
    }
    if steps > 0 {
        kick(&places, &mut velocities, softening, half);
    }
    (places, velocities)
}

fn kick<T: Number>(places: &[Position<T>], velocities: &mut [Velocity<T>], softening: T, dt: T) {
    let zero = T::default();
    for (place, velocity) in places.iter().zip(velocities) {
        let mut pull = [zero; 3];
        for other in places {
            let [dx, dy, dz]: [T; 3] = std::array::from_fn(|axis| other[axis] - place[axis]);
            let distance2 = dx * dx + dy * dy + dz * dz;
            let softened2 = distance2 + softening * softening;
            let strength = match distance2 > zero {
                true => other[3] / (softened2 * sqrt(softened2)),
                false => zero,
            };
            pull = [pull[0] + strength * dx, pull[1] + strength * dy, pull[2] + strength * dz];
        }
        for axis in 0..3 {
            velocity[axis] += dt * pull[axis];
        }
    }
}

fn drift<T: Number>(places: &mut [Position<T>], velocities: &[Velocity<T>], dt: T) {
    for (place, velocity) in places.iter_mut().zip(velocities) {
        for axis in 0..3 {
            place[axis] += dt * velocity[axis];
        }
    }
}
