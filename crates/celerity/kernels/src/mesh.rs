//! Heat that spreads over a mesh of triangles, each of which knows the three beside it. The mesh is cut
//! into parts, and a part is a row of buffers: one row of the triangles that other parts need, its border, and one of
//! the others. Kernels and sequential programs share its functions, so that their results can be compared bit for
//! bit.

use celerity_kernel::{PartView, Row, kernel};

/// The temperature of a triangle after a step: `[a, b, c]` are those beside it, and `[to_a, to_b, to_c]` say
/// how much of the difference flows through the side in between.
#[inline]
#[must_use]
pub fn next(here: f32, [a, b, c]: [f32; 3], [to_a, to_b, to_c]: [f32; 3]) -> f32 {
    here + (to_a * (a - here) + to_b * (b - here) + to_c * (c - here))
}

/// A step of some triangles of a part, which is the first index: of its border, or of the others. `a`, `b` and `c` say
/// what is beside their three sides: a place in the row of the others, or, counted from that row's end on, in a border,
/// of which the number of the part stands above the lowest `bits`; any place where nothing is, as nothing flows there.
#[kernel]
pub fn mesh_step(
    row: Row<2>,
    (after, here, a, b, c, to_a, to_b, to_c, u, borders): (
        &mut [f32],
        &[f32],
        &[u32],
        &[u32],
        &[u32],
        &[f32],
        &[f32],
        &[f32],
        PartView<'_, f32, 2>,
        PartView<'_, f32, 2>,
    ),
    bits: u32,
) {
    // All of the row is declared, so places are positions.
    let part = u.row([row.start()[0]]).as_relative_slice();
    let (beside, flows) = ([a, b, c], [to_a, to_b, to_c]);
    let triangles = Triangles { here, beside, flows, part, borders, bits };
    let mut first = 0;
    while first < after.len() {
        first += match after.len() - first >= RUN {
            true => triangles.advance::<RUN>(first, after),
            false => triangles.advance::<1>(first, after),
        };
    }
}

/// Triangles that are computed at once: as many as a thread of a device gets.
const RUN: usize = 4;

/// Triangles of a row, and what is around them.
struct Triangles<'a> {
    here: &'a [f32],
    /// Where what is beside them is, and how much flows there, by side.
    beside: [&'a [u32]; 3],
    flows: [&'a [f32]; 3],
    /// The temperatures of their part, and those of borders, whose places have so many bits.
    part: &'a [f32],
    borders: PartView<'a, f32, 2>,
    bits: u32,
}

impl Triangles<'_> {
    /// A step of `N` of them, from the `first` on. Returns how many they are.
    ///
    /// Whether all that is beside them is of the part is asked once: if it were asked of each, each load would wait for the
    /// one before.
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "what iterates over an array keeps it in memory")]
    fn advance<const N: usize>(&self, first: usize, after: &mut [f32]) -> usize {
        let beside = self.beside.map(|beside| &beside[first..][..N]);
        let mut last = 0;
        for i in 0..N {
            for side in 0..3 {
                last = beside[side][i].max(last);
            }
        }
        let Some(own) = self.part.get(..=last as usize) else {
            self.advance_at_border::<N>(first, after);
            return N;
        };
        let mut found = [[0.0; 3]; N];
        for i in 0..N {
            for side in 0..3 {
                found[i][side] = own[beside[side][i] as usize];
            }
        }
        self.flow(first, after, found);
        N
    }

    /// The same where some of what is beside them is of borders. Where all is, is found out before anything is loaded. On
    /// CPUs apart from the other: what it needs would be made ready for each.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[cfg_attr(not(target_arch = "nvptx64"), cold, inline(never))]
    #[allow(clippy::needless_range_loop, reason = "as above")]
    fn advance_at_border<const N: usize>(&self, first: usize, after: &mut [f32]) {
        let beside = self.beside.map(|beside| &beside[first..][..N]);
        let (mut places, mut found) = ([[&0.0; 3]; N], [[0.0; 3]; N]);
        for i in 0..N {
            for side in 0..3 {
                places[i][side] = self.place(beside[side][i] as usize);
            }
        }
        for i in 0..N {
            for side in 0..3 {
                found[i][side] = *places[i][side];
            }
        }
        self.flow(first, after, found);
    }

    /// The place with that number: of the part, or in a border.
    #[inline(always)]
    fn place(&self, number: usize) -> &f32 {
        self.part.get(number).unwrap_or_else(|| {
            let number = number - self.part.len();
            let part = number.wrapping_shr(self.bits);
            &self.borders[[part, number - part.wrapping_shl(self.bits)]]
        })
    }

    /// The temperatures after a step, of those that were found beside them.
    #[inline(always)]
    fn flow<const N: usize>(&self, first: usize, after: &mut [f32], beside: [[f32; 3]; N]) {
        let (after, here) = (&mut after[first..][..N], &self.here[first..][..N]);
        let [to_a, to_b, to_c] = self.flows.map(|flows| &flows[first..][..N]);
        for i in 0..N {
            after[i] = next(here[i], beside[i], [to_a[i], to_b[i], to_c[i]]);
        }
    }
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
