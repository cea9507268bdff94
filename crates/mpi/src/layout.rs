//! Where the bytes of a payload lie, and how a payload is cut into messages.
//! Geometry only: knows neither addresses nor MPI.

use celerity_regions::Box3;
use smallvec::SmallVec;

/// The bytes of a box of elements inside a row-major array: one contiguous run,
/// in up to two loops. Equal layouts at other addresses share a datatype.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StridedBytes {
    /// Bytes per run.
    pub(crate) run: usize,
    /// Number of runs, outer and inner.
    pub(crate) rows: [usize; 2],
    /// Bytes from one run to the next, outer and inner; 0 where there is one.
    pub(crate) steps: [usize; 2],
}

impl StridedBytes {
    /// The layout of `elements` in an array that holds `extent`, and how many
    /// bytes into the array it begins.
    ///
    /// # Panics
    /// If the elements are not inside the extent.
    pub(crate) fn new(extent: &Box3, elements: &Box3, elem_size: u64) -> (Self, usize) {
        assert!(extent.contains(elements), "{elements} is not in {extent}");
        let (counts, sizes) = (elements.range(), extent.range());
        let steps = [sizes[1] * sizes[2], sizes[2], 1].map(|step| step * elem_size);
        let (origin, min) = (extent.min(), elements.min());
        let first = (0..3).map(|dim| (min[dim] - origin[dim]) * steps[dim]).sum();
        // A dimension that is covered is one with the next slower one, and so
        // is every dimension once there is but one line of the slower ones.
        let mut run = counts[2] * elem_size;
        let mut loops = SmallVec::<[(u64, u64); 2]>::new();
        for dim in [1, 0] {
            match loops.last_mut() {
                _ if counts[dim] == 1 => {}
                None if run == steps[dim] => run *= counts[dim],
                Some((count, step)) if *count * *step == steps[dim] => *count *= counts[dim],
                _ => loops.push((counts[dim], steps[dim])),
            }
        }
        let [inner, outer] = [0, 1].map(|level| loops.get(level).copied().unwrap_or((1, 0)));
        let rows = [outer.0, inner.0].map(bytes);
        (Self { run: bytes(run), rows, steps: [outer.1, inner.1].map(bytes) }, bytes(first))
    }

    /// Whether it is one run.
    pub(crate) fn is_contiguous(&self) -> bool {
        self.rows == [1, 1]
    }
}

fn bytes(count: u64) -> usize {
    usize::try_from(count).expect("live memory fits the address space")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The offsets of all bytes that a layout describes, in order.
    fn offsets((layout, first): (StridedBytes, usize)) -> Vec<usize> {
        let StridedBytes { run, rows, steps } = layout;
        let starts = (0..rows[0]).flat_map(|outer| {
            (0..rows[1]).map(move |inner| first + outer * steps[0] + inner * steps[1])
        });
        starts.flat_map(|start| start..start + run).collect()
    }

    /// The same by walking elements.
    fn walked(extent: &Box3, elements: &Box3, elem_size: u64) -> Vec<usize> {
        let (origin, sizes) = (extent.min(), extent.range());
        let (min, max) = (elements.min(), elements.max());
        let mut all = Vec::new();
        for z in min[0]..max[0] {
            for y in min[1]..max[1] {
                for x in min[2]..max[2] {
                    let [dz, dy, dx] = [z - origin[0], y - origin[1], x - origin[2]];
                    let index = (dz * sizes[1] + dy) * sizes[2] + dx;
                    all.extend((index * elem_size..(index + 1) * elem_size).map(bytes));
                }
            }
        }
        all
    }

    fn boxes(side: u64) -> impl Iterator<Item = Box3> {
        let spans =
            move || (0..side).flat_map(move |from| (from + 1..=side).map(move |to| (from, to)));
        spans().flat_map(move |z| {
            spans().flat_map(move |y| {
                spans().map(move |x| Box3::new([z.0, y.0, x.0], [z.1, y.1, x.1]))
            })
        })
    }

    #[test]
    fn layouts_cover_every_byte_in_order() {
        let extent = Box3::new([0, 0, 0], [3, 3, 3]);
        for elements in boxes(3) {
            let layout = StridedBytes::new(&extent, &elements, 3);
            assert_eq!(offsets(layout), walked(&extent, &elements, 3), "{elements}");
        }
    }

    #[test]
    fn what_is_contiguous_is_one_run() {
        let extent = Box3::new([5, 5, 5], [9, 8, 7]);
        for (min, max, contiguous) in [
            ([5, 5, 5], [9, 8, 7], true),
            ([6, 5, 5], [8, 8, 7], true),
            ([6, 6, 5], [7, 8, 7], true),
            ([6, 6, 5], [7, 7, 6], true),
            ([6, 6, 5], [8, 8, 7], false),
            ([6, 6, 5], [7, 8, 6], false),
        ] {
            let (layout, _) = StridedBytes::new(&extent, &Box3::new(min, max), 4);
            assert_eq!(layout.is_contiguous(), contiguous, "{min:?} {max:?}");
        }
    }
}
