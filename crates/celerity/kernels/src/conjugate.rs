//! Conjugate gradients for a sparse system of equations. The kernels and a sequential program share
//! what decides about bits.

use celerity_kernel::{Item, PartView, Reducer, Sum, WholeView, kernel};

/// `a / b`, and nothing once there is nothing left to do.
#[inline]
#[must_use]
pub fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 0.0 }
}

/// The force at an unknown, an element of the right-hand side.
#[inline]
#[must_use]
pub const fn force(row: usize) -> f64 {
    1.0 + (row % 7) as f64 * 0.125
}

/// The solution that one begins with, nothing; its residual, which is the right-hand side; the first
/// direction; and the residual's square.
#[kernel]
pub fn conjugate_begin(
    item: Item<1>,
    (x, r, p, rr): (&mut f64, &mut f64, &mut f64, Reducer<'_, f64, Sum>),
) {
    let force = force(item[0]);
    (*x, *r, *p) = (0.0, force, force);
    rr.combine(force * force);
}

/// A row of `q = A p`, and `p · q`. The matrix is in compressed rows: `ends` says where each row
/// begins in `columns` and `values`, and where the last one ends.
#[kernel]
pub fn conjugate_multiply(
    item: Item<1>,
    (q, ends, columns, values, p, pq): (
        &mut f64,
        PartView<'_, usize, 1>,
        PartView<'_, u32, 1>,
        PartView<'_, f64, 1>,
        PartView<'_, f64, 1>,
        Reducer<'_, f64, Sum>,
    ),
) {
    let (columns, values, p) = (columns.deferred(), values.deferred(), p.deferred());
    let mut sum = 0.0;
    for at in ends[item[0]]..ends[item[0] + 1] {
        sum += values[at] * p[columns[at] as usize];
    }
    *q = sum;
    pq.combine(p[item[0]] * sum);
}

/// Goes as far as is best in the direction `p`: `x += α p`, `r -= α q`, and `r · r`.
#[kernel]
pub fn conjugate_advance(
    _item: Item<1>,
    (x, r, p, q, earlier, pq, rr): (
        &mut f64,
        &mut f64,
        &f64,
        &f64,
        WholeView<'_, f64, 0>,
        WholeView<'_, f64, 0>,
        Reducer<'_, f64, Sum>,
    ),
) {
    let alpha = ratio(earlier[[]], pq[[]]);
    *x += alpha * *p;
    *r -= alpha * *q;
    rr.combine(*r * *r);
}

/// The next direction: `p = r + β p`.
#[kernel]
pub fn conjugate_turn(
    _item: Item<1>,
    (p, r, rr, earlier): (&mut f64, &f64, WholeView<'_, f64, 0>, WholeView<'_, f64, 0>),
) {
    *p = *r + ratio(rr[[]], earlier[[]]) * *p;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_no_step_once_nothing_is_left() {
        assert_eq!([ratio(3.0, 2.0), ratio(0.0, 0.0), ratio(1.0, -1.0)], [1.5, 0.0, 0.0]);
        assert_eq!([force(0), force(3), force(7)], [1.0, 1.375, 1.0]);
    }
}
