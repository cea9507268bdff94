//! Vectors and matrices.

use core::ops::{Add, Mul};

use celerity_kernel::abi::Scalar;
use celerity_kernel::{Item, PartView, Row, WholeView, kernel};

use crate::hash::{mix, unit};

/// Sets every element of a run.
#[kernel(instances(f32, f64, u32))]
pub fn fill<T: Scalar>(_row: Row<1>, out: &mut [T], value: T) {
    out.fill(value);
}

/// What a table says: of each item, one of `len` elements, `step` from that of the next.
#[kernel]
pub fn look_up_far(
    item: Item<1>,
    (to, from): (&mut u32, PartView<'_, u32, 1>),
    step: usize,
    len: usize,
) {
    *to = from[item[0] * step % len];
}

/// Adds 1.
#[kernel]
pub fn one_more(_item: Item<1>, (to, from): (&mut u32, &u32)) {
    *to = from.wrapping_add(1);
}

/// How much more one element is than another.
#[kernel]
pub fn subtract(_item: Item<2>, (difference, more, less): (&mut f32, &f32, &f32)) {
    *difference = more - less;
}

/// `y = a x + y`.
#[kernel(instances(f32, f64))]
pub fn saxpy<T: Scalar + Add<Output = T> + Mul<Output = T>>(
    _row: Row<1>,
    (y, x): (&mut [T], &[T]),
    a: T,
) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = a * x + *y;
    }
}

/// `out = a x + b y`, each element with factors of its own.
#[kernel]
pub fn blend(_row: Row<1>, (out, a, x, b, y): (&mut [f32], &[f32], &[f32], &[f32], &[f32])) {
    for ((((out, a), x), b), y) in out.iter_mut().zip(a).zip(x).zip(b).zip(y) {
        *out = a * x + b * y;
    }
}

/// An element of a matrix whose elements look random, between -`scale` and `scale`;
/// other seeds give other matrices.
#[inline]
#[must_use]
pub fn element([row, column]: [usize; 2], seed: u64, scale: f32) -> f32 {
    let random = unit(mix((row as u64) << 32 | column as u64) ^ mix(seed));
    (2.0 * random - 1.0) * scale
}

/// The matrix of [`element`]s.
#[kernel]
pub fn matrix_fill(item: Item<2>, out: &mut f32, seed: u64, scale: f32) {
    *out = element(item.id(), seed, scale);
}

/// An element of a matrix product, summed in order: a row of `a` times a column of
/// `b`.
#[kernel]
pub fn multiply(
    item: Item<2>,
    (out, a, b): (&mut f32, PartView<'_, f32, 2>, PartView<'_, f32, 2>),
) {
    let [y, x] = item.id();
    let (row, column) = (a.row([y]), b.along(0, [0, x]));
    let mut sum = 0.0;
    for k in row.indices() {
        sum += row[k] * column[k];
    }
    *out = sum;
}

/// An element of a sparse matrix times a vector. The matrix is in compressed rows: `ends` says
/// where each row begins in `columns` and `values`, and where the last one ends.
#[kernel]
pub fn multiply_sparse(
    item: Item<1>,
    (out, ends, columns, values, x): (
        &mut f64,
        PartView<'_, usize, 1>,
        PartView<'_, u32, 1>,
        PartView<'_, f64, 1>,
        WholeView<'_, f64, 1>,
    ),
) {
    let (columns, values, x) = (columns.deferred(), values.deferred(), x.deferred());
    let mut sum = 0.0;
    for at in ends[item[0]]..ends[item[0] + 1] {
        sum += values[at] * x[columns[at] as usize];
    }
    *out = sum;
}
