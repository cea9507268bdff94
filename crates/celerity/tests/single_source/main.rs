//! Kernels that `#[kernel]` has made, on whatever devices there are: on a machine
//! with GPUs and a facade that has them, the same tests run there
//! (`CELERITY_PLATFORM=cuda` makes sure of it).

use celerity::prelude::*;
use celerity::{CheckLevel, Element, Error, Result, RunError, Sum};
use celerity_example_kernels::counting::{KINDS, count_kinds, summarize};
use celerity_example_kernels::groups::{
    CROWD, SUMMANDS, exchange, group_sum, group_total, look_up, looked_up, mirror, reverse_first,
    survey, survey_warps,
};
use celerity_example_kernels::parts::{mark, mark_line, mark_plane, mark_space, mark_together};
use celerity_example_kernels::prk::nstream::triad;
use celerity_example_kernels::{faults, linear, names};

mod lattices;
mod panics;

/// One node, and two that share a GPU if need be.
fn clusters() -> impl Iterator<Item = Config> {
    let config = Config::from_env().unwrap().devices(1).share_gpus(true);
    [1, 2].map(|nodes| config.clone().nodes(nodes)).into_iter()
}

/// What the failure of a kernel says, on every cluster.
fn failures(program: impl Fn(&Queue) -> Result<()> + Sync) -> Vec<String> {
    let failure = |cluster: Config| match cluster.run(&program) {
        Ok(()) => panic!("the program should have failed on {cluster:?}"),
        Err(Error::Run(error)) if matches!(*error, RunError::TaskPanicked { .. }) => {
            error.to_string()
        }
        Err(error) => panic!("no panic of a task: {error:?}"),
    };
    clusters().map(failure).collect()
}

/// Tables of all elements of other devices and nodes, and of every 64th row, whose parts lie far apart.
#[test]
#[allow(unsafe_code)]
fn kernels_read_what_tables_say_and_nothing_between() {
    const LEN: usize = 600;
    for step in [1, 37, 299] {
        let mut expected: Vec<u32> = (0..LEN as u32).map(|value| value * value).collect();
        for _ in 0..4 {
            expected = (0..LEN).map(|item| expected[item * step % LEN].wrapping_add(1)).collect();
        }
        for cluster in clusters().flat_map(|one| [1, 2].map(|count| one.clone().devices(count))) {
            let found = cluster.check(CheckLevel::Full).run(|queue| {
                let start: Vec<u32> = (0..LEN as u32).map(|value| value * value).collect();
                let (a, b) = (queue.buffer_from(LEN, start)?, queue.buffer::<u32, 1>(LEN));
                let table = region_mapper("table", move |chunk: Chunk<1>, _: [usize; 1]| {
                    let items = chunk.offset[0]..chunk.offset[0] + chunk.range[0];
                    let part = |item: usize| Subrange::new([item * step % LEN], [1]);
                    items.map(part).collect::<Vec<_>>()
                });
                // SAFETY: `look_up_far` reads what the table says of its item.
                let table = unsafe { table.around() };
                for _ in 0..4 {
                    let accesses = (b.write(one_to_one()), a.read(table.clone()));
                    let kernel = linear::look_up_far::new(step, LEN);
                    queue.task("look up").launch(LEN, accesses, kernel)?;
                    let accesses = (a.write(one_to_one()), b.read(one_to_one()));
                    queue.task("count").launch(LEN, accesses, linear::one_more)?;
                }
                Ok(queue.fence(&a)?.wait()?.into_vec())
            });
            assert!(found.as_ref().is_ok_and(|found| *found == expected), "{step}: {found:?}");
        }
    }
}

/// Elements beside those of items, of which rows are aligned for runs, and of which they are not.
#[test]
fn items_may_have_elements_beside_their_own() {
    const SIZE: [usize; 2] = [37, 64];
    let values: Vec<f32> = (0..SIZE[0] * SIZE[1]).map(|at| (at * at % 1013) as f32).collect();
    for [down, right] in [[1, 0], [0, 1], [3, 4], [2, 63], [0, 0]] {
        let range = [SIZE[0] - down, SIZE[1] - right];
        let [ahead, back] = [1, -1].map(|sign| [down, right].map(|by| sign * by as isize));
        let mut expected = vec![-1.0; values.len()];
        for (row, column) in (0..range[0]).flat_map(|row| (0..range[1]).map(move |at| (row, at))) {
            let [here, there] = [row * SIZE[1] + column, (row + down) * SIZE[1] + column + right];
            expected[there] = values[there] - values[here];
        }
        for cluster in clusters().flat_map(|one| [1, 3].map(|count| one.clone().devices(count))) {
            // Items begin where differences do not, and where they do.
            for begins_at_end in [false, true] {
                let found = cluster.clone().check(CheckLevel::Full).run(|queue| {
                    let u = queue.buffer_from(SIZE, values.clone())?;
                    let differences = queue.buffer_from(SIZE, vec![-1.0_f32; values.len()])?;
                    let task = queue.task("subtract");
                    if begins_at_end {
                        let behind = u.read(one_to_one().offset(back));
                        let accesses =
                            (differences.write(one_to_one()), u.read(one_to_one()), behind);
                        task.offset([down, right]).launch(range, accesses, linear::subtract)?;
                    } else {
                        let there = one_to_one().offset(ahead);
                        let accesses =
                            (differences.write(there), u.read(there), u.read(one_to_one()));
                        task.launch(range, accesses, linear::subtract)?;
                    }
                    Ok(queue.fence(&differences)?.wait()?.into_vec())
                });
                assert!(
                    found.as_ref().is_ok_and(|found| *found == expected),
                    "{down}, {right} on {cluster:?}: {found:?}"
                );
            }
        }
    }
}

#[test]
fn groups_share_memory_and_meet() {
    let values: Vec<f64> = (0..40 * SUMMANDS).map(|i| (i * i % 101) as f64).collect();
    let sums = values.chunks(SUMMANDS).map(|group| group.iter().sum::<f64>());
    let expected: Vec<f64> = sums.flat_map(|sum| [sum; SUMMANDS]).collect();
    for cluster in clusters() {
        let found = cluster.run(|queue| {
            let values = queue.buffer_from(values.len(), values.clone())?;
            let sums = queue.buffer::<f64, 1>(values.range());
            let accesses = (sums.write(one_to_one()), values.read(one_to_one()));
            queue.task("sum").launch(nd_range(values.range(), SUMMANDS), accesses, group_sum)?;
            Ok(queue.fence(&sums)?.wait()?.as_slice().to_vec())
        });
        assert_eq!(found.unwrap(), expected, "{cluster:?}");
    }
}

#[test]
fn each_group_has_a_result_of_its_own() {
    let values: Vec<f64> = (0..40 * SUMMANDS).map(|i| (i * i % 101) as f64).collect();
    let expected: Vec<f64> = values.chunks(SUMMANDS).map(|group| group.iter().sum()).collect();
    for cluster in clusters() {
        let found = cluster.run(|queue| {
            let values = queue.buffer_from(values.len(), values.clone())?;
            let totals = queue.buffer::<f64, 1>(expected.len());
            let space = nd_range(values.range(), SUMMANDS);
            let share = per_dimension([Side::share(0)]);
            totals.fill(0.0)?;
            let accesses = (totals.update(share), values.read(one_to_one()));
            queue.task("total").launch(space, accesses, group_total)?;
            Ok(queue.fence(&totals)?.wait()?.as_slice().to_vec())
        });
        assert_eq!(found.unwrap(), expected, "{cluster:?}");
    }
}

/// What is in a buffer of `range` if each item has marked what it has of each dimension.
fn marked<const K: usize>(
    (offset, space): ([usize; K], [usize; K]),
    range: [usize; 3],
    item_of: impl Fn([usize; K]) -> usize,
    own: impl Fn([usize; K]) -> [std::ops::Range<usize>; 3],
) -> Vec<u64> {
    let mut cells = vec![0; range.iter().product()];
    for number in 0..space.iter().product() {
        let (mut item, mut rest) = (offset, number);
        for dim in (0..K).rev() {
            item[dim] += rest % space[dim];
            rest /= space[dim];
        }
        let [slow, middle, fast] = own(item);
        let within = |part: std::ops::Range<usize>, size: usize| part.start..part.end.min(size);
        for z in within(slow, range[0]) {
            for y in within(middle.clone(), range[1]) {
                for x in within(fast.clone(), range[2]) {
                    cells[(z * range[1] + y) * range[2] + x] = mark(item_of(item), [z, y, x]);
                }
            }
        }
    }
    cells
}

/// Rows, columns, shares, windows with gaps and such as end at an edge: of buffers of other dimensions than the index space.
#[test]
fn items_write_whatever_can_be_said_of_each_dimension() {
    const PLANE: [usize; 2] = [9, 20];
    let share =
        |item: usize, items: usize, size: usize| item * size / items..(item + 1) * size / items;
    macro_rules! check {
        ($space:expr, $range:expr, $mapper:expr, $kernel:expr, $expected:expr) => {
            check!($space, offset $space.map(|_| 0), $range, $mapper, $kernel, $expected)
        };
        ($space:expr, offset $offset:expr, $range:expr, $mapper:expr, $kernel:expr, $expected:expr) => {
            for cluster in clusters() {
                let found = cluster.run(|queue| {
                    let cells = queue.buffer::<u64, _>($range);
                    cells.fill(0)?;
                    let task = queue.task("mark").offset($offset);
                    task.launch($space, cells.write($mapper), $kernel)?;
                    Ok(queue.fence(&cells)?.wait()?.as_slice().to_vec())
                });
                let found = found.unwrap_or_else(|error| panic!("{}: {error}", stringify!($mapper)));
                assert_eq!(found, $expected, "{}, {cluster:?}", stringify!($mapper));
            }
        };
    }
    macro_rules! plane {
        ($mapper:expr, $own:expr) => {
            plane!([0], $mapper, $own)
        };
        ($offset:expr, $mapper:expr, $own:expr) => {
            let (all, own) = ([1, PLANE[0], PLANE[1]], $own);
            let own = |[item]: [usize; 1]| {
                let [rows, columns] = own(item);
                [0..1, rows, columns]
            };
            let expected = marked(($offset, [7]), all, |[item]| item, own);
            check!([7], offset $offset, PLANE, $mapper, mark_plane, expected);
        };
    }
    let along = Side::along(0);
    plane!(per_dimension([along, Side::all()]), |i: usize| [i..i + 1, 0..20]);
    plane!([2], per_dimension([along, Side::all()]), |i: usize| [i..i + 1, 0..20]);
    plane!(per_dimension([Side::all(), along.stride(2)]), |i: usize| [0..9, 2 * i..2 * i + 2]);
    plane!(per_dimension([along.offset(2), Side::only(3..11)]), |i| [i + 2..i + 3, 3..11]);
    plane!(per_dimension([Side::only(8..9), along.stride(3)]).clamped(), |i| [
        8..9,
        3 * i..3 * i + 3
    ]);
    let ahead = |i: usize| [i.saturating_sub(3)..(i + 1).saturating_sub(3), 0..20];
    plane!(per_dimension([along.offset(-3), Side::all()]).clamped(), ahead);
    plane!(per_dimension([Side::share(0), Side::all()]), |i| [share(i, 7, 9), 0..20]);
    plane!([5], per_dimension([Side::only(2..4), Side::share(0)]), |i: usize| [
        2..4,
        share(i - 5, 7, 20)
    ]);
    let in_threes = Side::share(0).granularity(3);
    plane!(per_dimension([Side::all(), in_threes]), |i| {
        let part = share(i, 7, 7);
        [0..9, 3 * part.start..3 * part.end]
    });
    let gapped = per_dimension([Side::all(), along.stride(3).window(1)]).clamped().with_gaps();
    plane!(gapped, |i: usize| [0..9, 3 * i..3 * i + 1]);
    plane!(even_split(), |i| [share(i, 7, 9), 0..20]);

    // Of items in a row, and in a column, as many parts of a line.
    for (space, dim) in [([1, 6], 1), ([6, 1], 0)] {
        let sides = [Side::along(dim).stride(3), Side::share(dim), Side::along(dim).offset(14)];
        let parts = [|i| 3 * i..3 * i + 3, |i| i * 20 / 6..(i + 1) * 20 / 6, |i| i + 14..i + 15];
        for (side, part) in sides.into_iter().zip(parts) {
            let own = |[y, x]: [usize; 2]| [0..1, 0..1, part(y + x)];
            let expected = marked(([0; 2], space), [1, 1, 20], |[y, x]| y + x, own);
            check!(space, 20, per_dimension([side]), mark_line, expected);
        }
    }
    let space = |mapper: PerDimension<3>, own: fn([usize; 2]) -> [std::ops::Range<usize>; 3]| {
        let expected = marked(([0; 2], [3, 4]), [6, 5, 17], |[y, x]| 4 * y + x, own);
        check!([3, 4], [6, 5, 17], mapper, mark_space, expected);
    };
    let [y, x] = [0, 1].map(Side::along);
    space(per_dimension([x, Side::all(), y.stride(5).offset(1)]), |[y, x]| {
        [x..x + 1, 0..5, 5 * y + 1..5 * y + 6]
    });
    space(per_dimension([Side::only(1..3), y.stride(2), x.stride(5)]).clamped(), |[y, x]| {
        [1..3, 2 * y..2 * y + 2, 5 * x..5 * x + 5]
    });
    space(per_dimension([Side::share(0), Side::share(1), Side::all()]), |[y, x]| {
        [2 * y..2 * y + 2, x * 5 / 4..(x + 1) * 5 / 4, 0..17]
    });

    // What items of a row have together, one by one where it is not one box.
    macro_rules! together {
        ($mapper:expr, $own:expr) => {
            let expected = marked(([0; 2], [6, 13]), [1, 26, 30], |[y, _]| y, $own);
            check!([6, 13], [26, 30], $mapper, mark_together, expected);
        };
    }
    together!(per_dimension([y, x.stride(2)]), |[y, x]| [0..1, y..y + 1, 2 * x..2 * x + 2]);
    together!(per_dimension([x.stride(2), y]), |[y, x]| [0..1, 2 * x..2 * x + 2, y..y + 1]);
    let gapped = per_dimension([y.stride(2), x.stride(2).window(1)]).with_gaps();
    together!(gapped, |[y, x]| [0..1, 2 * y..2 * y + 2, 2 * x..2 * x + 1]);
    let gapped = per_dimension([x.stride(2).window(1), y.stride(3).window(2)]).with_gaps();
    together!(gapped, |[y, x]| [0..1, 2 * x..2 * x + 1, 3 * y..3 * y + 2]);
}

#[test]
fn what_is_asked_before_a_barrier_may_be_asked_behind_it() {
    let values: Vec<f64> = (0..3 * SUMMANDS).map(|i| i as f64).collect();
    for count in [0, 1, 40, SUMMANDS] {
        let mut expected = values.clone();
        expected.chunks_mut(SUMMANDS).for_each(|group| group[..count].reverse());
        for cluster in clusters() {
            let found = cluster.run(|queue| {
                let values = queue.buffer_from(values.len(), values.clone())?;
                let range = nd_range(values.range(), SUMMANDS);
                let accesses = values.read_write(one_to_one());
                queue.task("reverse").launch(range, accesses, reverse_first { count })?;
                Ok(queue.fence(&values)?.wait()?.as_slice().to_vec())
            });
            assert_eq!(found.unwrap(), expected, "{count}, {cluster:?}");
        }
    }
}

/// Rows in runs of four and of two, of which some begin elsewhere and all have an end.
#[test]
fn rows_of_zipped_slices_are_computed_to_the_end() {
    for len in [1, 2, 7, 64, 1003] {
        let numbers = |factor: usize| (0..len).map(|i| (factor * i % 37) as f32).collect();
        let of: [Vec<f32>; 4] = [3, 5, 7, 11].map(numbers);
        let blended = (0..len).map(|i| of[0][i] * of[1][i] + of[2][i] * of[3][i]);
        let expected: (Vec<_>, Vec<_>) = (
            blended.collect(),
            (0..len).map(|i| 1.0 + (i as f64 + 0.5 * (i * i) as f64)).collect(),
        );
        for cluster in clusters() {
            let found = cluster.run(|queue| {
                let of: Vec<_> = of
                    .iter()
                    .map(|it| queue.buffer_from(len, it.clone()))
                    .collect::<Result<_>>()?;
                let read = |nth: usize| of[nth].read(one_to_one());
                let out = queue.buffer::<f32, 1>(len);
                let accesses = (out.write(one_to_one()), read(0), read(1), read(2), read(3));
                queue.task("blend").launch(len, accesses, linear::blend)?;

                let doubles = |of: fn(usize) -> f64| {
                    queue.buffer_from(len, (0..len).map(of).collect::<Vec<_>>())
                };
                let (a, b) = (doubles(|_| 1.0)?, doubles(|i| i as f64)?);
                let c = doubles(|i| (i * i) as f64)?;
                let accesses =
                    (a.read_write(one_to_one()), b.read(one_to_one()), c.read(one_to_one()));
                queue.task("triad").launch(len, accesses, triad { scalar: 0.5 })?;
                let (out, a) = (queue.fence(&out)?.wait()?, queue.fence(&a)?.wait()?);
                Ok((out.as_slice().to_vec(), a.as_slice().to_vec()))
            });
            assert_eq!(found.unwrap(), expected, "{len}, {cluster:?}");
        }
    }
}

#[test]
fn a_group_may_share_more_than_48_kib() {
    let rows: Vec<[u32; 16]> = (0..3 * CROWD as u32).map(|row| [row; 16]).collect();
    let turned = rows.chunks(CROWD).flat_map(|group| group.iter().rev().copied());
    let expected: Vec<_> = turned.collect();
    for cluster in clusters() {
        let found = cluster.run(|queue| {
            let rows = queue.buffer_from(rows.len(), rows.clone())?;
            let accesses = rows.read_write(one_to_one());
            queue.task("mirror").launch(nd_range(rows.range(), CROWD), accesses, mirror)?;
            Ok(queue.fence(&rows)?.wait()?.as_slice().to_vec())
        });
        assert_eq!(found.unwrap(), expected, "{cluster:?}");
    }
}

/// By kernels that are called, and call parameters, what generated code could call something.
/// Items of a group that looks something up, and how many groups there are.
const READERS: usize = 96;
const TABLES: usize = 20;

/// What items find in tables of so many values, and how many have had something to tabulate.
fn look(queue: &Queue, (odd, squares): (usize, usize)) -> Result<(Vec<u64>, u64)> {
    let found = queue.buffer::<u64, 1>(READERS * TABLES);
    let workers = queue.buffer::<u64, 0>([]);
    let accesses = (found.write(one_to_one()), workers.reduce(Sum));
    let kernel = look_up { odd, squares };
    queue.task("look up").launch(nd_range(found.range(), READERS), accesses, kernel)?;
    let workers = queue.fence(&workers)?.wait()?.as_slice()[0];
    Ok((queue.fence(&found)?.wait()?.as_slice().to_vec(), workers))
}

/// The two numbers of a refusal for want of shared memory: what is needed, and what there is.
fn shared_memory(error: &Error) -> (u64, u64) {
    let text = error.to_string();
    let number = |before: &str| {
        let (_, rest) = text.split_once(before)?;
        rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
    };
    let numbers = number("needs ").zip(text.rsplit_once(" has ").and_then(|(_, rest)| {
        rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
    }));
    numbers.unwrap_or_else(|| panic!("not about shared memory: {text}"))
}

/// On a GPU of compute capability 9.0, the one before the last is all that there is, but for 600 bytes.
#[test]
fn a_group_shares_as_much_as_the_launch_says() {
    for (odd, squares) in [(1, 1), (5, 64), (1000, 333), (16_000, 24_870), (1 << 20, 100_000)] {
        let expected: Vec<_> =
            (0..READERS * TABLES).map(|item| looked_up(item, odd, squares)).collect();
        let workers = READERS.min(odd.max(squares)) * READERS * TABLES;
        for cluster in clusters() {
            match cluster.run(|queue| look(queue, (odd, squares))) {
                Ok(found) => assert_eq!(found, (expected.clone(), workers as u64), "{cluster:?}"),
                Err(error) => {
                    let (needed, limit) = shared_memory(&error);
                    assert!(needed > limit && limit >= 48 << 10, "{needed} of {limit}");
                }
            }
        }
    }
}

#[test]
fn a_group_that_shares_more_than_there_can_be_is_refused() {
    for lengths in [(usize::MAX, 1), (1, usize::MAX / 8), (usize::MAX / 4, usize::MAX / 16)] {
        for cluster in clusters() {
            let error = cluster.run(|queue| look(queue, lengths)).unwrap_err().to_string();
            let refused = error.contains("local memory of a group; let its slices be shorter")
                || error.contains("of shared memory for each group");
            assert!(refused && error.contains("`look_up`"), "{error}");
        }
    }
}

fn by_any_names(queue: &Queue) -> Result<[(Vec<u32>, u32); 3]> {
    let (x, sum) = (queue.buffer_from(64, vec![1_u32; 64])?, queue.buffer_from([], vec![0_u32])?);
    let found =
        || Ok::<_, Error>((queue.fence(&x)?.wait()?.into_vec(), queue.fence(&sum)?.wait()?[[]]));
    queue.task("place").launch(64, x.read_write(one_to_one()), names::place)?;
    queue.task("tile").launch(nd_range(64, 32), x.read_write(one_to_one()), names::tile)?;
    let first = found()?;
    let accesses = || (x.write(one_to_one()), sum.reduce(Sum));
    queue.task("view").launch(64, accesses(), names::view::new(1, 2, 3, 4, 5, 6, 7, 8))?;
    let second = found()?;
    queue.task("views").launch(nd_range(64, 32), accesses(), names::views::new(1, 2, 3))?;
    let third = found()?;
    queue.task("entry").launch(64, x.write(one_to_one()), names::entry)?;
    assert_eq!(found()?.0, [8; 64]);
    Ok([first, second, third])
}

#[test]
fn kernels_and_their_parameters_may_have_any_names() {
    for cluster in clusters() {
        let [first, second, third] = cluster.run(by_any_names).unwrap();
        assert_eq!(first.0, [16; 64], "{cluster:?}");
        assert_eq!(second.0, (36..100).collect::<Vec<_>>(), "{cluster:?}");
        assert_eq!(third.0, (0..64).map(|at| at % 32 + 6).collect::<Vec<_>>(), "{cluster:?}");
        let sum = |elements: &[u32]| elements.iter().sum::<u32>();
        assert_eq!([second.1, third.1], [sum(&second.0), sum(&third.0)], "{cluster:?}");
    }
}

/// What [`exchange`] gives, by hand, for groups of `items` that follow each other.
fn exchanged(values: &[i64], items: usize) -> Exchanged {
    let (mut sums, mut next, mut odd) = (Vec::new(), Vec::new(), Vec::new());
    for warp in values.chunks(items).flat_map(|group| group.chunks(32)) {
        let bits = warp.iter().enumerate().map(|(lane, value)| u32::from(value % 2 != 0) << lane);
        let bits = bits.fold(0, |all, bit| all | bit);
        sums.extend(warp.iter().map(|_| warp.iter().sum::<i64>() as f32 / 8.0));
        next.extend((0..warp.len()).map(|lane| warp[(lane + 1) % warp.len()]));
        odd.extend(warp.iter().map(|_| bits));
    }
    (sums, next, odd)
}

type Exchanged = (Vec<f32>, Vec<i64>, Vec<u32>);

#[test]
fn items_of_a_warp_exchange_values() {
    // Rows as wide as a group: the items of one follow each other in the buffer.
    for (range, group) in [([24, 20], [6, 20]), ([8, 32], [2, 32]), ([4, 5], [1, 5])] {
        let values: Vec<i64> = (0..(range[0] * range[1]) as i64).map(|i| i * i % 97 - 40).collect();
        let expected = exchanged(&values, group[0] * group[1]);
        for cluster in clusters() {
            let found = cluster.run(|queue| exchanges(queue, range, group, &values)).unwrap();
            assert_eq!(found, expected, "{group:?} on {cluster:?}");
        }
    }
}

fn exchanges(
    queue: &Queue,
    range: [usize; 2],
    group: [usize; 2],
    values: &[i64],
) -> Result<Exchanged> {
    let values = queue.buffer_from(range, values.to_vec())?;
    let sums = queue.buffer::<f32, 2>(range);
    let next = queue.buffer::<i64, 2>(range);
    let odd = queue.buffer::<u32, 2>(range);
    let accesses = (
        sums.write(one_to_one()),
        next.write(one_to_one()),
        odd.write(one_to_one()),
        values.read(one_to_one()),
    );
    queue.task("exchange").launch(nd_range(range, group), accesses, exchange)?;
    let sums = queue.fence(&sums)?.wait()?.as_slice().to_vec();
    let next = queue.fence(&next)?.wait()?.as_slice().to_vec();
    Ok((sums, next, queue.fence(&odd)?.wait()?.as_slice().to_vec()))
}

/// What [`survey`] gives of a group's values, by hand.
fn surveyed(group: &[i64]) -> impl Iterator<Item = Surveyed> {
    let (sums, up_to) = (warps(group, |value| value as f32), warps(group, |value| value as f64));
    let sum = sums.iter().map(|warp| tree(warp)).reduce(|one, other| one + other).unwrap();
    let mut before = None;
    let up_to = up_to.into_iter().flat_map(move |warp| {
        let mut scan = scan(&warp);
        scan.iter_mut().for_each(|item| *item = before.map_or(*item, |before| before + *item));
        before = scan.last().copied();
        scan
    });
    let is_odd = |value: &&i64| *value % 2 != 0;
    let middle = group[group.len() / 2] - group.iter().filter(is_odd).count() as i64;
    up_to.enumerate().map(move |(at, up_to)| {
        (sum, up_to, group[..at].iter().filter(is_odd).count() as u32, middle)
    })
}

type Surveyed = (f32, f64, u32, i64);

/// What [`survey_warps`] gives of a group's values, by hand.
fn surveyed_warps(group: &[i64]) -> impl Iterator<Item = (f32, f64, f32)> {
    let (single, double) = (warps(group, |value| value as f32), warps(group, |value| value as f64));
    single.into_iter().zip(double).flat_map(|(single, double)| {
        let greatest = single.iter().copied().fold(f32::MIN, f32::max);
        let before = std::iter::once(0.0).chain(scan(&single));
        let both: Vec<_> = scan(&double).into_iter().zip(before).collect();
        both.into_iter().map(move |(up_to, before)| (greatest, up_to, before))
    })
}

/// The sevenths of a group's values, warp by warp.
fn warps<T: std::ops::Div<Output = T> + From<u8>>(
    group: &[i64],
    float: fn(i64) -> T,
) -> Vec<Vec<T>> {
    let sevenths = |warp: &[i64]| warp.iter().map(|value| float(*value) / T::from(7)).collect();
    group.chunks(32).map(sevenths).collect()
}

/// Neighbours, and neighbours among their sums, until one is left.
fn tree(values: &[f32]) -> f32 {
    match values {
        [one] => *one,
        more => {
            let (one, other) = more.split_at(more.len().next_power_of_two() / 2);
            tree(one) + tree(other)
        }
    }
}

/// The sums up to each one: of what each has with what the one has that is 1, 2, 4, 8, 16 before it.
fn scan<T: Copy + std::ops::Add<Output = T>>(warp: &[T]) -> Vec<T> {
    [1, 2, 4, 8, 16].into_iter().fold(warp.to_vec(), |sums, step| {
        let next = |at: usize| if at < step { sums[at] } else { sums[at - step] + sums[at] };
        (0..sums.len()).map(next).collect()
    })
}

#[test]
fn items_of_a_group_exchange_values() {
    let shapes = [
        ([24, 20], [6, 20]),
        ([8, 32], [2, 32]),
        ([4, 5], [1, 5]),
        ([4, 32], [1, 32]),
        ([8, 33], [1, 33]),
        ([64, 32], [32, 32]),
    ];
    for (range, group) in shapes {
        let values: Vec<i64> = (0..(range[0] * range[1]) as i64).map(|i| i * i % 97 - 40).collect();
        let groups = || values.chunks(group[0] * group[1]);
        let expected: Vec<_> = groups().flat_map(surveyed).collect();
        let of_warps: Vec<_> = groups().flat_map(surveyed_warps).collect();
        for cluster in clusters() {
            let found = cluster.run(|queue| surveys(queue, range, group, &values)).unwrap();
            assert_eq!(found, (expected.clone(), of_warps.clone()), "{group:?} on {cluster:?}");
        }
    }
}

type Surveys = (Vec<Surveyed>, Vec<(f32, f64, f32)>);

fn surveys(queue: &Queue, range: [usize; 2], group: [usize; 2], values: &[i64]) -> Result<Surveys> {
    let values = queue.buffer_from(range, values.to_vec())?;
    let (sum, up_to) = (queue.buffer::<f32, 2>(range), queue.buffer::<f64, 2>(range));
    let (before, middle) = (queue.buffer::<u32, 2>(range), queue.buffer::<i64, 2>(range));
    let accesses = (
        sum.write(one_to_one()),
        up_to.write(one_to_one()),
        before.write(one_to_one()),
        middle.write(one_to_one()),
        values.read(one_to_one()),
    );
    queue.task("survey").launch(nd_range(range, group), accesses, survey)?;
    let (sum, up_to) = (elements(queue, &sum)?, elements(queue, &up_to)?);
    let (before, middle) = (elements(queue, &before)?, elements(queue, &middle)?);
    let of_group = (0..sum.len()).map(|at| (sum[at], up_to[at], before[at], middle[at])).collect();

    let (greatest, before) = (queue.buffer::<f32, 2>(range), queue.buffer::<f32, 2>(range));
    let up_to = queue.buffer::<f64, 2>(range);
    let accesses = (
        greatest.write(one_to_one()),
        up_to.write(one_to_one()),
        before.write(one_to_one()),
        values.read(one_to_one()),
    );
    queue.task("survey warps").launch(nd_range(range, group), accesses, survey_warps)?;
    let (greatest, up_to) = (elements(queue, &greatest)?, elements(queue, &up_to)?);
    let before = elements(queue, &before)?;
    let of_warps = (0..greatest.len()).map(|at| (greatest[at], up_to[at], before[at])).collect();
    Ok((of_group, of_warps))
}

fn elements<T: Element>(queue: &Queue, buffer: &Buffer<T, 2>) -> Result<Vec<T>> {
    Ok(queue.fence(buffer)?.wait()?.as_slice().to_vec())
}

#[test]
fn items_that_meet_lose_nothing() {
    let range = [6, 20_000];
    let values: Vec<i32> = (0..120_000).map(|i| (i * 7919) % 1009 - 500).collect();
    let rows = || values.chunks(range[1]);
    let kinds = rows().flat_map(|row| {
        (0..KINDS).map(|kind| row.iter().filter(|&&value| value as usize % KINDS == kind).count())
    });
    let kinds: Vec<u32> = kinds.map(|count| count as u32).collect();
    let extremes = |row: &[i32]| [row.iter().min(), row.iter().max()].map(|value| *value.unwrap());
    let extremes: Vec<_> = rows().flat_map(extremes).map(i64::from).collect();
    let sums: Vec<_> = rows().map(|row| f64::from(row.iter().sum::<i32>())).collect();
    let factor = |&value: &i32| (2 * i64::from(value) + 1) as u64;
    let products: Vec<_> =
        rows().map(|row| row.iter().map(factor).fold(1, u64::wrapping_mul)).collect();
    for cluster in clusters() {
        let found = cluster.run(|queue| met(queue, range, &values)).unwrap();
        let expected = (kinds.clone(), extremes.clone(), sums.clone(), products.clone());
        assert_eq!(found, expected, "{cluster:?}");
    }
}

type Met = (Vec<u32>, Vec<i64>, Vec<f64>, Vec<u64>);

/// What [`count_kinds`] and [`summarize`] make of values.
fn met(queue: &Queue, range: [usize; 2], values: &[i32]) -> Result<Met> {
    let rows = range[0];
    let unsigned: Vec<u32> = values.iter().map(|&value| value as u32).collect();
    let unsigned = queue.buffer_from(range, unsigned)?;
    let values = queue.buffer_from(range, values.to_vec())?;
    let kinds = queue.buffer_from([rows, KINDS], vec![0; rows * KINDS])?;
    let extremes = queue.buffer_from([rows, 2], [i64::MAX, i64::MIN].repeat(rows))?;
    let sums = queue.buffer_from([rows, 1], vec![0.0; rows])?;
    let products = queue.buffer_from([rows, 1], vec![1; rows])?;
    let accesses = (kinds.update(slice(1)), unsigned.read(one_to_one()));
    queue.task("count").launch(range, accesses, count_kinds)?;
    let accesses = (
        extremes.update(slice(1)),
        sums.update(slice(1)),
        products.update(slice(1)),
        values.read(one_to_one()),
    );
    queue.task("summarize").launch(range, accesses, summarize)?;
    Ok((
        queue.fence(&kinds)?.wait()?.as_slice().to_vec(),
        queue.fence(&extremes)?.wait()?.as_slice().to_vec(),
        queue.fence(&sums)?.wait()?.as_slice().to_vec(),
        queue.fence(&products)?.wait()?.as_slice().to_vec(),
    ))
}

/// Where rows of a sparse matrix begin, and where the last one ends: some are empty, also where
/// chunks begin and end.
fn ends_of_rows() -> Vec<usize> {
    let lengths = (0..1000).map(|row| if row % 7 == 0 { 0 } else { row % 5 });
    let ends = lengths.scan(0, |end, length| {
        *end += length;
        Some(*end)
    });
    std::iter::once(0).chain(ends).collect()
}

#[test]
fn a_sparse_matrix_is_indexed_as_a_whole_whatever_the_split() {
    let ends = ends_of_rows();
    let entries = ends[1000];
    let columns: Vec<u32> = (0..entries as u32).map(|at| at * 37 % 1000).collect();
    let values: Vec<f64> = (0..entries).map(|at| (at % 17) as f64 - 5.0).collect();
    let x: Vec<f64> = (0..1000).map(|i| (i % 11) as f64).collect();
    let row = |row: usize| {
        let entries = ends[row]..ends[row + 1];
        entries.map(|at| values[at] * x[columns[at] as usize]).sum::<f64>()
    };
    let expected: Vec<f64> = (0..1000).map(row).collect();
    for cluster in clusters() {
        let product = cluster.run(|queue| {
            let starts: std::sync::Arc<[usize]> = ends.as_slice().into();
            let entries_of = mapper("entries of rows", move |rows: Chunk<1>, _| {
                let start = starts[rows.offset[0]];
                let end = starts[rows.offset[0] + rows.range[0]];
                Subrange { offset: [start], range: [end - start] }
            });
            let ends_of = mapper("ends of rows", |rows: Chunk<1>, _| Subrange {
                offset: rows.offset,
                range: [rows.range[0] + 1],
            });
            let y = queue.buffer::<f64, 1>(1000);
            let ends = queue.buffer_from(1001, ends.clone())?;
            let columns = queue.buffer_from(entries, columns.clone())?;
            let values = queue.buffer_from(entries, values.clone())?;
            let x = queue.buffer_from(1000, x.clone())?;
            let accesses = (
                y.write(one_to_one()),
                ends.read(ends_of),
                columns.read(entries_of.clone()),
                values.read(entries_of),
                x.read(all()),
            );
            let task = queue.task("multiply").hint(Hint::Oversubscribe(8));
            task.launch(1000, accesses, linear::multiply_sparse)?;
            Ok(queue.fence(&y)?.wait()?.into_vec())
        });
        assert_eq!(product.unwrap(), expected, "{cluster:?}");
    }
}

#[test]
fn an_element_outside_of_the_declared_part_is_not_read() {
    let outside = |is_deferred: bool| {
        failures(move |queue| {
            let (cells, table) = (queue.buffer::<u32, 1>(8), queue.buffer_from(50, vec![1; 50])?);
            let part = fixed(Subrange { offset: [10], range: [5] });
            let accesses = (cells.write(one_to_one()), table.read(part));
            let task = queue.task("outside");
            match is_deferred {
                false => task.launch(8, accesses, faults::look::new(15))?,
                true => task.launch(8, accesses, faults::look_deferred::new(15))?,
            };
            queue.barrier()
        })
    };
    for text in [false, true].into_iter().flat_map(outside) {
        let said = "index [15] is outside of what the access declared for this chunk: [10..15]";
        assert!(text.contains("\"outside\"") && text.contains(said), "{text}");
    }
}

/// What checks of views say. Indices and ranges are told whoever computes; of the rest, CPUs alone tell
/// numbers.
#[test]
fn checks_that_fail_name_indices_and_what_there_is() {
    const DECLARED: &str = "what the access declared for this chunk";
    let on_both = |text: String| [text.clone(), text];
    let said = [
        on_both(format!("index [0, 9] is outside of {DECLARED}: [0..1, 0..6]")),
        on_both(format!("index [0, 7] is outside of {DECLARED}: [0..1, 0..6]")),
        on_both(format!("range 3..8 of row [0] is outside of {DECLARED}: [0..6]")),
        [
            format!("4 elements from [0, 4] on are not all in {DECLARED}: [0..1, 0..6]"),
            format!("not all elements of a run or vector are in {DECLARED}"),
        ],
        [
            "offset [-2, 1] is not in the access's neighborhood([1, 1])".into(),
            "an offset is larger than the access's neighborhood".into(),
        ],
        on_both(format!(
            "index [{}] is outside of {DECLARED} along the line: [0..1]",
            0_usize.wrapping_sub(9)
        )),
        on_both("index [0, 6] is outside of what this item may write: [0..1, 0..6]".into()),
        on_both("index [7] is outside of what this item may write along the line: [0..6]".into()),
    ];
    for (way, said) in said.iter().enumerate() {
        let texts = failures(|queue| {
            let (to, from) =
                (queue.buffer::<u32, 2>([5, 6]), queue.buffer_from([5, 6], vec![1; 30])?);
            let accesses =
                (to.write(slice(1)), from.read(slice(1)), from.read(neighborhood([1, 1])));
            queue.task("stray").launch([1, 1], accesses, faults::stray::new(way))?;
            queue.barrier()
        });
        for text in texts {
            let said = &said[usize::from(text.contains("on GPU"))];
            assert!(text.contains(said), "{way}: {text}");
        }
    }
    let texts = failures(|queue| {
        let cells = queue.buffer_from(64, vec![1; 64])?;
        let stray = faults::stray_in_group { at: 9 };
        queue.task("local").launch(nd_range(64, 32), cells.read_write(one_to_one()), stray)?;
        queue.barrier()
    });
    for text in texts {
        let said =
            ["local memory has 32 values, so none at ", "index into local memory is out of bounds"];
        let said = said[usize::from(text.contains("on GPU"))];
        assert!(text.contains(said), "{text}");
    }
}

/// What filling and copying parts makes of two buffers, on every cluster and by loops.
fn filled_and_copied<T: Element + PartialEq + std::fmt::Debug, const D: usize>(
    value: impl Fn(usize) -> T + Sync,
    range: [usize; D],
    (part, offset): (Subrange<D>, [usize; D]),
) {
    let count = range.iter().product();
    let values = || (0..count).map(&value).collect::<Vec<T>>();
    let inside = |at: Subrange<D>, position: usize| {
        let (mut rest, mut place) = (position, 0);
        let mut index = [0; D];
        for dim in (0..D).rev() {
            (index[dim], rest) = (rest % range[dim], rest / range[dim]);
        }
        for (dim, index) in index.into_iter().enumerate() {
            let within = index.checked_sub(at.offset[dim])?;
            (within < at.range[dim]).then_some(())?;
            place = place * at.range[dim] + within;
        }
        Some(place)
    };
    let (there, mut places) = (Subrange { offset, range: part.range }, Vec::new());
    places.extend((0..count).filter(|&position| inside(part, position).is_some()));
    let expected: Vec<T> = (0..count)
        .map(|position| inside(there, position).map_or(value(7), |place| value(places[place])))
        .collect();
    for cluster in clusters() {
        let found = cluster.run(|queue| {
            let (u, v) = (queue.buffer_from(range, values())?, queue.buffer::<T, D>(range));
            let w = queue.buffer::<T, D>(range);
            v.fill(value(7))?;
            w.copy_from(&u)?;
            v.copy_part(&w, part, offset)?;
            w.fill_part(part, value(1))?;
            Ok([&v, &w].map(|buffer| queue.fence(buffer)?.wait().map(|copy| copy.into_vec())))
        });
        let [v, w] = found.unwrap().map(Result::unwrap);
        assert_eq!(v, expected);
        for (position, element) in w.into_iter().enumerate() {
            let kept = if inside(part, position).is_some() { 1 } else { position };
            assert_eq!(element, value(kept), "{position} of {range:?} beside {part}");
        }
    }
}

#[test]
fn buffers_are_filled_and_copied_on_devices() {
    let line = (Subrange::new([5], [900]), [100]);
    filled_and_copied(|i| i as u8, [1005], line);
    filled_and_copied(|i| [i as u8, (i >> 8) as u8, 9], [1005], line);
    filled_and_copied(|i| i as u16, [1005], (Subrange::new([1004], [1]), [0]));
    filled_and_copied(|i| i as f64, [1005], (Subrange::new([0], [1005]), [0]));
    let plane = (Subrange::new([3, 1], [20, 30]), [10, 0]);
    filled_and_copied(|i| i as u32, [33, 31], plane);
    filled_and_copied(|i| [i as f64; 3], [33, 31], plane);
    let block = (Subrange::new([1, 2, 0], [6, 5, 9]), [0, 0, 4]);
    filled_and_copied(|i| i as u64, [8, 7, 13], block);
    filled_and_copied(|i| [i as u32; 33], [8, 7, 13], block);
}
