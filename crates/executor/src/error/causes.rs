//! An error as people read it: its text, and what lies behind it. What `main` prints of an
//! error that it returns is its `Debug`, so public errors are debugged like this.

use std::error::Error;
use std::fmt::{Display, Formatter, Result};

use crate::contain::caught;

/// The text of an error of the program's, or that to write it panics.
pub(crate) fn text_of_error(error: &(impl Display + ?Sized)) -> String {
    caught(|| error.to_string()).unwrap_or_else(|said| format!("its error's text panics: {said}"))
}

/// An error and what lies behind it, as far as anybody would read: one that is its own cause has no end.
pub(crate) fn chain<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error: &&'a (dyn Error + 'static)| error.source())
        .take(MOST_CAUSES)
}

const MOST_CAUSES: usize = 100;

/// Writes an error's text and, on a line each, the texts of its causes that the line before
/// does not end with.
///
/// ```
/// use celerity_executor::write_with_causes;
///
/// struct Failed(std::io::Error);
///
/// impl std::fmt::Display for Failed {
///     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
///         f.write_str("cannot save the picture")
///     }
/// }
///
/// impl std::fmt::Debug for Failed {
///     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
///         write_with_causes(self, f)
///     }
/// }
///
/// impl std::error::Error for Failed {
///     fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
///         Some(&self.0)
///     }
/// }
///
/// let failed = Failed(std::io::Error::other("the disk is full"));
/// assert_eq!(format!("{failed:?}"), "cannot save the picture\ncaused by: the disk is full");
/// ```
///
/// # Errors
/// As writing to the formatter.
pub fn write_with_causes(error: &dyn Error, f: &mut Formatter<'_>) -> Result {
    let mut text = text_of_error(error);
    f.write_str(&text)?;
    for error in error.source().into_iter().flat_map(chain) {
        let next = text_of_error(error);
        if !text.ends_with(&next) {
            write!(f, "\ncaused by: {next}")?;
            text = next;
        }
    }
    Ok(())
}
