//! Executes instructions on versions instead of data.

use std::collections::{BTreeMap, BTreeSet};

use celerity_cdag::{NodeId, TransferId};
use celerity_idag::{AllocationId, InstructionKind};
use celerity_regions::{Box3, Coord3, Region};
use celerity_tdag::{BufferId, TaskId, Work};

use super::Cluster;
use super::touches::{NodeTouches, Touch, Use};
use crate::element;
use crate::model::exchange::ExchangedSlots;
use crate::model::machine::Machine;
use crate::trace::{GeneratorInput, InstructionOrigin};
use crate::violation::{Provenance, Violation};

/// The memories of all nodes and the wires between them.
pub(super) struct Simulation<'a> {
    cluster: Cluster<'a>,
    touches: &'a [NodeTouches],
    /// By node; elements that are missing have undefined contents.
    contents: Vec<BTreeMap<AllocationId, Vec<Provenance>>>,
    /// What has been sent and not been received.
    wire: BTreeMap<(TransferId, NodeId), BTreeMap<Coord3, Provenance>>,
    /// By node: what a collective has brought, and copies of that. The node does not know whether it
    /// had the same before.
    anew: Vec<BTreeSet<(AllocationId, usize)>>,
    /// By node: collectives, by number.
    collectives: Vec<Collectives>,
    /// The statement that each instruction serves, by node.
    ops: Vec<Vec<Option<usize>>>,
}

/// How far a node is with its collectives, which it begins in order.
#[derive(Clone, Default)]
struct Collectives {
    /// Those that wait for nothing on this node: the step of each.
    free: BTreeMap<u64, usize>,
    /// Those below have begun: what the node provides is on its way.
    begun: u64,
    /// Those that have begun.
    transfers: BTreeSet<TransferId>,
}

impl<'a> Simulation<'a> {
    pub(super) fn new(cluster: Cluster<'a>, touches: &'a [NodeTouches]) -> Self {
        let contents = touches.iter().map(initial_contents).collect();
        let op = |origin: &InstructionOrigin| match &cluster.tasks.events[origin.event] {
            GeneratorInput::Task(task) if task.work == Work::Forward => {
                cluster.tasks.consumer(task.id)
            }
            GeneratorInput::Task(task) => cluster.tasks.op(task.id),
            GeneratorInput::Create(_) | GeneratorInput::Drop(_) => None,
        };
        let nodes = cluster.nodes.iter();
        let ops = nodes.map(|node| node.origins.iter().map(op).collect()).collect();
        let collectives = vec![Collectives::default(); touches.len()];
        let (anew, wire) = (vec![BTreeSet::new(); touches.len()], BTreeMap::new());
        Self { cluster, touches, contents, wire, anew, collectives, ops }
    }

    fn buffer(&self, node: usize, allocation: AllocationId) -> BufferId {
        self.touches[node].allocations[&allocation].buffer
    }

    fn slot_in_buffer(&self, node: usize, allocation: AllocationId, slot: usize) -> usize {
        let buffer = self.buffer(node, allocation);
        let point = self.touches[node].point(allocation, slot);
        element::slot(&self.cluster.truth.buffer(buffer).extent, point)
    }

    fn version(&self, node: usize, allocation: AllocationId, slot: usize) -> Provenance {
        self.contents[node]
            .get(&allocation)
            .map_or(Provenance::Undefined, |versions| versions[slot])
    }

    fn set(&mut self, node: usize, allocation: AllocationId, slot: usize, version: Provenance) {
        let volume = element::volume(&self.touches[node].extent(allocation));
        self.anew[node].remove(&(allocation, slot));
        let contents = self.contents[node].entry(allocation);
        contents.or_insert_with(|| vec![Provenance::Undefined; volume])[slot] = version;
    }

    fn place(&self, node: usize, allocation: AllocationId, slot: usize) -> String {
        let at = self.touches[node].point(allocation, slot);
        let buffer = self.buffer(node, allocation);
        format!("{} {buffer}{at:?}", self.touches[node].name(allocation))
    }

    /// What is read is what sequential execution sees before `op`.
    fn check_current(
        &self,
        node: usize,
        step: usize,
        touch: &Touch,
        op: usize,
    ) -> Result<(), Violation> {
        for &slot in &touch.slots {
            let found = self.version(node, touch.allocation, slot);
            let in_buffer = self.slot_in_buffer(node, touch.allocation, slot);
            let buffer = self.buffer(node, touch.allocation);
            let expected = self.cluster.truth.before(op, buffer, in_buffer);
            if found != expected {
                let reader = self.cluster.dags[node].describe(step);
                let place = self.place(node, touch.allocation, slot);
                return Err(Violation::Stale { reader, place, expected, found });
            }
        }
        Ok(())
    }

    fn run_chunk(&mut self, node: usize, step: usize, task: TaskId) -> Result<(), Violation> {
        let Some(op) = self.cluster.tasks.op(task) else { return Ok(()) };
        let touches = &self.touches[node].touches[step];
        for touch in touches.iter().filter(|touch| touch.how == Use::Read) {
            self.check_current(node, step, touch, op)?;
        }
        for touch in touches.iter().filter(|touch| touch.how == Use::Write) {
            for &slot in &touch.slots {
                self.set(node, touch.allocation, slot, Provenance::Op(op));
            }
        }
        Ok(())
    }

    fn copy(&mut self, node: usize, step: usize) -> Result<(), Violation> {
        let [source, target] = &self.touches[node].touches[step][..] else {
            unreachable!("a copy reads once and writes once")
        };
        let memory = |touch: &Touch| self.touches[node].allocations[&touch.allocation].memory;
        // A node does not hear of remote writes to what it will not read, so an
        // allocation that grows may take outdated contents along.
        let grows = memory(source) == memory(target);
        if let Some(op) = self.ops[node][step].filter(|_| !grows) {
            self.check_current(node, step, source, op)?;
        }
        for (&from, &to) in source.slots.iter().zip(&target.slots) {
            let version = self.version(node, source.allocation, from);
            if self.anew[node].contains(&(source.allocation, from)) {
                self.set(node, target.allocation, to, version);
                self.anew[node].insert((target.allocation, to));
            } else {
                self.bring(node, step, target.allocation, to, version)?;
            }
        }
        Ok(())
    }

    /// Overwrites an element with something that is not there already.
    fn bring(
        &mut self,
        node: usize,
        step: usize,
        allocation: AllocationId,
        slot: usize,
        version: Provenance,
    ) -> Result<(), Violation> {
        if self.version(node, allocation, slot) == version {
            let mover = self.cluster.dags[node].describe(step);
            let place = self.place(node, allocation, slot);
            return Err(Violation::Redundant { mover, place, version });
        }
        self.set(node, allocation, slot, version);
        Ok(())
    }

    fn send(
        &mut self,
        node: usize,
        step: usize,
        transfer: TransferId,
        to: NodeId,
    ) -> Result<(), Violation> {
        let [source] = &self.touches[node].touches[step][..] else {
            unreachable!("a send reads once")
        };
        if let Some(op) = self.cluster.tasks.op(transfer.consumer) {
            self.check_current(node, step, source, op)?;
        }
        for &slot in &source.slots {
            let version = self.version(node, source.allocation, slot);
            let point = self.touches[node].point(source.allocation, slot);
            self.wire.entry((transfer, to)).or_default().insert(point, version);
        }
        Ok(())
    }

    fn receive(&mut self, node: usize, step: usize, transfer: TransferId) -> Result<(), Violation> {
        let [target] = &self.touches[node].touches[step][..] else {
            unreachable!("a receive writes once")
        };
        let to = self.cluster.nodes[node].node;
        for &slot in &target.slots {
            let point = self.touches[node].point(target.allocation, slot);
            let parcel = self.wire.entry((transfer, to)).or_default();
            // A second await receive for the same element finds it in place.
            if let Some(version) = parcel.get(&point).copied() {
                self.set(node, target.allocation, slot, version);
            }
        }
        Ok(())
    }

    /// Begins the collectives of a node that may begin: what it provides leaves its memory.
    fn begin_collectives(&mut self, node: usize) {
        let Collectives { free, begun, .. } = &mut self.collectives[node];
        let mut steps = Vec::new();
        while let Some(step) = free.remove(begun) {
            steps.push(step);
            *begun += 1;
        }
        for step in steps {
            self.provide(node, step);
        }
    }

    fn provide(&mut self, node: usize, step: usize) {
        let InstructionKind::Collective(part) = &self.cluster.nodes[node].instructions[step].kind
        else {
            unreachable!("only collectives begin in order")
        };
        self.collectives[node].transfers.insert(part.transfer);
        let extent = self.cluster.truth.buffer(part.transfer.buffer).extent;
        let from = self.cluster.nodes[node].node;
        for other in self.cluster.nodes.iter().filter(|other| other.node != from) {
            let taken = ExchangedSlots::at(&extent, &part.collective, other.node).arriving;
            let mut parcel = Vec::new();
            for source in self.reads(node, step) {
                for &slot in &source.slots {
                    let point = self.touches[node].point(source.allocation, slot);
                    if taken.contains(&element::slot(&extent, point)) {
                        parcel.push((point, self.version(node, source.allocation, slot)));
                    }
                }
            }
            self.wire.entry((part.transfer, other.node)).or_default().extend(parcel);
        }
    }

    fn reads(&self, node: usize, step: usize) -> impl Iterator<Item = &'a Touch> + use<'a> {
        let touches: &'a [NodeTouches] = self.touches;
        touches[node].touches[step].iter().filter(|touch| touch.how == Use::Read)
    }

    /// All members have begun: takes what comes, and looks at what the node has provided, which must
    /// have been current, and be so still.
    fn exchange(
        &mut self,
        node: usize,
        step: usize,
        transfer: TransferId,
    ) -> Result<(), Violation> {
        let op = self.ops[node][step];
        let touches = &self.touches[node].touches[step];
        let parcel = self.wire.remove(&(transfer, self.cluster.nodes[node].node));
        let parcel = parcel.unwrap_or_default();
        for target in touches.iter().filter(|touch| touch.how == Use::Write) {
            for &slot in &target.slots {
                let point = self.touches[node].point(target.allocation, slot);
                let version = parcel.get(&point).copied().unwrap_or(Provenance::Undefined);
                self.set(node, target.allocation, slot, version);
                self.anew[node].insert((target.allocation, slot));
            }
        }
        let mut all = touches.iter();
        op.map_or(Ok(()), |op| all.try_for_each(|touch| self.check_current(node, step, touch, op)))
    }

    fn has_arrived(&self, node: usize, transfer: TransferId, region: &Region) -> bool {
        let parcel = self.wire.get(&(transfer, self.cluster.nodes[node].node));
        let contains = |at| parcel.is_some_and(|parcel| parcel.contains_key(&at));
        region.boxes().iter().flat_map(|part: &Box3| element::points(part)).all(contains)
    }
}

impl Machine for Simulation<'_> {
    fn is_ready(&self, node: usize, step: usize) -> bool {
        match &self.cluster.nodes[node].instructions[step].kind {
            InstructionKind::Receive(inbound) => {
                self.has_arrived(node, inbound.transfer, &inbound.region)
            }
            InstructionKind::AwaitReceive { transfer, region } => {
                self.has_arrived(node, *transfer, region)
            }
            InstructionKind::Collective(part) => {
                let nodes = self.cluster.nodes.iter().zip(&self.collectives);
                let mut members =
                    nodes.filter(|(node, _)| part.collective.members.contains(node.node));
                members.all(|(_, of_node)| of_node.transfers.contains(&part.transfer))
            }
            _ => true,
        }
    }

    fn enable(&mut self, node: usize, step: usize) {
        if let InstructionKind::Collective(part) = &self.cluster.nodes[node].instructions[step].kind
        {
            self.collectives[node].free.insert(part.number, step);
            self.begin_collectives(node);
        }
    }

    fn execute(&mut self, node: usize, step: usize) -> Result<(), Violation> {
        match &self.cluster.nodes[node].instructions[step].kind {
            InstructionKind::Copy { .. } => self.copy(node, step),
            InstructionKind::Send { to, transfer, .. } => self.send(node, step, *transfer, *to),
            InstructionKind::Receive(inbound) => self.receive(node, step, inbound.transfer),
            InstructionKind::AwaitReceive { transfer, .. } => self.receive(node, step, *transfer),
            InstructionKind::Collective(part) => self.exchange(node, step, part.transfer),
            InstructionKind::Kernel { task, .. } | InstructionKind::HostTask { task, .. } => {
                self.run_chunk(node, step, *task)
            }
            InstructionKind::Alloc { .. }
            | InstructionKind::Reserve { .. }
            | InstructionKind::Grow { .. }
            | InstructionKind::Free { .. }
            | InstructionKind::SplitReceive(_)
            | InstructionKind::Horizon { .. }
            | InstructionKind::Epoch { .. } => Ok(()),
        }
    }
}

/// Only users' data has contents at the start.
fn initial_contents(touches: &NodeTouches) -> BTreeMap<AllocationId, Vec<Provenance>> {
    let users = touches.allocations.iter().filter(|(_, allocation)| allocation.made_by.is_none());
    let contents =
        users.map(|(&id, _)| (id, vec![Provenance::Initial; element::volume(&touches.extent(id))]));
    contents.collect()
}
