//! What one access costs in a kernel's inner loop: each item goes through [`WIDTH`] elements, in
//! the ways that views have of finding one. By hand, the same expressions find them in slices.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use celerity::prelude::*;
use celerity::{CustomMapper, PartViewMut};
use rayon::prelude::*;

use crate::spent::Spent;
use crate::turns::{Case, case, timed, timed_by_hand};

/// Few enough elements for a cache, so that what counts is instructions.
const ITEMS: usize = 1 << 13;
const WIDTH: usize = 64;
/// Accesses of a step, and steps of a turn.
const SIZE: (usize, usize) = (ITEMS * WIDTH, 40);

pub(crate) fn cases() -> Vec<Case> {
    [lines(), planes(), spaces(), wholes(), writes()].into_iter().flatten().collect()
}

/// Elements that look random.
fn given(len: usize) -> Vec<u32> {
    (0..len as u32).map(|i| i.wrapping_mul(2_654_435_761) >> 7).collect()
}

/// Some order of the numbers below [`WIDTH`].
const fn shuffled(k: usize) -> usize {
    k * 37 % WIDTH
}

/// A case in which items sum up what they read.
fn reads<const D: usize>(
    name: &str,
    range: [usize; D],
    by_hand: impl Fn(&[u32], usize) -> u32 + Copy + Sync + 'static,
    ours: impl Fn(&Queue, &Buffer<u32, D>, &Buffer<u32, 1>) -> celerity::Result<()>
    + Copy
    + Sync
    + 'static,
) -> Case {
    let len = range.iter().product();
    let loops = move |steps| {
        let (x, mut out) = (given(len), vec![0; ITEMS]);
        let time = timed_by_hand(steps, || {
            let items = out.par_iter_mut().with_min_len(64).enumerate();
            items.for_each(|(item, out)| *out = by_hand(&x, item));
        });
        (time, out)
    };
    case(name, SIZE, loops, move |steps| {
        Config::default().run(|queue| {
            let (x, out) = (queue.buffer_from(range, given(len))?, queue.buffer(ITEMS));
            let time = timed(queue, steps, || ours(queue, &x, &out))?;
            Ok((time, queue.fence(&out)?.wait()?.into_vec()))
        })
    })
}

/// A case whose items sum up what they find: in a slice of all elements, and in a view of what
/// `$mapper` says.
macro_rules! reads {
    (
        $name:literal, $range:expr, $mapper:expr,
        |$x:ident, $i:ident| $by_hand:expr,
        |$view:ident, $item:ident| $ours:expr $(,)?
    ) => {
        reads(
            $name,
            $range,
            |$x, $i| $by_hand,
            |queue, x, out| {
                let accesses = (out.write(one_to_one()), x.read($mapper));
                queue.task("sums").parallel_for(ITEMS, accesses, |item, (out, $view)| {
                    let [$item] = item.id();
                    *out = $ours;
                })?;
                Ok(())
            },
        )
    };
}

/// The sum of what there is for each number of a range.
#[inline(always)]
#[expect(clippy::inline_always, reason = "it stands for a loop")]
fn total(range: Range<usize>, element: impl Fn(usize) -> u32) -> u32 {
    let mut sum = 0_u32;
    for k in range {
        sum = sum.wrapping_add(element(k));
    }
    sum
}

/// The same of all elements of a slice.
#[inline(always)]
#[expect(clippy::inline_always, reason = "it stands for a loop")]
fn total_of<'a>(elements: impl IntoIterator<Item = &'a u32>) -> u32 {
    elements.into_iter().fold(0, |sum, element| sum.wrapping_add(*element))
}

/// The elements from an item's own on.
fn window() -> CustomMapper<1, 1> {
    mapper("window", |items: Chunk<1>, _| Subrange {
        offset: items.offset,
        range: [items.range[0] + WIDTH],
    })
}

/// The rows of a plane, one for each item.
fn own_rows() -> CustomMapper<1, 2> {
    mapper("rows", |items: Chunk<1>, [_, width]: [usize; 2]| Subrange {
        offset: [items.offset[0], 0],
        range: [items.range[0], width],
    })
}

/// The columns of a plane, one for each item.
fn own_columns() -> CustomMapper<1, 2> {
    mapper("columns", |items: Chunk<1>, [height, _]: [usize; 2]| Subrange {
        offset: [0, items.offset[0]],
        range: [height, items.range[0]],
    })
}

/// Rows of a space, one for each item, eight in a plane.
fn own_planes() -> CustomMapper<1, 3> {
    mapper("planes", |items: Chunk<1>, [_, rows, width]: [usize; 3]| {
        let (first, end) =
            (items.offset[0] / rows, (items.offset[0] + items.range[0]).div_ceil(rows));
        Subrange { offset: [first, 0, 0], range: [end - first, rows, width] }
    })
}

fn lines() -> Vec<Case> {
    let range = [ITEMS + WIDTH];
    vec![
        reads!(
            "`PartView`: `view[i]`, one after the other",
            range,
            window(),
            |x, item| total(item..item + WIDTH, |i| x[i]),
            |x, item| total(item..item + WIDTH, |i| x[i]),
        ),
        reads!(
            "`PartView`: `view[i]`, here and there",
            range,
            window(),
            |x, item| total(0..WIDTH, |k| x[item + shuffled(k)]),
            |x, item| total(0..WIDTH, |k| x[item + shuffled(k)]),
        ),
        reads!(
            "`PartView`: `view[a..b]`",
            range,
            window(),
            |x, item| total_of(&x[item..item + WIDTH]),
            |x, item| total_of(&x[item..item + WIDTH]),
        ),
    ]
}

fn planes() -> Vec<Case> {
    let range = [ITEMS, WIDTH];
    vec![
        reads!(
            "`PartView`: `view[[y, x]]`",
            range,
            own_rows(),
            |u, y| total(0..WIDTH, |x| u[y * WIDTH + x]),
            |u, y| total(0..WIDTH, |x| u[[y, x]]),
        ),
        reads!(
            "`PartView`: `row([y])[x]`",
            range,
            own_rows(),
            |u, y| {
                let row = &u[y * WIDTH..(y + 1) * WIDTH];
                total(0..WIDTH, |x| row[x])
            },
            |u, y| {
                let row = u.row([y]);
                total(row.indices(), |x| row[x])
            },
        ),
        reads!(
            "`PartView`: `row([y])`, all of it",
            range,
            own_rows(),
            |u, y| total_of(&u[y * WIDTH..(y + 1) * WIDTH]),
            |u, y| total_of(u.row([y])),
        ),
        reads!(
            "`PartView`: `along(0, [0, x])[y]`",
            [WIDTH, ITEMS],
            own_columns(),
            |u, x| total(0..WIDTH, |y| u[y * ITEMS + x]),
            |u, x| {
                let column = u.along(0, [0, x]);
                total(0..WIDTH, |y| column[y])
            },
        ),
    ]
}

fn spaces() -> Vec<Case> {
    vec![reads!(
        "`PartView`: `view[[z, y, x]]`",
        [ITEMS / 8, 8, WIDTH],
        own_planes(),
        |u, item| total(0..WIDTH, |x| u[(item / 8 * 8 + item % 8) * WIDTH + x]),
        |u, item| total(0..WIDTH, |x| u[[item / 8, item % 8, x]]),
    )]
}

fn wholes() -> Vec<Case> {
    vec![
        reads!(
            "`WholeView`: `view[i]`, here and there",
            [ITEMS + WIDTH],
            all(),
            |x, item| total(0..WIDTH, |k| x[item + shuffled(k)]),
            |x, item| total(0..WIDTH, |k| x[item + shuffled(k)]),
        ),
        reads!(
            "`WholeView`: `view[[y, x]]`",
            [ITEMS, WIDTH],
            all(),
            |u, y| total(0..WIDTH, |x| u[y * WIDTH + x]),
            |u, y| total(0..WIDTH, |x| u[[y, x]]),
        ),
        reads!(
            "`WholeView`: `row([y])`, all of it",
            [ITEMS, WIDTH],
            all(),
            |u, y| total_of(&u[y * WIDTH..(y + 1) * WIDTH]),
            |u, y| total_of(u.row([y])),
        ),
    ]
}

/// A case whose items write rows of [`WIDTH`] elements.
fn rows_written(
    name: &str,
    by_hand: impl Fn(&mut [u32], usize) + Copy + Sync + 'static,
    ours: impl Fn(&mut PartViewMut<'_, u32, 2>, usize) + Copy + Send + Sync + 'static,
) -> Case {
    let loops = move |steps| {
        let mut out = vec![0; ITEMS * WIDTH];
        let time = timed_by_hand(steps, || {
            let rows = out.par_chunks_mut(WIDTH).with_min_len(64).enumerate();
            rows.for_each(|(y, row)| by_hand(row, y));
        });
        (time, out)
    };
    case(name, SIZE, loops, move |steps| {
        Config::default().run(|queue| {
            let out = queue.buffer::<u32, 2>([ITEMS, WIDTH]);
            let time = timed(queue, steps, || {
                let task = queue.task("write");
                task.parallel_for([ITEMS, 1], out.write(slice(1)), move |item, mut out| {
                    ours(&mut out, item[0]);
                })?;
                Ok(())
            })?;
            Ok((time, queue.fence(&out)?.wait()?.into_vec()))
        })
    })
}

fn writes() -> Vec<Case> {
    let value = |y: usize, x: usize| (y * x) as u32;
    vec![
        rows_written(
            "`PartViewMut`: `view[[y, x]] =`",
            move |row, y| (0..WIDTH).for_each(|x| row[shuffled(x)] = value(y, x)),
            move |out, y| (0..WIDTH).for_each(|x| out[[y, shuffled(x)]] = value(y, x)),
        ),
        rows_written(
            "`PartViewMut`: `row_mut([y])[x] =`",
            move |row, y| (0..WIDTH).for_each(|x| row[shuffled(x)] = value(y, x)),
            move |out, y| {
                let mut row = out.row_mut([y]);
                (0..WIDTH).for_each(|x| row[shuffled(x)] = value(y, x));
            },
        ),
        case("`AtomicView`: `at(i).fetch_add(1)`", SIZE, counted_by_hand, counted),
    ]
}

/// Each item counts at [`WIDTH`] of as many places.
fn counted_by_hand(steps: usize) -> (Spent, Vec<u32>) {
    let counts: Vec<_> = (0..2 * WIDTH).map(|_| AtomicU32::new(0)).collect();
    let time = timed_by_hand(steps, || {
        (0..ITEMS).into_par_iter().with_min_len(64).for_each(|item| {
            for k in 0..WIDTH {
                counts[item % WIDTH + shuffled(k)].fetch_add(1, Ordering::Relaxed);
            }
        });
    });
    (time, counts.into_iter().map(AtomicU32::into_inner).collect())
}

fn counted(steps: usize) -> celerity::Result<(Spent, Vec<u32>)> {
    Config::default().run(|queue| {
        let counts = queue.buffer_from(2 * WIDTH, vec![0_u32; 2 * WIDTH])?;
        let time = timed(queue, steps, || {
            let task = queue.task("count").granularity(ITEMS);
            task.parallel_for(ITEMS, counts.update(all()), |item, counts| {
                for k in 0..WIDTH {
                    counts.at(item[0] % WIDTH + shuffled(k)).fetch_add(1);
                }
            })?;
            Ok(())
        })?;
        Ok((time, queue.fence(&counts)?.wait()?.into_vec()))
    })
}
