//! Finding the pairs of boxes, one of each operand, that intersect.
//!
//! Both lists are walked along the slowest axis, in one of two ways. Few boxes are compared
//! with a window of the other list, which costs nothing to keep but may stay open for long
//! behind a long box; many are compared with lists of the boxes that are active. The module
//! refuses to know what is done with a pair.

use std::ops::ControlFlow;

use smallvec::SmallVec;

use super::Parts;
use crate::box3::Box3;

/// Up to how many pairs windows are used: their worst case is to try all pairs, and 4,096 of
/// them take no longer than keeping lists of 64 boxes each.
const WINDOW_MAX: usize = 4096;

/// Calls `visit` with every intersecting pair. Both lists are in ascending order.
pub(super) fn for_each_pair(left: &[Box3], right: &[Box3], mut visit: impl FnMut(&Box3, &Box3)) {
    let _ = try_each_pair(left, right, |l, r| {
        visit(l, r);
        ControlFlow::Continue(())
    });
}

/// Whether any pair intersects. Both lists are in ascending order.
pub(super) fn any_pair(left: &[Box3], right: &[Box3]) -> bool {
    try_each_pair(left, right, |_, _| ControlFlow::Break(())).is_break()
}

/// The boxes of `items` that intersect any of `others`, or may do so if there are many. Both
/// lists are in ascending order, and so is the result.
pub(super) fn touching(items: &[Box3], others: &[Box3]) -> Parts {
    if items.len() * others.len() > WINDOW_MAX {
        let bounds = others.iter().fold(Box3::EMPTY, |bounds, other| bounds.bounding(other));
        return items.iter().filter(|item| item.intersects(&bounds)).copied().collect();
    }
    let mut window = others;
    let mut touches = |item: &Box3| {
        window = skip_ended(window, item);
        let near = window.iter().take_while(|other| other.min()[0] < item.max()[0]);
        near.into_iter().any(|other| item.intersects(other))
    };
    items.iter().copied().filter(|item| touches(item)).collect()
}

fn try_each_pair(
    left: &[Box3],
    right: &[Box3],
    visit: impl FnMut(&Box3, &Box3) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if left.len() * right.len() <= WINDOW_MAX {
        try_window_pairs(left, right, visit)
    } else {
        try_active_pairs(left, right, visit)
    }
}

/// Walks over the left list and compares every box with those of the right one that begin
/// before its end, from the first on that has not ended by its beginning.
fn try_window_pairs(
    left: &[Box3],
    right: &[Box3],
    mut visit: impl FnMut(&Box3, &Box3) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut window = right;
    for l in left {
        window = skip_ended(window, l);
        for r in window {
            if r.min()[0] >= l.max()[0] {
                break;
            }
            if l.intersects(r) {
                visit(l, r)?;
            }
        }
    }
    ControlFlow::Continue(())
}

/// Leaves out leading boxes that have ended before `item` begins, along the slowest
/// dimension. They cannot meet later items either.
#[inline]
fn skip_ended<'a>(mut boxes: &'a [Box3], item: &Box3) -> &'a [Box3] {
    while let [first, rest @ ..] = boxes
        && first.max()[0] <= item.min()[0]
    {
        boxes = rest;
    }
    boxes
}

/// Walks both lists together in ascending order and compares every box with those of the
/// other list that have not ended by then.
fn try_active_pairs(
    mut left: &[Box3],
    mut right: &[Box3],
    mut visit: impl FnMut(&Box3, &Box3) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let (mut active_left, mut active_right) = (Active::default(), Active::default());
    loop {
        match (left.split_first(), right.split_first()) {
            (Some((l, rest)), r) if r.is_none_or(|(r, _)| l.min()[0] <= r.min()[0]) => {
                active_right.try_each(l, |r| visit(l, r))?;
                active_left.0.push(*l);
                left = rest;
            }
            (_, Some((r, rest))) => {
                active_left.try_each(r, |l| visit(l, r))?;
                active_right.0.push(*r);
                right = rest;
            }
            (_, None) => return ControlFlow::Continue(()),
        }
    }
}

/// Boxes of one list that may still intersect later boxes of the other.
#[derive(Default)]
struct Active(SmallVec<[Box3; 8]>);

impl Active {
    /// Drops what ends before `other` begins, and visits what intersects it.
    fn try_each(
        &mut self,
        other: &Box3,
        mut visit: impl FnMut(&Box3) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        // The list as a slice once and not for every step: where it lies costs as much to
        // find out as a comparison of boxes.
        let items = self.0.as_mut_slice();
        let (mut i, mut end) = (0, items.len());
        while i < end {
            let item = &items[i];
            if item.max()[0] <= other.min()[0] {
                end -= 1;
                items[i] = items[end];
                continue;
            }
            if item.intersects(other) {
                visit(item)?;
            }
            i += 1;
        }
        self.0.truncate(end);
        ControlFlow::Continue(())
    }
}
