//! The naive twins: sets of points as bitmaps, maps as one value per element.

#![allow(dead_code, reason = "every test file uses a part of this")]

use celerity_regions::{Box3, Coord3};
use proptest::prelude::*;

/// A space of `dims` dimensions, `side` elements long in each, embedded.
pub(crate) fn space(dims: usize, side: u64) -> Box3 {
    Box3::new([0; 3], std::array::from_fn(|d| if d < dims { side } else { 1 }))
}

/// All points of a box in row-major order.
pub(crate) fn points(within: Box3) -> impl Iterator<Item = Coord3> {
    let (min, max) = within.corners();
    (min[0]..max[0]).flat_map(move |x| {
        (min[1]..max[1]).flat_map(move |y| (min[2]..max[2]).map(move |z| [x, y, z]))
    })
}

/// Any box inside `space`, empty ones included; small ones are more likely.
pub(crate) fn box_in(space: Box3) -> impl Strategy<Value = Box3> {
    let side = |d: usize| {
        let end = space.max()[d];
        (0..=end, prop_oneof![3 => 1..=end.min(4), 1 => 0..=end])
            .prop_map(move |(lo, len)| (lo.min(end - len.min(end)), len))
    };
    (side(0), side(1), side(2))
        .prop_map(|((x, dx), (y, dy), (z, dz))| Box3::new([x, y, z], [x + dx, y + dy, z + dz]))
}

/// A set of points of a space, as one bit each.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bitmap {
    pub(crate) space: Box3,
    bits: Vec<bool>,
}

impl Bitmap {
    pub(crate) fn from_boxes(space: Box3, boxes: &[Box3]) -> Bitmap {
        let holds = |p: Coord3| {
            boxes.iter().any(|b| (0..3).all(|d| b.min()[d] <= p[d] && p[d] < b.max()[d]))
        };
        Bitmap { space, bits: points(space).map(holds).collect() }
    }

    pub(crate) fn zip(&self, other: &Bitmap, op: impl Fn(bool, bool) -> bool) -> Bitmap {
        let bits = self.bits.iter().zip(&other.bits).map(|(&l, &r)| op(l, r)).collect();
        Bitmap { space: self.space, bits }
    }

    pub(crate) fn get(&self, [x, y, z]: Coord3) -> bool {
        let [_, height, width] = self.space.range();
        self.bits[((x * height + y) * width + z) as usize]
    }

    pub(crate) fn count(&self) -> u64 {
        self.bits.iter().filter(|&&bit| bit).count() as u64
    }

    /// The canonical form by its definition, point by point.
    pub(crate) fn canonical(&self) -> Vec<Box3> {
        let [depth, height, _] = self.space.range();
        let planes = (0..depth).map(|x| {
            let rows = (0..height).map(|y| self.runs(x, y)).collect();
            merge_levels(rows)
        });
        let mut boxes: Vec<Box3> = merge_levels(planes.collect())
            .into_iter()
            .map(|(x0, x1, (y0, y1, (z0, z1)))| Box3::new([x0, y0, z0], [x1, y1, z1]))
            .collect();
        boxes.sort_by_key(Box3::corners);
        boxes
    }

    fn runs(&self, x: u64, y: u64) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for z in (0..self.space.range()[2]).filter(|&z| self.get([x, y, z])) {
            match runs.last_mut() {
                Some((_, end)) if *end == z => *end += 1,
                _ => runs.push((z, z + 1)),
            }
        }
        runs
    }
}

/// What is in several consecutive levels becomes one item `(first, past last, item)`.
fn merge_levels<T: Copy + PartialEq>(levels: Vec<Vec<T>>) -> Vec<(u64, u64, T)> {
    let mut merged: Vec<(u64, u64, T)> = Vec::new();
    for (at, level) in levels.into_iter().enumerate() {
        for item in level {
            let before =
                merged.iter_mut().find(|(_, end, same)| *end == at as u64 && *same == item);
            match before {
                Some((_, end, _)) => *end += 1,
                None => merged.push((at as u64, at as u64 + 1, item)),
            }
        }
    }
    merged
}
