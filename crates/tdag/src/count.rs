//! How messages tell numbers of things.

use std::fmt;

/// A number of things: prints as `1 node`, `2 nodes`. The word is one whose plural ends in `s`.
///
/// ```
/// use celerity_tdag::Count;
/// assert_eq!(Count(1, "node").to_string(), "1 node");
/// assert_eq!(Count(0, "more instruction").to_string(), "0 more instructions");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count<'a, N>(pub N, pub &'a str);

impl<N: fmt::Display + PartialEq + From<u8>> fmt::Display for Count<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0 == N::from(1) { "" } else { "s" };
        write!(f, "{} {}{plural}", self.0, self.1)
    }
}
