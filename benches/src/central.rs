//! A central scheduler: one machine generates the commands of all nodes, as the
//! master of the earlier master/worker design did (CCGrid 2023, §IV-B, fig. 1). It is
//! here to be compared with `celerity-cdag`, where each node generates its own.
//!
//! What it is: the centralised algorithm of the paper with the means of this
//! workspace. One region map per buffer says for every element who wrote it and
//! which nodes have a copy. Splits are remembered, a task's copies are noted
//! once per region and not once per receiver, and commands are the same plain
//! data as those of the distributed generator, one push per sender.
//!
//! What it is not: complete. It neither orders the commands of one node nor
//! sends them anywhere; a worker would have to find dependencies, and all
//! instructions, for itself. So it does *less* than a real master, and what it
//! costs is a lower bound. It is not collective-aware either: a push names each
//! receiver, since each has to be told. That makes the output of an all-gather
//! on N nodes N·(N-1) targets, whatever is done to the algorithm.

mod spread;

use std::sync::Arc;

use celerity_cdag::{CommandKind, NodeId, TransferId};
use celerity_regions::{Box3, Region, RegionMap};
use celerity_tdag::{
    Access, BufferAccess, BufferId, BufferInfo, BufferTable, IndexSpace, MapperInput, Task,
    TaskGraphConfig, TaskId, Work,
};
use smallvec::SmallVec;

use crate::task_source::TaskSource;
use crate::topologies::Sink;
use spread::{NodeSet, Spread};

/// A command of any node of the cluster.
#[derive(Clone, Debug)]
pub struct NodeCommand {
    /// The node that it is for.
    pub node: NodeId,
    /// The task that it serves.
    pub task: TaskId,
    /// What is done.
    pub kind: CommandKind,
}

/// Who gets which part of a buffer.
type Targets = SmallVec<[(NodeId, Region); 2]>;

/// Generates the commands of all nodes.
///
/// Cost per task: O(nodes) mapper evaluations and map look-ups, plus the entries
/// found. For an all-gather on N nodes each of N chunks finds N entries: O(N²).
#[derive(Debug)]
pub struct CentralScheduler {
    nodes: usize,
    buffers: BufferTable<RegionMap<Spread>>,
    /// The latest splits: programs repeat few index spaces.
    splits: Vec<(IndexSpace, Arc<[Box3]>)>,
    /// By sender, for the buffer that is being looked at; empty between buffers.
    owed: Vec<Targets>,
    /// What the chunk that is being looked at lacks; empty between chunks.
    missing: Vec<Box3>,
}

/// Splits to remember, as many as the distributed generator does.
const REMEMBERED: usize = 4;

impl CentralScheduler {
    /// A scheduler for a cluster of so many nodes, at least 1.
    #[must_use]
    pub fn new(nodes: usize) -> Self {
        let owed = vec![Targets::new(); nodes];
        let (buffers, splits, missing) = (BufferTable::default(), Vec::new(), Vec::new());
        Self { nodes, buffers, splits, owed, missing }
    }

    /// Makes a buffer known. Its initial contents are on all nodes.
    pub fn register_buffer(&mut self, info: &BufferInfo) {
        self.buffers.insert(info.id, RegionMap::new(info.extent, Spread::everywhere()));
    }

    /// Appends the commands of all nodes for `task` to `out`.
    ///
    /// # Panics
    /// If the task names a buffer that is not registered.
    pub fn schedule(&mut self, task: &Task, out: &mut Vec<NodeCommand>) {
        match &task.work {
            Work::Device(space) | Work::HostSplit { space, .. } => {
                let chunks = self.split(space);
                self.execution(task, &chunks, out);
            }
            Work::HostOnce { .. } => self.execution(task, &[Box3::UNIT], out),
            Work::Fence | Work::Combine { .. } => {
                self.execution(task, &vec![Box3::UNIT; self.nodes], out)
            }
            Work::Forward => {}
            Work::Horizon => self.on_all_nodes(task, &CommandKind::Horizon, out),
            Work::Epoch(action) => self.on_all_nodes(task, &CommandKind::Epoch(*action), out),
        }
    }

    fn split(&mut self, space: &IndexSpace) -> Arc<[Box3]> {
        if let Some((_, chunks)) = self.splits.iter().find(|(known, _)| known == space) {
            return chunks.clone();
        }
        if self.splits.len() == REMEMBERED {
            self.splits.remove(0);
        }
        let chunks: Arc<[Box3]> = space.split(&space.extent, self.nodes).iter().collect();
        self.splits.push((*space, chunks.clone()));
        chunks
    }

    fn execution(&mut self, task: &Task, chunks: &[Box3], out: &mut Vec<NodeCommand>) {
        for buffer in buffers_of(task) {
            self.transfers(task, buffer, chunks, out);
        }
        for (node, &chunk) in by_node(chunks) {
            out.push(NodeCommand { node, task: task.id, kind: CommandKind::Execute { chunk } });
        }
        for access in task.buffer_accesses().filter(|access| access.mode.writes()) {
            let map = buffer_mut(&mut self.buffers, access.buffer);
            let all = image(access, task, task.work.extent(), map.extent());
            if all.contains_box(&map.extent()) {
                // Entries in ascending order into an empty map: nothing has to make room.
                *map = RegionMap::new(map.extent(), Spread::everywhere());
            }
            for (node, &chunk) in by_node(chunks) {
                map.update(&image(access, task, chunk, map.extent()), Spread::only_on(node));
            }
        }
    }

    /// Pushes and await-pushes for what chunks read of one buffer and their
    /// nodes lack.
    fn transfers(
        &mut self,
        task: &Task,
        buffer: BufferId,
        chunks: &[Box3],
        out: &mut Vec<NodeCommand>,
    ) {
        let map = buffer_mut(&mut self.buffers, buffer);
        let transfer = TransferId { consumer: task.id, buffer };
        for (node, &chunk) in by_node(chunks) {
            map.for_each_in_region(&reads(task, buffer, chunk, map.extent()), |part, spread| {
                if let Some(sender) = spread.sender_to(node) {
                    self.missing.push(part);
                    add(&mut self.owed[sender.slot()], node, part);
                }
            });
            if !self.missing.is_empty() {
                let region = Region::from_boxes(self.missing.drain(..));
                let kind = CommandKind::AwaitPush { transfer, region };
                out.push(NodeCommand { node, task: task.id, kind });
            }
        }
        for (node, owed) in by_node(&mut self.owed).filter(|(_, owed)| !owed.is_empty()) {
            let targets = std::mem::take(owed);
            note_copies(map, &targets);
            let kind = CommandKind::Push { transfer, targets };
            out.push(NodeCommand { node, task: task.id, kind });
        }
    }

    fn on_all_nodes(&self, task: &Task, kind: &CommandKind, out: &mut Vec<NodeCommand>) {
        out.extend((0..self.nodes as u64).map(|node| {
            let node = NodeId::from_index(node);
            NodeCommand { node, task: task.id, kind: kind.clone() }
        }));
    }
}

/// The buffers of a task, each once.
fn buffers_of(task: &Task) -> SmallVec<[BufferId; 4]> {
    let mut buffers = SmallVec::new();
    for access in task.buffer_accesses() {
        if !buffers.contains(&access.buffer) {
            buffers.push(access.buffer);
        }
    }
    buffers
}

/// What a chunk reads of a buffer.
fn reads(task: &Task, buffer: BufferId, chunk: Box3, extent: Box3) -> Region {
    let reading = |access: &&BufferAccess| access.buffer == buffer && access.mode.reads();
    let mut images =
        task.buffer_accesses().filter(reading).map(|access| image(access, task, chunk, extent));
    let first = images.next().unwrap_or_else(Region::empty);
    images.fold(first, |reads, image| reads.union(&image))
}

fn image(access: &BufferAccess, task: &Task, chunk: Box3, buffer: Box3) -> Region {
    access.mapper.map(&MapperInput { chunk, global: task.work.extent(), buffer })
}

/// Adds `part` for `node`; nodes come in ascending order.
fn add(targets: &mut Targets, node: NodeId, part: Box3) {
    match targets.last_mut() {
        Some((last, region)) if *last == node => region.union_box(&part),
        _ => targets.push((node, part.into())),
    }
}

/// Neighbouring targets of the same region together: an all-gather notes the
/// copies of a region once, not once per receiver.
fn note_copies(map: &mut RegionMap<Spread>, targets: &[(NodeId, Region)]) {
    for run in targets.chunk_by(|(_, a), (_, b)| a == b) {
        let mut receivers = NodeSet::default();
        run.iter().for_each(|(node, _)| receivers.insert(*node));
        map.modify(&run[0].1, |spread| spread.with_copies(&receivers));
    }
}

fn by_node<T>(values: impl IntoIterator<Item = T>) -> impl Iterator<Item = (NodeId, T)> {
    values.into_iter().enumerate().map(|(slot, value)| (NodeId::from_index(slot as u64), value))
}

fn buffer_mut(
    buffers: &mut BufferTable<RegionMap<Spread>>,
    id: BufferId,
) -> &mut RegionMap<Spread> {
    buffers.get_mut(id).unwrap_or_else(|| panic!("{id} is not registered"))
}

/// The task graph with a [`CentralScheduler`] behind it. Commands are dropped as
/// soon as they have been generated, as if they had been sent to their nodes.
#[derive(Debug)]
pub struct CentralPipeline {
    source: TaskSource,
    scheduler: CentralScheduler,
    commands: Vec<NodeCommand>,
}

impl CentralPipeline {
    /// The schedulers of a cluster of so many nodes, at least 1.
    #[must_use]
    pub fn new(nodes: usize) -> Self {
        Self {
            source: TaskSource::new(TaskGraphConfig::default()),
            scheduler: CentralScheduler::new(nodes),
            commands: Vec::new(),
        }
    }
}

impl Sink for CentralPipeline {
    fn nodes(&self) -> usize {
        self.scheduler.nodes
    }

    fn buffer(&mut self, dims: u8, extent: Box3, host_initialized: bool) -> BufferId {
        let buffer = self.source.buffer(dims, extent, host_initialized);
        self.scheduler.register_buffer(&buffer);
        buffer.id
    }

    fn task(&mut self, dims: u8, extent: Box3, accesses: Vec<Access>) {
        self.source.submit(Work::Device(IndexSpace::new(dims, extent)), accesses);
        for task in self.source.drain() {
            self.scheduler.schedule(&task, &mut self.commands);
        }
        self.commands.clear();
    }
}

#[cfg(test)]
mod tests;
