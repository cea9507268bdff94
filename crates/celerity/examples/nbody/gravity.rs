//! The sequential twin of the kernels: Newton's law and the leapfrog (velocity
//! Verlet) step, one pair of bodies after the other. Knows nothing of the runtime.

use celerity_example_kernels::gravity::{Place, Velocity};

/// The state after `steps` leapfrog steps of `dt` seconds. O(bodies² · steps).
pub(crate) fn reference(
    mut places: Vec<Place>,
    mut velocities: Vec<Velocity>,
    softening: f64,
    dt: f64,
    steps: u64,
) -> (Vec<Place>, Vec<Velocity>) {
    for step in 0..steps {
        kick(&places, &mut velocities, softening, if step == 0 { 0.5 * dt } else { dt });
        drift(&mut places, &velocities, dt);
    }
    if steps > 0 {
        kick(&places, &mut velocities, softening, 0.5 * dt);
    }
    (places, velocities)
}

fn kick(places: &[Place], velocities: &mut [Velocity], softening: f64, dt: f64) {
    for (place, velocity) in places.iter().zip(velocities) {
        let mut pull = [0.0; 3];
        for other in places {
            let [dx, dy, dz] = std::array::from_fn(|axis| other[axis] - place[axis]);
            let distance2 = dx * dx + dy * dy + dz * dz;
            let softened2 = distance2 + softening * softening;
            let strength = match distance2 > 0.0 {
                true => other[3] / (softened2 * softened2.sqrt()),
                false => 0.0,
            };
            pull = [pull[0] + strength * dx, pull[1] + strength * dy, pull[2] + strength * dz];
        }
        for axis in 0..3 {
            velocity[axis] += dt * pull[axis];
        }
    }
}

fn drift(places: &mut [Place], velocities: &[Velocity], dt: f64) {
    for (place, velocity) in places.iter_mut().zip(velocities) {
        for axis in 0..3 {
            place[axis] += dt * velocity[axis];
        }
    }
}
