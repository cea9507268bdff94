//! Many bodies that attract each other: Newton's law, and the kick and the drift of a
//! leapfrog step. Any units will do, as long as all numbers are in the same: a length `l` and a
//! time `t`.
#![allow(clippy::type_complexity, reason = "`#[kernel]` wants to see which views there are")]

use celerity_kernel::math::{self, Float};
use celerity_kernel::{Local, NdItem, Row, WholeView, kernel};

/// Where a body is (`l`), and its mass times G (`l³ / t²`): together, since both
/// are needed of every body that attracts another.
pub type Position<T> = [T; 4];

/// `l / t`.
pub type Velocity<T> = [T; 3];

/// Bodies whose pulls are summed side by side. The sum over the attracting bodies
/// keeps its order, so that results do not depend on how the work is split; the
/// loop over these lanes is what CPUs vectorise, and what GPUs take per thread.
const LANES: usize = celerity_kernel::abi::RUN;

/// Bodies of a group of [`kick_in_groups`].
pub const CREW: usize = 128;

/// In how many parts the items of a group of [`kick_fast`] sum: as many bodies as each has.
const PARTS: usize = 4;

/// Items that sum the same part: the threads of a warp.
const WIDTH: usize = CREW / PARTS;

/// The change of velocities in a time `dt`. `own` are the places of the
/// bodies whose velocities change, `all` those of all bodies; `softening`
/// bounds the pull of close encounters.
#[kernel(instances(f32, f64))]
pub fn kick<T: Float>(
    _row: Row<1>,
    (velocities, own, all): (&mut [Velocity<T>], &[Position<T>], WholeView<'_, Position<T>, 1>),
    softening: T,
    dt: T,
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
#[kernel(instances(f32, f64))]
pub fn kick_in_groups<T: Float>(
    item: NdItem<'_, 1>,
    (velocity, all): (&mut Velocity<T>, WholeView<'_, Position<T>, 1>),
    near: Local<'_, Position<T>, { CREW }>,
    softening: T,
    dt: T,
) {
    let ([at], own) = (item.local_id(), [all[item.id()]]);
    let mut pull = [[T::default(); 1]; 3];
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

/// As [`kick_in_groups`], in the fast form, where devices fuse and approximate, and for `softening` above 0.
/// Each item sums the pulls of a quarter of all bodies on four bodies of its group, so that a body that
/// attracts is loaded once for four; then the items put the quarters together.
#[kernel(fast, instances(f32, f64))]
pub fn kick_fast<T: Float>(
    item: NdItem<'_, 1>,
    (velocity, all): (&mut Velocity<T>, WholeView<'_, Position<T>, 1>),
    near: Local<'_, Position<T>, { CREW }>,
    softening: T,
    dt: T,
) {
    let at = item.local_id()[0] % CREW;
    let first_own = item.id()[0] - at;
    let (part, lane) = (at / WIDTH, at % WIDTH);
    // What is not there has no mass. An index that panics, if only it could, would cost registers: the
    // driver's compiler then lets roots wait for each other.
    let place = |body: usize| all.get([body]).copied().unwrap_or_default();
    let own: [Position<T>; PARTS] =
        core::array::from_fn(|which| place(first_own + which * WIDTH + lane));
    let (mut pull, softening2) = ([[T::default(); PARTS]; 3], softening * softening);
    for first in (0..all.range()[0]).step_by(CREW) {
        near.set(at, place(first + at));
        item.group().barrier();
        // Some at a time, since what counts takes instructions, too: as many as registers allow. The
        // remainder says that they are there, before the compiler moves anything behind a check.
        for i in (0..WIDTH).step_by(32 / size_of::<T>()) {
            let near = |other: usize| near.get((part * WIDTH + i + other) % CREW);
            add_softened_pull(&mut pull, &own, near(0), softening2);
            add_softened_pull(&mut pull, &own, near(1), softening2);
            add_softened_pull(&mut pull, &own, near(2), softening2);
            add_softened_pull(&mut pull, &own, near(3), softening2);
            if size_of::<T>() == 4 {
                add_softened_pull(&mut pull, &own, near(4), softening2);
                add_softened_pull(&mut pull, &own, near(5), softening2);
                add_softened_pull(&mut pull, &own, near(6), softening2);
                add_softened_pull(&mut pull, &own, near(7), softening2);
            }
        }
        item.group().barrier();
    }
    // One part after the other, in the memory that is there already.
    near.set(at, [T::default(); 4]);
    item.group().barrier();
    for turn in 0..PARTS {
        for which in 0..PARTS {
            let at = which * WIDTH + lane;
            if turn == part {
                let [x, y, z, mass] = near.get(at);
                let [dx, dy, dz] = pull.map(|axis| axis[which]);
                near.set(at, [x + dx, y + dy, z + dz, mass]);
            }
        }
        item.group().barrier();
    }
    let [x, y, z, _] = near.get(at);
    accelerate(core::array::from_mut(velocity), &[[x], [y], [z]], dt);
}

/// The change of places in a time `dt`.
#[kernel(instances(f32, f64))]
pub fn drift<T: Float>(
    _row: Row<1>,
    (places, velocities): (&mut [Position<T>], &[Velocity<T>]),
    dt: T,
) {
    for (place, velocity) in places.iter_mut().zip(velocities) {
        for axis in 0..3 {
            place[axis] += dt * velocity[axis];
        }
    }
}

/// Each body's kinetic energy and half of its potential energy, times G: over all
/// bodies, the sum is G times the energy of the system.
#[kernel(instances(f32, f64))]
pub fn energies<T: Float>(
    _row: Row<1>,
    (energies, own, velocities, all): (
        &mut [T],
        &[Position<T>],
        &[Velocity<T>],
        WholeView<'_, Position<T>, 1>,
    ),
    softening: T,
) {
    for ((energy, place), velocity) in energies.iter_mut().zip(own).zip(velocities) {
        let [vx, vy, vz] = *velocity;
        let speed2 = vx * vx + vy * vy + vz * vz;
        *energy =
            T::from(0.5) * place[3] * (speed2 + potential_at(place, all.as_slice(), softening));
    }
}

/// The potential at a body's place, of all others.
#[inline]
fn potential_at<T: Float>(place: &Position<T>, all: &[Position<T>], softening: T) -> T {
    let mut potential = T::default();
    for other in all {
        let [dx, dy, dz] = core::array::from_fn(|axis| other[axis] - place[axis]);
        let distance2 = dx * dx + dy * dy + dz * dz;
        if distance2 > T::default() {
            potential -= other[3] / math::sqrt(distance2 + softening * softening);
        }
    }
    potential
}

/// The accelerations of `N` bodies, per axis and body.
#[inline]
#[allow(clippy::needless_range_loop)]
fn pull_on<T: Float, const N: usize>(
    own: &[Position<T>; N],
    all: &[Position<T>],
    softening: T,
) -> [[T; N]; 3] {
    let mut pull = [[T::default(); N]; 3];
    // By index: devices then know that each place is aligned to 16 bytes.
    for i in 0..all.len() {
        add_pull(&mut pull, own, all[i], softening);
    }
    pull
}

/// Adds the pull of one body on `N` others.
#[inline]
fn add_pull<T: Float, const N: usize>(
    pull: &mut [[T; N]; 3],
    own: &[Position<T>; N],
    other: Position<T>,
    softening: T,
) {
    for lane in 0..N {
        let [dx, dy, dz]: [T; 3] = core::array::from_fn(|axis| other[axis] - own[lane][axis]);
        let distance2 = dx * dx + dy * dy + dz * dz;
        let softened2 = distance2 + softening * softening;
        // A body does not pull itself. Selecting afterwards, instead of skipping,
        // keeps the loop free of branches.
        let strength = other[3] / (softened2 * math::sqrt(softened2));
        let strength = if distance2 > T::default() { strength } else { T::default() };
        pull[0][lane] += strength * dx;
        pull[1][lane] += strength * dy;
        pull[2][lane] += strength * dz;
    }
}

/// As [`add_pull`], by the inverse square root. What a body would pull itself is 0, as the distance is, if the
/// square of the softening is above 0.
///
/// Step by step for all bodies, since a root takes long: those of others are under way meanwhile.
#[inline]
fn add_softened_pull<T: Float, const N: usize>(
    pull: &mut [[T; N]; 3],
    own: &[Position<T>; N],
    other: Position<T>,
    softening2: T,
) {
    let ways: [[T; 3]; N] = own.map(|own| core::array::from_fn(|axis| other[axis] - own[axis]));
    let inverses = ways.map(|[dx, dy, dz]| math::rsqrt(softening2 + dx * dx + dy * dy + dz * dz));
    let strengths = inverses.map(|inverse| other[3] * inverse * (inverse * inverse));
    for lane in 0..N {
        for axis in 0..3 {
            pull[axis][lane] += strengths[lane] * ways[lane][axis];
        }
    }
}

#[inline]
fn accelerate<T: Float, const N: usize>(
    velocities: &mut [Velocity<T>; N],
    pull: &[[T; N]; 3],
    dt: T,
) {
    for (lane, velocity) in velocities.iter_mut().enumerate() {
        for axis in 0..3 {
            velocity[axis] += dt * pull[axis][lane];
        }
    }
}
