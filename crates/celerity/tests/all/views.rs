//! Indices into views are those of the buffer: every view, in every form of task, on clusters and
//! splits that give chunks parts that begin anywhere, or nothing.

use celerity::prelude::*;
use celerity::{Error, Result, TaskBuilder};

use crate::common::{contents, indices, values};

/// Runs `program` on small clusters. One device works in the host's memory, several in their own.
fn on_every_cluster(program: impl Fn(&Queue) -> Result<()> + Sync) {
    for (nodes, devices) in [(1, 1), (1, 3), (2, 1), (3, 2)] {
        let outcome = Config::default().nodes(nodes).devices(devices).run(&program);
        outcome.unwrap_or_else(|error| panic!("on {nodes} nodes with {devices} devices: {error}"));
    }
}

/// The same, with each way to split an index space of two dimensions.
fn on_every_split(
    program: impl Fn(&Queue, &dyn Fn(&Queue) -> TaskBuilder<'_>) -> Result<()> + Sync,
) {
    let splits: [&[Hint]; 4] = [
        &[],
        &[Hint::SplitAlong(1)],
        &[Hint::TiledSplit, Hint::Oversubscribe(2)],
        &[Hint::Oversubscribe(5)],
    ];
    for hints in splits {
        on_every_cluster(|queue| {
            program(queue, &|queue| {
                hints.iter().fold(queue.task("split"), |task, hint| task.hint(*hint))
            })
        });
    }
}

#[test]
fn a_window_is_read_by_index_range_and_row() {
    on_every_cluster(|queue| {
        let near = || {
            mapper("window", |items: Chunk<1>, _| Subrange {
                offset: items.offset,
                range: [items.range[0] + 2],
            })
        };
        let a = queue.buffer_from(102, values(102))?;
        let (b, c) = (queue.buffer::<i64, 1>(100), queue.buffer::<i64, 1>(100));
        let task = queue.task("items").hint(Hint::Oversubscribe(3));
        task.parallel_for(100, (b.write(one_to_one()), a.read(near())), |item, (b, a)| {
            let [i] = item.id();
            assert_eq!(a[i..i + 3], [a[i], a[i + 1], a[[i + 2]]]);
            assert_eq!((a.get(i), a.get(i..=i + 2)), (Some(&a[i]), Some(&a[i..i + 3])));
            assert!(a[i..i].is_empty() && a.indices().contains(&i));
            *b = a[i..i + 3].iter().sum();
        })?;
        let accesses = (c.write(one_to_one()), a.read(near()));
        queue.task("rows").parallel_for_rows(100, accesses, |row, (c, a)| {
            let [start] = row.start();
            for (c, window) in c.iter_mut().zip(a[start..start + row.len() + 2].windows(3)) {
                *c = window.iter().sum();
            }
        })?;
        let expected: Vec<i64> = values(102).windows(3).map(|window| window.iter().sum()).collect();
        assert_eq!(contents(queue, &b)?, expected);
        assert_eq!(contents(queue, &c)?, expected);
        Ok(())
    });
}

/// Rows of different lengths, one behind the other, the first and the last of them empty: chunks
/// have parts that are empty, or end in one that is.
#[test]
fn what_is_empty_is_empty_on_every_split() {
    let lengths = (0..90_usize).map(|row| if (30..60).contains(&row) { row % 4 } else { 0 });
    let ends = lengths.scan(0, |end, length| {
        *end += length;
        Some(*end)
    });
    let ends: Vec<usize> = std::iter::once(0).chain(ends).collect();
    let entries = values(ends[90]);
    let expected: Vec<i64> =
        ends.windows(2).map(|ends| entries[ends[0]..ends[1]].iter().sum()).collect();
    on_every_cluster(|queue| {
        let starts = ends.clone();
        let own = mapper("entries of rows", move |rows: Chunk<1>, _| {
            let [first] = rows.offset;
            let (start, end) = (starts[first], starts[first + rows.range[0]]);
            Subrange { offset: [start], range: [end - start] }
        });
        let (a, sums) =
            (queue.buffer_from(entries.len(), entries.clone())?, queue.buffer::<i64, 1>(90));
        let ends = queue.buffer_from(91, ends.clone())?;
        let accesses = (sums.write(one_to_one()), ends.read(all()), a.read(own));
        let task = queue.task("sums").hint(Hint::Oversubscribe(4));
        task.parallel_for(90, accesses, |item, (sum, ends, a)| {
            *sum = a[ends[item[0]]..ends[item[0] + 1]].iter().sum();
        })?;
        assert_eq!(contents(queue, &sums)?, expected);
        Ok(())
    });
}

#[test]
fn rows_and_columns_are_indexed_as_in_the_buffer() {
    let [h, w] = [6, 10];
    let u = values(h * w);
    let row = |y: usize| &u[y * w..(y + 1) * w];
    let expected: Vec<i64> = indices([h, w])
        .map(|[y, x]| {
            row(y).iter().sum::<i64>() + (0..h).map(|y| row(y)[x]).sum::<i64>() + row(y)[x]
        })
        .collect();
    on_every_split(|queue, task| {
        let a = queue.buffer_from([h, w], u.clone())?;
        let (b, c) = (queue.buffer::<i64, 2>([h, w]), queue.buffer::<i64, 2>([h, w]));
        let accesses = (b.write(one_to_one()), a.read(slice(1)), a.read(slice(0)));
        task(queue).parallel_for([h, w], accesses, move |item, (b, rows, columns)| {
            let [y, x] = item.id();
            let (row, column) = (rows.row([y]), columns.along(0, [0, x]));
            assert_eq!((row.indices(), column.indices()), (0..w, 0..h));
            assert_eq!(
                (row[x], column[y], columns.row([y])[x]),
                (rows[[y, x]], rows[[y, x]], row[x])
            );
            *b = row.iter().sum::<i64>() + column.iter().sum::<i64>() + row[x];
        })?;
        let accesses = (c.write(one_to_one()), a.read(slice(1)), a.read(slice(0)));
        task(queue).parallel_for_rows([h, w], accesses, move |items, (c, rows, columns)| {
            let [y, first] = items.start();
            let here = &columns.row([y])[first..first + items.len()];
            for (i, c) in c.iter_mut().enumerate() {
                let column = columns.along(0, [0, first + i]);
                *c = rows.row([y])[0..w].iter().sum::<i64>()
                    + (0..h).map(|y| column[y]).sum::<i64>()
                    + here[i];
            }
        })?;
        assert_eq!(contents(queue, &b)?, expected);
        assert_eq!(contents(queue, &c)?, expected);
        Ok(())
    });
}

#[test]
fn parts_of_three_dimensions_are_indexed_as_in_the_buffer() {
    let [d, h, w] = [4, 6, 5];
    let u = values(d * h * w);
    let at = |z: usize, y: usize, x: usize| u[(z * h + y) * w + x];
    let expected: Vec<i64> = indices([d, h])
        .map(|[z, y]| (0..w).map(|x| at(z, y, x)).sum::<i64>() + at(z, y, w - 1) * at(z, y, 1))
        .collect();
    on_every_split(|queue, task| {
        let own = mapper("lines", |items: Chunk<2>, [_, _, w]: [usize; 3]| Subrange {
            offset: [items.offset[0], items.offset[1], 0],
            range: [items.range[0], items.range[1], w],
        });
        let (a, b) = (queue.buffer_from([d, h, w], u.clone())?, queue.buffer::<i64, 2>([d, h]));
        let accesses = (b.write(one_to_one()), a.read(own));
        task(queue).parallel_for([d, h], accesses, move |item, (b, a)| {
            let [z, y] = item.id();
            assert_eq!(a.along(0, [0, y, 1])[z], a[[z, y, 1]]);
            assert_eq!(a.along(1, [z, 0, 2])[y], a.row([z, y])[2]);
            assert!(a.row([z, y]).iter().eq(a.along(2, [z, y, 0]).iter()));
            *b = a.row([z, y])[0..w].iter().sum::<i64>() + a[[z, y, w - 1]] * a.row([z, y])[1];
        })?;
        assert_eq!(contents(queue, &b)?, expected);
        Ok(())
    });
}

#[test]
fn own_parts_are_written_by_index_range_and_iterator() {
    const BLOCK: usize = 7;
    let block = |items: Chunk<1>, _: [usize; 1]| Subrange {
        offset: [items.offset[0] * BLOCK],
        range: [items.range[0] * BLOCK],
    };
    on_every_cluster(|queue| {
        let out = queue.buffer::<i64, 1>(30 * BLOCK);
        // SAFETY: blocks have no elements in common.
        #[allow(unsafe_code)]
        let own = || unsafe { disjoint_mapper("blocks", block) };
        let a = queue.buffer_from(30 * BLOCK, values(30 * BLOCK))?;
        let accesses = (out.write(own()), a.read(mapper("blocks", block)));
        let task = queue.task("items").hint(Hint::Oversubscribe(2));
        task.parallel_for(30, accesses, |item, (mut out, a)| {
            let first = item[0] * BLOCK;
            assert_eq!((out.indices(), out.len()), (first..first + BLOCK, BLOCK));
            out[first..first + 3].copy_from_slice(&a[first..first + 3]);
            out[first + 3] = a[first + 3];
            out.set(first + 4, out[first + 3] - a[first + 3] + a[first + 4]);
            for (out, a) in out[first + 5..=first + 6].iter_mut().zip(&a[first + 5..first + 7]) {
                *out = *a;
            }
        })?;
        queue.task("rows").parallel_for_rows(30, out.read_write(own()), |row, mut out| {
            assert_eq!(out.indices().start, row.start()[0] * BLOCK);
            out.iter_mut().for_each(|out| *out += 1);
        })?;
        let expected: Vec<i64> = values(30 * BLOCK).iter().map(|a| a + 1).collect();
        assert_eq!(contents(queue, &out)?, expected);
        Ok(())
    });
}

#[test]
fn own_rows_are_written_by_index() {
    on_every_cluster(|queue| {
        let (rows, planes) = (queue.buffer::<i64, 2>([9, 6]), queue.buffer::<i64, 3>([9, 2, 4]));
        queue.task("rows").parallel_for([9, 1], rows.write(slice(1)), |item, mut rows| {
            let mut row = rows.row_mut([item[0]]);
            row.fill(-1);
            for x in 0..6 {
                row[x] += (item[0] * 10 + x) as i64 + 1;
            }
            assert!(rows.row([item[0]]).iter().is_sorted() && rows.row([item[0] + 1]).is_empty());
        })?;
        let task = queue.task("planes");
        task.parallel_for([9, 2, 1], planes.write(slice(2)), |item, mut planes| {
            let [z, y, _] = item.id();
            planes.row_mut([z, y])[1..3].fill((z * 10 + y) as i64);
            planes[[z, y, 0]] = 1;
            planes.row_mut([z, y])[3] = 3;
        })?;
        let expected: Vec<i64> = indices([9, 6]).map(|[y, x]| (y * 10 + x) as i64).collect();
        assert_eq!(contents(queue, &rows)?, expected);
        let row = |[z, y]: [usize; 2]| [1, (z * 10 + y) as i64, (z * 10 + y) as i64, 3];
        assert_eq!(contents(queue, &planes)?, indices([9, 2]).flat_map(row).collect::<Vec<_>>());
        Ok(())
    });
}

#[test]
fn fixed_parts_of_kernels_and_host_tasks_begin_where_they_do() {
    on_every_cluster(|queue| {
        let (line, plane) =
            (queue.buffer_from(20, values(20))?, queue.buffer_from([6, 7], values(42))?);
        let sums = queue.buffer::<i64, 1>(9);
        let some = || fixed(Subrange { offset: [8], range: [9] });
        let accesses = (sums.write(one_to_one()), line.read(some()));
        queue.task("kernel").parallel_for(9, accesses, |item, (sum, line)| {
            assert_eq!((line.indices(), line.get(7), line.get(17)), (8..17, None, None));
            *sum = line[8 + item[0]..17].iter().sum();
        })?;
        let part = fixed(Subrange { offset: [2, 3], range: [3, 2] });
        let accesses = (line.read_write(some()), plane.read(part));
        queue.host_task("host").once(accesses, |(mut line, plane)| {
            line[16] = plane[[2, 4]] + plane.row([3])[3] + plane.along(0, [0, 3])[4];
            line[9..12].fill(plane.rows().flatten().sum());
            assert_eq!((plane.len(), line.get(7), line.indices()), (6, None, 8..17));
        })?;
        let (line_before, u) = (values(20), values(42));
        let expected: Vec<i64> = (0..9).map(|i| line_before[8 + i..17].iter().sum()).collect();
        assert_eq!(contents(queue, &sums)?, expected);
        let mut expected = line_before;
        expected[16] = u[2 * 7 + 4] + u[3 * 7 + 3] + u[4 * 7 + 3];
        expected[9..12].fill(indices([3, 2]).map(|[y, x]| u[(y + 2) * 7 + x + 3]).sum());
        assert_eq!(contents(queue, &line)?, expected);
        Ok(())
    });
}

#[test]
fn whole_buffers_and_shared_elements_have_the_same_indices() {
    on_every_cluster(|queue| {
        let a = queue.buffer_from(40, values(40))?;
        let scalar = queue.buffer_from([], vec![3_i64])?;
        let counts = queue.buffer_from([8, 3], vec![0_i64; 24])?;
        let accesses = (counts.update(slice(1)), a.read(all()), scalar.read(all()));
        queue.task("count").parallel_for([8, 5], accesses, |item, (counts, a, scalar)| {
            let [y, x] = item.id();
            assert_eq!(a[y * 5..(y + 1) * 5][x], a[y * 5 + x]);
            counts.at([y, a[y * 5 + x] as usize % 3]).fetch_add(scalar[[]]);
        })?;
        let mut expected = vec![0; 24];
        for (i, value) in values(40).into_iter().enumerate() {
            expected[i / 5 * 3 + value as usize % 3] += 3;
        }
        assert_eq!(contents(queue, &counts)?, expected);
        Ok(())
    });
}

#[test]
fn an_index_that_was_not_declared_is_named_as_in_the_buffer() {
    let failure = |config: Config| {
        let outcome = config.run(|queue| {
            let u = queue.buffer_from([8, 4], values(32))?;
            let out = queue.buffer::<i64, 2>([8, 4]);
            let accesses = (out.write(one_to_one()), u.read(slice(1)));
            queue.task("above").parallel_for([8, 4], accesses, |item, (out, u)| {
                *out = u.row([item[0].saturating_sub(1)])[item[1]];
            })?;
            queue.barrier()
        });
        match outcome {
            Err(Error::Run(error)) => error.to_string(),
            other => panic!("row 3 was not declared for items of row 4: {other:?}"),
        }
    };
    let text = failure(Config::default().devices(2));
    let expected =
        "item [4, 0]: index [3, 0] is outside of what the access declared for this chunk";
    assert!(text.contains("\"above\"") && text.contains(expected), "{text}");
}

#[test]
fn a_task_may_have_twenty_accesses() {
    on_every_split(|queue, task| {
        let buffers: [Buffer<i64, 2>; 10] = std::array::from_fn(|_| queue.buffer([7, 9]));
        let [a, b, c, d, e, f, g, h, i, j] = buffers.each_ref().map(|it| it.write(one_to_one()));
        let number = |item: Item<2>| item.linear_id() as i64;
        task(queue).parallel_for([7, 9], (a, b, c, d, e, f, g, h, i, j), move |item, views| {
            let (a, b, c, d, e, f, g, h, i, j) = views;
            for (nth, place) in [a, b, c, d, e, f, g, h, i, j].into_iter().enumerate() {
                *place = number(item) * nth as i64;
            }
        })?;
        let sums: [Buffer<i64, 2>; 10] = std::array::from_fn(|_| queue.buffer([7, 9]));
        let [k, l, m, n, o, p, q, r, s, t] = sums.each_ref().map(|it| it.write(one_to_one()));
        let [a, b, c, d, e, f, g, h, i, j] = buffers.each_ref().map(|it| it.read(one_to_one()));
        let twenty = (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t);
        task(queue).parallel_for_rows([7, 9], twenty, |row, views| {
            let (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t) = views;
            let (inputs, sums) = ([a, b, c, d, e, f, g, h, i, j], [k, l, m, n, o, p, q, r, s, t]);
            for (nth, sum) in sums.into_iter().enumerate() {
                for at in 0..row.len() {
                    sum[at] = inputs[..=nth].iter().map(|input| input[at]).sum();
                }
            }
        })?;
        let [k, l, m, n, o, p, q, r, s, t] = sums.each_ref().map(|it| it.read(all()));
        queue.host_task("look").everywhere((k, l, m, n, o, p, q, r, s, t), |_, views| {
            let (k, l, m, n, o, p, q, r, s, t) = views;
            for (nth, sums) in [k, l, m, n, o, p, q, r, s, t].into_iter().enumerate() {
                let triangle = (nth * (nth + 1) / 2) as i64;
                assert_eq!(sums[[6, 8]], 62 * triangle);
            }
        })?;
        let [k, l, m, n, o, p, q, r, s, t] = sums.each_ref().map(Buffer::capture);
        let found = queue.barrier_with((k, l, m, n, o, p, q, r, s, t))?;
        assert_eq!(found.9[[3, 4]], 31 * 45);
        Ok(())
    });
}
