//! A set of points, as a canonical set of disjoint boxes.
//!
//! Owns the canonical form and everything that can be answered from small or trivial
//! operands without a sweep; larger ones go to `sweep`. It refuses to know which space the
//! points belong to: a complement, for instance, is a difference from a box that the caller
//! knows.

mod join;
mod rows;
mod stitch;
mod sweep;

use std::cmp::Ordering;
use std::fmt;

use smallvec::{SmallVec, smallvec};

use crate::box3::{Box3, Coord3};
use rows::{Difference, Union};
use sweep::combine;

/// A list of boxes; one is stored in place.
type Boxes = SmallVec<[Box3; 1]>;

/// A list of boxes on its way to become a region.
type Parts = SmallVec<[Box3; 8]>;

/// A set of points of a space of up to three dimensions.
///
/// The boxes are disjoint and *canonical*: maximal runs along the fastest dimension, equal
/// runs merged along the next slower dimension, equal rectangles merged along the slowest,
/// in ascending order of their first points (row-major). There is one such form for every
/// set of points, so equality and hash of regions are those of the sets.
///
/// Regions of no or one box do not allocate, and operations on them take constant time. In
/// the complexities below, n and m are the numbers of boxes of the operands, s is the number
/// of distinct coordinates of box edges along the slowest dimension, and w the number of
/// boxes that meet at one such coordinate.
#[derive(PartialEq, Eq, Hash, Default)]
pub struct Region {
    boxes: Boxes,
}

impl Region {
    /// The region without points.
    #[inline]
    pub fn empty() -> Region {
        Region { boxes: Boxes::new() }
    }

    /// The union of any boxes, which may overlap and come in any order.
    ///
    /// O(n log n + s·w) in up to two dimensions, O(n log n + s·w·w) in three; linear if the
    /// boxes merge in the order given, as tiles in row- or column-major order do.
    pub fn from_boxes(boxes: impl IntoIterator<Item = Box3>) -> Region {
        let mut boxes = boxes.into_iter().filter(|item| !item.is_empty());
        let Some(mut single) = boxes.next() else { return Region::empty() };
        // While they are one box, it stays in registers: read back from a builder just after
        // it was written there, it would stall the processor for longer than a join takes.
        while let Some(item) = boxes.next() {
            if !single.continue_by(&item) && !single.join(&item) {
                return RegionBuilder::of_two(single, item).collect(boxes);
            }
        }
        Region::from(single)
    }

    /// The disjoint boxes, in the canonical order.
    #[inline]
    pub fn boxes(&self) -> &[Box3] {
        &self.boxes
    }

    /// Whether the region has no points.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.boxes.is_empty()
    }

    /// The number of points, saturating at `u64::MAX`. O(n).
    pub fn volume(&self) -> u64 {
        self.boxes.iter().fold(0, |sum: u64, item| sum.saturating_add(item.volume()))
    }

    /// The smallest box that holds the region; [`Box3::EMPTY`] if it is empty. O(n).
    #[inline]
    pub fn bounding_box(&self) -> Box3 {
        match *self.boxes {
            [single] => single,
            ref boxes => boxes.iter().fold(Box3::EMPTY, |bounds, item| bounds.bounding(item)),
        }
    }

    /// The box that the region consists of, if it is exactly one.
    #[inline]
    pub fn as_box(&self) -> Option<Box3> {
        match *self.boxes {
            [single] => Some(single),
            _ => None,
        }
    }

    /// Whether `point` is in the region. O(n).
    pub fn contains_point(&self, point: Coord3) -> bool {
        self.boxes.iter().any(|item| item.contains_point(point))
    }

    /// Whether every point of `wanted` is in the region. O(n).
    pub fn contains_box(&self, wanted: &Box3) -> bool {
        if self.boxes.iter().any(|item| item.contains(wanted)) || wanted.is_empty() {
            return true;
        }
        let Some(volume) = wanted.checked_volume() else {
            return Region::from(*wanted).difference(self).is_empty();
        };
        // The boxes are disjoint, so volumes add up; those of parts of `wanted` cannot
        // overflow where its own does not.
        let found: u64 = self.near(wanted).map(|item| item.intersection(wanted).volume()).sum();
        found == volume
    }

    /// Whether every point of `wanted` is in the region. O(n·m) for up to 256 pairs of boxes,
    /// that of [`difference`](Self::difference) beyond.
    pub fn contains(&self, wanted: &Region) -> bool {
        if self.boxes.len() * wanted.boxes.len() <= CONTAINS_PAIRS_MAX {
            return wanted.boxes.iter().all(|item| self.contains_box(item));
        }
        wanted.difference(self).is_empty()
    }

    /// Whether the region and the box share a point. O(n).
    pub fn intersects_box(&self, other: &Box3) -> bool {
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::TouchingIntersects.is_active() && !other.is_empty() {
            return self.boxes.iter().any(|item| item.touches(other));
        }
        self.boxes.iter().any(|item| item.intersects(other))
    }

    /// Whether every point of the region is in the box. O(n).
    #[inline]
    pub fn is_within(&self, bounds: &Box3) -> bool {
        self.boxes.iter().all(|item| bounds.contains(item))
    }

    /// Whether the regions share a point. O(n·m) for up to 4,096 pairs of boxes, though
    /// usually near O(n + m); O((n + m)·w) beyond.
    #[inline]
    pub fn intersects(&self, other: &Region) -> bool {
        if let ([left], [right]) = (&*self.boxes, &*other.boxes) {
            return left.intersects(right);
        }
        join::any_pair(&self.boxes, &other.boxes)
    }

    /// The points of either region. O((n + m) + s·w) in up to two dimensions,
    /// O((n + m) + s·w·w) in three.
    pub fn union(&self, other: &Region) -> Region {
        match (&*self.boxes, &*other.boxes) {
            (_, []) => self.clone(),
            ([], _) => other.clone(),
            ([left], [right]) => union_of_two(left, right),
            ([left], _) if left.contains(&other.bounding_box()) => self.clone(),
            (_, [right]) if right.contains(&self.bounding_box()) => other.clone(),
            (left, [right]) if left.iter().any(|item| item.contains(right)) => self.clone(),
            ([left], right) if right.iter().any(|item| item.contains(left)) => other.clone(),
            (left, right) => Region { boxes: combine::<Union>(left, right) },
        }
    }

    /// Adds the points of `other`; see [`union`](Self::union).
    pub fn union_with(&mut self, other: &Region) {
        match &*other.boxes {
            [] => {}
            [single] => self.union_box(single),
            _ => *self = self.union(other),
        }
    }

    /// Adds the points of the box; see [`union`](Self::union).
    pub fn union_box(&mut self, other: &Box3) {
        if self.is_empty() {
            *self = Region::from(*other);
        } else if !self.boxes.iter().any(|item| item.contains(other)) {
            *self = self.union(&Region::from(*other));
        }
    }

    /// The points of both regions. That of [`intersects`](Self::intersects) to find the parts
    /// in common, and O(k log k + k·w) to put k of them into canonical form; the cost of
    /// [`from_boxes`](Self::from_boxes) if they meet within a plane of a 3-D space.
    pub fn intersection(&self, other: &Region) -> Region {
        if let ([left], [right]) = (&*self.boxes, &*other.boxes) {
            return Region::from(left.intersection(right));
        }
        let mut parts = Parts::new();
        join::for_each_pair(&self.boxes, &other.boxes, |l, r| parts.push(l.overlap(r)));
        Region::stitched(&mut parts)
    }

    /// The points of both the region and the box. O(n), and as for
    /// [`intersection`](Self::intersection) for the parts found.
    pub fn intersection_box(&self, other: &Box3) -> Region {
        if let [single] = &*self.boxes {
            return Region::from(single.intersection(other));
        }
        let near = self.near(other).filter(|item| item.intersects(other));
        let mut parts: Parts = near.map(|item| item.overlap(other)).collect();
        Region::stitched(&mut parts)
    }

    /// The region without what lies outside the box: as
    /// [`intersection_box`](Self::intersection_box), but a region that is inside already,
    /// which is the rule for what is clamped to a buffer, is not built anew.
    #[must_use]
    #[inline]
    pub fn clamped(self, bounds: &Box3) -> Region {
        if self.is_within(bounds) { self } else { self.intersection_box(bounds) }
    }

    /// The points of this region that are not in `other`. O((n + m) + s·w) in up to two
    /// dimensions, O((n + m) + s·w·w) in three.
    pub fn difference(&self, other: &Region) -> Region {
        match (&*self.boxes, &*other.boxes) {
            ([], _) => Region::empty(),
            (_, []) => self.clone(),
            ([left], [right]) if right.contains(left) => Region::empty(),
            ([left], [right]) => difference_of_two(left, right),
            (left, right) => {
                let holes = join::touching(right, left);
                if holes.is_empty() {
                    return self.clone();
                }
                Region { boxes: combine::<Difference>(left, &holes) }
            }
        }
    }

    /// The points of this region that are not in the box; see
    /// [`difference`](Self::difference).
    pub fn difference_box(&self, other: &Box3) -> Region {
        self.difference(&Region::from(*other))
    }

    /// Removes the points of `other`; see [`difference`](Self::difference).
    pub fn subtract(&mut self, other: &Region) {
        if self.intersects(other) {
            *self = self.difference(other);
        }
    }

    /// The boxes that can intersect `other`: those that begin before its end.
    fn near<'a>(&'a self, other: &'a Box3) -> impl Iterator<Item = &'a Box3> {
        self.boxes.iter().take_while(|item| item.min()[0] < other.max()[0])
    }

    /// The canonical form of the parts that two regions have in common.
    fn stitched(parts: &mut [Box3]) -> Region {
        parts.sort_unstable_by(row_major);
        match stitch::stitch(parts) {
            Some(kept) => Region { boxes: Boxes::from_slice(&parts[..kept]) },
            None => Region::normalized(parts),
        }
    }

    /// The canonical form of any non-empty boxes.
    fn normalized(boxes: &mut [Box3]) -> Region {
        match *boxes {
            [] => Region::empty(),
            [single] => Region::from(single),
            [left, right] => union_of_two(&left, &right),
            _ if lie_apart(boxes) => Region { boxes: Boxes::from_slice(boxes) },
            _ => {
                boxes.sort_unstable_by(row_major);
                Region { boxes: combine::<Union>(boxes, &[]) }
            }
        }
    }
}

/// Whether boxes are their canonical form, as each lies behind the one before, with a gap, and beside it in no dimension that
/// is slower: such as every third element, or a grid of tiles that do not touch. O(n), and most often over at the first pair.
fn lie_apart(boxes: &[Box3]) -> bool {
    let side = |item: &Box3, dim: usize| (item.min()[dim], item.max()[dim]);
    let follows = |pair: &[Box3]| {
        let (left, right) = (&pair[0], &pair[1]);
        let slower = (0..3).find(|&dim| side(left, dim) != side(right, dim));
        slower.is_some_and(|dim| left.max()[dim] < right.min()[dim])
    };
    boxes.windows(2).all(follows)
}

/// Up to how many pairs of boxes containment is answered box by box; beyond, a sweep is
/// faster.
const CONTAINS_PAIRS_MAX: usize = 256;

/// The order of first points.
#[inline]
fn row_major(left: &Box3, right: &Box3) -> Ordering {
    // The slower dimensions as one number, because a comparison without branches makes
    // sorting a third faster than the derived order of arrays.
    let slow = |item: &Box3| u128::from(item.min()[0]) << 64 | u128::from(item.min()[1]);
    slow(left).cmp(&slow(right)).then_with(|| left.min()[2].cmp(&right.min()[2]))
}

/// Collects any boxes into a region.
///
/// A stack whose top is merged with what comes next for as long as the two together are a
/// box. Tiles, rows and what cutting a box leaves come in an order in which this reassembles
/// them completely.
#[derive(Default)]
pub(crate) struct RegionBuilder {
    /// Kept apart from the others, as most pushes touch nothing else; empty at first.
    top: Box3,
    below: Parts,
}

impl RegionBuilder {
    /// Boxes, none of them empty, that are not one together.
    fn of_two(first: Box3, second: Box3) -> RegionBuilder {
        RegionBuilder { top: second, below: smallvec![first] }
    }

    /// The union of all boxes pushed, and `more`.
    fn collect(mut self, more: impl Iterator<Item = Box3>) -> Region {
        more.for_each(|item| self.push(item));
        self.finish()
    }

    #[inline]
    pub(crate) fn push(&mut self, item: Box3) {
        if item.is_empty() {
            return;
        }
        // Tried first, as it is the rule: an empty top is joined with nothing.
        if self.top.join(&item) {
            return;
        }
        if !self.top.is_empty() {
            settle(&mut self.below, self.top);
        }
        self.top = item;
    }

    /// The union of all boxes pushed.
    #[inline]
    pub(crate) fn finish(&mut self) -> Region {
        if self.below.is_empty() {
            return Region::from(self.top);
        }
        settle(&mut self.below, self.top);
        Region::normalized(&mut self.below)
    }
}

/// Pushes `top`, merged with what it will lie on. Done once a box is complete and not with
/// every push, which gives the same result in fewer steps. The box is passed by value so that
/// the builder can keep it in registers.
fn settle(below: &mut Parts, mut top: Box3) {
    while below.last().is_some_and(|below| top.join(below)) {
        below.pop();
    }
    below.push(top);
}

fn union_of_two(left: &Box3, right: &Box3) -> Region {
    if let Some(merged) = left.exact_union(right) {
        return Region::from(merged);
    }
    let (first, second) = if left <= right { (left, right) } else { (right, left) };
    // Boxes that are apart in the slowest dimension cannot share a row, nor merge.
    if first.max()[0] < second.min()[0] {
        return Region { boxes: smallvec![*first, *second] };
    }
    Region { boxes: combine::<Union>(&[*first], &[*second]) }
}

fn difference_of_two(left: &Box3, right: &Box3) -> Region {
    let hole = left.intersection(right);
    if hole.is_empty() {
        return Region::from(*left);
    }
    let mut boxes = Boxes::new();
    left.for_each_outside(&hole, |part| boxes.push(part));
    #[cfg(feature = "mutants")]
    if celerity_mutants::Mutant::DifferenceForgetsPart.is_active() && boxes.len() > 1 {
        boxes.pop();
    }
    Region { boxes }
}

impl Clone for Region {
    /// Copies boxes as the plain data that they are; the derived form would push clones one by
    /// one, at 67 instructions for the usual single box.
    #[inline]
    fn clone(&self) -> Region {
        match *self.boxes {
            [] => Region::empty(),
            [single] => Region { boxes: Boxes::from_buf([single]) },
            ref boxes => Region { boxes: Boxes::from_slice(boxes) },
        }
    }
}

impl From<Box3> for Region {
    #[inline]
    fn from(single: Box3) -> Region {
        if single.is_empty() {
            return Region::empty();
        }
        Region { boxes: Boxes::from_buf([single]) }
    }
}

impl FromIterator<Box3> for Region {
    fn from_iter<I: IntoIterator<Item = Box3>>(boxes: I) -> Region {
        Region::from_boxes(boxes)
    }
}

impl fmt::Display for Region {
    /// `{[0..4], [6..8]}`; the empty region is `{}`. Of more than 32 boxes the first ones, how many there are more, and a
    /// box around all. A precision is passed on to [boxes](Box3).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 32;
        let shown = if self.boxes.len() > MOST { MOST / 2 } else { self.boxes.len() };
        f.write_str("{")?;
        for (i, item) in self.boxes[..shown].iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            f.write_str(separator)?;
            fmt::Display::fmt(item, f)?;
        }
        if shown < self.boxes.len() {
            write!(f, " and {} more boxes, all in ", self.boxes.len() - shown)?;
            fmt::Display::fmt(&self.bounding_box(), f)?;
        }
        f.write_str("}")
    }
}

impl fmt::Debug for Region {
    /// As [`Display`](fmt::Display).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(boxes: &[([usize; 2], [usize; 2])]) -> Region {
        boxes.iter().map(|&(offset, range)| Box3::from_offset_range(offset, range)).collect()
    }

    #[test]
    fn runs_are_long_in_the_fastest_dimension() {
        let ell = region(&[([0, 0], [4, 2]), ([2, 2], [2, 4])]);
        assert_eq!(ell.to_string(), "{[0..2, 0..2], [2..4, 0..6]}");
        assert_eq!(Region::empty().to_string(), "{}");
        let dotted = |count| (0..count).map(|i| Box3::from_offset_range([2 * i], [1]));
        assert_eq!(Region::from_boxes(dotted(32)).to_string().matches("..").count(), 32);
        let count = if cfg!(miri) { 100 } else { 5000 };
        let long = Region::from_boxes(dotted(count)).to_string();
        assert!(long.starts_with("{[0..1], [2..3], ") && long.len() < 250, "{long}");
        let (more, end) = (count - 16, 2 * count - 1);
        let rest = format!("[30..31] and {more} more boxes, all in [0..{end}]}}");
        assert!(long.ends_with(&rest), "{long}");
    }

    #[test]
    fn a_hole_is_cut_and_filled_again() {
        let whole = Region::from(Box3::from_range([6, 6]));
        let hole = Box3::from_offset_range([2, 2], [2, 2]);
        let mut ring = whole.difference_box(&hole);
        assert_eq!(ring.to_string(), "{[0..2, 0..6], [2..4, 0..2], [2..4, 4..6], [4..6, 0..6]}");
        assert!(!ring.intersects_box(&hole) && !ring.contains(&whole));
        ring.union_box(&hole);
        assert_eq!(ring, whole);
    }

    #[test]
    fn parts_in_common_merge_in_the_middle_dimension() {
        // Both operands are cut at y = 2, but at different places along x.
        let left =
            Region::from_boxes([Box3::new([0, 0, 0], [2, 2, 4]), Box3::new([0, 2, 0], [2, 4, 3])]);
        let right = Region::from(Box3::new([1, 0, 0], [4, 4, 3]));
        assert_eq!(left.intersection(&right).as_box(), Some(Box3::new([1, 0, 0], [2, 4, 3])));
    }

    #[test]
    fn containment_of_volumes_beyond_64_bits() {
        const END: u64 = u64::MAX;
        let all = Region::from(Box3::new([0; 3], [END; 3]));
        let halves = all.difference_box(&Box3::new([0, 5, 0], [END, 6, END]));
        assert_eq!(all.volume(), END);
        assert!(!halves.contains(&all) && all.contains(&halves));
        let corner = Box3::new([0, 7, 0], [END; 3]);
        assert!(halves.contains_box(&corner) && !halves.contains_box(&all.bounding_box()));
    }
}
