//! Light on its way through a room: a cube with walls of square patches, which send
//! on what arrives at them, to all that they see, when light has got there. What a
//! patch sends in a step depends on what all others have sent in earlier ones.

use core::f32::consts::PI;

use celerity_kernel::{Item, PartView, WholeView, kernel, math};

/// A patch of a wall: the place of its middle, and the direction that it faces. The
/// room has edges of length 1.
pub type Patch = [f32; 6];

/// The part of the light that a wall sends on.
const REFLECTED: f32 = 0.8;

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

/// What a patch sends in a step, of all that has arrived, from one patch after the
/// other. `sent` says what a patch (second) has sent in a step (first) before.
#[inline]
pub fn arriving(
    here: &Patch,
    all: &[Patch],
    step: usize,
    edge: usize,
    sent: impl Fn(usize, usize) -> f32,
) -> f32 {
    let area = 1.0 / (edge * edge) as f32;
    let mut light = 0.0;
    for (number, there) in all.iter().enumerate() {
        let way: [f32; 3] = core::array::from_fn(|axis| there[axis] - here[axis]);
        let distance2 = way[0] * way[0] + way[1] * way[1] + way[2] * way[2];
        let slant = facing(here, way) * -facing(there, way);
        // Of a step, light crosses one patch; of its last one a part counts as whole. In 32 bits,
        // which devices round to faster.
        let steps = 1 + math::to_u32(math::sqrt(distance2) * edge as f32) as usize;
        if slant > 0.0 && steps <= step {
            // Asked for first, so that it is under way during the division.
            let sent = sent(step - steps, number);
            // The area keeps close patches from getting more than was sent.
            light += area * slant / (distance2 * (PI * distance2 + area)) * sent;
        }
    }
    REFLECTED * light
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
