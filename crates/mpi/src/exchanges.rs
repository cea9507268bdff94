//! Collective operations of one node, from its coming to the end of its part. Owns their order: nodes
//! [meet](crate::meeting) before each, and begin those that they have met for in one order. Knows no
//! aborts; what it does when the node leaves, `leaving` says.
//!
//! A node's part is in place where that is possible: each segment lies in one piece, and all of them
//! in one array. Otherwise it goes through dense memory, which is kept.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::ffi::c_int;

use celerity_cdag::NodeId;
use celerity_executor::{
    BasePtr, CollectiveExchange, CommEvent, CommunicationError, MemoryPart, find_in, pack, unpack,
};
use celerity_regions::Region;
use mpi::ffi::{MPI_Datatype, MPI_Request, MPI_Status};

use crate::error::MpiError;
use crate::layout::Layout;
use crate::matching::Fault;
use crate::meeting::Meeting;
use crate::raw::collective::{Pieces, in_place};
use crate::raw::{self, Comm, Span};
use crate::segments::{Call, Rounds, Segments};

/// Blocks of dense memory that are kept.
const POOLED: usize = 8;

/// What MPI counts up to.
const MOST: u64 = c_int::MAX as u64;

/// All that has not ended.
pub(crate) struct Exchanges {
    place: (NodeId, usize),
    comm: Comm,
    /// Bytes that a node sends or receives at a time, at most.
    limit: u64,
    /// What this node has come to and not begun, in order.
    waiting: VecDeque<Waiting>,
    slots: Vec<Option<UnderWay>>,
    free: Vec<usize>,
    /// Operations that this node has begun.
    begun: u64,
    bytes: u64,
    pool: Vec<Vec<u8>>,
}

/// An operation that this node has come to.
struct Waiting {
    exchange: CollectiveExchange,
    meeting: Meeting,
    agreed: bool,
}

/// An operation that has begun.
struct UnderWay {
    exchange: CollectiveExchange,
    received: Vec<Region>,
    /// Where what is received goes first, if not to its place.
    dense: Option<Vec<u8>>,
    /// Of one segment in the dense memory: bytes between its parts.
    placing: Placing,
    /// What MPI still reads.
    kept: Vec<Pieces>,
    sent_dense: Option<Vec<u8>>,
    datatypes: Vec<MPI_Datatype>,
    open: usize,
    fault: Option<c_int>,
}

/// Where the segments of one side lie: the part of segment `k` for round `r` begins
/// `offsets[k] + r · pitch` bytes behind the base.
#[derive(Clone, Debug)]
struct Placing {
    base: *mut u8,
    offsets: Vec<u64>,
    lengths: Vec<u64>,
    pitch: u64,
    /// Bytes per item of what is counted.
    unit: u64,
}

/// One side of an operation, and its dense memory if it needs that.
struct Side {
    placing: Placing,
    dense: Option<Vec<u8>>,
}

impl Exchanges {
    /// None yet, of a node among so many, with a communicator for nothing else.
    pub(crate) fn new(place: (NodeId, usize), comm: Comm, limit: u64) -> Self {
        Self {
            place,
            comm,
            limit: limit.min(MOST),
            waiting: VecDeque::new(),
            slots: Vec::new(),
            free: Vec::new(),
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

    /// Comes to it; the node has joined a meeting for it.
    pub(crate) fn come(&mut self, exchange: CollectiveExchange, meeting: Meeting) {
        self.waiting.push_back(Waiting { exchange, meeting, agreed: false });
    }

    /// All nodes have come to an operation.
    ///
    /// # Errors
    /// If it is not the same one.
    pub(crate) fn met(&mut self, number: u64) -> Result<(), CommunicationError> {
        let at = usize::try_from(number - self.begun).expect("few operations are open");
        let waiting = &mut self.waiting[at];
        waiting.meeting.outcome()?;
        waiting.agreed = true;
        Ok(())
    }

    /// Whether the next operation may begin.
    pub(crate) fn may_begin(&self) -> bool {
        self.waiting.front().is_some_and(|next| next.agreed)
    }

    /// Begins the next operation, which all nodes have come to; `started` is given its slot and each
    /// request.
    pub(crate) fn begin(
        &mut self,
        mut started: impl FnMut(usize, MPI_Request),
    ) -> Result<(), MpiError> {
        let next = self.waiting.pop_front().expect("the node has come to it");
        let exchange = next.exchange;
        self.begun += 1;
        let (node, nodes) = self.place;
        let rounds = Rounds::new(&exchange.collective, exchange.elem_size, nodes, self.limit);
        let Segments { call, sent, received } = Segments::new(&exchange.collective, node, nodes);
        let sources = self.side(&exchange.sources, &sent, &exchange, rounds);
        let (targets, own_in_place) = self.targets(call, &received, &exchange, rounds);
        if let Some(dense) = &sources.dense {
            fill(&exchange, &sent, &sources.placing, rounds, dense);
        }
        let mut under_way = UnderWay {
            received,
            dense: targets.dense,
            placing: targets.placing,
            kept: Vec::new(),
            sent_dense: sources.dense,
            datatypes: Vec::new(),
            open: rounds.count,
            fault: None,
            exchange,
        };
        self.bytes += under_way.exchange.bytes();
        let from = Counted::new(&sources.placing, &mut under_way.datatypes)?;
        let to = Counted::new(&under_way.placing, &mut under_way.datatypes)?;
        let slot = self.free.pop().unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        for round in 0..rounds.count {
            let (from, to) = (from.pieces(rounds, round), to.pieces(rounds, round));
            // SAFETY: the node's caller has promised its memory until it is told; dense memory and
            // lists stay in the slot until the last request has completed, or for ever. All nodes
            // have met for the same operation, and so cut it alike.
            let request = unsafe { self.start(call, own_in_place, &from, &to)? };
            under_way.kept.extend([from, to]);
            started(slot, request);
        }
        self.slots[slot] = Some(under_way);
        Ok(())
    }

    /// A part of an operation has ended. Returns what there is to tell after the last.
    pub(crate) fn ended(
        &mut self,
        slot: usize,
        status: &MPI_Status,
    ) -> Result<Option<CommEvent>, Fault> {
        let under_way = self.slots[slot].as_mut().expect("a slot with requests is taken");
        if status.MPI_ERROR != 0 {
            under_way.fault = Some(status.MPI_ERROR);
        }
        under_way.open -= 1;
        if under_way.open > 0 {
            return Ok(None);
        }
        let mut under_way = self.slots[slot].take().expect("taken, as just seen");
        self.free.push(slot);
        self.bytes -= under_way.exchange.bytes();
        under_way.datatypes.drain(..).try_for_each(raw::free_datatype)?;
        let transfer = under_way.exchange.transfer;
        if let Some(code) = under_way.fault {
            let what =
                format!("the collective operation {transfer} failed: {}", raw::describe(code));
            return Err(CommunicationError::Network { what }.into());
        }
        under_way.take_over(self.place, self.limit);
        for spent in [under_way.dense, under_way.sent_dense].into_iter().flatten() {
            if self.pool.len() < POOLED {
                self.pool.push(spent);
            }
        }
        Ok(Some(CommEvent::Exchanged { transfer }))
    }

    /// Where the segments lie that `parts` hold.
    fn side(
        &mut self,
        parts: &[MemoryPart],
        segments: &[Region],
        exchange: &CollectiveExchange,
        rounds: Rounds,
    ) -> Side {
        let found = Placing::in_memory(parts, segments, exchange.elem_size, rounds);
        found.map_or_else(
            || self.dense(segments, exchange.elem_size, rounds),
            |placing| Side { placing, dense: None },
        )
    }

    /// The same for what is received, and whether an all-gather finds this node's own part there.
    fn targets(
        &mut self,
        call: Call,
        received: &[Region],
        exchange: &CollectiveExchange,
        rounds: Rounds,
    ) -> (Side, bool) {
        if call != Call::AllGather {
            return (self.side(&exchange.targets, received, exchange, rounds), false);
        }
        let all: Vec<_> = exchange.sources.iter().chain(&exchange.targets).cloned().collect();
        let found =
            in_place().and_then(|_| Placing::in_memory(&all, received, exchange.elem_size, rounds));
        match found {
            Some(placing) => (Side { placing, dense: None }, true),
            None => (self.dense(received, exchange.elem_size, rounds), false),
        }
    }

    /// Dense memory for segments. Where there is one round they lie one behind the other; otherwise
    /// the parts of each round do.
    fn dense(&mut self, segments: &[Region], elem_size: u64, rounds: Rounds) -> Side {
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
        dense.resize(usize::try_from(total).expect("it is in memory"), 0);
        let placing = Placing { base: dense.as_mut_ptr(), offsets, lengths, pitch, unit: 1 };
        Side { placing, dense: Some(dense) }
    }

    /// # Safety
    /// As for the operations of [`Comm`].
    unsafe fn start(
        &self,
        call: Call,
        own_in_place: bool,
        from: &Pieces,
        to: &Pieces,
    ) -> Result<MPI_Request, MpiError> {
        let comm = self.comm;
        // SAFETY: passed on.
        unsafe {
            match call {
                Call::AllGather => {
                    let own = in_place().filter(|_| own_in_place);
                    let own = own.map(|address| Span { address, ..from.only() });
                    comm.start_all_gather(own.unwrap_or_else(|| from.only()), to)
                }
                Call::Broadcast(root) => {
                    let all = if from.counts.is_empty() { to } else { from };
                    comm.start_broadcast(all.only(), root)
                }
                Call::Gather(root) => comm.start_gather_to(from.only(), to, root),
                Call::Scatter(root) => comm.start_scatter(from, to.only(), root),
                Call::AllToAll => comm.start_all_to_all(from, to),
            }
        }
    }
}

impl UnderWay {
    /// Puts what has come through dense memory in its place.
    fn take_over(&mut self, (node, nodes): (NodeId, usize), limit: u64) {
        let Some(dense) = &self.dense else { return };
        let CollectiveExchange { collective, targets, elem_size, .. } = &self.exchange;
        let rounds = Rounds::new(collective, *elem_size, nodes, limit);
        let own = collective.provided_by(node);
        for (at, region) in self.received.iter().enumerate() {
            if *region == *own {
                continue;
            }
            let mut joined = Vec::new();
            let source = self.placing.segment(at, rounds, dense, &mut joined);
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

fn pointer(address: *mut u8) -> BasePtr {
    BasePtr::of_raw(address).expect("memory has an address")
}

fn lengths(segments: &[Region], elem_size: u64) -> Vec<u64> {
    segments.iter().map(|region| region.volume().saturating_mul(elem_size)).collect()
}

impl Placing {
    /// Of segments that lie in one piece each, all in one array, near enough to be counted.
    fn in_memory(
        parts: &[MemoryPart],
        segments: &[Region],
        elem_size: u64,
        rounds: Rounds,
    ) -> Option<Self> {
        let lengths = lengths(segments, elem_size);
        let mut found = Vec::with_capacity(segments.len());
        for region in segments {
            found.push(if region.is_empty() { None } else { Some(run(parts, region, elem_size)?) });
        }
        let some = || found.iter().flatten();
        let Some((array, _)) = some().next() else {
            let offsets = vec![0; segments.len()];
            let base = BasePtr::dangling().as_ptr();
            return Some(Self { base, offsets, lengths, pitch: rounds.bytes, unit: 1 });
        };
        if some().any(|(other, _)| other != array) {
            return None;
        }
        let first = some().map(|(_, at)| *at).min().unwrap_or(0);
        let offsets: Vec<_> = found.iter().map(|at| at.map_or(0, |(_, at)| at - first)).collect();
        let span = offsets.iter().copied().max().unwrap_or(0);
        let whole = rounds.bytes.is_multiple_of(elem_size) || rounds.count == 1;
        let unit = if span <= MOST { 1 } else { elem_size };
        let fits = span / unit <= MOST && unit <= MOST && (unit == 1 || whole);
        let first = usize::try_from(first).expect("it is in memory");
        let base = array.as_ptr().wrapping_add(first);
        fits.then_some(Self { base, offsets, lengths, pitch: rounds.bytes, unit })
    }

    /// Where a segment's part of a round begins.
    fn address(&self, segment: usize, round: usize) -> *mut u8 {
        let at = self.offsets[segment] + round as u64 * self.pitch;
        self.base.wrapping_add(usize::try_from(at).expect("it is in memory"))
    }

    /// A whole segment in dense memory; `joined` is room for one that lies in parts.
    fn segment(&self, at: usize, rounds: Rounds, dense: &[u8], joined: &mut Vec<u8>) -> BasePtr {
        if rounds.count == 1 {
            return pointer(self.address(at, 0));
        }
        for round in 0..rounds.count {
            let (_, length) = rounds.part(round, self.lengths[at]);
            let start = self.offsets[at] + round as u64 * self.pitch;
            let [start, length] =
                [start, length].map(|bytes| usize::try_from(bytes).expect("small"));
            joined.extend_from_slice(&dense[start..start + length]);
        }
        BasePtr::of_slice(joined)
    }
}

/// The array that a region lies in as one piece, in the order in which it is packed, and how many bytes
/// into the array it begins.
fn run(parts: &[MemoryPart], region: &Region, elem_size: u64) -> Option<(BasePtr, u64)> {
    let (mut start, mut end) = (None, 0);
    for elements in region.boxes() {
        let (memory, found) = find_in(parts, elements).next()?;
        let (layout, first) = Layout::new(&memory.extent, &found, elem_size);
        let first = first as u64;
        let goes_on = start.is_none_or(|(base, _)| base == memory.base && end == first);
        if found != *elements || !layout.is_contiguous() || !goes_on {
            return None;
        }
        start.get_or_insert((memory.base, first));
        end = first + layout.run as u64;
    }
    start
}

/// Segments as MPI counts them.
struct Counted<'a> {
    placing: &'a Placing,
    datatype: MPI_Datatype,
}

impl<'a> Counted<'a> {
    fn new(placing: &'a Placing, made: &mut Vec<MPI_Datatype>) -> Result<Self, MpiError> {
        if placing.unit == 1 {
            return Ok(Self { placing, datatype: raw::byte() });
        }
        let bytes = usize::try_from(placing.unit).expect("it is counted");
        let datatype = raw::commit(raw::strided(1, (bytes, raw::byte()), 0)?)?;
        made.push(datatype);
        Ok(Self { placing, datatype })
    }

    /// What goes in one round.
    fn pieces(&self, rounds: Rounds, round: usize) -> Pieces {
        let Placing { offsets, lengths, unit, .. } = self.placing;
        let items = |bytes: u64| {
            raw::count(usize::try_from(bytes / unit).expect("rounds keep what MPI can count"))
        };
        let counts = lengths.iter().map(|length| items(rounds.part(round, *length).1)).collect();
        let displacements = offsets.iter().map(|at| items(*at)).collect();
        let back = usize::try_from(round as u64 * self.placing.pitch).expect("it is in memory");
        let base = self.placing.base.wrapping_add(back);
        Pieces { base, counts, displacements, datatype: self.datatype }
    }
}
