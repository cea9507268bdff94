//! Whether accesses of one task share elements of which one of them writes some: as far as that
//! can be told of a task by itself, without the sizes of its buffers. With them, see `declare`.

use celerity_regions::Box3;

use crate::access::Access;
use crate::id::BufferId;
use crate::mapper::{Mapper, MapperInput};

/// A buffer of which accesses of a task with this index space share elements that one of
/// them writes, whatever the buffer's size. O(accesses²).
pub(crate) fn shared(accesses: &[Access], space: &Box3) -> Option<BufferId> {
    let mut pairs = Access::buffers(accesses).enumerate().flat_map(|(position, access)| {
        let earlier = Access::buffers(accesses).take(position);
        earlier.map(move |earlier| (earlier, access))
    });
    let sharing = pairs.find(|(a, b)| a.conflicts_with(b) && share(&a.mapper, &b.mapper, space));
    sharing.map(|(access, _)| access.buffer)
}

/// In the smallest buffer that the mappers may stand for, images are smallest.
fn share(a: &Mapper, b: &Mapper, space: &Box3) -> bool {
    let (Some(least_of_a), Some(least_of_b)) = (least(a, space), least(b, space)) else {
        return false;
    };
    let buffer = Box3::new([0; 3], least_of_a.bounding(&least_of_b).max());
    let input = MapperInput { chunk: *space, global: *space, buffer };
    a.map(&input).intersects(&b.map(&input))
}

/// A box that a buffer holds which is accessed through this mapper. `None` of a user's, and of
/// those that touch other elements of a larger buffer.
fn least(mapper: &Mapper, space: &Box3) -> Option<Box3> {
    match mapper {
        Mapper::OneToOne | Mapper::Neighborhood { .. } => Some(*space),
        Mapper::Fixed(region) => Some(region.bounding_box()),
        Mapper::Tiles(tiling) => Some(tiling.partials()),
        // A slice of a buffer without elements is empty, wherever it is.
        Mapper::All | Mapper::Slice { .. } => Some(Box3::EMPTY),
        Mapper::Periodic { .. } | Mapper::PerDimension(_) | Mapper::User(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::AccessMode::{self, Read, ReadWrite, Write};

    fn found(accesses: [(AccessMode, Mapper); 2]) -> bool {
        let access = |(mode, mapper)| Access::buffer(BufferId::from_index(0), mode, mapper);
        shared(&accesses.map(access), &Box3::from_offset_range([3, 0], [1, 8])).is_some()
    }

    #[test]
    fn what_is_shared_in_any_buffer_is_found() {
        let rows = |min, max| Mapper::fixed(Box3::new([min, 0, 0], [max, 8, 1]));
        assert!(found([(Read, Mapper::OneToOne), (Write, Mapper::OneToOne)]));
        assert!(found([(Write, Mapper::OneToOne), (Read, Mapper::All)]));
        assert!(found([(Read, rows(0, 4)), (ReadWrite, Mapper::OneToOne)]));
        assert!(found([(Write, rows(0, 2)), (Write, rows(1, 3))]));
        assert!(found([(Read, Mapper::neighborhood([1, 0])), (Write, Mapper::OneToOne)]));
        assert!(!found([(Read, rows(0, 3)), (Write, Mapper::OneToOne)]));
        assert!(!found([(Read, Mapper::OneToOne), (Read, Mapper::All)]));
        assert!(found([(Write, Mapper::Slice { dim: 1 }), (Read, Mapper::OneToOne)]));
        assert!(!found([(Write, Mapper::Slice { dim: 1 }), (Read, Mapper::All)]));
        assert!(found([(Read, Mapper::neighborhood([1, 0])), (Write, rows(4, 5))]));
        assert!(!found([(Read, Mapper::neighborhood([1, 0])), (Write, rows(5, 6))]));
    }
}
