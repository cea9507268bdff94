//! Range mappers as users spell them: marker values whose types carry the
//! dimensionalities, so that a mismatch does not compile. What they mean is the
//! task graph's [`Mapper`].

mod per_dimension;
mod periodic;
mod regions;
mod shifted;
mod typed;

use std::fmt;
use std::sync::Arc;

use celerity_kernel::{Bounds, Reach};
use celerity_regions::{Box3, Chunk, Region, Subrange};
use celerity_tdag::{Mapper, MapperInput, NeighborhoodShape, RangeMapper, UserMapper};

use crate::range::{bounds, check_dimensions, subrange, to_bounds, to_box};

pub use per_dimension::{
    PerDimension, Side, blocks, even_split, per_dimension, select, transposed,
};
pub use periodic::Periodic;
pub use regions::{BoxAround, Gapped, RegionMapper, region_mapper};
pub use shifted::Shifted;
pub use typed::{MapChunk, MapRegion, mapper_of, region_mapper_of, verify_mapper};

/// The range mapper that [`one_to_one`] makes: an item touches the element of its own index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OneToOne;

/// The range mapper that [`all`] makes: every item touches the whole buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct All;

/// The range mapper that [`fixed`] makes: every item touches the same part of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fixed<const D: usize>(Subrange<D>);

/// The range mapper that [`slice`](slice()) makes: an item touches its element and all others along one
/// dimension of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    dim: usize,
}

/// The range mapper that [`neighborhood`] and [`neighborhood_along_axes`] make: an item touches its element and a
/// border around it, in elements per dimension, clamped at the buffer's edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Neighborhood<const D: usize> {
    border: [usize; D],
    shape: NeighborhoodShape,
}

/// The range mapper that [`mapper`](mapper()) and [`mapper_of`] make: a function from a chunk of `K` dimensions to
/// one part of a buffer of `D` dimensions. Two are equal if they are copies of one, or made of equal values of one type.
#[derive(Clone)]
pub struct CustomMapper<const K: usize, const D: usize> {
    pub(crate) function: Arc<Function<K, D>>,
    erased: UserMapper,
}

/// The range mapper that [`disjoint_mapper`] and [`disjoint_mapper_of`] make: a function of the program's, with its
/// promise that different items get different elements, so that items may write through it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DisjointMapper<const K: usize, const D: usize>(CustomMapper<K, D>);

/// A user's range mapper: from a chunk and the buffer's size to a part of it.
type Function<const K: usize, const D: usize> =
    dyn Fn(Chunk<K>, [usize; D]) -> Subrange<D> + Send + Sync;

/// Each item touches the element of its own index, or, with an [`offset`](OneToOne::offset), one so far from there.
#[must_use]
pub const fn one_to_one() -> OneToOne {
    OneToOne
}

/// Every item touches the whole buffer.
#[must_use]
pub fn all() -> All {
    All
}

/// Every item touches the same part of the buffer.
#[must_use]
pub fn fixed<const D: usize>(part: Subrange<D>) -> Fixed<D> {
    const { check_dimensions(D) };
    Fixed(part)
}

/// Each item touches all elements along dimension `dim` (0 is the slowest) that
/// share its index in the others: a row or a column.
#[must_use]
pub fn slice(dim: usize) -> Slice {
    Slice { dim }
}

/// Each item touches its element and up to `border` elements to either side in
/// each dimension, diagonals included.
#[must_use]
pub fn neighborhood<const D: usize>(border: [usize; D]) -> Neighborhood<D> {
    const { check_dimensions(D) };
    Neighborhood { border, shape: NeighborhoodShape::BoundingBox }
}

/// Each item touches its element and up to `border` elements to either side
/// along one dimension at a time: no diagonals, so less is exchanged. And on GPUs, stencils in several dimensions whose
/// neighbourhoods are boxes are computed four rows at a time, which pays off where diagonals are looked at, and costs a few
/// per cent where they are not.
#[must_use]
pub fn neighborhood_along_axes<const D: usize>(border: [usize; D]) -> Neighborhood<D> {
    const { check_dimensions(D) };
    Neighborhood { border, shape: NeighborhoodShape::AlongAxes }
}

/// A range mapper of your own, for reads.
///
/// `map` gets a chunk of the index space and the buffer's size and returns the
/// part that the chunk reads. It must be a pure function that obeys
/// `r(A ∪ B) = r(A) ∪ r(B)` (IJPP 2024, eq. 2). One that does not makes programs fail
/// or see old data, but cannot make a kernel touch what was not declared.
///
/// ```
/// use celerity::prelude::*;
/// // The columns of a matrix, as the rows of its transpose.
/// let transposed = mapper("transposed", |chunk: Chunk<2>, _buffer: [usize; 2]| Subrange {
///     offset: [chunk.offset[1], chunk.offset[0]],
///     range: [chunk.range[1], chunk.range[0]],
/// });
/// # let _ = transposed;
/// ```
pub fn mapper<const K: usize, const D: usize>(
    name: impl Into<String>,
    map: impl Fn(Chunk<K>, [usize; D]) -> Subrange<D> + Send + Sync + 'static,
) -> CustomMapper<K, D> {
    let function: Arc<Function<K, D>> = Arc::new(map);
    let named = Named { name: name.into(), function: function.clone() };
    CustomMapper { function, erased: UserMapper::new(named) }
}

pub use disjoint::{disjoint_mapper, disjoint_mapper_of};

/// The one promise that the compiler cannot check.
#[allow(unsafe_code)]
mod disjoint {
    use super::*;

    /// A range mapper of your own, for writes: each item gets a view of the part
    /// that `map` returns for the chunk of just that item. It is a function of the host, so that kernels on GPUs do not write
    /// through it: [`per_dimension`](per_dimension()) says most of what it could.
    ///
    /// # Safety
    /// Disjoint chunks must have disjoint images (IJPP 2024, eq. 3), down to single
    /// items: they are written concurrently, each through its own view.
    ///
    /// ```
    /// # #![allow(unsafe_code)]
    /// use celerity::prelude::*;
    /// // SAFETY: a transposition maps different indices to different indices.
    /// let transposed = unsafe {
    ///     disjoint_mapper("transposed", |chunk: Chunk<2>, _buffer: [usize; 2]| Subrange {
    ///         offset: [chunk.offset[1], chunk.offset[0]],
    ///         range: [chunk.range[1], chunk.range[0]],
    ///     })
    /// };
    /// # let _ = transposed;
    /// ```
    pub unsafe fn disjoint_mapper<const K: usize, const D: usize>(
        name: impl Into<String>,
        map: impl Fn(Chunk<K>, [usize; D]) -> Subrange<D> + Send + Sync + 'static,
    ) -> DisjointMapper<K, D> {
        let function: Arc<Function<K, D>> = Arc::new(map);
        let named = Named { name: name.into(), function: function.clone() };
        DisjointMapper(CustomMapper { function, erased: UserMapper::disjoint(named) })
    }

    /// A range mapper of your own type, for writes: each item gets a view of the part that
    /// [`map`](MapChunk::map) returns for the chunk of just that item. Two of equal values are one mapper.
    ///
    /// # Safety
    /// As for [`disjoint_mapper`]: disjoint chunks must have disjoint images, down to single items.
    ///
    /// ```
    /// # #![allow(unsafe_code)]
    /// use celerity::prelude::*;
    /// use celerity::{MapChunk, disjoint_mapper_of, verify_mapper};
    ///
    /// /// Item `i` has so many elements, from `i` times as many on.
    /// #[derive(Clone, PartialEq)]
    /// struct Runs(usize);
    ///
    /// impl MapChunk<1, 1> for Runs {
    ///     fn map(&self, chunk: Chunk<1>, _buffer: [usize; 1]) -> Subrange<1> {
    ///         Subrange::new([chunk.offset[0] * self.0], [chunk.range[0] * self.0])
    ///     }
    /// }
    ///
    /// // SAFETY: runs of different items begin at least as far apart as they are long.
    /// let runs = unsafe { disjoint_mapper_of(Runs(3)) };
    /// verify_mapper(&runs, 10, 30).unwrap();
    /// ```
    pub unsafe fn disjoint_mapper_of<M: MapChunk<K, D>, const K: usize, const D: usize>(
        mapper: M,
    ) -> DisjointMapper<K, D> {
        DisjointMapper(typed::erased(mapper, UserMapper::disjoint))
    }
}

impl<const D: usize> Neighborhood<D> {
    /// How far a kernel may look. Borders beyond half of the address space reach
    /// everything, like that half.
    pub(crate) fn reach(&self) -> Reach<D> {
        let border = self.border.map(|width| width.min(isize::MAX as usize));
        match self.shape {
            NeighborhoodShape::BoundingBox => Reach::boxed(border),
            NeighborhoodShape::AlongAxes => Reach::along_axes(border),
        }
    }

    /// The same with diagonals.
    pub(crate) fn boxed(self) -> Self {
        Self { shape: NeighborhoodShape::BoundingBox, ..self }
    }
}

impl<const K: usize, const D: usize> fmt::Debug for CustomMapper<K, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.erased.fmt(f)
    }
}

/// A range mapper from index spaces of `K` to buffers of `D` dimensions.
///
/// Implemented by what [`one_to_one`], [`all`], [`fixed`], [`slice`](slice()),
/// [`neighborhood`], [`per_dimension`](per_dimension()), [`mapper`](mapper()) and their siblings return; sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not map a {K}-dimensional index space to a {D}-dimensional buffer",
    label = "this range mapper does not fit the dimensions",
    note = "`one_to_one`, `slice` and `neighborhood` need an index space and a buffer of equal \
            dimensionality; `all`, `fixed`, `select`, `per_dimension` and mappers of your own take any"
)]
pub trait MapperFor<const K: usize, const D: usize>: sealed::Sealed {
    /// The mapper as the task graph sees it.
    #[doc(hidden)]
    fn lower(&self) -> Result<Mapper, Unfit>;
}

/// A range mapper whose images of different items never overlap, so that the
/// items of a kernel may write through it; sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` may give two items of a kernel the same element to write",
    label = "items of a kernel cannot write through this range mapper",
    note = "write through `one_to_one`, `slice`, `blocks`, `per_dimension` or `disjoint_mapper`, \
            or use a host task"
)]
pub trait ItemMapper<const K: usize, const D: usize>: MapperFor<K, D> {
    /// The part of a buffer of size `buffer` that belongs to `part` of the index
    /// space `global`. Kernels ask for that of each item.
    #[doc(hidden)]
    fn part(&self, part: Bounds<K>, global: Subrange<K>, buffer: [usize; D]) -> Bounds<D>;

    /// Whether what belongs to a part of the index space has in it what belongs to each part of that part.
    #[doc(hidden)]
    fn is_monotone(&self) -> bool {
        false
    }

    /// Whether what belongs to an item is known to be in what a chunk declares that has the item. A user's mapper may
    /// say another thing of each.
    #[doc(hidden)]
    fn is_additive(&self) -> bool {
        false
    }

    /// Whether what belongs to items begins, and ends, at linear functions of their indices, which grow if they change at
    /// all, but for the buffer's edges.
    #[doc(hidden)]
    fn is_linear(&self) -> bool {
        false
    }

    /// Whether what belongs to items side by side along dimension `dim` of the index space is one
    /// box, as what belongs to one of them is.
    #[doc(hidden)]
    fn joins_items_along(&self, dim: usize) -> bool {
        let _ = dim;
        true
    }
}

/// A range mapper whose image of a chunk is one box, which the chunk's items may update
/// together; sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not give each chunk of a {K}-dimensional index space a box of a \
               {D}-dimensional buffer to update",
    label = "items cannot update elements through this range mapper",
    note = "update through `one_to_one`, `slice`, `all`, `fixed` or a mapper of your own"
)]
pub trait ChunkMapper<const K: usize, const D: usize>: MapperFor<K, D> {}

impl<const N: usize> ChunkMapper<N, N> for OneToOne {}
impl<const N: usize> ChunkMapper<N, N> for Slice {}
impl<const K: usize, const D: usize> ChunkMapper<K, D> for All {}
impl<const K: usize, const D: usize> ChunkMapper<K, D> for Fixed<D> {}
impl<const K: usize, const D: usize> ChunkMapper<K, D> for CustomMapper<K, D> {}
impl<const K: usize, const D: usize> ChunkMapper<K, D> for DisjointMapper<K, D> {}

/// Why a marker has no meaning.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Unfit {
    /// `slice` along a dimension that there is not.
    SliceAlong { dim: usize },
    /// `periodic_along` a dimension that there is not.
    PeriodicAlong { dim: usize },
    /// Elements between the windows of neighbours, of which views know nothing.
    Gaps { stride: usize, window: usize },
}

impl<const N: usize> MapperFor<N, N> for OneToOne {
    fn lower(&self) -> Result<Mapper, Unfit> {
        Ok(Mapper::OneToOne)
    }
}

impl<const K: usize, const D: usize> MapperFor<K, D> for All {
    fn lower(&self) -> Result<Mapper, Unfit> {
        Ok(Mapper::All)
    }
}

impl<const K: usize, const D: usize> MapperFor<K, D> for Fixed<D> {
    fn lower(&self) -> Result<Mapper, Unfit> {
        Ok(Mapper::fixed(to_box(self.0)))
    }
}

impl<const N: usize> MapperFor<N, N> for Slice {
    fn lower(&self) -> Result<Mapper, Unfit> {
        match self.dim < N {
            true => Ok(Mapper::Slice { dim: self.dim as u8 }),
            false => Err(Unfit::SliceAlong { dim: self.dim }),
        }
    }
}

impl<const N: usize> MapperFor<N, N> for Neighborhood<N> {
    fn lower(&self) -> Result<Mapper, Unfit> {
        Ok(Mapper::neighborhood_shaped(self.reach().border(), self.shape))
    }
}

impl<const K: usize, const D: usize> MapperFor<K, D> for CustomMapper<K, D> {
    fn lower(&self) -> Result<Mapper, Unfit> {
        Ok(Mapper::User(self.erased.clone()))
    }
}

impl<const K: usize, const D: usize> MapperFor<K, D> for DisjointMapper<K, D> {
    fn lower(&self) -> Result<Mapper, Unfit> {
        self.0.lower()
    }
}

impl<const N: usize> ItemMapper<N, N> for Slice {
    #[inline]
    fn part(&self, own: Bounds<N>, _: Subrange<N>, buffer: [usize; N]) -> Bounds<N> {
        // Not by an index, for which both corners would go through memory for every item.
        let corner = |own: [usize; N], all: [usize; N]| {
            std::array::from_fn(|dim| if dim == self.dim { all[dim] } else { own[dim] })
        };
        Bounds::new(corner(own.min(), [0; N]), corner(own.max(), buffer))
    }

    #[inline]
    fn is_monotone(&self) -> bool {
        true
    }

    #[inline]
    fn is_linear(&self) -> bool {
        true
    }
}

impl<const K: usize, const D: usize> ItemMapper<K, D> for DisjointMapper<K, D> {
    #[inline]
    fn part(&self, part: Bounds<K>, global: Subrange<K>, buffer: [usize; D]) -> Bounds<D> {
        to_bounds((self.0.function)(Chunk::new(subrange(&part), global), buffer))
    }
}

/// A user's function under the task graph's interface.
struct Named<const K: usize, const D: usize> {
    name: String,
    function: Arc<Function<K, D>>,
}

impl<const K: usize, const D: usize> RangeMapper for Named<K, D> {
    fn map(&self, input: &MapperInput) -> Region {
        to_box((self.function)(chunk_of(input), bounds(&input.buffer).range())).into()
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// The chunk that a user's mapper is asked for.
fn chunk_of<const K: usize>(input: &MapperInput) -> Chunk<K> {
    let part = |part: &Box3| subrange(&bounds(part));
    Chunk::new(part(&input.chunk), part(&input.global))
}

mod sealed {
    use super::*;

    pub trait Sealed: Send + Sync + 'static {}
    impl Sealed for OneToOne {}
    impl<const D: usize> Sealed for Shifted<D> {}
    impl Sealed for All {}
    impl Sealed for Slice {}
    impl<const D: usize> Sealed for Fixed<D> {}
    impl<const D: usize> Sealed for Neighborhood<D> {}
    impl<const D: usize> Sealed for Periodic<D> {}
    impl<const D: usize> Sealed for PerDimension<D> {}
    impl<const D: usize> Sealed for Gapped<D> {}
    impl<M: Sealed> Sealed for BoxAround<M> {}
    impl<const K: usize, const D: usize> Sealed for RegionMapper<K, D> {}
    impl<const K: usize, const D: usize> Sealed for CustomMapper<K, D> {}
    impl<const K: usize, const D: usize> Sealed for DisjointMapper<K, D> {}
}
