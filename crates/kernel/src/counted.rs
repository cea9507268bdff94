//! Loops over ranges of numbers, as compilers for devices can make something of them.
//!
//! `Range::next` asks whether there is a next number, counts if so, and its caller asks once more whether there was one.
//! Elsewhere LLVM makes one question of the two; for GPUs it never copies a branch, a barrier may stand behind
//! one, and what is counted is a selection instead. Such a loop has no number of turns that could be found out, and is not
//! unrolled: the nearest of 64 centres, for 2²⁶ points, took 3.74 ms instead of 2.71 on an H200. Here is always counted, and asked once.
//! Hosts go through the range itself.

use core::ops::Range;

/// The numbers of a range, for a loop that `#[kernel]` has found.
#[doc(hidden)]
#[must_use]
#[inline]
pub const fn counted<T: Following>(range: Range<T>) -> Turns<T> {
    Turns(range)
}

/// What a loop of a kernel goes through. When it has ended, it is not to be asked again.
#[doc(hidden)]
#[derive(Debug)]
pub struct Turns<T>(Range<T>);

impl<T: Following> Iterator for Turns<T>
where
    Range<T>: Iterator<Item = T>,
{
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        match cfg!(target_arch = "nvptx64") {
            true => next(&mut self.0),
            false => self.0.next(),
        }
    }
}

/// The next number of a range, which is not to be asked again when it has ended.
#[inline]
fn next<T: Following>(range: &mut Range<T>) -> Option<T> {
    let Range { start, end } = *range;
    range.start = start.following();
    (start < end).then_some(start)
}

/// What ranges of a loop are of: numbers and characters.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a loop cannot go through a range of `{Self}`",
    label = "these are neither integers nor characters"
)]
pub trait Following: Copy + PartialOrd {
    /// The next one; anything behind the last.
    #[must_use]
    fn following(self) -> Self;
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl Following for $integer {
            #[inline]
            fn following(self) -> Self {
                self.wrapping_add(1)
            }
        }
    )*};
}

integers!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize);

impl Following for char {
    #[inline]
    fn following(self) -> Self {
        (self..=Self::MAX).nth(1).unwrap_or(self)
    }
}

#[cfg(test)]
mod tests {
    use core::ops::Range;
    use std::vec::Vec;

    use super::{Following, counted, next};

    fn same<T: Following + core::fmt::Debug>(range: Range<T>)
    where
        Range<T>: Iterator<Item = T>,
    {
        let expected: Vec<_> = range.clone().collect();
        assert_eq!(counted(range.clone()).collect::<Vec<_>>(), expected);
        let mut as_on_devices = range;
        let found: Vec<_> = core::iter::from_fn(|| next(&mut as_on_devices)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn loops_go_through_what_ranges_hold() {
        same(0..0_usize);
        same(0..7_usize);
        same(usize::MAX - 2..usize::MAX);
        same(-3..4_isize);
        same(i64::MAX - 1..i64::MAX);
        same(0..255_u8);
        same(-128..127_i8);
        same(Range { start: 5, end: -5_i32 });
        same('a'..'e');
        same('\u{d7fe}'..'\u{e001}');
        same(char::MAX..char::MAX);
    }
}
