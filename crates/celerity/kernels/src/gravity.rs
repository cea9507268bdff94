//! Many bodies that attract each other, in SI units: Newton's law, and the kick
//! and the drift of a leapfrog step.

use celerity_kernel::{Local, NdItem, Row, WholeView, kernel, math};

/// Where a body is (metre), and its mass times G (m³ s⁻²): together, since both
/// are needed of every body that attracts another.
pub type Place = [f64; 4];

/// Metre per second.
pub type Velocity = [f64; 3];

/// Bodies whose pulls are summed side by side. The sum over the attracting bodies
/// keeps its order, so that results do not depend on how the work is split; the
/// loop over these lanes is what CPUs vectorise, and what GPUs take per thread.
const LANES: usize = celerity_kernel::abi::RUN;

/// Bodies of a group of [`kick_in_groups`].
pub const CREW: usize = 128;

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

/// As [`kick`], for one body, in groups of [`CREW`]: each body of a group brings one of
/// those that attract, and all use all of them. There must be whole groups of bodies.
#[kernel]
pub fn kick_in_groups(
    item: NdItem<'_, 1>,
    (velocity, all): (&mut Velocity, WholeView<'_, Place, 1>),
    near: Local<'_, Place, { CREW }>,
    softening: f64,
    dt: f64,
) {
    let ([at], own) = (item.local_id(), [all[item.id()]]);
    let mut pull = [[0.0; 1]; 3];
    for first in (0..all.range()[0]).step_by(CREW) {
        near.set(at, all[[first + at]]);
        item.group().barrier();
        for i in 0..CREW {
            add_pull(&mut pull, &own, near.get(i), softening);
        }
        item.group().barrier();
    }
    accelerate(core::array::from_mut(velocity), &pull, dt);
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
    let mut pull = [[0.0; N]; 3];
    // By index: devices then know that each place is aligned to 16 bytes.
    for i in 0..all.len() {
        add_pull(&mut pull, own, all[i], softening);
    }
    pull
}

/// Adds the pull of one body on `N` others.
#[inline]
fn add_pull<const N: usize>(
    pull: &mut [[f64; N]; 3],
    own: &[Place; N],
    other: Place,
    softening: f64,
) {
    for lane in 0..N {
        let [dx, dy, dz]: [f64; 3] = core::array::from_fn(|axis| other[axis] - own[lane][axis]);
        let distance2 = dx * dx + dy * dy + dz * dz;
        let softened2 = distance2 + softening * softening;
        // A body does not pull itself. Selecting afterwards, instead of skipping,
        // keeps the loop free of branches.
        let strength = other[3] / (softened2 * math::sqrt(softened2));
        let strength = if distance2 > 0.0 { strength } else { 0.0 };
        pull[0][lane] += strength * dx;
        pull[1][lane] += strength * dy;
        pull[2][lane] += strength * dz;
    }
}

#[inline]
fn accelerate<const N: usize>(velocities: &mut [Velocity; N], pull: &[[f64; N]; 3], dt: f64) {
    for (lane, velocity) in velocities.iter_mut().enumerate() {
        for axis in 0..3 {
            velocity[axis] += dt * pull[axis][lane];
        }
    }
}
