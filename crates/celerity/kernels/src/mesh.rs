//! Heat that spreads over a mesh of triangles, each of which knows the three beside it. The mesh is cut
//! into parts, and a part is a row of buffers: what other parts need of it is packed into another row.
//! Kernels and sequential programs share its functions, so that their results can be compared bit for
//! bit.

use celerity_kernel::{Item, PartView, PlainData, kernel};

/// A triangle of a mesh in parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, PlainData)]
#[repr(C)]
pub struct Element {
    /// The part of the triangle beside each side, and its place there: in the part's row if that is
    /// this element's own, and among what that part has packed else.
    pub beside: [[u32; 2]; 3],
    /// How much of the difference in temperature flows through each side in a step; 0 where nothing
    /// is beside it.
    pub conductances: [f32; 3],
}

/// The temperature of an element after a step.
#[inline]
#[must_use]
pub fn next(here: f32, [a, b, c]: [f32; 3], [to_a, to_b, to_c]: [f32; 3]) -> f32 {
    here + (to_a * (a - here) + to_b * (b - here) + to_c * (c - here))
}

/// Packs what other parts need: `from` says which element of the part.
#[kernel]
pub fn mesh_pack(item: Item<2>, (border, from, u): (&mut f32, &u32, PartView<'_, f32, 2>)) {
    *border = u[[item[0], *from as usize]];
}

/// A step of an element, whose part is the item's first index.
#[kernel]
pub fn mesh_step(
    item: Item<2>,
    (after, element, u, borders): (&mut f32, &Element, PartView<'_, f32, 2>, PartView<'_, f32, 2>),
) {
    let here = u[item.id()];
    let mut beside = [here; 3];
    for (side, beside) in beside.iter_mut().enumerate() {
        let [part, at] = element.beside[side].map(|index| index as usize);
        if element.conductances[side] > 0.0 {
            *beside = if part == item[0] { u[[part, at]] } else { borders[[part, at]] };
        }
    }
    *after = next(here, beside, element.conductances);
}

#[cfg(test)]
mod tests {
    use super::next;

    #[test]
    fn heat_flows_from_what_is_warmer() {
        assert_eq!(next(0.0, [1.0, 0.0, -1.0], [0.25, 0.5, 0.125]), 0.125);
        assert_eq!(next(2.0, [2.0; 3], [0.25; 3]), 2.0);
    }
}
