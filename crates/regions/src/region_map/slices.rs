//! Entries that cut the extent along one dimension only, in order.
//!
//! The list stores where each slice begins; it ends where the next begins, or with the
//! extent, which the owner passes in. Neighbours always have different values.

use smallvec::{SmallVec, smallvec};

use crate::box3::{Box3, Coord3};
use crate::entry::Entry;

#[derive(Clone)]
pub(super) struct Slices<V> {
    /// The dimension that is cut. A single slice can be cut along any.
    axis: usize,
    list: SmallVec<[Slice<V>; 3]>,
}

#[derive(Clone)]
struct Slice<V> {
    start: u64,
    value: V,
}

/// How a box lies in an extent that is cut along one dimension.
pub(super) enum Fit {
    /// It is all of it.
    Whole,
    /// It spans the extent in all dimensions but that of the cuts.
    Slice,
    /// It cannot become a slice.
    None,
}

/// A bit for each dimension that the box does not span, as one number: a branch for each of them costs more than all
/// comparisons.
#[inline]
fn short_of(extent: &Box3, at: &Box3) -> usize {
    let falls_short = |dim: usize| {
        let differs = at.min()[dim] ^ extent.min()[dim] | at.max()[dim] ^ extent.max()[dim];
        usize::from(differs != 0) << dim
    };
    falls_short(0) | falls_short(1) | falls_short(2)
}

/// Up to how many slices a linear search beats a binary one.
const LINEAR_MAX: usize = 16;

impl<V: Clone + PartialEq> Slices<V> {
    pub(super) fn single(extent: &Box3, value: V) -> Self {
        if extent.is_empty() {
            return Slices { axis: 0, list: SmallVec::new() };
        }
        Slices { axis: 0, list: smallvec![Slice { start: extent.min()[0], value }] }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// The value at a point inside the extent.
    pub(super) fn get(&self, at: Coord3) -> &V {
        &self.list[self.find(at[self.axis])].value
    }

    /// Whether all of the box has the value of its first element.
    pub(super) fn covers_with_one(&self, extent: &Box3, at: &Box3) -> bool {
        at.max()[self.axis] <= self.end(self.find(at.min()[self.axis]), extent)
    }

    /// What the box, which lies inside the extent, can become. The dimension of the cuts is
    /// chosen now if there are no cuts yet.
    #[inline]
    pub(super) fn turn_to(&mut self, extent: &Box3, at: &Box3) -> Fit {
        let short = short_of(extent, at);
        if short == 0 {
            return Fit::Whole;
        }
        if let [only] = &mut *self.list {
            self.axis = short.trailing_zeros() as usize;
            only.start = extent.min()[self.axis];
        }
        if short == 1 << self.axis { Fit::Slice } else { Fit::None }
    }

    /// Whether all of the boxes, which lie inside the extent, can become slices. They are in order then, if they are those of
    /// a region. As [`turn_to`](Self::turn_to) otherwise.
    pub(super) fn turn_to_all(&mut self, extent: &Box3, boxes: &[Box3]) -> bool {
        let Some((first, others)) = boxes.split_first() else { return true };
        matches!(self.turn_to(extent, first), Fit::Slice)
            && others.iter().all(|other| short_of(extent, other) == 1 << self.axis)
    }

    /// Maps the whole extent, which is not empty, to `value`.
    #[inline]
    pub(super) fn fill(&mut self, value: V) {
        self.list.truncate(1);
        self.list[0].value = value;
    }

    pub(super) fn iter<'a>(&'a self, extent: &Box3) -> impl Iterator<Item = (Box3, &'a V)> {
        let extent = *extent;
        let slice = move |i: usize| {
            let Slice { start, value } = &self.list[i];
            (extent.with_extent(self.axis, *start, self.end(i, &extent)), value)
        };
        (0..self.list.len()).map(slice)
    }

    pub(super) fn take_entries(&mut self, extent: &Box3) -> Vec<Entry<V>> {
        self.iter(extent).map(|(extent, value)| Entry { extent, value: value.clone() }).collect()
    }

    #[inline]
    pub(super) fn for_each_in(&self, within: &Box3, mut visit: impl FnMut(Box3, &V)) {
        // Where the list lies is looked up once and not for every slice.
        let list = self.list.as_slice();
        if let [only] = list {
            return visit(*within, &only.value);
        }
        let (mut lo, to) = (within.min()[self.axis], within.max()[self.axis]);
        for i in self.find(lo)..list.len() {
            let hi = list.get(i + 1).map_or(to, |next| next.start.min(to));
            visit(within.with_extent(self.axis, lo, hi), &list[i].value);
            if hi == to {
                return;
            }
            lo = hi;
        }
    }

    /// Maps the box, which can become a [slice](Self::turn_to), to `value`.
    pub(super) fn update(&mut self, extent: &Box3, at: &Box3, value: V) {
        let (lo, hi) = (at.min()[self.axis], at.max()[self.axis]);
        let first = self.find(lo);
        if self.is_slice(first, (lo, hi), extent) && !self.has_neighbour_of(first, &value) {
            // What a loop does to its buffers: the same chunks are written again and again.
            self.list[first].value = value;
            return;
        }
        let last = self.find_from(first, hi - 1);
        let rest = self.rest_after(last, hi, extent, &value);

        // The slices `from..to` give way to the new one, which may grow into its neighbours.
        let (mut from, mut to, mut start) = (first, last + 1, lo);
        if self.list[first].start < lo {
            if self.list[first].value == value {
                start = self.list[first].start;
            } else {
                from += 1;
            }
        } else if first > 0 && self.list[first - 1].value == value {
            from -= 1;
            start = self.list[from].start;
        }
        if self.list.get(to).is_some_and(|next| next.start == hi && next.value == value) {
            to += 1;
        }
        self.replace(from, to, Slice { start, value }, rest);
    }

    /// Whether slice `i` is exactly `lo..hi`.
    #[inline]
    fn is_slice(&self, i: usize, (lo, hi): (u64, u64), extent: &Box3) -> bool {
        self.list[i].start == lo && self.end(i, extent) == hi
    }

    /// Whether the slice before or after slice `i` has this value.
    #[inline]
    fn has_neighbour_of(&self, i: usize, value: &V) -> bool {
        let holds = |slice: &Slice<V>| slice.value == *value;
        (i > 0 && holds(&self.list[i - 1])) || self.list.get(i + 1).is_some_and(holds)
    }

    /// Replaces the values in the box, which can become a [slice](Self::turn_to).
    pub(super) fn modify(&mut self, extent: &Box3, at: &Box3, mut change: impl FnMut(&V) -> V) {
        let first = self.cut(at.min()[self.axis], extent);
        let end = self.cut(at.max()[self.axis], extent);
        for slice in &mut self.list[first..end] {
            slice.value = change(&slice.value);
        }
        self.join(first.saturating_sub(1), self.list.len().min(end + 1));
    }

    /// Replaces the values in boxes that [can become slices](Self::turn_to_all), in order. O(slices + boxes).
    pub(super) fn modify_each(
        &mut self,
        extent: &Box3,
        boxes: &[Box3],
        mut change: impl FnMut(&V) -> V,
    ) {
        let axis = self.axis;
        let before = std::mem::take(&mut self.list);
        self.list.reserve(before.len() + 2 * boxes.len());
        let mut boxes = boxes.iter().map(|part| (part.min()[axis], part.max()[axis])).peekable();
        let ends = before.iter().skip(1).map(|next| next.start);
        let ends: Vec<u64> = ends.chain([extent.max()[axis]]).collect();
        for (Slice { mut start, value }, end) in before.into_iter().zip(ends) {
            while let Some(&(lo, hi)) = boxes.peek().filter(|(lo, _)| *lo < end) {
                let (from, to) = (lo.max(start), hi.min(end));
                self.append(start, from, &value);
                self.append(from, to, &change(&value));
                start = to;
                if hi > end {
                    break;
                }
                boxes.next();
            }
            self.append(start, end, &value);
        }
    }

    /// Appends a slice, if it is one, to those in front of it, or to the last of them if that has its value.
    fn append(&mut self, start: u64, end: u64, value: &V) {
        if start < end && self.list.last().is_none_or(|last| last.value != *value) {
            self.list.push(Slice { start, value: value.clone() });
        }
    }

    /// The index of the slice that begins at `at`, where one is cut in two if need be; the
    /// number of slices if the extent ends there.
    fn cut(&mut self, at: u64, extent: &Box3) -> usize {
        if at == extent.max()[self.axis] {
            return self.list.len();
        }
        let holder = self.find(at);
        if self.list[holder].start == at {
            return holder;
        }
        let value = self.list[holder].value.clone();
        self.list.insert(holder + 1, Slice { start: at, value });
        holder + 1
    }

    /// Joins neighbours of equal value among the slices `from..to`, of which there is one.
    fn join(&mut self, from: usize, to: usize) {
        let mut kept = from;
        for next in from + 1..to {
            if self.list[next].value != self.list[kept].value {
                kept += 1;
                self.list.swap(kept, next);
            }
        }
        self.list.drain(kept + 1..to);
    }

    pub(super) fn modify_all(&mut self, mut change: impl FnMut(&V) -> V) {
        for slice in &mut self.list {
            slice.value = change(&slice.value);
        }
        self.list.dedup_by(|next, kept| next.value == kept.value);
    }

    /// What remains of slice `last` after `hi` if its value is not the new one.
    fn rest_after(&self, last: usize, hi: u64, extent: &Box3, value: &V) -> Option<Slice<V>> {
        let remains = hi < self.end(last, extent) && self.list[last].value != *value;
        remains.then(|| Slice { start: hi, value: self.list[last].value.clone() })
    }

    /// Puts `new`, and `rest` if there is one, in the place of the slices `from..to`.
    fn replace(&mut self, from: usize, to: usize, new: Slice<V>, rest: Option<Slice<V>>) {
        let mut next = from;
        for slice in std::iter::once(new).chain(rest) {
            if next < to {
                self.list[next] = slice;
            } else {
                self.list.insert(next, slice);
            }
            next += 1;
        }
        if next < to {
            self.list.drain(next..to);
        }
    }

    /// The index of the slice that holds position `at` of the axis.
    #[inline]
    fn find(&self, at: u64) -> usize {
        if self.list.len() <= LINEAR_MAX {
            self.find_from(0, at)
        } else {
            self.list.partition_point(|slice| slice.start <= at) - 1
        }
    }

    /// The index of the slice that holds position `at`, searched for from slice `first` on.
    #[inline]
    fn find_from(&self, first: usize, at: u64) -> usize {
        let later = self.list[first + 1..].iter();
        first + later.take_while(|slice| slice.start <= at).count()
    }

    /// Where slice `i` ends.
    fn end(&self, i: usize, extent: &Box3) -> u64 {
        self.list.get(i + 1).map_or(extent.max()[self.axis], |next| next.start)
    }
}
