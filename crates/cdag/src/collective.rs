//! The pass of forward tasks (IJPP 2024, §3.2): whether nodes exchange data at once, which ones, and what
//! that means for what one of them holds. Who provides and gets which elements is `celerity-cpd`'s to say.

#[cfg(feature = "mutants")]
use std::borrow::Cow;
use std::collections::BTreeSet;

use celerity_cpd::{Collective, Ends, Members, NodeId, PartsCache, classify};
#[cfg(feature = "mutants")]
use celerity_mutants::Mutant;
use celerity_regions::{Box3, Region};
use celerity_tdag::{BufferId, Dependencies, Forward, Frontier, Mapper, StreamHash, Task, TaskId};

use crate::command::CommandId;
use crate::holding::BufferState;
#[cfg(feature = "mutants")]
use crate::mistakes;
use crate::node_set::NodeSet;
use crate::ordering::{after_writers, before_overwriting, or_synchronized};
use crate::spread::Receivers;

/// What a forward task is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchanged<'a> {
    pub(crate) buffer: BufferId,
    forward: &'a Forward,
    region: &'a Region,
}

impl<'a> Exchanged<'a> {
    /// Nothing if the task is no forward as task graphs make them. The same on all nodes.
    pub(crate) fn by(task: &'a Task) -> Option<Self> {
        let forward = task.forward.as_deref()?;
        let access = task.buffer_accesses().next()?;
        match &access.mapper {
            Mapper::Fixed(region) => Some(Self { buffer: access.buffer, forward, region }),
            _ => None,
        }
    }

    /// What nodes together make of it, as all of them know; nothing if no collective fits.
    pub(crate) fn classify(
        &self,
        extent: Box3,
        nodes: usize,
        parts: &mut PartsCache,
    ) -> Option<Collective> {
        classify(self.forward, self.region, extent, nodes, parts)
    }

    /// Whether only a user's word stands for what nodes have and get.
    pub(crate) fn is_on_trust(&self) -> bool {
        let ends = [&self.forward.producer, &self.forward.consumer];
        ends.into_iter().flat_map(|end| &end.accesses).any(|access| access.is_on_trust())
    }

    /// The task that reads what is exchanged.
    pub(crate) fn consumer(&self) -> TaskId {
        self.forward.consumer.task
    }
}

/// Adds to a hash what users' mappers have made of a collective. O(members).
pub(crate) fn add_to(collective: &Collective, hash: &mut StreamHash) {
    hash.image(&collective.region);
    for ends in [&collective.from, &collective.to] {
        if let Ends::Each(parts) = ends {
            parts.iter().for_each(|part| hash.image(part));
        }
    }
}

/// Notes what `command`, this node's part in a collective, makes of what the node holds, and
/// returns what it waits for. O(1) and the entries touched, on any number of nodes.
pub(crate) fn exchange(
    state: &mut BufferState,
    frontier: &Frontier<CommandId>,
    local: NodeId,
    collective: &Collective,
    command: CommandId,
) -> Dependencies<CommandId> {
    let (provided, arriving) = (collective.provided_by(local), collective.arriving_at(local));
    let mut dependencies = Dependencies::default();
    #[cfg(feature = "mutants")]
    let nothing = Region::empty();
    let read = &*provided;
    #[cfg(feature = "mutants")]
    let read = Mutant::CollectiveNotAfterWriter.alter(read, |_| &nothing);
    after_writers(state, frontier, read, &mut dependencies);
    let overwritten = &arriving;
    #[cfg(feature = "mutants")]
    let overwritten = Mutant::CollectiveSkipsReaders.alter(overwritten, |_| &nothing);
    before_overwriting(state, frontier, overwritten, &mut dependencies);
    or_synchronized(&mut dependencies, frontier);
    note_receivers(state, local, &provided, (&collective.members, &collective.to));
    #[cfg(feature = "mutants")]
    let provided = Mutant::CollectiveIsNoReader.alter(provided, |_| Cow::Owned(nothing));
    if !provided.is_empty() {
        state.readers.add(command, &provided);
    }
    if !arriving.is_empty() {
        state.receive(&arriving, command);
    }
    dependencies
}

/// Notes who has what this node has provided: what it need not push again to these.
fn note_receivers(
    state: &mut BufferState,
    local: NodeId,
    provided: &Region,
    (members, to): (&Members, &Ends),
) {
    #[cfg(feature = "mutants")]
    let itself = Ends::One(local);
    #[cfg(feature = "mutants")]
    let (members, to) = mistakes::receivers(members, to, &itself);
    let parts = match to {
        Ends::All if members.are_all() => return state.settle(provided),
        Ends::All => None,
        Ends::One(root) if *root == local => return,
        Ends::One(root) => {
            let mut on = NodeSet::default();
            on.insert(*root);
            return state.replicate(provided, &on);
        }
        Ends::Each(parts) => Some(parts.clone()),
    };
    state.spread(provided, &Receivers { members: members.clone(), parts });
}

/// The sets of some nodes that exchange data at once. Networks keep something for each, so that there may not be
/// more than so many. The same on all nodes, as each looks at the operations of all.
#[derive(Debug)]
pub(crate) struct MemberSets {
    known: BTreeSet<Members>,
    most: usize,
}

impl MemberSets {
    pub(crate) fn new(most: usize) -> Self {
        Self { known: BTreeSet::new(), most }
    }

    /// Whether these may exchange data at once: all nodes always may, and who has done so before. O(log sets).
    pub(crate) fn admits(&mut self, members: &Members) -> bool {
        if members.are_all() || self.known.contains(members) {
            return true;
        }
        let has_room = self.known.len() < self.most;
        if has_room {
            self.known.insert(members.clone());
        }
        has_room
    }
}

/// What the next task will find where it reads it, so that nobody need ask all nodes whether they
/// lack something. In force until that task has been surveyed.
#[derive(Debug, Default)]
pub(crate) struct Served {
    hidden: Vec<Hidden>,
}

#[derive(Debug)]
struct Hidden {
    consumer: TaskId,
    buffer: BufferId,
    /// The box around everything that this node owns.
    owned: Box3,
}

impl Served {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.hidden.is_empty()
    }

    /// Hides from the survey of `consumer` what a collective brings wherever that reads it.
    pub(crate) fn hide(
        &mut self,
        consumer: TaskId,
        buffer: BufferId,
        state: &mut BufferState,
        collective: &Collective,
    ) {
        let owned = state.owned;
        state.owned = Region::from(owned).difference(&collective.region).bounding_box();
        if state.owned != owned && !collective.settles() {
            self.hidden.push(Hidden { consumer, buffer, owned });
        }
    }

    /// Whether what is hidden, is from this task.
    pub(crate) fn is_for(&self, task: TaskId) -> bool {
        self.hidden.iter().all(|hidden| hidden.consumer == task)
    }

    /// What was hidden, latest first: a buffer and what this node owns of it.
    pub(crate) fn reveal(&mut self) -> impl Iterator<Item = (BufferId, Box3)> {
        self.hidden.drain(..).rev().map(|hidden| (hidden.buffer, hidden.owned))
    }
}
