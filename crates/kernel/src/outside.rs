//! What a kernel is told whose index is outside of what a view has.
//!
//! Everything is handed over as plain numbers. A view whose address went to a function, be it
//! never called, would live in memory: each item would copy it there, and each index read its
//! limits from it. A sparse matrix times a vector took four times as long so.

#![allow(clippy::inline_always, reason = "what is called in the end takes plain numbers")]

#[cfg(target_arch = "nvptx64")]
use core::panic::Location;

use crate::bounds::Bounds;
use crate::fail::three;
#[cfg(target_arch = "nvptx64")]
use crate::fail::{stop, stop_at};

/// What an index has to be inside of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Scope {
    /// What was declared for the chunk.
    Declared,
    /// What was declared for the chunk along one dimension.
    Line,
    /// What the item may write.
    Own,
    /// What the item may write along one dimension.
    OwnLine,
    /// What the items of the chunk may update.
    Updated,
    /// The buffer.
    Buffer,
}

/// A text about each scope that begins as given, and ends with where a part lies, or how large the
/// buffer is.
macro_rules! outside_of {
    ($scope:expr, $what:literal, $part:literal, $size:literal) => {
        match $scope {
            Scope::Declared => concat!($what, " what the access declared for this chunk", $part),
            Scope::Line => {
                concat!($what, " what the access declared for this chunk along the line", $part)
            }
            Scope::Own => concat!($what, " what this item may write", $part),
            Scope::OwnLine => concat!($what, " what this item may write along the line", $part),
            Scope::Updated => concat!($what, " what this chunk may update", $part),
            Scope::Buffer => concat!($what, " the buffer's range", $size),
        }
    };
}

impl Scope {
    /// Of an index: lists of the index, and of the part's corners.
    const fn of_element(self) -> &'static str {
        outside_of!(self, "index {index} is outside of", ": {part}", " {size}")
    }

    /// Of a range in a row: its ends, the row's index as a list, if it is a row, and the part's ends.
    const fn of_range(self, is_inclusive: bool, is_row: bool) -> &'static str {
        match (is_inclusive, is_row) {
            (false, false) => {
                outside_of!(self, "range {}..{} is outside of", ": {span}", " {end}")
            }
            (true, false) => {
                outside_of!(self, "range {}..={} is outside of", ": {span}", " {end}")
            }
            (false, true) => {
                outside_of!(self, "range {}..{} of row {index} is outside of", ": {span}", " {end}")
            }
            (true, true) => {
                outside_of!(
                    self,
                    "range {}..={} of row {index} is outside of",
                    ": {span}",
                    " {end}"
                )
            }
        }
    }

    /// Of a run or a vector: its length, and lists of where it begins, and of the part's corners. Of devices
    /// without numbers (see `fail!`).
    const fn of_vector(self) -> &'static str {
        #[cfg(target_arch = "nvptx64")]
        return outside_of!(self, "not all elements of a run or vector are in", "", "");
        #[cfg(not(target_arch = "nvptx64"))]
        outside_of!(self, "{} elements from {index} on are not all in", ": {part}", " {size}")
    }
}

/// Of a view with one dimension, the row of the buffer that it is, if it is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOf {
    /// The whole buffer.
    Nothing,
    /// A buffer with two dimensions.
    Plane(usize),
    /// A buffer with three dimensions.
    Space(usize, usize),
}

impl RowOf {
    /// The row of a view through an element; of a row, that row.
    #[inline]
    pub(crate) const fn through<const D: usize>(self, index: [usize; D]) -> Self {
        match *index.as_slice() {
            [y, _] => Self::Plane(y),
            [z, y, _] => Self::Space(z, y),
            _ => self,
        }
    }

    /// An index in the row, in the buffer's dimensions, and how many these are. Of a box's end,
    /// `behind` is 1, to lie behind it in all of them.
    #[inline]
    fn widen<const D: usize>(self, index: [usize; D], behind: usize) -> ([usize; 3], usize) {
        let index = three(index);
        match self {
            Self::Nothing => (index, D),
            Self::Plane(y) => ([y + behind, index[0], 0], 2),
            Self::Space(z, y) => ([z + behind, y + behind, index[0]], 3),
        }
    }
}

/// Panics unless there is an element at `index` in `part`, which is all there is of `row`.
///
/// On hosts by two comparisons a dimension, where one would do, since what lies below the part
/// wraps around to more than any size. But of two, which are told apart by what they are called,
/// the compiler sees in a loop over indices how often they hold, and takes several elements at
/// once, as it does of a slice.
#[inline(always)]
#[track_caller]
pub(crate) fn check_element<const D: usize>(
    scope: (Scope, RowOf),
    index: [usize; D],
    part: &Bounds<D>,
) {
    #[cfg(target_arch = "nvptx64")]
    if !part.contains(index) {
        no_element(scope, index, part, 0);
    }
    #[cfg(not(target_arch = "nvptx64"))]
    for dim in 0..D {
        if index[dim] < part.min()[dim] {
            no_element(scope, index, part, 2 * dim);
        }
        if index[dim] >= part.max()[dim] {
            no_element(scope, index, part, 2 * dim + 1);
        }
    }
}

/// As [`check_element`], of a line: by two comparisons on devices, too. Kernels go along lines by index, and of a loop over the
/// same indices the compiler sees then that they are there.
#[inline(always)]
#[track_caller]
pub(crate) fn check_in_line(scope: Scope, at: usize, part: &Bounds<1>) {
    #[cfg(target_arch = "nvptx64")]
    if at < part.min()[0] || at >= part.max()[0] {
        no_element((scope, RowOf::Nothing), [at], part, 0);
    }
    #[cfg(not(target_arch = "nvptx64"))]
    check_element((scope, RowOf::Nothing), [at], part);
}

/// Panics: there is no element at `index`, since the `nth` comparison says so.
#[inline(always)]
#[track_caller]
fn no_element<const D: usize>(
    (scope, row): (Scope, RowOf),
    index: [usize; D],
    part: &Bounds<D>,
    nth: usize,
) -> ! {
    let (dims, [z, y, x, z0, y0, x0, z1, y1, x1]) = numbers(row, index, part);
    #[cfg(target_arch = "nvptx64")]
    stop(scope.of_element(), dims, [z, y, x, z0, y0, x0, z1, y1, x1]);
    #[cfg(not(target_arch = "nvptx64"))]
    host::no_element(scope, dims, (z, y), (x, z0), (y0, x0), (z1, y1), (x1, nth))
}

/// The dimensions that are told, and lists of the index and of the part's corners.
#[inline(always)]
fn numbers<const D: usize>(row: RowOf, index: [usize; D], part: &Bounds<D>) -> (usize, [usize; 9]) {
    let ([z, y, x], dims) = row.widen(index, 0);
    let ([z0, y0, x0], _) = row.widen(part.min(), 0);
    let ([z1, y1, x1], _) = row.widen(part.max(), 1);
    (dims, [z, y, x, z0, y0, x0, z1, y1, x1])
}

/// Panics for an index that was outside of `part` in a view that was made to say so later.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) fn missed<const D: usize>(
    view_made_at: &Location<'_>,
    (scope, row): (Scope, RowOf),
    index: [usize; D],
    part: &Bounds<D>,
) -> ! {
    let (dims, numbers) = numbers(row, index, part);
    stop_at(view_made_at, scope.of_element(), dims, numbers)
}

/// Panics: not all of the range that begins and ends at `ends` is in `part`, which is all there
/// is of `row`.
#[inline(always)]
#[track_caller]
pub(crate) fn no_range(
    (scope, row): (Scope, RowOf),
    ends: (usize, usize),
    is_inclusive: bool,
    part: &Bounds<1>,
) -> ! {
    let ([z, y, _], dims) = row.widen([0], 0);
    let ([first], [end]) = (part.min(), part.max());
    #[cfg(target_arch = "nvptx64")]
    if dims > 1 {
        stop(scope.of_range(is_inclusive, true), dims - 1, [ends.0, ends.1, z, y, 0, first, end])
    } else {
        stop(scope.of_range(is_inclusive, false), 0, [ends.0, ends.1, first, end])
    }
    #[cfg(not(target_arch = "nvptx64"))]
    host::no_range(scope, dims, (z, y), ends, is_inclusive, (first, end))
}

/// Panics: not all `len` elements from `start` on are in `part`.
#[inline(always)]
#[track_caller]
pub(crate) fn no_vector<const D: usize>(
    scope: Scope,
    (len, start): (usize, [usize; D]),
    part: &Bounds<D>,
) -> ! {
    #[cfg(target_arch = "nvptx64")]
    stop(scope.of_vector(), 0, []);
    #[cfg(not(target_arch = "nvptx64"))]
    host::no_vector(scope, D, len, three(start), three(part.min()), three(part.max()))
}

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    //! Calls that are out of the way.

    use super::Scope;
    use crate::fail::stop;

    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(super) fn no_element(
        scope: Scope,
        dims: usize,
        (z, y): (usize, usize),
        (x, z0): (usize, usize),
        (y0, x0): (usize, usize),
        (z1, y1): (usize, usize),
        (x1, _nth): (usize, usize),
    ) -> ! {
        let numbers = [z, y, x, z0, y0, x0, z1, y1, x1];
        stop(scope.of_element(), dims, numbers)
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(super) fn no_range(
        scope: Scope,
        dims: usize,
        (z, y): (usize, usize),
        (from, to): (usize, usize),
        is_inclusive: bool,
        (first, end): (usize, usize),
    ) -> ! {
        let text = scope.of_range(is_inclusive, dims > 1);
        match dims > 1 {
            true => stop(text, dims - 1, [from, to, z, y, 0, first, end]),
            false => stop(text, 0, [from, to, first, end]),
        }
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(super) fn no_vector(
        scope: Scope,
        dims: usize,
        len: usize,
        [z, y, x]: [usize; 3],
        [z0, y0, x0]: [usize; 3],
        [z1, y1, x1]: [usize; 3],
    ) -> ! {
        let numbers = [len, z, y, x, z0, y0, x0, z1, y1, x1];
        stop(scope.of_vector(), dims, numbers)
    }
}
