//! What one node knows about its share of one buffer: which parts are current
//! here, which of those it must pass on, and who has them already (CCGrid 2023, §IV-C).
//! Where else data is, is none of a node's business.

#[cfg(feature = "mutants")]
mod mistakes;

use celerity_cpd::NodeId;
use celerity_regions::{Box3, Region, RegionMap};
use celerity_tdag::Readers;

use crate::command::CommandId;
use crate::node_set::NodeSet;
use crate::spread::{Receivers, SpreadId, Spreads};

/// The state of a part of a buffer on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holding {
    /// The command that last wrote this part on this node.
    pub(crate) writer: CommandId,
    pub(crate) state: State,
    /// Where owned data has been pushed to; empty if others pass it on.
    pub(crate) replicas: NodeSet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// A newer version exists on another node.
    Stale,
    /// Current, but another node (or everybody) has it too and passes it on.
    Replica,
    /// Current, and this node is the one that passes it on.
    Owned,
    /// The same, and collectives have brought their members it or parts of it, beside the replicas.
    Spread(SpreadId),
}

impl State {
    fn spread(self) -> Option<SpreadId> {
        match self {
            Self::Spread(spread) => Some(spread),
            Self::Stale | Self::Replica | Self::Owned => None,
        }
    }
}

/// One buffer on this node.
#[derive(Debug)]
pub(crate) struct BufferState {
    pub(crate) extent: Box3,
    pub(crate) holdings: RegionMap<Holding>,
    pub(crate) readers: Readers<CommandId>,
    /// A box around everything that this node owns.
    pub(crate) owned: Box3,
    /// Who has what of the parts that are [`State::Spread`].
    spreads: Spreads,
}

impl BufferState {
    /// A new buffer: initial contents, or zeroes, are the same everywhere.
    pub(crate) fn new(extent: Box3, epoch: CommandId) -> Self {
        let everywhere =
            Holding { writer: epoch, state: State::Replica, replicas: NodeSet::default() };
        let holdings = RegionMap::new(extent, everywhere);
        Self {
            extent,
            holdings,
            readers: Readers::default(),
            owned: Box3::EMPTY,
            spreads: Spreads::default(),
        }
    }

    /// Calls `each` with the parts of `region` that `node` lacks and this node
    /// owns, and the command that wrote them.
    pub(crate) fn for_each_owed(
        &self,
        node: NodeId,
        region: &Region,
        mut each: impl FnMut(Box3, CommandId),
    ) {
        self.holdings.for_each_in_region(region, |part, holding| match holding.state {
            State::Owned if !holding.replicas.contains(node) => each(part, holding.writer),
            State::Spread(spread) if !holding.replicas.contains(node) => {
                let lacking = self.spreads.lacking(spread, node, part);
                lacking.boxes().iter().for_each(|&part| each(part, holding.writer));
            }
            _ => {}
        });
    }

    /// Notes that owned data now is on the nodes `on`, too.
    pub(crate) fn replicate(&mut self, region: &Region, on: &NodeSet) {
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::ReplicationForgotten.is_active() {
            return;
        }
        self.holdings.modify(region, |holding| Holding {
            replicas: holding.replicas.union(on),
            ..holding.clone()
        });
    }

    /// Notes that `here`, which is current on this node, now is on all others, too: nobody passes it on.
    pub(crate) fn settle(&mut self, here: &Region) {
        self.holdings.modify(here, |holding| Holding {
            writer: holding.writer,
            state: State::Replica,
            replicas: NodeSet::default(),
        });
    }

    /// Notes that of owned data, `receivers` now have what they have received.
    pub(crate) fn spread(&mut self, here: &Region, receivers: &Receivers) {
        if here.is_empty() {
            return;
        }
        let Self { holdings, spreads, .. } = self;
        spreads.forget_unused(|| holdings.iter().filter_map(|(_, holding)| holding.state.spread()));
        holdings.modify(here, |holding| Holding {
            state: match holding.state {
                State::Owned => State::Spread(spreads.add(None, receivers)),
                State::Spread(before) => State::Spread(spreads.add(Some(before), receivers)),
                state @ (State::Stale | State::Replica) => state,
            },
            ..holding.clone()
        });
    }

    /// The parts of `region` that are not current here.
    pub(crate) fn missing(&self, region: &Region) -> Region {
        self.holdings.select(region, |holding| holding.state == State::Stale)
    }

    /// Notes that `writer` has received `region`.
    pub(crate) fn receive(&mut self, region: &Region, writer: CommandId) {
        let replica = Holding { writer, state: State::Replica, replicas: NodeSet::default() };
        #[cfg(feature = "mutants")]
        let replica = celerity_mutants::Mutant::ReceivedIsOwned
            .alter(replica, |replica| Holding { state: State::Owned, ..replica });
        self.holdings.update(region, replica);
    }

    /// Notes that a task has written `of_all`, of which `writer` on this node
    /// has written `here`: O' = (O \ w(I)) ∪ w(C) of CCGrid 2023, §IV-C.
    pub(crate) fn write(&mut self, of_all: &Region, here: &Region, writer: Option<CommandId>) {
        if of_all.contains_box(&self.owned) {
            self.owned = Box3::EMPTY;
        }
        if writer.is_some() {
            self.owned = self.owned.bounding(&here.bounding_box());
        }
        #[cfg(feature = "mutants")]
        let of_all = celerity_mutants::Mutant::RemoteWriteKeepsCurrent.alter(of_all, |_| here);
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::ReplicasOutliveWrite.is_active() {
            return mistakes::write(self, of_all, here, writer);
        }
        if of_all != here {
            self.holdings.modify(of_all, |holding| Holding {
                writer: holding.writer,
                state: State::Stale,
                replicas: NodeSet::default(),
            });
        }
        if let Some(writer) = writer {
            let owned = Holding { writer, state: State::Owned, replicas: NodeSet::default() };
            self.holdings.update(here, owned);
        }
    }

    /// Notes that `writer` has written `region` here, and every other node has for itself.
    pub(crate) fn write_everywhere(&mut self, region: &Region, writer: CommandId) {
        if region.contains_box(&self.owned) {
            self.owned = Box3::EMPTY;
        }
        let replica = Holding { writer, state: State::Replica, replicas: NodeSet::default() };
        self.holdings.update(region, replica);
    }

    /// Merges what the synchronisation point `point` stands in for.
    pub(crate) fn compact(&mut self, point: CommandId) {
        self.readers.compact(point);
        self.holdings
            .compact(|holding| Holding { writer: holding.writer.max(point), ..holding.clone() });
    }
}
