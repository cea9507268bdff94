//! A task graph as a program of Celerity: a task per step, an item per place, and two buffers of rows that
//! take turns.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use celerity::prelude::*;
use celerity::{PartView, PartViewMut, RegionMapper, RegionView, WholeView};
use smallvec::SmallVec;

use crate::graph::{Formula, Graph, Line, Point};
use crate::reads::{Reads, Step};

/// A graph, what it is to Celerity, and where its points leave what they hand on.
pub(crate) struct Program<'q, G> {
    queue: &'q Queue,
    work: Arc<Work<G>>,
    steps: Vec<Arc<Step>>,
    /// What even and odd steps hand on: a row per place, one after the other.
    rows: [Buffer<u64, 1>; 2],
}

/// What all points of a graph share.
struct Work<G> {
    graph: Arc<G>,
    reads: Reads,
    /// Words of a row.
    words: usize,
    /// Each place's own memory, made where its points run.
    scratch: Vec<Mutex<Vec<Line>>>,
}

/// The least time that all steps of all graphs take, with so many iterations of each graph's kernel, of
/// some turns after one that does not count.
///
/// # Errors
/// As tasks.
pub(crate) fn least<G: Graph>(
    queue: &Queue,
    programs: &[Program<'_, G>],
    iterations: &[i64],
    turns: u32,
) -> celerity::Result<Duration> {
    let longest = programs.iter().map(|program| program.steps.len()).max().unwrap_or(0);
    let turn = || -> celerity::Result<Duration> {
        queue.barrier()?;
        let start = Instant::now();
        for step in 0..longest {
            for (program, &iterations) in programs.iter().zip(iterations) {
                program.submit(step, iterations)?;
            }
        }
        queue.barrier()?;
        Ok(start.elapsed())
    };
    turn()?;
    let first = turn()?;
    (1..turns).try_fold(first, |least, _| Ok(least.min(turn()?)))
}

impl<'q, G: Graph> Program<'q, G> {
    pub(crate) fn new(queue: &'q Queue, graph: &Arc<G>) -> Self {
        let words = graph.output_bytes().div_ceil(size_of::<u64>());
        let rows = ["even rows", "odd rows"]
            .map(|name| queue.buffer::<u64, 1>(graph.width() * words).named(name));
        let work = Work {
            graph: graph.clone(),
            reads: Reads::new(&**graph),
            words,
            scratch: (0..graph.width()).map(|_| Mutex::default()).collect(),
        };
        let steps = (0..graph.steps()).map(|step| Arc::new(Step::new(&**graph, step))).collect();
        Self { queue, work: Arc::new(work), steps, rows }
    }

    /// What even and odd steps hand on.
    #[cfg(test)]
    pub(crate) const fn rows(&self) -> &[Buffer<u64, 1>; 2] {
        &self.rows
    }

    /// Submits a step, if there is one of that number. Every place has an item, whether or not it has a
    /// point: so a place stays on its node.
    fn submit(&self, number: usize, iterations: i64) -> celerity::Result<()> {
        let Some(step) = self.steps.get(number).cloned() else { return Ok(()) };
        let (work, words) = (self.work.clone(), self.work.words);
        let (to, from) = (&self.rows[number % 2], &self.rows[1 - number % 2]);
        let own = to.write(blocks([words]));
        let (task, width) = (self.queue.task("step"), work.graph.width());
        let along = Side::along(0).stride(words);
        macro_rules! reading {
            ($mapper:expr) => {{
                let accesses = (own, from.read($mapper));
                task.parallel_for_rows(width, accesses, move |places, (mut own, rows)| {
                    work.run(&step, number, places, iterations, &mut own, &rows);
                })?
            }};
        }
        match work.reads.formula(&*work.graph, &step) {
            Formula::Nothing => task.parallel_for_rows(width, own, move |places, mut own| {
                work.run(&step, number, places, iterations, &mut own, &NoRows);
            })?,
            Formula::Around(by) => reading!(per_dimension([along.border(by * words)])),
            // A row more to the left alone. Only borders are clamped at the edge: so one word of it is one.
            Formula::Before => {
                let side = along.offset(1 - words as isize).window(2 * words - 2).border(1);
                reading!(per_dimension([side]))
            }
            Formula::All => reading!(all()),
            Formula::Table => reading!(table(&work, &step)),
        };
        Ok(())
    }
}

/// What a chunk's places read, as the graph's tables say: runs of places, ascending and apart, as regions that have
/// to merge and sort boxes take several times as long.
fn table<G: Graph>(work: &Arc<Work<G>>, step: &Arc<Step>) -> RegionMapper<1, 1> {
    let (work, step) = (work.clone(), step.clone());
    region_mapper("dependencies", move |chunk: Chunk<1>, _| {
        let mut is_read = vec![false; work.graph.width()];
        for place in chunk.offset[0]..chunk.offset[0] + chunk.range[0] {
            work.reads.of(&step, place).for_each(|part| is_read[part].fill(true));
        }
        let mut runs = Vec::new();
        let mut first = 0;
        for run in is_read.chunk_by(|a, b| a == b) {
            if run[0] {
                runs.push(Subrange::new([first * work.words], [run.len() * work.words]));
            }
            first += run.len();
        }
        runs
    })
}

impl<G: Graph> Work<G> {
    /// Runs the points of some places, side by side.
    fn run(
        &self,
        step: &Step,
        number: usize,
        places: Row<1>,
        iterations: i64,
        own: &mut PartViewMut<'_, u64, 1>,
        rows: &impl Rows,
    ) {
        let places = places.start()[0]..places.start()[0] + places.len();
        let output = own.as_relative_mut_slice().chunks_exact_mut(self.words);
        let mut inputs: SmallVec<[&[u64]; 16]> = SmallVec::new();
        for (place, output) in places.zip(output) {
            if step.active.contains(&place) {
                inputs.clear();
                for part in self.reads.of(step, place) {
                    let rows = rows.words(part.start * self.words..part.end * self.words);
                    rows.chunks_exact(self.words).for_each(|row| inputs.push(row));
                }
                self.run_point(Point { step: number, place }, iterations, output, &inputs);
            }
        }
    }

    fn run_point(&self, point: Point, iterations: i64, output: &mut [u64], inputs: &[&[u64]]) {
        let lines = self.graph.scratch_lines();
        if lines == 0 {
            return self.graph.execute(point, iterations, output, inputs, &mut []);
        }
        // Nobody else runs this place meanwhile; a poisoned lock is one whose run has failed anyway.
        let mut scratch = self.scratch[point.place].lock().unwrap_or_else(PoisonError::into_inner);
        if scratch.is_empty() {
            scratch.resize(lines, Line::default());
            self.graph.prepare(&mut scratch);
        }
        self.graph.execute(point, iterations, output, inputs, &mut scratch);
    }
}

/// Views by whose index there are rows.
trait Rows {
    /// # Panics
    /// If they were not declared.
    fn words(&self, words: Range<usize>) -> &[u64];
}

/// What a step reads that reads nothing.
struct NoRows;

impl Rows for NoRows {
    fn words(&self, words: Range<usize>) -> &[u64] {
        unreachable!("words {words:?} of a step that reads nothing")
    }
}

macro_rules! rows {
    ($view:ident) => {
        impl Rows for $view<'_, u64, 1> {
            fn words(&self, words: Range<usize>) -> &[u64] {
                &self[words]
            }
        }
    };
}

rows!(PartView);
rows!(WholeView);
rows!(RegionView);

#[cfg(test)]
mod tests {
    use celerity::Config;

    use super::*;
    use crate::twin::{Shape, Twin};

    /// Each point checks what it gets; so what is left to look at is what the last step has made.
    fn check(shape: Shape, (width, steps, bytes): (usize, usize, usize), cluster: [usize; 2]) {
        let twin = Arc::new(Twin::new(shape, width, steps, bytes));
        let [nodes, devices] = cluster;
        let config = Config::default().nodes(nodes).devices(devices);
        let last = config.run(|queue| {
            let programs = [Program::new(queue, &twin), Program::new(queue, &twin)];
            least(queue, &programs, &[3, 5], 1)?;
            let last = &programs[1].rows()[(steps - 1) % 2];
            Ok(queue.fence(last)?.wait()?.into_vec())
        });
        let last = last.expect("it runs");
        let words = bytes.div_ceil(8);
        for place in twin.active(steps - 1) {
            let row = &last[place * words..][..words];
            assert_eq!(row, twin.row(Point { step: steps - 1, place }, 5), "{shape:?} {cluster:?}");
        }
    }

    #[test]
    fn every_point_gets_what_it_depends_on() {
        for shape in Shape::ALL {
            for cluster in [[1, 1], [2, 1], [3, 2]] {
                check(shape, (8, 9, 16), cluster);
            }
        }
    }

    #[test]
    fn more_nodes_than_places_one_step_and_odd_payloads() {
        for shape in Shape::ALL {
            check(shape, (1, 3, 24), [3, 1]);
            check(shape, (3, 1, 17), [4, 1]);
            check(shape, (5, 6, 1001), [2, 2]);
        }
    }
}
