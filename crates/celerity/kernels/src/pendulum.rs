//! A pendulum over a board with magnets: where it comes to rest, from each place that it may be let go
//! from. Places that are close together end at different magnets. Kernels and sequential programs
//! share its functions, so that their results can be compared bit for bit.
//!
//! The pendulum is long, so that it swings over the board in a plane. Lengths are in units in which magnets
//! stand about 1 from the centre.

use celerity_kernel::math::normal;
use celerity_kernel::{Item, PlainData, WholeView, kernel};

/// How a pendulum swings.
#[derive(Clone, Copy, Debug, PartialEq, PlainData)]
#[repr(C)]
pub struct Swing {
    /// How much its speed falls, per time and speed.
    pub friction: f32,
    /// How strongly it is drawn back to the centre, per distance from it.
    pub gravity: f32,
    /// How high above the board it swings: [`LOWEST`] at least.
    pub height: f32,
    /// The time of a step.
    pub step: f32,
}

impl Swing {
    /// What shows much of the pattern.
    pub const USUAL: Self = Self { friction: 0.2, gravity: 0.5, height: 0.25, step: 0.02 };
}

/// A place, or a velocity, on the board: down, to the right.
type Vector = [f32; 2];

/// Where a pendulum comes to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// The magnet that is nearest in the end; the first of those that are equally near.
    pub magnet: u32,
    /// After how many steps it moved slower than [`SLOW`] over a magnet, or all of them.
    pub steps: u32,
}

/// As fast as a pendulum may be at rest, and as far from its magnet. Gravity draws it from where it
/// rests by about 0.01.
pub const SLOW: f32 = 0.05;

/// How low a pendulum may swing: its distance from a magnet is then a [normal] number, and so is all that comes
/// of it.
pub const LOWEST: f32 = 1e-6;

/// The square of a distance beyond which magnets draw as if they were that near. No pendulum gets there but one whose
/// steps are so long that it is thrown off.
const FAR: f32 = 1e15;

/// The place of an item on a square board of `size`² items, which reaches `reach` to all sides.
#[inline]
#[must_use]
pub fn place([y, x]: [usize; 2], size: usize, reach: f32) -> Vector {
    let along = |at: usize| (2.0 * (at as f32 + 0.5) / size as f32 - 1.0) * reach;
    [along(y), along(x)]
}

/// Lets a pendulum go at a place, where it is at rest, and looks where it goes. `magnet(i)` is where
/// the magnet of this number stands, of `magnets`, at least one.
#[inline]
#[must_use]
pub fn swing(
    from: Vector,
    swing: Swing,
    steps: u32,
    magnets: usize,
    magnet: impl Fn(usize) -> Vector,
) -> Rest {
    let ([mut y, mut x], [mut vy, mut vx]): (Vector, Vector) = (from, [0.0; 2]);
    let mut step = 0;
    loop {
        let mut ay = -swing.gravity * y - swing.friction * vy;
        let mut ax = -swing.gravity * x - swing.friction * vx;
        let (mut nearest, mut least) = (0, f32::MAX);
        for i in 0..magnets {
            let [my, mx] = magnet(i);
            let (dy, dx) = (my - y, mx - x);
            let flat = dy * dy + dx * dx;
            let square = (flat + swing.height * swing.height).min(FAR);
            let pull = normal::recip(square * normal::sqrt(square));
            ay += pull * dy;
            ax += pull * dx;
            if flat < least {
                (nearest, least) = (i as u32, flat);
            }
        }
        let is_at_rest = vy * vy + vx * vx < SLOW * SLOW && least < SLOW * SLOW;
        if step == steps || is_at_rest {
            return Rest { magnet: nearest, steps: step };
        }
        // First the velocity, then the place with the new one: so no energy comes from nowhere.
        vy += swing.step * ay;
        vx += swing.step * ax;
        y += swing.step * vy;
        x += swing.step * vx;
        step += 1;
    }
}

/// The magnet over which each pendulum comes to rest, and after how many steps.
#[kernel]
pub fn pendulum(
    item: Item<2>,
    (rest, after, magnets): (&mut u32, &mut u32, WholeView<'_, [f32; 2], 1>),
    reach: f32,
    parameters: Swing,
    steps: u32,
) {
    let from = place(item.id(), item.range()[0], reach);
    // Of a few magnets, the compiler knows how many they are, and keeps where they stand in registers.
    let found = match magnets.range()[0] {
        1 => swing_over::<1>(from, parameters, steps, magnets),
        2 => swing_over::<2>(from, parameters, steps, magnets),
        3 => swing_over::<3>(from, parameters, steps, magnets),
        4 => swing_over::<4>(from, parameters, steps, magnets),
        5 => swing_over::<5>(from, parameters, steps, magnets),
        6 => swing_over::<6>(from, parameters, steps, magnets),
        many => swing(from, parameters, steps, many, |i| magnets[i]),
    };
    (*rest, *after) = (found.magnet, found.steps);
}

/// As [`swing`], over `N` magnets.
#[inline]
fn swing_over<const N: usize>(
    from: Vector,
    parameters: Swing,
    steps: u32,
    magnets: WholeView<'_, [f32; 2], 1>,
) -> Rest {
    let places: [Vector; N] = core::array::from_fn(|i| magnets[i]);
    swing(from, parameters, steps, N, |i| places[i])
}

#[cfg(test)]
mod tests {
    use super::{Rest, Swing, place, swing};

    const TWO: [[f32; 2]; 2] = [[0.0, -1.0], [0.0, 1.0]];

    #[test]
    fn a_pendulum_over_a_magnet_stays_there() {
        let weak = Swing { gravity: 0.0, ..Swing::USUAL };
        let rest = swing([0.0, 1.0], weak, 100, 2, |i| TWO[i]);
        assert_eq!(rest, Rest { magnet: 1, steps: 0 });
    }

    #[test]
    fn what_is_on_one_side_from_the_beginning_ends_there_or_takes_all_steps() {
        let near = swing([0.0, 0.9], Swing::USUAL, 5000, 2, |i| TWO[i]);
        assert!(near.magnet == 1 && near.steps < 5000, "{near:?}");
        let mirrored = swing([0.0, -0.9], Swing::USUAL, 5000, 2, |i| TWO[i]);
        assert_eq!((mirrored.magnet, mirrored.steps), (0, near.steps));
        assert_eq!(swing([1.9, 1.9], Swing::USUAL, 3, 2, |i| TWO[i]).steps, 3);
    }

    #[test]
    fn places_lie_evenly_around_the_centre() {
        assert_eq!(place([0, 0], 1, 2.0), [0.0, 0.0]);
        assert_eq!(place([0, 3], 4, 2.0), [-1.5, 1.5]);
    }
}
