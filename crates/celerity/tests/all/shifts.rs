//! `one_to_one` with an offset: items see the element that is so far from their own, on every cluster and in every
//! dimensionality, and a task whose items lack one is refused.

use celerity::Error;
use celerity::prelude::*;

use crate::common::{clusters, contents, everywhere, values};

const CLUSTERS: [[usize; 2]; 5] = [[1, 1], [1, 3], [2, 1], [2, 2], [3, 2]];

/// Copies a box of a buffer to another place of a second one, by items and by rows.
fn check<const D: usize>(size: [usize; D], from: [usize; D], to: [usize; D], range: [usize; D])
where
    [usize; D]: celerity::IntoRange<D>,
{
    let count: usize = size.iter().product();
    let slot = |at: [usize; D]| (0..D).fold(0, |slot, dim| slot * size[dim] + at[dim]);
    let mut expected = values(count);
    let old = expected.clone();
    let items: usize = range.iter().product();
    for mut nth in 0..items {
        let mut at = [0; D];
        for dim in (0..D).rev() {
            (at[dim], nth) = (nth % range[dim], nth / range[dim]);
        }
        let at_of = |start: [usize; D]| slot(std::array::from_fn(|dim| start[dim] + at[dim]));
        expected[at_of(to)] = 3 * old[at_of(from)] + at[D - 1] as i64;
    }
    // Items begin at `from`, at `to` or in the middle between them.
    let middle = std::array::from_fn(|dim| from[dim].midpoint(to[dim]));
    for (by_rows, start) in
        [false, true].into_iter().flat_map(|it| [from, to, middle].map(|at| (it, at)))
    {
        let shift = |to: [usize; D]| {
            one_to_one().offset(std::array::from_fn(|dim| to[dim] as isize - start[dim] as isize))
        };
        let found = everywhere(clusters(CLUSTERS), |queue| {
            let source = queue.buffer_from(size, values(count))?;
            let target = queue.buffer_from(size, values(count))?;
            let accesses = (target.read_write(shift(to)), source.read(shift(from)));
            let task = queue.task("shift").offset(start);
            let first = start[D - 1];
            if by_rows {
                task.parallel_for_rows(
                    range,
                    accesses,
                    move |row, (to, from): (&mut [i64], &[i64])| {
                        for (nth, (to, from)) in to.iter_mut().zip(from).enumerate() {
                            *to = 3 * from + (row.start()[D - 1] + nth - first) as i64;
                        }
                    },
                )?;
            } else {
                task.parallel_for(range, accesses, move |item, (to, from): (&mut i64, &i64)| {
                    *to = 3 * from + (item[D - 1] - first) as i64;
                })?;
            }
            contents(queue, &target)
        });
        assert_eq!(found, expected, "by rows: {by_rows}, from {start:?}");
    }
}

#[test]
fn items_see_the_elements_that_are_so_far_from_theirs() {
    check([100], [0], [7], [93]);
    check([100], [50], [3], [41]);
    check([31, 20], [0, 0], [1, 0], [30, 20]);
    check([31, 20], [4, 3], [0, 5], [20, 15]);
    check([9, 12, 10], [2, 0, 1], [0, 3, 0], [7, 9, 8]);
}

/// A wave that goes one way: each step reads what the last one of another device has written.
#[test]
fn steps_in_one_direction_are_as_on_one_device() {
    let found = everywhere(clusters(CLUSTERS), |queue| {
        let (mut u, mut v) =
            (queue.buffer_from(64, values(64))?, queue.buffer_from(64, values(64))?);
        for _ in 0..5 {
            let accesses =
                (v.write(one_to_one()), u.read(one_to_one().offset([-1])), u.read(one_to_one()));
            queue.task("advect").offset(1).parallel_for(
                63,
                accesses,
                |_, (next, left, here)| {
                    *next = 2 * here - left;
                },
            )?;
            std::mem::swap(&mut u, &mut v);
        }
        contents(queue, &u)
    });
    let mut expected = values(64);
    for _ in 0..5 {
        for at in (1..64).rev() {
            expected[at] = 2 * expected[at] - expected[at - 1];
        }
    }
    assert_eq!(found, expected);
}

#[test]
fn host_tasks_and_updates_take_them_too() {
    let found = everywhere(clusters(CLUSTERS), |queue| {
        let (u, sums) =
            (queue.buffer_from(40, values(40))?, queue.buffer_from(41, vec![0_i64; 41])?);
        let accesses = (sums.write(one_to_one().offset([1])), u.read(one_to_one()));
        queue.host_task("double").distributed(40).submit(accesses, |_, (mut sums, u)| {
            for at in u.indices() {
                sums[at + 1] = 2 * u[at];
            }
        })?;
        let accesses = (sums.update(one_to_one().offset([1])), u.read(one_to_one()));
        queue.task("add").parallel_for(40, accesses, |item, (sums, u)| {
            sums.at([item[0] + 1]).fetch_add(*u);
        })?;
        contents(queue, &sums)
    });
    let expected: Vec<i64> = [0].into_iter().chain(values(40).iter().map(|u| 3 * u)).collect();
    assert_eq!(found, expected);
}

#[test]
fn items_without_such_an_element_are_an_error() {
    for (offset, items, says) in [
        (
            [1],
            40,
            "{[1..41]} of buffer \"B0\" through one_to_one.offset([1]), but the buffer is {[0..40]}; leave out",
        ),
        ([-1], 40, "\"B0\" through one_to_one.offset([-1]), which begins 1 in front of the buffer"),
        ([-41], 1, "which begins 41 in front"),
        ([isize::MIN], 2, "in front of the buffer"),
        ([isize::MAX], 2, "leave out the items that have no such element"),
    ] {
        let error = celerity::run(|queue| {
            let (u, v) = (queue.buffer_from(40, values(40))?, queue.buffer::<i64, 1>(40));
            let accesses = (v.write(one_to_one()), u.read(one_to_one().offset(offset)));
            queue.task("shift").parallel_for(items, accesses, |_, (v, u)| *v = *u)
        });
        let Err(Error::Declare(error)) = &error else { panic!("{offset:?}: {error:?}") };
        let text = error.to_string();
        assert!(text.contains("\"shift\" at ") && text.contains(says), "{text}");
    }
    // Nor may items read what others write.
    let result = celerity::run(|queue| {
        let u = queue.buffer_from(40, values(40))?;
        let accesses = (u.read_write(one_to_one()), u.read(one_to_one().offset([1])));
        queue.task("shift").parallel_for(39, accesses, |_, (here, ahead)| *here = *ahead)
    });
    assert!(matches!(result, Err(Error::Declare(_))), "{result:?}");
}
