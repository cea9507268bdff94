//! The contract of the command graphs of all nodes together: chunks partition
//! every index space; conflicting commands of one node are ordered, and no
//! others; what is pushed for a transfer is exactly what is awaited, each
//! element once and only where it is not current; executed in any order that
//! the edges allow, every command sees what sequential execution would.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use celerity_cdag::{Command, CommandKind, NodeId, TransferId};
use celerity_cpd::Collective;
use celerity_regions::{Box3, Region};
use celerity_tdag::{BufferId, TaskId, Work};

use super::chunks::{check_chunks, check_granules, expected_executions};
use super::exchange::ExchangedSlots;
use super::ledger::{Groups, Ledger, Needs};
use super::machine::{Machine, execute_all};
use super::objects::{self, Affecting};
use super::parcels::Parcels;
use super::{check_shape, check_synchronization};
use crate::element;
use crate::program::{TaskOp, buffer_slot};
use crate::queries::{BufferNames, Dag, Reachability};
use crate::trace::{CommandTrace, TaskTrace};
use crate::truth::Truth;
use crate::violation::{Provenance, Violation};

/// Checks the commands of all nodes against the program, executing them in an
/// order chosen by `seed`.
///
/// # Errors
/// The first broken promise.
pub fn check(
    truth: &Truth<'_>,
    tasks: &TaskTrace,
    nodes: &[CommandTrace],
    seed: u64,
) -> Result<(), Violation> {
    let cluster = Cluster { truth, tasks, nodes };
    let dags: Vec<Dag> = nodes.iter().map(dag_of).collect();
    for (node, dag) in nodes.iter().zip(&dags) {
        check_shape(dag, node.commands.iter().map(|command| command.id))?;
        cluster.check_pushes(node, dag)?;
        cluster.check_order(node, dag)?;
        cluster.check_synchronization(node, dag)?;
    }
    cluster.check_assignment()?;
    cluster.check_transfers()?;
    cluster.check_collectives()?;
    let mut simulation = Simulation::new(cluster, &dags);
    execute_all(&dags, seed, &mut simulation)
}

fn dag_of(node: &CommandTrace) -> Dag {
    Dag::of_commands(&node.node.to_string(), &node.commands, &BufferNames::default())
}

#[derive(Clone, Copy)]
struct Cluster<'a> {
    truth: &'a Truth<'a>,
    tasks: &'a TaskTrace,
    nodes: &'a [CommandTrace],
}

/// What a command does to this node's copy of a buffer.
struct Touch {
    buffer: BufferId,
    slots: BTreeSet<usize>,
    reads: bool,
    writes: bool,
}

impl Cluster<'_> {
    fn check_synchronization(&self, node: &CommandTrace, dag: &Dag) -> Result<(), Violation> {
        let kinds: Vec<bool> = node.commands.iter().map(synchronizes).collect();
        check_synchronization(
            dag,
            |command| kinds[command],
            |command| matches!(node.commands[command].kind, CommandKind::Epoch(_)),
        )
    }

    fn check_pushes(&self, node: &CommandTrace, dag: &Dag) -> Result<(), Violation> {
        for (position, command) in node.commands.iter().enumerate() {
            let CommandKind::Push { targets, .. } = &command.kind else { continue };
            let receivers: BTreeSet<NodeId> = targets.iter().map(|&(to, _)| to).collect();
            let sound = !targets.is_empty()
                && receivers.len() == targets.len()
                && receivers.iter().all(|to| *to != node.node && to.slot() < self.nodes.len())
                && targets.iter().all(|(_, region)| !region.is_empty());
            if !sound {
                let what = "its targets are empty, doubled or not other nodes".into();
                return Err(Violation::Malformed { node: dag.describe(position), what });
            }
        }
        Ok(())
    }

    fn slots(&self, buffer: BufferId, region: &Region) -> BTreeSet<usize> {
        element::slots(&self.truth.buffer(buffer).extent, region)
    }

    fn exchange(&self, buffer: BufferId, collective: &Collective, node: NodeId) -> ExchangedSlots {
        ExchangedSlots::at(&self.truth.buffer(buffer).extent, collective, node)
    }

    fn touches(&self, node: NodeId, command: &Command) -> Vec<Touch> {
        match &command.kind {
            CommandKind::Execute { chunk } => self.touches_of_chunk(command, chunk),
            CommandKind::Push { transfer: TransferId { buffer, .. }, targets } => {
                let slots = targets.iter().flat_map(|(_, region)| self.slots(*buffer, region));
                vec![Touch { buffer: *buffer, slots: slots.collect(), reads: true, writes: false }]
            }
            CommandKind::AwaitPush { transfer: TransferId { buffer, .. }, region } => {
                let slots = self.slots(*buffer, region);
                vec![Touch { buffer: *buffer, slots, reads: false, writes: true }]
            }
            CommandKind::Collective { transfer: TransferId { buffer, .. }, collective } => {
                let ends = self.exchange(*buffer, collective, node);
                [(ends.provided, true), (ends.arriving, false)]
                    .map(|(slots, reads)| Touch { buffer: *buffer, slots, reads, writes: !reads })
                    .into()
            }
            CommandKind::Horizon | CommandKind::Epoch(_) => Vec::new(),
        }
    }

    fn touches_of_chunk(&self, command: &Command, chunk: &Box3) -> Vec<Touch> {
        let Some(op) = self.tasks.op(command.task) else { return Vec::new() };
        let (task, footprint) = self.truth.task(op);
        let accesses = task.accesses.iter().enumerate();
        let touches = accesses.map(|(nth, access)| Touch {
            buffer: access.buffer,
            slots: footprint.chunk(nth, chunk),
            reads: access.mode.reads(),
            writes: access.mode.writes(),
        });
        touches.collect()
    }

    fn check_order(&self, node: &CommandTrace, dag: &Dag) -> Result<(), Violation> {
        let reach = dag.reachability();
        let (mut ledgers, mut groups) = (self.ledgers(), Groups::default());
        for (position, command) in node.commands.iter().enumerate() {
            if synchronizes(command) {
                continue;
            }
            let mut needs = Needs::default();
            for touch in self.touches(node.node, command) {
                if let CommandKind::Push { .. } = &command.kind {
                    check_single_writer(position, dag, &ledgers, &touch)?;
                }
                let of_touch = record(&mut ledgers, position, &touch);
                let place = |slot| self.truth.place(touch.buffer, slot);
                of_touch.check_met(position, dag, &reach, place)?;
                needs.merge(of_touch);
            }
            let mut in_group = Needs::default();
            in_group.follow(&mut groups, self.group_of(command), position);
            in_group.check_met(position, dag, &reach, |_| "their collective group".into())?;
            needs.merge(in_group);
            if let Some(task) = self.affecting(command) {
                let before = node.commands[..position].iter().enumerate();
                let before = before.filter_map(|(at, other)| Some((at, self.affecting(other)?)));
                needs.add_effects(objects::reasons(before, task));
            }
            needs.check_reasons(position, dag, |on| synchronizes(&node.commands[on]))?;
        }
        self.check_objects(node, dag, &reach)
    }

    /// The task that a command executes, if it has side effects.
    fn affecting(&self, command: &Command) -> Option<&TaskOp> {
        let executes = matches!(command.kind, CommandKind::Execute { .. });
        let op = self.tasks.op(command.task).filter(|_| executes)?;
        Some(self.truth.task(op).0).filter(|task| !task.effects.is_empty())
    }

    fn check_objects(
        &self,
        node: &CommandTrace,
        dag: &Dag,
        reach: &Reachability,
    ) -> Result<(), Violation> {
        let mut affecting = Vec::new();
        for (position, command) in node.commands.iter().enumerate() {
            let conflicts = command.conflicts.as_slice().iter();
            let conflicts: BTreeSet<usize> =
                conflicts.map(|with| usize::try_from(with.index()).expect("small")).collect();
            match self.affecting(command) {
                Some(task) => affecting.push(Affecting { position, task, conflicts }),
                None if conflicts.is_empty() => {}
                None => {
                    let what = "conflicts with others, and has no side effects".into();
                    return Err(Violation::Malformed { node: dag.describe(position), what });
                }
            }
        }
        objects::check(&affecting, dag, reach)
    }

    /// The collective group of what a command executes.
    fn group_of(&self, command: &Command) -> Option<usize> {
        let executes = matches!(command.kind, CommandKind::Execute { .. });
        let op = self.tasks.op(command.task).filter(|_| executes)?;
        self.truth.task(op).0.kind.group()
    }

    fn ledgers(&self) -> Vec<Ledger> {
        let elements = self.truth.buffers().iter().map(|spec| element::volume(&spec.extent));
        elements.map(Ledger::new).collect()
    }

    /// Chunks partition index spaces, host tasks run once on `N0`, fences once
    /// on every node.
    fn check_assignment(&self) -> Result<(), Violation> {
        let mut executed: BTreeMap<usize, Vec<(NodeId, Box3)>> = BTreeMap::new();
        for node in self.nodes {
            for command in &node.commands {
                if let CommandKind::Execute { chunk } = command.kind {
                    let op = self.tasks.op(command.task).ok_or_else(|| Violation::Malformed {
                        node: format!("{} {}", node.node, command.id),
                        what: format!("executes {}, which is no work", command.task),
                    })?;
                    executed.entry(op).or_default().push((node.node, chunk));
                }
            }
        }
        for (op, task, _) in self.truth.tasks() {
            let chunks = executed.get(&op).map_or(&[][..], Vec::as_slice);
            let expected = expected_executions(&task.kind, self.nodes.len());
            check_chunks(op, &expected, chunks)?;
            check_granules(op, &task.kind, chunks)?;
        }
        Ok(())
    }

    /// Of all collectives, each node has those that it is a member of, in the same order, each for a
    /// forward. Each element is provided by one node, and is one of those that are forwarded.
    fn check_collectives(&self) -> Result<(), Violation> {
        let collectives = |node: &CommandTrace| -> Vec<_> {
            let commands = node.commands.iter();
            let collective = |command: &Command| match &command.kind {
                CommandKind::Collective { transfer, collective } => {
                    Some((command.task, *transfer, collective.clone()))
                }
                _ => None,
            };
            commands.filter_map(collective).collect()
        };
        let [first, ..] = self.nodes else { return Ok(()) };
        let all: BTreeMap<TaskId, _> = self
            .nodes
            .iter()
            .flat_map(|node| collectives(node).into_iter().map(|one| (one.0, one)))
            .collect();
        let expected: Vec<_> = all.into_values().collect();
        let malformed = |node: &CommandTrace, what: String| {
            Err(Violation::Malformed { node: node.node.to_string(), what })
        };
        for node in self.nodes {
            let is_member = |(_, _, one): &&(TaskId, TransferId, Arc<Collective>)| {
                one.members.iter(self.nodes.len()).any(|member| member == node.node)
            };
            if !collectives(node).iter().eq(expected.iter().filter(is_member)) {
                return malformed(node, "has other collectives than it is a member of".to_owned());
            }
        }
        for (task, transfer, collective) in expected {
            let forward = &self.tasks.tasks[usize::try_from(task.index()).expect("small")];
            let named = forward.buffer_accesses().any(|access| access.buffer == transfer.buffer);
            if forward.work != Work::Forward || transfer.consumer != task || !named {
                return malformed(first, format!("has the collective {transfer} for {forward}"));
            }
            let mut missing = self.slots(transfer.buffer, &collective.region);
            for node in self.nodes {
                let ends = self.exchange(transfer.buffer, &collective, node.node);
                if let Some(slot) = ends.provided.iter().find(|&slot| !missing.remove(slot)) {
                    let what = format!("provides element {slot} of {transfer}, as another node");
                    return malformed(node, what);
                }
            }
            if let Some(slot) = missing.first() {
                return malformed(first, format!("element {slot} of {transfer} has no provider"));
            }
        }
        Ok(())
    }

    /// What all nodes push for a transfer is what its receiver awaits.
    fn check_transfers(&self) -> Result<(), Violation> {
        let (mut pushed, mut awaited) = (Parcels::default(), Parcels::default());
        for node in self.nodes {
            for command in &node.commands {
                match &command.kind {
                    CommandKind::Push { transfer, targets } => {
                        for (to, region) in targets {
                            let slots = self.slots(transfer.buffer, region);
                            pushed.add(*transfer, *to, &slots, "pushed")?;
                        }
                    }
                    CommandKind::AwaitPush { transfer, region } => {
                        let slots = self.slots(transfer.buffer, region);
                        awaited.add(*transfer, node.node, &slots, "awaited")?;
                    }
                    _ => {}
                }
            }
        }
        pushed.check_equal(&awaited)
    }
}

fn synchronizes(command: &Command) -> bool {
    matches!(command.kind, CommandKind::Horizon | CommandKind::Epoch(_))
}

fn check_single_writer(
    push: usize,
    dag: &Dag,
    ledgers: &[Ledger],
    touch: &Touch,
) -> Result<(), Violation> {
    let ledger = &ledgers[buffer_slot(touch.buffer)];
    let writers: BTreeSet<Option<usize>> =
        touch.slots.iter().map(|&slot| ledger.writer(slot)).collect();
    let mut distinct = writers.into_iter();
    let (Some(first), Some(second)) = (distinct.next(), distinct.next()) else { return Ok(()) };
    // Writers before a horizon may have been merged into it.
    let synchronized = |writer: Option<usize>| {
        writer.is_none_or(|writer| dag.edges(push).any(|(on, _)| on > writer))
    };
    if synchronized(first) {
        return Ok(());
    }
    let name = |writer: Option<usize>| writer.map_or_else(|| "nobody".into(), |w| dag.describe(w));
    Err(Violation::MixedWriters {
        push: dag.describe(push),
        first: name(first),
        second: name(second),
    })
}

fn record(ledgers: &mut [Ledger], position: usize, touch: &Touch) -> Needs {
    let mut needs = Needs::default();
    let ledger = &mut ledgers[buffer_slot(touch.buffer)];
    for &slot in &touch.slots {
        if touch.reads {
            ledger.read(position, slot, &mut needs);
        }
        if touch.writes {
            ledger.write(position, slot, &mut needs);
        }
    }
    needs
}

/// Executes commands on versions instead of data.
struct Simulation<'a> {
    cluster: Cluster<'a>,
    dags: &'a [Dag],
    /// By node, buffer and slot.
    versions: Vec<Vec<Vec<Provenance>>>,
    /// What has been pushed and not been received.
    wire: BTreeMap<(TransferId, NodeId), BTreeMap<usize, Provenance>>,
    /// By node: collectives that wait for nothing on it, and how many of them all before which do
    /// so, too. These have begun: nodes begin collectives in order.
    collectives: Vec<(BTreeSet<TransferId>, usize)>,
}

impl<'a> Simulation<'a> {
    fn new(cluster: Cluster<'a>, dags: &'a [Dag]) -> Self {
        let versions = vec![cluster.truth.at_start(); cluster.nodes.len()];
        let collectives = vec![Default::default(); cluster.nodes.len()];
        Self { cluster, dags, versions, wire: BTreeMap::new(), collectives }
    }

    /// The collectives of one node, in order.
    fn collectives_of(&self, node: usize) -> impl Iterator<Item = (TransferId, &Arc<Collective>)> {
        self.cluster.nodes[node].commands.iter().filter_map(|command| match &command.kind {
            CommandKind::Collective { transfer, collective } => Some((*transfer, collective)),
            _ => None,
        })
    }

    /// Begins the collectives of a node that may begin: what it provides is on its way to all.
    fn begin_collectives(&mut self, node: usize) {
        let mut begun = Vec::new();
        let (free, count) = &self.collectives[node];
        let next = self.collectives_of(node).skip(*count);
        begun.extend(
            next.take_while(|(transfer, _)| free.contains(transfer))
                .map(|(transfer, collective)| (transfer, collective.clone())),
        );
        self.collectives[node].1 += begun.len();
        for (transfer, collective) in begun {
            let from = self.cluster.nodes[node].node;
            let given = self.cluster.exchange(transfer.buffer, &collective, from).provided;
            let versions = &self.versions[node][buffer_slot(transfer.buffer)];
            for other in self.cluster.nodes.iter().filter(|other| other.node != from) {
                let taken = self.cluster.exchange(transfer.buffer, &collective, other.node);
                let parcel = self.wire.entry((transfer, other.node)).or_default();
                let moved = given.intersection(&taken.arriving);
                parcel.extend(moved.map(|&slot| (slot, versions[slot])));
            }
        }
    }

    /// Whether all members have begun a collective.
    fn has_come(&self, transfer: TransferId, collective: &Collective) -> bool {
        let is_member = |node: &usize| collective.members.contains(self.cluster.nodes[*node].node);
        (0..self.cluster.nodes.len()).filter(is_member).all(|node| {
            let mut begun = self.collectives_of(node).take(self.collectives[node].1);
            begun.any(|(one, _)| one == transfer)
        })
    }

    /// Takes what a collective brings, and looks at what the node has provided: that must have
    /// been the truth, and be so still.
    fn exchange(
        &mut self,
        node: usize,
        step: usize,
        transfer: TransferId,
        collective: &Collective,
    ) -> Result<(), Violation> {
        let to = self.cluster.nodes[node].node;
        let ends = self.cluster.exchange(transfer.buffer, collective, to);
        let mut parcel = self.wire.remove(&(transfer, to)).unwrap_or_default();
        let versions = &mut self.versions[node][buffer_slot(transfer.buffer)];
        for &slot in &ends.arriving {
            versions[slot] = parcel.remove(&slot).unwrap_or(Provenance::Undefined);
        }
        let Some(consumer) = self.cluster.tasks.consumer(transfer.consumer) else { return Ok(()) };
        for slot in ends.provided.into_iter().chain(ends.arriving) {
            let expected = self.cluster.truth.before(consumer, transfer.buffer, slot);
            let found = versions[slot];
            if found != expected {
                let place = self.cluster.truth.place(transfer.buffer, slot);
                let reader = self.dags[node].describe(step);
                return Err(Violation::Stale { reader, place, expected, found });
            }
        }
        Ok(())
    }

    fn push(&mut self, node: usize, transfer: TransferId, to: NodeId, region: &Region) {
        let versions = &self.versions[node][buffer_slot(transfer.buffer)];
        let parcel = self.wire.entry((transfer, to)).or_default();
        for slot in self.cluster.slots(transfer.buffer, region) {
            parcel.insert(slot, versions[slot]);
        }
    }

    fn receive(
        &mut self,
        node: usize,
        step: usize,
        transfer: TransferId,
        region: &Region,
    ) -> Result<(), Violation> {
        let to = self.cluster.nodes[node].node;
        let versions = &mut self.versions[node][buffer_slot(transfer.buffer)];
        let parcel = self.wire.entry((transfer, to)).or_default();
        for slot in self.cluster.slots(transfer.buffer, region) {
            let version = parcel.remove(&slot).unwrap_or(Provenance::Undefined);
            if versions[slot] == version {
                let place = self.cluster.truth.place(transfer.buffer, slot);
                let mover = self.dags[node].describe(step);
                return Err(Violation::Redundant { mover, place, version });
            }
            versions[slot] = version;
        }
        Ok(())
    }

    fn run_chunk(&mut self, node: usize, step: usize, op: usize) -> Result<(), Violation> {
        let trace = &self.cluster.nodes[node];
        let touches = self.cluster.touches(trace.node, &trace.commands[step]);
        for Touch { buffer, slots, reads, .. } in &touches {
            for &slot in slots.iter().filter(|_| *reads) {
                let found = self.versions[node][buffer_slot(*buffer)][slot];
                let expected = self.cluster.truth.before(op, *buffer, slot);
                if found != expected {
                    let place = self.cluster.truth.place(*buffer, slot);
                    let reader = self.dags[node].describe(step);
                    return Err(Violation::Stale { reader, place, expected, found });
                }
            }
        }
        for Touch { buffer, slots, writes, .. } in touches {
            for slot in slots.into_iter().filter(|_| writes) {
                self.versions[node][buffer_slot(buffer)][slot] = Provenance::Op(op);
            }
        }
        Ok(())
    }
}

impl Machine for Simulation<'_> {
    fn is_ready(&self, node: usize, step: usize) -> bool {
        let trace = &self.cluster.nodes[node];
        match &trace.commands[step].kind {
            CommandKind::AwaitPush { transfer, region } => {
                let parcel = self.wire.get(&(*transfer, trace.node));
                self.cluster
                    .slots(transfer.buffer, region)
                    .iter()
                    .all(|slot| parcel.is_some_and(|parcel| parcel.contains_key(slot)))
            }
            CommandKind::Collective { transfer, collective } => {
                self.has_come(*transfer, collective)
            }
            _ => true,
        }
    }

    fn enable(&mut self, node: usize, step: usize) {
        let command = &self.cluster.nodes[node].commands[step];
        if let CommandKind::Collective { transfer, .. } = &command.kind {
            self.collectives[node].0.insert(*transfer);
            self.begin_collectives(node);
        }
    }

    fn execute(&mut self, node: usize, step: usize) -> Result<(), Violation> {
        let command = &self.cluster.nodes[node].commands[step];
        match &command.kind {
            CommandKind::Execute { .. } => match self.cluster.tasks.op(command.task) {
                Some(op) => self.run_chunk(node, step, op),
                None => Ok(()),
            },
            CommandKind::Push { transfer, targets } => {
                targets.iter().for_each(|(to, region)| self.push(node, *transfer, *to, region));
                Ok(())
            }
            CommandKind::AwaitPush { transfer, region } => {
                self.receive(node, step, *transfer, region)
            }
            CommandKind::Collective { transfer, collective } => {
                self.exchange(node, step, *transfer, collective)
            }
            CommandKind::Horizon | CommandKind::Epoch(_) => Ok(()),
        }
    }
}
