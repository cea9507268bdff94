//! What `--verify` checks of a finished run. Knows nothing of the runtime.

use celerity_example_kernels::gravity::{Position, Velocity};

use crate::catalogue::Body;
use crate::units::Number;

/// A sidereal year in seconds: 365.25636 days.
pub(crate) const SIDEREAL_YEAR: f64 = 365.256_36 * 86_400.0;

/// How far the Earth may be from where it was a sidereal year ago, in metres:
/// eleven minutes of its way.
///
/// It does not come back exactly: by then the Moon stands elsewhere and the
/// planets have pulled. By JPL's DE430 it misses its place by 7,213 km, and by
/// this program with hourly steps by 7,103 km.
const RETURN_TOLERANCE: f64 = 2.0e7;

/// Earth minus Sun by JPL's DE430 a sidereal year after J2000.0, in metres.
const DE430_AFTER_A_YEAR: [f64; 3] = [-26_505_792_231.544, 132_754_926_900.830, 57_556_342_565.244];

/// How far from there the Earth of the shipped catalogue may be, in metres.
/// Steps of four hours are 2,672 km off, hourly ones 110 km.
const DE430_TOLERANCE: f64 = 5.0e6;

/// A check failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Mismatch {
    #[error(
        "verification failed: \"{name}\" differs from the sequential program: \
         {actual:e} instead of {expected:e}"
    )]
    Sequential { name: String, actual: f64, expected: f64 },
    #[error(
        "verification failed: places differ from the sequential program by {places:e} of their norm, \
         velocities by {velocities:e}; {tolerance:e} is allowed"
    )]
    Inexact { places: f64, velocities: f64, tolerance: f64 },
    #[error(
        "verification failed: after a sidereal year the Earth is {distance:.0} km from {target}, \
         {tolerance:.0} km are allowed; take more --steps"
    )]
    Earth { target: &'static str, distance: f64, tolerance: f64 },
}

/// Compares with the sequential program, bit for bit.
///
/// # Errors
/// The first number that differs.
pub(crate) fn same_state<T: Number>(
    bodies: &[Body],
    actual: (&[Position<T>], &[Velocity<T>]),
    expected: (&[Position<T>], &[Velocity<T>]),
) -> Result<(), Mismatch> {
    for (index, body) in bodies.iter().enumerate() {
        let numbers = |(places, velocities): (&[Position<T>], &[Velocity<T>])| {
            places[index].into_iter().chain(velocities[index]).map(T::into).collect::<Vec<f64>>()
        };
        let pairs = numbers(actual).into_iter().zip(numbers(expected));
        if let Some((actual, expected)) =
            pairs.into_iter().find(|(a, b)| a.to_bits() != b.to_bits())
        {
            return Err(Mismatch::Sequential { name: body.name.clone(), actual, expected });
        }
    }
    Ok(())
}

/// Compares what was computed in the fast form with the sequential program: the norm of the difference, of
/// places and of velocities, in parts of that of what is expected, and the larger of both.
///
/// # Errors
/// It is more than fused and approximate arithmetic explains.
pub(crate) fn close_state<T: Number>(
    actual: (&[Position<T>], &[Velocity<T>]),
    expected: (&[Position<T>], &[Velocity<T>]),
) -> Result<f64, Mismatch> {
    let tolerance = if size_of::<T>() == size_of::<f64>() { 1e-12 } else { 1e-4 };
    let places = off(actual.0.as_flattened(), expected.0.as_flattened());
    let velocities = off(actual.1.as_flattened(), expected.1.as_flattened());
    // Written so that a number that is none fails.
    match places <= tolerance && velocities <= tolerance {
        true => Ok(places.max(velocities)),
        false => Err(Mismatch::Inexact { places, velocities, tolerance }),
    }
}

/// Not a number if one of the actual ones is none.
fn off<T: Number>(actual: &[T], expected: &[T]) -> f64 {
    let square = |x: f64| x * x;
    let pairs = actual.iter().zip(expected);
    let error: f64 = pairs.map(|(&a, &e)| square(a.into() - e.into())).sum();
    let norm: f64 = expected.iter().map(|&e| square(e.into())).sum();
    (error / norm).sqrt()
}

/// Checks that the Earth is back where it was, seen from the Sun, and in the
/// shipped catalogue (`is_shipped`) also where DE430 says. Places in metres, both distances in
/// kilometres, or `None` if `seconds` is not a sidereal year or there is no Sun
/// or Earth.
///
/// # Errors
/// The Earth is too far off.
pub(crate) fn earth_returned(
    bodies: &[Body],
    places: &[[f64; 3]],
    seconds: f64,
    is_shipped: bool,
) -> Result<Option<String>, Mismatch> {
    let find = |name| bodies.iter().position(|body| body.name == name);
    let (Some(sun), Some(earth)) = (find("Sun"), find("Earth")) else { return Ok(None) };
    if (seconds - SIDEREAL_YEAR).abs() > 1.0 {
        return Ok(None);
    }
    let before = difference(&bodies[earth].position, &bodies[sun].position);
    let after = difference(&places[earth], &places[sun]);
    let missed = check("its place", &after, &before, RETURN_TOLERANCE)?;
    if !is_shipped {
        return Ok(Some(format!("{missed:.0} km from its place a sidereal year before")));
    }
    let off = check("where DE430 has it", &after, &DE430_AFTER_A_YEAR, DE430_TOLERANCE)?;
    Ok(Some(format!(
        "{missed:.0} km from its place a sidereal year before, {off:.0} km from where DE430 has it"
    )))
}

/// The distance in kilometres, if it is tolerable.
fn check(
    target: &'static str,
    actual: &[f64; 3],
    expected: &[f64; 3],
    tolerance: f64,
) -> Result<f64, Mismatch> {
    let distance = difference(actual, expected).iter().map(|x| x * x).sum::<f64>().sqrt();
    // Written so that a distance that is not a number fails.
    if distance <= tolerance {
        Ok(distance / 1e3)
    } else {
        Err(Mismatch::Earth { target, distance: distance / 1e3, tolerance: tolerance / 1e3 })
    }
}

fn difference(a: &[f64], b: &[f64]) -> [f64; 3] {
    std::array::from_fn(|axis| a[axis] - b[axis])
}
