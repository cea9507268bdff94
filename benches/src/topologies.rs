//! The task topologies of the C++ original's graph benchmarks, workload for
//! workload: which tasks, of what size, with which accesses. Knows nothing of
//! the graphs that are built from them.
//!
//! Where the original's benchmark passes a lambda as range mapper, a
//! [`UserMapper`] stands here, although some of them are expressible as
//! built-in mappers; where it creates a lambda per task, so does this.
//!
//! One departure: the original's chain and trees read and write one buffer in
//! one task, through different mappers. That is a race, and the task graph
//! refuses it. Here they read one buffer and write another, in turns; each task
//! still reads, from all nodes, what the tasks before it wrote.

use celerity_regions::{Box3, Region};
use celerity_tdag::{
    Access, AccessMode, BufferId, Mapper, MapperInput, NeighborhoodShape, UserMapper,
};

/// Takes buffers and tasks.
pub trait Sink {
    /// Nodes in the cluster: some topologies scale with them.
    fn nodes(&self) -> usize;

    /// Creates a buffer.
    fn buffer(&mut self, dims: u8, extent: Box3, host_initialized: bool) -> BufferId;

    /// Submits a task over the given index space.
    fn task(&mut self, dims: u8, extent: Box3, accesses: Vec<Access>);
}

/// A topology at the size that the original measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// 100 independent tasks, each in a column of its own.
    Soup,
    /// 30 tasks, each transposing what the one before it wrote.
    Chain,
    /// A binary tree of 31 tasks from its root to its leaves, each gathering
    /// from all nodes.
    ExpandingTree,
    /// The same tree from its leaves to its root.
    ContractingTree,
    /// 203 tasks of the wave equation on 512² elements.
    WaveSim,
    /// The wave equation for so many steps, and three tasks before them.
    LongWaveSim {
        /// Time steps.
        steps: usize,
    },
    /// 51 tasks of a Jacobi solver for 1024 unknowns.
    Jacobi,
}

impl Topology {
    /// Those that the original's graph benchmarks measure, in their order.
    pub const ALL: [Self; 6] = [
        Self::Soup,
        Self::Chain,
        Self::ExpandingTree,
        Self::ContractingTree,
        Self::WaveSim,
        Self::Jacobi,
    ];

    /// The name in the original's own benchmarks, such as `wave_sim topology`.
    #[must_use]
    pub fn original_name(self) -> &'static str {
        match self {
            Self::Soup => "soup topology",
            Self::Chain => "chain topology",
            Self::ExpandingTree => "expanding tree topology",
            Self::ContractingTree => "contracting tree topology",
            Self::WaveSim | Self::LongWaveSim { .. } => "wave_sim topology",
            Self::Jacobi => "jacobi topology",
        }
    }

    /// The name in the figures for device kernels, such as `wave_sim`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Soup => "soup",
            Self::Chain => "chain",
            Self::ExpandingTree => "expanding_tree",
            Self::ContractingTree => "contracting_tree",
            Self::WaveSim => "wave_sim",
            Self::LongWaveSim { .. } => "wave_sim_T1250",
            Self::Jacobi => "jacobi",
        }
    }

    /// How many tasks are [submitted](Self::submit).
    #[must_use]
    pub fn tasks(self) -> usize {
        match self {
            Self::Soup => 100,
            Self::Chain => 30,
            Self::ExpandingTree | Self::ContractingTree => 2 * TREE_BREADTH - 1,
            Self::WaveSim => 203,
            Self::LongWaveSim { steps } => steps + 3,
            Self::Jacobi => 51,
        }
    }

    /// Submits all tasks.
    pub fn submit(self, sink: &mut impl Sink) {
        match self {
            Self::Soup => soup(sink, self.tasks()),
            Self::Chain => chain(sink, self.tasks()),
            Self::ExpandingTree => tree(sink, |step| TREE_BREADTH / step),
            Self::ContractingTree => tree(sink, |step| step),
            Self::WaveSim | Self::LongWaveSim { .. } => wave_sim(sink, self.tasks() - 3),
            Self::Jacobi => jacobi(sink, self.tasks() - 1),
        }
    }
}

/// Leaves of the trees.
const TREE_BREADTH: usize = 16;

fn soup(sink: &mut impl Sink, tasks: usize) {
    let nodes = sink.nodes();
    let buffer = sink.buffer(2, Box3::from_range([nodes, tasks]), true);
    for column in 0..tasks as u64 {
        let own_rows = writer(move |input| {
            let (min, max) = (input.chunk.min(), input.chunk.max());
            Box3::new([min[0], column, 0], [max[0], column + 1, 1])
        });
        let accesses = vec![access(buffer, AccessMode::ReadWrite, own_rows)];
        sink.task(1, Box3::from_range([nodes]), accesses);
    }
}

fn chain(sink: &mut impl Sink, tasks: usize) {
    let mut chain = Chain::start(sink);
    (0..tasks).for_each(|_| chain.step(sink));
}

/// Transposes a matrix of one element per pair of nodes, back and forth.
#[derive(Debug)]
pub(crate) struct Chain {
    extent: Box3,
    from: BufferId,
    to: BufferId,
}

impl Chain {
    pub(crate) fn start(sink: &mut impl Sink) -> Self {
        let extent = Box3::from_range([sink.nodes(), sink.nodes()]);
        let [from, to] = [(); 2].map(|()| sink.buffer(2, extent, true));
        Self { extent, from, to }
    }

    pub(crate) fn step(&mut self, sink: &mut impl Sink) {
        let transposed = reader(|input| {
            let (min, max) = (input.chunk.min(), input.chunk.max());
            Box3::new([min[1], min[0], 0], [max[1], max[0], 1])
        });
        let accesses = vec![
            access(self.from, AccessMode::Read, transposed),
            access(self.to, AccessMode::Write, Mapper::OneToOne),
        ];
        sink.task(2, self.extent, accesses);
        std::mem::swap(&mut self.from, &mut self.to);
    }
}

/// `columns_at` says how many columns each task of a level takes, for the
/// levels 1, 2, 4, … [`TREE_BREADTH`].
fn tree(sink: &mut impl Sink, columns_at: impl Fn(usize) -> usize) {
    let nodes = sink.nodes();
    let extent = Box3::from_range([nodes, TREE_BREADTH]);
    let [mut from, mut to] = [(); 2].map(|()| sink.buffer(2, extent, true));
    let levels = std::iter::successors(Some(1), |level| Some(level * 2));
    for level in levels.take_while(|&level| level <= TREE_BREADTH) {
        let columns = columns_at(level);
        for first in (0..TREE_BREADTH).step_by(columns) {
            let (first, end) = (first as u64, (first + columns) as u64);
            let all_rows =
                reader(move |input| Box3::new([0, first, 0], [input.global.max()[0], end, 1]));
            let own_rows = writer(move |input| {
                let (min, max) = (input.chunk.min(), input.chunk.max());
                Box3::new([min[0], first, 0], [max[0], end, 1])
            });
            let accesses = vec![
                access(from, AccessMode::Read, all_rows),
                access(to, AccessMode::Write, own_rows),
            ];
            sink.task(1, Box3::from_range([nodes]), accesses);
        }
        std::mem::swap(&mut from, &mut to);
    }
}

fn wave_sim(sink: &mut impl Sink, steps: usize) {
    let mut wave = WaveSim::start(sink);
    wave.task(sink);
    (0..steps).for_each(|_| wave.step(sink));
}

/// The wave equation on 512² elements.
#[derive(Debug)]
pub(crate) struct WaveSim {
    /// One step behind `u`, and overwritten with one step ahead.
    up: BufferId,
    u: BufferId,
}

impl WaveSim {
    const EXTENT: [usize; 2] = [512, 512];

    pub(crate) fn start(sink: &mut impl Sink) -> Self {
        let extent = Box3::from_range(Self::EXTENT);
        let [up, u] = [(); 2].map(|()| sink.buffer(2, extent, false));
        for buffer in [u, up] {
            sink.task(2, extent, vec![access(buffer, AccessMode::Write, Mapper::OneToOne)]);
        }
        Self { up, u }
    }

    pub(crate) fn step(&mut self, sink: &mut impl Sink) {
        self.task(sink);
        std::mem::swap(&mut self.up, &mut self.u);
    }

    fn task(&self, sink: &mut impl Sink) {
        let accesses = vec![
            access(self.up, AccessMode::ReadWrite, Mapper::OneToOne),
            access(self.u, AccessMode::Read, five_points()),
        ];
        sink.task(2, Box3::from_range(Self::EXTENT), accesses);
    }
}

/// An element and its four neighbours.
pub(crate) fn five_points() -> Mapper {
    Mapper::neighborhood_shaped([1, 1], NeighborhoodShape::AlongAxes)
}

fn jacobi(sink: &mut impl Sink, steps: usize) {
    let mut jacobi = Jacobi::start(sink);
    (0..steps).for_each(|_| jacobi.step(sink));
}

/// A Jacobi solver for 1024 unknowns.
#[derive(Debug)]
pub(crate) struct Jacobi {
    a: BufferId,
    b: BufferId,
    x: BufferId,
    x_new: BufferId,
    read_rows: Mapper,
    write_rows: Mapper,
    read_columns: Mapper,
}

impl Jacobi {
    const UNKNOWNS: usize = 1024;

    pub(crate) fn start(sink: &mut impl Sink) -> Self {
        let vector = Box3::from_range([Self::UNKNOWNS]);
        let a = sink.buffer(2, Self::matrix(), true);
        let b = sink.buffer(1, vector, true);
        let [x, x_new] = [(); 2].map(|()| sink.buffer(1, vector, false));
        sink.task(1, vector, vec![access(x, AccessMode::Write, Mapper::OneToOne)]);
        let rows = |input: &MapperInput| interval(input, 0);
        let (read_rows, write_rows) = (reader(rows), writer(rows));
        let read_columns = reader(|input| interval(input, 1));
        Self { a, b, x, x_new, read_rows, write_rows, read_columns }
    }

    pub(crate) fn step(&mut self, sink: &mut impl Sink) {
        let accesses = vec![
            access(self.a, AccessMode::Read, Mapper::OneToOne),
            access(self.b, AccessMode::Read, self.read_rows.clone()),
            access(self.x, AccessMode::Read, self.read_columns.clone()),
            access(self.x_new, AccessMode::Write, self.write_rows.clone()),
        ];
        sink.task(2, Self::matrix(), accesses);
        std::mem::swap(&mut self.x, &mut self.x_new);
    }

    fn matrix() -> Box3 {
        Box3::from_range([Self::UNKNOWNS, Self::UNKNOWNS])
    }
}

/// The chunk's interval along one dimension, as a part of a vector.
fn interval(input: &MapperInput, dim: usize) -> Box3 {
    Box3::new([input.chunk.min()[dim], 0, 0], [input.chunk.max()[dim], 1, 1])
}

pub(crate) fn access(buffer: BufferId, mode: AccessMode, mapper: Mapper) -> Access {
    Access::buffer(buffer, mode, mapper)
}

fn reader(mapper: impl Fn(&MapperInput) -> Box3 + Send + Sync + 'static) -> Mapper {
    Mapper::User(UserMapper::new(move |input: &MapperInput| Region::from(mapper(input))))
}

fn writer(mapper: impl Fn(&MapperInput) -> Box3 + Send + Sync + 'static) -> Mapper {
    Mapper::User(UserMapper::disjoint(move |input: &MapperInput| Region::from(mapper(input))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Counter {
        buffers: u64,
        tasks: usize,
    }

    impl Sink for Counter {
        fn nodes(&self) -> usize {
            2
        }

        fn buffer(&mut self, _: u8, _: Box3, _: bool) -> BufferId {
            self.buffers += 1;
            BufferId::from_index(self.buffers - 1)
        }

        fn task(&mut self, _: u8, _: Box3, accesses: Vec<Access>) {
            let mut accesses = Access::buffers(&accesses);
            assert!(accesses.all(|access| access.buffer.index() < self.buffers));
            self.tasks += 1;
        }
    }

    #[test]
    fn topologies_have_as_many_tasks_as_they_say() {
        for topology in Topology::ALL.into_iter().chain([Topology::LongWaveSim { steps: 7 }]) {
            let mut counter = Counter::default();
            topology.submit(&mut counter);
            assert_eq!(counter.tasks, topology.tasks(), "{}", topology.name());
        }
    }
}
