//! Whole programs as plain data: buffers, tasks, fences, barriers, drops.
//!
//! Knows what a program *is*; what it means is the business of the
//! [twin](crate::twin), how it is made that of
//! [`ProgramBuilder`], [`any_program`] and the [corpus](crate::corpus).

mod build;
mod mapper;
mod random;

use std::fmt;
use std::sync::Arc;

use celerity_regions::Box3;
use celerity_tdag::{
    Access, AccessMode, BufferId, CollectiveGroup, IndexSpace, NewBuffer, ObjectAccess,
    SideEffectOrder, TaskSpec, Work,
};
use serde::{Deserialize, Serialize};

pub use build::{Flaw, ProgramBuilder};
pub use mapper::{Axis, MapperSpec, MapperTable, SideSpec};
pub use random::{Sizes, any_program, seeded};

/// A program: what every node's main thread does, in order.
///
/// Lawful if made by [`ProgramBuilder`]: it reads nothing that was never
/// written, chunks of one task write disjoint elements, and so do items unless they update,
/// what an access of a task writes no other of it touches, and every element that is alive
/// and written at the end is observed by a fence.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The statements.
    pub ops: Vec<Op>,
}

/// One statement of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Creates the next buffer: the first is `B0`.
    Create(BufferSpec),
    /// Submits a task.
    Task(TaskOp),
    /// Waits for everything, on all nodes.
    Barrier,
    /// Drops a buffer; later statements do not name it.
    Drop(BufferId),
}

/// A buffer to create.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferSpec {
    /// True dimensionality, 0 to 3.
    pub dims: u8,
    /// All elements; the minimum is the origin. May be empty.
    pub extent: Box3,
    /// Size of an element in 64-bit words, at least 1.
    pub words: usize,
    /// Whether every node provides the same initial contents.
    pub host_initialized: bool,
}

/// A task to submit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskOp {
    /// What it is called.
    pub name: Arc<str>,
    /// How it is assigned to nodes.
    pub kind: TaskKind,
    /// What it touches.
    pub accesses: Vec<AccessSpec>,
    /// The side effects on host objects that are asked for, no two on one. Kernels have none.
    pub effects: Vec<ObjectAccess>,
}

/// How a task is assigned to nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskKind {
    /// A kernel over an index space, which may be empty.
    Device(IndexSpace),
    /// Once, on this node, counted modulo the number of nodes.
    HostOnce {
        /// Its index.
        node: u64,
    },
    /// On the host, over an index space, which may be empty; in the order of a collective group,
    /// if it is in one.
    HostSplit {
        /// The items.
        space: IndexSpace,
        /// The group's number.
        group: Option<usize>,
    },
    /// A snapshot of all that the accesses read, on every node.
    Fence,
    /// On every node, with the same outcome: nobody sends what it writes.
    Combine,
}

/// One access of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessSpec {
    /// The buffer.
    pub buffer: BufferId,
    /// What is done with it.
    pub mode: AccessMode,
    /// Which part an item touches.
    pub mapper: MapperSpec,
}

impl Program {
    /// The buffers in order of creation: the table that a [`BufferId`] indexes.
    #[must_use]
    pub fn buffers(&self) -> Vec<BufferSpec> {
        let specs = self.ops.iter().filter_map(|op| match op {
            Op::Create(spec) => Some(*spec),
            _ => None,
        });
        specs.collect()
    }

    /// How many host objects there are, from the first statement to the last.
    #[must_use]
    pub fn objects(&self) -> u64 {
        let effects = self.ops.iter().flat_map(|op| match op {
            Op::Task(task) => task.effects.as_slice(),
            _ => &[],
        });
        effects.map(|effect| effect.object.index() + 1).max().unwrap_or(0)
    }
}

impl BufferSpec {
    /// What the task graph is told.
    #[must_use]
    pub fn to_new_buffer(&self) -> NewBuffer {
        NewBuffer {
            name: None,
            dims: self.dims,
            extent: self.extent,
            elem_size: 8 * self.words as u64,
            elem_align: 8,
            host_initialized: self.host_initialized,
        }
    }
}

impl TaskOp {
    /// The side effects as the graphs order them: what is exclusive in a collective task is
    /// sequential, so that all nodes choose the same order.
    pub fn side_effects(&self) -> impl Iterator<Item = ObjectAccess> + Clone + '_ {
        let is_collective = self.kind.group().is_some();
        self.effects.iter().map(move |&effect| match effect.order {
            SideEffectOrder::Exclusive if is_collective => {
                ObjectAccess { order: SideEffectOrder::Sequential, ..effect }
            }
            _ => effect,
        })
    }

    /// Whether the task never enters the graph: its index space is empty.
    #[must_use]
    pub fn is_void(&self) -> bool {
        self.space().is_empty()
    }

    /// The items.
    #[must_use]
    pub fn space(&self) -> Box3 {
        self.kind.space()
    }

    /// What the task graph is told. Mappers are made by `lowering`, so that
    /// equal specifications become equal mapper values.
    #[must_use]
    pub fn to_task_spec(&self, lowering: &mut MapperTable) -> TaskSpec {
        let accesses = self.accesses.iter().map(|access| {
            let mapper = lowering.lower(&access.mapper, access.mode);
            Access::buffer(access.buffer, access.mode, mapper)
        });
        TaskSpec {
            name: self.name.clone(),
            work: match self.kind {
                TaskKind::Device(space) => Work::Device(space),
                TaskKind::HostOnce { node } => Work::HostOnce { node },
                TaskKind::HostSplit { space, group } => {
                    let group = group.map(|number| CollectiveGroup::new(number, "group"));
                    Work::HostSplit { space, group }
                }
                TaskKind::Fence => Work::Fence,
                TaskKind::Combine => Work::Combine { operator: 0 },
            },
            accesses: accesses.chain(self.effects.iter().map(|&effect| effect.into())).collect(),
            location: None,
        }
    }
}

impl TaskKind {
    /// Dimensionality of the index space.
    #[must_use]
    pub fn dims(&self) -> u8 {
        match self {
            Self::Device(space) | Self::HostSplit { space, .. } => space.dims,
            Self::HostOnce { .. } | Self::Fence | Self::Combine => 0,
        }
    }

    /// The items: one for everything that is not split.
    #[must_use]
    pub fn space(&self) -> Box3 {
        match self {
            Self::Device(space) | Self::HostSplit { space, .. } => space.extent,
            Self::HostOnce { .. } | Self::Fence | Self::Combine => Box3::UNIT,
        }
    }

    /// The index space, if the task is split.
    #[must_use]
    pub fn split(&self) -> Option<&IndexSpace> {
        match self {
            Self::Device(space) | Self::HostSplit { space, .. } => Some(space),
            Self::HostOnce { .. } | Self::Fence | Self::Combine => None,
        }
    }

    /// The collective group's number, if the task is in one.
    #[must_use]
    pub fn group(&self) -> Option<usize> {
        match self {
            Self::HostSplit { group, .. } => *group,
            _ => None,
        }
    }
}

/// A buffer's position in per-buffer tables.
#[must_use]
pub fn buffer_slot(buffer: BufferId) -> usize {
    usize::try_from(buffer.index()).expect("test programs have few buffers")
}

impl fmt::Display for Program {
    /// One statement a line, each with the index by which violations name it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut next_buffer = BufferId::from_index(0);
        for (index, op) in self.ops.iter().enumerate() {
            write!(f, "{index:>3}: ")?;
            if let Op::Create(_) = op {
                write!(f, "{next_buffer} = ")?;
                next_buffer = next_buffer.next();
            }
            writeln!(f, "{op}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{self}")
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(buffer) => {
                let origin = if buffer.host_initialized { "initialised" } else { "unwritten" };
                let BufferSpec { dims, extent, words, .. } = buffer;
                write!(f, "{origin} {dims}-D buffer {extent} of {words}-word elements")
            }
            Self::Task(task) => write!(f, "{task}"),
            Self::Barrier => f.write_str("barrier"),
            Self::Drop(buffer) => write!(f, "drop {buffer}"),
        }
    }
}

impl fmt::Display for TaskOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            TaskKind::Device(space) => write!(
                f,
                "\"{}\" over {}, {:?} split by {:?}, {} per device",
                self.name, space.extent, space.split, space.granularity, space.oversubscription
            )?,
            TaskKind::HostOnce { node } => write!(f, "\"{}\" once on host {node}", self.name)?,
            TaskKind::HostSplit { space, group } => write!(
                f,
                "\"{}\" on the host over {}, {:?} split by {:?}, {} per node, group {group:?}",
                self.name, space.extent, space.split, space.granularity, space.oversubscription
            )?,
            TaskKind::Fence => f.write_str("fence")?,
            TaskKind::Combine => write!(f, "\"{}\" everywhere, the same", self.name)?,
        }
        for access in &self.accesses {
            write!(f, "; {:?} {} {:?}", access.mode, access.buffer, access.mapper)?;
        }
        for effect in &self.effects {
            write!(f, "; {} {}", effect.order, effect.object)?;
        }
        Ok(())
    }
}
