//! Numbers among the options of an example.

use std::str::FromStr;

/// A finite number above 0, as a parser of options.
///
/// # Errors
/// If it is none: says so.
pub(crate) fn positive<T: FromStr + Copy + Into<f64>>(text: &str) -> Result<T, String> {
    match text.parse::<T>() {
        Ok(number) if number.into() > 0.0 && number.into().is_finite() => Ok(number),
        _ => Err("give a number above 0".into()),
    }
}
