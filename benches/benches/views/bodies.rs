//! Whole kernels of bodies that attract each other, as the example has them: several bodies side by
//! side, one after the other, and in groups.

use celerity::prelude::*;
use celerity::{Element, Result};
use celerity_example_kernels::gravity::{CREW, Position, Velocity, kick, kick_in_groups};
use celerity_kernel::math::{Float, sqrt};
use celerity_kernel::{GroupKernel, RowKernel, WholeView};
use rayon::prelude::*;

use crate::fields::Cells;
use crate::spent::Spent;
use crate::turns::{Case, case, timed, timed_by_hand};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(kicks::<f32>("f32"));
    cases.extend(kicks::<f64>("f64"));
    cases
}

const BODIES: usize = 2048;
const SOFTENING: f32 = 0.01;
const TIME: f32 = 0.001;

/// Bodies whose pulls are summed side by side.
const LANES: usize = 8;

/// A step of bodies: velocities, and places.
type Kick<T> =
    fn(&Queue, &Buffer<Velocity<T>, 1>, &Buffer<Position<T>, 1>) -> Result<celerity::TaskId>;

/// What comes out of so many steps, and what they took.
type ByHand<T> = fn(usize) -> (Spent, Vec<Velocity<T>>);

fn kicks<T>(precision: &str) -> [Case; 3]
where
    T: Float + Cells + Element,
    Position<T>: Element,
    Velocity<T>: Element,
    kick<T>: for<'a> RowKernel<
            1,
            (&'a mut [Velocity<T>], &'a [Position<T>], WholeView<'a, Position<T>, 1>),
        >,
    kick_in_groups<T>: for<'a> GroupKernel<1, (&'a mut Velocity<T>, WholeView<'a, Position<T>, 1>)>,
{
    let of = |form: &str, by_hand: ByHand<T>, submit: Kick<T>| {
        let name = format!("nbody, {precision}, by {form}");
        case(name, (BODIES * BODIES, 4), by_hand, move |steps| kick_ours(steps, submit))
    };
    [
        of("rows", kick_by_hand, |queue, velocities, places| {
            let accesses = (
                velocities.read_write(one_to_one()),
                places.read(one_to_one()),
                places.read(all()),
            );
            let kernel = kick::new(T::of(SOFTENING), T::of(TIME));
            queue.task("kick").launch(BODIES, accesses, kernel)
        }),
        of("items", kick_one_by_one, |queue, velocities, places| {
            let accesses = (velocities.read_write(one_to_one()), places.read(all()));
            queue.task("kick").parallel_for(BODIES, accesses, |item, (velocity, all)| {
                kick_one(velocity, &all[item[0]], all.as_slice());
            })
        }),
        of("groups", kick_by_hand, |queue, velocities, places| {
            let accesses = (velocities.read_write(one_to_one()), places.read(all()));
            let kernel = kick_in_groups::new(T::of(SOFTENING), T::of(TIME));
            queue.task("kick").launch(nd_range([BODIES], [CREW]), accesses, kernel)
        }),
    ]
}

fn bodies<T: Cells>() -> (Vec<Velocity<T>>, Vec<Position<T>>) {
    let at = |i: usize| T::of((i % 1009) as f32 / 1009.0);
    let place = |i: usize| [at(i * 7919), at(i * 104_729 + 3), at(i * 1_299_709 + 5), at(i)];
    (vec![[T::default(); 3]; BODIES], (0..BODIES).map(place).collect())
}

fn kick_ours<T>(steps: usize, submit: Kick<T>) -> Result<(Spent, Vec<Velocity<T>>)>
where
    T: Cells,
    Position<T>: Element,
    Velocity<T>: Element,
{
    Config::default().run(|queue| {
        let (velocities, places) = bodies();
        let velocities = queue.buffer_from(BODIES, velocities)?;
        let places = queue.buffer_from(BODIES, places)?;
        let time = timed(queue, steps, || submit(queue, &velocities, &places).map(drop))?;
        Ok((time, queue.fence(&velocities)?.wait()?.into_vec()))
    })
}

fn kick_by_hand<T: Float + Cells>(steps: usize) -> (Spent, Vec<Velocity<T>>) {
    let (mut velocities, places) = bodies::<T>();
    let time = timed_by_hand(steps, || {
        let (own, velocities) = (places.as_chunks().0, velocities.as_chunks_mut().0);
        let lanes = velocities.par_iter_mut().zip(own);
        lanes.for_each(|(velocities, own)| kick_lanes(velocities, own, &places));
    });
    (time, velocities)
}

fn kick_one_by_one<T: Float + Cells>(steps: usize) -> (Spent, Vec<Velocity<T>>) {
    let (mut velocities, places) = bodies::<T>();
    let time = timed_by_hand(steps, || {
        let one = |(velocity, own): (&mut _, _)| kick_one(velocity, own, &places);
        velocities.par_iter_mut().zip(&places).for_each(one);
    });
    (time, velocities)
}

/// Of several bodies side by side, which the compiler takes together.
#[inline(never)]
fn kick_lanes<T: Float + Cells>(
    velocities: &mut [Velocity<T>; LANES],
    own: &[Position<T>; LANES],
    all: &[Position<T>],
) {
    let [x, y, z]: [[T; LANES]; 3] = std::array::from_fn(|axis| own.map(|place| place[axis]));
    let mut pull = [[T::default(); LANES]; 3];
    let softening2 = T::of(SOFTENING) * T::of(SOFTENING);
    for other in all {
        for lane in 0..LANES {
            let [dx, dy, dz] = [other[0] - x[lane], other[1] - y[lane], other[2] - z[lane]];
            let distance2 = dx * dx + dy * dy + dz * dz;
            let softened2 = distance2 + softening2;
            let strength = other[3] / (softened2 * sqrt(softened2));
            let strength = if distance2 > T::default() { strength } else { T::default() };
            pull[0][lane] += strength * dx;
            pull[1][lane] += strength * dy;
            pull[2][lane] += strength * dz;
        }
    }
    for (lane, velocity) in velocities.iter_mut().enumerate() {
        for axis in 0..3 {
            velocity[axis] += T::of(TIME) * pull[axis][lane];
        }
    }
}

/// Of one body.
#[inline]
fn kick_one<T: Float + Cells>(velocity: &mut Velocity<T>, own: &Position<T>, all: &[Position<T>]) {
    let mut pull = [T::default(); 3];
    let softening2 = T::of(SOFTENING) * T::of(SOFTENING);
    for other in all {
        let [dx, dy, dz] = [0, 1, 2].map(|axis| other[axis] - own[axis]);
        let distance2 = dx * dx + dy * dy + dz * dz;
        let softened2 = distance2 + softening2;
        let strength = other[3] / (softened2 * sqrt(softened2));
        let strength = if distance2 > T::default() { strength } else { T::default() };
        pull = [pull[0] + strength * dx, pull[1] + strength * dy, pull[2] + strength * dz];
    }
    for axis in 0..3 {
        velocity[axis] += T::of(TIME) * pull[axis];
    }
}
