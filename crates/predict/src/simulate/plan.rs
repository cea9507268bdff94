//! What each instruction of a node will take on its lane, and who waits for whom: all that is known
//! before anything happens. Pure functions over schedules.

use std::collections::{HashMap, HashSet};

use crate::cluster::{ClusterModel, Nanos};
use crate::costs::{CostedWork, WorkCosts};
use crate::error::PredictError;
use crate::prediction::StretchedKernel;
use crate::schedule::{Action, NodeSchedule, ScheduledKind, ScheduledTask};
use crate::span::Lane;

/// What is known of a node's instructions beforehand, by position.
#[derive(Debug)]
pub(super) struct Plan {
    /// What each takes on its lane, in ns.
    pub(super) took: Vec<Nanos>,
    /// Who waits for each.
    pub(super) dependents: Dependents,
    /// Those that deliver something to the program, ascending.
    pub(super) delivering: Vec<u32>,
    /// Host tasks that were not in the measured run.
    pub(super) guessed: usize,
    pub(super) stretched: Option<StretchedKernel>,
}

/// Lists of positions, side by side.
#[derive(Debug)]
pub(super) struct Dependents {
    ends: Vec<usize>,
    all: Vec<u32>,
}

impl Dependents {
    fn of(schedule: &NodeSchedule) -> Self {
        let mut counts = vec![0_usize; schedule.steps.len()];
        let edges = || schedule.steps.iter().flat_map(|step| &step.after);
        edges().for_each(|before| counts[*before as usize] += 1);
        let mut end = 0;
        let mut ends: Vec<_> = counts
            .iter()
            .map(|count| {
                end += count;
                end - count
            })
            .collect();
        let mut all = vec![0; end];
        for (position, step) in (0..).zip(&schedule.steps) {
            for before in &step.after {
                let slot = &mut ends[*before as usize];
                all[*slot] = position;
                *slot += 1;
            }
        }
        Self { ends, all }
    }

    /// Who waits for an instruction.
    pub(super) fn of_step(&self, step: u32) -> &[u32] {
        let step = step as usize;
        let start = step.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.all[start..self.ends[step]]
    }
}

/// Plans a node.
pub(super) fn plan(
    model: &ClusterModel,
    costs: &WorkCosts,
    schedule: &NodeSchedule,
) -> Result<Plan, PredictError> {
    let tasks = numbered(&schedule.tasks);
    let has_neighbours = model.nodes.per_host.min(schedule.nodes) > 1;
    let beside = if has_neighbours { model.device.beside_others_percent / 100.0 } else { 1.0 };
    let folds = folds(&schedule.tasks);
    let (mut took, mut delivering, mut guessed) = (Vec::new(), Vec::new(), 0);
    let mut stretched = None;
    for (position, step) in (0..).zip(&schedule.steps) {
        took.push(match &step.action {
            Action::Copy { from, to, bytes } => copy(model, *from, *to, *bytes),
            Action::Run { device, task, items } => {
                let (named, nth) = &tasks[task];
                if named.kind == ScheduledKind::Fence {
                    delivering.push(position);
                }
                let name = named.name.as_str();
                match device {
                    Some(_) => {
                        let measured = costs.most_items(name);
                        stretched = StretchedKernel::worse(stretched, name, [measured, *items]);
                        let cost = costs.of_launch(CostedWork::Kernel(name), *nth, *items);
                        scaled(cost.ok_or_else(|| no_cost(schedule, step.line, named))?, beside)
                    }
                    // The measured run has folded all tiles of a reduction in one place.
                    None if named.kind == ScheduledKind::Host && folds.contains(name) => {
                        let whole = costs.of_launch(CostedWork::Host(name), *nth, 1);
                        guessed += usize::from(whole.is_none());
                        whole.unwrap_or(model.engine.host_item_ns) / schedule.nodes as Nanos
                    }
                    None => {
                        let cost = costs.of_launch(CostedWork::Host(name), *nth, *items);
                        guessed += usize::from(cost.is_none());
                        cost.unwrap_or_else(|| model.engine.host_item_ns.saturating_mul(*items))
                    }
                }
            }
            Action::Epoch { .. } => {
                delivering.push(position);
                0
            }
            Action::Memory { .. }
            | Action::Send { .. }
            | Action::Receive { .. }
            | Action::Collective { .. }
            | Action::Horizon => 0,
        });
    }
    Ok(Plan { took, dependents: Dependents::of(schedule), delivering, guessed, stretched })
}

/// The names of reductions. Where several nodes have parts of one, each folds its own in a host task of the name of
/// the combination.
fn folds(tasks: &[ScheduledTask]) -> HashSet<&str> {
    let combined = tasks.iter().filter(|task| task.kind == ScheduledKind::Combine);
    combined.map(|task| task.name.as_str()).collect()
}

/// Each task by id, with its position among those of its kind and name, and how many these are.
fn numbered(tasks: &[ScheduledTask]) -> HashMap<u64, (&ScheduledTask, (usize, usize))> {
    let key = |task: &ScheduledTask| (task.kind, task.name.clone());
    let runs = |task: &&ScheduledTask| {
        use ScheduledKind::{Combine, Fence, Host, Kernel};
        matches!(task.kind, Kernel | Host | Fence | Combine)
    };
    let mut counts = HashMap::new();
    let mut all = HashMap::new();
    for task in tasks.iter().filter(runs) {
        let count = counts.entry(key(task)).or_insert(0);
        all.insert(task.id, (task, (*count, 0)));
        *count += 1;
    }
    for (task, (_, of)) in all.values_mut() {
        *of = counts[&key(task)];
    }
    all
}

fn no_cost(schedule: &NodeSchedule, line: usize, task: &ScheduledTask) -> PredictError {
    PredictError::NoCost {
        path: schedule.path.clone(),
        line,
        node: schedule.node,
        task: task.id,
        name: task.name.clone(),
    }
}

fn copy(model: &ClusterModel, from: u64, to: u64, bytes: u64) -> Nanos {
    let ways = &model.copy;
    let way = match (device_of(from), device_of(to)) {
        (None, None) => ways.within_host,
        (None, Some(_)) => ways.to_device,
        (Some(_), None) => ways.from_device,
        (Some(one), Some(other)) if one == other => ways.within_device,
        (Some(_), Some(_)) => ways.between_devices,
    };
    way.whole(bytes)
}

/// The device that a memory belongs to.
fn device_of(memory: u64) -> Option<usize> {
    memory.checked_sub(2).and_then(|device| usize::try_from(device).ok())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn scaled(took: Nanos, factor: f64) -> Nanos {
    (took as f64 * factor).round() as Nanos
}

/// The lane on which an instruction may queue up behind one that it waits for: launches and copies are
/// handed to a lane before those in front of them are over.
pub(super) fn queues_on(action: &Action) -> Option<Lane> {
    match action {
        Action::Run { device: Some(device), .. } => Some(Lane::Kernels(*device)),
        Action::Copy { from, to, .. } => {
            Some(Lane::Copies(device_of(*from).or_else(|| device_of(*to))))
        }
        _ => None,
    }
}
