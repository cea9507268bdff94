//! Every kind of access in every form of task, on every small cluster, compared
//! with loops that a reader can check.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use celerity::prelude::*;
use celerity::{Result, TaskBuilder};

use crate::common::{contents, indices, values};

/// Runs `program` on 1 to 4 nodes with 1 to 3 devices each.
fn on_every_cluster(program: impl Fn(&Queue) -> Result<()> + Sync) {
    for (nodes, devices) in (1..=4).flat_map(|nodes| (1..=3).map(move |devices| (nodes, devices))) {
        let outcome = Config::default().nodes(nodes).devices(devices).run(&program);
        outcome.unwrap_or_else(|error| panic!("on {nodes} nodes with {devices} devices: {error}"));
    }
}

#[test]
fn one_to_one_items() {
    on_every_cluster(|queue| {
        let range = [13, 7];
        let a = queue.buffer_from(range, values(91))?;
        let b = queue.buffer::<i64, 2>(range);
        let accesses = (b.write(one_to_one()), a.read(one_to_one()));
        queue.task("write").parallel_for(range, accesses, |item, (b, a)| {
            assert_eq!(item.range(), [13, 7]);
            *b = 2 * a + item.linear_id() as i64;
        })?;
        queue.task("update").parallel_for(range, b.read_write(one_to_one()), |_, b| *b += 1)?;
        let expected: Vec<i64> =
            values(91).iter().enumerate().map(|(i, a)| 2 * a + i as i64 + 1).collect();
        assert_eq!(contents(queue, &b)?, expected);
        Ok(())
    });
}

#[test]
fn one_to_one_rows() {
    on_every_cluster(|queue| {
        let range = [5, 4, 9];
        let a = queue.buffer_from(range, values(180))?;
        let b = queue.buffer::<i64, 3>(range);
        let accesses = (a.read(one_to_one()), b.write(one_to_one()));
        queue.task("write").parallel_for_rows(range, accesses, |row, (a, b)| {
            assert_eq!((a.len(), b.len()), (row.len(), row.len()));
            for (i, item) in row.items().enumerate() {
                b[i] = a[i] * item.linear_id() as i64;
            }
        })?;
        queue.task("update").parallel_for_rows(range, b.read_write(one_to_one()), |_, b| {
            b.iter_mut().for_each(|b| *b -= 3);
        })?;
        let expected: Vec<i64> =
            values(180).iter().enumerate().map(|(i, a)| a * i as i64 - 3).collect();
        assert_eq!(contents(queue, &b)?, expected);
        Ok(())
    });
}

#[test]
fn no_dimensions_and_one() {
    on_every_cluster(|queue| {
        let scalar = queue.buffer::<i64, 0>([]);
        let line = queue.buffer::<i64, 1>(20);
        queue.task("scalar").parallel_for([], scalar.write(one_to_one()), |item, scalar| {
            assert_eq!(item.id(), []);
            *scalar = 42;
        })?;
        let accesses = (line.write(one_to_one()), scalar.read(all()));
        queue.task("line").parallel_for(20, accesses, |item, (line, scalar)| {
            *line = scalar[[]] + item[0] as i64;
        })?;
        queue.task("row").parallel_for_rows(
            [],
            scalar.read_write(one_to_one()),
            |row, scalar| {
                assert_eq!(row.len(), 1);
                scalar[0] += 1;
            },
        )?;
        assert_eq!(contents(queue, &scalar)?, [43]);
        assert_eq!(contents(queue, &line)?, (42..62).collect::<Vec<_>>());
        Ok(())
    });
}

/// The sum of a 5-point and a diagonal stencil at the edge-clamped `[y, x]`, plus
/// the number of neighbours inside.
fn stencil([h, w]: [usize; 2], a: &[i64], [y, x]: [usize; 2]) -> i64 {
    let (y, x) = (y as i64, x as i64);
    let clamped = |y: i64, x: i64| {
        a[y.clamp(0, h as i64 - 1) as usize * w + x.clamp(0, w as i64 - 1) as usize]
    };
    let inside =
        |y: i64, x: i64| i64::from((0..h as i64).contains(&y) && (0..w as i64).contains(&x));
    3 * clamped(y, x) - clamped(y - 1, x)
        + 5 * clamped(y, x + 2)
        + 7 * clamped(y + 1, x - 2)
        + 11 * inside(y - 1, x + 1)
        + 13 * inside(y, x - 2)
}

#[test]
fn neighborhoods_of_items_and_rows() {
    for range in [[12, 9], [1, 30], [30, 1], [3, 3]] {
        on_every_cluster(|queue| {
            let a = queue.buffer_from(range, values(range[0] * range[1]))?;
            let (b, c) = (queue.buffer::<i64, 2>(range), queue.buffer::<i64, 2>(range));
            let near = || a.read(neighborhood([1, 2]));
            queue.task("items").hint(Hint::TiledSplit).parallel_for(
                range,
                (b.write(one_to_one()), near()),
                |_, (b, a)| {
                    *b = 3 * a.clamped([0, 0]) - a.clamped([-1, 0])
                        + 5 * a.clamped([0, 2])
                        + 7 * a.clamped([1, -2])
                        + 11 * i64::from(a.get([-1, 1]).is_some())
                        + 13 * i64::from(a.get([0, -2]).is_some());
                },
            )?;
            queue.task("rows").parallel_for_rows(
                range,
                (near(), c.write(one_to_one())),
                |row, (a, c)| {
                    let (here, up) = (a.clamped([0, 0]), a.clamped([-1, 0]));
                    let (right, corner) = (a.clamped([0, 2]), a.clamped([1, -2]));
                    let up_right = 11 * i64::from(a.get([-1, 1]).is_some());
                    let left = 13 * i64::from(a.get([0, -2]).is_some());
                    for i in 0..row.len() {
                        c[i] = 3 * here[i] - up[i] + 5 * right[i] + 7 * corner[i] + up_right + left;
                    }
                },
            )?;
            let a = values(range[0] * range[1]);
            let expected: Vec<i64> = indices(range).map(|at| stencil(range, &a, at)).collect();
            assert_eq!(contents(queue, &b)?, expected, "items over {range:?}");
            assert_eq!(contents(queue, &c)?, expected, "rows over {range:?}");
            Ok(())
        });
    }
}

#[test]
fn neighborhoods_along_axes_in_three_dimensions() {
    on_every_cluster(|queue| {
        let range = [5, 6, 7];
        let a = queue.buffer_from(range, values(210))?;
        let (b, c) = (queue.buffer::<i64, 3>(range), queue.buffer::<i64, 3>(range));
        let near = || a.read(neighborhood_along_axes([1, 2, 1]));
        let accesses = (near(), b.write(one_to_one()));
        queue.task("items").parallel_for(range, accesses, |_, (a, b)| {
            *b = a.clamped([-1, 0, 0]) + 2 * a.clamped([0, 2, 0]) + 3 * a.clamped([0, 0, 1]);
        })?;
        let accesses = (near(), c.write(one_to_one()));
        queue.task("rows").parallel_for_rows(range, accesses, |row, (a, c)| {
            let (u, v, w) = (a.clamped([-1, 0, 0]), a.clamped([0, 2, 0]), a.clamped([0, 0, 1]));
            for i in 0..row.len() {
                c[i] = u[i] + 2 * v[i] + 3 * w[i];
            }
        })?;
        let a = values(210);
        let at = |z: usize, y: usize, x: usize| a[(z * 6 + y.min(5)) * 7 + x.min(6)];
        let expected: Vec<i64> = (0..210_usize)
            .map(|i| (i / 42, i / 7 % 6, i % 7))
            .map(|(z, y, x)| {
                at(z.saturating_sub(1), y, x) + 2 * at(z, y + 2, x) + 3 * at(z, y, x + 1)
            })
            .collect();
        assert_eq!(contents(queue, &b)?, expected);
        assert_eq!(contents(queue, &c)?, expected);
        Ok(())
    });
}

#[test]
fn steps_of_a_simulation_exchange_their_halos() {
    on_every_cluster(|queue| {
        let mut u = queue.buffer_from([17], values(17))?.named("u");
        let mut v = queue.buffer::<i64, 1>([17]).named("v");
        let mut expected = values(17);
        for _ in 0..25 {
            let accesses = (v.write(one_to_one()), u.read(neighborhood([1])));
            queue.task("step").parallel_for(17, accesses, |_, (v, u)| {
                *v = (u.clamped([-1]) + 2 * u.clamped([0]) + 3 * u.clamped([1])) % 10_007;
            })?;
            std::mem::swap(&mut u, &mut v);
            let at = |i: usize| expected[i.min(16)];
            let step = |i: usize| at(i.saturating_sub(1)) + 2 * at(i) + 3 * at(i + 1);
            expected = (0..17).map(|i| step(i) % 10_007).collect();
        }
        assert_eq!(contents(queue, &u)?, expected);
        Ok(())
    });
}

#[test]
fn whole_buffers() {
    on_every_cluster(|queue| {
        let a = queue.buffer_from([6, 5], values(30))?;
        let (b, c) = (queue.buffer::<i64, 1>([11]), queue.buffer::<i64, 1>([11]));
        let accesses = (a.read(all()), b.write(one_to_one()));
        queue.task("items").parallel_for(11, accesses, |item, (a, b)| {
            *b = a.iter().sum::<i64>() * item[0] as i64 + a[[2, 3]] + a.row([5])[4];
        })?;
        let accesses = (c.write(one_to_one()), b.read(all()));
        queue.task("rows").parallel_for_rows(11, accesses, |row, (c, b)| {
            for (c, item) in c.iter_mut().zip(row.items()) {
                *c = b[10 - item[0]] - b.as_slice()[0];
            }
        })?;
        let a = values(30);
        let sum: i64 = a.iter().sum();
        let b: Vec<i64> = (0..11).map(|i| sum * i + a[13] + a[29]).collect();
        let expected: Vec<i64> = (0..11).map(|i| b[10 - i] - b[0]).collect();
        assert_eq!(contents(queue, &c)?, expected);
        Ok(())
    });
}

#[test]
fn fixed_parts() {
    on_every_cluster(|queue| {
        let a = queue.buffer_from([8, 8], values(64))?;
        let (b, c) = (queue.buffer::<i64, 1>([9]), queue.buffer::<i64, 1>([9]));
        let part = Subrange { offset: [2, 3], range: [2, 4] };
        let accesses = (b.write(one_to_one()), a.read(fixed(part)));
        queue.task("items").parallel_for(9, accesses, |item, (b, a)| {
            assert_eq!(a.get([2, 2]), None);
            *b = a[[2, 3]] + a.row([3])[3 + item[0] % 4];
        })?;
        let accesses = (a.read(fixed(part)), c.write(one_to_one()));
        queue.task("rows").parallel_for_rows(9, accesses, |row, (a, c)| {
            for (i, item) in row.items().enumerate() {
                c[i] = a[[2, 3]] + a[[3, 3 + item[0] % 4]];
            }
        })?;
        let a = values(64);
        let expected: Vec<i64> = (0..9).map(|i| a[19] + a[27 + i % 4]).collect();
        assert_eq!(contents(queue, &b)?, expected);
        assert_eq!(contents(queue, &c)?, expected);
        Ok(())
    });
}

#[test]
fn slices_multiply_matrices() {
    on_every_cluster(|queue| {
        let n = 9;
        let a = queue.buffer_from([n, n], values(n * n))?;
        let b = queue.buffer_from([n, n], values(n * n))?;
        let (c, d) = (queue.buffer::<i64, 2>([n, n]), queue.buffer::<i64, 2>([n, n]));
        let factors = || (a.read(slice(1)), b.read(slice(0)));
        let (rows, columns) = factors();
        let accesses = (rows, columns, c.write(one_to_one()));
        queue.task("items").parallel_for([n, n], accesses, move |item, (a, b, c)| {
            let [y, x] = item.id();
            *c = a.row([y]).iter().enumerate().map(|(k, a)| a * b[[k, x]]).sum();
        })?;
        let (rows, columns) = factors();
        let accesses = (d.write(one_to_one()), rows, columns);
        queue.task("rows").parallel_for_rows([n, n], accesses, move |row, (d, a, b)| {
            for (d, item) in d.iter_mut().zip(row.items()) {
                let [y, x] = item.id();
                *d = (0..n).map(|k| a[[y, k]] * b[[k, x]]).sum();
            }
        })?;
        let a = values(n * n);
        let expected: Vec<i64> = indices([n, n])
            .map(|[y, x]| (0..n).map(|k| a[y * n + k] * a[k * n + x]).sum())
            .collect();
        assert_eq!(contents(queue, &c)?, expected);
        assert_eq!(contents(queue, &d)?, expected);
        Ok(())
    });
}

#[test]
fn slices_are_written_by_their_items() {
    on_every_cluster(|queue| {
        let (a, b) = (queue.buffer::<i64, 2>([6, 5]), queue.buffer::<i64, 2>([6, 5]));
        queue.task("items").parallel_for([6, 1], a.write(slice(1)), |item, mut a| {
            let [y, _] = item.id();
            a.row_mut([y]).fill(y as i64);
            a.set([y, 3], -1);
        })?;
        queue.task("rows").parallel_for_rows([1, 5], b.write(slice(0)), |row, mut b| {
            for [_, x] in row.items().map(|item| item.id()) {
                (0..6).for_each(|y| b[[y, x]] = (10 * y + x) as i64);
            }
        })?;
        let expected: Vec<i64> =
            indices([6, 5]).map(|[y, x]| if x == 3 { -1 } else { y as i64 }).collect();
        assert_eq!(contents(queue, &a)?, expected);
        let expected: Vec<i64> = indices([6, 5]).map(|[y, x]| (10 * y + x) as i64).collect();
        assert_eq!(contents(queue, &b)?, expected);
        Ok(())
    });
}

fn transposed(chunk: Chunk<2>, _buffer: [usize; 2]) -> Subrange<2> {
    let flip = |[y, x]: [usize; 2]| [x, y];
    Subrange { offset: flip(chunk.offset), range: flip(chunk.range) }
}

#[test]
#[allow(unsafe_code)]
fn user_mappers_transpose() {
    on_every_cluster(|queue| {
        let a = queue.buffer_from([5, 8], values(40))?;
        let read = mapper("transposed", transposed);
        // SAFETY: a transposition maps different indices to different indices.
        let write = unsafe { disjoint_mapper("transposed", transposed) };
        let (b, c) = (queue.buffer::<i64, 2>([8, 5]), queue.buffer::<i64, 2>([8, 5]));
        let (d, e) = (queue.buffer::<i64, 2>([8, 5]), queue.buffer::<i64, 2>([5, 8]));
        let accesses = (b.write(one_to_one()), a.read(read.clone()));
        queue.task("read items").parallel_for([8, 5], accesses, |item, (b, a)| {
            *b = a[[item[1], item[0]]];
        })?;
        let accesses = (c.write(one_to_one()), a.read(read));
        queue.task("read rows").parallel_for_rows([8, 5], accesses, |row, (c, a)| {
            for (c, item) in c.iter_mut().zip(row.items()) {
                *c = a[[item[1], item[0]]];
            }
        })?;
        let accesses = (d.write(write.clone()), a.read(one_to_one()));
        queue.task("write items").parallel_for([5, 8], accesses, |item, (mut d, a)| {
            d[[item[1], item[0]]] = *a;
        })?;
        let accesses = (e.write(write), d.read(one_to_one()));
        queue.task("write rows").parallel_for_rows([8, 5], accesses, |row, (mut e, d)| {
            for (d, item) in d.iter().zip(row.items()) {
                e[[item[1], item[0]]] = *d;
            }
        })?;
        let a = values(40);
        let expected: Vec<i64> = indices([8, 5]).map(|[y, x]| a[x * 8 + y]).collect();
        assert_eq!(contents(queue, &b)?, expected);
        assert_eq!(contents(queue, &c)?, expected);
        assert_eq!(contents(queue, &d)?, expected);
        assert_eq!(contents(queue, &e)?, a);
        Ok(())
    });
}

#[test]
fn host_tasks_run_once_between_kernels() {
    on_every_cluster(|queue| {
        let a = queue.buffer::<i64, 2>([4, 6]);
        let b = queue.buffer::<i64, 2>([4, 6]);
        let c = queue.buffer::<i64, 1>([3]);
        queue.task("fill").parallel_for([4, 6], a.write(one_to_one()), |item, a| {
            *a = item.linear_id() as i64;
        })?;
        queue.host_task("whole").once((a.read(all()), b.write(all())), |(a, mut b)| {
            for (b, a) in b.rows_mut().zip(a.rows()) {
                b.iter_mut().zip(a.iter().rev()).for_each(|(b, a)| *b = 10 * a);
            }
            b[[0, 0]] += a[[3, 5]];
        })?;
        let part = fixed(Subrange { offset: [1, 2], range: [2, 3] });
        queue.host_task("part").once((b.read_write(part), c.write(all())), |(mut b, mut c)| {
            c.copy_from_slice(&b.row([2])[2..5]);
            b.row_mut([1]).fill(-1);
            b.set([2, 4], -2);
        })?;
        queue.task("after").parallel_for([4, 6], b.read_write(one_to_one()), |_, b| *b += 1)?;
        let mut expected: Vec<i64> =
            indices([4, 6]).map(|[y, x]| 10 * (y * 6 + 5 - x) as i64 + 1).collect();
        expected[0] += 23;
        expected[8..11].fill(0);
        expected[16] = -1;
        assert_eq!(contents(queue, &b)?, expected);
        assert_eq!(contents(queue, &c)?, [150, 140, 130]);
        Ok(())
    });
}

#[test]
fn a_kernel_has_up_to_eight_accesses() {
    on_every_cluster(|queue| {
        let given: Vec<Buffer<u16, 1>> =
            (0..7).map(|i| queue.buffer_from(10, vec![1 << i; 10])).collect::<Result<_>>()?;
        let [a, b, c, d, e, f, g] = [0, 1, 2, 3, 4, 5, 6].map(|i| given[i].read(one_to_one()));
        let sum = queue.buffer::<u16, 1>(10);
        queue.task("sum").parallel_for(
            10,
            (sum.write(one_to_one()), a, b, c, d, e, f, g),
            |_, (sum, a, b, c, d, e, f, g)| *sum = a + b + c + d + e + f + g,
        )?;
        assert_eq!(contents(queue, &sum)?, [127; 10]);
        Ok(())
    });
}

#[test]
fn a_kernel_without_accesses_runs_for_every_item() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let program = move |queue: &Queue| {
        let count = counted.clone();
        queue.task("count").parallel_for([10, 10], (), move |_, ()| {
            count.fetch_add(1, Ordering::Relaxed);
        })?;
        queue.barrier()
    };
    Config::default().nodes(3).devices(2).run(program).unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 100);
}

#[test]
fn chunks_are_multiples_of_the_granularity() {
    on_every_cluster(|queue| {
        let a = queue.buffer::<u32, 2>([16, 12]);
        queue.task("fill").hint(Hint::TiledSplit).granularity([8, 4]).parallel_for(
            [16, 12],
            a.write(one_to_one()),
            |item, a| *a = item.linear_id() as u32,
        )?;
        assert_eq!(contents(queue, &a)?, (0..192).collect::<Vec<_>>());
        Ok(())
    });
}

/// All chunks that a task over `range` is cut into on two nodes with two devices each, and what it is cut from.
fn chunks_of<const K: usize>(
    range: [usize; K],
    task: impl for<'q> Fn(TaskBuilder<'q>) -> TaskBuilder<'q> + Sync,
) -> BTreeSet<([usize; K], [usize; K])> {
    let asked = Arc::new(Mutex::new(BTreeSet::new()));
    let asking = asked.clone();
    let program = move |queue: &Queue| {
        let asked = asking.clone();
        let (all, one) = (queue.buffer::<u32, K>(range), queue.buffer_from([], vec![3])?);
        let whole = mapper("whole", move |chunk: Chunk<K>, _: [usize; 0]| {
            asked.lock().unwrap().insert((chunk.offset, chunk.range));
            Subrange::new([], [])
        });
        let accesses = (all.write(one_to_one()), one.read(whole));
        task(queue.task("set")).parallel_for(range, accesses, |item, (all, one)| {
            *all = one[[]] + item.linear_id() as u32;
        })?;
        let expected = (0..range.iter().product::<usize>()).map(|at| 3 + at as u32);
        assert_eq!(contents(queue, &all)?, expected.collect::<Vec<_>>());
        Ok(())
    };
    Config::default().nodes(2).devices(2).run(program).unwrap();
    Arc::into_inner(asked).unwrap().into_inner().unwrap()
}

#[test]
fn a_space_without_room_for_two_bands_is_cut_where_it_has() {
    let quarters = chunks_of([1, 8], |task| task);
    assert!((0..4).all(|quarter| quarters.contains(&([0, 2 * quarter], [1, 2]))), "{quarters:?}");
    let deep = chunks_of([1, 1, 12], |task| task.granularity([1, 1, 3]));
    assert!(deep.contains(&([0, 0, 9], [1, 1, 3])), "{deep:?}");
    let one_granule = chunks_of([4, 6], |task| task.granularity([4, 2]));
    assert!(one_granule.contains(&([0, 0], [4, 4])), "{one_granule:?}");
    // Two bands are what the slowest dimension has room for.
    let bands = chunks_of([2, 8], |task| task);
    assert!(bands.iter().all(|(_, [_, wide])| *wide == 8), "{bands:?}");
    let as_asked = chunks_of([1, 8], |task| task.hint(Hint::BandSplit));
    assert_eq!(as_asked, BTreeSet::from([([0, 0], [1, 8])]));
}

#[test]
fn a_row_that_updates_shared_elements_stays_whole() {
    on_every_cluster(|queue| {
        let counts = queue.buffer_from([1, 3], vec![0_u64; 3])?;
        let update = counts.update(slice(1));
        queue.task("count").parallel_for([1, 50], update, |item, counts| {
            counts.at([0, item[1] % 3]).fetch_add(1);
        })?;
        assert_eq!(contents(queue, &counts)?, [17, 17, 16]);
        let sums = queue.buffer_from([1, 50], vec![1_u64; 50])?;
        queue.task("own").parallel_for([1, 50], sums.update(one_to_one()), |item, sums| {
            sums.at([0, item[1]]).fetch_add(1);
        })?;
        assert_eq!(contents(queue, &sums)?, [2; 50]);
        Ok(())
    });
}

#[test]
fn hints_change_how_work_is_cut_and_not_what_it_does() {
    let hints = [
        &[Hint::SplitAlong(1)][..],
        &[Hint::SplitAlong(0), Hint::Oversubscribe(3)],
        &[Hint::TiledSplit, Hint::Oversubscribe(4)],
        &[Hint::Oversubscribe(1000)],
    ];
    for hints in hints {
        on_every_cluster(|queue| {
            let (from, to) = (queue.buffer_from([9, 14], values(126))?, queue.buffer([9, 14]));
            for _ in 0..3 {
                let accesses = (to.write(one_to_one()), from.read(neighborhood([1, 1])));
                let task = hints.iter().fold(queue.task("blur"), |task, &hint| task.hint(hint));
                task.granularity([1, 2]).parallel_for([9, 14], accesses, |_, (to, from)| {
                    *to = from.clamped([-1, 0]) + 3 * from.clamped([0, 1]);
                })?;
                let accesses = (from.write(one_to_one()), to.read(one_to_one()));
                queue.task("back").parallel_for([9, 14], accesses, |_, (from, to)| *from = *to)?;
            }
            let mut expected = values(126);
            for _ in 0..3 {
                let old = expected.clone();
                let blurred = indices([9, 14]).map(|[y, x]| {
                    old[y.saturating_sub(1) * 14 + x] + 3 * old[y * 14 + (x + 1).min(13)]
                });
                expected = blurred.collect();
            }
            assert_eq!(contents(queue, &from)?, expected);
            Ok(())
        });
    }
}

#[test]
fn nothing_to_do_is_fine() {
    on_every_cluster(|queue| {
        let empty = queue.buffer::<f32, 2>([0, 5]);
        let from_nothing = queue.buffer_from([3, 0], Vec::<f32>::new())?;
        let some = queue.buffer::<f32, 1>([4]);
        queue.task("none").parallel_for([0, 5], empty.write(one_to_one()), |_, _| panic!())?;
        queue.task("none").parallel_for_rows(0, some.write(one_to_one()), |_, _| panic!())?;
        let accesses = (some.write(one_to_one()), empty.read(all()), from_nothing.read(all()));
        queue.task("reads nothing").parallel_for([4], accesses, |_, (some, a, b)| {
            *some = (a.len() + b.rows().len()) as f32;
        })?;
        queue.host_task("nothing").once(empty.read(all()), |empty| assert!(empty.is_empty()))?;
        assert_eq!(contents(queue, &empty)?, []);
        assert_eq!(contents(queue, &some)?, [0.0; 4]);
        Ok(())
    });
}

#[test]
fn the_queue_knows_its_place() {
    let nodes = std::sync::Mutex::new(Vec::new());
    let root = Config::default().nodes(4).devices(2).run(|queue| {
        assert_eq!((queue.nodes(), queue.devices()), (4, 2));
        assert_eq!(queue.is_root(), queue.node() == 0);
        nodes.lock().unwrap().push(queue.node());
        Ok(queue.node())
    });
    assert_eq!(root.unwrap(), 0);
    let mut nodes = nodes.into_inner().unwrap();
    nodes.sort_unstable();
    assert_eq!(nodes, [0, 1, 2, 3]);
}
