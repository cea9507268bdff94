//! Range mappers of users' own types, and how any range mapper is put to the test.

use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use celerity_regions::{Chunk, Region, Subrange};
use celerity_tdag::{
    DimRelation, MapperInput, MapperViolation, RangeMapper, UserMapper, verify_mapper as verify,
};

use super::regions::region;
use super::{CustomMapper, Function, MapperFor, RegionMapper, chunk_of};
use crate::range::{IntoRange, bounds, to_box};

/// A range mapper as a type, which compares by value and says what it knows of itself.
/// [`mapper_of`] makes one that reads take, [`disjoint_mapper_of`](super::disjoint_mapper_of) one that writes take, too.
pub trait MapChunk<const K: usize, const D: usize>: PartialEq + Send + Sync + 'static {
    /// The part of a buffer of size `buffer` that a chunk reads, under the laws that
    /// [`mapper`](super::mapper()) names.
    fn map(&self, chunk: Chunk<K>, buffer: [usize; D]) -> Subrange<D>;

    /// A name for messages and graphs.
    fn name(&self) -> &str {
        "user mapper"
    }

    /// Whether the part is the same for all chunks that are not empty.
    fn is_constant(&self) -> bool {
        false
    }

    /// How the part depends on the chunk along dimension `dim` of the buffer.
    fn relation(&self, dim: usize) -> DimRelation {
        let _ = dim;
        DimRelation::Opaque
    }
}

/// A range mapper of your own type, for reads. Two of equal values are one mapper.
///
/// ```
/// use celerity::prelude::*;
/// use celerity::{DimRelation, MapChunk, mapper_of, verify_mapper};
///
/// /// Items read their own element and those up to `ahead` elements after it.
/// #[derive(Clone, PartialEq)]
/// struct Ahead(usize);
///
/// impl MapChunk<1, 1> for Ahead {
///     fn map(&self, chunk: Chunk<1>, [size]: [usize; 1]) -> Subrange<1> {
///         let end = (chunk.offset[0] + chunk.range[0] + self.0).min(size);
///         Subrange { offset: chunk.offset, range: [end - chunk.offset[0]] }
///     }
///
///     fn name(&self) -> &str {
///         "ahead"
///     }
///
///     fn relation(&self, dim: usize) -> DimRelation {
///         if dim == 0 { DimRelation::Padded(self.0 as u64) } else { DimRelation::Identity }
///     }
/// }
///
/// verify_mapper(&mapper_of(Ahead(2)), 100, 100).unwrap();
/// ```
pub fn mapper_of<M: MapChunk<K, D>, const K: usize, const D: usize>(
    mapper: M,
) -> CustomMapper<K, D> {
    erased(mapper, UserMapper::new)
}

/// A range mapper of a user's type, which `erase` wraps with what the user promises of it.
pub(super) fn erased<M: MapChunk<K, D>, const K: usize, const D: usize>(
    mapper: M,
    erase: fn(Typed<M, K, D>) -> UserMapper,
) -> CustomMapper<K, D> {
    let mapper = Arc::new(mapper);
    let asked = Arc::clone(&mapper);
    let function: Arc<Function<K, D>> = Arc::new(move |chunk, buffer| asked.map(chunk, buffer));
    CustomMapper { function, erased: erase(Typed { mapper }) }
}

impl<const K: usize, const D: usize> PartialEq for CustomMapper<K, D> {
    fn eq(&self, other: &Self) -> bool {
        self.erased == other.erased
    }
}

impl<const K: usize, const D: usize> Eq for CustomMapper<K, D> {}

impl<const K: usize, const D: usize> Hash for CustomMapper<K, D> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.erased.hash(state);
    }
}

/// A type of the user's under the task graph's interface.
pub(super) struct Typed<M, const K: usize, const D: usize> {
    mapper: Arc<M>,
}

impl<M: MapChunk<K, D>, const K: usize, const D: usize> RangeMapper for Typed<M, K, D> {
    fn map(&self, input: &MapperInput) -> Region {
        to_box(self.mapper.map(chunk_of(input), bounds(&input.buffer).range())).into()
    }

    fn name(&self) -> &str {
        self.mapper.name()
    }

    fn relation(&self, dim: usize) -> DimRelation {
        self.mapper.relation(dim)
    }

    fn is_constant(&self) -> bool {
        self.mapper.is_constant()
    }

    fn is_same(&self, other: &dyn RangeMapper) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref::<Self>().is_some_and(|other| self.mapper == other.mapper)
    }
}

/// A range mapper as a type whose image of a chunk is several boxes: as [`MapChunk`], but
/// [`map`](Self::map) returns any number of parts. [`region_mapper_of`] makes one that reads take.
pub trait MapRegion<const K: usize, const D: usize>: PartialEq + Send + Sync + 'static {
    /// The parts of a buffer of size `buffer` that a chunk reads, in any order, under the laws that
    /// [`mapper`](super::mapper()) names. They may overlap.
    fn map(&self, chunk: Chunk<K>, buffer: [usize; D]) -> impl IntoIterator<Item = Subrange<D>>;

    /// A name for messages and graphs.
    fn name(&self) -> &str {
        "user mapper"
    }

    /// Whether the parts are the same for all chunks that are not empty.
    fn is_constant(&self) -> bool {
        false
    }

    /// How the parts depend on the chunk along dimension `dim` of the buffer:
    /// [`DimRelation::Periodic`], where they go on at the opposite edge.
    fn relation(&self, dim: usize) -> DimRelation {
        let _ = dim;
        DimRelation::Opaque
    }
}

/// A range mapper of your own type whose image of a chunk is several boxes, for reads: as
/// [`region_mapper`](super::region_mapper). Two of equal values are one mapper.
///
/// ```
/// use celerity::prelude::*;
/// use celerity::{DimRelation, MapRegion, region_mapper_of, verify_mapper};
///
/// /// Items of a ring read the element so far ahead of their own.
/// #[derive(Clone, PartialEq)]
/// struct Ahead(usize);
///
/// impl MapRegion<1, 1> for Ahead {
///     fn map(&self, chunk: Chunk<1>, [size]: [usize; 1]) -> impl IntoIterator<Item = Subrange<1>> {
///         let (first, end) = (chunk.offset[0] + self.0, chunk.offset[0] + chunk.range[0] + self.0);
///         let (inside, around) = (first.min(size)..end.min(size), first.max(size)..end.max(size));
///         [Subrange::new([inside.start], [inside.len()]), Subrange::new([around.start - size], [around.len()])]
///     }
///
///     fn relation(&self, dim: usize) -> DimRelation {
///         if dim == 0 { DimRelation::Periodic(self.0 as u64) } else { DimRelation::Identity }
///     }
/// }
///
/// let ahead = region_mapper_of(Ahead(2));
/// verify_mapper(&ahead, 5, 5).unwrap();
/// let turned = celerity::run(|queue| {
///     let ring = queue.buffer_from(5, vec![1, 2, 3, 4, 5])?;
///     let turned = queue.buffer::<i32, 1>(5);
///     let accesses = (turned.write(one_to_one()), ring.read(ahead.clone()));
///     queue.task("turn").parallel_for(5, accesses, |item, (out, ring)| {
///         *out = ring[(item[0] + 2) % 5];
///     })?;
///     Ok(queue.fence(&turned)?.wait()?.into_vec())
/// })?;
/// assert_eq!(turned, [3, 4, 5, 1, 2]);
/// # Ok::<(), celerity::Error>(())
/// ```
pub fn region_mapper_of<M: MapRegion<K, D>, const K: usize, const D: usize>(
    mapper: M,
) -> RegionMapper<K, D> {
    const { crate::range::check_dimensions(D) };
    RegionMapper(UserMapper::new(TypedRegion { mapper }))
}

/// A type of the user's under the task graph's interface.
struct TypedRegion<M, const K: usize, const D: usize> {
    mapper: M,
}

impl<M: MapRegion<K, D>, const K: usize, const D: usize> RangeMapper for TypedRegion<M, K, D> {
    fn map(&self, input: &MapperInput) -> Region {
        region(self.mapper.map(chunk_of(input), bounds(&input.buffer).range()))
    }

    fn name(&self) -> &str {
        self.mapper.name()
    }

    fn relation(&self, dim: usize) -> DimRelation {
        self.mapper.relation(dim)
    }

    fn is_constant(&self) -> bool {
        self.mapper.is_constant()
    }

    fn is_same(&self, other: &dyn RangeMapper) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref::<Self>().is_some_and(|other| self.mapper == other.mapper)
    }
}

/// Chunks that [`verify_mapper`] draws.
const CASES: u32 = 1000;

/// Puts a range mapper between an index space and a buffer of these sizes to the test: whether what
/// a chunk touches is what its parts touch, lies in the buffer, is the same when asked again, and
/// is as the mapper says of itself, of a [`disjoint_mapper`](super::disjoint_mapper) that no two
/// chunks share elements. Draws 1000 chunks, the same ones every time. A line for a test of yours.
///
/// # Errors
/// The law that is broken, on the smallest chunk that could be found.
///
/// ```
/// use celerity::prelude::*;
/// use celerity::verify_mapper;
///
/// let next_row = mapper("next row", |chunk: Chunk<2>, _buffer: [usize; 2]| Subrange {
///     offset: [chunk.offset[0] + 1, chunk.offset[1]],
///     range: chunk.range,
/// });
/// let error = verify_mapper(&next_row, [8, 4], [8, 4]).unwrap_err().to_string();
/// assert!(error.contains("leaves the buffer: chunk [7..8] maps to {[8..9]}"), "{error}");
/// verify_mapper(&next_row, [7, 4], [8, 4]).unwrap();
/// ```
///
/// # Panics
/// If the mapper is a built-in one that no task could be submitted with: `slice` along a dimension
/// that there is not.
pub fn verify_mapper<const K: usize, const D: usize>(
    mapper: &impl MapperFor<K, D>,
    space: impl IntoRange<K>,
    buffer: impl IntoRange<D>,
) -> Result<(), Box<MapperViolation>> {
    let mapper = mapper.lower().unwrap_or_else(|unfit| panic!("no mapper: {unfit:?}"));
    let space = to_box(Subrange { offset: [0; K], range: space.into_range() });
    let buffer = to_box(Subrange { offset: [0; D], range: buffer.into_range() });
    verify(&mapper, (K as u8, space), (D as u8, buffer), CASES)
}
