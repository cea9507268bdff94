//! The contract of the task graph, and a check of it: what a stream of tasks
//! promises by itself. Whether dependencies are those that the program needs is
//! known only to who evaluates its mappers, too.

use std::sync::Arc;

use crate::access::Access;
use crate::apart::shared;
use crate::dependency::DependencyKind;
use crate::graph::TaskGraphConfig;
use crate::id::{BufferId, TaskId};
use crate::lineage::{BrokenEdge, Lineage, Point};
use crate::task::{EpochAction, Task, Work};

/// A promise that is not kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Broken {
    /// Of ids and edges.
    #[error(transparent)]
    Edge(#[from] BrokenEdge<TaskId>),
    /// An edge for a reason that its ends cannot have.
    #[error("{later} waits for {on} for the wrong reason: {why}")]
    Reason {
        /// The task that waits.
        later: TaskId,
        /// For what.
        on: TaskId,
        /// What is wrong.
        why: &'static str,
    },
    /// A buffer that a task must not access in this way.
    #[error("{task} accesses {buffer}, {why}")]
    Access {
        /// The task.
        task: TaskId,
        /// The buffer.
        buffer: BufferId,
        /// What is wrong.
        why: &'static str,
    },
    /// A horizon or epoch where there must be none, or none where one is due.
    #[error("{task} {why}")]
    Synchronization {
        /// The task.
        task: TaskId,
        /// What is wrong.
        why: &'static str,
    },
}

/// Checks the contract of the tasks of one graph, all that it has made since its
/// start, in that order.
///
/// **Edges.** As [`Lineage`] says. A horizon or epoch waits for the sake of
/// order alone; another task waits for that only if nothing else is there to
/// wait for.
///
/// **Synchronisation.** The first task is the init epoch, no other is, and
/// nothing follows the shutdown epoch. A horizon follows at once when the
/// longest chain has grown by [`horizon_step`](TaskGraphConfig::horizon_step)
/// tasks since the last horizon or epoch, or when
/// [`horizon_max_parallelism`](TaskGraphConfig::horizon_max_parallelism) tasks
/// have no successor, and at no other time: so the window that later stages keep
/// is bounded.
///
/// **Accesses.** Horizons and epochs touch nothing. What an access writes no other of
/// its task touches, as far as that can be told without the sizes of buffers.
///
/// O(tasks · (edges² + accesses² + log tasks)).
///
/// # Errors
/// All promises that are broken, in the order of the tasks.
pub fn verify(tasks: &[Arc<Task>], config: &TaskGraphConfig) -> Result<(), Vec<Broken>> {
    let mut broken = Vec::new();
    let (mut lineage, mut horizons) = (Lineage::default(), Horizons::new(config));
    for task in tasks {
        horizons.check(task, &mut broken);
        check_reasons(task, lineage.point(), &mut broken);
        check_accesses(task, &mut broken);
        let on = task.dependencies.iter().map(|dependency| dependency.on);
        broken.extend(lineage.check(task.id, on, point_of(task)).into_iter().map(Broken::Edge));
        horizons.note(task, lineage.leaves());
    }
    if broken.is_empty() { Ok(()) } else { Err(broken) }
}

fn point_of(task: &Task) -> Point {
    match task.work {
        Work::Horizon => Point::Horizon,
        Work::Epoch(_) => Point::Epoch,
        Work::Device(_) | Work::HostOnce | Work::Fence => Point::None,
    }
}

fn check_reasons(task: &Task, point: TaskId, broken: &mut Vec<Broken>) {
    let synchronizes = point_of(task) != Point::None;
    for edge in task.dependencies.iter() {
        let ordered = edge.kind == DependencyKind::Order;
        let why = if synchronizes && !ordered {
            "it touches nothing"
        } else if !synchronizes && ordered && task.dependencies.len() > 1 {
            "it waits for others anyhow"
        } else if !synchronizes && ordered && edge.on != point {
            "order is what the synchronisation point is for"
        } else {
            continue;
        };
        broken.push(Broken::Reason { later: task.id, on: edge.on, why });
    }
}

fn check_accesses(task: &Task, broken: &mut Vec<Broken>) {
    let synchronizes = point_of(task) != Point::None;
    let (task, accesses, space) = (task.id, &task.accesses, task.work.extent());
    if synchronizes {
        let why = "but is a horizon or an epoch";
        let access = |buffer| Broken::Access { task, buffer, why };
        broken.extend(Access::buffers(accesses).map(|one| access(one.buffer)));
    } else if let Some(buffer) = shared(accesses, &space) {
        let why = "of which two of its accesses share what one of them writes";
        broken.push(Broken::Access { task, buffer, why });
    }
}

/// When horizons are due.
struct Horizons<'a> {
    config: &'a TaskGraphConfig,
    /// Length of the longest chain that ends in each task.
    depths: Vec<u64>,
    longest: u64,
    /// [`longest`](Self::longest) at the newest horizon or epoch.
    at_point: u64,
    is_due: bool,
    is_over: bool,
}

impl<'a> Horizons<'a> {
    fn new(config: &'a TaskGraphConfig) -> Self {
        let (depths, is_due, is_over) = (Vec::new(), false, false);
        Self { config, depths, longest: 0, at_point: 0, is_due, is_over }
    }

    fn check(&self, task: &Task, broken: &mut Vec<Broken>) {
        let is_init = task.work == Work::Epoch(EpochAction::Init);
        let why = if self.is_over {
            "comes after the shutdown epoch"
        } else if is_init != self.depths.is_empty() {
            "is the init epoch, and not the first task, or the other way round"
        } else if self.is_due && task.work != Work::Horizon {
            "comes where a horizon is due"
        } else if !self.is_due && task.work == Work::Horizon {
            "is a horizon that is not due"
        } else {
            return;
        };
        broken.push(Broken::Synchronization { task: task.id, why });
    }

    /// Adds a task, after which so many have no successor.
    fn note(&mut self, task: &Task, leaves: usize) {
        let of = |on: TaskId| self.depths.get(usize::try_from(on.index()).ok()?);
        let before = task.dependencies.iter().filter_map(|edge| of(edge.on)).max();
        let depth = before.map_or(0, |before| before + 1);
        let synchronizes = point_of(task) != Point::None;
        if synchronizes {
            self.at_point = self.longest;
        }
        self.depths.push(depth);
        self.longest = self.longest.max(depth);
        self.is_over = task.work == Work::Epoch(EpochAction::Shutdown);
        self.is_due = !synchronizes
            && (self.longest - self.at_point >= self.config.horizon_step
                || leaves as u64 >= self.config.horizon_max_parallelism);
    }
}
