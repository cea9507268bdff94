//! Light on its way through a room: a cube with walls of square patches, which send
//! on what arrives at them, to all that they see, when light has got there. What a
//! patch sends in a step depends on what all others have sent in earlier ones.

use core::f32::consts::PI;

use celerity_kernel::math::{self, normal};
use celerity_kernel::{Item, PartView, WholeView, kernel};

/// A patch of a wall: the place of its middle, and the direction that it faces. The
/// room has edges of length 1.
pub type Patch = [f32; 6];

/// The part of the light that a wall sends on.
const REFLECTED: f32 = 0.8;

/// The square of a distance that is less than between any two patches, and a [normal] number.
const NEAR2: f32 = 1e-16;

/// Patches of a room with so many along each edge.
#[must_use]
pub const fn patches(edge: usize) -> usize {
    6 * edge * edge
}

/// A patch of a room, by its number: wall by wall, row by row.
#[inline]
#[must_use]
pub fn patch(number: usize, edge: usize) -> Patch {
    let (wall, inside) = (number / (edge * edge), number % (edge * edge));
    let along = |index: usize| (index as f32 + 0.5) / edge as f32;
    let (axis, far) = (wall / 2, wall % 2 == 1);
    let mut patch = [0.0; 6];
    patch[axis] = if far { 1.0 } else { 0.0 };
    patch[(axis + 1) % 3] = along(inside / edge);
    patch[(axis + 2) % 3] = along(inside % edge);
    patch[3 + axis] = if far { -1.0 } else { 1.0 };
    patch
}

/// What a patch sends in the first step: a flash in the middle of the first wall.
#[inline]
#[must_use]
pub fn flash(number: usize, edge: usize) -> f32 {
    if number == edge / 2 * edge + edge / 2 { 1.0 } else { 0.0 }
}

/// Patches that are looked at side by side: on devices, what several have sent is then under way at a time, and to load it
/// takes longest. CPUs look ahead by themselves.
const LANES: usize = if cfg!(target_arch = "nvptx64") { 4 } else { 1 };

/// What a patch sends in a step, of all that has arrived, from one patch after the
/// other. `sent` says what a patch (second) has sent in a step (first) before.
#[inline]
#[allow(clippy::needless_range_loop)]
pub fn arriving(
    here: &Patch,
    all: &[Patch],
    step: usize,
    edge: usize,
    sent: impl Fn(usize, usize) -> f32,
) -> f32 {
    let mut light = 0.0;
    // By index: devices then need fewer instructions for loops over slices.
    let (together, last) = all.as_chunks::<LANES>();
    for nth in 0..together.len() {
        add_light(&mut light, here, &together[nth], nth * LANES, (step, edge), &sent);
    }
    let first = together.len() * LANES;
    for nth in 0..last.len() {
        add_light(&mut light, here, &[last[nth]], first + nth, (step, edge), &sent);
    }
    REFLECTED * light
}

/// Adds what arrives from some patches, the first of which is number `first`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "what is called twice is not joined with the kernel")]
#[allow(clippy::needless_range_loop)]
fn add_light<const N: usize>(
    light: &mut f32,
    here: &Patch,
    patches: &[Patch; N],
    first: usize,
    (step, edge): (usize, usize),
    sent: &impl Fn(usize, usize) -> f32,
) {
    // Loops, not `map`, whose closures are not always joined with the kernel.
    let (mut distances2, mut slants) = ([0.0; N], [0.0; N]);
    for lane in 0..N {
        let there = &patches[lane];
        let way = [there[0] - here[0], there[1] - here[1], there[2] - here[2]];
        distances2[lane] = way[0] * way[0] + way[1] * way[1] + way[2] * way[2];
        slants[lane] = facing(here, way) * -facing(there, way);
    }
    // Of a step, light crosses one patch; of its last one a part counts as whole. In 32 bits,
    // which devices round to faster.
    let before = u32::try_from(step).unwrap_or(u32::MAX);
    let (mut steps, mut arrives) = ([0; N], [false; N]);
    for lane in 0..N {
        let distance = normal::sqrt(distances2[lane].max(NEAR2));
        steps[lane] = math::to_u32(distance * edge as f32);
        arrives[lane] = slants[lane] > 0.0 && steps[lane] < before;
    }
    let sent = |lane: usize| sent(step - 1 - steps[lane] as usize, first + lane);
    let area = 1.0 / (edge * edge) as f32;
    let part = |lane: usize| {
        // The area keeps close patches from getting more than was sent.
        let falls_off = distances2[lane] * (PI * distances2[lane] + area);
        normal::div(area * slants[lane], falls_off)
    };
    // Asked for before anything of it is used; of one patch alone, without asking twice whether it arrives.
    let mut from = [0.0; N];
    for lane in 0..N {
        if arrives[lane] {
            from[lane] = sent(lane);
            if N == 1 {
                *light += part(lane) * from[lane];
            }
        }
    }
    for lane in 0..N {
        if N > 1 && arrives[lane] {
            *light += part(lane) * from[lane];
        }
    }
}

/// How far `way` leads into the direction that a patch faces.
#[inline]
fn facing(patch: &Patch, way: [f32; 3]) -> f32 {
    patch[3] * way[0] + patch[4] * way[1] + patch[5] * way[2]
}

/// The room's [`patch`]es.
#[kernel]
pub fn build_room(item: Item<1>, out: &mut Patch, edge: usize) {
    *out = patch(item.linear_id(), edge);
}

/// The first row of what was sent: the [`flash`].
#[kernel]
pub fn send_flash(item: Item<2>, sent: &mut f32, edge: usize) {
    *sent = flash(item.id()[1], edge);
}

/// What a patch sends in a step: [`arriving`]. Items are steps and patches; `history` has a row
/// for each step before.
#[kernel]
pub fn radiosity(
    item: Item<2>,
    (sent, room, history): (&mut f32, WholeView<'_, Patch, 1>, PartView<'_, f32, 2>),
    edge: usize,
) {
    let [step, here] = item.id();
    let earlier = |step, patch| history[[step, patch]];
    *sent = arriving(&room[here], room.as_slice(), step, edge, earlier);
}
