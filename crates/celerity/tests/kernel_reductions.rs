//! Reductions in kernels that `#[kernel]` has made, on whatever devices there are, beside the same
//! reductions by closures on CPUs: the same bits. On a machine with GPUs and a facade that has them,
//! the same tests run there (`CELERITY_PLATFORM=cuda` makes sure of it).

use std::fmt::Debug;

use celerity::prelude::*;
use celerity::{
    And, ArgMax, ArgMin, Element, Located, Max, Min, Number, Or, Platform, Product, Result, Sum,
    Xor,
};
use celerity_example_kernels::reductions::{
    Then, advance_by_row, bits, dot, in_order, kinds, look_over, places, relax, roughness,
    roughness_by_row, sums_by_kind, total, turned,
};

/// Nodes and devices, of CPUs.
const CLUSTERS: [[usize; 2]; 5] = [[1, 1], [1, 2], [2, 1], [2, 2], [3, 1]];

/// The same, of what there is; nodes share a GPU if need be.
const SHARED: [[usize; 2]; 2] = [[1, 1], [2, 1]];

fn on<R: Send>(
    config: Config,
    [nodes, devices]: [usize; 2],
    program: impl Fn(&Queue) -> Result<R> + Sync,
) -> R {
    let run = config.nodes(nodes).devices(devices).share_gpus(true).run(program);
    run.unwrap_or_else(|error| panic!("on {nodes} × {devices}: {error}"))
}

/// What `by_closure` gives on a CPU is what `by_kernel` gives on CPUs and on what devices there are.
fn agree<R: PartialEq + Debug + Send>(
    by_closure: impl Fn(&Queue) -> Result<R> + Sync,
    by_kernel: impl Fn(&Queue) -> Result<R> + Sync,
) -> R {
    let cpu = || Config::default().platform(Platform::Cpu);
    let expected = on(cpu(), [1, 1], by_closure);
    for cluster in CLUSTERS {
        let found = on(cpu(), cluster, &by_kernel);
        assert!(found == expected, "CPUs {cluster:?}: {found:?} instead of {expected:?}");
    }
    for cluster in SHARED {
        let found = on(Config::from_env().unwrap(), cluster, &by_kernel);
        assert!(found == expected, "{cluster:?}: {found:?} instead of {expected:?}");
    }
    expected
}

/// Numbers whose sum depends on the order.
fn floats(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 + 13) % 10_007) as f32 * 1e-3 - 4.0).collect()
}

fn scalar<T: Element>(queue: &Queue, buffer: &Buffer<T, 0>) -> Result<T> {
    Ok(queue.fence(buffer)?.wait()?[[]])
}

/// A sum of floats by closure and by kernel, as bits.
fn total_of(count: usize, hint: Hint, granularity: usize) -> f32 {
    let program = |by_kernel: bool| {
        move |queue: &Queue| {
            let values = queue.buffer_from(count, floats(count))?;
            let sum = queue.buffer::<f32, 0>([]);
            let task = queue.task("add").hint(hint).granularity(granularity);
            let accesses = (values.read(one_to_one()), sum.reduce(Sum));
            match by_kernel {
                true => task.launch(count, accesses, total::<f32>::new())?,
                false => {
                    task.parallel_for(count, accesses, |_, (value, sum)| sum.combine(*value))?
                }
            };
            Ok(scalar(queue, &sum)?.to_bits())
        }
    };
    f32::from_bits(agree(program(false), program(true)))
}

#[test]
fn sums_of_floats_have_the_same_bits_in_kernels() {
    for count in [1, 2, 3, 5, 31, 33, 1000, 2047, 4096, 100_000, 3_000_000] {
        let expected: f64 = floats(count).into_iter().map(f64::from).sum();
        let sum = total_of(count, Hint::BandSplit, 1);
        assert!((f64::from(sum) - expected).abs() <= 1e-2 + 1e-6 * count as f64, "{sum}");
    }
    total_of(50_000, Hint::Oversubscribe(3), 1);
    // Tiles that are no power of two: of a granule each, and of several.
    total_of(10_000, Hint::BandSplit, 777);
    total_of(10_000, Hint::BandSplit, 3000);
    total_of(200_000, Hint::BandSplit, 7);
}

#[test]
fn values_of_other_types_are_summed() {
    fn sums<T: Element + Number + PartialEq + Debug>(values: &[T], kernel: total<T>) -> T
    where
        total<T>: for<'a> celerity::kernels::ItemKernel<1, (&'a T, celerity::Reducer<'a, T, Sum>)>,
    {
        let program = |by_kernel: bool| {
            move |queue: &Queue| {
                let buffer = queue.buffer_from(values.len(), values.to_vec())?;
                let sum = queue.buffer::<T, 0>([]);
                let accesses = (buffer.read(one_to_one()), sum.reduce(Sum));
                let task = queue.task("add");
                match by_kernel {
                    true => task.launch(values.len(), accesses, kernel)?,
                    false => task.parallel_for(values.len(), accesses, |_, (value, sum)| {
                        sum.combine(*value);
                    })?,
                };
                scalar(queue, &sum)
            }
        };
        agree(program(false), program(true))
    }
    let floats: Vec<f64> = floats(70_000).into_iter().map(|x| f64::from(x) / 3.0).collect();
    sums(&floats, total::<f64>::new());
    let integers: Vec<i64> = (0..70_000).map(|i| i * i * 977 - 5).collect();
    assert_eq!(sums(&integers, total::<i64>::new()), integers.iter().sum::<i64>());
    let words: Vec<u32> = (0..5_000_u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    let sum = words.iter().copied().fold(0, u32::wrapping_add);
    assert_eq!(sums(&words, total::<u32>::new()), sum);
}

#[test]
fn several_accesses_and_what_was_there_before() {
    let count = 20_000;
    let program = |by_kernel: bool| {
        move |queue: &Queue| {
            let x = queue.buffer_from(count, floats(count))?;
            let y =
                queue.buffer_from(count, floats(count).into_iter().rev().collect::<Vec<_>>())?;
            let sum = queue.buffer_from([], vec![0.125_f32])?;
            for _ in 0..3 {
                let reduction = sum.reduce(Sum).including_current();
                let accesses = (x.read(one_to_one()), y.read(one_to_one()), reduction);
                match by_kernel {
                    true => queue.task("dot").launch(count, accesses, dot)?,
                    false => {
                        queue.task("dot").parallel_for(count, accesses, |_, (x, y, sum)| {
                            sum.combine(x * y);
                        })?
                    }
                };
            }
            Ok(scalar(queue, &sum)?.to_bits())
        }
    };
    agree(program(false), program(true));
}

#[test]
fn several_reductions_of_a_plane() {
    for (range, hint) in [
        ([1, 1], Hint::BandSplit),
        ([300, 70], Hint::BandSplit),
        ([300, 70], Hint::TiledSplit),
        ([3, 7000], Hint::SplitAlong(1)),
        ([5000, 3], Hint::BandSplit),
        ([700, 900], Hint::TiledSplit),
    ] {
        let program = |by_kernel: bool| {
            move |queue: &Queue| {
                let values = queue.buffer_from(range, floats(range[0] * range[1]))?;
                let sum = queue.buffer::<f64, 0>([]);
                let least = queue.buffer::<Located<f32>, 0>([]);
                let greatest = queue.buffer::<f32, 0>([]);
                let accesses = (
                    values.read(one_to_one()),
                    sum.reduce(Sum),
                    least.reduce(ArgMin),
                    greatest.reduce(Max),
                );
                let task = queue.task("look").hint(hint);
                match by_kernel {
                    true => task.launch(range, accesses, look_over)?,
                    false => task.parallel_for(
                        range,
                        accesses,
                        |item, (value, sum, least, greatest)| {
                            sum.combine(f64::from(*value));
                            least.combine(Located::new(*value, item.linear_id()));
                            greatest.combine(*value);
                        },
                    )?,
                };
                let least = scalar(queue, &least)?;
                let sum = scalar(queue, &sum)?.to_bits();
                Ok((sum, (least.value, least.place()), scalar(queue, &greatest)?))
            }
        };
        let (_, (least, place), greatest) = agree(program(false), program(true));
        let values = floats(range[0] * range[1]);
        assert_eq!(least, values.iter().copied().fold(f32::INFINITY, f32::min));
        assert_eq!(Some(place), values.iter().position(|&value| value == least));
        assert_eq!(greatest, values.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    }
}

#[test]
fn neighbours_are_seen_at_the_edges_of_a_volume() {
    // In the second volume GPUs take runs of items.
    let volumes = [[17, 40, 50], [17, 40, 52]];
    let hints = [Hint::BandSplit, Hint::TiledSplit, Hint::SplitAlong(2)];
    for (range, hint) in volumes.into_iter().flat_map(|range| hints.map(|hint| (range, hint))) {
        let program = |by_kernel: bool| {
            move |queue: &Queue| {
                let u = queue.buffer_from(range, floats(range.iter().product()))?;
                let sum = queue.buffer::<f32, 0>([]);
                let accesses = (u.read(neighborhood([1, 1, 1])), sum.reduce(Sum));
                let task = queue.task("roughness").hint(hint);
                match by_kernel {
                    true => task.launch(range, accesses, roughness)?,
                    false => task.parallel_for(range, accesses, |_, (u, sum)| {
                        let center = u.clamped([0, 0, 0]);
                        for step in [[1, 0, 0], [0, 1, 0], [0, 0, 1]] {
                            let difference = u.clamped(step) - center;
                            sum.combine(difference * difference);
                        }
                    })?,
                };
                Ok(scalar(queue, &sum)?.to_bits())
            }
        };
        agree(program(false), program(true));
    }
}

/// Planes whose tiles are whole runs of items, some that end within one, and some that are no runs.
const PLANES: [[usize; 2]; 8] =
    [[1, 1], [1, 7], [5, 4], [64, 64], [3, 5000], [1, 100_003], [301, 1030], [700, 1028]];

#[test]
fn steps_and_what_they_change_are_computed_at_once() {
    macro_rules! relaxed {
        ($t:ty, $range:expr, $by_kernel:expr) => {
            move |queue: &Queue| {
                let range: [usize; 2] = $range;
                let numbers = floats(range[0] * range[1]).into_iter().map(<$t>::from);
                let u = queue.buffer_from(range, numbers.collect::<Vec<$t>>())?;
                let new = queue.buffer::<$t, 2>(range);
                let squares = queue.buffer::<$t, 0>([]);
                let most = queue.buffer::<Located<$t>, 0>([]);
                let accesses = (
                    new.write(one_to_one()),
                    u.read(neighborhood_along_axes([1, 1])),
                    squares.reduce(Sum),
                    most.reduce(ArgMax),
                );
                let task = queue.task("relax");
                match $by_kernel {
                    true => task.launch(range, accesses, relax::<$t>::new())?,
                    false => {
                        task.parallel_for(range, accesses, |item, (new, u, squares, most)| {
                            let around = u.clamped([-1, 0]) + u.clamped([1, 0]);
                            *new = (around + u.clamped([0, -1]) + u.clamped([0, 1])) / 4.0;
                            let change = *new - u.clamped([0, 0]);
                            squares.combine(change * change);
                            most.combine(Located::new(change, item.linear_id()));
                        })?
                    }
                };
                let new = queue.fence(&new)?.wait()?.into_vec();
                let most = scalar(queue, &most)?;
                Ok((new, scalar(queue, &squares)?.to_bits(), most.value, most.place()))
            }
        };
    }
    for range in PLANES {
        agree(relaxed!(f32, range, false), relaxed!(f32, range, true));
        agree(relaxed!(f64, range, false), relaxed!(f64, range, true));
    }
}

#[test]
fn integers_are_combined_by_every_operator() {
    let values: Vec<u64> = (0..30_000_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let (count, numbers) = (values.len(), values.as_slice());
    let found = agree(
        |queue| {
            let values = queue.buffer_from(count, numbers.to_vec())?;
            let [and, or, xor, product] = std::array::from_fn(|_| queue.buffer::<u64, 0>([]));
            let accesses = (
                values.read(one_to_one()),
                and.reduce(And),
                or.reduce(Or),
                xor.reduce(Xor),
                product.reduce(Product),
            );
            queue.task("bits").parallel_for(
                count,
                accesses,
                |_, (value, and, or, xor, product)| {
                    and.combine(*value | 16);
                    or.combine(*value);
                    xor.combine(*value);
                    product.combine(value.wrapping_mul(2) | 1);
                },
            )?;
            [and, or, xor, product].iter().map(|one| scalar(queue, one)).collect::<Result<Vec<_>>>()
        },
        |queue| {
            let values = queue.buffer_from(count, numbers.to_vec())?;
            let [and, or, xor, product] = std::array::from_fn(|_| queue.buffer::<u64, 0>([]));
            let accesses = (
                values.read(one_to_one()),
                and.reduce(And),
                or.reduce(Or),
                xor.reduce(Xor),
                product.reduce(Product),
            );
            queue.task("bits").launch(count, accesses, bits)?;
            [and, or, xor, product].iter().map(|one| scalar(queue, one)).collect::<Result<Vec<_>>>()
        },
    );
    assert_eq!(found[2], numbers.iter().fold(0, |all, value| all ^ value));
}

#[test]
fn arrays_are_reduced_into_wherever_accumulators_are() {
    // The last has too many elements for the memory that threads of a block share.
    for [count, kinds_of] in [[1, 1], [3000, 7], [100_000, 256], [20_000, 5000]] {
        let values: Vec<u32> = (0..count as u32).map(|i| i.wrapping_mul(i + 7) >> 3).collect();
        let mut expected = (vec![0_u32; kinds_of], vec![i64::MIN; 2 * kinds_of]);
        for (place, value) in values.iter().enumerate() {
            let (kind, place) = (*value as usize % kinds_of, place as i64);
            expected.0[kind] += 1;
            for (element, value) in [(kind, place), (kinds_of + kind, -place)] {
                expected.1[element] = expected.1[element].max(value);
            }
        }
        let found = agree(
            |_| Ok(expected.clone()),
            |queue| {
                let values = queue.buffer_from(count, values.clone())?;
                let counts = queue.buffer::<u32, 1>(kinds_of);
                let extremes = queue.buffer::<i64, 2>([2, kinds_of]);
                let accesses =
                    (values.read(one_to_one()), counts.reduce(Sum), extremes.reduce(Max));
                queue.task("kinds").launch(count, accesses, kinds)?;
                let counts = queue.fence(&counts)?.wait()?.into_vec();
                Ok((counts, queue.fence(&extremes)?.wait()?.into_vec()))
            },
        );
        assert_eq!(found.0.iter().sum::<u32>() as usize, count);
    }
}

#[test]
fn groups_reduce_and_meet() {
    for (range, group) in [
        ([64, 48], [4, 8]),
        ([6, 20], [3, 5]),
        ([300, 64], [1, 64]),
        ([512, 512], [16, 16]),
        ([1, 1], [1, 1]),
    ] {
        let values = floats(range[0] * range[1]);
        let by_kernel = |queue: &Queue| {
            let values = queue.buffer_from(range, values.clone())?;
            let (sum, least) = (queue.buffer::<f32, 0>([]), queue.buffer::<f32, 0>([]));
            let accesses = (values.read(one_to_one()), sum.reduce(Sum), least.reduce(Min));
            queue.task("turned").launch(nd_range(range, group), accesses, turned)?;
            Ok((scalar(queue, &sum)?.to_bits(), scalar(queue, &least)?))
        };
        // On one CPU: closures have no groups.
        let (sum, least) = agree(by_kernel, by_kernel);
        assert_eq!(least, values.iter().copied().fold(f32::INFINITY, f32::min));
        let mut expected = 0.0;
        for (y, x) in (0..range[0]).flat_map(|y| (0..range[1]).map(move |x| (y, x))) {
            let local = [y % group[0], x % group[1]];
            let other = [0, 1].map(|dim| [y, x][dim] + group[dim] - 1 - 2 * local[dim]);
            let factor = 1 + (local[0] * group[1] + local[1]) % 3;
            expected += f64::from(values[other[0] * range[1] + other[1]]) * factor as f64;
        }
        let sum = f64::from(f32::from_bits(sum));
        assert!((sum - expected).abs() < 1e-2 + 1e-6 * expected.abs(), "{sum}, {expected}");
    }
}

#[test]
fn an_index_outside_names_the_task_and_devices_stay_usable() {
    let counts = |queue: &Queue, rows: usize| {
        let counts = queue.buffer::<u32, 2>([70, 30]);
        queue.task("places").launch([rows, 30], counts.reduce(Sum), places)?;
        Ok(queue.fence(&counts)?.wait()?.into_vec())
    };
    for [nodes, devices] in SHARED {
        let config = || {
            let config = Config::from_env().unwrap().nodes(nodes);
            config.devices(devices).share_gpus(true)
        };
        let text = config().run(|queue| counts(queue, 71)).unwrap_err().to_string();
        let said = "is outside of the buffer of [70, 30] that is reduced into";
        assert!(text.contains("\"places\"") && text.contains("index [70, "), "{text}");
        assert!(text.contains(said), "{text}");
        assert_eq!(config().run(|queue| counts(queue, 70)).unwrap(), vec![1; 70 * 30]);
    }
}

/// Kernels over rows, however they combine what their rows have, beside closures over items.
#[test]
fn rows_reduce_to_the_bits_of_items() {
    for (range, hint) in [
        ([17, 40, 50], Hint::BandSplit),
        ([17, 40, 50], Hint::TiledSplit),
        ([17, 40, 52], Hint::TiledSplit),
        ([3, 5, 4000], Hint::SplitAlong(2)),
        ([1, 1, 1], Hint::BandSplit),
    ] {
        let program = |by_row: bool| {
            move |queue: &Queue| {
                let u = queue.buffer_from(range, floats(range.iter().product()))?;
                let sum = queue.buffer::<f32, 0>([]);
                let accesses = (u.read(neighborhood([1, 1, 1])), sum.reduce(Sum));
                let task = queue.task("roughness").hint(hint);
                match by_row {
                    true => task.launch(range, accesses, roughness_by_row)?,
                    false => task.parallel_for(range, accesses, |_, (u, sum)| {
                        let center = u.clamped([0, 0, 0]);
                        for step in [[1, 0, 0], [0, 1, 0], [0, 0, 1]] {
                            let difference = u.clamped(step) - center;
                            sum.combine(difference * difference);
                        }
                    })?,
                };
                Ok(scalar(queue, &sum)?.to_bits())
            }
        };
        agree(program(false), program(true));
    }
}

#[test]
fn rows_write_and_reduce_in_several_ways_at_once() {
    for range in [[0, 7], [1, 1], [1, 9000], [90, 100], [3000, 3]] {
        let count = range[0] * range[1];
        let program = |by_row: bool| {
            move |queue: &Queue| {
                let values = queue.buffer_from(range, floats(count))?;
                let speeds: Vec<f32> = floats(count).into_iter().rev().collect();
                let speeds = queue.buffer_from(range, speeds)?;
                let moved = queue.buffer::<f32, 0>([]);
                let furthest = queue.buffer::<Located<f32>, 0>([]);
                let signs = queue.buffer::<u32, 1>(3);
                for time in [0.5, 0.25] {
                    let accesses = (
                        values.read_write(one_to_one()),
                        speeds.read(one_to_one()),
                        moved.reduce(Sum).including_current(),
                        furthest.reduce(ArgMax),
                        signs.reduce(Sum),
                    );
                    if time == 0.5 {
                        moved.fill(1.0)?;
                    }
                    let task = queue.task("advance");
                    match by_row {
                        true => task.launch(range, accesses, advance_by_row { time })?,
                        false => task.parallel_for(
                            range,
                            accesses,
                            move |item, (value, speed, moved, furthest, signs)| {
                                let distance = *speed * time;
                                *value += distance;
                                moved.combine(distance);
                                furthest.combine(Located::new(distance, item.linear_id()));
                                let sign =
                                    1 + usize::from(*value > 0.0) - usize::from(*value < 0.0);
                                signs.combine_at(sign, 1);
                            },
                        )?,
                    };
                }
                let values = queue.fence(&values)?.wait()?.into_vec();
                let furthest = scalar(queue, &furthest)?;
                let furthest = (furthest.value.to_bits(), furthest.place());
                let signs = queue.fence(&signs)?.wait()?.into_vec();
                let values: Vec<u32> = values.into_iter().map(f32::to_bits).collect();
                Ok((values, scalar(queue, &moved)?.to_bits(), furthest, signs))
            }
        };
        let (_, _, _, signs) = agree(program(false), program(true));
        assert_eq!(signs.iter().sum::<u32>() as usize, count);
    }
}

/// On GPUs these are refused: see `what_gpus_do_not_reduce_is_refused`.
#[test]
fn cpus_keep_the_order_where_it_counts() {
    let count = 10_000;
    let maps: Vec<[u32; 2]> = (0..count as u32).map(|i| [2 * i + 1, i * i]).collect();
    let expected =
        maps.iter().fold([1, 0], |all, map| celerity::Operator::combine(&Then, all, *map));
    for cluster in CLUSTERS {
        let found = on(Config::default().platform(Platform::Cpu), cluster, |queue| {
            let buffer = queue.buffer_from(count, maps.clone())?;
            let all = queue.buffer::<[u32; 2], 0>([]);
            queue.task("maps").launch(
                count,
                (buffer.read(one_to_one()), all.reduce(Then)),
                in_order,
            )?;
            let values = queue.buffer_from(count, floats(count))?;
            let sums = queue.buffer::<f32, 1>(3);
            let accesses = (values.read(one_to_one()), sums.reduce(Sum));
            queue.task("sums").launch(count, accesses, sums_by_kind)?;
            let sums = queue.fence(&sums)?.wait()?.into_vec();
            Ok((scalar(queue, &all)?, sums.into_iter().map(f32::to_bits).collect::<Vec<_>>()))
        });
        assert_eq!(found.0, expected, "{cluster:?}");
    }
}
