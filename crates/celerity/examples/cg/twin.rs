//! Conjugate gradients by plain loops.
//!
//! A plain loop adds up in another order than a reduction does, so its dot products differ in the last
//! bits. The twin therefore compares each with the one of the run, and goes on with that: then every
//! element must be the same, bit for bit.

use celerity_example_kernels::conjugate::{force, ratio};

use crate::matrix::Matrix;

/// What a run's dot products were: at the beginning nothing and `r · r`, then `p · q` and `r · r` of
/// each step.
pub(crate) type Dots = Vec<[f64; 2]>;

/// How much dot products may differ, relative to the sum of their terms' sizes: what a reduction, which
/// adds up few hundred numbers in a row and the rest by a tree, may lose. The twin loses nothing.
const ROUNDING: f64 = 1e-13;

/// What differs from the sequential program.
#[derive(Debug, thiserror::Error)]
#[error("verification failed: {what} is {actual:e} instead of {expected:e}")]
pub(crate) struct Mismatch {
    what: String,
    actual: f64,
    expected: f64,
}

/// Compares with the same by plain loops. O(entries · steps).
///
/// # Errors
/// The first number that differs.
pub(crate) fn compare(matrix: &Matrix, dots: &Dots, solution: &[f64]) -> Result<(), Mismatch> {
    let rows = matrix.rows();
    let mut r: Vec<f64> = (0..rows).map(force).collect();
    let (mut x, mut p) = (vec![0.0; rows], r.clone());
    let mut earlier = 0.0;
    for (step, &[pq, rr]) in dots.iter().enumerate() {
        if step > 0 {
            let q: Vec<f64> = (0..rows).map(|row| matrix.row_times(row, &p)).collect();
            check_dot(|| format!("p · q in step {step}"), pq, &p, &q)?;
            let alpha = ratio(earlier, pq);
            for row in 0..rows {
                x[row] += alpha * p[row];
                r[row] -= alpha * q[row];
            }
        }
        check_dot(|| format!("r · r after step {step}"), rr, &r, &r)?;
        if step > 0 {
            let beta = ratio(rr, earlier);
            p.iter_mut().zip(&r).for_each(|(p, r)| *p = r + beta * *p);
        }
        earlier = rr;
    }
    for (row, (&actual, &expected)) in solution.iter().zip(&x).enumerate() {
        if actual.to_bits() != expected.to_bits() {
            return Err(Mismatch { what: format!("unknown {row}"), actual, expected });
        }
    }
    Ok(())
}

fn check_dot(what: impl Fn() -> String, actual: f64, a: &[f64], b: &[f64]) -> Result<(), Mismatch> {
    let products = || a.iter().zip(b).map(|(a, b)| a * b);
    let (expected, size) = (sum(products()), products().map(f64::abs).sum::<f64>());
    match (actual - expected).abs() <= ROUNDING * size {
        true => Ok(()),
        false => Err(Mismatch { what: what(), actual, expected }),
    }
}

/// The sum of all terms, rounded about once however many there are: what each addition loses is added up
/// beside it (Neumaier). A plain loop over 10,000 terms would lose more than a reduction does.
fn sum(terms: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0);
    for term in terms {
        let next = sum + term;
        lost += match sum.abs() >= term.abs() {
            true => (sum - next) + term,
            false => (term - next) + sum,
        };
        sum = next;
    }
    sum + lost
}
