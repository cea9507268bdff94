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
    let around = Around { beside: [a, b, c], part, borders, bits };
    let (len, flows) = (after.len(), [to_a, to_b, to_c]);
    let mut first = 0;
    while first < len {
        first += match len - first >= RUN {
            true => advance::<RUN>(first, (after, here), flows, &around),
            false => advance::<1>(first, (after, here), flows, &around),
        };
    }
}

/// Triangles that are computed at once: as many as a thread of a device gets.
const RUN: usize = 4;

/// A step of `N` triangles, from the `first` on. Returns how many they are.
#[inline(always)]
fn advance<const N: usize>(
    first: usize,
    (after, here): (&mut [f32], &[f32]),
    flows: [&[f32]; 3],
    around: &Around<'_>,
) -> usize {
    let (after, here) = (&mut after[first..][..N], of::<N>(here, first));
    let [to_a, to_b, to_c] = flows.map(|flows| of::<N>(flows, first));
    let beside = around.temperatures::<N>(first);
    for i in 0..N {
        after[i] = next(here[i], beside[i], [to_a[i], to_b[i], to_c[i]]);
    }
    N
}

/// The `N` numbers from the `first` on, which are on their way when it is found out what is beside triangles.
#[inline(always)]
fn of<const N: usize>(numbers: &[f32], first: usize) -> [f32; N] {
    numbers[first..].first_chunk().copied().expect("rows are equally long")
}

/// What triangles have beside them.
struct Around<'a> {
    /// Where it is, by side.
    beside: [&'a [u32]; 3],
    /// The temperatures of their part, and those of borders, whose places have so many bits.
    part: &'a [f32],
    borders: PartView<'a, f32, 2>,
    bits: u32,
}

impl Around<'_> {
    /// The temperatures beside `N` triangles, from the `first` on.
    ///
    /// Where all are is found out before one is loaded, and whether all are of the part is asked once: otherwise each load
    /// would wait for the one before.
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "what iterates over an array keeps it in memory")]
    fn temperatures<const N: usize>(&self, first: usize) -> [[f32; 3]; N] {
        let beside = self.beside.map(|beside| &beside[first..][..N]);
        let (mut last, mut found) = (0, [[0.0; 3]; N]);
        for i in 0..N {
            for side in 0..3 {
                last = beside[side][i].max(last);
            }
        }
        if let Some(own) = self.part.get(..=last as usize) {
            for i in 0..N {
                for side in 0..3 {
                    found[i][side] = own[beside[side][i] as usize];
                }
            }
        } else {
            let mut places = [[&0.0; 3]; N];
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
        }
        found
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
