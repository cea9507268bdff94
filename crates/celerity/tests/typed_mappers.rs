//! Range mappers of a program's own types: items write through those that keep them apart, on any
//! cluster and in one to three dimensions; mappers compare and hash by value; and what a type says of
//! itself is put to the test.
#![allow(unsafe_code)]

use std::collections::HashSet;

use celerity::prelude::*;
use celerity::{CheckLevel, MapChunk, disjoint_mapper_of, mapper_of, verify_mapper};

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
