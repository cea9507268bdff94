//! Many bodies that attract each other, in SI units: Newton's law, and the kick
//! and the drift of a leapfrog step.

use celerity_kernel::{Row, WholeView, kernel, math};

/// Where a body is (metre), and its mass times G (m³ s⁻²): together, since both
/// are needed of every body that attracts another.
pub type Place = [f64; 4];

/// Metre per second.
pub type Velocity = [f64; 3];

/// Bodies whose pulls are summed side by side. The sum over the attracting bodies
/// keeps its order, so that results do not depend on how the work is split; the
/// loop over these lanes is what CPUs vectorise, and what GPUs take per thread.
const LANES: usize = celerity_kernel::abi::RUN;

/// The change of velocities in a time `dt` (second). `own` are the places of the
/// bodies whose velocities change, `all` those of all bodies; `softening` (metre)
/// bounds the pull of close encounters.
#[kernel]
pub fn kick(
    _row: Row<1>,
    (velocities, own, all): (&mut [Velocity], &[Place], WholeView<'_, Place, 1>),
    softening: f64,
    dt: f64,
) {
    let (velocities, last_velocities) = velocities.as_chunks_mut::<LANES>();
    let (own, last) = own.as_chunks::<LANES>();
    for (velocities, own) in velocities.iter_mut().zip(own) {
        accelerate(velocities, &pull_on(own, all.as_slice(), softening), dt);
    }
    let (velocities, own) = (last_velocities.as_chunks_mut::<1>().0, last.as_chunks::<1>().0);
    for (velocities, own) in velocities.iter_mut().zip(own) {
        accelerate(velocities, &pull_on(own, all.as_slice(), softening), dt);
    }
}

/// The change of places in a time `dt` (second).
#[kernel]
pub fn drift(_row: Row<1>, (places, velocities): (&mut [Place], &[Velocity]), dt: f64) {
    for (place, velocity) in places.iter_mut().zip(velocities) {
        for axis in 0..3 {
            place[axis] += dt * velocity[axis];
        }
    }
}

/// Each body's kinetic energy and half of its potential energy, times G: over all
/// bodies, the sum is G times the energy of the system.
#[kernel]
pub fn energies(
    _row: Row<1>,
    (energies, own, velocities, all): (&mut [f64], &[Place], &[Velocity], WholeView<'_, Place, 1>),
    softening: f64,
) {
    for ((energy, place), velocity) in energies.iter_mut().zip(own).zip(velocities) {
        let [vx, vy, vz] = *velocity;
        let speed2 = vx * vx + vy * vy + vz * vz;
        *energy = 0.5 * place[3] * (speed2 + potential_at(place, all.as_slice(), softening));
    }
}

/// The potential (m² s⁻²) at a body's place, of all others.
#[inline]
fn potential_at(place: &Place, all: &[Place], softening: f64) -> f64 {
    let mut potential = 0.0;
    for other in all {
        let [dx, dy, dz] = core::array::from_fn(|axis| other[axis] - place[axis]);
        let distance2 = dx * dx + dy * dy + dz * dz;
        if distance2 > 0.0 {
            potential -= other[3] / math::sqrt(distance2 + softening * softening);
        }
    }
    potential
}

/// The accelerations (m s⁻²) of `N` bodies, per axis and body.
#[inline]
#[allow(clippy::needless_range_loop)]
fn pull_on<const N: usize>(own: &[Place; N], all: &[Place], softening: f64) -> [[f64; N]; 3] {
    let along = |axis: usize| core::array::from_fn(|lane| own[lane][axis]);
    let [x, y, z]: [[f64; N]; 3] = [along(0), along(1), along(2)];
    let softening2 = softening * softening;
    let [mut pull_x, mut pull_y, mut pull_z] = [[0.0; N]; 3];
    // By index: devices then know that each place is aligned to 16 bytes.
    for i in 0..all.len() {
        let [other_x, other_y, other_z, gm] = all[i];
        for lane in 0..N {
            let (dx, dy, dz) = (other_x - x[lane], other_y - y[lane], other_z - z[lane]);
            let distance2 = dx * dx + dy * dy + dz * dz;
            let softened2 = distance2 + softening2;
            // A body does not pull itself. Selecting afterwards, instead of
            // skipping, keeps the loop free of branches.
            let strength = gm / (softened2 * math::sqrt(softened2));
            let strength = if distance2 > 0.0 { strength } else { 0.0 };
            pull_x[lane] += strength * dx;
            pull_y[lane] += strength * dy;
            pull_z[lane] += strength * dz;
        }
    }
    [pull_x, pull_y, pull_z]
}

#[inline]
fn accelerate<const N: usize>(velocities: &mut [Velocity; N], pull: &[[f64; N]; 3], dt: f64) {
    for (lane, velocity) in velocities.iter_mut().enumerate() {
        for axis in 0..3 {
            velocity[axis] += dt * pull[axis][lane];
        }
    }
}
