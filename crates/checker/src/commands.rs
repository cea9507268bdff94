//! The rules of one node's command graph: what it runs, pushes and awaits, and
//! that it holds what it passes on.

use std::fmt;

use celerity_cdag::{Command, CommandKind, NodeId, TransferId};
use celerity_regions::{Box3, Region};
use celerity_tdag::{IndexSpace, Work};
use smallvec::SmallVec;

use crate::batch::{Owed, TaskCheck};
use crate::buffers::{Buffers, TrackedBuffer};
use crate::geometry::{Boxes, difference, holds, overlap};
use crate::groups::Groups;
use crate::image::image;
use crate::ledger::{AbstractValues, Clash};
use crate::objects::ObjectHistory;
use crate::outline::Moved;
use crate::roots::Roots;
use crate::violation::{AbstractValue, Check, Vertex, Violation, Waste};
use crate::window::{GraphOfNode, NodeShape, RecentNodes};

/// One node's commands.
#[derive(Clone, Debug)]
pub(crate) struct Commands {
    pub(crate) node: NodeId,
    pub(crate) nodes: usize,
    pub(crate) window: RecentNodes<CommandSketch>,
    groups: Groups,
    pub(crate) objects: ObjectHistory,
    pub(crate) roots: Roots,
    pub(crate) waste: Waste,
}

/// Enough of a command to draw it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CommandSketch {
    Execute(Box3),
    Push(TransferId),
    AwaitPush(TransferId),
    Collective(TransferId),
    Horizon,
    Epoch,
}

impl fmt::Display for CommandSketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Execute(chunk) => write!(f, "execute {chunk}"),
            Self::Push(transfer) => write!(f, "push {transfer}"),
            Self::AwaitPush(transfer) => write!(f, "await push {transfer}"),
            Self::Collective(transfer) => write!(f, "collective {transfer}"),
            Self::Horizon => f.write_str("horizon"),
            Self::Epoch => f.write_str("epoch"),
        }
    }
}

impl Commands {
    pub(crate) fn new(node: NodeId, nodes: usize, tracks_order: bool) -> Self {
        let window = RecentNodes::new(GraphOfNode::Commands(node), tracks_order);
        let (groups, objects, roots) =
            (Groups::default(), ObjectHistory::default(), Roots::default());
        Self { node, nodes, window, groups, objects, roots, waste: Waste::new() }
    }

    /// Checks one command of the task in hand.
    pub(crate) fn check(
        &mut self,
        buffers: &mut Buffers,
        batch: &mut TaskCheck<'_>,
        command: &Command,
    ) -> Check {
        let me = command.id.index();
        let vertex = self.window.vertex(me);
        let edges = command.dependencies.iter().map(|dep| dep.on.index()).collect();
        let (role, label) = describe(&command.kind);
        self.window.push(me, edges, role, label)?;
        if command.task != batch.task.id {
            let (found, task) = (command.task, batch.task.id);
            return Err(Violation::WrongTask { vertex, found, task }.into());
        }
        match &command.kind {
            CommandKind::Execute { chunk } => {
                let conflicts = command.conflicts.as_slice().iter();
                let conflicts: SmallVec<[u64; 4]> = conflicts.map(|with| with.index()).collect();
                self.objects.check(&self.window, me, batch.task, &conflicts)?;
                self.execute(buffers, batch, me, *chunk)
            }
            CommandKind::Push { transfer, targets } => {
                check_transfer(batch, vertex, *transfer)?;
                self.check_targets(vertex, *transfer, targets)?;
                self.push(buffers, batch, me, *transfer, targets)
            }
            CommandKind::AwaitPush { transfer, region } => {
                check_transfer(batch, vertex, *transfer)?;
                self.await_push(buffers, batch, me, *transfer, region)
            }
            CommandKind::Collective { transfer, collective } => {
                self.collective(buffers, batch, me, *transfer, collective)
            }
            CommandKind::Horizon => synchronize(batch, vertex, batch.task.work == Work::Horizon),
            CommandKind::Epoch(action) => {
                synchronize(batch, vertex, batch.task.work == Work::Epoch(*action))
            }
        }
    }

    /// Checks that nothing is missing once all commands have been seen.
    pub(crate) fn finish(&self, batch: &TaskCheck<'_>) -> Check {
        let (node, task) = (self.node, batch.task.id);
        let missing = |what| Err(Violation::Missing { node, task, what }.into());
        match &batch.task.work {
            Work::Horizon | Work::Epoch(_) if !batch.synchronized[0] => missing("command"),
            Work::HostOnce { node: on } if self.is_named(*on) && !batch.executed => {
                missing("execute command")
            }
            Work::Fence | Work::Combine { .. } if !batch.executed => missing("execute command"),
            // With several nodes, this is for the cluster to say.
            Work::Device(space) | Work::HostSplit { space, .. } if self.nodes == 1 => {
                let run: Boxes = batch.chunk.into_iter().collect();
                match difference(&[space.extent], &run).first() {
                    Some(&part) => {
                        let among = node.to_string();
                        Err(Violation::ItemsNever { among, task, part }.into())
                    }
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn execute(
        &mut self,
        buffers: &mut Buffers,
        batch: &mut TaskCheck<'_>,
        me: u64,
        chunk: Box3,
    ) -> Check {
        let vertex = self.window.vertex(me);
        self.check_chunk(batch, vertex, chunk)?;
        batch.executed = true;
        batch.outline.chunk = Some(chunk);
        self.groups.check(&self.window, batch.task.work.group(), me)?;
        let global = batch.task.work.extent();
        for access in batch.task.buffer_accesses() {
            let buffer = buffers.get_mut(vertex, access.buffer)?;
            let parts = image(&access.mapper, chunk, global, buffer.info.extent);
            if matches!(batch.task.work, Work::Combine { .. }) {
                self.roots.check(vertex, &parts, buffer)?;
            }
            self.roots.note(&batch.task.work, access, &parts, buffer);
            // Parts may overlap: none is written before all are read.
            if access.mode.reads() {
                parts.iter().try_for_each(|part| self.read_current(buffer, me, part))?;
            }
            if access.mode.writes() {
                for part in parts {
                    self.write(buffer, me, &part, &[(part, AbstractValue::Task(batch.task.id))])?;
                }
            }
        }
        Ok(())
    }

    /// Whether a task that names a node names this one.
    fn is_named(&self, node: u64) -> bool {
        node % self.nodes as u64 == self.node.index()
    }

    /// One chunk per node and task, where such a task runs, along granules.
    fn check_chunk(&self, batch: &TaskCheck<'_>, vertex: Vertex, chunk: Box3) -> Check {
        let uncalled = |why| Err(Violation::Uncalled { vertex, why }.into());
        if batch.executed {
            return uncalled("a node runs one chunk of a task");
        }
        match &batch.task.work {
            Work::Device(space) | Work::HostSplit { space, .. } => {
                check_chunk_of(batch, vertex, space, chunk)
            }
            Work::HostOnce { node } if !self.is_named(*node) => {
                uncalled("a host task runs on the node that it names")
            }
            Work::HostOnce { .. } | Work::Fence | Work::Combine { .. } if chunk != Box3::UNIT => {
                uncalled("host tasks that run once, fences, and what combines have one item")
            }
            Work::HostOnce { .. } | Work::Fence | Work::Combine { .. } => Ok(()),
            Work::Forward => uncalled("a forward executes nothing"),
            Work::Horizon | Work::Epoch(_) => uncalled("synchronisation runs nothing"),
        }
    }

    fn check_targets(
        &self,
        push: Vertex,
        transfer: TransferId,
        targets: &[(NodeId, Region)],
    ) -> Check {
        let bad = |to, why| Err(Violation::BadTarget { push, transfer, to, why }.into());
        if targets.is_empty() {
            return bad(None, "there is no target");
        }
        for (position, (to, region)) in targets.iter().enumerate() {
            if *to == self.node {
                return bad(Some(*to), "that is the node itself");
            }
            if to.index() >= self.nodes as u64 {
                return bad(Some(*to), "there is no such node");
            }
            if region.boxes().is_empty() {
                return bad(Some(*to), "there is nothing in it");
            }
            if targets[..position].iter().any(|(other, _)| other == to) {
                return bad(Some(*to), "it is a target twice");
            }
        }
        Ok(())
    }

    fn push(
        &mut self,
        buffers: &mut Buffers,
        batch: &mut TaskCheck<'_>,
        me: u64,
        transfer: TransferId,
        targets: &[(NodeId, Region)],
    ) -> Check {
        let vertex = self.window.vertex(me);
        let buffer = buffers.get_mut(vertex, transfer.buffer)?;
        let mut writer = None;
        for (to, region) in targets {
            check_inside(buffer, vertex, region.boxes())?;
            for part in region.boxes() {
                self.check_single_writer(buffer, vertex, part, &mut writer)?;
                self.read_current(buffer, me, part)?;
            }
            let boxes = region.boxes().to_vec();
            batch.outline.pushes.push(Moved { vertex, transfer, to: *to, boxes });
        }
        Ok(())
    }

    /// All that a push sends has one writer, or writers that the
    /// synchronisation point stands in for.
    fn check_single_writer(
        &self,
        buffer: &TrackedBuffer,
        push: Vertex,
        part: &Box3,
        writer: &mut Option<u64>,
    ) -> Check {
        if self.window.order().is_none() {
            return Ok(());
        }
        let point = self.window.point();
        buffer.held.visit(part, |part, cell| {
            let second = cell.writer.unwrap_or(point).max(point);
            let first = *writer.get_or_insert(second);
            if first == second {
                return Ok(());
            }
            let [first, second] = [first, second].map(|index| self.window.vertex(index));
            let place = buffer.place(part);
            Err(Violation::MixedWriters { push, first, second, place }.into())
        })
    }

    /// Awaited is what the node's chunk reads and the node does not have.
    fn await_push(
        &mut self,
        buffers: &mut Buffers,
        batch: &mut TaskCheck<'_>,
        me: u64,
        transfer: TransferId,
        region: &Region,
    ) -> Check {
        let vertex = self.window.vertex(me);
        let buffer = buffers.get_mut(vertex, transfer.buffer)?;
        check_inside(buffer, vertex, region.boxes())?;
        let reads = batch.reads(transfer.buffer, buffer.info.extent);
        if let Some(part) = difference(region.boxes(), &reads).first() {
            let (place, why) = (buffer.place(*part), "its chunk does not read");
            return Err(Violation::Unneeded { vertex, place, why }.into());
        }
        for part in region.boxes() {
            let mut arriving = AbstractValues::new();
            if self.window.order().is_some() {
                buffer.held.compare(&buffer.truth, part, |part, cell, version| {
                    arriving.push((part, version));
                    check_news(buffer, vertex, part, cell.version, version, &self.waste)
                })?;
            }
            self.write(buffer, me, part, &arriving)?;
        }
        let rest = Boxes::from_slice(region.boxes());
        batch.awaited.push(Owed { by: vertex, transfer, rest, target: None });
        let boxes = region.boxes().to_vec();
        batch.outline.awaits.push(Moved { vertex, transfer, to: self.node, boxes });
        Ok(())
    }

    /// The node holds the sequential version, and the command waits for it.
    pub(crate) fn read_current(&self, buffer: &mut TrackedBuffer, me: u64, part: &Box3) -> Check {
        let Some(order) = self.window.order() else { return Ok(()) };
        buffer.held.compare(&buffer.truth, part, |part, cell, expected| {
            if cell.version == expected {
                return Ok(());
            }
            let reader = self.window.vertex(me);
            let writer = cell.writer.map(|index| self.window.vertex(index));
            let (place, found) = (buffer.place(part), cell.version);
            Err(Box::new(Violation::Stale { reader, place, expected, found, writer }))
        })?;
        let read = buffer.held.read(order, me, part);
        read.map_err(|clash| self.unordered(buffer, me, clash))
    }

    /// The command may overwrite what the node holds, and has brought these versions.
    pub(crate) fn write(
        &self,
        buffer: &mut TrackedBuffer,
        me: u64,
        part: &Box3,
        versions: &[(Box3, AbstractValue)],
    ) -> Check {
        let Some(order) = self.window.order() else { return Ok(()) };
        let checked = buffer.held.check_write(order, me, part);
        checked.map_err(|clash| self.unordered(buffer, me, clash))?;
        versions.iter().for_each(|(part, version)| buffer.held.write(me, part, *version));
        Ok(())
    }

    fn unordered(&self, buffer: &TrackedBuffer, me: u64, clash: Clash) -> Box<Violation> {
        let Clash { earlier, hazard, part } = clash;
        let [later, earlier] = [me, earlier].map(|index| self.window.vertex(index));
        Box::new(Violation::Unordered { later, earlier, hazard, place: buffer.place(part) })
    }
}

fn describe(kind: &CommandKind) -> (NodeShape, CommandSketch) {
    match kind {
        CommandKind::Execute { chunk } => (NodeShape::Work, CommandSketch::Execute(*chunk)),
        CommandKind::Push { transfer, .. } => (NodeShape::Work, CommandSketch::Push(*transfer)),
        CommandKind::AwaitPush { transfer, .. } => {
            (NodeShape::Work, CommandSketch::AwaitPush(*transfer))
        }
        CommandKind::Collective { transfer, .. } => {
            (NodeShape::Work, CommandSketch::Collective(*transfer))
        }
        CommandKind::Horizon => (NodeShape::Horizon, CommandSketch::Horizon),
        CommandKind::Epoch(_) => (NodeShape::Epoch, CommandSketch::Epoch),
    }
}

/// A transfer is made for the task in hand, and for a buffer that it reads.
pub(crate) fn check_transfer(batch: &TaskCheck<'_>, vertex: Vertex, transfer: TransferId) -> Check {
    let task = batch.task.id;
    if transfer.consumer != task {
        return Err(Violation::WrongTask { vertex, found: transfer.consumer, task }.into());
    }
    match batch.is_reader(transfer.buffer) {
        true => Ok(()),
        false => Err(Violation::UnreadTransfer { vertex, transfer, task }.into()),
    }
}

/// A chunk lies in what is there and ends at multiples of the granularity,
/// counted from the origin of the index space, or where that ends.
pub(crate) fn check_chunk_of(
    batch: &TaskCheck<'_>,
    vertex: Vertex,
    space: &IndexSpace,
    chunk: Box3,
) -> Check {
    let whole = space.extent;
    if chunk.is_empty() || !holds(&whole, &chunk) {
        return Err(Violation::ItemsTwice { vertex, task: batch.task.id, part: chunk }.into());
    }
    let granularity = space.granularity;
    let on_border = |dim: usize, at: u64| {
        (at - whole.min()[dim]).is_multiple_of(granularity[dim]) || at == whole.max()[dim]
    };
    let fits = |dim| on_border(dim, chunk.min()[dim]) && on_border(dim, chunk.max()[dim]);
    match (0..3).all(fits) {
        true => Ok(()),
        false => {
            Err(Violation::AgainstGranularity { vertex, chunk, space: whole, granularity }.into())
        }
    }
}

/// Elements lie in their buffer, and each is named once.
pub(crate) fn check_inside(buffer: &TrackedBuffer, vertex: Vertex, boxes: &[Box3]) -> Check {
    let extent = buffer.info.extent;
    for (position, part) in boxes.iter().enumerate() {
        if !holds(&extent, part) {
            let place = buffer.place(*part);
            return Err(Violation::OutOfBounds { vertex, place, extent }.into());
        }
        if let Some(twice) = boxes[..position].iter().find_map(|other| overlap(other, part)) {
            let (place, why) = (buffer.place(twice), "its region names twice");
            return Err(Violation::Unneeded { vertex, place, why }.into());
        }
    }
    Ok(())
}

fn check_news(
    buffer: &TrackedBuffer,
    mover: Vertex,
    part: Box3,
    found: AbstractValue,
    brought: AbstractValue,
    waste: &Waste,
) -> Check {
    match found == brought {
        true => {
            let (place, version) = (buffer.place(part), brought);
            Violation::Redundant { mover, place, version }.note(waste)
        }
        false => Ok(()),
    }
}

fn synchronize(batch: &mut TaskCheck<'_>, vertex: Vertex, fits: bool) -> Check {
    if !fits || std::mem::replace(&mut batch.synchronized[0], true) {
        let why = "the task in hand is no such synchronisation, or has been reached";
        return Err(Violation::Uncalled { vertex, why }.into());
    }
    Ok(())
}
