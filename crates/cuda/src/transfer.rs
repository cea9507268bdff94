//! From boxes of elements to transfers of bytes. Knows geometry and addresses,
//! neither streams nor drivers.

use celerity_regions::Box3;
use smallvec::SmallVec;

use crate::driver::{AddressSpace, Transfer, TransferEnd};

/// Elements of a box, row-major and dense from an address in some memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Array {
    pub(crate) place: AddressSpace,
    pub(crate) address: u64,
    pub(crate) extent: Box3,
}

/// One transfer almost always.
pub(crate) type TransferList = SmallVec<[Transfer; 1]>;

/// What copies `elements`, which are in both extents, of `elem_size` bytes each.
///
/// Dimensions that are contiguous in both arrays collapse, so that most copies
/// are one run of bytes. Rows further apart than `max_pitch`, which no strided
/// copy can do, are copied one by one.
pub(crate) fn plan(
    source: &Array,
    target: &Array,
    elements: &Box3,
    elem_size: u64,
    max_pitch: u64,
) -> TransferList {
    debug_assert!(source.extent.contains(elements), "{elements} is not in {}", source.extent);
    debug_assert!(target.extent.contains(elements), "{elements} is not in {}", target.extent);
    if elements.is_empty() {
        return TransferList::new();
    }
    let whole = strided(source, target, elements, elem_size);
    let pitch = whole.source.pitch.max(whole.target.pitch);
    if whole.rows * whole.planes == 1 || pitch <= max_pitch {
        return SmallVec::from_elem(whole, 1);
    }
    let positions =
        (0..whole.planes).flat_map(|plane| (0..whole.rows).map(move |row| (plane, row)));
    positions.map(|(plane, row)| single_row(&whole, plane, row)).collect()
}

fn strided(source: &Array, target: &Array, elements: &Box3, elem_size: u64) -> Transfer {
    let [planes, lines, columns] = elements.range();
    let spans = |dim: usize| {
        let length = elements.range()[dim];
        length == source.extent.range()[dim] && length == target.extent.range()[dim]
    };
    let (row, rows, planes) = match (spans(2), spans(1)) {
        (true, true) => (planes * lines * columns, 1, 1),
        (true, false) => (lines * columns, planes, 1),
        (false, _) => (columns, lines, planes),
    };
    // Where lines have collapsed, a row starts with each plane.
    let row_dim = if spans(2) { 0 } else { 1 };
    Transfer {
        source: side(source, elements, row_dim, elem_size),
        target: side(target, elements, row_dim, elem_size),
        row: row * elem_size,
        rows,
        planes,
    }
}

fn side(array: &Array, elements: &Box3, row_dim: usize, elem_size: u64) -> TransferEnd {
    let [planes, lines, columns] = array.extent.range();
    let steps = [lines * columns, columns, 1];
    let (origin, min) = (array.extent.min(), elements.min());
    let first: u64 = (0..3).map(|dim| (min[dim] - origin[dim]) * steps[dim]).sum();
    TransferEnd {
        place: array.place,
        address: array.address + first * elem_size,
        pitch: steps[row_dim] * elem_size,
        rows_per_plane: if row_dim == 1 { lines } else { planes },
    }
}

fn single_row(whole: &Transfer, plane: u64, row: u64) -> Transfer {
    let at = |side: &TransferEnd| TransferEnd { address: side.row(plane, row), ..*side };
    Transfer { source: at(&whole.source), target: at(&whole.target), rows: 1, planes: 1, ..*whole }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn array(address: u64, extent: Box3) -> Array {
        Array { place: AddressSpace::Host, address, extent }
    }

    /// Every byte that transfers copy, as pairs of addresses.
    fn bytes(transfers: &[Transfer]) -> Vec<(u64, u64)> {
        let rows = |transfer: &Transfer| {
            let single = *transfer;
            let planes = 0..transfer.planes;
            planes.flat_map(move |plane| {
                (0..single.rows).map(move |row| single_row(&single, plane, row))
            })
        };
        let in_row = |row: Transfer| {
            (0..row.row).map(move |byte| (row.source.address + byte, row.target.address + byte))
        };
        transfers.iter().flat_map(rows).flat_map(in_row).collect()
    }

    fn index(extent: &Box3, at: [u64; 3]) -> u64 {
        let ([_, lines, columns], min) = (extent.range(), extent.min());
        ((at[0] - min[0]) * lines + at[1] - min[1]) * columns + at[2] - min[2]
    }

    /// The same, element by element.
    fn naive(source: &Array, target: &Array, elements: &Box3, size: u64) -> Vec<(u64, u64)> {
        let (min, max) = elements.corners();
        let mut all = Vec::new();
        for z in min[0]..max[0] {
            for y in min[1]..max[1] {
                for x in min[2]..max[2] {
                    let of = |array: &Array| array.address + index(&array.extent, [z, y, x]) * size;
                    all.extend((0..size).map(|byte| (of(source) + byte, of(target) + byte)));
                }
            }
        }
        all
    }

    /// A box inside 6×6×6, and one around it.
    fn around(inner: Box3, grow: [u64; 6]) -> Box3 {
        let (min, max) = inner.corners();
        let low = std::array::from_fn(|dim| min[dim] - grow[dim].min(min[dim]));
        let high = std::array::from_fn(|dim| max[dim] + grow[dim + 3]);
        Box3::new(low, high)
    }

    proptest! {
        #[test]
        fn every_byte_is_copied_once(
            min in prop::array::uniform3(0_u64..3),
            range in prop::array::uniform3(1_u64..4),
            grow in prop::array::uniform2(prop::array::uniform6(0_u64..3)),
            elem_size in 1_u64..5,
            max_pitch in prop::sample::select(vec![0, 8, 1 << 20]),
        ) {
            let elements = Box3::new(min, std::array::from_fn(|dim| min[dim] + range[dim]));
            let source = array(1 << 20, around(elements, grow[0]));
            let target = array(1 << 30, around(elements, grow[1]));
            let transfers = plan(&source, &target, &elements, elem_size, max_pitch);
            let strided = transfers.iter().filter(|it| it.rows * it.planes > 1);
            for transfer in strided {
                prop_assert!(transfer.source.pitch.max(transfer.target.pitch) <= max_pitch);
            }
            let mut copied = bytes(&transfers);
            copied.sort_unstable();
            prop_assert_eq!(copied, naive(&source, &target, &elements, elem_size));
        }
    }

    #[test]
    fn contiguous_elements_are_one_run() {
        let extent = Box3::from_range([100, 30]);
        let elements = Box3::new([20, 0, 0], [50, 30, 1]);
        let transfers = plan(&array(0, extent), &array(0, extent), &elements, 4, 1 << 20);
        assert_eq!((transfers.len(), transfers[0].row), (1, 30 * 30 * 4));
        assert_eq!(transfers[0].source.address, 20 * 30 * 4);
    }

    #[test]
    fn nothing_takes_no_transfer() {
        let nowhere = array(0, Box3::from_range([4]));
        assert!(plan(&nowhere, &nowhere, &Box3::EMPTY, 4, 1).is_empty());
    }
}
