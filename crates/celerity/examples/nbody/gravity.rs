//! Newton's law for many bodies, and the leapfrog (velocity Verlet) step. The
//! kernels call the functions on runs of bodies; [`reference`] is the plain
//! sequential twin. Knows nothing of the runtime.

/// Where a body is (metre), and its mass times G (m³ s⁻²): together, since
/// both are needed of every body that attracts another.
pub(crate) type Place = [f64; 4];

/// Metre per second.
pub(crate) type Velocity = [f64; 3];

/// Bodies whose pulls are summed side by side. The sum over the attracting
/// bodies must keep its order, so that results do not depend on how the work is
/// split; the loop over these lanes is what the compiler can vectorise.
const LANES: usize = 8;

/// The first half or all of a step's change of velocity.
///
/// `own` are the places of the bodies whose `velocities` change, `all` those
/// of all bodies; `softening` (metre) bounds the pull of close encounters.
pub(crate) fn kick(
    velocities: &mut [Velocity],
    own: &[Place],
    all: &[Place],
    softening: f64,
    dt: f64,
) {
    for (velocities, own) in velocities.chunks_mut(LANES).zip(own.chunks(LANES)) {
        let pull = pull_on(own, all, softening);
        for (lane, velocity) in velocities.iter_mut().enumerate() {
            for (axis, speed) in velocity.iter_mut().enumerate() {
                *speed += dt * pull[axis][lane];
            }
        }
    }
}

/// A step's change of place.
pub(crate) fn drift(places: &mut [Place], velocities: &[Velocity], dt: f64) {
    for (place, velocity) in places.iter_mut().zip(velocities) {
        for axis in 0..3 {
            place[axis] += dt * velocity[axis];
        }
    }
}

/// Each body's kinetic energy and half of its potential energy, times G: over
/// all bodies, the sum is G times the energy of the system.
pub(crate) fn energies(
    energies: &mut [f64],
    own: &[Place],
    velocities: &[Velocity],
    all: &[Place],
    softening: f64,
) {
    for ((energy, place), velocity) in energies.iter_mut().zip(own).zip(velocities) {
        let potential: f64 = all
            .iter()
            .map(|other| {
                let [dx, dy, dz] = std::array::from_fn(|axis| other[axis] - place[axis]);
                let distance2 = dx * dx + dy * dy + dz * dz;
                if distance2 > 0.0 {
                    -other[3] / (distance2 + softening * softening).sqrt()
                } else {
                    0.0
                }
            })
            .sum();
        let speed2: f64 = velocity.iter().map(|v| v * v).sum();
        *energy = 0.5 * place[3] * (speed2 + potential);
    }
}

/// The state after `steps` leapfrog steps of `dt` seconds, one pair of bodies
/// after the other. O(bodies² · steps).
pub(crate) fn reference(
    mut places: Vec<Place>,
    mut velocities: Vec<Velocity>,
    softening: f64,
    dt: f64,
    steps: u64,
) -> (Vec<Place>, Vec<Velocity>) {
    let kick_all = |places: &[Place], velocities: &mut [Velocity], dt: f64| {
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
    };
    for step in 0..steps {
        kick_all(&places, &mut velocities, if step == 0 { 0.5 * dt } else { dt });
        drift(&mut places, &velocities, dt);
    }
    if steps > 0 {
        kick_all(&places, &mut velocities, 0.5 * dt);
    }
    (places, velocities)
}

/// The accelerations (m s⁻²) of up to [`LANES`] bodies, per axis and lane.
fn pull_on(own: &[Place], all: &[Place], softening: f64) -> [[f64; LANES]; 3] {
    // Lanes without a body repeat the last one; nobody reads their sums.
    let lanes = |axis: usize| std::array::from_fn(|lane| own[lane.min(own.len() - 1)][axis]);
    let [x, y, z]: [[f64; LANES]; 3] = [lanes(0), lanes(1), lanes(2)];
    let softening2 = softening * softening;
    let [mut pull_x, mut pull_y, mut pull_z] = [[0.0; LANES]; 3];
    for &[other_x, other_y, other_z, gm] in all {
        for lane in 0..LANES {
            let (dx, dy, dz) = (other_x - x[lane], other_y - y[lane], other_z - z[lane]);
            let distance2 = dx * dx + dy * dy + dz * dz;
            let softened2 = distance2 + softening2;
            // A body does not pull itself. Selecting afterwards, instead of
            // skipping, keeps the loop free of branches.
            let strength = gm / (softened2 * softened2.sqrt());
            let strength = if distance2 > 0.0 { strength } else { 0.0 };
            pull_x[lane] += strength * dx;
            pull_y[lane] += strength * dy;
            pull_z[lane] += strength * dz;
        }
    }
    [pull_x, pull_y, pull_z]
}
