//! Forward tasks before the tasks that read: those that discovery finds, and any that a task graph
//! may have, chosen element by element and at random. These share nothing with discovery: whatever
//! it may come to propose is among what is tried here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use celerity_cpd::{Collectives, Discovery};
use celerity_regions::{Box3, Region};
use celerity_tdag::{
    Access, AccessMode, BufferAccess, BufferId, BufferInfo, Forward, ForwardEnd, NewForward, Task,
    TaskId, TaskSpec, Touched,
};

use crate::configuration::Configuration;
pub use crate::configuration::Forwards;
use crate::element;
use crate::footprint::ElementFootprint;
use crate::hash::Mixer;
use crate::program::{Program, TaskOp};
use crate::truth::Truth;
use crate::violation::Provenance;

/// Finds the forwards of one program.
#[derive(Debug)]
pub(crate) enum Finder<'a> {
    Random(Box<RandomForwards<'a>>),
    Discovery(Box<Discovery>),
}

impl<'a> Finder<'a> {
    pub(crate) fn of(program: &'a Program, configuration: &Configuration) -> Self {
        let discovery = |collectives| Self::discovery(collectives, configuration.nodes);
        match configuration.forwards {
            Forwards::Random => {
                let (truth, seed) = (Truth::of(program), configuration.seed);
                Self::Random(Box::new(RandomForwards { truth, seed }))
            }
            found => discovery(found.in_runs()),
        }
    }

    fn discovery(collectives: Collectives, nodes: usize) -> Self {
        Self::Discovery(Box::new(Discovery::new(collectives, nodes)))
    }

    /// A finder of nothing.
    pub(crate) fn off() -> Self {
        Self::discovery(Collectives::Off, 1)
    }

    pub(crate) fn create_buffer(&mut self, info: &BufferInfo) {
        if let Self::Discovery(discovery) = self {
            discovery.create_buffer(info);
        }
    }

    pub(crate) fn drop_buffer(&mut self, buffer: BufferId) {
        if let Self::Discovery(discovery) = self {
            discovery.drop_buffer(buffer);
        }
    }

    /// Forwards for the task of statement `op`, which is about to be submitted as `spec` and
    /// touches this. `task_of` tells the task of an earlier statement.
    pub(crate) fn before(
        &mut self,
        (op, spec, touched): (usize, &TaskSpec, &[Touched]),
        task_of: impl Fn(usize) -> Arc<Task>,
    ) -> Vec<NewForward> {
        match self {
            Self::Random(random) => random.before(op, spec, task_of),
            Self::Discovery(discovery) => discovery.discover(spec, touched),
        }
    }

    /// The task has been submitted.
    pub(crate) fn committed(&mut self, task: &Arc<Task>) {
        if let Self::Discovery(discovery) = self {
            discovery.committed(task);
        }
    }
}

/// Draws forwards for one program.
#[derive(Debug)]
pub(crate) struct RandomForwards<'a> {
    truth: Truth<'a>,
    seed: u64,
}

/// Elements of a buffer that one statement has written and another one reads.
struct Flow {
    buffer: BufferId,
    producer: usize,
    slots: BTreeSet<usize>,
}

impl RandomForwards<'_> {
    /// Forwards for the task of statement `op`, which is about to be submitted as `spec`.
    /// `task_of` tells the task of an earlier statement.
    fn before(
        &self,
        op: usize,
        spec: &TaskSpec,
        task_of: impl Fn(usize) -> Arc<Task>,
    ) -> Vec<NewForward> {
        let flows = self.flows(op).into_iter().enumerate();
        let forward = |(nth, flow): (usize, Flow)| {
            let draw = Mixer::for_item(op, [self.seed, nth as u64, 1]);
            let Flow { buffer, producer, slots } = flow;
            let slots = self.some_of(slots, draw.with(1));
            let region = region_of(&self.truth.buffer(buffer).extent, &slots);
            let wrote = task_of(producer);
            let touched = (buffer, &slots);
            let accesses = self.touching(producer, &wrote.accesses, touched, AccessMode::writes);
            let producer = ForwardEnd { task: wrote.id, work: wrote.work, accesses };
            let accesses = self.touching(op, &spec.accesses, touched, AccessMode::reads);
            let consumer = ForwardEnd { task: TaskId::from_index(0), work: spec.work, accesses };
            let forward = Forward { producer, consumer };
            let name = spec.name.clone();
            let new = NewForward { buffer, region, forward, name, location: None };
            (draw.below(2) == 0).then_some(new)
        };
        flows.filter_map(forward).collect()
    }

    /// What the statement reads, by buffer and who has written it.
    fn flows(&self, op: usize) -> Vec<Flow> {
        let (task, footprint) = self.truth.task(op);
        let mut flows: BTreeMap<(BufferId, usize), BTreeSet<usize>> = BTreeMap::new();
        for (nth, access) in reading(task) {
            for slot in footprint.whole(nth) {
                if let Provenance::Op(producer) = self.truth.before(op, access, slot) {
                    flows.entry((access, producer)).or_default().insert(slot);
                }
            }
        }
        let flow = |((buffer, producer), slots)| Flow { buffer, producer, slots };
        flows.into_iter().map(flow).collect()
    }

    /// All of them, or those from a random one on.
    fn some_of(&self, slots: BTreeSet<usize>, draw: Mixer) -> BTreeSet<usize> {
        match draw.below(4) {
            0 => slots.iter().copied().skip(draw.with(2).below(slots.len())).collect(),
            _ => slots,
        }
    }

    /// The accesses of a statement's task that touch some of the elements.
    fn touching(
        &self,
        op: usize,
        accesses: &[Access],
        (buffer, slots): (BufferId, &BTreeSet<usize>),
        has_mode: impl Fn(AccessMode) -> bool,
    ) -> Box<[BufferAccess]> {
        let footprint: &ElementFootprint = self.truth.task(op).1;
        let accesses = Access::buffers(accesses).enumerate();
        let touching = accesses.filter(|(nth, access)| {
            access.buffer == buffer
                && has_mode(access.mode)
                && !footprint.whole(*nth).is_disjoint(slots)
        });
        touching.map(|(_, access)| access.clone()).collect()
    }
}

/// The accesses that read, by position, and their buffers.
fn reading(task: &TaskOp) -> impl Iterator<Item = (usize, BufferId)> + '_ {
    let accesses = task.accesses.iter().enumerate();
    accesses.filter(|(_, access)| access.mode.reads()).map(|(nth, access)| (nth, access.buffer))
}

fn region_of(extent: &Box3, slots: &BTreeSet<usize>) -> Region {
    let element = |&slot: &usize| {
        let at = element::point(extent, slot);
        Box3::new(at, at.map(|index| index + 1))
    };
    Region::from_boxes(slots.iter().map(element))
}
