//! Range mappers of a program's own types: items write through those that keep them apart, on any
//! cluster and in one to three dimensions; mappers compare and hash by value; and what a type says of
//! itself is put to the test.
#![allow(unsafe_code)]

use std::collections::HashSet;

use celerity::prelude::*;
use celerity::{
    CheckLevel, DimRelation, MapChunk, MapRegion, disjoint_mapper_of, mapper_of, region_mapper_of,
    verify_mapper,
};

/// Each item has a block of so many elements along each dimension.
#[derive(Clone, PartialEq)]
struct Blocks<const D: usize>([usize; D]);

impl<const D: usize> MapChunk<D, D> for Blocks<D> {
    fn map(&self, chunk: Chunk<D>, _buffer: [usize; D]) -> Subrange<D> {
        let scaled = |sizes: [usize; D]| std::array::from_fn(|dim| sizes[dim] * self.0[dim]);
        Subrange::new(scaled(chunk.offset), scaled(chunk.range))
    }

    fn name(&self) -> &str {
        "blocks"
    }
}

/// Each item has its element and the next one.
#[derive(Clone, PartialEq)]
struct Pairs;

impl MapChunk<1, 1> for Pairs {
    fn map(&self, chunk: Chunk<1>, [size]: [usize; 1]) -> Subrange<1> {
        let ahead = usize::from(chunk.range != [0]);
        let end = (chunk.offset[0] + chunk.range[0] + ahead).min(size);
        Subrange::new(chunk.offset, [end - chunk.offset[0]])
    }
}

/// Blocks of the linear index of their item, on every cluster.
fn check<const D: usize>(items: [usize; D], block: [usize; D]) {
    let range: [usize; D] = std::array::from_fn(|dim| items[dim] * block[dim]);
    for (nodes, devices) in [(1, 1), (1, 3), (2, 2), (5, 1)] {
        let config = Config::default().nodes(nodes).devices(devices).check(CheckLevel::Full);
        let found = config.run(|queue| {
            let numbers = queue.buffer::<usize, D>(range);
            // SAFETY: blocks of different items lie side by side.
            let blocks = unsafe { disjoint_mapper_of(Blocks(block)) };
            let task = queue.task("number");
            task.parallel_for(items, numbers.write(blocks), |item, mut block| {
                block.fill(item.linear_id());
            })?;
            Ok(queue.fence(&numbers)?.wait()?.into_vec())
        });
        let number = |at: usize| {
            let mut left = at;
            let mut place = [0; D];
            for dim in (0..D).rev() {
                place[dim] = left % range[dim] / block[dim];
                left /= range[dim];
            }
            place.iter().zip(items).fold(0, |number, (&at, size)| number * size + at)
        };
        let expected: Vec<_> = (0..range.iter().product()).map(number).collect();
        assert_eq!(found.unwrap(), expected, "{nodes} × {devices}");
    }
}

#[test]
fn items_write_through_a_type_that_keeps_them_apart() {
    check([7], [3]);
    check([1], [1]);
    check([5, 3], [2, 4]);
    check([3, 2, 4], [1, 3, 2]);
}

#[test]
fn mappers_of_equal_values_are_one() {
    // SAFETY: blocks of different items lie side by side.
    let disjoint = |size| unsafe { disjoint_mapper_of(Blocks([size])) };
    assert_eq!(HashSet::from([disjoint(2), disjoint(3), disjoint(2)]).len(), 2);
    assert_eq!(mapper_of(Blocks([2])), mapper_of(Blocks([2])));
    assert_ne!(mapper_of(Blocks([2])), mapper_of(Blocks([3])));
    assert_eq!(HashSet::from([mapper_of(Pairs), mapper_of(Pairs)]).len(), 1);
}

#[test]
fn a_type_whose_items_meet_is_found_out() {
    // SAFETY: nobody writes through it.
    let pairs = unsafe { disjoint_mapper_of(Pairs) };
    verify_mapper(&mapper_of(Pairs), 10, 10).expect("reads may meet");
    let error = verify_mapper(&pairs, 10, 10).unwrap_err().to_string();
    assert!(error.contains("user mapper is said to keep chunks apart, but"), "{error}");
    assert!(error.contains("both map to"), "{error}");
}

/// Each item reads the element so far ahead of its own along each dimension, where edges meet.
#[derive(Clone, PartialEq)]
struct Ahead<const D: usize> {
    by: [usize; D],
    says: DimRelation,
}

impl<const D: usize> Ahead<D> {
    fn new(by: [usize; D]) -> Self {
        let border = by.into_iter().max().unwrap_or(0);
        Self { by, says: DimRelation::Periodic(border as u64) }
    }
}

impl<const D: usize> MapRegion<D, D> for Ahead<D> {
    fn map(&self, chunk: Chunk<D>, size: [usize; D]) -> impl IntoIterator<Item = Subrange<D>> {
        let mut parts = vec![Subrange::new([0; D], [0; D])];
        for dim in 0..D {
            let first = chunk.offset[dim] + self.by[dim];
            let (end, size) = (first + chunk.range[dim], size[dim]);
            let inside = first.min(size)..end.min(size);
            let around = first.max(size) - size..end.max(size) - size;
            let along = |interval: std::ops::Range<usize>| {
                let mut parts = parts.clone();
                for part in &mut parts {
                    (part.offset[dim], part.range[dim]) = (interval.start, interval.len());
                }
                parts
            };
            parts = [along(inside), along(around)].concat();
        }
        parts
    }

    fn name(&self) -> &str {
        "ahead"
    }

    fn relation(&self, dim: usize) -> DimRelation {
        if dim < D { self.says } else { DimRelation::Identity }
    }
}

/// Elements of a box come from so far ahead, on every cluster; by kernels and by host tasks.
fn check_ahead<const D: usize>(range: [usize; D], by: [usize; D]) {
    let ahead = region_mapper_of(Ahead::new(by));
    verify_mapper(&ahead, range, range).unwrap();
    let source = move |at: [usize; D]| std::array::from_fn(|dim| (at[dim] + by[dim]) % range[dim]);
    let linear = |at: [usize; D]| at.iter().zip(range).fold(0, |sum, (&at, size)| sum * size + at);
    let index = move |place: usize| {
        let (mut at, mut left) = ([0; D], place);
        for dim in (0..D).rev() {
            (at[dim], left) = (left % range[dim], left / range[dim]);
        }
        at
    };
    let count: usize = range.iter().product();
    for (nodes, devices) in [(1, 1), (1, 3), (2, 2), (5, 1)] {
        let config = Config::default().nodes(nodes).devices(devices).check(CheckLevel::Full);
        let found = config.run(|queue| {
            let numbers = queue.buffer_from(range, (0..count).collect::<Vec<_>>())?;
            let turned = queue.buffer::<usize, D>(range);
            let seen = queue.host_object(0_usize);
            let accesses = (turned.write(one_to_one()), numbers.read(ahead.clone()));
            queue.task("turn").parallel_for(range, accesses, move |item, (out, numbers)| {
                *out = numbers[source(item.id())];
            })?;
            let task = queue.host_task("count").distributed(range);
            let accesses = (numbers.read(ahead.clone()), seen.sequential());
            task.submit(accesses, move |_, (numbers, seen)| {
                *seen += (0..count).filter(|&place| numbers.get(index(place)).is_some()).count();
            })?;
            Ok((queue.fence(&turned)?.wait()?.into_vec(), seen.take(queue)?))
        });
        let (turned, seen) = found.unwrap();
        let expected: Vec<usize> = (0..count).map(|place| linear(source(index(place)))).collect();
        assert_eq!(turned, expected, "{nodes} × {devices}");
        // Of node 0, whose program's value it is.
        let all = nodes == 1;
        assert!(if all { seen == count } else { seen < count }, "{seen} of {count}");
    }
}

#[test]
fn a_type_maps_to_several_boxes_where_edges_meet() {
    check_ahead([7], [3]);
    check_ahead([6], [6]);
    check_ahead([5, 4], [2, 1]);
    check_ahead([5, 2, 3], [1, 1, 2]);
}

#[test]
fn mappers_to_several_boxes_compare_and_hash_by_value() {
    let ahead = |by| region_mapper_of(Ahead::new([by]));
    assert_eq!(HashSet::from([ahead(1), ahead(2), ahead(1)]).len(), 2);
    // Of functions, copies are one.
    let by = |by: usize| {
        region_mapper("by", move |chunk: Chunk<1>, [size]: [usize; 1]| {
            let first = (chunk.offset[0] + by).min(size);
            let end = (chunk.offset[0] + chunk.range[0] + by).min(size);
            Some(Subrange::new([first], [end - first]))
        })
    };
    let one = by(1);
    assert_eq!(HashSet::from([one.clone(), by(1), one]).len(), 2);
}

#[test]
fn a_type_that_says_too_little_of_several_boxes_is_found_out() {
    let says = DimRelation::Padded(2);
    let error = verify_mapper(&region_mapper_of(Ahead { by: [2], says }), 9, 9).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("ahead says of dimension 0") && error.contains("Padded(2)"), "{error}");
}
