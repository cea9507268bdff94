//! Range mappers of accesses through which items of one chunk meet: what must be
//! different for chunks alone. Knows no buffer and no element.

use celerity_regions::Region;
use celerity_tdag::{IndexSpace, Mapper, MapperInput, RangeMapper, UserMapper};

/// Whether no two chunks that `space` is ever cut into have an element in common. A
/// user's mapper is believed here, and held to it when chunks are known.
pub(super) fn keeps_chunks_apart(mapper: &Mapper, space: &IndexSpace) -> bool {
    match mapper {
        Mapper::OneToOne | Mapper::User(_) => true,
        Mapper::Slice { dim } => !space.is_cut_along(usize::from(*dim)),
        Mapper::All | Mapper::Fixed(_) => !(0..3).any(|dim| space.is_cut_along(dim)),
        // Not one box.
        Mapper::Neighborhood { .. } => false,
    }
}

/// The mapper, as one that the task graph lets a kernel write through: its own rule
/// keeps single items apart.
pub(super) fn by_chunk(mapper: Mapper) -> Mapper {
    match mapper {
        Mapper::OneToOne => mapper,
        mapper => {
            let name = mapper.to_string();
            Mapper::User(UserMapper::disjoint(ByChunk { mapper, name }))
        }
    }
}

struct ByChunk {
    mapper: Mapper,
    name: String,
}

impl RangeMapper for ByChunk {
    fn map(&self, input: &MapperInput) -> Region {
        self.mapper.map_unclamped(input)
    }

    fn name(&self) -> &str {
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use celerity_regions::Box3;
    use celerity_tdag::Split;

    use super::*;

    fn space(split: Split, granularity: [u64; 3]) -> IndexSpace {
        IndexSpace { split, granularity, ..IndexSpace::new(2, Box3::from_range([8, 6])) }
    }

    #[test]
    fn a_slice_is_kept_apart_where_no_cut_goes_through_it() {
        let apart = |dim, split, granularity| {
            keeps_chunks_apart(&Mapper::Slice { dim }, &space(split, granularity))
        };
        assert!(apart(1, Split::OneDimensional, [1; 3]));
        assert!(!apart(0, Split::OneDimensional, [1; 3]));
        assert!(!apart(1, Split::Tiled, [1; 3]) && apart(1, Split::Tiled, [1, 6, 1]));
        assert!(apart(0, Split::Along(1), [1; 3]) && !apart(1, Split::Along(1), [1; 3]));
    }

    #[test]
    fn what_is_the_same_for_all_takes_a_single_chunk() {
        let apart =
            |granularity| keeps_chunks_apart(&Mapper::All, &space(Split::Tiled, granularity));
        assert!(!apart([8, 1, 1]) && !apart([7, 6, 1]) && apart([8, 6, 1]));
    }

    #[test]
    fn chunks_map_to_what_they_did() {
        let input = MapperInput {
            chunk: Box3::new([2, 0, 0], [3, 6, 1]),
            global: Box3::from_range([8, 6]),
            buffer: Box3::from_range([8, 9]),
        };
        let (mapper, one_to_one) = (Mapper::Slice { dim: 1 }, by_chunk(Mapper::OneToOne));
        let trusted = by_chunk(mapper.clone());
        assert_eq!(trusted.map(&input), mapper.map(&input));
        assert!(trusted.is_disjoint(&input.global) && !mapper.is_disjoint(&input.global));
        assert_eq!(one_to_one, Mapper::OneToOne);
    }
}
