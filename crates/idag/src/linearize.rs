//! Copies between a device and the host whose rows are short. A copy engine
//! spends most of its time between rows, so what has many short ones is
//! gathered into a dense *stage* where it lies, moved in one piece, and
//! scattered where it is needed. The papers are silent on this; the C++ original
//! does it for copies between devices that go through the host.
//!
//! Decides where copies stop on their way. Refuses to know what has to be
//! copied, and how: that is the business of `coherence` and `stages`.

use celerity_regions::Box3;
use smallvec::SmallVec;

use crate::instruction::MemoryId;
use crate::layout::elements_per_row;

/// The memories in which a copy stops on its way.
pub(crate) type Stops = SmallVec<[MemoryId; 2]>;

/// What is larger is copied row by row, however slow: a stage costs as much
/// memory again. In bytes.
const MOST_STAGED: u64 = 64 << 20;

/// One end of a copy: a memory, and the extent of an allocation there.
pub(crate) type CopyEnd<'a> = (MemoryId, &'a Box3);

/// Where `elements` of so many bytes each stop between two allocations: on each
/// side on which they lie in rows of less than `rows_below` bytes.
pub(crate) fn stops(
    (source, target): (CopyEnd<'_>, CopyEnd<'_>),
    elements: &Box3,
    elem_size: u64,
    rows_below: u64,
) -> Stops {
    let crosses = source.0.device().is_some() != target.0.device().is_some();
    if rows_below == 0 || !crosses || elements.volume().saturating_mul(elem_size) > MOST_STAGED {
        return Stops::new();
    }
    let sides = [source, target].into_iter().filter(|(_, extent)| {
        let row = elements_per_row(elements, extent);
        row < elements.volume() && row * elem_size < rows_below
    });
    sides
        .map(|(memory, _)| if memory == MemoryId::USER { MemoryId::HOST } else { memory })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruction::DeviceId;

    const DEVICE: MemoryId = MemoryId::of_device(DeviceId::from_index(0));

    fn route(from: (MemoryId, Box3), to: (MemoryId, Box3), elements: Box3) -> Vec<MemoryId> {
        stops(((from.0, &from.1), (to.0, &to.1)), &elements, 4, 64).to_vec()
    }

    #[test]
    fn a_column_stops_where_it_is_strided() {
        let (tile, column) = (Box3::from_range([32, 32]), Box3::from_range([32, 1]));
        let host = MemoryId::HOST;
        assert_eq!(route((DEVICE, tile), (host, column), column), [DEVICE]);
        assert_eq!(route((DEVICE, tile), (host, tile), column), [DEVICE, host]);
        assert_eq!(route((host, tile), (DEVICE, column), column), [host]);
        assert_eq!(route((MemoryId::USER, tile), (DEVICE, tile), column), [host, DEVICE]);
        assert_eq!(route((DEVICE, column), (host, column), column), []);
    }

    #[test]
    fn rows_are_copied_as_they_are() {
        let (tile, rows) = (Box3::from_range([32, 32]), Box3::from_range([3, 32]));
        assert_eq!(route((DEVICE, tile), (MemoryId::HOST, tile), rows), []);
        // 16 elements of 4 bytes are not less than 64 bytes.
        let halves = Box3::from_range([32, 16]);
        assert_eq!(route((DEVICE, tile), (MemoryId::HOST, halves), halves), []);
        let one = Box3::from_range([1, 1]);
        assert_eq!(route((DEVICE, tile), (MemoryId::HOST, tile), one), []);
    }

    #[test]
    fn neither_neighbours_nor_giants_are_staged() {
        let other = MemoryId::of_device(DeviceId::from_index(1));
        let (tile, column) = (Box3::from_range([32, 32]), Box3::from_range([32, 1]));
        assert_eq!(route((DEVICE, tile), (other, tile), column), []);
        let tall = 1 + (MOST_STAGED / 4) as usize;
        let (tile, column) = (Box3::from_range([tall, 2]), Box3::from_range([tall, 1]));
        assert_eq!(route((DEVICE, tile), (MemoryId::HOST, column), column), []);
    }
}
