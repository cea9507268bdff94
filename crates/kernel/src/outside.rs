//! What a kernel is told whose index is outside of what a view has.
//!
//! Everything is handed over as plain numbers. A view whose address went to a function, be it
//! never called, would live in memory: each item would copy it there, and each index read its
//! limits from it. A sparse matrix times a vector took four times as long so.

#![allow(clippy::inline_always, reason = "what is called in the end takes plain numbers")]

use crate::bounds::Bounds;

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
    /// What the items of the chunk may update.
    Updated,
    /// The buffer.
    Buffer,
}

impl Scope {
    /// As messages of hosts call it.
    #[cfg(not(target_arch = "nvptx64"))]
    const fn name(self) -> &'static str {
        match self {
            Self::Declared => "what the access declared for this chunk",
            Self::Line => "what the access declared for this chunk along the line",
            Self::Own => "what this item may write",
            Self::Updated => "what this chunk may update",
            Self::Buffer => "the buffer's range",
        }
    }

    /// The whole message of devices, which put no numbers into words.
    #[cfg(target_arch = "nvptx64")]
    const fn message(self) -> &'static str {
        match self {
            Self::Declared | Self::Line => {
                "an index is outside of what the access declared for this chunk"
            }
            Self::Own => "an index is outside of what this item may write",
            Self::Updated => "an index is outside of what this chunk may update",
            Self::Buffer => "an index is outside of the buffer's range",
        }
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
        let at = |dim: usize| index.get(dim).copied().unwrap_or(0);
        match self {
            Self::Nothing => ([at(0), at(1), at(2)], D),
            Self::Plane(y) => ([y + behind, at(0), 0], 2),
            Self::Space(z, y) => ([z + behind, y + behind, at(0)], 3),
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
        crate::machine::failure::stop(scope.0.message());
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

/// Panics: there is no element at `index`, since the `nth` comparison says so.
#[cfg(not(target_arch = "nvptx64"))]
#[inline(always)]
#[track_caller]
fn no_element<const D: usize>(
    (scope, row): (Scope, RowOf),
    index: [usize; D],
    part: &Bounds<D>,
    nth: usize,
) -> ! {
    let ([z, y, x], dims) = row.widen(index, 0);
    let ([z0, y0, x0], _) = row.widen(part.min(), 0);
    let ([z1, y1, x1], _) = row.widen(part.max(), 1);
    host::no_element(scope, dims, (z, y), (x, z0), (y0, x0), (z1, y1), (x1, nth))
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
    #[cfg(target_arch = "nvptx64")]
    crate::machine::failure::stop(scope.message());
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let ([z, y, _], dims) = row.widen([0], 0);
        let ([first], [end]) = (part.min(), part.max());
        host::no_range(scope, dims, (z, y), ends, is_inclusive, (first, end))
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    //! The messages.

    use std::format;
    use std::string::String;

    use super::Scope;

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
        let (index, min, max) = ([z, y, x], [z0, y0, x0], [z1, y1, x1]);
        let there = part(scope, &min[..dims], &max[..dims]);
        panic!("index {:?} is outside of {}{there}", &index[..dims], scope.name())
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
        let sign = if is_inclusive { "..=" } else { ".." };
        let row = match dims {
            2 => format!(" of row {:?}", [z]),
            3 => format!(" of row {:?}", [z, y]),
            _ => String::new(),
        };
        let there = part(scope, &[first], &[end]);
        panic!("range {from}{sign}{to}{row} is outside of {}{there}", scope.name())
    }

    /// All there is, behind what it is.
    fn part(scope: Scope, min: &[usize], max: &[usize]) -> String {
        match (scope, min.last() == max.last() && !min.is_empty()) {
            (Scope::Buffer, _) => format!(" {max:?}"),
            (_, true) => ": nothing".into(),
            (_, false) => format!(": {min:?} to {max:?}"),
        }
    }
}
