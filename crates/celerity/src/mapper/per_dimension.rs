//! Range mappers that say of each dimension of the buffer by itself what is touched: dimensions that
//! are selected, permuted, strided, shifted or shared out.

use std::ops::Range;

use celerity_kernel::Bounds;
use celerity_regions::Subrange;
use celerity_tdag::{self as tdag, Mapper, Share, Windows};

use super::{ChunkMapper, ItemMapper, MapperFor, Unfit};
use crate::range::{bounds, subrange, to_box};

/// What an item touches along one dimension of a buffer, for [`per_dimension`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Side(Form);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Form {
    All,
    Only {
        min: u64,
        max: u64,
    },
    Along {
        dim: usize,
        stride: usize,
        offset: isize,
        window: Option<usize>,
        border: usize,
        is_clamped: bool,
    },
    Share {
        dim: usize,
        granularity: usize,
    },
}

/// The range mapper that [`per_dimension`], [`select`], [`transposed`] and [`even_split`] make: for each dimension of
/// the buffer, a [`Side`] says what an item touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PerDimension<const D: usize> {
    sides: [Side; D],
}

/// A range mapper that is put together of one [`Side`] for each dimension of the buffer, the slowest
/// first. The index space may have any number of dimensions; each of them is followed once at most.
/// Items may write through it if it keeps them apart, in compiled kernels on GPUs as well.
///
/// ```
/// use celerity::prelude::*;
///
/// // Each item of a line has a block of two columns.
/// let blocks = celerity::run(|queue| {
///     let matrix = queue.buffer_from([2, 4], vec![1, 2, 3, 4, 5, 6, 7, 8])?;
///     let sums = queue.buffer::<i32, 1>(2);
///     let columns = per_dimension([Side::all(), Side::along(0).stride(2)]);
///     let accesses = (sums.write(one_to_one()), matrix.read(columns));
///     queue.task("sum").parallel_for(2, accesses, |item, (sum, matrix)| {
///         let first = 2 * item[0];
///         *sum = [0, 1].map(|y| matrix[[y, first]] + matrix[[y, first + 1]]).iter().sum();
///     })?;
///     Ok(queue.fence(&sums)?.wait()?.into_vec())
/// })?;
/// assert_eq!(blocks, [1 + 2 + 5 + 6, 3 + 4 + 7 + 8]);
/// # Ok::<(), celerity::Error>(())
/// ```
#[must_use]
pub fn per_dimension<const D: usize>(sides: [Side; D]) -> PerDimension<D> {
    const { crate::range::check_dimensions(D) };
    PerDimension { sides }
}

/// Each item touches one element: dimension `d` of the buffer has the item's index along dimension
/// `dims[d]` of the index space. One to one between spaces of different dimensionality.
///
/// ```
/// use celerity::prelude::*;
///
/// let scaled = celerity::run(|queue| {
///     let matrix = queue.buffer_from([2, 3], vec![1, 2, 3, 4, 5, 6])?;
///     let factors = queue.buffer_from(3, vec![1, 10, 100])?;
///     let accesses = (matrix.read_write(one_to_one()), factors.read(select([1])));
///     queue.task("scale").parallel_for([2, 3], accesses, |item, (element, factors)| {
///         *element *= factors[item[1]];
///     })?;
///     Ok(queue.fence(&matrix)?.wait()?.into_vec())
/// })?;
/// assert_eq!(scaled, [1, 20, 300, 4, 50, 600]);
/// # Ok::<(), celerity::Error>(())
/// ```
#[must_use]
pub fn select<const D: usize>(dims: [usize; D]) -> PerDimension<D> {
    per_dimension(dims.map(Side::along))
}

/// Each item touches the element with its two indices exchanged.
///
/// ```
/// use celerity::prelude::*;
///
/// let turned = celerity::run(|queue| {
///     let matrix = queue.buffer_from([2, 3], vec![1, 2, 3, 4, 5, 6])?;
///     let turned = queue.buffer::<i32, 2>([3, 2]);
///     let accesses = (turned.write(one_to_one()), matrix.read(transposed()));
///     queue.task("turn").parallel_for([3, 2], accesses, |item, (out, matrix)| {
///         *out = matrix[[item[1], item[0]]];
///     })?;
///     Ok(queue.fence(&turned)?.wait()?.into_vec())
/// })?;
/// assert_eq!(turned, [1, 4, 2, 5, 3, 6]);
/// # Ok::<(), celerity::Error>(())
/// ```
#[must_use]
pub fn transposed() -> PerDimension<2> {
    select([1, 0])
}

/// Each item touches a block of its own: `size[d]` elements along dimension `d`, from the item's index
/// times so many on. The buffer has at least as many elements as the items have together, unless blocks are
/// [`clamped`](PerDimension::clamped).
///
/// ```
/// use celerity::prelude::*;
///
/// let sums = celerity::run(|queue| {
///     let pixels = queue.buffer_from([2, 4], vec![1, 2, 3, 4, 5, 6, 7, 8])?;
///     let coarse = queue.buffer::<i32, 2>([1, 2]);
///     let accesses = (coarse.write(one_to_one()), pixels.read(blocks([2, 2])));
///     queue.task("shrink").parallel_for([1, 2], accesses, |item, (sum, pixels)| {
///         let [y, x] = item.id().map(|at| 2 * at);
///         *sum = pixels[[y, x]] + pixels[[y, x + 1]] + pixels[[y + 1, x]] + pixels[[y + 1, x + 1]];
///     })?;
///     Ok(queue.fence(&coarse)?.wait()?.into_vec())
/// })?;
/// assert_eq!(sums, [1 + 2 + 5 + 6, 3 + 4 + 7 + 8]);
/// # Ok::<(), celerity::Error>(())
/// ```
///
/// Items that read through it get a view of all blocks of their chunk, and find their own by index. Items that write through it
/// get a `PartViewMut` of their block, in compiled kernels too, where it is how an item keeps
/// many elements in registers: `matmul_blocks` of the examples has 8 × 8.
#[must_use]
pub fn blocks<const D: usize>(size: [usize; D]) -> PerDimension<D> {
    let mut dim = 0;
    per_dimension(size.map(|size| {
        dim += 1;
        Side::along(dim - 1).stride(size)
    }))
}

/// The slowest dimension of the buffer, cut into as many even shares as the index space has items
/// along its slowest dimension; all of the other dimensions. For what is done by parts, whatever
/// the parts are: an item for each node, say, with its part of a file.
///
/// ```
/// use celerity::prelude::*;
///
/// let largest = celerity::run(|queue| {
///     let values = queue.buffer_from(5, vec![4, 1, 3, 9, 2])?;
///     let largest = queue.buffer::<i32, 1>(2);
///     let accesses = (largest.write(one_to_one()), values.read(even_split()));
///     queue.task("search").parallel_for(2, accesses, |item, (largest, values)| {
///         let (first, end) = [(0, 2), (2, 5)][item[0]];
///         *largest = values[first..end].iter().copied().max().unwrap();
///     })?;
///     Ok(queue.fence(&largest)?.wait()?.into_vec())
/// })?;
/// assert_eq!(largest, [4, 9]);
/// # Ok::<(), celerity::Error>(())
/// ```
#[must_use]
pub fn even_split<const D: usize>() -> PerDimension<D> {
    let mut sides = [Side::all(); D];
    if let Some(slowest) = sides.first_mut() {
        *slowest = Side::share(0);
    }
    per_dimension(sides)
}

impl Side {
    /// All of the dimension.
    #[must_use]
    pub const fn all() -> Self {
        Self(Form::All)
    }

    /// The same elements for all items.
    #[must_use]
    pub const fn only(elements: Range<usize>) -> Self {
        Self(Form::Only { min: elements.start as u64, max: elements.end as u64 })
    }

    /// The element of the item's index along dimension `dim` of the index space, 0 being the
    /// slowest.
    #[must_use]
    pub const fn along(dim: usize) -> Self {
        let (stride, offset, window, border, is_clamped) = (1, 0, None, 0, false);
        Self(Form::Along { dim, stride, offset, window, border, is_clamped })
    }

    /// An even share of the dimension: item `i` of the `n` along dimension `dim` of the index space
    /// has the elements from `size · i / n`, rounded down, up to the share of the next one.
    #[must_use]
    pub const fn share(dim: usize) -> Self {
        Self(Form::Share { dim, granularity: 1 })
    }

    /// Of what follows items: `stride` elements lie between the beginnings of neighbours, and each
    /// item has all of them, if [`window`](Self::window) says nothing else. No effect on others.
    #[must_use]
    pub const fn stride(mut self, elements: usize) -> Self {
        if let Form::Along { stride, .. } = &mut self.0 {
            *stride = elements;
        }
        self
    }

    /// Of what follows items: the elements of item 0 begin at `offset`. No effect on others.
    #[must_use]
    pub const fn offset(mut self, elements: isize) -> Self {
        if let Form::Along { offset, .. } = &mut self.0 {
            *offset = elements;
        }
        self
    }

    /// Of what follows items: each has so many elements, at least as many as the stride unless the
    /// mapper is [`with_gaps`](PerDimension::with_gaps). No effect on others.
    #[must_use]
    pub const fn window(mut self, elements: usize) -> Self {
        if let Form::Along { window, .. } = &mut self.0 {
            *window = Some(elements);
        }
        self
    }

    /// Of what follows items: so many elements more to either side; the buffer's edges clamp
    /// them, and whatever else leaves it. No effect on others.
    #[must_use]
    pub const fn border(mut self, elements: usize) -> Self {
        if let Form::Along { border, .. } = &mut self.0 {
            *border = elements;
        }
        self
    }

    /// Of a share: so many elements belong together, and what is shared out evenly are these runs: item `i` of `n` has the
    /// elements from `elements · (⌈size / elements⌉ · i / n)`, rounded down within the parentheses, up to the share of the
    /// next one. No effect on others.
    #[must_use]
    pub const fn granularity(mut self, elements: usize) -> Self {
        if let Form::Share { granularity, .. } = &mut self.0 {
            *granularity = elements;
        }
        self
    }

    fn lower(self) -> tdag::Side {
        match self.0 {
            Form::All => tdag::Side::All,
            Form::Only { min, max } => tdag::Side::Only { min, max },
            Form::Share { dim, granularity } => {
                let from = dimension(dim);
                tdag::Side::Share(Share { from, granularity: granularity as u64 })
            }
            Form::Along { dim, stride, offset, window, border, is_clamped } => {
                let window = window.unwrap_or(stride.max(1));
                let border = border.min(isize::MAX as usize) as u64;
                tdag::Side::Windows(Windows {
                    from: dimension(dim),
                    stride: stride as u64,
                    first: (offset as i64).saturating_sub_unsigned(border),
                    width: (window as u64).saturating_add(2 * border),
                    clamped: is_clamped || border > 0,
                })
            }
        }
    }

    /// What the items of `part`, of which there are some, touch of a dimension of `size` elements: what
    /// [`tdag::PerDimension::hull`] says within the buffer, found out in a few steps. `None` if it takes more than these.
    #[inline]
    fn interval<const K: usize>(self, part: &Bounds<K>, size: usize) -> Option<Range<usize>> {
        match self.0 {
            Form::All => Some(0..size),
            // Whether what leaves the buffer is an error, the task graph has decided.
            Form::Along { dim, stride, offset, window, border, is_clamped: _ } => {
                let begins = |item: usize| {
                    let element = isize::try_from(item.checked_mul(stride)?).ok()?;
                    element.checked_add(offset)?.checked_sub_unsigned(border)
                };
                let reach = window.unwrap_or(stride.max(1)).checked_add(border.checked_mul(2)?)?;
                let first = begins(*part.min().get(dim)?)?;
                let end =
                    begins(part.max().get(dim)?.checked_sub(1)?)?.checked_add_unsigned(reach)?;
                let within = |element: isize| usize::try_from(element).unwrap_or(0).min(size);
                Some(within(first)..within(end))
            }
            Form::Only { .. } | Form::Share { .. } => None,
        }
    }

    /// Stride and window, if windows leave out elements between them.
    fn gaps(self) -> Option<(usize, usize)> {
        match self.0 {
            Form::Along { stride, window: Some(window), .. } if window < stride => {
                Some((stride, window))
            }
            _ => None,
        }
    }

    /// Whether windows leave out elements between items along dimension `along`.
    fn has_gaps_along(self, along: usize) -> bool {
        matches!(self.0, Form::Along { dim, .. } if dim == along) && self.gaps().is_some()
    }
}

/// Dimensions that no index space has are reported as the last of them.
fn dimension(dim: usize) -> u8 {
    u8::try_from(dim).unwrap_or(u8::MAX)
}

impl<const D: usize> PerDimension<D> {
    /// The same, of which the buffer's edges clamp what leaves it, as they clamp [borders](Side::border): a last
    /// block that is not whole, say. Without it, that is an error.
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// // Ten numbers in blocks of four.
    /// let ranks = celerity::run(|queue| {
    ///     let ranks = queue.buffer::<usize, 1>(10);
    ///     queue.task("rank").parallel_for(3, ranks.write(blocks([4]).clamped()), |item, mut ranks| {
    ///         let first = 4 * item[0];
    ///         ranks[first..(first + 4).min(10)].iter_mut().enumerate().for_each(|(at, rank)| *rank = at);
    ///     })?;
    ///     Ok(queue.fence(&ranks)?.wait()?.into_vec())
    /// })?;
    /// assert_eq!(ranks, [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    #[must_use]
    pub const fn clamped(mut self) -> Self {
        let mut dim = 0;
        while dim < D {
            if let Form::Along { is_clamped, .. } = &mut self.sides[dim].0 {
                *is_clamped = true;
            }
            dim += 1;
        }
        self
    }

    #[inline]
    pub(super) fn sides(&self) -> tdag::PerDimension {
        tdag::PerDimension::new(&self.sides.map(Side::lower))
    }

    /// As [`Side::has_gaps_along`], of any dimension of the buffer.
    pub(super) fn has_gaps_along(&self, dim: usize) -> bool {
        self.sides.iter().any(|side| side.has_gaps_along(dim))
    }

    /// The box around what `part` of the index space touches, by way of the task graph's mapper.
    #[inline(never)]
    fn hull<const K: usize>(
        &self,
        part: Subrange<K>,
        global: Subrange<K>,
        buffer: [usize; D],
    ) -> Bounds<D> {
        let buffer = to_box(Subrange { offset: [0; D], range: buffer });
        let image = self.sides().hull(&to_box(part), &to_box(global), &buffer);
        bounds(&image.intersection(&buffer))
    }
}

impl<const K: usize, const D: usize> MapperFor<K, D> for PerDimension<D> {
    fn lower(&self) -> Result<Mapper, Unfit> {
        match self.sides.iter().find_map(|side| side.gaps()) {
            Some((stride, window)) => Err(Unfit::Gaps { stride, window }),
            None => Ok(Mapper::PerDimension(self.sides().into())),
        }
    }
}

impl<const K: usize, const D: usize> ChunkMapper<K, D> for PerDimension<D> {}

impl<const K: usize, const D: usize> ItemMapper<K, D> for PerDimension<D> {
    /// Whether items are kept apart, the task graph has decided when the task was submitted.
    #[inline]
    fn part(&self, part: Bounds<K>, global: Subrange<K>, buffer: [usize; D]) -> Bounds<D> {
        let (mut min, mut max) = ([0; D], [0; D]);
        for dim in 0..D {
            let Some(interval) = self.sides[dim].interval(&part, buffer[dim]) else {
                return self.hull(subrange(&part), global, buffer);
            };
            (min[dim], max[dim]) = (interval.start, interval.end);
        }
        Bounds::new(min, max)
    }

    /// Where an interval begins and where it ends moves on with the items, if at all.
    #[inline]
    fn is_monotone(&self) -> bool {
        true
    }

    #[inline]
    fn is_linear(&self) -> bool {
        self.sides.iter().all(|side| !matches!(side.0, Form::Share { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sides of which some leave the buffer, some are empty, and some are beyond all numbers.
    fn sides() -> Vec<Side> {
        let mut sides = vec![Side::all(), Side::only(1..3), Side::only(2..9), Side::share(0)];
        for (dim, stride) in [0, 1].into_iter().flat_map(|dim| [0, 1, 2, 5].map(|by| (dim, by))) {
            for offset in [-7, -1, 0, 3, isize::MIN, isize::MAX] {
                let side = Side::along(dim).stride(stride).offset(offset);
                let borders = [0, 1, 4, usize::MAX / 2, usize::MAX];
                sides.extend(borders.map(|border| side.border(border)));
                sides.extend([0, 1, 6, usize::MAX].map(|window| side.window(window).border(1)));
            }
        }
        sides.extend([1 << 62, usize::MAX].map(|stride| Side::along(0).stride(stride)));
        sides
    }

    #[test]
    fn kernels_find_the_part_that_the_task_graph_knows() {
        let parts = [([0, 0], [1, 1]), ([2, 1], [3, 2]), ([0, 3], [4, 9]), ([3, 0], [8, 1])];
        let global = Subrange { offset: [0, 0], range: [8, 9] };
        let sides = sides();
        for (number, &side) in sides.iter().enumerate() {
            let mapper = per_dimension([side, sides[sides.len() - 1 - number]]);
            let both = [mapper, mapper.clamped()];
            let parts = parts.map(|(min, max)| Bounds::new(min, max));
            for (mapper, part) in both.into_iter().flat_map(|it| parts.map(|part| (it, part))) {
                let expected = mapper.hull(subrange(&part), global, [6, 11]);
                assert_eq!(mapper.part(part, global, [6, 11]), expected, "{mapper:?}, {part:?}");
            }
        }
    }

    #[test]
    fn parts_whose_ends_are_in_a_line_with_the_first_step_are_all_in_it() {
        let global = Subrange { offset: [0, 0], range: [8, 40] };
        let mut lines = 0;
        for side in sides().into_iter().filter(|side| !matches!(side.0, Form::Share { .. })) {
            let mapper = per_dimension([side]).clamped();
            assert!(ItemMapper::<2, 1>::is_linear(&mapper));
            for (start, len) in [(0, 4), (0, 40), (5, 7), (30, 9)] {
                let part = |x| mapper.part(Bounds::new([2, x], [3, x + 1]), global, [13]);
                let parts: Vec<_> = (start..start + len).map(part).collect();
                let corners = |i: usize| [parts[i].min()[0], parts[i].max()[0]];
                let [first, second] = [0, 1].map(corners);
                let on_line =
                    |i: usize| [0, 1].map(|end| first[end] + i * (second[end] - first[end]));
                let ends = [0, 1, len - 1];
                if ends.iter().any(|&i| parts[i].is_empty()) || corners(len - 1) != on_line(len - 1)
                {
                    continue;
                }
                lines += 1;
                assert!((0..len).all(|i| corners(i) == on_line(i)), "{side:?}, {start} and {len}");
            }
        }
        assert!(lines > 100, "{lines}");
    }

    #[test]
    fn what_belongs_to_some_items_has_in_it_what_belongs_to_each() {
        let global = Subrange { offset: [0, 0], range: [4, 4] };
        for side in sides() {
            let mapper = per_dimension([side]);
            let of = |min, max| mapper.part(Bounds::new(min, max), global, [13]);
            let all = of([0, 0], [4, 4]);
            for item in (0..4).flat_map(|y| (0..4).map(move |x| [y, x])) {
                let own = of(item, item.map(|at| at + 1));
                assert!(own.is_empty() || all.contains_all(&own), "{side:?}, {item:?}");
            }
        }
    }
}
