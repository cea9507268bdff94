//! Reductions on clusters of several nodes and devices: the same bits as on one, whatever the shape
//! of the index space, the kernel and the operator, and whoever reads the result.

use celerity::prelude::*;
use celerity::{
    And, ArgMax, ArgMin, CheckLevel, Collectives, DeclareError, Error, Located, Max, Min, Operator,
    Or, Product, Result, RunError, Sum, Xor,
};

use crate::common::{clusters, everywhere, floats, scalar};

/// Nodes and devices.
const CLUSTERS: [[usize; 2]; 6] = [[1, 1], [1, 3], [2, 1], [2, 2], [3, 2], [5, 1]];

fn sum_of<const K: usize>(range: [usize; K], hint: Hint) -> f32 {
    let count = range.iter().product();
    let sum = everywhere(clusters(CLUSTERS), |queue| {
        let values = queue.buffer_from(range, floats(count))?;
        let sum = queue.buffer::<f32, 0>([]);
        let task = queue.task("add").hint(hint);
        let accesses = (values.read(all()), sum.reduce(Sum));
        task.parallel_for(range, accesses, |item, (value, sum)| sum.combine(value[item.id()]))?;
        Ok(scalar(queue, &sum)?.to_bits())
    });
    f32::from_bits(sum)
}

fn is_close(sum: f32, count: usize) {
    let expected: f64 = floats(count).into_iter().map(f64::from).sum();
    let error = (f64::from(sum) - expected).abs();
    assert!(error <= 1e-2 + 1e-6 * count as f64, "{sum} instead of {expected}");
}

#[test]
fn sums_of_floats_have_the_same_bits_in_every_shape() {
    for count in [1, 2, 31, 33, 1000, 4096, 100_000] {
        is_close(sum_of([count], Hint::BandSplit), count);
    }
    for (range, hint) in [
        ([300, 70], Hint::BandSplit),
        ([300, 70], Hint::TiledSplit),
        ([3, 7000], Hint::SplitAlong(1)),
        ([200, 200], Hint::Oversubscribe(3)),
    ] {
        is_close(sum_of(range, hint), range[0] * range[1]);
    }
    for hint in [Hint::BandSplit, Hint::TiledSplit, Hint::SplitAlong(2), Hint::SplitAlong(1)] {
        is_close(sum_of([17, 40, 50], hint), 17 * 40 * 50);
    }
}

#[test]
fn what_other_tasks_write_lies_where_tasks_that_reduce_read_it() {
    let path = std::env::temp_dir().join(format!("celerity-aligned-{}.txt", std::process::id()));
    for (range, hint) in [([5003, 1], Hint::BandSplit), ([3001, 5], Hint::TiledSplit)] {
        let config = Config::default().nodes(3).devices(2).check(CheckLevel::Full);
        config
            .collectives(Collectives::Off)
            .write_graphs(&path)
            .run(|queue| {
                let values = queue.buffer::<f32, 2>(range).named("values");
                let sum = queue.buffer::<f32, 0>([]);
                let task = |name: &str| queue.task(name).hint(hint);
                // Nothing is known of a space before somebody reduces over it.
                task("none").parallel_for(range, sum.reduce(Sum), |_, sum| sum.combine(0.0))?;
                for step in 0..3 {
                    let write = values.write(one_to_one());
                    task("set").parallel_for(range, write, move |_, value| *value = step as f32)?;
                    let accesses = (values.read(one_to_one()), sum.reduce(Sum));
                    task("add")
                        .parallel_for(range, accesses, |_, (value, sum)| sum.combine(*value))?;
                    let total = scalar(queue, &sum)?;
                    assert_eq!(total, step as f32 * (range[0] * range[1]) as f32);
                    // By all nodes, each of which has a part of its own.
                    let look = queue.host_task("look").distributed(range);
                    look.hint(hint).submit(values.read(one_to_one()), |_, _| ())?;
                }
                Ok(())
            })
            .unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let sends = |line: &&str| line.contains(" push ") && line.contains("\"values\"");
        assert_eq!(text.lines().find(sends), None, "{range:?}");
        assert!(text.contains(" push "), "partial results are sent");
    }
    std::fs::remove_file(&path).unwrap();
}

/// Buffers of partial results that were made for a result of this name.
fn buffers_of_partial_results(steps: usize, elements: usize) -> usize {
    let name = format!("celerity-spares-{}-{steps}-{elements}.txt", std::process::id());
    let path = std::env::temp_dir().join(name);
    let config = Config::default().nodes(2).devices(2).check(CheckLevel::Full);
    let results = config.write_graphs(&path).run(|queue| {
        let sums = queue.buffer::<u64, 1>(elements).named("sums");
        let mut results = Vec::new();
        for step in 0..steps as u64 {
            queue.task("add").parallel_for(3000, sums.reduce(Sum), move |item, sums| {
                sums.combine_at([item[0] % elements], step);
            })?;
            // Some are replaced before anybody has looked at them.
            if step % 3 != 1 {
                results.push(queue.fence(&sums)?.wait()?.as_slice().iter().sum::<u64>());
            }
        }
        Ok(results)
    });
    let steps = (0..steps as u64).filter(|step| step % 3 != 1);
    assert_eq!(results.unwrap(), steps.map(|step| 3000 * step).collect::<Vec<_>>());
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let before = text.split(" \"partial results of sums\"");
    let mut ids: Vec<_> = before.filter_map(|text| text.rsplit([' ', '.']).next()).collect();
    ids.pop();
    ids.sort_unstable();
    ids.dedup();
    ids.len()
}

#[test]
fn buffers_of_partial_results_are_used_again_unless_they_are_large() {
    let few = buffers_of_partial_results(30, 3);
    assert!((2..=5).contains(&few), "{few} buffers");
    // 32 tiles of 64 KiB each, of which none is kept.
    assert_eq!(buffers_of_partial_results(9, 1 << 13), 9);
}

#[test]
fn every_operator_gives_what_a_loop_gives() {
    let count = 10_000;
    let numbers: Vec<i64> = (0..count as i64).map(|i| (i * 7919 + 13) % 1009 - 300).collect();
    let found = everywhere(clusters(CLUSTERS), |queue| {
        let values = queue.buffer_from(count, numbers.clone())?;
        let [sum, product, min, max] = std::array::from_fn(|_| queue.buffer::<i64, 0>([]));
        let accesses = (
            values.read(one_to_one()),
            sum.reduce(Sum),
            product.reduce(Product),
            min.reduce(Min),
            max.reduce(Max),
        );
        queue.task("numbers").parallel_for(
            count,
            accesses,
            |_, (value, sum, product, min, max)| {
                sum.combine(*value);
                product.combine(*value | 1);
                min.combine(*value);
                max.combine(*value);
            },
        )?;
        let [and, or, xor] = std::array::from_fn(|_| queue.buffer::<i64, 0>([]));
        let accesses = (values.read(one_to_one()), and.reduce(And), or.reduce(Or), xor.reduce(Xor));
        queue.task("bits").parallel_for(count, accesses, |_, (value, and, or, xor)| {
            and.combine(*value | 16);
            or.combine(*value);
            xor.combine(*value);
        })?;
        let [least, greatest] = std::array::from_fn(|_| queue.buffer::<Located<i64>, 0>([]));
        let accesses = (values.read(one_to_one()), least.reduce(ArgMin), greatest.reduce(ArgMax));
        queue.task("places").parallel_for(count, accesses, |item, (value, least, greatest)| {
            let located = Located::new(*value, item.linear_id());
            least.combine(located);
            greatest.combine(located);
        })?;
        let mut all = Vec::new();
        for buffer in [&sum, &product, &min, &max, &and, &or, &xor] {
            all.push(scalar(queue, buffer)?);
        }
        let places = [&least, &greatest].map(|buffer| scalar(queue, buffer));
        let [least, greatest] = places.map(|found| found.map(|found| (found.value, found.place())));
        Ok((all, least?, greatest?))
    });
    let fold =
        |identity, combine: fn(i64, i64) -> i64| numbers.iter().copied().fold(identity, combine);
    let (least, greatest) = (*numbers.iter().min().unwrap(), *numbers.iter().max().unwrap());
    let place = |value| (value, numbers.iter().position(|&one| one == value).unwrap());
    let expected = vec![
        numbers.iter().sum(),
        fold(1, |a, b| a.wrapping_mul(b | 1)),
        least,
        greatest,
        fold(-1, |a, b| a & (b | 16)),
        fold(0, |a, b| a | b),
        fold(0, |a, b| a ^ b),
    ];
    assert_eq!(found, (expected, place(least), place(greatest)));
}

/// Affine maps modulo a prime, one after the other: in order, or not at all.
#[derive(Clone, Copy)]
struct Then;

const PRIME: u64 = 1_000_003;

impl Operator<[u64; 2]> for Then {
    fn identity(&self) -> [u64; 2] {
        [1, 0]
    }

    fn combine(&self, [a, b]: [u64; 2], [c, d]: [u64; 2]) -> [u64; 2] {
        [a * c % PRIME, (b * c + d) % PRIME]
    }
}

#[test]
fn an_operator_that_is_not_commutative_gets_values_in_order() {
    for range in [[5000, 1], [50, 100], [1, 5000]] {
        let map = |item: usize| [item as u64 % 17 + 2, item as u64];
        let composed = everywhere(clusters(CLUSTERS), |queue| {
            let composed = queue.buffer::<[u64; 2], 0>([]);
            queue.task("compose").parallel_for(
                range,
                composed.reduce(Then),
                move |item, composed| {
                    composed.combine(map(item.linear_id()));
                },
            )?;
            scalar(queue, &composed)
        });
        let all = (0..5000).map(map).fold([1, 0], |a, b| Then.combine(a, b));
        assert_eq!(composed, all, "{range:?}");
    }
}

#[test]
fn histograms_are_reductions_into_many_elements() {
    let count = 20_000;
    let kind = |item: usize| [(item * item) % 5, item % 7];
    let counts = everywhere(clusters(CLUSTERS), |queue| {
        let counts = queue.buffer::<u32, 2>([5, 7]);
        let weights = queue.buffer::<f32, 1>(3000);
        let accesses = (counts.reduce(Sum), weights.reduce(Sum));
        queue.task("count").parallel_for(count, accesses, move |item, (counts, weights)| {
            counts.combine_at(kind(item[0]), 1);
            weights.combine_at(item[0] * 17 % 3000, 0.1 * item[0] as f32);
        })?;
        let weights = queue.fence(&weights)?.wait()?.into_vec();
        let bits: Vec<u32> = weights.iter().map(|weight| weight.to_bits()).collect();
        Ok((queue.fence(&counts)?.wait()?.into_vec(), bits))
    });
    let mut expected = vec![0; 35];
    (0..count).map(kind).for_each(|[y, x]| expected[7 * y + x] += 1);
    assert_eq!(counts.0, expected);
}

#[test]
fn rows_and_columns_reduce_into_cubes() {
    let cube = everywhere(clusters(CLUSTERS), |queue| {
        let cube = queue.buffer::<u64, 3>([2, 3, 4]);
        queue.task("rows").parallel_for_rows([40, 60], cube.reduce(Sum), |row, cube| {
            for item in row.items() {
                cube.combine_at([item[0] % 2, item[1] % 3, item[1] % 4], item.linear_id() as u64);
            }
        })?;
        Ok(queue.fence(&cube)?.wait()?.into_vec())
    });
    let mut expected = vec![0; 24];
    for (y, x) in (0..40).flat_map(|y| (0..60).map(move |x| (y, x))) {
        expected[(y % 2 * 3 + x % 3) * 4 + x % 4] += (y * 60 + x) as u64;
    }
    assert_eq!(cube, expected);
}

#[test]
fn rows_of_items_reduce_floats_to_the_same_bits() {
    for range in [[1, 9000], [90, 100], [3000, 3]] {
        let bits = everywhere(clusters(CLUSTERS), |queue| {
            let values = queue.buffer_from(range, floats(9000))?;
            let sum = queue.buffer::<f32, 0>([]);
            let accesses = (values.read(one_to_one()), sum.reduce(Sum));
            queue.task("rows").parallel_for_rows(range, accesses, |_, (values, sum)| {
                values.iter().for_each(|&value| sum.combine(value));
            })?;
            Ok(scalar(queue, &sum)?.to_bits())
        });
        is_close(f32::from_bits(bits), 9000);
    }
}

#[test]
fn results_are_there_for_kernels_host_tasks_and_other_reductions() {
    let found = everywhere(clusters(CLUSTERS), |queue| {
        let values = queue.buffer_from(3000, (0..3000_u64).collect::<Vec<_>>())?;
        let (sum, squares) = (queue.buffer::<u64, 0>([]), queue.buffer::<u64, 0>([]));
        let accesses = (values.read(one_to_one()), sum.reduce(Sum));
        queue.task("sum").parallel_for(3000, accesses, |_, (value, sum)| sum.combine(*value))?;
        // A kernel on all devices, which reduces again.
        let accesses = (values.read_write(one_to_one()), sum.read(all()), squares.reduce(Sum));
        queue.task("scale").parallel_for(3000, accesses, |_, (value, sum, squares)| {
            *value += sum[[]];
            squares.combine(*value);
        })?;
        let copy = queue.buffer::<u64, 0>([]);
        let accesses = (squares.read(all()), copy.write(all()));
        queue.host_task("copy").once(accesses, |(squares, mut copy)| copy[[]] = squares[[]])?;
        Ok([scalar(queue, &sum)?, scalar(queue, &squares)?, scalar(queue, &copy)?])
    });
    let sum = 2999 * 3000 / 2;
    assert_eq!(found, [sum, sum + 3000 * sum, sum + 3000 * sum]);
}

#[test]
fn what_was_there_before_counts_if_it_is_asked_for() {
    let found = everywhere(clusters(CLUSTERS), |queue| {
        let (kept, forgotten) =
            (queue.buffer_from([], vec![5_u64])?, queue.buffer_from([], vec![5_u64])?);
        for _ in 0..3 {
            let accesses = (kept.reduce(Sum).including_current(), forgotten.reduce(Sum));
            queue.task("add").parallel_for(100, accesses, |_, (kept, forgotten)| {
                kept.combine(1);
                forgotten.combine(1);
            })?;
        }
        Ok([scalar(queue, &kept)?, scalar(queue, &forgotten)?])
    });
    assert_eq!(found, [305, 100]);
}

#[test]
fn a_pending_result_is_overwritten_in_part_as_a_whole_or_never_needed() {
    let found = everywhere(clusters(CLUSTERS), |queue| {
        let counts = queue.buffer::<u64, 1>(4);
        let count = |queue: &Queue, by: u64| {
            queue.task("count").parallel_for(400, counts.reduce(Sum), move |item, counts| {
                counts.combine_at(item[0] % 4, by);
            })
        };
        count(queue, 1)?;
        let part = counts.write(one_to_one());
        queue
            .task("part")
            .offset(1)
            .parallel_for(2, part, |item, count| *count = item[0] as u64)?;
        let in_part = queue.fence(&counts)?.wait()?.into_vec();
        count(queue, 2)?;
        queue.task("whole").parallel_for(4, counts.write(one_to_one()), |_, count| *count = 9)?;
        let whole = queue.fence(&counts)?.wait()?.into_vec();
        count(queue, 3)?;
        drop(counts);
        queue.barrier()?;
        Ok([in_part, whole])
    });
    assert_eq!(found, [vec![100, 1, 2, 100], vec![9; 4]]);
}

/// Of the results of two rounds, one is pending when a host task asks for it, which may not.
#[test]
fn who_may_not_submit_leaves_a_pending_result_to_others() {
    let found = everywhere(clusters(CLUSTERS), |queue| {
        let (total, log) = (queue.buffer::<u64, 0>([]), queue.buffer_from([], vec![7_u64])?);
        let add = |by: u64| {
            queue.task("add").parallel_for(50, total.reduce(Sum), move |_, sum| sum.combine(by))
        };
        add(1)?;
        let first = scalar(queue, &total)?;
        add(2)?;
        let handles = (log.clone(), total.clone());
        queue.host_task("copy").everywhere((), move |_, ()| {
            let error = handles.0.copy_from(&handles.1).unwrap_err();
            let Error::Run(reason) = error else { panic!("{error}") };
            assert!(matches!(*reason, RunError::Misplaced { .. }), "{reason}");
        })?;
        queue.barrier()?;
        Ok([first, scalar(queue, &total)?, scalar(queue, &log)?])
    });
    assert_eq!(found, [50, 100, 7]);
}

#[test]
fn an_empty_index_space_leaves_the_identity() {
    let found = everywhere(clusters(CLUSTERS), |queue| {
        let (new, old) = (queue.buffer::<i32, 0>([]), queue.buffer_from([], vec![7])?);
        let none = queue.buffer::<i32, 1>(0);
        let accesses = (new.reduce(Max), old.reduce(Max).including_current(), none.reduce(Sum));
        // Of no items, all are none.
        let task = queue.task("nothing").granularity(0);
        task.parallel_for(0, accesses, |_, _| panic!("there are no items"))?;
        let accesses = none.reduce(Sum);
        queue.task("no elements").parallel_for(10, accesses, |_, _| ())?;
        Ok([
            scalar(queue, &new)?,
            scalar(queue, &old)?,
            queue.fence(&none)?.wait()?.as_slice().len() as i32,
        ])
    });
    assert_eq!(found, [i32::MIN, 7, 0]);
}

#[test]
fn fewer_tiles_than_devices_leave_some_idle() {
    let found = everywhere(clusters(CLUSTERS), |queue| {
        let sum = queue.buffer::<u32, 0>([]);
        queue.task("few").parallel_for([2, 3], sum.reduce(Sum), |item, sum| {
            sum.combine(10_u32.pow(item.linear_id() as u32));
        })?;
        scalar(queue, &sum)
    });
    assert_eq!(found, 111_111);
}

#[test]
fn index_spaces_with_an_offset_and_granules_reduce() {
    let found = everywhere(clusters(CLUSTERS), |queue| {
        let sum = queue.buffer::<u64, 0>([]);
        let task = queue.task("offset").offset([3, 1000]).granularity([1, 7]);
        task.parallel_for([11, 500], sum.reduce(Sum), |item, sum| {
            sum.combine((item[0] * 10_000 + item[1]) as u64);
        })?;
        scalar(queue, &sum)
    });
    let items = (3..14).flat_map(|y| (1000..1500).map(move |x| y * 10_000 + x));
    assert_eq!(found, items.sum::<u64>());
}

#[test]
fn a_loop_of_reductions_goes_on_for_long() {
    let found = everywhere(clusters(CLUSTERS), |queue| {
        let values = queue.buffer_from(500, vec![1.0_f64; 500])?;
        let sum = queue.buffer::<f64, 0>([]);
        for _ in 0..60 {
            let accesses = (values.read(one_to_one()), sum.reduce(Sum));
            queue.task("sum").parallel_for(500, accesses, |_, (value, sum)| sum.combine(*value))?;
            let accesses = (values.write(one_to_one()), sum.read(all()));
            queue.task("spread").parallel_for(500, accesses, |item, (value, sum)| {
                *value = sum[[]] / 500.0 + (item[0] % 2) as f64;
            })?;
        }
        Ok(scalar(queue, &sum)?.to_bits())
    });
    assert_eq!(f64::from_bits(found), 500.0 * (1.0 + 59.0 * 0.5));
}

fn error_of(program: impl Fn(&Queue) -> Result<()> + Sync) -> Error {
    Config::default().nodes(2).devices(2).run(program).unwrap_err()
}

#[test]
fn a_buffer_is_reduced_into_once_and_touched_in_no_other_way() {
    let error = error_of(|queue| {
        let sum = queue.buffer_from([], vec![0])?.named("sum");
        let accesses = (sum.reduce(Sum), sum.reduce(Max));
        queue.task("twice").parallel_for(8, accesses, |_, (sum, _)| sum.combine(1))?;
        Ok(())
    });
    assert!(matches!(error, Error::SharedReduction { .. }));
    let message = error.to_string();
    assert!(message.contains("\"twice\" at") && message.contains("buffer \"sum\""), "{message}");
    let error = error_of(|queue| {
        let sum = queue.buffer_from([], vec![0])?;
        let accesses = (sum.read(all()), sum.reduce(Sum));
        queue.task("both").parallel_for(8, accesses, |_, (_, sum)| sum.combine(1))?;
        Ok(())
    });
    assert!(matches!(error, Error::SharedReduction { .. }), "{error}");
}

#[test]
fn what_nobody_has_written_is_not_included() {
    let error = error_of(|queue| {
        let sum = queue.buffer::<i32, 0>([]).named("sum");
        let access = sum.reduce(Sum).including_current();
        queue.task("add").parallel_for(8, access, |_, sum| sum.combine(1))?;
        panic!("it is refused when it is submitted")
    });
    assert!(matches!(&error, Error::Declare(error)
        if matches!(**error, DeclareError::UninitializedRead { .. })));
    let message = error.to_string();
    assert!(message.contains("\"add\" at") && message.contains("buffer \"sum\""), "{message}");
}

#[test]
fn what_is_included_has_been_written_as_a_whole_or_reduced_into() {
    let found = everywhere(clusters(CLUSTERS), |queue| {
        let sums = queue.buffer::<u64, 2>([2, 3]).named("sums");
        let add = |including: bool| {
            let access = sums.reduce(Sum);
            let access = if including { access.including_current() } else { access };
            queue.task("add").parallel_for(60, access, |item, sums| {
                sums.combine_at([item[0] % 2, item[0] % 3], item[0] as u64);
            })
        };
        // Two of six elements.
        sums.fill_part(Subrange { offset: [1, 0], range: [1, 2] }, 7)?;
        let message = add(true).unwrap_err().to_string();
        assert!(message.contains("{[0..1, 0..3], [1..2, 2..3]}"), "{message}");
        // What is pending is all of it.
        add(false)?;
        add(true)?;
        queue.fence(&sums)?.wait().map(|sums| sums.into_vec())
    });
    let mut expected = vec![0; 6];
    (0..60).for_each(|item| expected[item % 2 * 3 + item % 3] += 2 * item as u64);
    assert_eq!(found, expected);
}

/// Panics when it meets 77.
#[derive(Clone, Copy)]
struct Moody;

impl Operator<u32> for Moody {
    fn identity(&self) -> u32 {
        0
    }

    fn combine(&self, earlier: u32, later: u32) -> u32 {
        assert!(earlier + later < 77, "too much for me");
        earlier + later
    }
}

#[test]
fn a_panic_in_an_operator_ends_the_run_wherever_it_is() {
    // In the kernel, on nodes that fold, and where all is combined.
    for (items, expected) in [(128, "\"add\" at"), (700, "\"sum of add\" at")] {
        let error = error_of(|queue| {
            let sum = queue.buffer::<u32, 0>([]).named("sum");
            queue.task("add").parallel_for(items, sum.reduce(Moody), move |_, sum| {
                sum.combine(if items == 128 { 40 } else { 1 });
            })?;
            let _ = queue.fence(&sum)?.wait()?;
            Ok(())
        });
        let message = error.to_string();
        assert!(message.contains(expected) && message.contains("too much for me"), "{message}");
    }
}
