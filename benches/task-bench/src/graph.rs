//! What a task graph of the suite is to the rest of this program: points in steps, who depends on whom, and
//! what a point does. Knows neither the suite nor Celerity.

use std::ops::Range;

/// A point of a task graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    /// The step, from 0.
    pub(crate) step: usize,
    /// The place among the points of the step, from 0 to less than [`Graph::width`].
    pub(crate) place: usize,
}

/// Memory of a point's own, for kernels that are bound by memory: what one cache line has.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Line([u64; 8]);

/// Whom a place depends on in all steps in which every place has a point, if a formula says that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Formula {
    /// Nobody.
    Nothing,
    /// So many places on either side, and the place itself.
    Around(usize),
    /// The place before, and the place itself.
    Before,
    /// Every place.
    All,
    /// Others: see [`Graph::dependencies`].
    Table,
}

/// A task graph. Everything but [`execute`](Self::execute) is a pure function.
pub(crate) trait Graph: Send + Sync + 'static {
    /// Steps, at least one.
    fn steps(&self) -> usize;

    /// Places, at least one.
    fn width(&self) -> usize;

    /// Bytes that a point hands on, 16 at least.
    fn output_bytes(&self) -> usize;

    /// Lines of memory that each place has of its own.
    fn scratch_lines(&self) -> usize;

    /// The places that have a point in `step`.
    fn active(&self, step: usize) -> Range<usize>;

    /// Whom a place depends on, if that is the same in all steps.
    fn formula(&self) -> Formula;

    /// In how many ways points may depend on those of the step before.
    fn sets(&self) -> usize;

    /// Which of these ways is that of `step`.
    fn set_at(&self, step: usize) -> usize;

    /// The places that `place` depends on, in ascending ranges; some may have no point in the step before.
    fn dependencies(&self, set: usize, place: usize) -> Vec<Range<usize>>;

    /// Fills memory of a place's own, before it is first used.
    fn prepare(&self, scratch: &mut [Line]);

    /// Checks what has come in, in the order of [`dependencies`](Self::dependencies), fills `output`, which has
    /// [`output_bytes`](Self::output_bytes) rounded up to whole words, and computes.
    ///
    /// # Panics
    /// Or ends the program, if what has come in is not what the step before has made.
    fn execute(
        &self,
        point: Point,
        iterations: i64,
        output: &mut [u64],
        inputs: &[&[u64]],
        scratch: &mut [Line],
    );
}

/// The points of all steps.
pub(crate) fn points(graph: &impl Graph) -> usize {
    (0..graph.steps()).map(|step| graph.active(step).len()).sum()
}
