//! How the image of a chunk depends on the chunk, one dimension of the buffer at a time: forwards
//! as [`Windows`] and [`Share`], and backwards, from elements to items. Intervals only; knows
//! neither boxes that are made of them nor mappers.

use std::ops::Range;

use celerity_regions::Box3;
use smallvec::{SmallVec, smallvec};

/// Intervals of one dimension, ascending and apart.
pub(super) type Intervals = SmallVec<[Range<u64>; 2]>;

/// How a mapper's image depends on the chunk, along one dimension of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DimRelation {
    /// The image is the chunk's own interval.
    Identity,
    /// The chunk's interval, grown by so many elements on either side.
    Padded(u64),
    /// As [`Padded`](Self::Padded), and what is beyond an edge of the buffer goes on at the
    /// opposite edge.
    Periodic(u64),
    /// An interval for each item along one dimension of the index space.
    Windows(Windows),
    /// A share of the dimension for each item along one dimension of the index space.
    Share(Share),
    /// The same interval for all chunks.
    Constant,
    /// Nothing is known.
    Opaque,
}

/// Intervals at equal distances: item `i` along dimension [`from`](Self::from) of the index space
/// touches [`width`](Self::width) elements from `stride · i + first` on. Indices are those of the
/// buffer and of the index space, wherever that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Windows {
    /// The dimension of the index space.
    pub from: u8,
    /// Elements between the beginnings of neighbouring items.
    pub stride: u64,
    /// Where the interval of item 0 begins.
    pub first: i64,
    /// Elements of an item.
    pub width: u64,
    /// Whether what is outside of the buffer is left out. If not, it is an error.
    pub clamped: bool,
}

/// The dimension, cut into as many shares as the index space has items along dimension
/// [`from`](Self::from): they differ by one granule at most, and only the last one may end within
/// a granule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Share {
    /// The dimension of the index space.
    pub from: u8,
    /// Shares begin at multiples of this; 0 means 1.
    pub granularity: u64,
}

impl DimRelation {
    /// The items that may touch `part`, which is not empty, of dimension `dim` of a buffer with
    /// `size` elements there: a dimension of the index space `global`, and an interval of it.
    /// `None` if any item may. The relation backwards. O(1).
    #[must_use]
    #[inline]
    pub fn items_around(
        self,
        dim: usize,
        part: Range<u64>,
        size: u64,
        global: &Box3,
    ) -> Option<(usize, Range<u64>)> {
        match self {
            Self::Identity => Some((dim, part)),
            Self::Padded(border) => Some((dim, padded(&part, border))),
            // Items at one edge of the buffer look at the other.
            Self::Periodic(border) if part.start < border => None,
            Self::Periodic(border) if part.end > size.saturating_sub(border) => None,
            Self::Periodic(border) => Some((dim, padded(&part, border))),
            Self::Windows(windows) => windows.items_around(&part),
            Self::Share(share) => share.items_around(&part, size, global),
            Self::Constant | Self::Opaque => None,
        }
    }
}

#[inline]
fn padded(part: &Range<u64>, border: u64) -> Range<u64> {
    part.start.saturating_sub(border)..part.end.saturating_add(border)
}

impl Windows {
    /// One element an item, that of its own index along dimension `from`.
    #[must_use]
    pub const fn along(from: u8) -> Self {
        Self { from, stride: 1, first: 0, width: 1, clamped: false }
    }

    /// Whether different items have different elements.
    pub(super) const fn is_disjoint(&self) -> bool {
        self.width <= self.stride
    }

    /// Whether each item's elements are those of its own index.
    pub(super) fn is_identity(&self) -> bool {
        (self.stride, self.first, self.width) == (1, 0, 1)
    }

    /// Where the interval of the first of these items begins, in front of the buffer if that is
    /// negative.
    pub(super) fn beginning(&self, items: &Range<u64>) -> i128 {
        self.beginning_of(items.start)
    }

    fn beginning_of(&self, item: u64) -> i128 {
        let stride = i128::from(self.stride).saturating_mul(i128::from(item));
        stride.saturating_add(i128::from(self.first))
    }

    /// The smallest interval around those of all `items`, of which there are some.
    pub(super) fn hull(&self, items: &Range<u64>, size: u64) -> Range<u64> {
        let end = self.beginning_of(items.end - 1).saturating_add(i128::from(self.width));
        let hull = saturated(self.beginning(items))..saturated(end);
        match self.clamped {
            true => hull.start.min(size)..hull.end.min(size),
            // Windows beyond all numbers are somewhere, too.
            false => hull.start.min(u64::MAX - self.width.min(1))..hull.end,
        }
    }

    /// Whether elements between those of `items` belong to nobody.
    pub(super) fn has_gaps(&self, items: &Range<u64>) -> bool {
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::GapsFilled.is_active() {
            return false;
        }
        self.width < self.stride && items.end - items.start > 1
    }

    /// The intervals of all `items`. O(items) if there are gaps.
    pub(super) fn intervals(&self, items: &Range<u64>, size: u64) -> Intervals {
        match self.has_gaps(items) {
            false => smallvec![self.hull(items, size)],
            true => {
                let each = items.clone().map(|item| self.hull(&(item..item + 1), size));
                each.filter(|interval| !interval.is_empty()).collect()
            }
        }
    }

    /// The items of which a window meets `part`.
    fn items_around(&self, part: &Range<u64>) -> Option<(usize, Range<u64>)> {
        let stride = i128::from(self.stride);
        if stride == 0 {
            return None;
        }
        let behind = |element: u64| i128::from(element) - i128::from(self.first);
        let first = (behind(part.start) - i128::from(self.width)).div_euclid(stride) + 1;
        let end = -(-behind(part.end)).div_euclid(stride);
        Some((usize::from(self.from), saturated(first)..saturated(end)))
    }
}

impl Share {
    /// The shares of all `items` of an index space whose interval is `all`: one interval.
    pub(super) fn interval(&self, items: &Range<u64>, all: &Range<u64>, size: u64) -> Range<u64> {
        let count = u128::from(all.end - all.start).max(1);
        let (granule, granules) = self.granules(size);
        let beginning = |item: u64| {
            let nth = u128::from(item.saturating_sub(all.start)).min(count);
            let element = nth * granules / count * granule;
            u64::try_from(element).unwrap_or(u64::MAX).min(size)
        };
        beginning(items.start)..beginning(items.end)
    }

    fn granules(&self, size: u64) -> (u128, u128) {
        let granule = self.granularity.max(1);
        (granule.into(), size.div_ceil(granule).into())
    }

    /// The items that have a share of `part`.
    fn items_around(
        &self,
        part: &Range<u64>,
        size: u64,
        global: &Box3,
    ) -> Option<(usize, Range<u64>)> {
        let from = usize::from(self.from);
        let (all, (granule, granules)) = (interval(global, from), self.granules(size));
        if granules == 0 || part.start >= size {
            return None;
        }
        let count = u128::from(all.end - all.start);
        let owner = |element: u64| {
            let nth = ((u128::from(element) / granule + 1) * count).saturating_sub(1) / granules;
            all.start.saturating_add(u64::try_from(nth).unwrap_or(u64::MAX))
        };
        let last = part.end.min(size).saturating_sub(1).max(part.start);
        Some((from, owner(part.start)..owner(last).saturating_add(1)))
    }
}

/// The interval of a box along one of its dimensions.
pub(super) fn interval(part: &Box3, dim: usize) -> Range<u64> {
    part.min()[dim]..part.max()[dim]
}

/// The interval of elements around `items` that a border reaches, in a dimension of `size`
/// elements at whose edges the buffer goes on at the opposite one. O(1), two intervals at most.
pub(super) fn wrapped(items: &Range<u64>, border: u64, size: u64) -> Intervals {
    let reach = padded(items, border);
    let below = border.saturating_sub(items.start);
    #[cfg(feature = "mutants")]
    let below = celerity_mutants::Mutant::WrapsAtOneEdge.alter(below, |_| 0);
    let above = reach.end.saturating_sub(size);
    let around = (items.end - items.start).saturating_add(border.saturating_mul(2));
    match (below, above) {
        _ if around >= size => smallvec![0..size],
        (0, 0) => smallvec![reach],
        (0, above) => smallvec![0..above, reach.start..size],
        (below, _) => smallvec![0..reach.end, size - below..size],
    }
}

fn saturated(coordinate: i128) -> u64 {
    u64::try_from(coordinate.max(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every interval of up to `size` elements.
    fn parts(size: u64) -> impl Iterator<Item = Range<u64>> {
        (0..size).flat_map(move |start| (start + 1..=size).map(move |end| start..end))
    }

    #[test]
    fn what_wraps_around_is_what_arithmetic_modulo_the_size_says() {
        let sizes = 1..if cfg!(miri) { 5 } else { 8 };
        for (size, border) in sizes.flat_map(|size| (0..=size).map(move |border| (size, border))) {
            for items in parts(size) {
                let (signed, reach) = (size as i64, border as i64);
                let mut expected: Vec<u64> = items
                    .clone()
                    .flat_map(|item| (-reach..=reach).map(move |step| item as i64 + step))
                    .map(|element| element.rem_euclid(signed) as u64)
                    .collect();
                expected.sort_unstable();
                expected.dedup();
                let found: Vec<u64> = wrapped(&items, border, size).into_iter().flatten().collect();
                assert_eq!(found, expected, "{items:?} with {border} in {size}");
            }
        }
    }

    #[test]
    fn relations_backwards_find_all_items_that_touch_a_part() {
        let global = Box3::from_offset_range([2], [7]);
        let items = || 2..9_u64;
        let share = |granularity| DimRelation::Share(Share { from: 0, granularity });
        let windows = |stride, first, width| {
            DimRelation::Windows(Windows { stride, first, width, clamped: true, from: 0 })
        };
        let relations = [
            DimRelation::Periodic(2),
            share(1),
            share(3),
            windows(1, -3, 2),
            windows(3, 1, 1),
            windows(2, 4, 5),
            windows(0, 4, 5),
        ];
        for (relation, part) in
            relations.into_iter().flat_map(|one| parts(11).map(move |part| (one, part)))
        {
            let image = |item: u64| -> Intervals {
                match relation {
                    DimRelation::Periodic(border) => wrapped(&(item..item + 1), border, 11),
                    DimRelation::Share(share) => {
                        smallvec![share.interval(&(item..item + 1), &items(), 11)]
                    }
                    DimRelation::Windows(windows) => windows.intervals(&(item..item + 1), 11),
                    _ => unreachable!("no other relation is tested"),
                }
            };
            let meets = |one: &Range<u64>| one.start.max(part.start) < one.end.min(part.end);
            let touching: Vec<u64> =
                items().filter(|&item| image(item).iter().any(meets)).collect();
            let Some((0, found)) = relation.items_around(0, part.clone(), 11, &global) else {
                continue;
            };
            assert!(touching.iter().all(|item| found.contains(item)), "{relation:?} of {part:?}");
            let tight = items().filter(|item| found.contains(item)).count();
            let is_tight = tight == touching.len();
            assert!(
                is_tight || !matches!(relation, DimRelation::Windows(_)),
                "{relation:?} of {part:?}"
            );
        }
    }

    #[test]
    fn shares_are_even_and_leave_nothing_out() {
        for (size, count, granularity) in [(10, 3, 1), (10, 3, 4), (2, 5, 1), (0, 3, 1), (9, 1, 2)]
        {
            let (share, all) = (Share { from: 0, granularity }, 4..4 + count);
            let shares: Vec<_> =
                all.clone().map(|item| share.interval(&(item..item + 1), &all, size)).collect();
            assert_eq!(shares[0].start, 0);
            assert!(shares.windows(2).all(|pair| pair[0].end == pair[1].start), "{shares:?}");
            assert_eq!(shares[shares.len() - 1].end, size);
            let inner = shares.windows(2).map(|pair| pair[0].end).filter(|&end| end < size);
            assert!(inner.into_iter().all(|end| end % granularity == 0), "{shares:?}");
        }
    }
}
