//! Strided copies against a twin that moves one element at a time.

use std::sync::Arc;

use celerity_regions::Coord3;
use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
struct Case {
    source: Box3,
    target: Box3,
    elements: Box3,
    elem_size: u64,
}

/// A box of elements, grown to two different extents around it.
fn any_case() -> impl Strategy<Value = Case> {
    let coord = |range: std::ops::Range<u64>| [range.clone(), range.clone(), range];
    let margins = || (coord(0..3), coord(0..3));
    let elements = (coord(2..5), coord(0..5));
    (elements, margins(), margins(), 1..6_u64).prop_map(
        |((min, range), source, target, elem_size)| {
            let elements = Box3::new(min, std::array::from_fn(|dim| min[dim] + range[dim]));
            let around = |(before, after): (Coord3, Coord3)| {
                let low = std::array::from_fn(|dim| min[dim] - before[dim].min(min[dim]));
                let high = std::array::from_fn(|dim| min[dim] + range[dim].max(1) + after[dim]);
                Box3::new(low, high)
            };
            Case { source: around(source), target: around(target), elements, elem_size }
        },
    )
}

fn bytes_of(extent: &Box3, elem_size: u64) -> usize {
    usize::try_from(extent.volume() * elem_size).unwrap()
}

/// A different value for every byte, as far as bytes go.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| u8::try_from(index * 7 % 251).unwrap()).collect()
}

fn index_in(extent: &Box3, point: Coord3) -> usize {
    let (min, range) = (extent.min(), extent.range());
    let line = (point[0] - min[0]) * range[1] + point[1] - min[1];
    usize::try_from(line * range[2] + point[2] - min[2]).unwrap()
}

fn naive(case: &Case, source: &[u8], target: &mut [u8]) {
    let size = usize::try_from(case.elem_size).unwrap();
    let (min, max) = (case.elements.min(), case.elements.max());
    for z in min[0]..max[0] {
        for y in min[1]..max[1] {
            for x in min[2]..max[2] {
                let from = index_in(&case.source, [z, y, x]) * size;
                let to = index_in(&case.target, [z, y, x]) * size;
                target[to..to + size].copy_from_slice(&source[from..from + size]);
            }
        }
    }
}

fn copy(case: &Case, source: &mut [u8], target: &mut [u8]) {
    let source = ElementArray { base: BasePtr::of_mut_slice(source), extent: case.source };
    let target = ElementArray { base: BasePtr::of_mut_slice(target), extent: case.target };
    // SAFETY: both slices cover their extents, which contain the elements, and
    // are borrowed exclusively.
    unsafe { copy_elements_spread(source, target, &case.elements, case.elem_size) };
}

fn check(case: &Case) {
    let mut source = pattern(bytes_of(&case.source, case.elem_size));
    let mut target = vec![255; bytes_of(&case.target, case.elem_size)];
    let mut expected = target.clone();
    naive(case, &source, &mut expected);
    copy(case, &mut source, &mut target);
    assert!(target == expected, "{case:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn agrees_with_the_naive_twin(case in any_case()) {
        check(&case);
    }
}

/// A program may make `rayon`'s global pool when it likes, or have none.
#[test]
fn copies_outside_of_a_pool_make_none() {
    let line = Box3::from_range([3 << 20]);
    check(&Case { source: line, target: line, elements: line, elem_size: 1 });
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().unwrap();
}

#[test]
fn boxes_of_a_region_are_copied_and_nothing_between_them() {
    let (rows, columns) = (400_usize, 3000_usize);
    let extent = Box3::from_range([rows, columns]);
    // Every other row but for its ends, and short ones with long ones: a part is more than one thread copies.
    let row = |y: usize| {
        Box3::from_offset_range([y, 1], [1, if y.is_multiple_of(8) { 3 } else { columns - 2 }])
    };
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap());
    for count in [0, 1, 2, rows / 2] {
        let region = Region::from_boxes((0..count).map(|nth| row(2 * nth)));
        let mut from = pattern(bytes_of(&extent, 8));
        let mut expected = vec![255; from.len()];
        for &elements in region.boxes() {
            let case = Case { source: extent, target: extent, elements, elem_size: 8 };
            naive(&case, &from, &mut expected);
        }
        let source = ElementArray { base: BasePtr::of_mut_slice(&mut from), extent };
        for spreads in [false, true] {
            let mut to = vec![255; expected.len()];
            let target = ElementArray { base: BasePtr::of_mut_slice(&mut to), extent };
            // SAFETY: both slices cover the extent, and nobody else uses them.
            let copy = || unsafe { copy_region(source, target, &region, 8) };
            if spreads {
                pool.install(copy)
            } else {
                copy()
            }
            assert!(to == expected, "{count} rows, {spreads}");
        }
    }
}

#[test]
fn large_copies_are_spread_and_complete() {
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap());
    let (rows, columns) = (600_usize, 1100_usize);
    let source = Box3::from_range([rows, columns]);
    let elements = Box3::from_offset_range([1, 3], [rows - 2, columns - 5]);
    pool.install(|| {
        check(&Case { source, target: source, elements, elem_size: 8 });
        check(&Case { source, target: elements, elements, elem_size: 8 });
        let line = Box3::from_range([1, columns * 300]);
        check(&Case { source: line, target: line, elements: line, elem_size: 8 });
    });
}

#[test]
fn contiguous_dimensions_collapse() {
    let whole = Box3::from_range([4, 5, 6]);
    let plan = |elements: &Box3| CopyPlan::new(&whole, &whole, elements, 2);
    let slab = Box3::from_offset_range([1, 0, 0], [2, 5, 6]);
    assert_eq!((plan(&slab).run, plan(&slab).rows), (2 * 5 * 6 * 2, [1, 1]));
    let lines = Box3::from_offset_range([1, 2, 0], [2, 2, 6]);
    assert_eq!((plan(&lines).run, plan(&lines).rows), (2 * 6 * 2, [1, 2]));
    let cells = Box3::from_offset_range([1, 2, 3], [2, 2, 2]);
    assert_eq!((plan(&cells).run, plan(&cells).rows), (2 * 2, [2, 2]));
}
