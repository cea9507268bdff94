//! Mappers as plain data, with their meaning item by item and element by
//! element, and the `Mapper` values that the graphs are given instead.
//!
//! [`MapperSpec::touches`] is the definition. It shares no code with
//! `celerity_tdag::Mapper`, so that each can be tested against the other.

use std::sync::Arc;

use celerity_regions::{Box3, Coord3, Region};
use celerity_tdag::{
    AccessMode, Mapper, MapperInput, NeighborhoodShape, RangeMapper, Share, Side, UserMapper,
    Windows,
};
use serde::{Deserialize, Serialize};

use crate::element;

/// Which elements of a buffer an item touches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MapperSpec {
    /// The element of its own index.
    OneToOne,
    /// The whole buffer.
    All,
    /// The same boxes, whatever the item.
    Fixed(Vec<Box3>),
    /// Its element, extended over the buffer along one dimension.
    Slice {
        /// The dimension.
        dim: u8,
    },
    /// Its element and a border around it.
    Neighborhood {
        /// Elements to either side, per dimension.
        border: Coord3,
        /// Corners or not.
        shape: NeighborhoodShape,
    },
    /// As [`Neighborhood`](Self::Neighborhood), in a buffer whose opposite edges meet along some
    /// dimensions.
    Periodic {
        /// Elements to either side, per dimension.
        border: Coord3,
        /// Corners or not.
        shape: NeighborhoodShape,
        /// Along which edges meet.
        along: [bool; 3],
    },
    /// A function for each dimension of the buffer.
    PerDimension(Vec<SideSpec>),
    /// A user's mapper: a box, each side of which is a function of the item.
    Affine([Axis; 3]),
    /// A user's mapper without any structure: items touch one element each, in
    /// an order shuffled by `seed`. Injective while there are elements left.
    Scatter {
        /// Chooses the permutation.
        seed: u64,
    },
}

/// Which elements of one dimension an item touches through [`MapperSpec::PerDimension`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SideSpec {
    /// All elements along the dimension, for every item.
    All,
    /// The same ones for all items.
    Only {
        /// The first element.
        min: u64,
        /// The end, exclusive.
        max: u64,
    },
    /// `width` elements from `stride * i + first` on, where `i` is the item's index along
    /// dimension `from` of the index space.
    Windows {
        /// The dimension of the index space.
        from: u8,
        /// Elements between the starts of neighbouring items.
        stride: u64,
        /// Where item 0 starts.
        first: i64,
        /// Elements per item.
        width: u64,
        /// Elements outside of the buffer are ignored.
        clamped: bool,
    },
    /// An even share, in granules.
    Share {
        /// The dimension of the index space.
        from: u8,
        /// Elements of a granule, at least 1.
        granularity: u64,
    },
}

/// One side of the box that an item touches through [`MapperSpec::Affine`].
/// Elements outside of the buffer are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Axis {
    /// The same interval for all items.
    Constant {
        /// The first element.
        min: u64,
        /// The end, exclusive.
        max: u64,
    },
    /// `width` elements from `start + stride * i`, where `i` counts the item
    /// along dimension `from` of the index space.
    Along {
        /// The dimension of the index space.
        from: u8,
        /// Where the first item's interval starts.
        start: u64,
        /// Elements between the starts of neighbouring items.
        stride: u64,
        /// Elements per item.
        width: u64,
        /// Counts from the end of the index space instead of its start.
        mirrored: bool,
    },
}

impl MapperSpec {
    /// Whether `item` of the index space `global` touches the given element,
    /// which lies inside `buffer`.
    #[must_use]
    pub fn touches(&self, item: Coord3, global: &Box3, buffer: &Box3, at: Coord3) -> bool {
        let distance = |dim: usize| at[dim].abs_diff(item[dim]);
        match self {
            Self::OneToOne => at == item,
            Self::All => true,
            Self::Fixed(boxes) => boxes.iter().any(|part| part.contains_point(at)),
            Self::Slice { dim } => {
                (0..3).all(|other| other == usize::from(*dim) || at[other] == item[other])
            }
            Self::Neighborhood { border, shape: NeighborhoodShape::BoundingBox } => {
                (0..3).all(|dim| distance(dim) <= border[dim])
            }
            Self::Neighborhood { border, shape: NeighborhoodShape::AlongAxes } => {
                let off_axis = (0..3).filter(|&dim| distance(dim) > 0).count();
                off_axis <= 1 && (0..3).all(|dim| distance(dim) <= border[dim])
            }
            Self::Periodic { border, shape, along } => {
                let around = |dim: usize| match along[dim] {
                    true => distance(dim).min(buffer.max()[dim] - distance(dim)),
                    false => distance(dim),
                };
                // Where a border is as wide as the buffer, an element is its own neighbour.
                let near = (0..3).all(|dim| around(dim) <= border[dim]);
                let off_axis = (0..3).filter(|&dim| around(dim) > 0).count();
                near && (*shape == NeighborhoodShape::BoundingBox || off_axis <= 1)
            }
            Self::PerDimension(sides) => {
                let touches = |(dim, side): (usize, &SideSpec)| {
                    side.touches(item, global, buffer.max()[dim], at[dim])
                };
                sides.iter().enumerate().all(touches)
            }
            Self::Affine(axes) => {
                (0..3).all(|dim| axes[dim].interval(item, global).contains(&at[dim]))
            }
            Self::Scatter { seed } => scattered(*seed, item, global, buffer) == at,
        }
    }

    /// The elements that each item of `space` touches, ascending.
    /// O(items · elements).
    #[must_use]
    pub fn images(&self, space: &Box3, buffer: &Box3) -> Vec<Vec<usize>> {
        let image = |item| {
            let touched = element::points(buffer).enumerate();
            let touched = touched.filter(|&(_, at)| self.touches(item, space, buffer, at));
            touched.map(|(slot, _)| slot).collect()
        };
        element::points(space).map(image).collect()
    }

    /// Whether the mapper is one of a user's.
    #[must_use]
    pub fn is_user(&self) -> bool {
        matches!(self, Self::Affine(_) | Self::Scatter { .. })
    }

    /// Whether index space and buffer must have the same dimensionality.
    #[must_use]
    pub fn needs_equal_dims(&self) -> bool {
        matches!(
            self,
            Self::OneToOne | Self::Slice { .. } | Self::Neighborhood { .. } | Self::Periodic { .. }
        )
    }

    /// Whether the mapper is one from index spaces to buffers of so many dimensions.
    #[must_use]
    pub fn fits(&self, space_dims: u8, buffer_dims: u8) -> bool {
        match self {
            Self::PerDimension(sides) => {
                let mut seen = [false; 3];
                let mut once = |from: u8| !std::mem::replace(&mut seen[usize::from(from)], true);
                let mut followed = sides.iter().filter_map(SideSpec::from);
                sides.len() == usize::from(buffer_dims)
                    && followed.all(|from| from < space_dims && once(from))
            }
            _ => !self.needs_equal_dims() || space_dims == buffer_dims,
        }
    }

    /// Whether the mapper may be evaluated on `space`: built-in mappers other
    /// than neighbourhoods must not leave the buffer, neighbourhoods must at
    /// least start inside of it.
    #[must_use]
    pub fn stays_inside(&self, space: &Box3, buffer: &Box3) -> bool {
        match self {
            Self::All | Self::Affine(_) | Self::Scatter { .. } => true,
            Self::Fixed(boxes) => boxes.iter().all(|part| buffer.contains(part)),
            Self::OneToOne | Self::Neighborhood { .. } => buffer.contains(space),
            Self::Periodic { border, along, .. } => {
                let fits = |dim: usize| !along[dim] || border[dim] <= buffer.max()[dim];
                space.is_empty() || (buffer.contains(space) && (0..3).all(fits))
            }
            Self::PerDimension(sides) => {
                let mut sides = sides.iter().enumerate();
                let inside =
                    |(dim, side): (usize, &SideSpec)| side.stays_inside(space, buffer.max()[dim]);
                space.is_empty() || sides.all(inside)
            }
            Self::Slice { dim } => {
                let (mut min, mut max) = (space.min(), space.max());
                min[usize::from(*dim)] = 0;
                max[usize::from(*dim)] = buffer.max()[usize::from(*dim)];
                buffer.contains(&Box3::new(min, max))
            }
        }
    }

    /// What one item touches, for the user's mappers, whose image is one box.
    fn user_image(&self, item: Coord3, input: &MapperInput) -> Box3 {
        match self {
            Self::Affine(axes) => {
                let sides = axes.map(|axis| axis.interval(item, &input.global));
                Box3::new(
                    [sides[0].start, sides[1].start, sides[2].start],
                    [sides[0].end, sides[1].end, sides[2].end],
                )
            }
            Self::Scatter { .. } if input.buffer.is_empty() => Box3::EMPTY,
            Self::Scatter { seed } => {
                let [x, y, z] = scattered(*seed, item, &input.global, &input.buffer);
                Box3::new([x, y, z], [x + 1, y + 1, z + 1])
            }
            _ => unreachable!("{self:?} is a built-in mapper"),
        }
    }

    /// What a chunk touches, if it is plain that its items' images make up a
    /// box: sides without gaps, each along a dimension of its own.
    fn chunk_image(&self, input: &MapperInput) -> Option<Box3> {
        let Self::Affine(axes) = self else { return None };
        let mut sources = [false; 3];
        for axis in axes {
            let Axis::Along { from, stride, width, .. } = *axis else { continue };
            let taken = std::mem::replace(&mut sources[usize::from(from)], true);
            if taken || stride > width {
                return None;
            }
        }
        let (first, end) = (input.chunk.min(), input.chunk.max());
        let [first, last] =
            [first, end.map(|end| end - 1)].map(|item| self.user_image(item, input));
        (!first.is_empty() && !last.is_empty()).then(|| first.bounding(&last))
    }
}

impl SideSpec {
    /// The dimension of the index space that it follows.
    #[must_use]
    pub fn from(&self) -> Option<u8> {
        match self {
            Self::All | Self::Only { .. } => None,
            Self::Windows { from, .. } | Self::Share { from, .. } => Some(*from),
        }
    }

    fn touches(&self, item: Coord3, global: &Box3, size: u64, at: u64) -> bool {
        match *self {
            Self::All => true,
            Self::Only { min, max } => (min..max).contains(&at),
            Self::Windows { from, stride, first, width, .. } => {
                let behind = signed(at) - signed(stride * item[usize::from(from)]) - first;
                (0..signed(width)).contains(&behind)
            }
            Self::Share { from, granularity } => {
                let from = usize::from(from);
                let items = global.max()[from] - global.min()[from];
                let granules = size.div_ceil(granularity);
                // Granule `g` belongs to the last item that has begun by then.
                let (granule, nth) = (at / granularity, item[from] - global.min()[from]);
                nth * granules / items <= granule && granule < (nth + 1) * granules / items
            }
        }
    }

    fn stays_inside(&self, space: &Box3, size: u64) -> bool {
        match *self {
            Self::Only { min, max } => min >= max || max <= size,
            Self::Windows { from, stride, first, width, clamped: false } => {
                let from = usize::from(from);
                let least = signed(stride * space.min()[from]) + first;
                let last = signed(stride * (space.max()[from] - 1)) + first;
                least >= 0 && (width == 0 || last + signed(width) <= signed(size))
            }
            _ => true,
        }
    }

    fn lower(&self) -> Side {
        match *self {
            Self::All => Side::All,
            Self::Only { min, max } => Side::Only { min, max },
            Self::Windows { from, stride, first, width, clamped } => {
                Side::Windows(Windows { from, stride, first, width, clamped })
            }
            Self::Share { from, granularity } => Side::Share(Share { from, granularity }),
        }
    }
}

/// Test buffers are small.
fn signed(coordinate: u64) -> i64 {
    i64::try_from(coordinate).expect("coordinates of test buffers are small")
}

impl Axis {
    fn interval(self, item: Coord3, global: &Box3) -> std::ops::Range<u64> {
        match self {
            Self::Constant { min, max } => min..max,
            Self::Along { from, start, stride, width, mirrored } => {
                let from = usize::from(from);
                let nth = match mirrored {
                    false => item[from] - global.min()[from],
                    true => global.max()[from] - 1 - item[from],
                };
                let min = start + stride * nth;
                min..min + width
            }
        }
    }
}

/// The element that an item is thrown at. Multiplying by a number coprime to
/// the number of elements permutes them.
fn scattered(seed: u64, item: Coord3, global: &Box3, buffer: &Box3) -> Coord3 {
    let elements = buffer.volume();
    let factor = (seed % elements..).find(|&factor| gcd(factor, elements) == 1);
    let factor = factor.expect("some number is coprime to any other");
    let nth = element::slot(global, item) as u64;
    let target = (nth % elements * factor + seed) % elements;
    element::point(buffer, usize::try_from(target).expect("test buffers are small"))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Makes `Mapper` values. Equal specifications become equal values, as in a
/// program that keeps its mappers in variables.
#[derive(Clone, Debug, Default)]
pub struct MapperTable {
    users: Vec<(MapperSpec, bool, UserMapper)>,
}

impl MapperTable {
    /// The mapper for an access in this mode. User mappers promise disjoint images where items
    /// write elements of their own; items that update may meet.
    #[must_use]
    pub fn lower(&mut self, spec: &MapperSpec, mode: AccessMode) -> Mapper {
        match spec {
            MapperSpec::OneToOne => Mapper::OneToOne,
            MapperSpec::All => Mapper::All,
            MapperSpec::Fixed(boxes) => {
                Mapper::Fixed(Arc::new(Region::from_boxes(boxes.iter().copied())))
            }
            MapperSpec::Slice { dim } => Mapper::Slice { dim: *dim },
            MapperSpec::Neighborhood { border, shape } => {
                Mapper::Neighborhood { border: *border, shape: *shape }
            }
            MapperSpec::Periodic { border, shape, along } => {
                Mapper::Periodic { border: *border, shape: *shape, along: *along }
            }
            MapperSpec::PerDimension(sides) => {
                let sides: Vec<Side> = sides.iter().map(SideSpec::lower).collect();
                Mapper::per_dimension(&sides)
            }
            MapperSpec::Affine(_) | MapperSpec::Scatter { .. } => {
                let apart = matches!(mode, AccessMode::Write | AccessMode::ReadWrite);
                Mapper::User(self.lower_user(spec, apart))
            }
        }
    }

    fn lower_user(&mut self, spec: &MapperSpec, apart: bool) -> UserMapper {
        let known =
            self.users.iter().find(|(other, disjoint, _)| (other, *disjoint) == (spec, apart));
        if let Some((.., mapper)) = known {
            return mapper.clone();
        }
        let mapper = match apart {
            true => UserMapper::disjoint(ItemByItem(spec.clone())),
            false => UserMapper::new(ItemByItem(spec.clone())),
        };
        self.users.push((spec.clone(), apart, mapper.clone()));
        mapper
    }
}

/// Evaluates a specification as the union over the chunk's items, which makes
/// it additive by construction. In one go where that is a box.
struct ItemByItem(MapperSpec);

impl RangeMapper for ItemByItem {
    fn map(&self, input: &MapperInput) -> Region {
        if let Some(image) = self.0.chunk_image(input) {
            return image.intersection(&input.buffer).into();
        }
        let images = element::points(&input.chunk).map(|item| self.0.user_image(item, input));
        Region::from_boxes(images.map(|image| image.intersection(&input.buffer)))
    }

    fn name(&self) -> &str {
        match self.0 {
            MapperSpec::Scatter { .. } => "scatter",
            _ => "affine",
        }
    }
}
