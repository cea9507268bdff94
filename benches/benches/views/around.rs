//! What it costs that opposite edges meet, beside edges that are clamped: one stencil of five
//! points, in a field whose opposite edges are alike, so that both come to the same bits.

use celerity::prelude::*;
use celerity::{Result, TaskId};

use crate::spent::Spent;
use crate::turns::{Case, case, timed};

/// Rows and columns.
const SIDES: [usize; 2] = [512, 1024];
/// Items of a step, and steps of a turn.
const SIZE: (usize, usize) = (SIDES[0] * SIDES[1], 40);

/// Submits a step: to which field, from which.
type Submit = fn(&Queue, &Buffer<f32, 2>, &Buffer<f32, 2>) -> Result<TaskId>;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        beside(
            "five points, by item",
            |queue, to, from| {
                let accesses = (to.write(one_to_one()), from.read(neighborhood([1, 1])));
                queue.task("clamped").parallel_for(SIDES, accesses, |_, (to, from)| {
                    *to = sum(|offset| from.clamped(offset));
                })
            },
            |queue, to, from| {
                let around = neighborhood([1, 1]).periodic();
                let accesses = (to.write(one_to_one()), from.read(around));
                queue.task("around").parallel_for(SIDES, accesses, |_, (to, from)| {
                    *to = sum(|offset| from.at(offset));
                })
            },
        ),
        beside(
            "five points, by rows",
            |queue, to, from| {
                let accesses = (to.write(one_to_one()), from.read(neighborhood([1, 1])));
                queue.task("clamped").parallel_for_rows(SIDES, accesses, |_, (to, from)| {
                    sums(to, STAR.map(|offset| from.clamped(offset)));
                })
            },
            |queue, to, from| {
                let around = neighborhood([1, 1]).periodic();
                let accesses = (to.write(one_to_one()), from.read(around));
                queue.task("around").parallel_for_rows(SIDES, accesses, |_, (to, from)| {
                    sums(to, STAR.map(|offset| from.at(offset)));
                })
            },
        ),
    ]
}

/// An element and its neighbours: rows down, columns to the right.
const STAR: [[isize; 2]; 5] = [[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1]];

#[inline]
fn sum(at: impl Fn([isize; 2]) -> f32) -> f32 {
    STAR.iter().map(|&offset| at(offset)).sum()
}

#[inline]
fn sums(to: &mut [f32], [here, north, south, west, east]: [&[f32]; 5]) {
    for i in 0..to.len() {
        to[i] = here[i] + north[i] + south[i] + west[i] + east[i];
    }
}

fn beside(name: &str, clamped: Submit, around: Submit) -> Case {
    let clamped = move |steps| ours(steps, clamped).expect("a step by clamped edges");
    case(name, SIZE, clamped, move |steps| ours(steps, around))
}

fn ours(steps: usize, submit: Submit) -> Result<(Spent, Vec<f32>)> {
    Config::default().run(|queue| {
        let (from, to) = (queue.buffer_from(SIDES, given())?, queue.buffer(SIDES));
        let time = timed(queue, steps, || submit(queue, &to, &from).map(drop))?;
        Ok((time, queue.fence(&to)?.wait()?.into_vec()))
    })
}

/// A field whose last row and column are its first.
fn given() -> Vec<f32> {
    let [height, width] = SIDES;
    let places = (0..height).flat_map(|y| (0..width).map(move |x| [y, x]));
    let of = |[y, x]: [usize; 2]| (y % (height - 1)) * 7919 + (x % (width - 1)) * 104_729;
    places.map(|place| (of(place) % 1009) as f32).collect()
}
