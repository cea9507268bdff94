//! Payloads under way: straight from and into strided memory, or through a dense
//! copy where the runs are too short for MPI to be fast. Knows no windows.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::c_int;

use celerity_cdag::NodeId;
use celerity_executor::{
    BasePtr, CommunicationError, ElementArray, WirePayload, copy_elements, cut_elements,
};
use mpi::ffi::{MPI_Datatype, MPI_Request, MPI_Status};

use crate::error::MpiError;
use crate::layout::StridedBytes;
use crate::matching::{PeerMistake, Ready};
use crate::raw::{self, Comm, TypedMemory};

/// Runs shorter than this many bytes are copied together first, since MPI walks a
/// derived datatype run by run. An estimate that nobody has measured yet.
const DIRECT_FROM: usize = 256;

/// Derived datatypes kept for later payloads of the same shape; programs use a
/// handful.
const DATATYPES: usize = 64;

/// Buffers kept for later payloads that need one.
const POOLED: usize = 16;

/// Which way a payload goes, seen from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Out,
    In,
}

/// All payloads under way.
pub(crate) struct Transfers {
    comm: Comm,
    /// Bytes per message, at most.
    limit: u64,
    slots: Vec<Option<Transfer>>,
    free: Vec<usize>,
    /// Of all payloads in slots.
    bytes: u64,
    datatypes: HashMap<StridedBytes, MPI_Datatype>,
    pool: Vec<Vec<u8>>,
}

/// A payload under way.
struct Transfer {
    ready: Ready,
    way: Way,
    /// Messages that have not completed.
    open: usize,
    /// Bytes received.
    bytes: u64,
    fault: Option<c_int>,
    /// The dense copy, if there is one.
    copy: Option<Vec<u8>>,
}

/// A payload whose messages have all completed.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) ready: Ready,
    pub(crate) way: Way,
    pub(crate) outcome: Result<(), PeerMistake>,
}

impl Transfers {
    /// None yet. No message will have more than `limit` bytes.
    pub(crate) fn new(comm: Comm, limit: u64) -> Self {
        let (slots, free, pool) = (Vec::new(), Vec::new(), Vec::new());
        Self { comm, limit, slots, free, bytes: 0, datatypes: HashMap::new(), pool }
    }

    /// Starts a payload as messages with one tag, which MPI keeps in order.
    /// Returns its slot; `started` is given each request.
    ///
    /// # Safety
    /// Its memory is as the communicator's caller promises.
    pub(crate) unsafe fn start(
        &mut self,
        way: Way,
        ready: Ready,
        tag: c_int,
        mut started: impl FnMut(usize, MPI_Request),
    ) -> Result<usize, MpiError> {
        let WirePayload { elements, elem_size, .. } = ready.payload;
        let (memory, copy) = self.place(way, &ready.payload);
        let slot = self.free.pop().unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        let pieces = cut_elements(&elements, elem_size, self.limit);
        let open = pieces.len();
        self.bytes += length(&ready.payload);
        self.slots[slot] = Some(Transfer { ready, way, open, bytes: 0, fault: None, copy });
        for piece in &pieces {
            let span = self.span(&memory, piece, elem_size)?;
            let peer = ready.peer.slot();
            // SAFETY: the memory is the caller's or the copy's, which lives in
            // its slot until the last request has completed.
            let request = unsafe {
                match way {
                    Way::Out => self.comm.send(span, peer, tag)?,
                    Way::In => self.comm.receive(span, peer, tag)?,
                }
            };
            started(slot, request);
        }
        Ok(open)
    }

    /// Bytes of all payloads under way.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whose message a request of this slot is.
    pub(crate) fn peer(&self, slot: usize) -> NodeId {
        self.slots[slot].as_ref().expect("a slot with requests is taken").ready.peer
    }

    /// One message of a payload has completed. Returns the payload with the last.
    pub(crate) fn completed(
        &mut self,
        slot: usize,
        status: &MPI_Status,
        node: NodeId,
    ) -> Result<Option<Done>, MpiError> {
        let transfer = self.slots[slot].as_mut().expect("a slot with requests is taken");
        if status.MPI_ERROR != 0 {
            transfer.fault = Some(status.MPI_ERROR);
        } else if transfer.way == Way::In {
            transfer.bytes += raw::received_bytes(status, raw::byte())? as u64;
        }
        transfer.open -= 1;
        if transfer.open > 0 {
            return Ok(None);
        }
        let transfer = self.slots[slot].take().expect("taken, as just seen");
        self.free.push(slot);
        self.bytes -= length(&transfer.ready.payload);
        Ok(Some(self.finish(transfer, node)))
    }

    /// Gives what MPI has made back to it.
    pub(crate) fn close(&mut self) -> Result<(), MpiError> {
        self.datatypes.drain().try_for_each(|(_, datatype)| raw::free_datatype(datatype))
    }

    fn finish(&mut self, transfer: Transfer, node: NodeId) -> Done {
        let outcome = transfer.outcome(node);
        let Transfer { ready, way, copy, .. } = transfer;
        if let Some(mut copy) = copy {
            if way == Way::In && outcome.is_ok() {
                let WirePayload { memory, elements, elem_size, .. } = ready.payload;
                let source = dense(&mut copy, &ready.payload);
                // SAFETY: the copy holds all elements; the target is the
                // caller's promise until it is told.
                unsafe { copy_elements(source, memory, &elements, elem_size) };
            }
            if self.pool.len() < POOLED {
                self.pool.push(copy);
            }
        }
        Done { ready, way, outcome }
    }

    /// Where the messages lie: in the payload's memory or in a dense copy.
    fn place(&mut self, way: Way, payload: &WirePayload) -> (ElementArray, Option<Vec<u8>>) {
        let WirePayload { memory, elements, elem_size, .. } = *payload;
        let (layout, _) = StridedBytes::new(&memory.extent, &elements, elem_size);
        if layout.is_contiguous() || layout.run >= DIRECT_FROM {
            return (memory, None);
        }
        let len = usize::try_from(length(payload)).expect("it is in memory");
        let mut copy = self.pool.pop().unwrap_or_default();
        copy.resize(len, 0);
        let target = dense(&mut copy, payload);
        if way == Way::Out {
            // SAFETY: the source is the caller's promise; the copy is large
            // enough and nobody else's.
            unsafe { copy_elements(memory, target, &elements, elem_size) };
        }
        (target, Some(copy))
    }

    fn span(
        &mut self,
        memory: &ElementArray,
        piece: &celerity_regions::Box3,
        elem_size: u64,
    ) -> Result<TypedMemory, MpiError> {
        let (layout, first) = StridedBytes::new(&memory.extent, piece, elem_size);
        let address = memory.base.as_ptr().wrapping_add(first);
        match layout.is_contiguous() {
            true => Ok(TypedMemory::of_bytes(address, layout.run)),
            false => Ok(TypedMemory { address, count: 1, datatype: self.datatype(layout)? }),
        }
    }

    fn datatype(&mut self, layout: StridedBytes) -> Result<MPI_Datatype, MpiError> {
        if let Some(known) = self.datatypes.get(&layout) {
            return Ok(*known);
        }
        if self.datatypes.len() == DATATYPES {
            self.close()?;
        }
        let StridedBytes { run, rows, steps } = layout;
        let inner = raw::strided(rows[1], (run, raw::byte()), steps[1])?;
        let made = if rows[0] == 1 {
            inner
        } else {
            let outer = raw::strided(rows[0], (1, inner), steps[0])?;
            raw::free_datatype(inner)?;
            outer
        };
        let made = raw::commit(made)?;
        self.datatypes.insert(layout, made);
        Ok(made)
    }
}

impl Transfer {
    fn outcome(&self, node: NodeId) -> Result<(), PeerMistake> {
        let message = self.ready.payload.message;
        let (from, to, expected) = (self.ready.peer, node, length(&self.ready.payload));
        let wrong_length = |received| {
            PeerMistake::from(CommunicationError::Length { from, to, message, expected, received })
        };
        match self.fault {
            Some(code) if raw::class(code) == raw::TRUNCATED => Err(wrong_length(None)),
            Some(code) => {
                let what = format!("{message} was lost: {}", raw::describe(code));
                Err(CommunicationError::Network { what }.into())
            }
            None if self.way == Way::In && self.bytes != expected => {
                Err(wrong_length(Some(self.bytes)))
            }
            None => Ok(()),
        }
    }
}

/// A payload's bytes.
fn length(payload: &WirePayload) -> u64 {
    payload.elements.volume() * payload.elem_size
}

/// A buffer that holds a payload's elements and nothing else.
fn dense(bytes: &mut [u8], payload: &WirePayload) -> ElementArray {
    ElementArray { base: BasePtr::of_mut_slice(bytes), extent: payload.elements }
}
