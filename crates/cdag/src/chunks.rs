//! The chunks of a task by node, and which of them lie near a box: a node looks
//! only at those that can touch its data. Pure geometry; knows no buffers.

use std::ops::Range;

use celerity_regions::Box3;

/// Node `n` runs chunk `n`; nodes beyond the last chunk run nothing.
#[derive(Debug)]
pub(crate) struct Chunks {
    boxes: Box<[Box3]>,
    grid: Option<Grid>,
}

/// Chunks that a split has cut along planes, in row-major order.
#[derive(Debug)]
struct Grid {
    /// Where chunks begin, per dimension, ascending.
    cuts: [Vec<u64>; 3],
}

impl Chunks {
    pub(crate) fn new(boxes: Vec<Box3>) -> Self {
        Self { grid: Grid::of(&boxes), boxes: boxes.into() }
    }

    pub(crate) fn all(&self) -> &[Box3] {
        &self.boxes
    }

    /// Visits the positions of all chunks that intersect `part`, and maybe of others,
    /// ascending. O(log chunks + found) if the chunks are a grid.
    pub(crate) fn for_each_near(&self, part: &Box3, mut visit: impl FnMut(usize)) {
        match &self.grid {
            _ if part.is_empty() => {}
            Some(grid) if self.boxes.len() > FEW => grid.for_each_near(part, visit),
            Some(_) => {
                let all = self.boxes.iter().enumerate();
                all.filter(|(_, chunk)| chunk.intersects(part)).for_each(|(at, _)| visit(at));
            }
            None => (0..self.boxes.len()).for_each(visit),
        }
    }
}

/// So many chunks are looked at one by one, which is faster than to search their grid.
const FEW: usize = 4;

impl Grid {
    fn of(boxes: &[Box3]) -> Option<Self> {
        let cuts = [0, 1, 2].map(|dim| {
            let mut cuts: Vec<u64> = boxes.iter().map(|chunk| chunk.min()[dim]).collect();
            cuts.sort_unstable();
            cuts.dedup();
            cuts
        });
        let grid = Self { cuts };
        let [planes, height, width] = grid.counts();
        let holds = planes * height * width == boxes.len()
            && boxes.iter().enumerate().all(|(position, chunk)| {
                let at = [position / (width * height), position / width % height, position % width];
                (0..3).all(|dim| chunk.min()[dim] == grid.cuts[dim][at[dim]])
            });
        holds.then_some(grid)
    }

    fn counts(&self) -> [usize; 3] {
        [0, 1, 2].map(|dim| self.cuts[dim].len())
    }

    fn for_each_near(&self, part: &Box3, mut visit: impl FnMut(usize)) {
        let ([planes, rows, columns], [_, height, width]) = (self.near(part), self.counts());
        for plane in planes {
            for row in rows.clone() {
                let start = (plane * height + row) * width;
                columns.clone().for_each(|column| visit(start + column));
            }
        }
    }

    fn near(&self, part: &Box3) -> [Range<usize>; 3] {
        [0, 1, 2].map(|dim| {
            let cuts = &self.cuts[dim];
            let first = cuts.partition_point(|&cut| cut <= part.min()[dim]).saturating_sub(1);
            first..cuts.partition_point(|&cut| cut < part.max()[dim])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use celerity_regions::{split_1d, split_2d, split_along};

    fn near(chunks: &Chunks, part: &Box3) -> Vec<usize> {
        let mut near = Vec::new();
        chunks.for_each_near(part, |position| near.push(position));
        near
    }

    fn check(boxes: Vec<Box3>) {
        let chunks = Chunks::new(boxes.clone());
        assert!(chunks.grid.is_some(), "{boxes:?}");
        for part in parts() {
            let near = near(&chunks, &part);
            let touching = (0..boxes.len()).filter(|&chunk| boxes[chunk].intersects(&part));
            let touching: Vec<usize> = touching.collect();
            assert!(near.is_sorted() && touching.iter().all(|chunk| near.contains(chunk)));
            let inside = Box3::from_range([12, 20]);
            assert!(near == touching || !inside.contains(&part), "{part}: {near:?}, {touching:?}");
        }
    }

    fn parts() -> impl Iterator<Item = Box3> {
        let corner = |at: usize| [at % 15, at / 15 % 23];
        (0..40).flat_map(move |a| {
            (0..40).map(move |b| Box3::from_offset_range(corner(a * 8), corner(b * 7)))
        })
    }

    #[test]
    fn splits_are_grids_and_know_who_is_near() {
        let space = Box3::from_range([12, 20]);
        for parts in [1, 2, 3, 5, 8, 12] {
            check(split_1d(&space, [1; 3], parts));
            check(split_along(&space, 1, [1, 3, 1], parts));
            check(split_2d(&space, [2, 1, 1], parts));
        }
    }

    #[test]
    fn other_chunks_are_all_near() {
        let chunks = Chunks::new(vec![Box3::UNIT; 4]);
        assert_eq!(near(&chunks, &Box3::UNIT), [0, 1, 2, 3]);
        assert_eq!(near(&chunks, &Box3::EMPTY), []);
    }
}
