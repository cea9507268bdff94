//! A node's collective operations by who takes part in them: a *membership* for all nodes, and one for each set
//! of nodes that has a communicator. What happens in one membership has an order there, which is the same on all
//! of its members, and none relative to other memberships. Knows how far a membership has come; who makes a
//! communicator for one, and when, is [`founding`](crate::founding)'s business.

use celerity_cdag::NodeId;
use celerity_cpd::Members;
use mpi::ffi::MPI_Request;

use crate::error::MpiError;
use crate::exchanges::OpenExchanges;
use crate::meeting::{Agreement, Purpose};
use crate::raw::Comm;

/// Communicators of the same members, each for one thing, since MPI wants one order in each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberComms {
    /// For meetings.
    pub(crate) control: Comm,
    /// For operations.
    pub(crate) collective: Comm,
    /// For what members say when they leave; all nodes have another way for that.
    pub(crate) standing: Option<Comm>,
}

/// Operations among the same members.
pub(crate) struct Membership {
    pub(crate) members: Members,
    place: (NodeId, usize),
    comms: MemberComms,
    pub(crate) exchanges: OpenExchanges,
    /// Meetings that this node has joined.
    pub(crate) meetings: u64,
    /// How far this node has come, and the least of what all members have said, both as complements: so
    /// the least is the most. MPI's until it is known.
    standing: Box<[u64; 4]>,
    known: bool,
}

impl Membership {
    /// With nothing under way, of a node among so many that is a member; messages have at most so many
    /// bytes.
    pub(crate) fn new(
        place: (NodeId, usize),
        members: Members,
        comms: MemberComms,
        limit: u64,
    ) -> Self {
        let exchanges = OpenExchanges::new(place, &members, comms.collective, limit);
        let (standing, known) = (Box::new([0; 4]), false);
        Self { members, place, comms, exchanges, meetings: 0, standing, known }
    }

    /// Joins a meeting of the members.
    pub(crate) fn join(&mut self, purpose: Purpose) -> Result<(Agreement, MPI_Request), MpiError> {
        let joined = Agreement::join(self.place, purpose, self.comms.control)?;
        self.meetings += 1;
        Ok(joined)
    }

    /// Begins to tell the other members how far this node has come, which leaves; nothing if they are told
    /// in another way.
    pub(crate) fn say_standing(&mut self) -> Result<Option<MPI_Request>, MpiError> {
        let Some(comm) = self.comms.standing else { return Ok(None) };
        self.standing[..2].copy_from_slice(&[!self.meetings, !self.exchanges.begun()]);
        comm.lowest_of(&mut self.standing).map(Some)
    }

    /// All members have said how far they have come.
    pub(crate) fn standing_is_known(&mut self) {
        self.known = true;
    }

    /// The most meetings that a member has joined, and operations that one has begun; nothing until all
    /// have said.
    pub(crate) fn most(&self) -> Option<[u64; 2]> {
        let [_, _, meetings, begun] = *self.standing;
        self.known.then_some([!meetings, !begun])
    }
}
