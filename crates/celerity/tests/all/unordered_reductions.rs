//! Reductions that give up the same bits everywhere: by closures and by compiled kernels, on whatever
//! devices there are. What does not depend on the order is as it always is; what does is close to
//! it, and the same on all nodes. On a machine with GPUs and a facade that has them, the kernels run
//! there.

use std::fmt::Debug;

use celerity::prelude::*;
use celerity::{Located, Max, Operator, Platform, Result, Sum};
use celerity_example_kernels::reductions::{kinds, sums_by_kind, total, turned};

use crate::common::{clusters, everywhere, floats, on_all_nodes, scalar};

/// Nodes and devices.
const CLUSTERS: [[usize; 2]; 5] = [[1, 1], [1, 3], [2, 1], [3, 2], [5, 1]];

/// The same, of what there is; nodes share a GPU if need be.
const SHARED: [[usize; 2]; 2] = [[1, 1], [2, 1]];

/// Where closures run.
fn cpus() -> impl Iterator<Item = Config> {
    clusters(CLUSTERS).map(|cluster| cluster.platform(Platform::Cpu))
}

/// Where compiled kernels run.
fn all_devices() -> impl Iterator<Item = Config> {
    let shared = |[nodes, devices]: [usize; 2]| {
        Config::from_env().unwrap().share_gpus(true).nodes(nodes).devices(devices)
    };
    cpus().chain(SHARED.map(shared))
}

/// What a program returns in each of the clusters, where all nodes return the same.
fn in_each<R: PartialEq + Debug + Send>(
    clusters: impl Iterator<Item = Config>,
    program: impl Fn(&Queue) -> Result<R> + Sync,
) -> Vec<R> {
    clusters.map(|cluster| on_all_nodes(cluster, &program)).collect()
}

fn assert_close(found: &[f32], expected: &[f64], items: usize) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let error = (f64::from(*found) - expected).abs();
        assert!(error <= 1e-2 + 1e-6 * items as f64, "{found} instead of {expected}");
    }
}

#[test]
fn sums_of_floats_are_close_in_every_shape() {
    for (range, hint) in [
        ([1, 0, 0], Hint::BandSplit),
        ([1, 1, 1], Hint::BandSplit),
        ([1, 1, 33], Hint::SplitAlong(2)),
        ([300, 70, 1], Hint::BandSplit),
        ([300, 70, 2], Hint::TiledSplit),
        ([3, 7, 3000], Hint::SplitAlong(2)),
        ([100, 1000, 3], Hint::Oversubscribe(3)),
    ] {
        let count = range.iter().product();
        let expected: f64 = floats(count).into_iter().map(f64::from).sum();
        let sums = in_each(cpus(), |queue| {
            let values = queue.buffer_from(range, floats(count))?;
            let sum = queue.buffer::<f32, 0>([]);
            let accesses = (values.read(one_to_one()), sum.reduce(Sum).unordered());
            let task = queue.task("add").hint(hint);
            task.parallel_for(range, accesses, |_, (value, sum)| sum.combine(*value))?;
            scalar(queue, &sum)
        });
        sums.iter().for_each(|sum| assert_close(&[*sum], &[expected], count));
    }
}

#[test]
fn what_does_not_depend_on_the_order_is_the_same_everywhere() {
    let count = 100_000;
    let value = |item: usize| (item * 7919 + 13) % 1009;
    let found = everywhere(cpus(), |queue| {
        let sum = queue.buffer_from([], vec![1000_u64])?;
        let most = queue.buffer::<u32, 0>([]);
        let counts = queue.buffer::<u32, 1>(1009);
        let accesses = (
            sum.reduce(Sum).including_current().unordered(),
            most.reduce(Max).unordered(),
            counts.reduce(Sum).unordered(),
        );
        queue.task("look").parallel_for(count, accesses, move |item, (sum, most, counts)| {
            sum.combine(item.linear_id() as u64);
            most.combine(value(item[0]) as u32);
            counts.combine_at(value(item[0]), 1);
        })?;
        let counts = queue.fence(&counts)?.wait()?.into_vec();
        Ok((scalar(queue, &sum)?, scalar(queue, &most)?, counts))
    });
    let mut counts = vec![0; 1009];
    (0..count).for_each(|item| counts[value(item)] += 1);
    assert_eq!(found, (1000 + (0..count as u64).sum::<u64>(), 1008, counts));
}

/// Affine maps modulo 2⁶⁴, one after the other.
#[derive(Clone, Copy)]
struct Then;

impl Operator<[u64; 2]> for Then {
    fn identity(&self) -> [u64; 2] {
        [1, 0]
    }

    fn combine(&self, [a, b]: [u64; 2], [c, d]: [u64; 2]) -> [u64; 2] {
        [a.wrapping_mul(c), b.wrapping_mul(c).wrapping_add(d)]
    }
}

#[test]
fn an_operator_that_is_not_commutative_still_gets_values_in_order() {
    let map = |item: usize| [2 * item as u64 + 1, (item * item) as u64];
    for count in [1, 1000, 20_000] {
        let found = everywhere(cpus(), |queue| {
            let all = queue.buffer::<[u64; 2], 1>(2);
            let access = all.reduce(Then).unordered();
            queue.task("maps").parallel_for(count, access, move |item, all| {
                all.combine_at(item[0] % 2, map(item[0]));
            })?;
            let last = queue.buffer::<[u64; 2], 0>([]);
            let access = last.reduce(Then).unordered();
            queue.task("map").parallel_for(count, access, move |item, last| {
                last.combine(map(item[0]));
            })?;
            let all = queue.fence(&all)?.wait()?;
            Ok([all[[0]], all[[1]], scalar(queue, &last)?])
        });
        let in_order = |step: usize, first: usize| {
            let items = (first..count).step_by(step).map(map);
            items.fold(Then.identity(), |all, map| Then.combine(all, map))
        };
        assert_eq!(found, [in_order(2, 0), in_order(2, 1), in_order(1, 0)], "{count} items");
    }
}

#[test]
fn an_ordered_reduction_keeps_its_bits_beside_an_unordered_one() {
    let count = 100_000;
    let of = |is_beside: bool| {
        everywhere(cpus(), move |queue| {
            let values = queue.buffer_from(count, floats(count))?;
            let [sum, other] = [0, 1].map(|_| queue.buffer::<f32, 0>([]));
            let other_access = match is_beside {
                true => other.reduce(Sum).unordered(),
                false => other.reduce(Sum),
            };
            let accesses = (values.read(one_to_one()), sum.reduce(Sum), other_access);
            queue.task("both").parallel_for(count, accesses, |_, (value, sum, other)| {
                sum.combine(*value);
                other.combine(*value);
            })?;
            Ok([scalar(queue, &sum)?.to_bits(), scalar(queue, &other)?.to_bits()])
        })
    };
    assert_eq!(of(true), of(false));
}

#[test]
fn results_are_combined_lazily_overwritten_and_included() {
    let sum = everywhere(cpus(), |queue| {
        let sum = queue.buffer::<u64, 0>([]);
        for round in 0..20_u64 {
            let access = sum.reduce(Sum).unordered();
            let access = if round % 3 > 0 { access.including_current() } else { access };
            queue.task("add").parallel_for(3000, access, move |_, sum| sum.combine(round))?;
        }
        scalar(queue, &sum)
    });
    assert_eq!(sum, 3000 * (18 + 19));
}

#[test]
fn compiled_kernels_reduce_in_any_order() {
    let count = 50_000;
    let values: Vec<u32> = (0..count as u32).map(|i| i.wrapping_mul(2_654_435_761) >> 20).collect();
    let found = everywhere(all_devices(), |queue| {
        let buffer = queue.buffer_from(count, values.clone())?;
        let (counts, extremes) = (queue.buffer::<u32, 1>(100), queue.buffer::<i64, 2>([2, 100]));
        let accesses = (
            buffer.read(one_to_one()),
            counts.reduce(Sum).unordered(),
            extremes.reduce(Max).unordered(),
        );
        queue.task("kinds").launch(count, accesses, kinds)?;
        let sum = queue.buffer::<u32, 0>([]);
        let accesses = (buffer.read(one_to_one()), sum.reduce(Sum).unordered());
        queue.task("sum").launch(count, accesses, total::<u32>::new())?;
        let counts = queue.fence(&counts)?.wait()?.into_vec();
        Ok((counts, queue.fence(&extremes)?.wait()?.into_vec(), scalar(queue, &sum)?))
    });
    let (mut counts, mut extremes) = (vec![0; 100], vec![i64::MIN; 200]);
    for (place, &value) in values.iter().enumerate() {
        let kind = value as usize % 100;
        counts[kind] += 1;
        extremes[kind] = extremes[kind].max(place as i64);
        extremes[100 + kind] = extremes[100 + kind].max(-(place as i64));
    }
    let sum = values.iter().copied().fold(0, u32::wrapping_add);
    assert_eq!(found, (counts, extremes, sum));
}

/// In shared memory of GPUs, and in their global memory.
#[test]
fn floats_are_combined_into_arrays_by_compiled_kernels() {
    for (items, bins) in [(100_000, 7), (100_000, 3000), (50_000, 20_000), (5, 7), (0, 3)] {
        let mut expected = vec![0.0; bins];
        for (item, value) in floats(items).into_iter().enumerate() {
            expected[item % bins] += f64::from(value);
        }
        let found = in_each(all_devices(), |queue| {
            let values = queue.buffer_from(items, floats(items))?;
            let sums = queue.buffer::<f32, 1>(bins);
            let accesses = (values.read(one_to_one()), sums.reduce(Sum).unordered());
            queue.task("sums").launch(items, accesses, sums_by_kind)?;
            Ok(queue.fence(&sums)?.wait()?.into_vec())
        });
        found.iter().for_each(|sums| assert_close(sums, &expected, items / bins));
    }
}

/// Rows of a tile may be longer than it has accumulators.
#[test]
fn rows_of_large_granules_reduce() {
    for (granularity, is_ordered) in [(1, true), (1, false), (3000, true), (3000, false)] {
        let sum = everywhere(cpus(), |queue| {
            let sum = queue.buffer::<u64, 0>([]);
            let access = sum.reduce(Sum);
            let access = if is_ordered { access } else { access.unordered() };
            let task = queue.task("rows").granularity(granularity);
            task.parallel_for_rows(2_000_000, access, |row, sum| {
                sum.combine(row.items().map(|item| item.linear_id() as u64).sum());
            })?;
            scalar(queue, &sum)
        });
        assert_eq!(sum, (0..2_000_000).sum::<u64>());
    }
}

#[test]
fn groups_reduce_in_any_order() {
    let range = [96, 200];
    let sums = in_each(all_devices(), |queue| {
        let values = queue.buffer_from(range, floats(range[0] * range[1]))?;
        let [sum, least] = [0, 1].map(|_| queue.buffer::<f32, 0>([]));
        let accesses = (
            values.read(one_to_one()),
            sum.reduce(Sum).unordered(),
            least.reduce(celerity::Min).unordered(),
        );
        queue.task("turn").launch(nd_range(range, [8, 20]), accesses, turned)?;
        Ok((scalar(queue, &sum)?, scalar(queue, &least)?.to_bits()))
    });
    let (first, least) = sums[0];
    for (sum, other) in &sums {
        assert_close(&[*sum], &[f64::from(first)], range[0] * range[1]);
        assert_eq!(*other, least);
    }
}

#[test]
fn places_are_located_in_any_order() {
    let count = 30_000;
    let found = everywhere(cpus(), |queue| {
        let greatest = queue.buffer::<Located<f32>, 0>([]);
        let access = greatest.reduce(celerity::ArgMax).unordered();
        queue.task("find").parallel_for(count, access, |item, greatest| {
            greatest.combine(Located::new((item[0] * 7 % 1000) as f32, item.linear_id()));
        })?;
        let found = scalar(queue, &greatest)?;
        Ok((found.value, found.place()))
    });
    let place = (0..count).position(|item| item * 7 % 1000 == 999).unwrap();
    assert_eq!(found, (999.0, place));
}
