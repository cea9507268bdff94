//! How far a node may be ahead of those that it sends to: their credit. Knows horizons
//! and pilots, neither networks nor who is kept waiting.
//!
//! On a network that [sends ahead](crate::Communicator::sends_ahead), a small payload is
//! sent as soon as it is offered, and waits at its receiver, however far behind that is. So
//! a node that has come to its horizon *h* says so only if each peer has consumed what this
//! node announced to it more than *lead* horizons before; its program, which waits for
//! horizons, waits for such peers, too.
//!
//! All nodes have the same horizons, so their number tells how far a node is. A task is in
//! *interval* *i* if *i* horizons come before it. A peer that has reached *i* + 1 horizons
//! has completed the tasks of interval *i*, and all that they were sent is consumed. It
//! says how far it is in each pilot that it sends. Where its pilots are too rare, as where
//! data goes one way only, it sends notes: one per quarter of the lead.
//!
//! **Nobody waits for ever.** Let *m* be the least number of horizons that any node has
//! reached. A peer has reached at least *m*, and has kept silent of less than a period, so
//! what counts as unconsumed is of interval *m* - *period* + 1 or later; as the lead is not
//! less than *period* - 1, all nodes may count *m* horizons as reached. So a program waits
//! only once it has submitted horizon *m* + 1, and its lookahead has let go of that and of
//! all tasks before. Let this be so on all nodes; then the first task that is incomplete
//! somewhere lacks nothing: what it needs are tasks before it. So the tasks before horizon
//! *m* + 1 complete, one after the other, and the slowest node reaches it.

use std::collections::VecDeque;

use celerity_cdag::NodeId;
use celerity_idag::Pilot;
use celerity_tdag::TaskId;

/// What a node knows of its peers' progress, and they of its own.
#[derive(Debug, Default)]
pub(super) struct Credit {
    /// Horizons that this node may be ahead; `None` if nobody gives credit.
    lead: Option<u64>,
    peers: Vec<Peer>,
    /// Horizons reached, and the latest of them.
    reached: u64,
    latest: Option<TaskId>,
    /// Horizons that are known and not reached, in order.
    ahead: VecDeque<TaskId>,
    /// The peers that ask for news of this node, and some that have got them.
    asking: Vec<NodeId>,
    /// Horizons that peers allow this node to count as reached.
    limit: u64,
    /// Whether `limit` may be another one by now.
    is_stale: bool,
}

/// What is between this node and another one.
#[derive(Clone, Debug, Default)]
struct Peer {
    /// Intervals, in order, with tasks that this node has announced something for and the
    /// peer has not completed. As many as the lead and the run-ahead let there be.
    unconsumed: VecDeque<u64>,
    /// The number of horizons that the peer has been told last.
    told: u64,
    /// The latest task that it has announced something for, unless it knows that this has
    /// been consumed.
    asks_for: Option<TaskId>,
    /// Whether it is in the list of those that ask, or did.
    is_listed: bool,
}

impl Peer {
    /// The peer is told how far this node is.
    fn tell(&mut self, reached: u64, latest: Option<TaskId>) {
        self.told = reached;
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::CreditHalfTold.is_active() {
            self.asks_for = None;
        }
        self.asks_for.take_if(|task| Some(*task) < latest);
    }
}

impl Credit {
    /// Between a node and its peers, all of `nodes`.
    pub(super) fn new(nodes: usize, lead: Option<u64>) -> Self {
        let lead = lead.filter(|_| nodes > 1);
        let peers = if lead.is_some() { vec![Peer::default(); nodes] } else { Vec::new() };
        Self { lead, peers, limit: u64::MAX, ..Self::default() }
    }

    /// How many horizons this node has reached.
    pub(super) fn reached(&self) -> u64 {
        self.reached
    }

    /// The next horizon of the task stream.
    pub(super) fn know(&mut self, horizon: TaskId) {
        if self.lead.is_some() {
            self.ahead.push_back(horizon);
        }
    }

    /// A pilot is about to be sent. Returns what its receiver is told.
    pub(super) fn announce(&mut self, pilot: &Pilot) -> u64 {
        if self.lead.is_none() {
            return 0;
        }
        let before = self.ahead.partition_point(|horizon| *horizon < pilot.transfer.consumer);
        let interval = self.reached + before as u64;
        let peer = &mut self.peers[pilot.to.slot()];
        if peer.unconsumed.back() != Some(&interval)
            && let Err(at) = peer.unconsumed.binary_search(&interval)
        {
            peer.unconsumed.insert(at, interval);
            self.is_stale |= at == 0;
        }
        peer.tell(self.reached, self.latest);
        self.reached
    }

    /// A peer has announced something for a task, and said how many horizons it has reached.
    pub(super) fn announced(&mut self, from: NodeId, consumer: TaskId, reached: u64) {
        if self.lead.is_none() {
            return;
        }
        self.hear(from, reached);
        let peer = &mut self.peers[from.slot()];
        peer.asks_for = peer.asks_for.max(Some(consumer));
        if !std::mem::replace(&mut peer.is_listed, true) {
            self.asking.push(from);
        }
    }

    /// A peer says how many horizons it has reached.
    pub(super) fn hear(&mut self, from: NodeId, reached: u64) {
        let Some(peer) = self.peers.get_mut(from.slot()) else { return };
        while peer.unconsumed.front().is_some_and(|interval| *interval < reached) {
            peer.unconsumed.pop_front();
            self.is_stale = true;
        }
    }

    /// This node has reached so many more horizons. Returns the peers that are to be told by
    /// a [`note`]. O(peers that announce things).
    pub(super) fn reach(&mut self, more: u64) -> Vec<NodeId> {
        let Some(lead) = self.lead else { return Vec::new() };
        self.reached += more;
        let more = usize::try_from(more).expect("horizons are reached one by one");
        let passed = self.ahead.drain(..more.min(self.ahead.len())).next_back();
        self.latest = passed.or(self.latest);
        let Self { peers, reached, latest, .. } = self;
        let mut told = Vec::new();
        self.asking.retain(|&node| {
            let peer = &mut peers[node.slot()];
            if peer.asks_for.is_some() && *reached - peer.told >= period(lead) {
                peer.tell(*reached, *latest);
                told.push(node);
            }
            peer.is_listed = peer.asks_for.is_some();
            peer.is_listed
        });
        told
    }

    /// The number of horizons that this node may count as reached, as far as it goes by
    /// its peers. O(1), or O(nodes) if something has changed.
    pub(super) fn limit(&mut self) -> u64 {
        if std::mem::take(&mut self.is_stale) {
            let oldest = self.peers.iter().filter_map(|peer| peer.unconsumed.front()).min();
            let lead = self.lead.unwrap_or_default();
            self.limit = oldest.map_or(u64::MAX, |oldest| oldest.saturating_add(lead));
        }
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::CreditUnlimited.is_active() {
            return u64::MAX;
        }
        self.limit
    }
}

/// After so many horizons a peer is told at the latest: early enough to hear of it before it
/// has to wait.
fn period(lead: u64) -> u64 {
    (lead / 4).max(1)
}

/// The first byte of a note of this kind; those of the task stream begin otherwise.
const REACHED: u8 = 2;

/// A note that says how many horizons its sender has reached.
pub(super) fn note(reached: u64) -> [u8; 9] {
    let mut note = [REACHED; 9];
    note[1..].copy_from_slice(&reached.to_le_bytes());
    note
}

/// What such a note says; `None` if it is another one.
pub(super) fn read(note: &[u8]) -> Option<u64> {
    let (&kind, number) = note.split_first()?;
    let number = number.try_into().ok()?;
    (kind == REACHED).then(|| u64::from_le_bytes(number))
}

#[cfg(test)]
mod tests {
    use celerity_cdag::TransferId;
    use celerity_idag::MessageId;
    use celerity_regions::Box3;
    use celerity_tdag::BufferId;

    use super::*;

    const PEER: NodeId = NodeId::from_index(1);
    const OTHER: NodeId = NodeId::from_index(2);

    /// For a node of three that knows the horizons T10, T20 and T30.
    fn credit(lead: u64) -> Credit {
        let mut credit = Credit::new(3, Some(lead));
        [10, 20, 30].into_iter().for_each(|task| credit.know(TaskId::from_index(task)));
        credit
    }

    fn pilot(to: NodeId, consumer: u64) -> Pilot {
        let (consumer, buffer) = (TaskId::from_index(consumer), BufferId::from_index(0));
        let transfer = TransferId { consumer, buffer };
        let message = MessageId::from_index(0);
        Pilot { to, message, transfer, region: Box3::UNIT.into(), from_device: false }
    }

    #[test]
    fn the_oldest_that_is_unconsumed_is_the_limit() {
        let mut credit = credit(5);
        assert_eq!(credit.limit(), u64::MAX);
        for (to, consumer) in [(PEER, 12), (PEER, 15), (PEER, 25), (OTHER, 22)] {
            assert_eq!(credit.announce(&pilot(to, consumer)), 0);
        }
        assert_eq!(credit.limit(), 1 + 5);
        credit.hear(PEER, 1);
        assert_eq!(credit.limit(), 1 + 5, "who has reached T10 has not completed T12");
        credit.hear(PEER, 2);
        assert_eq!(credit.limit(), 2 + 5);
        credit.hear(PEER, 3);
        assert_eq!(credit.limit(), 2 + 5, "the other one is where it was");
        credit.hear(PEER, 1);
        credit.announced(OTHER, TaskId::from_index(1), 4);
        assert_eq!(credit.limit(), u64::MAX);
    }

    #[test]
    fn intervals_are_counted_from_the_start_of_the_run() {
        let mut credit = credit(1);
        assert_eq!(credit.reach(2), []);
        assert_eq!(credit.announce(&pilot(PEER, 25)), 2);
        assert_eq!(credit.announce(&pilot(PEER, 31)), 2);
        assert_eq!(credit.limit(), 2 + 1);
        credit.hear(PEER, 3);
        assert_eq!(credit.limit(), 3 + 1);
    }

    #[test]
    fn who_asks_is_told_by_pilots_or_else_by_notes() {
        let mut credit = credit(8);
        let task = TaskId::from_index;
        credit.announced(PEER, task(12), 0);
        credit.announced(PEER, task(5), 0);
        credit.announced(OTHER, task(12), 0);
        assert_eq!(credit.reach(1), [], "a quarter of the lead is two horizons");
        assert_eq!(credit.announce(&pilot(OTHER, 12)), 1);
        assert_eq!(credit.reach(1), [PEER]);
        assert_eq!(credit.reach(1), [OTHER], "T12 was not consumed when the pilot told of one");
        credit.know(task(40));
        credit.know(task(50));
        credit.announced(PEER, task(32), 0);
        credit.announced(OTHER, task(32), 0);
        assert_eq!(credit.reach(1), [PEER]);
        assert_eq!(credit.announce(&pilot(OTHER, 42)), 4);
        assert_eq!(credit.reach(1), [], "both know that T32 has been consumed");
        assert!(credit.asking.is_empty() && credit.reached() == 5);
    }

    #[test]
    fn without_a_lead_there_is_no_limit() {
        for mut credit in [Credit::new(3, None), Credit::new(1, Some(4))] {
            credit.know(TaskId::from_index(10));
            assert_eq!(credit.announce(&pilot(PEER, 12)), 0);
            credit.announced(PEER, TaskId::from_index(1), 0);
            assert_eq!((credit.reach(100), credit.limit()), (Vec::new(), u64::MAX));
        }
    }

    #[test]
    fn notes_are_told_from_others() {
        assert_eq!(read(&note(u64::MAX - 1)), Some(u64::MAX - 1));
        for other in [&[][..], &note(1)[..8], &[0; 9], &[REACHED; 10]] {
            assert_eq!(read(other), None);
        }
    }
}
