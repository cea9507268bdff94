//! A deliberate bug in what is noted of a write. Compiled only to test the tests.

use celerity_regions::Region;

use super::{BufferState, Holding, State};
use crate::command::CommandId;
use crate::node_set::NodeSet;

/// [`BufferState::write`], except that it never forgets who has copies.
pub(super) fn write(
    buffer: &mut BufferState,
    of_all: &Region,
    here: &Region,
    writer: Option<CommandId>,
) {
    let replicas = |holding: &Holding| match holding.state {
        State::Owned | State::Spread(_) => holding.replicas.clone(),
        State::Replica | State::Stale => NodeSet::default(),
    };
    buffer.holdings.modify(&of_all.difference(here), |holding| Holding {
        state: State::Stale,
        ..holding.clone()
    });
    if let Some(writer) = writer {
        buffer.holdings.modify(here, |holding| Holding {
            writer,
            state: State::Owned,
            replicas: replicas(holding),
        });
    }
}
