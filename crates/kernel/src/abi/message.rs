//! What a check that failed says: a text, and the numbers in it. Hosts put them together at once.
//! Devices leave both behind, and the host puts them together, as it does its own.
//! Values in what a program says by itself are in `values`.

use core::fmt;

use super::values::{NUMBERS, ToldValues};
use crate::bounds::write_box;

/// A text in which names in braces stand for the next of some numbers:
///
/// | name | numbers | looks like |
/// | --- | --- | --- |
/// | `{}` | one | `7` |
/// | `{index}` | a list | `[1, 2]` |
/// | `{size}` | a list, behind one that is left out | `[3, 4]` |
/// | `{part}` | two lists | `[0..3, 0..4]`, or `nothing`, in more dimensions `nothing of that row` |
/// | `{span}` | two | `[0..4]`, or `nothing` |
/// | `{end}` | two, of which the first is left out | `[4]` |
///
/// Lists are all of one length, up to three numbers, and take three places each. Braces in a text
/// without numbers stand for nothing: a kernel may have said it by itself. If it has said numbers, too, the text is in the
/// language of [`format!`](std::format).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PanicMessage<'a> {
    pub(crate) text: &'a str,
    pub(crate) numbers_are: Numbers,
    pub(crate) numbers: [u64; NUMBERS],
}

/// What the numbers of a message are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// There are none.
    Nothing,
    /// What names in the text stand for: lists have so many each.
    Named { dims: usize },
    /// Values of these [kinds](super::values::Teller).
    Values { kinds: u64 },
}

#[cfg(not(target_arch = "nvptx64"))]
impl<'a> PanicMessage<'a> {
    /// A text with numbers, whose lists have so many each.
    pub(crate) fn new<const N: usize>(text: &'a str, dims: usize, numbers: [usize; N]) -> Self {
        const { assert!(N <= NUMBERS, "a message has no room for so many numbers") };
        let mut all = [0; NUMBERS];
        for (place, number) in all.iter_mut().zip(numbers) {
            *place = number as u64;
        }
        Self { text, numbers_are: Numbers::Named { dims }, numbers: all }
    }
}

impl PanicMessage<'_> {
    /// What stands at a name, from a place on, and how many places it takes; `None` if nothing has
    /// that name.
    fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        (name, dims): (&str, usize),
        at: usize,
    ) -> Result<Option<usize>, fmt::Error> {
        let one = |at: usize| self.numbers.get(at).copied().unwrap_or_default();
        let list = |at: usize| {
            let end = (at + dims).min(NUMBERS);
            self.numbers.get(at..end).unwrap_or_default()
        };
        let places = match name {
            "" => {
                write!(f, "{}", one(at))?;
                1
            }
            "index" => {
                write!(f, "{:?}", list(at))?;
                3
            }
            "size" => {
                write!(f, "{:?}", list(at + 3))?;
                6
            }
            // Boxes without elements are all at the origin.
            "part" if dims > 0 && list(at).last() == list(at + 3).last() => {
                // Of a row there may be nothing where there is something of others.
                write!(f, "{}", if dims > 1 { "nothing of that row" } else { "nothing" })?;
                6
            }
            "part" => {
                write_box(f, list(at), list(at + 3))?;
                6
            }
            "span" if one(at) == one(at + 1) => {
                write!(f, "nothing")?;
                2
            }
            "span" => {
                write_box(f, &[one(at)], &[one(at + 1)])?;
                2
            }
            "end" => {
                write!(f, "[{}]", one(at + 1))?;
                2
            }
            _ => return Ok(None),
        };
        Ok(Some(places))
    }
}

impl fmt::Display for PanicMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims = match self.numbers_are {
            Numbers::Nothing => return f.write_str(self.text),
            Numbers::Named { dims } => dims,
            Numbers::Values { kinds } => {
                let Self { text, numbers, .. } = self;
                return ToldValues { text, kinds, numbers }.fmt(f);
            }
        };
        let (mut rest, mut at) = (self.text, 0);
        while let Some((before, (name, behind))) =
            rest.split_once('{').and_then(|(before, named)| Some((before, named.split_once('}')?)))
        {
            f.write_str(before)?;
            match self.write(f, (name, dims), at)? {
                Some(places) => at += places,
                None => write!(f, "{{{name}}}")?,
            }
            rest = behind;
        }
        f.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use std::string::{String, ToString};

    use super::*;

    fn said<const N: usize>(text: &str, dims: usize, numbers: [usize; N]) -> String {
        PanicMessage::new(text, dims, numbers).to_string()
    }

    #[test]
    fn names_stand_for_numbers_in_order() {
        assert_eq!(said("{} values, none at {}", 0, [4, 7]), "4 values, none at 7");
        let numbers = [1, 2, 0, 3, 4, 0, 5, 6, 0];
        assert_eq!(said("{index} in {part}", 2, numbers), "[1, 2] in [3..5, 4..6]");
        assert_eq!(said("{index} in {size}", 1, numbers), "[1] in [5]");
        assert_eq!(
            said("{}..{} of {index} in {span}", 2, [8, 9, 1, 2, 0, 3, 4]),
            "8..9 of [1, 2] in [3..4]"
        );
    }

    #[test]
    fn what_is_empty_is_called_so() {
        assert_eq!(said("{index}: {part}", 2, [1, 2]), "[1, 2]: nothing of that row");
        assert_eq!(said("{index}: {part}", 1, [1]), "[1]: nothing");
        assert_eq!(said("{}..{}: {span}", 0, [1, 2]), "1..2: nothing");
        assert_eq!(said("{index}: {part}", 0, [1, 2]), "[]: []");
    }

    #[test]
    fn what_a_device_cut_or_never_wrote_is_told_as_far_as_it_goes() {
        assert_eq!(
            said("{part}, {part}{part} and {ind", 3, [1; 9]),
            "nothing of that row, [1..0, 1..0, 1..0]nothing of that row and {ind"
        );
        assert_eq!(said("{what} {}", 200, [5]), "{what} 5");
        let text = "braces {} of a kernel's own";
        assert_eq!(
            PanicMessage { text, numbers_are: Numbers::Nothing, numbers: [1; NUMBERS] }.to_string(),
            text
        );
    }
}
