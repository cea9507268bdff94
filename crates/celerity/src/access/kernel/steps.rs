//! Where what belongs to the items of a row lies, without asking the range mapper for each of them.

use celerity_kernel::Bounds;

/// Parts that follow each other, each as far behind the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EvenSteps<const D: usize> {
    first: [[usize; D]; 2],
    /// From corner to corner.
    step: [[usize; D]; 2],
}

impl<const D: usize> EvenSteps<D> {
    /// Rows that are shorter are not worth looking at three of their parts beforehand.
    const WORTH_IT: usize = 4;

    /// The parts of `len` items by a [linear](crate::mapper::ItemMapper::is_linear) mapper; `None` if the buffer's edges cut some and
    /// not others, or if they are few.
    ///
    /// A corner that an edge stops on its way is not as far from where it began as so many of the first steps lead. One
    /// that does not move from the first item to the last does not move between them either.
    #[inline]
    pub(super) fn of(len: usize, part: impl Fn(usize) -> Bounds<D>) -> Option<Self> {
        if len < Self::WORTH_IT {
            return None;
        }
        let parts = [0, 1, len - 1].map(part);
        // Empty ones are all alike, wherever they are.
        if parts.iter().any(Bounds::is_empty) {
            return None;
        }
        let [first, second, last] = parts.map(|part| [part.min(), part.max()]);
        let apart = |end: usize, dim: usize| second[end][dim] - first[end][dim];
        let step = [0, 1].map(|end| std::array::from_fn(|dim| apart(end, dim)));
        let steps = Self { first, step };
        (steps.corners(len - 1) == last).then_some(steps)
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // Of kernels that do little for each item, a call is most.
    fn corners(&self, i: usize) -> [[usize; D]; 2] {
        let Self { first, step } = self;
        // For items that are there nothing wraps: the last one's corners are in the buffer.
        let corner =
            |end: usize, dim: usize| first[end][dim].wrapping_add(step[end][dim].wrapping_mul(i));
        [0, 1].map(|end| std::array::from_fn(|dim| corner(end, dim)))
    }

    /// What belongs to the `i`-th item.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub(super) fn part(&self, i: usize) -> Bounds<D> {
        let [min, max] = self.corners(i);
        Bounds::new(min, max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapper::{ItemMapper, Side, per_dimension, slice};
    use celerity_regions::Subrange;

    /// Compares all parts of a row with what the mapper says; whether there were steps.
    fn agrees<M: ItemMapper<1, 1> + std::fmt::Debug>(mapper: &M, start: usize, len: usize) -> bool {
        let global = Subrange { offset: [0], range: [64] };
        let part = |i: usize| mapper.part(Bounds::new([start + i], [start + i + 1]), global, [40]);
        assert!(mapper.is_linear());
        let steps = EvenSteps::of(len, part);
        if let Some(steps) = &steps {
            for i in 0..len {
                assert_eq!(steps.part(i), part(i), "{mapper:?}, {start} and {len}, {i}");
            }
        }
        steps.is_some()
    }

    #[test]
    fn steps_lead_where_the_mapper_does() {
        let (mut with, mut without) = (0, 0);
        let mut sides = vec![Side::all(), Side::only(3..5), Side::along(1)];
        for (stride, offset) in [0, 1, 2, 3]
            .into_iter()
            .flat_map(|stride| [-90, -5, -1, 0, 2, 39, 50].map(|offset| (stride, offset)))
        {
            let side = Side::along(0).stride(stride).offset(offset);
            sides.extend([side, side.window(5), side.border(2), side.border(60)]);
        }
        for side in sides {
            let mapper = per_dimension([side]).clamped();
            for (start, len) in [(0, 4), (0, 64), (3, 9), (20, 20), (60, 4), (0, 3)] {
                let found = agrees(&mapper, start, len);
                (with, without) = (with + usize::from(found), without + usize::from(!found));
            }
        }
        assert!(with > 100 && without > 100, "{with} and {without}");
        assert!(agrees(&slice(0), 0, 64));
        // Blocks of two of all that there is, and one too many.
        let blocks = per_dimension([Side::along(0).stride(2)]).clamped();
        assert!(agrees(&blocks, 0, 20) && !agrees(&blocks, 0, 21));
    }

    #[test]
    fn boxes_go_along_with_the_fastest_index() {
        let mapper =
            per_dimension([Side::along(1).stride(3).window(3), Side::along(0), Side::all()]);
        let global = Subrange { offset: [0, 0], range: [9, 9] };
        let part = |i: usize| mapper.part(Bounds::new([4, i], [5, i + 1]), global, [27, 9, 2]);
        let steps = EvenSteps::of(9, part).unwrap();
        assert_eq!(steps.part(7), Bounds::new([21, 4, 0], [24, 5, 2]));
        assert!((0..9).all(|i| steps.part(i) == part(i)));
    }
}
