//! What of a region is still to come, while boxes of it do. Owns how those are found where there are thousands, as in tables of
//! neighbours; refuses to know what they bring.

use celerity_regions::{Box3, BoxIndex, Region};

/// Parts of a region that have not come yet.
#[derive(Clone, Debug)]
pub(super) enum Outstanding {
    /// Of few boxes: each is looked at.
    Few(Region),
    /// Of many.
    Many(Box<Pieces>),
}

/// The boxes of a region by place, and what of each has not come yet.
#[derive(Clone, Debug)]
pub(super) struct Pieces {
    by_place: BoxIndex<usize>,
    left: Vec<Region>,
    /// How many have anything left.
    unfinished: usize,
}

/// Regions of so many boxes are kept by place. In tests, few, as those have.
const MANY: usize = if cfg!(any(test, miri, feature = "mutants")) { 3 } else { 32 };

impl Default for Outstanding {
    fn default() -> Self {
        Self::Few(Region::empty())
    }
}

impl Outstanding {
    /// All of `region`.
    pub(super) fn of(region: &Region) -> Self {
        match region.boxes().len() {
            ..MANY => Self::Few(region.clone()),
            _ => Self::Many(Box::new(Pieces::of(region))),
        }
    }

    /// Whether all has come.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Few(region) => region.is_empty(),
            Self::Many(pieces) => pieces.unfinished == 0,
        }
    }

    /// Whether some of `part` has not come yet. O(log n) of many.
    pub(super) fn intersects_box(&self, part: &Box3) -> bool {
        match self {
            Self::Few(region) => region.intersects_box(part),
            Self::Many(pieces) => pieces.around(part).any(|left| left.intersects_box(part)),
        }
    }

    /// Whether none of `part` has come yet. O(log n) for each box of many that it shares elements with.
    pub(super) fn contains_box(&self, part: &Box3) -> bool {
        match self {
            Self::Few(region) => region.contains_box(part),
            Self::Many(pieces) => {
                let common = pieces.around(part).map(|left| left.intersection_box(part).volume());
                common.sum::<u64>() == part.volume()
            }
        }
    }

    /// Notes that `part` has come. O(log n) for each box of many that it shares elements with.
    pub(super) fn take(&mut self, part: &Box3) {
        match self {
            Self::Few(region) => region.subtract(&Region::from(*part)),
            Self::Many(pieces) => pieces.take(part),
        }
    }

    /// What of `wanted` has not come yet.
    pub(super) fn intersection(&self, wanted: &Region) -> Region {
        match self {
            Self::Few(region) => region.intersection(wanted),
            Self::Many(pieces) => pieces.to_region().intersection(wanted),
        }
    }

    /// What has not come yet.
    pub(super) fn to_region(&self) -> Region {
        match self {
            Self::Few(region) => region.clone(),
            Self::Many(pieces) => pieces.to_region(),
        }
    }
}

impl Pieces {
    fn of(region: &Region) -> Self {
        let left: Vec<Region> = region.boxes().iter().copied().map(Region::from).collect();
        let by_place = region.boxes().iter().copied().zip(0..).collect();
        Self { by_place, unfinished: left.len(), left }
    }

    /// What is left of those that share elements with `part`.
    fn around(&self, part: &Box3) -> impl Iterator<Item = &Region> {
        self.by_place.sharing(part).map(|(_, &position)| &self.left[position])
    }

    fn take(&mut self, part: &Box3) {
        let come = Region::from(*part);
        for (_, &position) in self.by_place.sharing(part) {
            let left = &mut self.left[position];
            if !left.is_empty() {
                left.subtract(&come);
                self.unfinished -= usize::from(left.is_empty());
            }
        }
    }

    fn to_region(&self) -> Region {
        Region::from_boxes(self.left.iter().flat_map(Region::boxes).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_boxes_are_what_a_region_is() {
        let mut state = 11_u64;
        let mut random = move |end: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % end
        };
        let steps = if cfg!(miri) { 20 } else { 2000 };
        let every_third = |at: usize| Box3::from_offset_range([at / 20, at % 20 * 3], [1, 2]);
        let mut naive = Region::from_boxes((0..400).map(every_third));
        let mut left = Outstanding::of(&naive);
        assert!(matches!(left, Outstanding::Many(_)));
        for _ in 0..steps {
            let min = [random(22), random(62), 0];
            let part = Box3::new(min, [min[0] + 1 + random(2), min[1] + 1 + random(3), 1]);
            assert_eq!(left.contains_box(&part), naive.contains_box(&part), "{part}");
            assert_eq!(left.intersects_box(&part), naive.intersects_box(&part), "{part}");
            if random(4) == 0 {
                left.take(&part);
                naive.subtract(&part.into());
            }
            let wanted = Region::from(Box3::new(min, [min[0] + 5, min[1] + 9, 1]));
            assert_eq!(left.intersection(&wanted), naive.intersection(&wanted));
            assert_eq!((left.to_region(), left.is_empty()), (naive.clone(), naive.is_empty()));
        }
        for part in naive.boxes() {
            assert!(!left.is_empty() && left.contains_box(part));
            left.take(part);
        }
        assert!(left.is_empty() && left.to_region().is_empty());
    }
}
