//! Programs that put parts of the model together which no example does: reductions of structs and of
//! several shapes in one kernel, results that are overwritten before anybody has looked, borders as wide
//! as the buffer, mappers that name nothing, handles that have come to another node. Each gives on any
//! cluster what a loop gives, under the eyes of the schedule checker.

use std::fmt::Debug;
use std::sync::{Barrier, Mutex};

use celerity::prelude::*;
use celerity::{CheckLevel, Element, Error, Operator, PlainData, Result, Sum, Xor};

/// Nodes and devices.
const CLUSTERS: [[usize; 2]; 5] = [[1, 1], [1, 3], [2, 2], [4, 1], [7, 2]];

/// What a program returns, which is the same on all clusters.
fn everywhere<R: PartialEq + Debug + Send>(program: impl Fn(&Queue) -> Result<R> + Sync) -> R {
    let on = |[nodes, devices]: [usize; 2]| {
        let config = Config::default().nodes(nodes).devices(devices).check(CheckLevel::Full);
        config.run(&program).unwrap_or_else(|error| panic!("on {nodes} × {devices}: {error}"))
    };
    let [one, others @ ..] = CLUSTERS.map(on);
    others.iter().for_each(|other| assert_eq!(*other, one));
    one
}

fn contents<T: Element, const D: usize>(queue: &Queue, buffer: &Buffer<T, D>) -> Result<Vec<T>> {
    Ok(queue.fence(buffer)?.wait()?.into_vec())
}

/// All indices of a box, row-major.
fn indices([d, h, w]: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (0..d).flat_map(move |z| (0..h).flat_map(move |y| (0..w).map(move |x| [z, y, x])))
}

/// What is known of some numbers.
#[derive(Clone, Copy, Debug, PartialEq, PlainData)]
#[repr(C)]
struct Moments {
    count: u64,
    sum: f64,
    extremes: [f32; 2],
}

#[derive(Clone, Copy)]
struct Joined;

impl Operator<Moments> for Joined {
    const IS_COMMUTATIVE: bool = true;

    fn identity(&self) -> Moments {
        Moments { count: 0, sum: 0.0, extremes: [f32::INFINITY, f32::NEG_INFINITY] }
    }

    fn combine(&self, one: Moments, other: Moments) -> Moments {
        let [least, greatest] = one.extremes;
        let extremes = [least.min(other.extremes[0]), greatest.max(other.extremes[1])];
        Moments { count: one.count + other.count, sum: one.sum + other.sum, extremes }
    }
}

#[test]
fn structs_and_small_integers_are_reduced_in_one_kernel_over_a_volume() {
    const OFFSET: [usize; 3] = [4, 5, 6];
    const RANGE: [usize; 3] = [9, 21, 30];
    let value = |at: [usize; 3]| (at[0] * 31 + at[1] * 7 + at[2]) as f32 * 0.37;
    let program = |hint, granularity: [usize; 3]| {
        everywhere(|queue| {
            let all = queue.buffer::<Moments, 0>([]);
            let by_parity = queue.buffer::<Moments, 3>([2, 2, 2]);
            let (sums, bits) = (queue.buffer::<u8, 1>(3), queue.buffer::<u16, 2>([2, 3]));
            let accesses =
                (all.reduce(Joined), by_parity.reduce(Joined), sums.reduce(Sum), bits.reduce(Xor));
            let task = queue.task("look").offset(OFFSET).hint(hint).granularity(granularity);
            task.parallel_for(RANGE, accesses, move |item, (all, by_parity, sums, bits)| {
                let (at, value) = (item.id(), value(item.id()));
                let one = Moments { count: 1, sum: value.into(), extremes: [value; 2] };
                all.combine(one);
                by_parity.combine_at(at.map(|index| index % 2), one);
                sums.combine_at(at[2] % 3, at[1] as u8);
                bits.combine_at([at[0] % 2, at[2] % 3], at[1] as u16);
            })?;
            let all = queue.fence(&all)?.wait()?[[]];
            let by_parity = contents(queue, &by_parity)?;
            Ok((all, by_parity, contents(queue, &sums)?, contents(queue, &bits)?))
        })
    };
    let identity = Joined.identity();
    let mut expected = (identity, vec![identity; 8], vec![0_u8; 3], vec![0_u16; 6]);
    for [z, y, x] in indices(RANGE).map(|at| [0, 1, 2].map(|dim| at[dim] + OFFSET[dim])) {
        let value = value([z, y, x]);
        let one = Moments { count: 1, sum: value.into(), extremes: [value; 2] };
        expected.0 = Joined.combine(expected.0, one);
        let parity = &mut expected.1[z % 2 * 4 + y % 2 * 2 + x % 2];
        *parity = Joined.combine(*parity, one);
        expected.2[x % 3] = expected.2[x % 3].wrapping_add(y as u8);
        expected.3[z % 2 * 3 + x % 3] ^= y as u16;
    }
    let is_close = |found: &Moments, expected: &Moments| {
        let difference = (found.sum - expected.sum).abs();
        (found.count, found.extremes) == (expected.count, expected.extremes) && difference < 1e-6
    };
    for hint in [Hint::BandSplit, Hint::TiledSplit, Hint::SplitAlong(2), Hint::Oversubscribe(3)] {
        for granularity in [[1, 1, 1], [2, 3, 5], [9, 1, 1], [1, 100, 1]] {
            let found = program(hint, granularity);
            assert!(is_close(&found.0, &expected.0), "{hint:?}, {granularity:?}: {:?}", found.0);
            let parities = found.1.iter().zip(&expected.1);
            assert!(parities.into_iter().all(|(found, expected)| is_close(found, expected)));
            assert_eq!((found.2, found.3), (expected.2.clone(), expected.3.clone()));
        }
    }
}

#[test]
fn results_are_overwritten_in_a_loop_before_anybody_looks() {
    const STEPS: u64 = 20;
    let found = everywhere(|queue| {
        let sums = queue.buffer_from(6, vec![0_u64; 6])?;
        let total = queue.buffer_from([], vec![1_u64])?;
        for step in 0..STEPS {
            let accesses =
                (sums.reduce(Sum).including_current(), total.reduce(Sum).including_current());
            queue.task("add").parallel_for([5, 7], accesses, move |item, (sums, total)| {
                sums.combine_at(item[1] % 6, step);
                total.combine(item[0] as u64);
            })?;
            match step % 5 {
                0 => {
                    let two = queue.task("two").offset(1);
                    two.parallel_for(2, sums.write(one_to_one()), move |_, sum| *sum = step)?;
                }
                1 => drop(total.fill(step)?),
                2 => drop(sums.fill_part(Subrange::new([4], [2]), 3)?),
                3 => {
                    let task = queue.host_task("all");
                    task.once(sums.write(all()), move |mut sums| sums.fill(step))?;
                }
                _ => {
                    let copy = queue.buffer::<u64, 1>(6);
                    copy.copy_from(&sums)?;
                    sums.copy_part(&copy, Subrange::new([0], [3]), [3])?;
                }
            }
        }
        Ok((contents(queue, &sums)?, queue.fence(&total)?.wait()?[[]]))
    });
    let (mut sums, mut total) = (vec![0; 6], 1);
    for step in 0..STEPS {
        for (row, column) in (0..5).flat_map(|row| (0..7).map(move |column| (row, column))) {
            sums[column % 6] += step;
            total += row;
        }
        match step % 5 {
            0 => sums[1..3].fill(step),
            1 => total = step,
            2 => sums[4..].fill(3),
            3 => sums.fill(step),
            _ => sums.copy_within(..3, 3),
        }
    }
    assert_eq!(found, (sums, total));
}

/// A result is made for whoever needs it first: a call on a device, an update, a capture on one node, a
/// task of no dimensions that reduces again.
#[test]
fn results_are_made_for_whatever_needs_them_first() {
    let found = everywhere(|queue| {
        let sums = queue.buffer::<u32, 1>(4).named("sums");
        let copy = queue.buffer::<u32, 1>(4);
        let add = || {
            queue.task("add").parallel_for([3, 4], sums.reduce(Sum), |item, sums| {
                sums.combine_at(item[1], 1 + item[0] as u32);
            })
        };
        add()?;
        let accesses = (copy.write(one_to_one()), sums.read(all()));
        queue.task("call").device_call(4, accesses, |_, (mut copy, sums)| {
            let (part, sums) = (copy.subrange(), sums.on_host()?);
            let mut copy = copy.on_host_mut()?;
            (part.offset[0]..part.offset[0] + part.range[0]).for_each(|at| copy[at] = sums[at]);
            Ok(())
        })?;
        add()?;
        let hits = queue.buffer::<u32, 0>([]);
        let accesses = (sums.update(one_to_one()), hits.reduce(Sum));
        queue.task("update").parallel_for(4, accesses, |item, (sums, hits)| {
            sums.at(item[0]).fetch_add(10);
            hits.combine(1);
        })?;
        queue.task("again").parallel_for([], hits.reduce(Sum).including_current(), |_, hits| {
            hits.combine(100);
        })?;
        let last = queue.nodes() - 1;
        let (on_last, none) = queue.barrier_with((
            hits.capture().on_node(last),
            sums.capture_part(Subrange::new([2], [0])),
        ))?;
        assert_eq!(on_last.is_some(), queue.node() == last);
        assert!(on_last.is_none_or(|hits| hits[[]] == 104) && none.as_slice().is_empty());
        Ok((contents(queue, &copy)?, contents(queue, &sums)?, queue.fence(&hits)?.wait()?[[]]))
    });
    assert_eq!(found, (vec![6; 4], vec![16; 4], 104));
}

/// A task without items writes nothing, so what is pending is not forgotten.
#[test]
fn tasks_without_items_overwrite_nothing() {
    let found = everywhere(|queue| {
        let (matrix, line) = (queue.buffer::<u32, 2>([3, 5]), queue.buffer::<u32, 1>(4));
        let one = queue.buffer::<u32, 0>([]);
        let accesses = (matrix.reduce(Sum), line.reduce(Sum), one.reduce(Sum));
        queue.task("add").parallel_for(100, accesses, |item, (matrix, line, one)| {
            matrix.combine_at([item[0] % 3, item[0] % 5], 1);
            line.combine_at(item[0] % 4, 1);
            one.combine(1);
        })?;
        let none = || queue.task("none");
        none().parallel_for([0, 5], matrix.write(slice(0)), |_, _| unreachable!())?;
        none().parallel_for(0, one.write(select([])), |_, _| unreachable!())?;
        none().parallel_for(0, line.write(even_split()), |_, _| unreachable!())?;
        let task = queue.host_task("none").distributed([0, 5]);
        task.submit(matrix.write(slice(0)), |_, _| unreachable!())?;
        let matrix = contents(queue, &matrix)?;
        Ok((matrix, contents(queue, &line)?, queue.fence(&one)?.wait()?[[]]))
    });
    let mut matrix = vec![0; 15];
    (0..100).for_each(|item| matrix[item % 3 * 5 + item % 5] += 1);
    assert_eq!(found, (matrix, vec![25; 4], 100));
}

/// Every item looks as far as the buffer is wide, to all sides, and what it sees is added up.
fn look_as_far_as_there_is(range: [usize; 3]) {
    let count: usize = range.iter().product();
    let [d, h, w] = range.map(|size| size as isize);
    let steps = move || {
        let lines = (-d..=d).flat_map(move |z| (-h..=h).map(move |y| [z, y]));
        lines.flat_map(move |[z, y]| (-w..=w).map(move |x| [z, y, x]))
    };
    let weight = |[z, y, x]: [isize; 3]| (3 * z + 5 * y + x + 40) as i64;
    let found = everywhere(|queue| {
        let u = queue.buffer_from(range, (0..count as i64).collect::<Vec<_>>())?;
        let (out, total) = (queue.buffer::<i64, 3>(range), queue.buffer::<i64, 0>([]));
        let ring = u.read(neighborhood(range).periodic());
        let accesses = (out.write(one_to_one()), ring, total.reduce(Sum));
        queue.task("look").parallel_for(range, accesses, move |_, (out, u, total)| {
            *out = steps().map(|step| weight(step) * u.at(step)).sum();
            total.combine(*out);
        })?;
        Ok((contents(queue, &out)?, queue.fence(&total)?.wait()?[[]]))
    });
    let seen = |at: [usize; 3], step: [isize; 3]| {
        let [z, y, x] =
            [0, 1, 2].map(|dim| (at[dim] as isize + step[dim]).rem_euclid(range[dim] as isize));
        ((z * h + y) * w + x) as i64
    };
    let of_item = |at| steps().map(|step| weight(step) * seen(at, step)).sum();
    let expected: Vec<i64> = indices(range).map(of_item).collect();
    let total = expected.iter().sum();
    assert_eq!(found, (expected, total), "{range:?}");
}

#[test]
fn borders_are_as_wide_as_the_buffer() {
    for range in [[1, 1, 1], [1, 1, 5], [2, 3, 4], [5, 1, 2]] {
        look_as_far_as_there_is(range);
    }
}

#[test]
fn mappers_name_nothing_for_some_chunks_or_for_all() {
    let found = everywhere(|queue| {
        let u = queue.buffer_from(12, (0..12_u32).collect::<Vec<_>>())?;
        let out = queue.buffer::<u32, 1>(12);
        let half = mapper("first half", |chunk: Chunk<1>, _: [usize; 1]| {
            let end = (chunk.offset[0] + chunk.range[0]).min(6);
            let start = chunk.offset[0].min(end);
            Subrange::new([start], [end - start])
        });
        let accesses = (out.write(one_to_one()), u.read(half));
        queue.task("half").parallel_for(12, accesses, |item, (out, u)| {
            *out = if item[0] < 6 { u[item[0]] } else { 0 };
        })?;
        let none = mapper("none", |_: Chunk<1>, _: [usize; 1]| Subrange::new([3], [0]));
        let nothing = region_mapper("nothing", |_: Chunk<1>, _: [usize; 1]| Vec::new());
        let accesses = (out.read_write(one_to_one()), u.read(none.clone()), u.read(nothing));
        queue.task("none").parallel_for(12, accesses, |item, (out, none, nothing)| {
            assert!(none.get(item[0]).is_none() && nothing.get(item[0]).is_none());
            *out += 2;
        })?;
        queue.host_task("none").everywhere(u.read(none), |_, u| assert!(u.get(3).is_none()))?;
        contents(queue, &out)
    });
    assert_eq!(found, [2, 3, 4, 5, 6, 7, 2, 2, 2, 2, 2, 2]);
}

/// Parts of a host task see the elements around them, those across opposite edges too, by their index
/// in the buffer.
#[test]
fn distributed_host_tasks_read_where_edges_meet() {
    const H: usize = 10;
    const W: usize = 3;
    let ring = neighborhood([2, 1]).periodic_along([0]);
    let found = everywhere(|queue| {
        let u = queue.buffer_from([H, W], (0..(H * W) as i64).collect::<Vec<_>>())?;
        let sums = queue.buffer::<i64, 2>([H, W]);
        let accesses = (u.read(ring), sums.write(one_to_one()));
        let task = queue.host_task("sum").distributed([H, W]);
        task.submit(accesses, |part, (u, mut sums)| {
            let Subrange { offset: [top, left], range: [rows, columns] } = part.subrange();
            for (y, x) in
                (top..top + rows).flat_map(|y| (left..left + columns).map(move |x| (y, x)))
            {
                let rows = [H - 2, H - 1, 0, 1, 2].map(|step| (y + step) % H);
                sums[[y, x]] = rows.iter().map(|&y| u[[y, x]]).sum();
            }
        })?;
        contents(queue, &sums)
    });
    let of = |y: usize, x: usize| (W * (y % H) + x) as i64;
    let sum = |y: usize, x: usize| [H - 2, H - 1, 0, 1, 2].iter().map(|step| of(y + step, x)).sum();
    let expected: Vec<i64> = (0..H * W).map(|at| sum(at / W, at % W)).collect();
    assert_eq!(found, expected);
}

/// Handles of one node in the hands of another are refused in whatever way they are used, and both go
/// on.
#[test]
fn handles_of_another_node_are_refused_and_the_run_goes_on() {
    let (shared, met) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let both_are_there = Barrier::new(2);
    let found = Config::default().nodes(2).run(|queue| {
        let (own, sum) = (queue.buffer_from(3, vec![1; 3])?.named("own"), queue.buffer([]));
        let (sum, log) = (sum.named("sum"), queue.host_object(1).named("log"));
        queue.task("add").parallel_for(3, sum.reduce(Sum), |_, sum| sum.combine(1))?;
        shared.lock().unwrap().push((queue.node(), own.clone(), sum.clone(), log));
        both_are_there.wait();
        let is_other = |(node, ..): &&(usize, _, _, _)| *node != queue.node();
        let (_, buffer, number, log) =
            shared.lock().unwrap().iter().find(is_other).unwrap().clone();
        let task = || queue.task("use");
        // Judged behind the run: who panics here would leave the other waiting.
        let outcomes = [
            task().parallel_for(3, buffer.read(one_to_one()), |_, _| ()).map(drop),
            task()
                .parallel_for(3, (own.read(one_to_one()), buffer.write(one_to_one())), |_, _| ())
                .map(drop),
            task().parallel_for(3, number.reduce(Sum), |_, _| ()).map(drop),
            task().parallel_for(3, number.reduce(Sum).including_current(), |_, _| ()).map(drop),
            queue.fence(&number).map(drop),
            queue.barrier_with(number.capture()).map(drop),
            own.copy_from(&buffer).map(drop),
            queue.barrier_with((own.capture(), log.capture())).map(drop),
            queue.host_task("use").once(log.relaxed(), |_| ()).map(drop),
            queue.fence_object(&log).map(drop),
            log.take(queue).map(drop),
        ];
        met.lock().unwrap().extend(outcomes);
        both_are_there.wait();
        shared.lock().unwrap().clear();
        Ok((contents(queue, &own)?, queue.fence(&sum)?.wait()?[[]]))
    });
    assert_eq!(found.unwrap(), (vec![1; 3], 3));
    for outcome in met.into_inner().unwrap() {
        let error = outcome.expect_err("it is another node's");
        let name = match error {
            Error::ForeignBuffer { .. } => ["\"own\"", "\"sum\""],
            Error::ForeignObject { .. } => ["\"log\""; 2],
            other => panic!("{other}"),
        };
        let text = error.to_string();
        assert!(name.iter().any(|name| text.contains(name)), "{text}");
        for part in ["another run or node", "at ", "model_programs.rs:"] {
            assert!(text.contains(part), "\"{text}\" does not say \"{part}\"");
        }
    }
}
