//! The command generator: per task, a pipeline of passes
//! `assign → requirements → push → await_push → execute → record`; for a forward,
//! `classify → exchange`.
//! It runs on every node for itself and talks to nobody.

use std::sync::Arc;

use celerity_cpd::{Chunks, NodeId, PartsCache};
use celerity_regions::{Box3, Region};
use celerity_tdag::{
    BufferId, BufferInfo, BufferTable, Conflicts, Dependencies, DependencyKind, EpochAction,
    Frontier, GroupOrder, SideEffects, StreamHash, Sweep, Task, Work,
};
use smallvec::SmallVec;

use crate::collective::{Exchanged, MemberSets, Served, add_to, exchange};
use crate::command::{Command, CommandId, CommandKind, Targets, TransferId};
use crate::diagnostic::Diagnostic;
use crate::holding::BufferState;
#[cfg(feature = "mutants")]
use crate::mistakes;
use crate::node_set::NodeSet;
use crate::ordering::{after_readers, after_writers, before_overwriting, emit, or_synchronized};
use crate::requirements::{Requirement, Requirements, requirements};

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
/// number of nodes, and an all-gather by pushes is linear in the nodes (CCGrid 2023, fig. 1).
/// Behind a forward that becomes a [collective](CommandKind::Collective), it costs the same on any
/// number, and so does the collective, once its list of parts has been made. A
/// mapper of the user's is asked for every chunk, once, unless nothing has ever
/// written what is read through it; and once more where only its word keeps two accesses
/// of the task apart.
#[derive(Debug)]
pub struct CommandGraph {
    config: CommandGraphConfig,
    buffers: BufferTable<Buffer>,
    /// Those of this node: host objects are per node, and so is what orders their use.
    side_effects: SideEffects<CommandId>,
    frontier: Frontier<CommandId>,
    groups: GroupOrder<CommandId>,
    pending_horizon: Option<CommandId>,
    /// What users' mappers have said so far.
    said: StreamHash,
    /// Parts of recent collectives.
    parts: PartsCache,
    /// What collectives bring the next task.
    served: Served,
    member_sets: MemberSets,
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
            side_effects: SideEffects::default(),
            frontier: Frontier::new(),
            groups: GroupOrder::default(),
            pending_horizon: None,
            said: StreamHash::default(),
            parts: PartsCache::default(),
            served: Served::default(),
            member_sets: MemberSets::new(usize::MAX),
        }
    }

    /// Lets nodes exchange data in a [collective](CommandKind::Collective) in at most so many different sets, all
    /// nodes together not counted. Others, that come later, exchange it in pairs. There is no limit unless this
    /// sets one; the same on all nodes.
    pub fn limit_member_sets(&mut self, most: usize) {
        self.member_sets = MemberSets::new(most);
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
    /// If the task names a buffer that is not registered, or is not the one behind the last: T0 is the first. If a mapper of a
    /// user's panics for a chunk, with a [`MapperPanic`](celerity_tdag::MapperPanic); the graph is of no use then.
    pub fn schedule(
        &mut self,
        task: &Task,
        out: &mut Vec<Command>,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        match task.work {
            Work::Horizon => self.horizon(task, out),
            Work::Epoch(action) => self.epoch(task, action, out),
            Work::Forward => self.forward(task, out),
            Work::Device(_)
            | Work::HostOnce { .. }
            | Work::HostSplit { .. }
            | Work::Fence
            | Work::Combine { .. } => {
                self.execution(task, out, diagnostics);
            }
        }
    }

    /// Makes a forward one command, if it is a collective in which this node takes part. Others need not
    /// know of it: nothing that they hold or own changes.
    fn forward(&mut self, task: &Task, out: &mut Vec<Command>) {
        let Some(exchanged) = Exchanged::by(task).filter(|_| self.config.nodes > 1) else { return };
        let CommandGraphConfig { nodes, local } = self.config;
        let state = &mut buffer_mut(&mut self.buffers, exchanged.buffer).state;
        let Some(collective) = exchanged.classify(state.extent, nodes, &mut self.parts) else {
            return;
        };
        #[cfg(feature = "mutants")]
        let Some(collective) = mistakes::collective(collective, local, nodes) else { return };
        if exchanged.is_on_trust() {
            add_to(&collective, &mut self.said);
        }
        if !self.member_sets.admits(&collective.members) {
            return;
        }
        self.served.hide(exchanged.consumer(), exchanged.buffer, state, &collective);
        if !collective.members.contains(local) {
            return;
        }
        let id = self.frontier.next_id();
        let dependencies = exchange(state, &self.frontier, local, &collective, id);
        let transfer = TransferId { consumer: task.id, buffer: exchanged.buffer };
        let kind = CommandKind::Collective { transfer, collective: Arc::new(collective) };
        emit(&mut self.frontier, task, kind, dependencies, out);
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
        let mut needs = Requirements::new();
        requirements(task, local, |id| buffer(&self.buffers, id).state.extent, &mut needs);
        if self.config.nodes > 1 {
            if !self.served.is_for(task.id) {
                self.reveal();
            }
            let mut owed = SmallVec::new();
            for need in &needs {
                self.survey(task, &chunks, need, &mut owed, diagnostics);
                if need.is_read() {
                    self.push(task, need, &mut owed, out);
                    self.await_push(task, need, out);
                }
            }
            self.check_apart(task, (&chunks, local), &needs, diagnostics);
            self.reveal();
        }
        let execute = (!local.is_empty()).then(|| self.execute(task, local, &needs, out));
        match task.work {
            #[cfg(feature = "mutants")]
            Work::Combine { .. } if celerity_mutants::Mutant::CombinedIsOwned.is_active() => {
                self.record(execute, &needs);
            }
            Work::Combine { .. } => self.record_everywhere(execute, &needs),
            _ => self.record(execute, &needs),
        }
    }

    /// Ends what [`Served`] hides.
    #[inline]
    fn reveal(&mut self) {
        if self.served.is_empty() {
            return;
        }
        for (buffer, owned) in self.served.reveal() {
            if let Some(buffer) = self.buffers.get_mut(buffer) {
                buffer.state.owned = owned;
            }
        }
    }

    /// Looks at what other chunks touch of a buffer, once at each: finds what this node owes
    /// them, holds users' mappers to their promises, and sums up what these have said. Built-in
    /// mappers need no such look: of these, only chunks are visited that read something that
    /// this node owns.
    fn survey(
        &mut self,
        task: &Task,
        chunks: &Chunks,
        need: &Requirement<'_>,
        owed: &mut SmallVec<[Owed; 2]>,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        let Buffer { state, is_written, .. } = buffer(&self.buffers, need.buffer);
        let (local, is_read) = (self.config.local, need.is_read());
        // The same on all nodes: of what nobody has written, nobody sends anything.
        let is_on_trust = need.is_on_trust() && (*is_written || need.is_written());
        let mut check = (need.is_written_on_trust()
            && chunks.len() > 1
            && !matches!(task.work, Work::Combine { .. }))
        .then(|| WriteCheck::new(task, need, local, diagnostics));
        let visited = match is_on_trust {
            true => task.work.extent(),
            false if is_read => need.readers_of(&state.owned),
            false => return,
        };
        let mut said = self.said;
        chunks.for_each_near(&visited, |node, chunk| {
            if node == local {
                if is_on_trust {
                    need.add_to(&mut said);
                }
                return;
            }
            let images = need.images(chunk);
            if is_on_trust {
                images.add_to(&mut said);
            }
            if let Some(check) = &mut check {
                check.add(node, images.writes(), &self.buffers);
            }
            if is_read {
                state.for_each_owed(node, images.reads(), |part, writer| {
                    add_owed(owed, self.frontier.representative(writer), node, part);
                });
            }
        });
        if let Some(check) = check
            && !check.finish(&self.buffers)
        {
            self.find_undeclared(task, chunks, need, diagnostics);
        }
        self.said = said;
    }

    /// Names the nodes whose chunks are said to write more than the whole index space is.
    #[cold]
    fn find_undeclared(
        &self,
        task: &Task,
        chunks: &Chunks,
        need: &Requirement<'_>,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        chunks.for_each_near(&task.work.extent(), |node, chunk| {
            let region = need.images(chunk).writes().difference(&need.writes_of_all);
            if !region.is_empty() {
                diagnostics.push(Diagnostic::UndeclaredWrites {
                    task: task.to_string(),
                    buffer: buffer(&self.buffers, need.buffer).name.clone(),
                    region,
                    node,
                });
            }
        });
    }

    /// Holds users' mappers to their word that one access does not touch what another writes:
    /// neither here and on another node, nor the other way round.
    fn check_apart(
        &self,
        task: &Task,
        (chunks, local): (&Chunks, Box3),
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
                    let region = touched.intersection(&need.image(there, chunk));
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
        need: &Requirement<'_>,
        owed: &mut SmallVec<[Owed; 2]>,
        out: &mut Vec<Command>,
    ) {
        for mut owed in owed.drain(..) {
            owed.settle();
            let Owed { writer, targets, .. } = owed;
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
            after_writers(state, frontier, &need.reads, &mut dependencies);
            // Who has written what is both read and written is known by now.
            if need.reads == need.writes {
                after_readers(state, frontier, &need.writes, &mut dependencies);
            } else {
                before_overwriting(state, frontier, &need.writes, &mut dependencies);
            }
        }
        if let Some(group) = task.work.group() {
            let before = self.groups.follow(group, frontier.next_id());
            #[cfg(feature = "mutants")]
            let before = celerity_mutants::Mutant::GroupForgottenByCommands.alter(before, |_| None);
            let before = before.map(|before| frontier.representative(before));
            before.into_iter().for_each(|on| dependencies.add(on, DependencyKind::Order));
        }
        let conflicts = self.side_effects(task, &mut dependencies);
        or_synchronized(&mut dependencies, &self.frontier);
        let kind = CommandKind::Execute { chunk };
        let id = self.frontier.push(&dependencies);
        out.push(Command { id, task: task.id, kind, dependencies, conflicts });
        id
    }

    /// Adds what the next command, which executes a part of `task`, waits for because of host
    /// objects, and returns what it must not meet.
    fn side_effects(
        &mut self,
        task: &Task,
        dependencies: &mut Dependencies<CommandId>,
    ) -> Conflicts<CommandId> {
        if !task.has_side_effects() {
            return Conflicts::default();
        }
        let (next, point) = (self.frontier.next_id(), self.frontier.synchronization_point());
        self.side_effects.add(next, point, task.side_effects(), dependencies)
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

    /// As [`record`](Self::record), for a task that every node has run, with the same result.
    fn record_everywhere(&mut self, execute: Option<CommandId>, needs: &[Requirement<'_>]) {
        let execute = execute.expect("every node runs it");
        for need in needs {
            let Buffer { state, is_written, .. } = buffer_mut(&mut self.buffers, need.buffer);
            *is_written |= need.is_written();
            state.write_everywhere(&need.writes, execute);
            state.readers.add(execute, &need.reads.difference(&need.writes));
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
        self.side_effects.forget_before(command);
        self.buffers.sweep(|buffer| {
            buffer.state.compact(command);
            Sweep::Settled
        });
    }
}

/// Holds a user's mapper to its promises about what chunks write.
struct WriteCheck<'a, 't> {
    task: &'a Task,
    need: &'a Requirement<'t>,
    local: NodeId,
    /// What no chunk has written so far that the whole index space is said to write.
    unwritten: Region,
    /// Parts that chunks write and that are still in `unwritten`.
    more: Vec<Box3>,
    /// How many elements chunks write, all together.
    written: u64,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl<'a, 't> WriteCheck<'a, 't> {
    fn new(
        task: &'a Task,
        need: &'a Requirement<'t>,
        local: NodeId,
        diagnostics: &'a mut Vec<Diagnostic>,
    ) -> Self {
        let unwritten = need.writes_of_all.difference(&need.writes);
        let written = need.writes.volume();
        Self { task, need, local, unwritten, more: Vec::new(), written, diagnostics }
    }

    /// Another node writes this. Users' mappers are rare, and chunks are visited often.
    #[inline(never)]
    fn add(&mut self, node: NodeId, writes: &Region, buffers: &BufferTable<Buffer>) {
        self.written = self.written.saturating_add(writes.volume());
        match self.unwritten.boxes().len() {
            ..MANY_BOXES => self.unwritten.subtract(writes),
            _ => self.more.extend_from_slice(writes.boxes()),
        }
        if writes.intersects(&self.need.writes) {
            self.diagnostics.push(Diagnostic::OverlappingWrites {
                task: self.task.to_string(),
                buffer: buffer(buffers, self.need.buffer).name.clone(),
                region: writes.intersection(&self.need.writes),
                first: self.local,
                second: node,
            });
        }
    }

    /// All nodes have been added. Whether it is certain that none of them writes anything that the whole index space is not
    /// said to write: what chunks write that it is said to is at most as much as they write, and as much only if it is all.
    #[inline(never)]
    fn finish(mut self, buffers: &BufferTable<Buffer>) -> bool {
        if !self.more.is_empty() {
            self.unwritten.subtract(&Region::from_boxes(self.more));
        }
        let declared = self.need.writes_of_all.volume() - self.unwritten.volume();
        if !self.unwritten.is_empty() {
            self.diagnostics.push(Diagnostic::UnwrittenElements {
                task: self.task.to_string(),
                buffer: buffer(buffers, self.need.buffer).name.clone(),
                region: self.unwritten,
            });
        }
        declared == self.written
    }
}

/// Data with one writer that other nodes need.
struct Owed {
    writer: CommandId,
    targets: Targets,
    /// Parts of the last target's region that are not in it yet.
    more: Vec<Box3>,
}

/// Regions of so many boxes get others, or lose them, together: each time, all of it is put together anew.
const MANY_BOXES: usize = 16;

impl Owed {
    /// Adds `part` for `node`; nodes come in ascending order.
    #[inline]
    fn add(&mut self, node: NodeId, part: Box3) {
        match self.targets.last_mut() {
            Some((last, region)) if *last == node => match region.boxes().len() {
                ..MANY_BOXES => region.union_box(&part),
                _ => self.more.push(part),
            },
            _ => {
                self.settle();
                self.targets.push((node, part.into()));
            }
        }
    }

    /// Gives the last target all of its parts.
    #[inline]
    fn settle(&mut self) {
        if !self.more.is_empty() {
            let (_, region) = self.targets.last_mut().expect("whose parts they are");
            region.union_with(&Region::from_boxes(self.more.drain(..)));
        }
    }
}

/// Adds `part` for `node`; nodes come in ascending order.
fn add_owed(pushes: &mut SmallVec<[Owed; 2]>, writer: CommandId, node: NodeId, part: Box3) {
    let slot = pushes.iter().position(|push| push.writer == writer).unwrap_or_else(|| {
        pushes.push(Owed { writer, targets: SmallVec::new(), more: Vec::new() });
        pushes.len() - 1
    });
    pushes[slot].add(node, part);
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

fn buffer(buffers: &BufferTable<Buffer>, id: BufferId) -> &Buffer {
    buffers.get(id).unwrap_or_else(|| panic!("{id} is not registered"))
}

#[inline]
fn buffer_mut(buffers: &mut BufferTable<Buffer>, id: BufferId) -> &mut Buffer {
    buffers.get_mut(id).unwrap_or_else(|| panic!("{id} is not registered"))
}
