//! Range mappers as values: which part of a buffer a part of the index space
//! touches (Euro-Par 2019, §3.1). Knows geometry only, neither tasks nor nodes.
//!
//! ```
//! use celerity_regions::Box3;
//! use celerity_tdag::{Mapper, MapperInput};
//! let input = MapperInput {
//!     chunk: Box3::from_offset_range([4], [4]),
//!     global: Box3::from_range([16]),
//!     buffer: Box3::from_range([16]),
//! };
//! let halo = Mapper::neighborhood([1]);
//! assert_eq!(halo.map(&input), Box3::from_offset_range([3], [6]).into());
//! assert_eq!(halo, Mapper::neighborhood([1]));
//! ```

mod flaw;
mod laws;
mod per_dimension;
mod relation;
mod user;

use std::fmt;
use std::sync::Arc;

use celerity_regions::{Box3, Coord3, Region};

pub use flaw::MapperFlaw;
pub(crate) use laws::ask;
pub use laws::{MapperViolation, verify_mapper};
pub use per_dimension::{PerDimension, Side};
pub use relation::{DimRelation, Share, Windows};
pub use user::{MapperPanic, RangeMapper, UserMapper};

use relation::{interval, wrapped};

use crate::space::IndexSpace;
use crate::tiles::Tiling;

/// What a mapper is evaluated on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapperInput {
    /// The part of the index space in question, in global coordinates.
    pub chunk: Box3,
    /// The task's whole index space.
    pub global: Box3,
    /// The whole buffer; its minimum is the origin.
    pub buffer: Box3,
}

/// Which elements around each item a [`Mapper::Neighborhood`] reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum NeighborhoodShape {
    /// The whole box, corners included.
    BoundingBox,
    /// Only along each axis: the chunk and one slab per face, no corners.
    AlongAxes,
}

/// A range mapper: a comparable value with structural metadata.
///
/// Laws, for every lawful mapper `r`:
/// * additive: `r(A ∪ B) = r(A) ∪ r(B)` (IJPP 2024, eq. 2). Monotonicity alone (CCGrid 2023,
///   §IV-B) would let push and await-push disagree;
/// * in bounds: [`map`](Self::map) clamps to the buffer;
/// * for writers, disjoint chunks have disjoint images (IJPP 2024, eq. 3); see
///   [`is_disjoint`](Self::is_disjoint).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(remote = "Self"))]
pub enum Mapper {
    /// Each item touches the element of its own index.
    OneToOne,
    /// Every item touches the whole buffer.
    All,
    /// Every item touches the same region, whatever the chunk.
    Fixed(Arc<Region>),
    /// The chunk, extended over the whole buffer along one dimension.
    Slice {
        /// The extended dimension, 0 being the slowest.
        dim: u8,
    },
    /// Each item touches its element and a border around it.
    Neighborhood {
        /// Elements to either side, per dimension.
        border: Coord3,
        /// Box or axes only.
        shape: NeighborhoodShape,
    },
    /// Each item touches its element and a border around it, which goes on at the opposite edge of
    /// the buffer where it would leave it: up to 2^D boxes. Made by [`periodic`](Self::periodic).
    Periodic {
        /// Elements to either side, per dimension; where it goes around, no more than there are.
        border: Coord3,
        /// Box or axes only.
        shape: NeighborhoodShape,
        /// The dimensions along which it goes around; along others it is clamped.
        along: [bool; 3],
    },
    /// A function for each dimension of the buffer.
    PerDimension(Arc<PerDimension>),
    /// Each item touches the partial results of its tile, in the buffer of the
    /// tiling's [partials](Tiling::partials).
    Tiles(Arc<Tiling>),
    /// A user's function. It cannot be recorded.
    #[cfg_attr(
        feature = "serde",
        serde(skip_deserializing, serialize_with = "crate::serde_impls::refuse")
    )]
    User(UserMapper),
}

impl Mapper {
    /// The neighbourhood of `border[d]` elements to either side in each
    /// dimension, corners included.
    #[must_use]
    pub fn neighborhood<const D: usize>(border: [usize; D]) -> Self {
        Self::neighborhood_shaped(border, NeighborhoodShape::BoundingBox)
    }

    /// The neighbourhood of the given shape.
    #[must_use]
    pub fn neighborhood_shaped<const D: usize>(
        border: [usize; D],
        shape: NeighborhoodShape,
    ) -> Self {
        let mut wide = [0; 3];
        for (wide, narrow) in wide.iter_mut().zip(border) {
            *wide = narrow as u64;
        }
        Self::Neighborhood { border: wide, shape }
    }

    /// The neighbourhood of `border[d]` elements to either side that goes around along the
    /// dimensions `along`. Along others it is clamped: if there is none left, a
    /// [`Neighborhood`](Self::Neighborhood).
    ///
    /// ```
    /// use celerity_regions::{Box3, Region};
    /// use celerity_tdag::{Mapper, MapperInput, NeighborhoodShape};
    /// let input = MapperInput {
    ///     chunk: Box3::from_range([4]),
    ///     global: Box3::from_range([16]),
    ///     buffer: Box3::from_range([16]),
    /// };
    /// let ring = Mapper::periodic([1], NeighborhoodShape::BoundingBox, [true]);
    /// let around = [Box3::from_range([5]), Box3::from_offset_range([15], [1])];
    /// assert_eq!(ring.map(&input), Region::from_boxes(around));
    /// ```
    #[must_use]
    pub fn periodic<const D: usize>(
        border: [usize; D],
        shape: NeighborhoodShape,
        along: [bool; D],
    ) -> Self {
        let Self::Neighborhood { border, shape } = Self::neighborhood_shaped(border, shape) else {
            unreachable!("what `neighborhood_shaped` makes is a neighbourhood")
        };
        let mut around = [false; 3];
        around[..D].copy_from_slice(&along);
        for dim in 0..3 {
            around[dim] &= border[dim] > 0;
        }
        match around.contains(&true) {
            true => Self::Periodic { border, shape, along: around },
            false => Self::Neighborhood { border, shape },
        }
    }

    /// One [`Side`] for each dimension of the buffer, the slowest first; whatever dimensions the
    /// index space has.
    ///
    /// # Panics
    /// If there are more than three.
    #[must_use]
    pub fn per_dimension(sides: &[Side]) -> Self {
        Self::PerDimension(Arc::new(PerDimension::new(sides)))
    }

    /// The same box for every chunk.
    #[must_use]
    pub fn fixed(region: impl Into<Region>) -> Self {
        Self::Fixed(Arc::new(region.into()))
    }

    /// The part of the buffer that the chunk touches, clamped to the buffer.
    /// O(1) for built-in mappers, but for windows with gaps, which are O(items); empty for an empty
    /// chunk.
    #[must_use]
    #[inline]
    pub fn map(&self, input: &MapperInput) -> Region {
        match self.map_box(input) {
            Some(single) => single.into(),
            None => self.map_many(input),
        }
    }

    /// The image before clamping: what a check for out-of-bounds accesses must
    /// look at. Neighbourhoods are the one mapper that may reach over the edge
    /// by definition, so they come back clamped. Of windows with gaps that leave the buffer, a box around
    /// them all.
    #[must_use]
    pub fn map_unclamped(&self, input: &MapperInput) -> Region {
        match self {
            _ if input.chunk.is_empty() => Region::empty(),
            Self::OneToOne => input.chunk.into(),
            Self::Fixed(region) => (**region).clone(),
            Self::Slice { dim } => extend(&input.chunk, &input.buffer, usize::from(*dim)).into(),
            Self::Neighborhood { .. } | Self::Periodic { .. }
                if !input.buffer.contains(&input.chunk) =>
            {
                input.chunk.into()
            }
            Self::All | Self::Neighborhood { .. } | Self::Periodic { .. } => self.map(input),
            Self::PerDimension(mapper) => match mapper.map_box(input) {
                Some(single) => single.into(),
                None => {
                    // There may be very many windows, of which the outermost end where the hull does.
                    let hull = mapper.hull(&input.chunk, &input.global, &input.buffer);
                    match input.buffer.contains(&hull) {
                        true => mapper.map_many(input),
                        false => hull.into(),
                    }
                }
            },
            Self::Tiles(tiling) => tiling.partials_of(&input.chunk),
            Self::User(user) => user.map(input),
        }
    }

    /// What is known of the image along dimension `dim`.
    #[must_use]
    pub fn relation(&self, dim: usize) -> DimRelation {
        match self {
            Self::OneToOne => DimRelation::Identity,
            Self::All | Self::Fixed(_) => DimRelation::Constant,
            Self::Slice { dim: along } if usize::from(*along) == dim => DimRelation::Constant,
            Self::Slice { .. } => DimRelation::Identity,
            Self::Neighborhood { border, .. } => match border[dim] {
                0 => DimRelation::Identity,
                pad => DimRelation::Padded(pad),
            },
            Self::Periodic { border, along, .. } if along[dim] => {
                DimRelation::Periodic(border[dim])
            }
            Self::Periodic { border, .. } if border[dim] == 0 => DimRelation::Identity,
            Self::Periodic { border, .. } => DimRelation::Padded(border[dim]),
            Self::PerDimension(mapper) => mapper.relation(dim),
            // Tiles are counted along no dimension of the index space.
            Self::Tiles(_) => DimRelation::Opaque,
            Self::User(user) => user.relation(dim),
        }
    }

    /// A box around all items of the index space `global` whose image touches `part` of the
    /// buffer, which is not empty: the mapper backwards, as far as its structure is known. The box
    /// may reach beyond the index space. O(1).
    ///
    /// ```
    /// use celerity_regions::Box3;
    /// use celerity_tdag::Mapper;
    /// let [all, part] = [Box3::from_range([16]), Box3::from_offset_range([4], [4])];
    /// let around = Mapper::neighborhood([1]).items_around(&part, &all, &all);
    /// assert_eq!(around, Box3::from_offset_range([3], [6]));
    /// ```
    #[must_use]
    #[inline]
    pub fn items_around(&self, part: &Box3, buffer: &Box3, global: &Box3) -> Box3 {
        match self {
            Self::OneToOne => *part,
            Self::Neighborhood { border, .. } => {
                let (mut min, mut max) = (part.min(), part.max());
                for dim in 0..3 {
                    min[dim] = min[dim].saturating_sub(border[dim]);
                    max[dim] = max[dim].saturating_add(border[dim]);
                }
                Box3::new(min, max)
            }
            _ => self.items_related_to(part, buffer, global),
        }
    }

    /// As [`items_around`](Self::items_around), by the [relation](Self::relation) of each
    /// dimension.
    fn items_related_to(&self, part: &Box3, buffer: &Box3, global: &Box3) -> Box3 {
        let (mut min, mut max) = ([0; 3], [u64::MAX; 3]);
        for dim in 0..3 {
            let (side, size) = (interval(part, dim), buffer.max()[dim]);
            let items = self.relation(dim).items_around(dim, side, size, global);
            let Some((along, items)) = items else { continue };
            min[along] = min[along].max(items.start);
            max[along] = max[along].min(items.end);
        }
        Box3::new(min, max)
    }

    /// Whether the image is the same for every non-empty chunk.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        match self {
            Self::All | Self::Fixed(_) => true,
            Self::PerDimension(mapper) => mapper.is_constant(),
            Self::User(user) => user.is_constant(),
            _ => false,
        }
    }

    /// Whether disjoint chunks of `space` are known to have disjoint images:
    /// what a writing access of a split task needs.
    #[must_use]
    #[inline]
    pub fn is_disjoint(&self, space: &Box3) -> bool {
        match self {
            Self::OneToOne => true,
            Self::Slice { dim } => space.range()[usize::from(*dim)] <= 1,
            Self::Neighborhood { border, .. } | Self::Periodic { border, .. } => *border == [0; 3],
            Self::All | Self::Fixed(_) => space.volume() <= 1,
            Self::PerDimension(mapper) => mapper.is_disjoint(space),
            // Of chunks that end where tiles do, which is for `AccessMode::allows` to see.
            Self::Tiles(_) => true,
            Self::User(user) => user.is_disjoint(),
        }
    }

    /// Whether no two chunks that `space` is ever cut into are known to have an element in
    /// common: what a task needs whose items update elements together. A user's mapper is
    /// believed here.
    #[must_use]
    pub fn keeps_chunks_apart(&self, space: &IndexSpace) -> bool {
        match self {
            Self::OneToOne | Self::User(_) => true,
            Self::Slice { dim } => !space.is_cut_along(usize::from(*dim)),
            Self::All | Self::Fixed(_) => !(0..3).any(|dim| space.is_cut_along(dim)),
            Self::Neighborhood { border, .. } | Self::Periodic { border, .. } => *border == [0; 3],
            Self::PerDimension(mapper) => mapper.keeps_chunks_apart(space),
            Self::Tiles(tiling) => tiling.fits(space),
        }
    }

    /// The image where it is a single box, without building a region.
    #[inline]
    fn map_box(&self, input: &MapperInput) -> Option<Box3> {
        let MapperInput { chunk, buffer, .. } = input;
        if chunk.is_empty() {
            return Some(Box3::EMPTY);
        }
        match self {
            Self::OneToOne => Some(chunk.intersection(buffer)),
            Self::All => Some(*buffer),
            Self::Slice { dim } => {
                Some(extend(chunk, buffer, usize::from(*dim)).intersection(buffer))
            }
            Self::Neighborhood { border, shape } if shape.is_box_for(border) => {
                Some(grow(chunk, border).intersection(buffer))
            }
            Self::PerDimension(mapper) => {
                mapper.map_box(input).map(|image| image.intersection(buffer))
            }
            Self::Neighborhood { .. }
            | Self::Periodic { .. }
            | Self::Fixed(_)
            | Self::Tiles(_)
            | Self::User(_) => None,
        }
    }

    fn map_many(&self, input: &MapperInput) -> Region {
        match self {
            Self::Fixed(region) => region.intersection_box(&input.buffer),
            Self::Neighborhood { border, .. } => grow_along_axes(input, border),
            Self::Periodic { border, shape, along } => grow_around(input, border, *shape, along),
            Self::PerDimension(mapper) => mapper.map_many(input).clamped(&input.buffer),
            Self::Tiles(tiling) => tiling.partials_of(&input.chunk).intersection_box(&input.buffer),
            Self::User(user) => user.map(input).clamped(&input.buffer),
            Self::OneToOne | Self::All | Self::Slice { .. } => {
                unreachable!("single boxes are mapped by map_box")
            }
        }
    }
}

impl NeighborhoodShape {
    /// A cross with one arm is a box.
    fn is_box_for(self, border: &Coord3) -> bool {
        self == Self::BoundingBox || border.iter().filter(|&&width| width > 0).count() <= 1
    }
}

impl fmt::Display for Mapper {
    /// As of a buffer of three dimensions; messages, which know the buffer, name as many as it has.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.of_dims(3).fmt(f)
    }
}

impl Mapper {
    /// The mapper in words, as of a buffer of `dims` dimensions: borders have so many sides.
    ///
    /// ```
    /// let halo = celerity_tdag::Mapper::neighborhood([1, 2]);
    /// assert_eq!(halo.of_dims(2).to_string(), "neighborhood([1, 2])");
    /// ```
    pub fn of_dims(&self, dims: u8) -> impl fmt::Display {
        InWords { mapper: self, dims: usize::from(dims.min(3)) }
    }
}

/// See [`Mapper::of_dims`].
struct InWords<'m> {
    mapper: &'m Mapper,
    dims: usize,
}

impl fmt::Display for InWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mapper {
            Mapper::OneToOne => f.write_str("one_to_one"),
            Mapper::All => f.write_str("all"),
            // Three are also what stands for any number.
            Mapper::Fixed(region) if self.dims == 3 => write!(f, "fixed({region})"),
            Mapper::Fixed(region) => write!(f, "fixed({region:.*})", self.dims),
            Mapper::Slice { dim } => write!(f, "slice({dim})"),
            Mapper::Neighborhood { border, shape } => {
                write!(f, "{shape}({:?})", &border[..self.dims])
            }
            Mapper::Periodic { border, shape, along } => {
                let along: Vec<_> = (0..3).filter(|&dim| along[dim]).collect();
                write!(f, "{shape}({:?}), periodic along {along:?}", &border[..self.dims])
            }
            Mapper::PerDimension(mapper) => write!(f, "{mapper}"),
            Mapper::Tiles(tiling) => write!(f, "tiles({:?})", tiling.tile()),
            Mapper::User(user) => f.write_str(user.name()),
        }
    }
}

impl fmt::Display for NeighborhoodShape {
    /// The function that makes such a mapper.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BoundingBox => "neighborhood",
            Self::AlongAxes => "neighborhood_along_axes",
        })
    }
}

fn extend(chunk: &Box3, buffer: &Box3, dim: usize) -> Box3 {
    #[cfg(feature = "mutants")]
    let dim =
        celerity_mutants::Mutant::SliceAlongOtherDimension.alter(dim, |dim| usize::from(dim == 0));
    let (mut min, mut max) = (chunk.min(), chunk.max());
    min[dim] = 0;
    max[dim] = buffer.max()[dim];
    Box3::new(min, max)
}

fn grow(chunk: &Box3, border: &Coord3) -> Box3 {
    let (mut min, mut max) = (chunk.min(), chunk.max());
    for dim in 0..3 {
        min[dim] = min[dim].saturating_sub(border[dim]);
        max[dim] = max[dim].saturating_add(border[dim]);
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::BorderShortAbove.is_active() && border[dim] > 0 {
            max[dim] -= 1;
        }
    }
    Box3::new(min, max)
}

fn grow_along_axes(input: &MapperInput, border: &Coord3) -> Region {
    let arms = (0..3).filter(|&dim| border[dim] > 0).map(|dim| {
        let mut arm = [0; 3];
        arm[dim] = border[dim];
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::ArmsOfEqualLength.is_active() {
            arm[dim] = border[0];
        }
        grow(&input.chunk, &arm).intersection(&input.buffer)
    });
    Region::from_boxes(arms)
}

/// The neighbourhood that goes around along some dimensions: a product of intervals, or one for
/// each arm.
fn grow_around(
    input: &MapperInput,
    border: &Coord3,
    shape: NeighborhoodShape,
    along: &[bool; 3],
) -> Region {
    let around = |border: &Coord3| {
        per_dimension::product(std::array::from_fn(|dim| {
            let (items, size) = (interval(&input.chunk, dim), input.buffer.max()[dim]);
            match along[dim] {
                true => wrapped(&items, border[dim], size),
                false => {
                    let end = items.end.saturating_add(border[dim]).min(size);
                    std::iter::once(items.start.saturating_sub(border[dim])..end).collect()
                }
            }
        }))
    };
    if shape.is_box_for(border) {
        return around(border);
    }
    let mut arms = Region::empty();
    for dim in (0..3).filter(|&dim| border[dim] > 0) {
        let mut arm = [0; 3];
        arm[dim] = border[dim];
        arms.union_with(&around(&arm));
    }
    arms
}
