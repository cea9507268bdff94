//! Range mappers whose image of a chunk is several boxes, with elements between them that nobody has
//! asked for: functions of the user's, and windows with gaps.

use celerity_kernel::Bounds;
use celerity_regions::{Chunk, Region, Subrange};
use celerity_tdag::{Mapper, MapperInput, RangeMapper, UserMapper};

use super::{ItemMapper, MapperFor, PerDimension, Unfit, chunk_of};
use crate::range::{bounds, to_box};

/// The range mapper that [`region_mapper`] and [`region_mapper_of`](super::region_mapper_of) make: a function from a
/// chunk of `K` dimensions to any number of parts of a buffer of `D` dimensions. Two are equal if they are copies of
/// one, or made of equal values of one type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RegionMapper<const K: usize, const D: usize>(pub(super) UserMapper);

/// The range mapper that [`PerDimension::with_gaps`] makes: windows of the buffer, between which elements belong to
/// nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gapped<const D: usize>(pub(super) PerDimension<D>);

/// The range mapper that [`RegionMapper::around`] and [`Gapped::around`] make: several boxes, as one view of what is around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BoxAround<M>(M);

/// A range mapper of your own whose image of a chunk is several boxes, for reads: as
/// [`mapper`](super::mapper()), but `map` returns any number of parts, in any order, which may
/// overlap. Closures and host tasks get a [`RegionView`](crate::RegionView) of all of them.
///
/// Only what is named is sent and copied. It lies in one allocation, though, with addresses for what
/// is between: memory is behind these only where the device backs an allocation as a whole, as GPUs
/// do. Kernels with [`#[kernel]`](celerity_kernel::kernel) read it [around](RegionMapper::around) all boxes.
///
/// ```
/// use celerity::prelude::*;
///
/// // The elements two to the left and two to the right of a chunk, and none of its own.
/// let halos = region_mapper("halos", |chunk: Chunk<1>, [size]: [usize; 1]| {
///     let (first, end) = (chunk.offset[0], chunk.offset[0] + chunk.range[0]);
///     let left = first.saturating_sub(2)..(end.saturating_sub(2));
///     let right = (first + 2).min(size)..(end + 2).min(size);
///     [left, right].map(|part| Subrange::new([part.start], [part.len()]))
/// });
/// let sums = celerity::run(|queue| {
///     let u = queue.buffer_from(6, vec![1, 2, 3, 4, 5, 6])?;
///     let sums = queue.buffer::<i32, 1>(6);
///     let accesses = (sums.write(one_to_one()), u.read(halos.clone()));
///     queue.task("sum").parallel_for(6, accesses, |item, (sum, u)| {
///         let left = item[0].checked_sub(2).map_or(0, |at| u[at]);
///         *sum = left + u.get(item[0] + 2).copied().unwrap_or(0);
///     })?;
///     Ok(queue.fence(&sums)?.wait()?.into_vec())
/// })?;
/// assert_eq!(sums, [3, 4, 1 + 5, 2 + 6, 3, 4]);
/// # Ok::<(), celerity::Error>(())
/// ```
pub fn region_mapper<const K: usize, const D: usize, R>(
    name: impl Into<String>,
    map: impl Fn(Chunk<K>, [usize; D]) -> R + Send + Sync + 'static,
) -> RegionMapper<K, D>
where
    R: IntoIterator<Item = Subrange<D>>,
{
    const { crate::range::check_dimensions(D) };
    let map = move |chunk: Chunk<K>, buffer: [usize; D]| region(map(chunk, buffer));
    RegionMapper(UserMapper::new(Parts { name: name.into(), map }))
}

/// All elements of some parts.
pub(super) fn region<const D: usize>(parts: impl IntoIterator<Item = Subrange<D>>) -> Region {
    Region::from_boxes(parts.into_iter().map(to_box))
}

/// A user's function under the task graph's interface.
struct Parts<F, const K: usize, const D: usize> {
    name: String,
    map: F,
}

impl<F, const K: usize, const D: usize> RangeMapper for Parts<F, K, D>
where
    F: Fn(Chunk<K>, [usize; D]) -> Region + Send + Sync + 'static,
{
    fn map(&self, input: &MapperInput) -> Region {
        (self.map)(chunk_of(input), bounds(&input.buffer).range())
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl<const D: usize> PerDimension<D> {
    /// The same, where [windows](super::Side::window) may be narrower than their stride: the elements
    /// between the windows of neighbours are left out, neither sent nor overwritten. Closures and host
    /// tasks read through a [`RegionView`](crate::RegionView); an item writes its own window, and a
    /// row kernel gets items one by one where windows leave gaps along the row.
    ///
    /// A chunk of `n` items has up to `n` boxes for each dimension with gaps, which scheduling goes
    /// through; wide windows at a wide stride are cheap, single elements at a stride of two are not.
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// // Every second row.
    /// let even = per_dimension([Side::along(0).stride(2).window(1), Side::all()]).with_gaps();
    /// let sums = celerity::run(|queue| {
    ///     let matrix = queue.buffer_from([4, 2], vec![1, 2, 3, 4, 5, 6, 7, 8])?;
    ///     let sums = queue.buffer::<i32, 1>(2);
    ///     let accesses = (sums.write(one_to_one()), matrix.read(even));
    ///     queue.task("sum").parallel_for(2, accesses, |item, (sum, matrix)| {
    ///         *sum = matrix[[2 * item[0], 0]] + matrix[[2 * item[0], 1]];
    ///     })?;
    ///     queue.task("clear").parallel_for(2, matrix.write(even), |_, mut row| row.fill(0))?;
    ///     Ok((queue.fence(&sums)?.wait()?.into_vec(), queue.fence(&matrix)?.wait()?.into_vec()))
    /// })?;
    /// assert_eq!(sums, (vec![1 + 2, 5 + 6], vec![0, 0, 3, 4, 0, 0, 7, 8]));
    /// # Ok::<(), celerity::Error>(())
    /// ```
    #[must_use]
    pub const fn with_gaps(self) -> Gapped<D> {
        Gapped(self)
    }
}

impl<const K: usize, const D: usize> RegionMapper<K, D> {
    /// The same elements, for kernels that get a [`PartView`](crate::PartView) of the box around all parts instead of a
    /// [`RegionView`](crate::RegionView): also those with [`#[kernel]`](celerity_kernel::kernel), on GPUs as on CPUs. An access costs what
    /// it costs in any part, however many parts there are. Host tasks take the mapper as it is.
    ///
    /// # Safety
    /// Kernels read nothing of the view but elements of parts that the mapper names for their chunk. What lies between is not
    /// brought, and others may write it meanwhile. Slices of several elements count as read.
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// // Each item reads an element that a table says.
    /// let table = [7_usize, 0, 3, 3, 6, 1, 0, 2];
    /// let named = region_mapper("table", move |chunk: Chunk<1>, _: [usize; 1]| {
    ///     let items = chunk.offset[0]..chunk.offset[0] + chunk.range[0];
    ///     items.map(|item| Subrange::new([table[item]], [1])).collect::<Vec<_>>()
    /// });
    /// // SAFETY: an item reads the element that the table says of it, alone.
    /// let named = unsafe { named.around() };
    /// let found = celerity::run(|queue| {
    ///     let u = queue.buffer_from(8, (0..8).map(|value| 10 * value).collect::<Vec<_>>())?;
    ///     let found = queue.buffer::<i32, 1>(8);
    ///     let accesses = (found.write(one_to_one()), u.read(named.clone()));
    ///     queue.task("look up").parallel_for(8, accesses, move |item, (found, u)| {
    ///         *found = u[table[item[0]]];
    ///     })?;
    ///     Ok(queue.fence(&found)?.wait()?.into_vec())
    /// })?;
    /// assert_eq!(found, [70, 0, 30, 30, 60, 10, 0, 20]);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    #[must_use]
    #[allow(unsafe_code)]
    pub unsafe fn around(self) -> BoxAround<Self> {
        BoxAround(self)
    }
}

impl<const D: usize> Gapped<D> {
    /// As [`RegionMapper::around`].
    ///
    /// # Safety
    /// As there.
    #[must_use]
    #[allow(unsafe_code)]
    pub unsafe fn around(self) -> BoxAround<Self> {
        BoxAround(self)
    }
}

impl<M: MapperFor<K, D>, const K: usize, const D: usize> MapperFor<K, D> for BoxAround<M> {
    fn lower(&self) -> Result<Mapper, Unfit> {
        self.0.lower()
    }
}

impl<const K: usize, const D: usize> MapperFor<K, D> for RegionMapper<K, D> {
    fn lower(&self) -> Result<Mapper, Unfit> {
        Ok(Mapper::User(self.0.clone()))
    }
}

impl<const K: usize, const D: usize> MapperFor<K, D> for Gapped<D> {
    fn lower(&self) -> Result<Mapper, Unfit> {
        Ok(Mapper::PerDimension(self.0.sides().into()))
    }
}

impl<const K: usize, const D: usize> ItemMapper<K, D> for Gapped<D> {
    #[inline]
    fn part(&self, part: Bounds<K>, global: Subrange<K>, buffer: [usize; D]) -> Bounds<D> {
        self.0.part(part, global, buffer)
    }

    /// Its image of a chunk is made of those of its items.
    #[inline]
    fn is_additive(&self) -> bool {
        true
    }

    #[inline]
    fn is_linear(&self) -> bool {
        ItemMapper::<K, D>::is_linear(&self.0)
    }

    fn joins_items_along(&self, dim: usize) -> bool {
        !self.0.has_gaps_along(dim)
    }
}
