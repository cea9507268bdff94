//! A step from fields of cells to others, beside the same on `rayon`. Knows no stencil.

use celerity::prelude::*;
use celerity::{Element, Result, TaskId};
use rayon::prelude::*;

use crate::spent::Spent;
use crate::turns::{Case, case, timed, timed_by_hand};

/// Cells of a step, about: 4 MiB of `f32`.
const CELLS: usize = 1 << 20;
const STEPS: usize = 100;

/// A case of a step from `F` fields to as many. Those that are written begin as zeroes.
pub(crate) fn beside<T: Element + Cells, const D: usize, const F: usize>(
    name: String,
    range: [usize; D],
    by_hand: impl Fn([&mut [T]; F], [&[T]; F]) + 'static,
    submit: impl Fn(&Queue, &[Buffer<T, D>; F], &[Buffer<T, D>; F]) -> Result<TaskId>
    + Send
    + Sync
    + Copy
    + 'static,
) -> Case {
    let cells = range.iter().product();
    let hand = move |steps| {
        let (mut to, from) = ([(); F].map(|()| vec![T::default(); cells]), given::<T, F>(cells));
        let time = timed_by_hand(steps, || {
            by_hand(to.each_mut().map(Vec::as_mut_slice), from.each_ref().map(Vec::as_slice));
        });
        (time, to)
    };
    case(name, (cells, STEPS), hand, move |steps| ours(steps, range, submit))
}

fn ours<T: Element + Cells, const D: usize, const F: usize>(
    steps: usize,
    range: [usize; D],
    submit: impl Fn(&Queue, &[Buffer<T, D>; F], &[Buffer<T, D>; F]) -> Result<TaskId>
    + Send
    + Sync
    + Copy,
) -> Result<(Spent, [Vec<T>; F])> {
    Config::default().run(|queue| {
        let cells = range.iter().product();
        // In the order in which they are made by hand: where two fields lie 4 KiB apart, or a multiple of that and a few
        // bytes, the processor takes loads from one for loads of what was just stored to the other, and waits.
        let mut to = Vec::new();
        for _ in 0..F {
            to.push(queue.buffer_from(range, vec![T::default(); cells])?);
        }
        let mut from = Vec::new();
        for field in given::<T, F>(cells) {
            from.push(queue.buffer_from(range, field)?);
        }
        let fields = |buffers: Vec<_>| buffers.try_into().unwrap_or_else(|_| unreachable!());
        let (to, from): ([_; F], [_; F]) = (fields(to), fields(from));
        let time = timed(queue, steps, || submit(queue, &to, &from).map(drop))?;
        let mut found = Vec::new();
        for field in &to {
            found.push(queue.fence(field)?.wait()?.into_vec());
        }
        Ok((time, found.try_into().unwrap_or_else(|_| unreachable!())))
    })
}

/// What is in a cell.
pub(crate) trait Cells: Copy + Default + PartialEq + Send + Sync {
    fn of(number: f32) -> Self;
}

impl Cells for f32 {
    fn of(number: f32) -> Self {
        number
    }
}

impl Cells for f64 {
    fn of(number: f32) -> Self {
        number.into()
    }
}

/// Fields of numbers from 0 to 1 that look random.
fn given<T: Cells, const F: usize>(cells: usize) -> [Vec<T>; F] {
    std::array::from_fn(|field| {
        let cell = |i: usize| T::of(((i * 7919 + 13 * field) % 1009) as f32 / 1009.0);
        (0..cells).map(cell).collect()
    })
}

/// A square of about as many cells as there should be.
pub(crate) const PLANE: [usize; 2] = [CELLS / 1024, 1024];

/// A box of so many, with rows of `width`.
pub(crate) const fn space(width: usize) -> [usize; 3] {
    let rows = (CELLS / width).isqrt();
    [CELLS / width / rows, rows, width]
}

/// Calls `row` with the index of each row of a plane and its elements, side by side.
pub(crate) fn rows_of_plane<T: Send>(
    out: &mut [T],
    [_, width]: [usize; 2],
    row: impl Fn(&mut [T], usize) + Sync,
) {
    out.par_chunks_mut(width).enumerate().for_each(|(y, out)| row(out, y));
}

/// The same of a box, by planes that are side by side.
pub(crate) fn rows_of_space<T: Send>(
    out: &mut [T],
    [_, rows, width]: [usize; 3],
    row: impl Fn(&mut [T], [usize; 2]) + Sync,
) {
    out.par_chunks_mut(rows * width).enumerate().for_each(|(z, plane)| {
        for (y, out) in plane.chunks_exact_mut(width).enumerate() {
            row(out, [z, y]);
        }
    });
}

/// An index, and those before and behind it, where there is one: before, here, behind.
pub(crate) fn around(at: usize, size: usize) -> [usize; 3] {
    [at.saturating_sub(1), at, (at + 1).min(size - 1)]
}
