//! Accesses, captures and fences in lists: of as many buffers as a program finds when it runs, and of kernels.

use celerity::prelude::*;
use celerity::{Error, Fence, Sum, WriteAccess};

use crate::common::{clusters, everywhere, indices, values};

/// Sizes of blocks, of none up to many.
const BLOCKS: [&[usize]; 4] = [&[], &[4], &[3, 0, 7], &[1; 90]];

fn cpus() -> impl Iterator<Item = Config> {
    clusters([[1, 1], [1, 3], [2, 1], [3, 2]])
}

fn blocks(queue: &Queue, sizes: &[usize]) -> celerity::Result<Vec<Buffer<i64, 1>>> {
    sizes.iter().map(|&size| queue.buffer_from(size, values(size))).collect()
}

#[test]
fn a_host_task_reads_and_writes_as_many_buffers_as_there_are() {
    for sizes in BLOCKS {
        let mut expected: Vec<Vec<i64>> = sizes.iter().map(|&size| values(size)).collect();
        let sum: i64 = expected.iter().flatten().sum();
        expected.iter_mut().flatten().for_each(|value| *value = 2 * *value + sum);
        let found: Vec<Vec<i64>> = everywhere(cpus(), |queue| {
            let (olds, news) = (blocks(queue, sizes)?, blocks(queue, sizes)?);
            for (old, new) in olds.iter().zip(&news) {
                let accesses = (new.write(one_to_one()), old.read(one_to_one()));
                let size = old.range();
                queue
                    .task("double")
                    .parallel_for(size, accesses, |_, (new, old)| *new = 2 * old)?;
            }
            let reads: Vec<_> = olds.iter().map(|block| block.read(all())).collect();
            let writes: Vec<_> = news.iter().map(|block| block.read_write(all())).collect();
            let last = queue.nodes() - 1;
            let task = queue.host_task("add the sum").on_node(last);
            task.once((reads, writes), move |(olds, news)| {
                let sum: i64 = olds.iter().flat_map(|old| old.as_slice()).sum();
                for mut new in news {
                    new.as_mut_slice().iter_mut().for_each(|value| *value += sum);
                }
            })?;
            let captures = news.iter().map(|block| block.capture()).collect::<Vec<_>>();
            Ok(queue.barrier_with(captures)?.into_iter().map(|block| block.into_vec()).collect())
        });
        assert_eq!(found, expected, "{sizes:?}");
    }
}

#[test]
fn arrays_are_lists_whose_number_is_known() {
    let expected = [0, 1, 2].map(|k| values(12).iter().map(|value| value + k).collect::<Vec<_>>());
    let found = everywhere(cpus(), |queue| {
        let rows = [0; 3].map(|_| queue.buffer::<i64, 2>([4, 3]));
        let given = queue.buffer_from([4, 3], values(12))?;
        let writes = rows.each_ref().map(|row| row.write(one_to_one()));
        let task = queue.host_task("rows").distributed([4, 3]);
        task.submit((writes, given.read(one_to_one())), |part, (rows, given)| {
            let Subrange { offset, range } = part.subrange();
            for (k, mut row) in rows.into_iter().enumerate() {
                for [y, x] in indices(range) {
                    let at = [offset[0] + y, offset[1] + x];
                    row[at] = given[at] + k as i64;
                }
            }
        })?;
        let fences: Vec<Fence<i64, 2>> =
            rows.iter().map(|row| queue.fence(row)).collect::<Result<_, _>>()?;
        let mut behind = LookBehind::new(0);
        let waited = behind.look(fences)?.expect("nothing is kept back");
        let finished = queue.finish(rows.each_ref().map(|row| row.capture()))?;
        assert!(
            waited.iter().zip(&finished).all(|(early, late)| early.as_slice() == late.as_slice())
        );
        Ok(finished.map(|row| row.into_vec()))
    });
    assert_eq!(found, expected);
}

#[test]
fn a_list_with_one_access_too_many_is_refused() {
    let program = |queue: &Queue| {
        let block = queue.buffer_from(4, vec![1_u8; 4])?.named("twice");
        let writes: Vec<WriteAccess<u8, 1, _>> = (0..2).map(|_| block.write(all())).collect();
        queue.host_task("both").once(writes, |_| ()).map(drop)
    };
    let error = celerity::run(program).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Declare(_)), "{text}");
    assert!(text.contains("\"both\"") && text.contains("\"twice\""), "{text}");
}

/// What is around the items of each of three fields, beside a sum and a field for each of them, in lists.
fn fields_in_lists(
    queue: &Queue,
    [rows, columns]: [usize; 2],
    by_rows: bool,
) -> celerity::Result<[(Vec<i64>, i64); 3]> {
    let range = [rows, columns];
    let given = [0, 1, 2].map(|k| {
        queue.buffer_from(
            range,
            values(rows * columns).iter().map(|value| value * (k + 1)).collect::<Vec<_>>(),
        )
    });
    let [a, b, c] = given;
    let given = [a?, b?, c?];
    let (sums, to) = (
        [(); 3].map(|()| queue.buffer::<i64, 0>([])),
        [(); 3].map(|()| queue.buffer::<i64, 2>(range)),
    );
    let accesses = (
        to.each_ref().map(|field| field.write(one_to_one())),
        given.each_ref().map(|field| field.read(neighborhood([1, 1]))),
        sums.each_ref().map(|sum| sum.reduce(Sum)),
    );
    let task = queue.task("around");
    match by_rows {
        true => task.parallel_for_rows(range, accesses, |row, (to, from, sums)| {
            for ((to, from), sum) in to.into_iter().zip(from).zip(&sums) {
                assert_eq!(to.len(), row.len());
                for (at, to) in to.iter_mut().enumerate() {
                    *to = from.item(at).clamped([-1, 1]);
                    sum.combine(*to);
                }
            }
        })?,
        false => task.parallel_for(range, accesses, |_, (to, from, sums)| {
            for k in 0..3 {
                *to[k] = from[k].clamped([-1, 1]);
                sums[k].combine(*to[k]);
            }
        })?,
    };
    let mut found = [(); 3].map(|()| (Vec::new(), 0));
    for (found, (field, sum)) in found.iter_mut().zip(to.iter().zip(&sums)) {
        *found = (queue.fence(field)?.wait()?.into_vec(), queue.fence(sum)?.wait()?[[]]);
    }
    Ok(found)
}

#[test]
fn kernels_take_views_in_lists() {
    for range in [[7, 9], [1, 5], [6, 1], [12, 33]] {
        let [rows, columns] = range;
        let all = values(rows * columns);
        let expected = [1, 2, 3].map(|k| {
            let field: Vec<i64> = indices(range)
                .map(|[y, x]| k * all[y.saturating_sub(1) * columns + (x + 1).min(columns - 1)])
                .collect();
            let sum = field.iter().sum();
            (field, sum)
        });
        for by_rows in [false, true] {
            let found = everywhere(cpus(), |queue| fields_in_lists(queue, range, by_rows));
            assert_eq!(found, expected, "{range:?}, by rows: {by_rows}");
        }
    }
}

#[test]
fn lists_of_views_may_stand_alone_and_be_of_one() {
    let found = everywhere(cpus(), |queue| {
        let line = queue.buffer::<i64, 1>(9);
        queue
            .task("alone")
            .parallel_for(9, [line.write(one_to_one())], |item, [to]| *to = item[0] as i64)?;
        let lines = [queue.buffer::<i64, 1>(9), queue.buffer::<i64, 1>(9)];
        let own = per_dimension([Side::along(0)]);
        let writes = lines.each_ref().map(|line| line.write(own));
        let read = line.read(all());
        queue.task("parts").parallel_for(9, (writes, [read]), |item, (parts, [all])| {
            for (k, mut part) in parts.into_iter().enumerate() {
                part[item[0]] = all[8 - item[0]] * (k as i64 + 1);
            }
        })?;
        let [one, two] = lines;
        Ok([queue.fence(&one)?.wait()?.into_vec(), queue.fence(&two)?.wait()?.into_vec()])
    });
    assert_eq!(found, [1, 2].map(|k| (0..9).rev().map(|value| value * k).collect::<Vec<_>>()));
}
