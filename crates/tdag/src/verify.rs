//! The contract of the task graph, and a check of it: what a stream of tasks
//! promises by itself. Whether dependencies are those that the program needs is
//! known only to who evaluates its mappers, too.

use std::sync::Arc;

use crate::access::Access;
use crate::apart::shared;
use crate::collective::GroupOrder;
use crate::dependency::DependencyKind;
use crate::forward::flaw;
use crate::graph::TaskGraphConfig;
use crate::id::{BufferId, TaskId};
use crate::lineage::{BrokenEdge, Lineage, Point};
use crate::side_effects::ObjectAccess;
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
        /// What is wrong with it: the rest of the message's sentence.
        why: &'static str,
    },
    /// A buffer that a task must not access in this way.
    #[error("{task} accesses {buffer}, {why}")]
    Access {
        /// The id of the task.
        task: TaskId,
        /// The id of the buffer.
        buffer: BufferId,
        /// What is wrong with it: the rest of the message's sentence.
        why: &'static str,
    },
    /// A conflict that the task cannot have.
    #[error("{later} conflicts with {with}, {why}")]
    Conflict {
        /// The id of the younger of the two tasks.
        later: TaskId,
        /// The id of the older one.
        with: TaskId,
        /// What is wrong with it: the rest of the message's sentence.
        why: &'static str,
    },
    /// A forward that is none, or that is not followed by its consumer.
    #[error("{task} is a forward or has one, and {why}")]
    Forward {
        /// The id of the task.
        task: TaskId,
        /// The rule that is broken, in words.
        why: &'static str,
    },
    /// A horizon or epoch where there must be none, or none where one is due.
    #[error("{task} {why}")]
    Synchronization {
        /// The id of the task.
        task: TaskId,
        /// What is wrong with it: the rest of the message's sentence.
        why: &'static str,
    },
}

/// Checks the contract of the tasks of one graph, all that it has made since its
/// start, in that order.
///
/// **Edges.** As [`Lineage`] says. A horizon or epoch waits for the sake of
/// order alone; another task waits for that only if nothing else is there to
/// wait for. A task of a collective group waits for the one before it in its group, be it for
/// the sake of order alone.
///
/// **Conflicts.** As [`Conflicts::broken`](crate::Conflicts::broken) says; and both tasks have a
/// side effect on one host object, in orders that must not meet.
///
/// **Synchronisation.** The first task is the init epoch, no other is, and
/// nothing follows the shutdown epoch. A horizon follows at once when the
/// longest chain has grown by [`horizon_step`](TaskGraphConfig::horizon_step)
/// tasks since the last horizon or epoch, or when
/// [`horizon_max_parallelism`](TaskGraphConfig::horizon_max_parallelism) tasks
/// have no successor, and at no other time: so the window that later stages keep
/// is bounded. Where a forward would be followed by one, it comes after the consumer.
///
/// **Forwards.** What a task says of its two ends fits it: see [`Forward`](crate::Forward). Nothing
/// but other forwards to the same consumer comes between a forward and its consumer.
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
    let mut groups = GroupOrder::default();
    for (position, task) in tasks.iter().enumerate() {
        horizons.check(task, &mut broken);
        let point = lineage.point();
        let before = task.work.group().and_then(|group| groups.follow(group, task.id));
        let before = before.map(|before| before.max(point));
        check_reasons(task, point, before, &mut broken);
        check_accesses(task, &mut broken);
        check_forward(task, &tasks[position + 1..], &mut broken);
        check_conflicts(task, &tasks[..position], lineage.point(), &mut broken);
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
        Work::Device(_)
        | Work::HostOnce { .. }
        | Work::HostSplit { .. }
        | Work::Fence
        | Work::Combine { .. }
        | Work::Forward => Point::None,
    }
}

/// `before` is the task before this one in its group, or what stands in for it.
fn check_reasons(task: &Task, point: TaskId, before: Option<TaskId>, broken: &mut Vec<Broken>) {
    let synchronizes = point_of(task) != Point::None;
    if let Some(on) = before.filter(|before| task.dependencies.kind_of(*before).is_none()) {
        let why = "it does not, though that is the one before it in its group";
        broken.push(Broken::Reason { later: task.id, on, why });
    }
    let others = task.dependencies.iter().filter(|edge| Some(edge.on) != before);
    for edge in others {
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

fn check_forward(task: &Task, later: &[Arc<Task>], broken: &mut Vec<Broken>) {
    let lasting = later.iter().find(|later| later.work != Work::Forward).map(|task| task.id);
    let why = flaw(task).or_else(|| match &task.forward {
        Some(forward) if lasting != Some(forward.consumer.task) => {
            Some("its consumer does not follow")
        }
        _ => None,
    });
    broken.extend(why.map(|why| Broken::Forward { task: task.id, why }));
}

fn check_conflicts(task: &Task, earlier: &[Arc<Task>], point: TaskId, broken: &mut Vec<Broken>) {
    let later = task.id;
    let shape = task.conflicts.broken(later, point, &task.dependencies);
    let meet = |other: &Task| {
        task.side_effects().any(|effect| {
            let clash = |one: &&ObjectAccess| {
                one.object == effect.object && one.order.conflicts_with(effect.order)
            };
            other.side_effects().find(clash).is_some()
        })
    };
    let innocent = task.conflicts.as_slice().iter().find(|with| {
        let slot = usize::try_from(with.index()).ok();
        slot.and_then(|slot| earlier.get(slot)).is_some_and(|other| !meet(other))
    });
    let innocent = innocent.map(|&with| (with, "with which it shares no host object"));
    let found = shape.or(innocent);
    broken.extend(found.map(|(with, why)| Broken::Conflict { later, with, why }));
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
            && task.work != Work::Forward
            && (self.longest - self.at_point >= self.config.horizon_step
                || leaves as u64 >= self.config.horizon_max_parallelism);
    }
}
