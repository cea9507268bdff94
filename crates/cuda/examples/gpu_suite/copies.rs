//! Copies in every direction and dimension, against copying element by element.

use celerity_executor::{BasePtr, ElementArray};
use celerity_idag::MemoryId;
use celerity_regions::{Box3, Region};

use crate::node::{Allocation, Node, device_memory};
use crate::{Outcome, Suite, expect_equal};

/// Source extent, target extent, elements.
type Shape = (Box3, Box3, Box3);

fn shapes() -> Vec<Shape> {
    let of = |min, max| Box3::new(min, max);
    vec![
        // One dimension: all of it, and a part.
        (Box3::from_range([1000]), Box3::from_range([1000]), Box3::from_range([1000])),
        (of([10, 0, 0], [900, 1, 1]), of([100, 0, 0], [400, 1, 1]), of([150, 0, 0], [400, 1, 1])),
        // Two: whole rows, which are one run; a tile; a column.
        (Box3::from_range([64, 33]), of([8, 0, 0], [50, 33, 1]), of([10, 0, 0], [40, 33, 1])),
        (Box3::from_range([64, 33]), of([8, 3, 0], [50, 30, 1]), of([10, 5, 0], [40, 28, 1])),
        (Box3::from_range([64, 33]), Box3::from_range([64, 33]), of([0, 32, 0], [64, 33, 1])),
        // Three: a brick; whole planes of one side; lines along the last.
        (Box3::from_range([9, 12, 17]), of([1, 2, 3], [9, 12, 17]), of([2, 3, 4], [8, 11, 16])),
        (Box3::from_range([9, 12, 17]), of([2, 0, 0], [7, 12, 17]), of([3, 2, 0], [6, 9, 17])),
        (Box3::from_range([9, 12, 17]), Box3::from_range([9, 12, 17]), of([0, 0, 5], [9, 12, 6])),
    ]
}

fn index(extent: &Box3, at: [u64; 3]) -> usize {
    let ([_, lines, columns], min) = (extent.range(), extent.min());
    let index = ((at[0] - min[0]) * lines + at[1] - min[1]) * columns + at[2] - min[2];
    usize::try_from(index).expect("small")
}

fn naive<const N: usize>(source: &[[u8; N]], target: &mut [[u8; N]], shape: &Shape) {
    let (from, to, elements) = shape;
    let (min, max) = elements.corners();
    for z in min[0]..max[0] {
        for y in min[1]..max[1] {
            for x in min[2]..max[2] {
                target[index(to, [z, y, x])] = source[index(from, [z, y, x])];
            }
        }
    }
}

/// Elements that are all different where their size allows it.
fn pattern<const N: usize>(extent: &Box3, salt: u64) -> Vec<[u8; N]> {
    let element = |index: u64| {
        let bytes = (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt).to_le_bytes();
        std::array::from_fn(|byte| bytes[byte % 8])
    };
    (0..extent.volume()).map(element).collect()
}

fn check<const N: usize>(node: &mut Node, from: MemoryId, to: MemoryId, shape: &Shape) -> Outcome
where
    [u8; N]: bytemuck::Pod,
{
    let (source_extent, target_extent, elements) = shape;
    let source = pattern::<N>(source_extent, 1);
    let mut expected = pattern::<N>(target_extent, 2);
    let on_source = node.upload(from, *source_extent, &source)?;
    let on_target = node.upload(to, *target_extent, &expected)?;
    node.copy(on_source, on_target, *elements, N as u64)?;
    naive(&source, &mut expected, shape);
    let found = node.download::<[u8; N]>(on_target)?;
    node.free(on_source);
    node.free(on_target);
    expect_equal(&found, &expected)
        .map_err(|what| format!("{elements} of {N} bytes, {from} to {to}: {what}"))
}

fn all_shapes(node: &mut Node, from: MemoryId, to: MemoryId) -> Outcome {
    for shape in shapes() {
        check::<1>(node, from, to, &shape)?;
        check::<4>(node, from, to, &shape)?;
        check::<12>(node, from, to, &shape)?;
        check::<16>(node, from, to, &shape)?;
    }
    Ok(())
}

pub(crate) fn host_and_device(suite: &Suite) -> Outcome {
    let mut node = Node::default(&suite.gpus, 1)?;
    all_shapes(&mut node, MemoryId::HOST, device_memory(0))?;
    all_shapes(&mut node, device_memory(0), MemoryId::HOST)
}

pub(crate) fn within_a_device(suite: &Suite) -> Outcome {
    let mut node = Node::default(&suite.gpus, 1)?;
    all_shapes(&mut node, device_memory(0), device_memory(0))
}

/// Between two GPUs where there are two.
pub(crate) fn between_devices(suite: &Suite) -> Outcome {
    let mut node = Node::default(&suite.gpus, 2)?;
    let [first, second] = [0, 1].map(celerity_idag::DeviceId::from_index);
    println!(
        "  {} GPUs, linked: {}",
        suite.gpus.infos().len(),
        node.backend.has_link(first, second)
    );
    all_shapes(&mut node, device_memory(0), device_memory(1))?;
    all_shapes(&mut node, device_memory(1), device_memory(0))
}

/// Many boxes in one job: single elements far apart, rows of all lengths and alignments, small tiles, and a few columns.
fn scattered() -> Vec<(Box3, Box3, Region)> {
    let line = Box3::from_range([40_000]);
    let part = Box3::new([90, 0, 0], [39_000, 1, 1]);
    let single = (0..900).map(|nth| Box3::from_offset_range([100 + 41 * nth], [1]));
    let rows = (0..300_usize).map(|nth| Box3::from_offset_range([101 + 127 * nth], [1 + nth % 97]));
    let plane = Box3::from_range([210, 203]);
    let window = Box3::new([3, 7, 0], [207, 201, 1]);
    let tiles = (0..400_usize).map(|nth| {
        let (y, x) = (5 + 10 * (nth / 20), 9 + 9 * (nth % 20));
        Box3::from_offset_range([y, x], [1 + nth % 3, 1 + nth % 5])
    });
    let columns = (0..9).map(|nth| Box3::from_offset_range([4, 10 + 20 * nth], [200, 1]));
    vec![
        (line, part, Region::from_boxes(single)),
        (part, line, Region::from_boxes(rows)),
        (plane, window, Region::from_boxes(tiles)),
        (window, plane, Region::from_boxes(columns)),
    ]
}

fn check_scattered<const N: usize>(node: &mut Node, from: MemoryId, to: MemoryId) -> Outcome
where
    [u8; N]: bytemuck::Pod,
{
    for (source_extent, target_extent, region) in scattered() {
        let source = pattern::<N>(&source_extent, 1);
        let mut expected = pattern::<N>(&target_extent, 2);
        let on_source = node.upload(from, source_extent, &source)?;
        let on_target = node.upload(to, target_extent, &expected)?;
        node.copy(on_source, on_target, region.clone(), N as u64)?;
        for &elements in region.boxes() {
            naive(&source, &mut expected, &(source_extent, target_extent, elements));
        }
        let found = node.download::<[u8; N]>(on_target)?;
        node.free(on_source);
        node.free(on_target);
        expect_equal(&found, &expected).map_err(|what| {
            format!("{} boxes of {N} bytes, {from} to {to}: {what}", region.boxes().len())
        })?;
    }
    Ok(())
}

/// In every direction, also between GPUs where there are two.
pub(crate) fn many_boxes(suite: &Suite) -> Outcome {
    let mut node = Node::default(&suite.gpus, 2)?;
    let [first, second, host] = [device_memory(0), device_memory(1), MemoryId::HOST];
    let ways = [(first, host), (host, first), (first, first), (first, second), (second, first)];
    for (from, to) in ways {
        check_scattered::<1>(&mut node, from, to)?;
        check_scattered::<2>(&mut node, from, to)?;
        check_scattered::<4>(&mut node, from, to)?;
        check_scattered::<12>(&mut node, from, to)?;
        check_scattered::<16>(&mut node, from, to)?;
        check_scattered::<24>(&mut node, from, to)?;
    }
    Ok(())
}

/// Many boxes from memory that is the user's, which threads of GPUs do not reach.
pub(crate) fn many_boxes_of_pageable_memory(suite: &Suite) -> Outcome {
    let mut node = Node::default(&suite.gpus, 1)?;
    for (extent, _, region) in scattered() {
        let source = pattern::<4>(&extent, 1);
        let array = ElementArray { base: BasePtr::of_slice(source.as_flattened()), extent };
        let user = Allocation { memory: MemoryId::USER, array };
        let device = node.upload(device_memory(0), extent, &vec![[0; 4]; source.len()])?;
        node.copy(user, device, region.clone(), 4)?;
        let mut expected = vec![[0; 4]; source.len()];
        for &elements in region.boxes() {
            naive(&source, &mut expected, &(extent, extent, elements));
        }
        let found = node.download::<[u8; 4]>(device)?;
        node.free(device);
        expect_equal(&found, &expected)?;
    }
    Ok(())
}

/// From memory that is the user's, as initial contents of buffers are.
pub(crate) fn pageable_memory(suite: &Suite) -> Outcome {
    let mut node = Node::default(&suite.gpus, 1)?;
    let (extent, _, elements) = shapes().swap_remove(3);
    let source = pattern::<4>(&extent, 1);
    let base = BasePtr::of_slice(source.as_flattened());
    let array = ElementArray { base, extent };
    let user = Allocation { memory: MemoryId::USER, array };
    let device = node.alloc(device_memory(0), extent, 4)?;
    node.copy(user, device, elements, 4)?;
    let mut expected = vec![[0; 4]; source.len()];
    naive(&source, &mut expected, &(extent, extent, elements));
    let found = node.download::<[u8; 4]>(device)?;
    expect_equal(&found, &expected)
}
