//! What an item costs that touches one element or a few: how its views are made counts, beside
//! the elements. By hand, loops over slices do the same.
#![allow(unsafe_code)]

use celerity::prelude::*;
use rayon::prelude::*;

use crate::spent::Spent;
use crate::turns::{Case, case, timed, timed_by_hand};

const ITEMS: usize = 1 << 19;
/// Items of a step, and steps of a turn.
const SIZE: (usize, usize) = (ITEMS, 40);

pub(crate) fn cases() -> Vec<Case> {
    vec![
        triad("`&T` and `&mut T`", |queue, [a, b, c]| {
            let accesses = (c.write(one_to_one()), a.read(one_to_one()), b.read(one_to_one()));
            queue.task("triad").parallel_for(ITEMS, accesses, |_, (c, a, b)| *c = a + 3.0 * b)
        }),
        triad("`&[T]` and `&mut [T]`, by rows", |queue, [a, b, c]| {
            let accesses = (c.write(one_to_one()), a.read(one_to_one()), b.read(one_to_one()));
            queue.task("triad").parallel_for_rows(ITEMS, accesses, |_, (c, a, b)| {
                for ((c, a), b) in c.iter_mut().zip(a).zip(b) {
                    *c = a + 3.0 * b;
                }
            })
        }),
        triad("`PartView`", |queue, [a, b, c]| {
            let own = || mapper("own", |items: Chunk<1>, _| whole(items));
            let accesses = (c.write(one_to_one()), a.read(own()), b.read(own()));
            queue.task("triad").parallel_for(ITEMS, accesses, |item, (c, a, b)| {
                *c = a[item[0]] + 3.0 * b[item[0]];
            })
        }),
        triad("`PartView`, by rows", |queue, [a, b, c]| {
            let own = || mapper("own", |items: Chunk<1>, _| whole(items));
            let accesses = (c.write(one_to_one()), a.read(own()), b.read(own()));
            queue.task("triad").parallel_for_rows(ITEMS, accesses, |row, (c, a, b)| {
                let here = row.start()[0]..row.start()[0] + row.len();
                for ((c, a), b) in c.iter_mut().zip(&a[here.clone()]).zip(&b[here]) {
                    *c = a + 3.0 * b;
                }
            })
        }),
        triad("`WholeView`", |queue, [a, b, c]| {
            let accesses = (c.write(one_to_one()), a.read(all()), b.read(all()));
            queue.task("triad").parallel_for(ITEMS, accesses, |item, (c, a, b)| {
                *c = a[item[0]] + 3.0 * b[item[0]];
            })
        }),
        triad("`PartViewMut` of a range mapper's own", |queue, [a, b, c]| {
            // SAFETY: different items have different elements.
            let own = unsafe { disjoint_mapper("own", |items: Chunk<1>, _| whole(items)) };
            let accesses = (c.write(own), a.read(one_to_one()), b.read(one_to_one()));
            queue.task("triad").parallel_for(ITEMS, accesses, |item, (mut c, a, b)| {
                c[item[0]] = a + 3.0 * b;
            })
        }),
        stencil("`NeighborhoodItem`", |queue, [a, _, c]| {
            let accesses = (c.write(one_to_one()), a.read(neighborhood([1])));
            queue.task("average").parallel_for(ITEMS, accesses, |_, (c, a)| {
                *c = a.clamped([-1]) + a.clamped([0]) + a.clamped([1]);
            })
        }),
        stencil("`NeighborhoodRow`, by rows", |queue, [a, _, c]| {
            let accesses = (c.write(one_to_one()), a.read(neighborhood([1])));
            queue.task("average").parallel_for_rows(ITEMS, accesses, |row, (c, a)| {
                let (left, here, right) = (a.clamped([-1]), a.clamped([0]), a.clamped([1]));
                for i in 0..row.len() {
                    c[i] = left[i] + here[i] + right[i];
                }
            })
        }),
        ring("`PeriodicItem`", |queue, [a, _, c]| {
            let accesses = (c.write(one_to_one()), a.read(neighborhood([1]).periodic()));
            queue.task("average").parallel_for(ITEMS, accesses, |_, (c, a)| {
                *c = a.at([-1]) + a.at([0]) + a.at([1]);
            })
        }),
        ring("`PeriodicRow`, by rows", |queue, [a, _, c]| {
            let accesses = (c.write(one_to_one()), a.read(neighborhood([1]).periodic()));
            queue.task("average").parallel_for_rows(ITEMS, accesses, |row, (c, a)| {
                let (left, here, right) = (a.at([-1]), a.at([0]), a.at([1]));
                for i in 0..row.len() {
                    c[i] = left[i] + here[i] + right[i];
                }
            })
        }),
    ]
}

/// The elements with the indices of a chunk's items.
fn whole(items: Chunk<1>) -> Subrange<1> {
    Subrange { offset: items.offset, range: items.range }
}

fn given(seed: usize) -> Vec<f32> {
    (0..ITEMS).map(|i| ((i * 7919 + seed) % 1009) as f32).collect()
}

/// Submits a task that makes the third of what the first two hold.
type Submit = fn(&Queue, &[Buffer<f32, 1>; 3]) -> celerity::Result<celerity::TaskId>;

fn compare(
    name: &str,
    by_hand: impl Fn(&[f32], &[f32], &mut [f32]) + 'static,
    submit: Submit,
) -> Case {
    let loops = move |steps| {
        let (a, b, mut c) = (given(1), given(2), vec![0.0; ITEMS]);
        let time = timed_by_hand(steps, || by_hand(&a, &b, &mut c));
        (time, c)
    };
    case(name, SIZE, loops, move |steps| ours(steps, submit))
}

fn ours(steps: usize, submit: Submit) -> celerity::Result<(Spent, Vec<f32>)> {
    Config::default().run(|queue| {
        let (a, b) = (queue.buffer_from(ITEMS, given(1))?, queue.buffer_from(ITEMS, given(2))?);
        let buffers = [a, b, queue.buffer(ITEMS)];
        let time = timed(queue, steps, || submit(queue, &buffers).map(drop))?;
        Ok((time, queue.fence(&buffers[2])?.wait()?.into_vec()))
    })
}

fn triad(name: &str, submit: Submit) -> Case {
    let by_hand = |a: &[f32], b: &[f32], c: &mut [f32]| {
        c.par_iter_mut().zip(a).zip(b).for_each(|((c, a), b)| *c = a + 3.0 * b);
    };
    compare(name, by_hand, submit)
}

fn stencil(name: &str, submit: Submit) -> Case {
    sums(name, |a| [a[0], a[ITEMS - 1]], submit)
}

fn ring(name: &str, submit: Submit) -> Case {
    sums(name, |a| [a[ITEMS - 1], a[0]], submit)
}

/// Sums of three neighbours, with what is `beyond` the first and the last element.
fn sums(name: &str, beyond: fn(&[f32]) -> [f32; 2], submit: Submit) -> Case {
    let by_hand = move |a: &[f32], _: &[f32], c: &mut [f32]| {
        let (last, [before, after]) = (ITEMS - 1, beyond(a));
        c[0] = before + a[0] + a[1];
        c[last] = a[last - 1] + a[last] + after;
        c[1..last].par_iter_mut().zip(a.par_windows(3)).for_each(|(c, a)| *c = a[0] + a[1] + a[2]);
    };
    compare(name, by_hand, submit)
}
