//! Set operations by sweeping, and through them the canonical form.
//!
//! A sweep moves along one axis and keeps the list of items that are active at the current
//! position. Between two positions where that list changes the set does not change either,
//! so its cross-section has to be computed once; it is again a set, of one dimension less.
//! Cross-sections that persist from one position to the next stay *open* and become one
//! longer item. Three-dimensional sets are swept along the slowest axis, their planes along
//! the next, and the rows of planes are merged directly. This yields the canonical form by
//! construction: maximal runs in the fastest dimension, equal runs merged along the next
//! slower one, equal rectangles along the slowest, in row-major order.
//!
//! Axes in which all boxes agree are left out, so that 1-D and 2-D sets, wherever they lie
//! in the three dimensions, do not pay for the others.
//!
//! The module refuses to know shortcuts for small or trivial operands; `region` has those.

use std::cell::RefCell;

use super::Boxes;
use super::rows::{RowOp, RowRun};
use crate::box3::{Box3, Coord3};

/// `cross` persists over `[start, end)` of the axis that is swept.
///
/// The derived order is that of (start, cross): items of one list never share both.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Swept<T> {
    start: u64,
    cross: T,
    end: u64,
}

/// The canonical form of the result of `Op` on two sets of boxes, each in ascending order of
/// first points.
///
/// Takes O(n log n + s·w) for n boxes in 2-D, where s is the number of distinct positions
/// along the slow axis and w the number of boxes that meet at one; in 3-D the planes are
/// swept in the same manner, s times.
pub(super) fn combine<Op: RowOp>(left: &[Box3], right: &[Box3]) -> Boxes {
    let Some(axes) = Axes::of(left, right) else { return Boxes::new() };
    SCRATCH.with_borrow_mut(|scratch| match axes.varying[..axes.count] {
        [] => scratch.line::<Op>(&axes.common, 2, left, right),
        [fast] => scratch.line::<Op>(&axes.common, fast, left, right),
        [slow, fast] => scratch.plane::<Op>(&axes.common, slow, fast, left, right),
        _ => scratch.volume::<Op>(left, right),
    })
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = const { RefCell::new(Scratch::new()) };
}

/// The lists that sweeps work on, kept for the next one: allocating them anew would cost
/// more than sweeping over a handful of boxes.
struct Scratch {
    rows: Sweep<RowRun, [u64; 2]>,
    planes: Sweep<Swept<RowRun>, Swept<[u64; 2]>>,
    lines: Vec<[u64; 2]>,
    rectangles: Vec<Swept<[u64; 2]>>,
    volumes: Vec<Swept<Swept<[u64; 2]>>>,
}

impl Scratch {
    const fn new() -> Scratch {
        Scratch {
            rows: Sweep::new(),
            planes: Sweep::new(),
            lines: Vec::new(),
            rectangles: Vec::new(),
            volumes: Vec::new(),
        }
    }

    fn line<Op: RowOp>(
        &mut self,
        common: &Box3,
        fast: usize,
        left: &[Box3],
        right: &[Box3],
    ) -> Boxes {
        self.lines.clear();
        let runs = Merge { left, right }.map(|(item, right)| run(item, fast, right));
        Op::combine(runs, &mut self.lines);
        let to_box = |&run: &[u64; 2]| placed(common, [(fast, run), (fast, run)]);
        self.lines.iter().map(to_box).collect()
    }

    fn plane<Op: RowOp>(
        &mut self,
        common: &Box3,
        slow: usize,
        fast: usize,
        left: &[Box3],
        right: &[Box3],
    ) -> Boxes {
        self.rectangles.clear();
        let items = Merge { left, right }.map(|(item, right)| rectangle(item, slow, fast, right));
        self.rows.run(items, combine_row::<Op>, &mut self.rectangles);
        let to_box =
            |r: &Swept<[u64; 2]>| placed(common, [(slow, [r.start, r.end]), (fast, r.cross)]);
        self.rectangles.iter().map(to_box).collect()
    }

    fn volume<Op: RowOp>(&mut self, left: &[Box3], right: &[Box3]) -> Boxes {
        self.volumes.clear();
        let items = Merge { left, right }.map(|(item, right)| Swept {
            start: item.min()[0],
            end: item.max()[0],
            cross: rectangle(item, 1, 2, right),
        });
        let rows = &mut self.rows;
        let cross_section = |active: &[Swept<Swept<RowRun>>], out: &mut Vec<Swept<[u64; 2]>>| {
            if !unaltered::<Op>(active, out) {
                rows.run(active.iter().map(|item| item.cross), combine_row::<Op>, out);
            }
        };
        self.planes.run(items, cross_section, &mut self.volumes);
        let to_box = |v: &Swept<Swept<[u64; 2]>>| {
            let Swept { start, end, cross: [lo, hi] } = v.cross;
            Box3::new([v.start, start, lo], [v.end, end, hi])
        };
        self.volumes.iter().map(to_box).collect()
    }
}

/// Which axes a sweep has to look at, slowest first, and the common extents in the others.
struct Axes {
    common: Box3,
    varying: [usize; 3],
    count: usize,
}

impl Axes {
    /// `None` if there are no boxes at all.
    fn of(left: &[Box3], right: &[Box3]) -> Option<Axes> {
        let common = *left.first().or(right.first())?;
        let (first_min, first_max) = (common.min(), common.max());
        let mut differs = [0; 3];
        for item in left.iter().chain(right) {
            for (d, differs) in differs.iter_mut().enumerate() {
                *differs |= (item.min()[d] ^ first_min[d]) | (item.max()[d] ^ first_max[d]);
            }
        }
        let (mut varying, mut count) = ([0; 3], 0);
        for dim in (0..3).filter(|&dim| differs[dim] != 0) {
            varying[count] = dim;
            count += 1;
        }
        Some(Axes { common, varying, count })
    }
}

/// The box `common` with other extents along two axes.
#[inline]
fn placed(common: &Box3, [slow, fast]: [(usize, [u64; 2]); 2]) -> Box3 {
    // Selects instead of indexed stores: reading a box back just after its parts were
    // written one by one stalls the processor, here for a fifth of the time of a sweep.
    let side = |d: usize, end: usize, common: Coord3| match d {
        _ if d == fast.0 => fast.1[end],
        _ if d == slow.0 => slow.1[end],
        _ => common[d],
    };
    let (min, max) = common.corners();
    let corner = |end: usize, common: Coord3| {
        [side(0, end, common), side(1, end, common), side(2, end, common)]
    };
    Box3::new(corner(0, min), corner(1, max))
}

fn run(item: &Box3, fast: usize, right: bool) -> RowRun {
    RowRun { lo: item.min()[fast], hi: item.max()[fast], right }
}

fn rectangle(item: &Box3, slow: usize, fast: usize, right: bool) -> Swept<RowRun> {
    Swept { start: item.min()[slow], end: item.max()[slow], cross: run(item, fast, right) }
}

fn combine_row<Op: RowOp>(active: &[Swept<RowRun>], out: &mut Vec<[u64; 2]>) {
    Op::combine(active.iter().map(|item| item.cross), out);
}

/// Passes on, or drops, a plane that only one operand has a part in. A single rectangle is
/// always canonical, more of them are if they are those of a canonical operand, which the
/// left operand of a difference is.
fn unaltered<Op: RowOp>(active: &[Swept<Swept<RowRun>>], out: &mut Vec<Swept<[u64; 2]>>) -> bool {
    let alone = |right: bool| active.iter().all(|item| item.cross.cross.right == right);
    let to_rectangle = |item: &Swept<Swept<RowRun>>| {
        let Swept { start, end, cross: RowRun { lo, hi, .. } } = item.cross;
        Swept { start, end, cross: [lo, hi] }
    };
    match active {
        [] => true,
        [item] => {
            let keeps = if item.cross.cross.right { Op::KEEPS_RIGHT } else { Op::KEEPS_LEFT };
            out.extend(keeps.then(|| to_rectangle(item)));
            true
        }
        _ if !Op::KEEPS_RIGHT && alone(true) => true,
        _ if !Op::KEEPS_RIGHT && alone(false) => {
            out.extend(active.iter().map(to_rectangle));
            // Active items are in order of the slow axis alone.
            out.sort_unstable();
            true
        }
        _ => false,
    }
}

/// Two lists of boxes in ascending order as one, each box with whether it is of the right.
struct Merge<'a> {
    left: &'a [Box3],
    right: &'a [Box3],
}

impl<'a> Iterator for Merge<'a> {
    type Item = (&'a Box3, bool);

    fn next(&mut self) -> Option<Self::Item> {
        match (self.left.split_first(), self.right.split_first()) {
            (Some((l, rest)), Some((r, _))) if l.min() <= r.min() => {
                self.left = rest;
                Some((l, false))
            }
            (Some((l, rest)), None) => {
                self.left = rest;
                Some((l, false))
            }
            (_, Some((r, rest))) => {
                self.right = rest;
                Some((r, true))
            }
            (None, None) => None,
        }
    }
}

/// What an active item is ordered by: its first position on the next faster axis.
trait Position: Copy {
    fn position(&self) -> u64;
}

impl Position for RowRun {
    fn position(&self) -> u64 {
        self.lo
    }
}

impl<T: Copy> Position for Swept<T> {
    fn position(&self) -> u64 {
        self.start
    }
}

/// The state of a sweep along one axis, kept between runs so that its lists are reused.
struct Sweep<I, K> {
    /// Items at the current position, in ascending order of their cross-sections' positions.
    active: Vec<Swept<I>>,
    /// The cross-section at the current position.
    cross: Vec<K>,
    /// The items that make up the cross-section before the current position.
    open: Vec<Open<K>>,
    /// The items that make up the cross-section at the current position.
    reopened: Vec<Open<K>>,
}

/// An item of the output whose end is not known yet.
#[derive(Clone, Copy)]
struct Open<K> {
    cross: K,
    /// Its index in the output.
    slot: usize,
}

impl<I, K> Sweep<I, K> {
    const fn new() -> Self {
        Sweep { active: Vec::new(), cross: Vec::new(), open: Vec::new(), reopened: Vec::new() }
    }
}

impl<I: Position, K: Copy + Ord> Sweep<I, K> {
    /// Appends the result of sweeping over `items`, which come in ascending order of their
    /// starts, to `out`, in ascending order.
    fn run(
        &mut self,
        mut items: impl Iterator<Item = Swept<I>>,
        mut cross_section: impl FnMut(&[Swept<I>], &mut Vec<K>),
        out: &mut Vec<Swept<K>>,
    ) {
        let mut upcoming = items.next();
        let mut nearest_end = u64::MAX;
        while upcoming.is_some() || !self.active.is_empty() {
            let at = upcoming.map_or(nearest_end, |item| item.start.min(nearest_end));
            nearest_end = self.retire(at);
            while let Some(item) = upcoming.filter(|item| item.start == at) {
                nearest_end = nearest_end.min(item.end);
                self.activate(item);
                upcoming = items.next();
            }
            self.cross.clear();
            cross_section(&self.active, &mut self.cross);
            self.advance(at, out);
        }
    }

    /// Drops active items that end at or before `at`; the nearest end of the others.
    fn retire(&mut self, at: u64) -> u64 {
        let mut nearest = u64::MAX;
        let mut kept = 0;
        for i in 0..self.active.len() {
            let item = self.active[i];
            if item.end > at {
                nearest = nearest.min(item.end);
                self.active[kept] = item;
                kept += 1;
            }
        }
        self.active.truncate(kept);
        nearest
    }

    /// Adds an item at its place in the order. Items that start together come in order, so
    /// few have to move, and moving them one by one beats a call that moves them at once.
    fn activate(&mut self, item: Swept<I>) {
        self.active.push(item);
        let position = item.cross.position();
        let mut place = self.active.len() - 1;
        while place > 0 && self.active[place - 1].cross.position() > position {
            self.active[place] = self.active[place - 1];
            place -= 1;
        }
        self.active[place] = item;
    }

    /// Closes the open items that are not in the cross-section at `at`, and opens those that
    /// newly are. Both lists are in ascending order, so one pass over them is enough.
    fn advance(&mut self, at: u64, out: &mut Vec<Swept<K>>) {
        self.reopened.clear();
        let mut next = 0;
        for &cross in &self.cross {
            while next < self.open.len() && self.open[next].cross < cross {
                out[self.open[next].slot].end = at;
                next += 1;
            }
            if next < self.open.len() && self.open[next].cross == cross {
                self.reopened.push(self.open[next]);
                next += 1;
            } else {
                self.reopened.push(Open { cross, slot: out.len() });
                out.push(Swept { start: at, cross, end: u64::MAX });
            }
        }
        for closed in &self.open[next..] {
            out[closed.slot].end = at;
        }
        std::mem::swap(&mut self.open, &mut self.reopened);
    }
}
