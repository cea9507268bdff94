//! Graphs for tests, in which each point checks what it gets: patterns of all kinds that the suite has.

use std::ops::Range;

use crate::graph::{Formula, Graph, Line, Point};

/// A pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Alone,
    Stencil,
    /// A window of places that moves on.
    Moving,
    /// Twice as many places in each step.
    Growing,
    /// Distances that double, in turns.
    Butterfly,
    Ring,
    Everybody,
}

impl Shape {
    pub(crate) const ALL: [Self; 7] = [
        Self::Alone,
        Self::Stencil,
        Self::Moving,
        Self::Growing,
        Self::Butterfly,
        Self::Ring,
        Self::Everybody,
    ];
}

/// A graph of such a pattern.
pub(crate) struct Twin {
    shape: Shape,
    width: usize,
    steps: usize,
    bytes: usize,
}

impl Twin {
    pub(crate) const fn new(shape: Shape, width: usize, steps: usize, bytes: usize) -> Self {
        Self { shape, width, steps, bytes }
    }

    /// What a point hands on.
    pub(crate) fn row(&self, point: Point, iterations: i64) -> Vec<u64> {
        let mark = (point.step * self.width + point.place) as u64;
        let word = |nth| (mark << 20) | ((iterations as u64) << 10) | nth;
        (0..self.bytes.div_ceil(8) as u64).map(word).collect()
    }

    /// The places that a point reads.
    fn inputs(&self, Point { step, place }: Point) -> Vec<usize> {
        let before = step.checked_sub(1).map_or(0..0, |before| self.active(before));
        let parts = self.dependencies(self.set_at(step), place);
        parts.into_iter().flatten().filter(|place| before.contains(place)).collect()
    }
}

impl Graph for Twin {
    fn steps(&self) -> usize {
        self.steps
    }

    fn width(&self) -> usize {
        self.width
    }

    fn output_bytes(&self) -> usize {
        self.bytes
    }

    fn scratch_lines(&self) -> usize {
        usize::from(self.shape == Shape::Ring)
    }

    fn active(&self, step: usize) -> Range<usize> {
        match self.shape {
            Shape::Moving => {
                let first = (step + self.width).saturating_sub(self.steps);
                first..first + self.width.min(step + 1).min(self.steps - step)
            }
            Shape::Growing => 0..self.width.min(1 << step),
            _ => 0..self.width,
        }
    }

    fn formula(&self) -> Formula {
        match self.shape {
            Shape::Alone => Formula::Nothing,
            Shape::Stencil => Formula::Around(1),
            Shape::Moving => Formula::Before,
            Shape::Everybody => Formula::All,
            Shape::Growing | Shape::Butterfly | Shape::Ring => Formula::Table,
        }
    }

    fn sets(&self) -> usize {
        if self.shape == Shape::Butterfly { 3 } else { 1 }
    }

    fn set_at(&self, step: usize) -> usize {
        step % self.sets()
    }

    fn dependencies(&self, set: usize, place: usize) -> Vec<Range<usize>> {
        let end = self.width;
        let one = |place: usize| place..place + 1;
        let only = |part: Range<usize>| std::iter::once(part).collect();
        match self.shape {
            Shape::Alone => vec![],
            Shape::Stencil => only(place.saturating_sub(1)..(place + 2).min(end)),
            Shape::Moving => only(place.saturating_sub(1)..place + 1),
            Shape::Growing => vec![one(place / 2)],
            Shape::Butterfly => {
                let left = place.checked_sub(1 << set);
                let right = Some(place + (1 << set)).filter(|place| *place < end);
                left.into_iter().chain([place]).chain(right).map(one).collect()
            }
            Shape::Ring => vec![one((place + end - 1) % end)],
            Shape::Everybody => only(0..end),
        }
    }

    fn prepare(&self, scratch: &mut [Line]) {
        assert_eq!(scratch.len(), self.scratch_lines());
    }

    fn execute(
        &self,
        point: Point,
        iterations: i64,
        output: &mut [u64],
        inputs: &[&[u64]],
        scratch: &mut [Line],
    ) {
        assert!(self.active(point.step).contains(&point.place), "{point:?}");
        assert_eq!(scratch.len(), self.scratch_lines());
        let from = |&place: &usize| Point { step: point.step - 1, place };
        let expected = self.inputs(point);
        let expected: Vec<_> =
            expected.iter().map(|place| self.row(from(place), iterations)).collect();
        assert_eq!(inputs, expected, "{point:?}");
        output.copy_from_slice(&self.row(point, iterations));
    }
}
