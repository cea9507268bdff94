//! What a prediction says: how long the program takes, what limits it, and when everything happens.

use std::collections::HashMap;

use crate::cluster::Nanos;
use crate::schedule::{Action, NodeSchedule, ScheduledKind};
use crate::span::{Lane, Limit, SpanId, Spans, Subject};

/// How a program runs on a cluster, as predicted.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Nodes of the cluster.
    pub nodes: usize,
    /// Devices of each node.
    pub devices: usize,
    /// From the beginning of the run until all nodes have reached the program's end, in ns.
    pub makespan: Nanos,
    /// What the way from the end back to the beginning consists of, in ns, in the order of
    /// [`Limit::ALL`]: together the makespan.
    pub critical: [Nanos; Limit::ALL.len()],
    /// How much of the makespan devices compute, on average, in percent.
    pub busy_percent: f64,
    /// The kernel that is run most often.
    pub repeated: Option<RepeatedKernel>,
    /// Launches on the host whose cost was not measured, of all nodes.
    pub guessed: usize,
    /// The kernel whose launches are greatest beside those that were measured, if that is much: what it costs per
    /// item is not known then.
    pub stretched: Option<StretchedKernel>,
    /// All that happens.
    pub spans: Spans,
}

/// A kernel that is run again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatedKernel {
    /// What the program calls it.
    pub name: String,
    /// From the end of its first to the end of its last task on all nodes, per task, in ns.
    pub period: Nanos,
    /// The same from the middle one on: without what is done once, such as allocating memory.
    pub steady_period: Nanos,
}

/// A kernel that was measured in launches of few items, and is launched with many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StretchedKernel {
    /// What the program calls it.
    pub name: String,
    /// Items of its greatest launch in the measured runs.
    pub measured: u64,
    /// Items of its greatest launch here.
    pub items: u64,
}

impl StretchedKernel {
    /// How many times as many items are no small step any more.
    const MUCH: u64 = 16;

    /// How many times as many items it has as were measured.
    #[must_use]
    pub fn factor(&self) -> u64 {
        self.items / self.measured.max(1)
    }

    /// The worse of one, and of a kernel that was measured with so many items and has so many, if that is much.
    pub(crate) fn worse(
        one: Option<Self>,
        name: &str,
        [measured, items]: [u64; 2],
    ) -> Option<Self> {
        let factor = items / measured.max(1);
        match factor > one.as_ref().map_or(Self::MUCH, Self::factor) {
            true => Some(Self { name: name.to_owned(), measured, items }),
            false => one,
        }
    }
}

impl Prediction {
    pub(crate) fn new(
        schedules: &[NodeSchedule],
        spans: Spans,
        (makespan, last): (Nanos, Option<SpanId>),
    ) -> Self {
        let devices = schedules.first().map_or(0, |schedule| schedule.devices);
        Self {
            nodes: schedules.len(),
            devices,
            makespan,
            critical: spans.critical(last),
            busy_percent: busy(&spans, schedules.len() * devices, makespan),
            repeated: repeated(schedules, &spans),
            guessed: 0,
            stretched: None,
            spans,
        }
    }

    /// What takes the greatest part of the way back.
    #[must_use]
    pub fn limit(&self) -> Limit {
        let shares = Limit::ALL.into_iter().zip(self.critical);
        // The first of those that are the same.
        shares.rev().max_by_key(|(_, took)| *took).map_or(Limit::Kernel, |(limit, _)| limit)
    }
}

fn busy(spans: &Spans, devices: usize, makespan: Nanos) -> f64 {
    let kernels = spans.all().iter().filter(|span| matches!(span.lane, Lane::Kernels(_)));
    let computing = kernels.filter(|span| matches!(span.subject, Subject::Step(_)));
    let took = computing.map(|span| (span.end - span.start) as f64).sum::<f64>();
    let all = devices as f64 * makespan as f64;
    if all > 0.0 { 100.0 * took / all } else { 0.0 }
}

fn repeated(schedules: &[NodeSchedule], spans: &Spans) -> Option<RepeatedKernel> {
    let tasks = &schedules.first()?.tasks;
    let mut by_name = HashMap::<&str, Vec<u64>>::new();
    for task in tasks.iter().filter(|task| task.kind == ScheduledKind::Kernel) {
        by_name.entry(&task.name).or_default().push(task.id);
    }
    let most = by_name.into_iter().max_by_key(|(name, ids)| (ids.len(), std::cmp::Reverse(*name)));
    let (name, ids) = most.filter(|(_, ids)| ids.len() > 1)?;
    let middle = (ids.len() - 1) / 2;
    let marks = [*ids.first()?, ids[middle], *ids.last()?];
    let mut ends = [0; 3];
    for span in spans.all() {
        let (Lane::Kernels(_), Subject::Step(step)) = (span.lane, span.subject) else { continue };
        let Action::Run { task, .. } = schedules[span.node].steps[step as usize].action else {
            continue;
        };
        for (end, of) in ends.iter_mut().zip(marks) {
            if task == of {
                *end = span.end.max(*end);
            }
        }
    }
    let [first, half, last] = ends;
    let of = |from: Nanos, steps: usize| last.saturating_sub(from) / steps as u64;
    let (period, steady_period) = (of(first, ids.len() - 1), of(half, ids.len() - 1 - middle));
    Some(RepeatedKernel { name: name.to_owned(), period, steady_period })
}
