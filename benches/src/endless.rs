//! Programs that go on for ever, step by step: what is measured in the steady
//! state. Knows nothing of the graphs that are built from them.

use std::time::{Duration, Instant};

use celerity_regions::Box3;
use celerity_tdag::{AccessMode, BufferId, Mapper};

use crate::topologies::{Chain, Jacobi, Sink, WaveSim, access, five_points};

/// A program without an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Each node writes its part of a vector and reads all of another one, which
    /// every node had written a part of: the worst case of CCGrid 2023, fig. 1. The
    /// vector grows with the number of nodes.
    AllGather,
    /// A 5-point stencil, in rows; the matrix grows with the number of nodes.
    Stencil,
    /// The wave equation on 512² elements.
    WaveSim,
    /// A Jacobi solver for 1024 unknowns.
    Jacobi,
    /// Transposes a matrix, back and forth.
    Chain,
    /// So many stencils of different sizes in turns, as a multigrid solver has them: as
    /// many index spaces. Matrices grow with the number of nodes.
    Rotation {
        /// Stencils.
        spaces: usize,
    },
}

impl Program {
    /// All programs.
    pub const ALL: [Self; 5] =
        [Self::AllGather, Self::Stencil, Self::WaveSim, Self::Jacobi, Self::Chain];

    /// The name in tables and on command lines, such as `all-gather`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AllGather => "all-gather",
            Self::Stencil => "stencil",
            Self::WaveSim => "wave_sim",
            Self::Jacobi => "jacobi",
            Self::Chain => "chain",
            Self::Rotation { spaces: 8 } => "rotation of 8 spaces",
            Self::Rotation { spaces: 64 } => "rotation of 64 spaces",
            Self::Rotation { .. } => "rotation",
        }
    }

    /// Creates the program's buffers and submits the tasks before its first step.
    #[must_use]
    pub fn start(self, sink: &mut impl Sink) -> Endless {
        Endless(match self {
            Self::AllGather => State::PingPong(PingPong::all_gather(sink)),
            Self::Stencil => State::PingPong(PingPong::stencil(sink, PER_NODE)),
            Self::WaveSim => State::WaveSim(WaveSim::start(sink)),
            Self::Jacobi => State::Jacobi(Jacobi::start(sink)),
            Self::Chain => State::Chain(Chain::start(sink)),
            Self::Rotation { spaces } => State::Rotation(Rotation::start(sink, spaces)),
        })
    }
}

/// A [`Program`] that has started.
#[derive(Debug)]
pub struct Endless(State);

#[derive(Debug)]
enum State {
    PingPong(PingPong),
    WaveSim(WaveSim),
    Jacobi(Jacobi),
    Chain(Chain),
    Rotation(Rotation),
}

impl Endless {
    /// Submits the next task, which depends on the one before it.
    pub fn step(&mut self, sink: &mut impl Sink) {
        match &mut self.0 {
            State::PingPong(program) => program.step(sink),
            State::WaveSim(program) => program.step(sink),
            State::Jacobi(program) => program.step(sink),
            State::Chain(program) => program.step(sink),
            State::Rotation(program) => program.step(sink),
        }
    }
}

/// Rows, or elements of a vector, per node.
const PER_NODE: usize = 64;

/// Reads one buffer through a mapper, writes another one-to-one, in turns.
#[derive(Debug)]
struct PingPong {
    dims: u8,
    extent: Box3,
    from: BufferId,
    to: BufferId,
    reads: Mapper,
}

impl PingPong {
    fn all_gather(sink: &mut impl Sink) -> Self {
        let extent = Box3::from_range([sink.nodes() * PER_NODE]);
        Self::start(sink, 1, extent, Mapper::All)
    }

    fn stencil(sink: &mut impl Sink, columns: usize) -> Self {
        let extent = Box3::from_range([sink.nodes() * PER_NODE, columns]);
        Self::start(sink, 2, extent, five_points())
    }

    fn start(sink: &mut impl Sink, dims: u8, extent: Box3, reads: Mapper) -> Self {
        let [from, to] = [(); 2].map(|()| sink.buffer(dims, extent, true));
        Self { dims, extent, from, to, reads }
    }

    fn step(&mut self, sink: &mut impl Sink) {
        let accesses = vec![
            access(self.from, AccessMode::Read, self.reads.clone()),
            access(self.to, AccessMode::Write, Mapper::OneToOne),
        ];
        sink.task(self.dims, self.extent, accesses);
        std::mem::swap(&mut self.from, &mut self.to);
    }
}

/// Stencils that take turns.
#[derive(Debug)]
struct Rotation {
    stencils: Vec<PingPong>,
    next: usize,
}

impl Rotation {
    fn start(sink: &mut impl Sink, spaces: usize) -> Self {
        let stencils = (0..spaces).map(|extra| PingPong::stencil(sink, PER_NODE + extra));
        Self { stencils: stencils.collect(), next: 0 }
    }

    fn step(&mut self, sink: &mut impl Sink) {
        self.stencils[self.next].step(sink);
        self.next = (self.next + 1) % self.stencils.len();
    }
}

/// A program that is fed into graphs.
#[derive(Debug)]
pub struct Running<S> {
    program: Endless,
    sink: S,
}

impl<S: Sink> Running<S> {
    /// Starts the program on fresh graphs.
    #[must_use]
    pub fn new(program: Program, mut sink: S) -> Self {
        Self { program: program.start(&mut sink), sink }
    }

    /// Submits the next `tasks` tasks.
    pub fn advance(&mut self, tasks: u64) {
        (0..tasks).for_each(|_| self.program.step(&mut self.sink));
    }

    /// The time that a task takes, with its share of the horizons: what
    /// criterion's `iter_custom` wants for so many tasks. More are submitted,
    /// whole multiples of what lies between two horizons.
    #[must_use]
    pub fn time(&mut self, tasks: u64) -> Duration {
        let rounds = tasks.div_ceil(PERIOD);
        let start = Instant::now();
        self.advance(rounds * PERIOD);
        start.elapsed().mul_f64(tasks as f64 / (rounds * PERIOD) as f64)
    }
}

/// Tasks from one horizon to the next, with the default configuration.
const PERIOD: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::{Build, Depth, Pipeline, Shape};

    /// Tasks, with horizons and epochs, of so many steps.
    fn tasks_of(program: Program, steps: u64) -> usize {
        let mut pipeline = Pipeline::new(Shape::new(Depth::Tasks, 4, 1)).forgetting();
        let mut endless = program.start(&mut pipeline);
        (0..steps).for_each(|_| endless.step(&mut pipeline));
        pipeline.finish().tasks
    }

    #[test]
    fn there_is_one_horizon_in_a_period() {
        for program in Program::ALL {
            let more = tasks_of(program, 20 * PERIOD) - tasks_of(program, 10 * PERIOD);
            assert_eq!(more as u64, 10 * (PERIOD + 1), "{}", program.name());
        }
    }
}
