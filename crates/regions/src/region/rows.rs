//! Set operations on single rows, where a set is a list of runs.
//!
//! Owns what distinguishes one set operation from another. It refuses to know where rows
//! come from and how the results of several are put together; that is the same for all of
//! them, and `sweep` does it.

/// A set operation on rows: what makes a sweep a union or a difference.
///
/// Items of one operand that are active in the same row are disjoint, except that the
/// operands of [`Union`] may overlap in any way.
pub(super) trait RowOp {
    /// Whether the result holds the points of the left operand outside the right one.
    const KEEPS_LEFT: bool;

    /// Whether the result holds the points of the right operand outside the left one.
    const KEEPS_RIGHT: bool;

    /// Appends the maximal runs of the result to `out`, in ascending order, given runs in
    /// ascending order of their starts.
    fn combine(row: impl Iterator<Item = RowRun>, out: &mut Vec<[u64; 2]>);
}

/// A run `[lo, hi)` of one of the operands along the fastest axis.
#[derive(Clone, Copy)]
pub(super) struct RowRun {
    pub(super) lo: u64,
    pub(super) hi: u64,
    /// Whether the run belongs to the right operand.
    pub(super) right: bool,
}

/// The points of either operand.
pub(super) struct Union;

/// The points of the left operand that are not in the right one.
pub(super) struct Difference;

impl RowOp for Union {
    const KEEPS_LEFT: bool = true;
    const KEEPS_RIGHT: bool = true;

    fn combine(mut row: impl Iterator<Item = RowRun>, out: &mut Vec<[u64; 2]>) {
        let Some(RowRun { mut lo, mut hi, .. }) = row.next() else { return };
        for run in row {
            if run.lo > hi {
                out.push([lo, hi]);
                lo = run.lo;
            }
            hi = hi.max(run.hi);
        }
        out.push([lo, hi]);
    }
}

impl RowOp for Difference {
    const KEEPS_LEFT: bool = true;
    const KEEPS_RIGHT: bool = false;

    fn combine(row: impl Iterator<Item = RowRun>, out: &mut Vec<[u64; 2]>) {
        // `[lo, hi)` is what is left of the latest left run, `cut` the end of the latest
        // right run.
        let (mut lo, mut hi, mut cut) = (0, 0, 0);
        for run in row {
            if lo < hi && lo < run.lo {
                out.push([lo, hi.min(run.lo)]);
            }
            if run.right {
                lo = lo.max(run.hi);
                cut = run.hi;
            } else {
                (lo, hi) = (run.lo.max(cut), run.hi);
            }
        }
        if lo < hi {
            out.push([lo, hi]);
        }
    }
}
