//! What a chunk touches: range mappers, evaluated from their meaning and not by
//! their own code. Only a user's function is called.

use celerity_regions::{Box3, Coord3};
use celerity_tdag::{Mapper, MapperInput, NeighborhoodShape};

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
        Mapper::Neighborhood { .. } if !chunk.is_empty() => Boxes::from_slice(&[chunk]),
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
            let theirs = mapper.map(&MapperInput { chunk, global, buffer });
            let ours = image(&mapper, chunk, global, buffer);
            prop_assert_eq!(first_difference(&ours, theirs.boxes()), None);
        }
    }
}
