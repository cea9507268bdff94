//! Collective operations of one node among the same members, from its coming to the end of its part. Owns their order: nodes
//! [meet](crate::meeting) before each, and begin those that they have met for in one order. Knows no
//! aborts; what it does when the node leaves, `leaving` says.
//!
//! One round of an operation begins when the one before has ended, and the next operation when the
//! last round of this one has begun. So MPI sees the same order on all nodes, and few of our operations
//! at a time.
//!
//! A node's part is in place where that is possible: each segment lies in one piece, and all of them
//! in one array. Otherwise it goes through dense memory, which is kept. MPI demands that an all-gather
//! is in place for all or for none, so nodes find out when they meet whether all of them can.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::ffi::c_int;

use celerity_cdag::NodeId;
use celerity_cpd::Members;
use celerity_executor::{
    BasePtr, CollectiveExchange, CommEvent, CommunicationError, MemoryPart, pack, unpack,
};
use celerity_regions::Region;
use mpi::ffi::{MPI_Request, MPI_Status};

use crate::error::MpiError;
use crate::matching::PeerMistake;
use crate::meeting::{Agreement, Purpose};
use crate::placing::{Counted, MOST, Placing, lengths, pointer};
use crate::raw::collective::{ProcessParts, in_place};
use crate::raw::{self, Comm, TypedMemory};
use crate::segments::{MpiCollective, Rounds, Segments};

/// Blocks of dense memory that are kept.
const POOLED: usize = 8;

/// All that has not ended.
pub(crate) struct OpenExchanges {
    /// The node, and nodes of the cluster.
    place: (NodeId, usize),
    /// The node's rank among the members, and their number.
    rank: (usize, usize),
    comm: Comm,
    /// Bytes that a node sends or receives at a time, at most.
    limit: u64,
    /// What this node has come to and not begun, in order.
    waiting: VecDeque<Waiting>,
    slots: Vec<Option<UnderWay>>,
    free: Vec<usize>,
    /// The slot of the operation that has rounds to begin; no other begins before them.
    cut: Option<usize>,
    /// Operations that this node has begun.
    begun: u64,
    bytes: u64,
    pool: Vec<Vec<u8>>,
}

/// An operation that this node has come to.
struct Waiting {
    part: Part,
    meeting: Agreement,
    agreed: bool,
}

/// This node's part in an operation, as far as it is known without the others.
pub(crate) struct Part {
    exchange: CollectiveExchange,
    segments: Segments,
    rounds: Rounds,
    /// Where the segments of an all-gather lie, if its own is among them and MPI can leave it there.
    in_place: Option<Placing>,
}

/// An operation that has begun.
struct UnderWay {
    exchange: CollectiveExchange,
    received: Vec<Region>,
    call: MpiCollective,
    /// Whether an all-gather finds the node's own segment among the received ones.
    own_in_place: bool,
    rounds: Rounds,
    /// Rounds that have begun; all but the last of them have ended.
    begun: usize,
    from: Counted,
    to: Counted,
    /// What MPI still reads: the lists of the round that has begun last.
    kept: Option<[ProcessParts; 2]>,
    /// Where what is received goes first, if not to its place.
    dense: Option<Vec<u8>>,
    sent_dense: Option<Vec<u8>>,
    /// What this node sends to itself in rounds that it has no part in, and where that comes.
    idle: Vec<u8>,
    fault: Option<c_int>,
}

/// What has come of the end of a round.
pub(crate) enum Ended {
    /// The next one has begun.
    Round(MPI_Request),
    /// It was the last.
    Operation(CommEvent),
}

/// One side of an operation, and its dense memory if it needs that.
struct ExchangeEnd {
    placing: Placing,
    dense: Option<Vec<u8>>,
}

impl Part {
    /// What the node meets the others for.
    pub(crate) fn purpose(&self) -> Purpose {
        Purpose::collective(&self.exchange, self.in_place.is_some())
    }
}

impl OpenExchanges {
    /// None yet, of a node among so many and these members, with a communicator of theirs for nothing else.
    ///
    /// # Panics
    /// If the node is no member.
    pub(crate) fn new(place: (NodeId, usize), members: &Members, comm: Comm, limit: u64) -> Self {
        let rank = members.rank(place.0).expect("the node is a member");
        Self {
            place,
            rank: (rank, members.count(place.1)),
            comm,
            limit: limit.min(MOST),
            waiting: VecDeque::new(),
            slots: Vec::new(),
            free: Vec::new(),
            cut: None,
            begun: 0,
            bytes: 0,
            pool: Vec::new(),
        }
    }

    /// Bytes of all operations that have begun.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many operations this node has begun.
    pub(crate) fn begun(&self) -> u64 {
        self.begun
    }

    /// The number of the operation that this node comes to next.
    pub(crate) fn next(&self) -> u64 {
        self.begun + self.waiting.len() as u64
    }

    /// What this node has to do in an operation.
    pub(crate) fn part(&self, exchange: CollectiveExchange) -> Part {
        let (node, nodes) = self.place;
        let CollectiveExchange { collective, elem_size, sources, targets, .. } = &exchange;
        let rounds = Rounds::new(collective, *elem_size, nodes, self.limit);
        let segments = Segments::new(collective, node, nodes);
        let all = || sources.iter().chain(targets).cloned().collect::<Vec<_>>();
        let in_place = match segments.call {
            MpiCollective::AllGather => in_place()
                .and_then(|_| Placing::in_memory(&all(), &segments.received, *elem_size, rounds)),
            _ => None,
        };
        Part { exchange, segments, rounds, in_place }
    }

    /// Comes to it; the node has joined a meeting for it.
    pub(crate) fn come(&mut self, part: Part, meeting: Agreement) {
        self.waiting.push_back(Waiting { part, meeting, agreed: false });
    }

    /// All members have come to an operation.
    ///
    /// # Errors
    /// If it is not the same one.
    pub(crate) fn met(&mut self, number: u64) -> Result<(), PeerMistake> {
        let at = usize::try_from(number - self.begun).expect("few operations are open");
        let waiting = &mut self.waiting[at];
        waiting.meeting.outcome()?;
        waiting.agreed = true;
        Ok(())
    }

    /// Whether the next operation may begin.
    pub(crate) fn may_begin(&self) -> bool {
        self.cut.is_none() && self.waiting.front().is_some_and(|next| next.agreed)
    }

    /// Begins the next operation, which all members have come to. Returns its slot, and the request of
    /// its first round.
    pub(crate) fn begin(&mut self) -> Result<(usize, MPI_Request), MpiError> {
        let Waiting { part, meeting, .. } = self.waiting.pop_front().expect("it may begin");
        self.begun += 1;
        let under_way = self.prepare(part, meeting.is_in_place_for_all())?;
        self.bytes += under_way.exchange.bytes();
        let slot = self.free.pop().unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[slot] = Some(under_way);
        Ok((slot, self.begin_round(slot)?))
    }

    /// Sees to the memory of an operation.
    fn prepare(&mut self, part: Part, all_in_place: bool) -> Result<UnderWay, MpiError> {
        let Part { exchange, segments: Segments { call, sent, received }, rounds, in_place } = part;
        let sources = self.side(&exchange.sources, &sent, &exchange, rounds);
        let in_place = in_place.filter(|_| all_in_place);
        let own_in_place = in_place.is_some();
        let targets = match (in_place, call) {
            (Some(placing), _) => ExchangeEnd { placing, dense: None },
            // What is sent may not lie in what is received.
            (None, MpiCollective::AllGather) => self.dense(&received, exchange.elem_size, rounds),
            (None, _) => self.side(&exchange.targets, &received, &exchange, rounds),
        };
        if let Some(dense) = &sources.dense {
            fill(&exchange, &sent, &sources.placing, rounds, dense);
        }
        Ok(UnderWay {
            exchange,
            received,
            call,
            own_in_place,
            rounds,
            begun: 0,
            from: Counted::new(sources.placing)?,
            to: Counted::new(targets.placing)?,
            kept: None,
            dense: targets.dense,
            sent_dense: sources.dense,
            idle: Vec::new(),
            fault: None,
        })
    }

    /// Begins the next round of an operation.
    ///
    /// In an all-to-all, a node that has nothing to send and nothing to receive sends itself a byte:
    /// with Open MPI 4.1.4, where such a node has nothing at all to do, operations that come later hang
    /// or report truncated messages.
    fn begin_round(&mut self, slot: usize) -> Result<MPI_Request, MpiError> {
        let under_way = self.slots[slot].as_mut().expect("a slot with rounds is taken");
        let UnderWay { call, own_in_place, rounds, begun, from, to, kept, idle, .. } = under_way;
        let [from, to] = kept.insert([from, to].map(|side| side.pieces(*rounds, *begun)));
        if *call == MpiCollective::AllToAll && from.are_empty() && to.are_empty() {
            idle.resize(2, 0);
            let base = idle.as_mut_ptr();
            let (me, members) = self.rank;
            *from = ProcessParts::of_one_byte(base, me, members);
            *to = ProcessParts::of_one_byte(base.wrapping_add(1), me, members);
        }
        *begun += 1;
        self.cut = (*begun < rounds.count).then_some(slot);
        // SAFETY: the node's caller has promised its memory until it is told; other memory and
        // lists stay in the slot until the request has completed, or for ever. All nodes have met for
        // the same operation, and so cut it alike.
        unsafe { start(self.comm, *call, *own_in_place, from, to) }
    }

    /// A round of an operation has ended. If it is not the last, the next begins, even if this one has
    /// failed: others begin it, too.
    pub(crate) fn ended(&mut self, slot: usize, status: &MPI_Status) -> Result<Ended, PeerMistake> {
        let under_way = self.slots[slot].as_mut().expect("a slot with requests is taken");
        if status.MPI_ERROR != 0 {
            under_way.fault = Some(status.MPI_ERROR);
        }
        if under_way.begun < under_way.rounds.count {
            return Ok(Ended::Round(self.begin_round(slot)?));
        }
        let under_way = self.slots[slot].take().expect("taken, as just seen");
        self.free.push(slot);
        self.bytes -= under_way.exchange.bytes();
        let transfer = under_way.exchange.transfer;
        if under_way.fault.is_none() {
            under_way.take_over(self.place.0);
        }
        let UnderWay { from, to, dense, sent_dense, fault, .. } = under_way;
        from.free()?;
        to.free()?;
        if let Some(code) = fault {
            let what =
                format!("the collective operation {transfer} failed: {}", raw::describe(code));
            return Err(CommunicationError::Network { what }.into());
        }
        for spent in [dense, sent_dense].into_iter().flatten() {
            if self.pool.len() < POOLED {
                self.pool.push(spent);
            }
        }
        Ok(Ended::Operation(CommEvent::Exchanged { transfer }))
    }

    /// Where the segments lie that `parts` hold.
    fn side(
        &mut self,
        parts: &[MemoryPart],
        segments: &[Region],
        exchange: &CollectiveExchange,
        rounds: Rounds,
    ) -> ExchangeEnd {
        let found = Placing::in_memory(parts, segments, exchange.elem_size, rounds);
        found.map_or_else(
            || self.dense(segments, exchange.elem_size, rounds),
            |placing| ExchangeEnd { placing, dense: None },
        )
    }

    /// Dense memory for segments. Where there is one round they lie one behind the other; otherwise
    /// the parts of each round do.
    fn dense(&mut self, segments: &[Region], elem_size: u64, rounds: Rounds) -> ExchangeEnd {
        let lengths = lengths(segments, elem_size);
        let (offsets, pitch, total) = match rounds.count {
            1 => {
                let start = |at: &mut u64, length: &u64| Some(std::mem::replace(at, *at + length));
                (lengths.iter().scan(0, start).collect(), 0, lengths.iter().sum())
            }
            count => {
                let offsets = (0..lengths.len() as u64).map(|at| at * rounds.bytes).collect();
                let pitch = lengths.len() as u64 * rounds.bytes;
                (offsets, pitch, pitch * count as u64)
            }
        };
        let mut dense = self.pool.pop().unwrap_or_default();
        // At least a byte, so that it has an address that means nothing else.
        dense.resize(usize::try_from(total.max(1)).expect("it is in memory"), 0);
        let placing = Placing { base: dense.as_mut_ptr(), offsets, lengths, pitch, unit: 1 };
        ExchangeEnd { placing, dense: Some(dense) }
    }
}

/// # Safety
/// As for the operations of [`Comm`].
unsafe fn start(
    comm: Comm,
    call: MpiCollective,
    own_in_place: bool,
    from: &ProcessParts,
    to: &ProcessParts,
) -> Result<MPI_Request, MpiError> {
    // SAFETY: passed on.
    unsafe {
        match call {
            MpiCollective::AllGather => {
                let own = in_place().filter(|_| own_in_place);
                let own = own.map(|address| TypedMemory { address, ..from.only() });
                comm.start_all_gather(own.unwrap_or_else(|| from.only()), to)
            }
            MpiCollective::Broadcast(root) => {
                let all = if from.counts.is_empty() { to } else { from };
                comm.start_broadcast(all.only(), root)
            }
            MpiCollective::Gather(root) => comm.start_gather_to(from.only(), to, root),
            MpiCollective::Scatter(root) => comm.start_scatter(from, to.only(), root),
            MpiCollective::AllToAll => comm.start_all_to_all(from, to),
        }
    }
}

impl UnderWay {
    /// Puts what has come through dense memory in its place.
    fn take_over(&self, node: NodeId) {
        let Some(dense) = &self.dense else { return };
        let CollectiveExchange { collective, targets, elem_size, .. } = &self.exchange;
        let own = collective.provided_by(node);
        for (at, region) in self.received.iter().enumerate() {
            if *region == *own {
                continue;
            }
            let mut joined = Vec::new();
            let source = self.to.placing.segment(at, self.rounds, dense, &mut joined);
            // SAFETY: the memory holds the segment, and nobody else has it; targets are the node's
            // promise until it is told.
            unsafe { unpack(targets, region, *elem_size, source) };
        }
    }
}

/// Copies what is sent to dense memory.
fn fill(
    exchange: &CollectiveExchange,
    segments: &[Region],
    placing: &Placing,
    rounds: Rounds,
    dense: &[u8],
) {
    let (sources, elem_size) = (&exchange.sources, exchange.elem_size);
    for (at, region) in segments.iter().enumerate().filter(|(_, region)| !region.is_empty()) {
        let length = usize::try_from(placing.lengths[at]).expect("it is in memory");
        if rounds.count == 1 {
            let target = placing.address(at, 0);
            debug_assert!(placing.offsets[at] + placing.lengths[at] <= dense.len() as u64);
            // SAFETY: sources are the node's promise until it is told; the dense memory has room
            // for all segments, and nobody else has it.
            unsafe { pack(sources, region, elem_size, pointer(target)) };
            continue;
        }
        let mut joined = vec![0_u8; length];
        // SAFETY: as above, for memory of this size.
        unsafe { pack(sources, region, elem_size, BasePtr::of_mut_slice(&mut joined)) };
        for round in 0..rounds.count {
            let (start, length) = rounds.part(round, placing.lengths[at]);
            let [start, length] =
                [start, length].map(|bytes| usize::try_from(bytes).expect("small"));
            let part = joined[start..start + length].as_ptr();
            // SAFETY: the part of each round has room where it is placed.
            unsafe { part.copy_to_nonoverlapping(placing.address(at, round), length) };
        }
    }
}
