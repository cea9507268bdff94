//! The command generator: per task, a pipeline of passes
//! `assign → requirements → push → await_push → execute → record`.
//! It runs on every node for itself and talks to nobody.

use std::sync::Arc;

use celerity_regions::{Box3, Region};
use celerity_tdag::{
    BufferAccess, BufferId, BufferInfo, BufferTable, Dependencies, DependencyKind, EpochAction,
    Frontier, StreamHash, Sweep, Task, Work,
};
use smallvec::SmallVec;

use crate::answers::Answers;
use crate::assign::Chunks;
use crate::command::{Command, CommandId, CommandKind, NodeId, TransferId};
use crate::diagnostic::Diagnostic;
use crate::holding::BufferState;
#[cfg(feature = "mutants")]
use crate::mistakes;
use crate::node_set::NodeSet;
use crate::requirements::{Part, Requirement, Requirements, requirements};

/// Parameters of a [`CommandGraph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandGraphConfig {
    /// Nodes in the cluster, at least 1.
    pub nodes: usize,
    /// The node whose commands are generated.
    pub local: NodeId,
}

/// Generates one node's commands from the replicated task graph.
///
/// Commands leave as soon as they are generated; what stays is, per buffer,
/// what this node holds, and the commands since the last applied horizon.
/// Cost per task: a mapper evaluation for each chunk that can read what this
/// node owns, plus the entries touched. So a stencil costs the same on any
/// number of nodes, and an all-gather is linear in the nodes (CCGrid 2023, fig. 1). A
/// mapper of the user's is asked for every chunk, once, unless nothing has ever
/// written what is read through it.
#[derive(Debug)]
pub struct CommandGraph {
    config: CommandGraphConfig,
    buffers: BufferTable<Buffer>,
    frontier: Frontier<CommandId>,
    pending_horizon: Option<CommandId>,
    /// What users' mappers have said so far.
    said: StreamHash,
}

#[derive(Debug)]
struct Buffer {
    name: Arc<str>,
    state: BufferState,
    /// Whether a task has written it, so that nodes may have to exchange parts of it.
    is_written: bool,
}

impl CommandGraph {
    /// A graph without commands.
    ///
    /// # Panics
    /// If there are no nodes, or the local one is not among them.
    #[must_use]
    pub fn new(config: CommandGraphConfig) -> Self {
        assert!(config.local.slot() < config.nodes, "{} is not in the cluster", config.local);
        Self {
            config,
            buffers: BufferTable::default(),
            frontier: Frontier::new(),
            pending_horizon: None,
            said: StreamHash::default(),
        }
    }

    /// A hash of what users' range mappers have said of all chunks so far, as far as nodes
    /// depend on it: the same on all nodes, unless a mapper tells them different things. Then
    /// they may wait for each other without end. 0 with one node.
    #[must_use]
    pub fn answers(&self) -> u64 {
        self.said.value()
    }

    /// Makes a buffer known, or its new name. Buffers come in order of their ids.
    pub fn register_buffer(&mut self, info: &BufferInfo) {
        let name = info.name.clone();
        if let Some(known) = self.buffers.get_mut(info.id) {
            known.name = name;
            return;
        }
        let state = BufferState::new(info.extent, self.frontier.synchronization_point());
        self.buffers.insert(info.id, Buffer { name, state, is_written: false });
    }

    /// Forgets a buffer that no later task names.
    pub fn drop_buffer(&mut self, buffer: BufferId) {
        drop(self.buffers.remove(buffer));
    }

    /// Appends this node's commands for `task` to `out`, in a topological
    /// order, and what is wrong with the task to `diagnostics`.
    ///
    /// # Panics
    /// If the task names a buffer that is not registered.
    pub fn schedule(
        &mut self,
        task: &Task,
        out: &mut Vec<Command>,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        match task.work {
            Work::Horizon => self.horizon(task, out),
            Work::Epoch(action) => self.epoch(task, action, out),
            Work::Device(_) | Work::HostOnce | Work::Fence => {
                self.execution(task, out, diagnostics);
            }
        }
    }

    fn execution(
        &mut self,
        task: &Task,
        out: &mut Vec<Command>,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        let chunks = Chunks::of(&task.work, self.config.nodes);
        let local = chunks.get(self.config.local.slot());
        #[cfg(feature = "mutants")]
        let local = mistakes::own_chunk(local, &chunks, self.config.local);
        let local = part(task, self.config.local, local);
        let (buffers, said) = (&self.buffers, &mut self.said);
        let answers = match self.config.nodes {
            1 => Answers::default(),
            _ => Answers::ask(task, &chunks, |id| exchanged(task, buffers, id), said),
        };
        let mut needs = Requirements::new();
        requirements(task, &answers, &local, |id| buffer(buffers, id).state.extent, &mut needs);
        if chunks.len() > 1 {
            self.check_writes(task, &chunks, &needs, diagnostics);
            self.check_apart(task, (&chunks, &local), &needs, diagnostics);
        }
        if self.config.nodes > 1 {
            needs.iter().filter(|need| need.is_read()).for_each(|need| {
                self.push(task, &chunks, need, out);
                self.await_push(task, need, out);
            });
        }
        let chunk = local.chunk;
        let execute = (!chunk.is_empty()).then(|| self.execute(task, chunk, &needs, out));
        self.record(execute, &needs);
    }

    /// Holds a user's mapper to its promises. Built-in mappers are not looked at.
    fn check_writes(
        &self,
        task: &Task,
        chunks: &Chunks,
        needs: &[Requirement<'_>],
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        for need in needs.iter().filter(|need| need.is_written_on_trust()) {
            let name = || buffer(&self.buffers, need.buffer).name.clone();
            let mut unwritten = need.writes_of_all.difference(&need.writes);
            chunks.for_each_near(&task.work.extent(), |node, chunk| {
                if node == self.config.local {
                    return;
                }
                let writes = need.writes_of(&part(task, node, chunk));
                unwritten.subtract(&writes);
                if writes.intersects(&need.writes) {
                    diagnostics.push(Diagnostic::OverlappingWrites {
                        task: task.to_string(),
                        buffer: name(),
                        region: writes.intersection(&need.writes),
                        first: self.config.local,
                        second: node,
                    });
                }
            });
            if !unwritten.is_empty() {
                diagnostics.push(Diagnostic::UnwrittenElements {
                    task: task.to_string(),
                    buffer: name(),
                    region: unwritten,
                });
            }
        }
    }

    /// The same for its word that one access does not touch what another writes: neither here
    /// and on another node, nor the other way round.
    fn check_apart(
        &self,
        task: &Task,
        (chunks, local): (&Chunks, &Part),
        needs: &[Requirement<'_>],
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        for [(_, one), (_, other)] in task.apart_on_trust() {
            let need = needs.iter().find(|need| need.buffer == one.buffer);
            let need = need.expect("each buffer of a task has an entry");
            for (here, there) in [(one, other), (other, one)] {
                let touched = need.image(here, local);
                chunks.for_each_near(&task.work.extent(), |node, chunk| {
                    if node == self.config.local {
                        return;
                    }
                    let region = touched.intersection(&need.image(there, &part(task, node, chunk)));
                    if !region.is_empty() {
                        diagnostics.push(Diagnostic::SharedElements {
                            task: task.to_string(),
                            buffer: buffer(&self.buffers, need.buffer).name.clone(),
                            region,
                            accesses: [here.to_string(), there.to_string()],
                            nodes: [self.config.local, node],
                        });
                    }
                });
            }
        }
    }

    /// Sends what this node owns and other nodes' chunks read. One command per
    /// original writer, so that each part leaves as soon as it is there.
    fn push(
        &mut self,
        task: &Task,
        chunks: &Chunks,
        need: &Requirement<'_>,
        out: &mut Vec<Command>,
    ) {
        let pushes = self.owed(task, chunks, need);
        for Owed { writer, targets } in pushes {
            #[cfg(feature = "mutants")]
            let writer = celerity_mutants::Mutant::PushNotAfterWriter
                .alter(writer, |_| self.frontier.synchronization_point());
            let mut dependencies = Dependencies::default();
            dependencies.push_new(writer, DependencyKind::True);
            let transfer = TransferId { consumer: task.id, buffer: need.buffer };
            #[cfg(feature = "mutants")]
            let (transfer, targets) = mistakes::pushed(task, transfer, targets);
            let state = &mut buffer_mut(&mut self.buffers, need.buffer).state;
            let id = self.frontier.next_id();
            for (region, nodes) in by_region(&targets) {
                state.replicate(region, &nodes);
                state.readers.add(id, region);
            }
            let kind = CommandKind::Push { transfer, targets };
            emit(&mut self.frontier, task, kind, dependencies, out);
        }
    }

    /// What other nodes need of this one. Only chunks that can read something
    /// that this node owns are looked at.
    fn owed(&self, task: &Task, chunks: &Chunks, need: &Requirement<'_>) -> SmallVec<[Owed; 2]> {
        let state = &buffer(&self.buffers, need.buffer).state;
        let mut pushes = SmallVec::<[Owed; 2]>::new();
        chunks.for_each_near(&need.readers_of(&state.owned), |node, chunk| {
            if node == self.config.local {
                return;
            }
            let reads = need.reads_of(&part(task, node, chunk));
            state.for_each_owed(node, &reads, |part, writer| {
                let writer = self.frontier.representative(writer);
                add_owed(&mut pushes, writer, node, part);
            });
        });
        pushes
    }

    /// Expects what the local chunk reads and this node does not hold.
    fn await_push(&mut self, task: &Task, need: &Requirement<'_>, out: &mut Vec<Command>) {
        let state = &mut buffer_mut(&mut self.buffers, need.buffer).state;
        let region = state.missing(&need.reads);
        #[cfg(feature = "mutants")]
        let region = mistakes::awaited(region, &need.reads);
        if region.is_empty() {
            return;
        }
        let mut dependencies = Dependencies::default();
        before_overwriting(state, &self.frontier, &region, &mut dependencies);
        or_synchronized(&mut dependencies, &self.frontier);
        state.receive(&region, self.frontier.next_id());
        let transfer = TransferId { consumer: task.id, buffer: need.buffer };
        let kind = CommandKind::AwaitPush { transfer, region };
        emit(&mut self.frontier, task, kind, dependencies, out);
    }

    fn execute(
        &mut self,
        task: &Task,
        chunk: Box3,
        needs: &[Requirement<'_>],
        out: &mut Vec<Command>,
    ) -> CommandId {
        let frontier = &self.frontier;
        let mut dependencies = Dependencies::default();
        for need in needs {
            let state = &mut buffer_mut(&mut self.buffers, need.buffer).state;
            state.holdings.for_each_in_region(&need.reads, |_, holding| {
                dependencies.add(frontier.representative(holding.writer), DependencyKind::True);
            });
            // Who has written what is both read and written is known by now.
            if need.reads == need.writes {
                after_readers(state, frontier, &need.writes, &mut dependencies);
            } else {
                before_overwriting(state, frontier, &need.writes, &mut dependencies);
            }
        }
        or_synchronized(&mut dependencies, frontier);
        let kind = CommandKind::Execute { chunk };
        emit(&mut self.frontier, task, kind, dependencies, out)
    }

    /// Updates what this node holds and who reads it.
    fn record(&mut self, execute: Option<CommandId>, needs: &[Requirement<'_>]) {
        for need in needs {
            let Buffer { state, is_written, .. } = buffer_mut(&mut self.buffers, need.buffer);
            *is_written |= need.is_written();
            if !need.writes_of_all.is_empty() {
                state.write(&need.writes_of_all, &need.writes, execute);
            }
            match execute {
                Some(id) if need.writes.is_empty() => state.readers.add(id, &need.reads),
                Some(id) if !need.reads.is_empty() => {
                    state.readers.add(id, &need.reads.difference(&need.writes));
                }
                _ => {}
            }
        }
    }

    fn horizon(&mut self, task: &Task, out: &mut Vec<Command>) {
        let id = self.synchronization(task, CommandKind::Horizon, out);
        if let Some(reached) = self.pending_horizon.replace(id) {
            self.synchronize_at(reached);
        }
    }

    fn epoch(&mut self, task: &Task, action: EpochAction, out: &mut Vec<Command>) {
        let id = self.synchronization(task, CommandKind::Epoch(action), out);
        self.pending_horizon = None;
        self.synchronize_at(id);
    }

    fn synchronization(
        &mut self,
        task: &Task,
        kind: CommandKind,
        out: &mut Vec<Command>,
    ) -> CommandId {
        let dependencies = self.frontier.after_all_leaves();
        let id = emit(&mut self.frontier, task, kind, dependencies, out);
        self.frontier.closed_by(id);
        id
    }

    fn synchronize_at(&mut self, command: CommandId) {
        self.frontier.synchronize_at(command);
        self.buffers.sweep(|buffer| {
            buffer.state.compact(command);
            Sweep::Settled
        });
    }
}

/// Data with one writer that other nodes need.
struct Owed {
    writer: CommandId,
    targets: Targets,
}

pub(crate) type Targets = SmallVec<[(NodeId, Region); 2]>;

/// Adds `part` for `node`; nodes come in ascending order.
fn add_owed(pushes: &mut SmallVec<[Owed; 2]>, writer: CommandId, node: NodeId, part: Box3) {
    let slot = pushes.iter().position(|push| push.writer == writer).unwrap_or_else(|| {
        pushes.push(Owed { writer, targets: SmallVec::new() });
        pushes.len() - 1
    });
    match pushes[slot].targets.last_mut() {
        Some((last, region)) if *last == node => region.union_box(&part),
        _ => pushes[slot].targets.push((node, part.into())),
    }
}

/// Neighbouring targets that get the same region, together: an all-gather
/// marks its region once, not once per node.
fn by_region(targets: &[(NodeId, Region)]) -> impl Iterator<Item = (&Region, NodeSet)> {
    targets.chunk_by(|(_, a), (_, b)| a == b).map(|run| {
        let mut nodes = NodeSet::default();
        run.iter().for_each(|&(node, _)| nodes.insert(node));
        (&run[0].1, nodes)
    })
}

/// Adds what a command must wait for before it overwrites `region`: who has read it, and who
/// has written what nobody has read.
fn before_overwriting(
    state: &mut BufferState,
    frontier: &Frontier<CommandId>,
    region: &Region,
    dependencies: &mut Dependencies<CommandId>,
) {
    if region.is_empty() {
        return;
    }
    let point = frontier.synchronization_point();
    state.holdings.for_each_in_region(region, |part, holding| {
        if !state.readers.stand_in_for(holding.writer, &part, point) {
            dependencies.add(frontier.representative(holding.writer), DependencyKind::Output);
        }
    });
    after_readers(state, frontier, region, dependencies);
}

/// Adds the readers of a region that a command overwrites. They are forgotten: whoever
/// writes next waits for this command.
fn after_readers(
    state: &mut BufferState,
    frontier: &Frontier<CommandId>,
    region: &Region,
    dependencies: &mut Dependencies<CommandId>,
) {
    state.readers.overwrite(region, |reader| {
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::CommandSkipsReaders.is_active() {
            return;
        }
        dependencies.add(frontier.representative(reader), DependencyKind::Anti);
    });
}

/// A command that waits for nothing else waits for the synchronisation point.
fn or_synchronized(dependencies: &mut Dependencies<CommandId>, frontier: &Frontier<CommandId>) {
    if dependencies.is_empty() {
        dependencies.push_new(frontier.synchronization_point(), DependencyKind::Order);
    }
}

fn emit(
    frontier: &mut Frontier<CommandId>,
    task: &Task,
    kind: CommandKind,
    dependencies: Dependencies<CommandId>,
    out: &mut Vec<Command>,
) -> CommandId {
    let id = frontier.push(&dependencies);
    out.push(Command { id, task: task.id, kind, dependencies });
    id
}

/// The chunk of a task that a node runs.
fn part(task: &Task, node: NodeId, chunk: Box3) -> Part {
    Part { position: node.slot(), chunk, global: task.work.extent() }
}

/// The extent of a buffer, if nodes may have to exchange parts of it before or after a task:
/// the same on all nodes.
fn exchanged(task: &Task, buffers: &BufferTable<Buffer>, id: BufferId) -> Option<Box3> {
    let Buffer { state, is_written, .. } = buffer(buffers, id);
    let writes = |access: &BufferAccess| access.buffer == id && access.mode.writes();
    (*is_written || task.buffer_accesses().any(|access| writes(access))).then_some(state.extent)
}

fn buffer(buffers: &BufferTable<Buffer>, id: BufferId) -> &Buffer {
    buffers.get(id).unwrap_or_else(|| panic!("{id} is not registered"))
}

#[inline]
fn buffer_mut(buffers: &mut BufferTable<Buffer>, id: BufferId) -> &mut Buffer {
    buffers.get_mut(id).unwrap_or_else(|| panic!("{id} is not registered"))
}
