//! What a chunk touches: range mappers, evaluated from their meaning and not by
//! their own code. Only a user's function is called.

use celerity_regions::{Box3, Coord3};
use celerity_tdag::{
    Mapper, MapperInput, NeighborhoodShape, PerDimension, Share, Side, Tiling, Windows,
};

use crate::geometry::{Boxes, overlap};

/// The elements of `buffer` that `chunk` touches. The boxes may overlap.
pub(crate) fn image(mapper: &Mapper, chunk: Box3, global: Box3, buffer: Box3) -> Boxes {
    let reached = reach(mapper, chunk, global, buffer);
    reached.iter().filter_map(|part| overlap(part, &buffer)).collect()
}

/// What `chunk` would touch if the buffer had no end: what must lie inside of
/// it, but for neighbourhoods, which are clamped by definition.
pub(crate) fn unclamped(mapper: &Mapper, chunk: Box3, global: Box3, buffer: Box3) -> Boxes {
    match mapper {
        Mapper::Neighborhood { .. } | Mapper::Periodic { .. } if !chunk.is_empty() => {
            Boxes::from_slice(&[chunk])
        }
        Mapper::PerDimension(mapper) if !chunk.is_empty() => {
            sides(mapper, &chunk, &global, &buffer)
        }
        _ => reach(mapper, chunk, global, buffer),
    }
}

fn reach(mapper: &Mapper, chunk: Box3, global: Box3, buffer: Box3) -> Boxes {
    if chunk.is_empty() {
        return Boxes::new();
    }
    match mapper {
        Mapper::OneToOne => Boxes::from_slice(&[chunk]),
        Mapper::All => Boxes::from_slice(&[buffer]),
        Mapper::Fixed(region) => Boxes::from_slice(region.boxes()),
        Mapper::Slice { dim } => {
            let (mut min, mut max) = (chunk.min(), chunk.max());
            min[usize::from(*dim)] = 0;
            max[usize::from(*dim)] = buffer.max()[usize::from(*dim)];
            Boxes::from_slice(&[Box3::new(min, max)])
        }
        Mapper::Neighborhood { border, shape: NeighborhoodShape::BoundingBox } => {
            Boxes::from_slice(&[grown(&chunk, border)])
        }
        Mapper::Neighborhood { border, shape: NeighborhoodShape::AlongAxes } => {
            arms(&chunk, border)
        }
        Mapper::Periodic { border, shape, along } => {
            images(&chunk, border, *shape, &buffer.max(), along)
        }
        Mapper::PerDimension(mapper) => sides(mapper, &chunk, &global, &buffer),
        Mapper::Tiles(tiling) => tiles(tiling, &chunk),
        Mapper::User(_) => {
            let region = mapper.map_unclamped(&MapperInput { chunk, global, buffer });
            Boxes::from_slice(region.boxes())
        }
    }
}

/// The chunk, and the chunk grown along each axis by itself.
fn arms(chunk: &Box3, border: &Coord3) -> Boxes {
    let along = |dim: usize| {
        let mut only = [0; 3];
        only[dim] = border[dim];
        grown(chunk, &only)
    };
    match border.iter().any(|&width| width > 0) {
        true => (0..3).filter(|&dim| border[dim] > 0).map(along).collect(),
        false => Boxes::from_slice(&[*chunk]),
    }
}

/// What a neighbourhood touches of a buffer that repeats itself along some dimensions: what lies
/// in the buffer of each of its copies, one period to either side.
fn images(
    chunk: &Box3,
    border: &Coord3,
    shape: NeighborhoodShape,
    period: &Coord3,
    along: &[bool; 3],
) -> Boxes {
    let around = match shape {
        NeighborhoodShape::AlongAxes if border.iter().any(|&width| width > 0) => {
            let arms = (0..3).filter(|&dim| border[dim] > 0).map(|dim| {
                let mut only = [0; 3];
                only[dim] = border[dim];
                grown_far(chunk, &only, period)
            });
            arms.collect()
        }
        _ => Boxes::from_slice(&[grown_far(chunk, border, period)]),
    };
    let mut found = Boxes::new();
    for copy in 0..27_u32 {
        let copies = [copy / 9, copy / 3 % 3, copy % 3];
        if (0..3).any(|dim| copies[dim] != 1 && !along[dim]) {
            continue;
        }
        found.extend(around.iter().filter_map(|part| in_copy(part, copies, period)));
    }
    found
}

/// The chunk with its border, in a space that begins one period before the buffer.
fn grown_far(chunk: &Box3, border: &Coord3, period: &Coord3) -> Box3 {
    let (min, max) = (chunk.min(), chunk.max());
    // A border that is wider than the buffer, where it is clamped, ends with the copies.
    let least = |dim: usize| (period[dim] + min[dim]).saturating_sub(border[dim]);
    let most = |dim: usize| period[dim].saturating_add(max[dim]).saturating_add(border[dim]);
    Box3::new([0, 1, 2].map(least), [0, 1, 2].map(most))
}

/// What of a box lies in one of the copies, 0 to 2 along each dimension, as a part of the buffer.
fn in_copy(part: &Box3, copies: [u32; 3], period: &Coord3) -> Option<Box3> {
    let offset: [u64; 3] = std::array::from_fn(|dim| u64::from(copies[dim]) * period[dim]);
    let end = std::array::from_fn(|dim| offset[dim] + period[dim]);
    let inside = overlap(part, &Box3::new(offset, end))?;
    let back = |corner: Coord3| std::array::from_fn(|dim| corner[dim] - offset[dim]);
    Some(Box3::new(back(inside.min()), back(inside.max())))
}

/// The product of what each side of a mapper touches.
fn sides(mapper: &PerDimension, chunk: &Box3, global: &Box3, buffer: &Box3) -> Boxes {
    let mut found = Boxes::from_slice(&[Box3::new([0; 3], buffer.max())]);
    for (dim, side) in mapper.sides().iter().enumerate() {
        let intervals = intervals(side, chunk, global, buffer.max()[dim]);
        let cut = |part: &Box3| {
            let (min, max) = (part.min(), part.max());
            intervals.iter().map(move |side| {
                let (mut min, mut max) = (min, max);
                (min[dim], max[dim]) = *side;
                Box3::new(min, max)
            })
        };
        found = found.iter().flat_map(|part| cut(part).collect::<Vec<_>>()).collect();
    }
    found.retain(|part| !part.is_empty());
    found
}

/// What each item along the dimension that a side follows touches, one by one where items leave
/// gaps.
fn intervals(side: &Side, chunk: &Box3, global: &Box3, size: u64) -> Vec<(u64, u64)> {
    match side {
        Side::All => vec![(0, size)],
        Side::Only { min, max } => vec![(*min, *max)],
        Side::Windows(Windows { from, stride, first, width, clamped }) => {
            let (least, end) = along(chunk, *from);
            let most = if *clamped { size } else { u64::MAX };
            let window = |from: u64, to: u64| {
                let begin = i128::from(*stride) * i128::from(from) + i128::from(*first);
                let last = i128::from(*stride) * i128::from(to) + i128::from(*first);
                let whole = |at: i128| u64::try_from(at.max(0)).unwrap_or(u64::MAX).min(most);
                (whole(begin), whole(last + i128::from(*width)))
            };
            match width < stride {
                true => (least..end).map(|item| window(item, item)).collect(),
                false => vec![window(least, end - 1)],
            }
        }
        Side::Share(Share { from, granularity }) => {
            let ((least, end), (first, last)) = (along(chunk, *from), along(global, *from));
            let granule = u128::from((*granularity).max(1));
            let (granules, count) = (u128::from(size).div_ceil(granule), u128::from(last - first));
            let begin = |item: u64| {
                let element = u128::from(item - first) * granules / count * granule;
                u64::try_from(element.min(size.into())).unwrap_or(size)
            };
            vec![(begin(least), begin(end))]
        }
    }
}

fn along(part: &Box3, dim: u8) -> (u64, u64) {
    (part.min()[usize::from(dim)], part.max()[usize::from(dim)])
}

/// The numbers of all tiles with an item in the chunk, counted one dimension after the other.
fn tiles(tiling: &Tiling, chunk: &Box3) -> Boxes {
    let (space, size) = (tiling.space(), tiling.tile());
    let slowest = usize::from(tiling.slowest());
    let mut counted: Vec<usize> = (0..3).filter(|&dim| dim != slowest).collect();
    counted.insert(0, slowest);
    let tile = |dim: usize, at: u64| (at - space.min()[dim]) / size[dim];
    // Consecutive numbers, from the fastest dimension to the slowest.
    let (mut numbers, mut stride) = (vec![(0, 1)], 1);
    for dim in counted.into_iter().rev() {
        let (first, last) = (tile(dim, chunk.min()[dim]), tile(dim, chunk.max()[dim] - 1));
        let whole = numbers.as_slice() == [(0, stride)];
        numbers = match whole {
            true => vec![(first * stride, (last + 1) * stride)],
            false => {
                let shifted =
                    |at| numbers.iter().map(move |(a, b)| (a + at * stride, b + at * stride));
                (first..=last).flat_map(shifted).collect()
            }
        };
        stride *= tile(dim, space.max()[dim] - 1) + 1;
    }
    numbers.into_iter().map(|(first, end)| Box3::new([first, 0, 0], [end, 1, 1])).collect()
}

fn grown(chunk: &Box3, border: &Coord3) -> Box3 {
    let min = std::array::from_fn(|dim| chunk.min()[dim].saturating_sub(border[dim]));
    let max = std::array::from_fn(|dim| chunk.max()[dim].saturating_add(border[dim]));
    Box3::new(min, max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::first_difference;
    use celerity_tdag::UserMapper;
    use proptest::prelude::*;

    fn any_mapper() -> impl Strategy<Value = Mapper> {
        let border = prop::array::uniform3(0..3usize);
        prop_oneof![
            Just(Mapper::OneToOne),
            Just(Mapper::All),
            Just(Mapper::fixed(Box3::new([1, 0, 2], [3, 9, 3]))),
            (0..3u8).prop_map(|dim| Mapper::Slice { dim }),
            border.clone().prop_map(Mapper::neighborhood),
            border.prop_map(|border| Mapper::neighborhood_shaped(
                border,
                NeighborhoodShape::AlongAxes
            )),
            Just(Mapper::User(UserMapper::new(|input: &MapperInput| input.chunk.into()))),
            (border_and_shape(), prop::array::uniform3(any::<bool>()))
                .prop_map(|((border, shape), along)| Mapper::periodic(border, shape, along)),
            prop::collection::vec(any_side(), 3).prop_map(|sides| Mapper::per_dimension(&sides)),
        ]
    }

    fn border_and_shape() -> impl Strategy<Value = ([usize; 3], NeighborhoodShape)> {
        let shape =
            prop_oneof![Just(NeighborhoodShape::BoundingBox), Just(NeighborhoodShape::AlongAxes)];
        (prop::array::uniform3(0..3usize), shape)
    }

    fn any_side() -> impl Strategy<Value = Side> {
        let windows = (0..3u8, 0..4u64, -3..4i64, 0..4u64, any::<bool>());
        prop_oneof![
            Just(Side::All),
            (0..4u64, 0..4u64).prop_map(|(min, len)| Side::Only { min, max: min + len }),
            windows.prop_map(|(from, stride, first, width, clamped)| Side::Windows(Windows {
                from,
                stride,
                first,
                width,
                clamped
            })),
            (0..3u8, 0..4u64)
                .prop_map(|(from, granularity)| Side::Share(Share { from, granularity })),
        ]
    }

    proptest! {
        /// Two independent definitions of the same mappers.
        #[test]
        fn images_equal_those_of_the_graphs(
            mapper in any_mapper(),
            min in prop::array::uniform3(0..5u64),
            range in prop::array::uniform3(0..4u64),
            sides in prop::array::uniform3(1..9u64),
        ) {
            let max = std::array::from_fn(|dim| min[dim] + range[dim]);
            let chunk = Box3::new(min, max);
            let (global, buffer) = (Box3::new([0; 3], [9; 3]), Box3::new([0; 3], sides));
            // Borders that reach around more than once, and chunks outside of a buffer that goes
            // around, are refused at submission.
            let space = (3, &chunk);
            let outside = matches!(mapper, Mapper::Periodic { .. }) && !buffer.contains(&chunk);
            prop_assume!(!outside && mapper.flaw(space, (3, &buffer)).is_none());
            let theirs = mapper.map(&MapperInput { chunk, global, buffer });
            let ours = image(&mapper, chunk, global, buffer);
            prop_assert_eq!(first_difference(&ours, theirs.boxes()), None);
        }
    }
}
