//! Small messages: receives posted ahead, and buffers for what is being sent.
//! Knows lengths and tags, not contents.
#![allow(unsafe_code)]

use std::ffi::c_int;

use mpi::ffi::{MPI_Request, MPI_Status};

use crate::error::MpiError;
use crate::raw::{self, Comm, TypedMemory};

/// A ring of receives for one kind of message, from anybody.
///
/// MPI fills them in the order in which they were posted, so the oldest is the
/// only one to look at, and messages of one sender come out in order.
//
// No persistent requests: Open MPI 4.1 frees those whose message is too long.
pub(crate) struct Mailbox {
    comm: Comm,
    tag: c_int,
    /// Bytes per message, at most.
    len: usize,
    /// One message per request. MPI writes it, so only addresses into it are used.
    memory: Vec<u8>,
    base: *mut u8,
    requests: Vec<MPI_Request>,
    oldest: usize,
}

impl Mailbox {
    /// Posts so many receives, of messages up to so many bytes.
    pub(crate) fn open(comm: Comm, tag: c_int, len: usize, slots: usize) -> Result<Self, MpiError> {
        let mut memory = vec![0; len * slots];
        let base = memory.as_mut_ptr();
        let requests = Vec::with_capacity(slots);
        let mut mailbox = Self { comm, tag, len, memory, base, requests, oldest: 0 };
        for slot in 0..slots {
            let request = mailbox.post(slot)?;
            mailbox.requests.push(request);
        }
        Ok(mailbox)
    }

    /// The request that ends next.
    pub(crate) fn oldest(&self) -> MPI_Request {
        self.requests[self.oldest]
    }

    /// What the oldest request has brought.
    pub(crate) fn read(&self, status: &MPI_Status) -> Result<&[u8], MpiError> {
        let len = raw::received_bytes(status, raw::byte())?.min(self.len);
        // SAFETY: the slot is inside the memory; its request has completed and is
        // not posted again while the borrow lasts.
        Ok(unsafe { std::slice::from_raw_parts(self.address(self.oldest), len) })
    }

    /// Posts the oldest receive again.
    pub(crate) fn advance(&mut self) -> Result<(), MpiError> {
        self.requests[self.oldest] = self.post(self.oldest)?;
        self.oldest = (self.oldest + 1) % self.requests.len();
        Ok(())
    }

    /// Takes the receives back.
    pub(crate) fn close(&mut self) -> Result<(), MpiError> {
        for request in self.requests.drain(..) {
            // SAFETY: all of them are active between calls.
            unsafe { raw::cancel(request)? };
        }
        self.memory = Vec::new();
        Ok(())
    }

    fn post(&self, slot: usize) -> Result<MPI_Request, MpiError> {
        let span = TypedMemory::of_bytes(self.address(slot), self.len);
        // SAFETY: the memory is read after completion only, and lives until the
        // request has been cancelled, or for ever.
        unsafe { self.comm.receive_any(span, self.tag) }
    }

    fn address(&self, slot: usize) -> *mut u8 {
        self.base.wrapping_add(slot * self.len)
    }
}

/// Messages that are being sent.
#[derive(Default)]
pub(crate) struct Outbox {
    slots: Vec<Vec<u8>>,
    free: Vec<usize>,
}

impl Outbox {
    /// Starts to send a copy of `bytes`. The slot is to be released when the
    /// request has completed.
    pub(crate) fn send(
        &mut self,
        comm: Comm,
        to: usize,
        tag: c_int,
        bytes: &[u8],
    ) -> Result<(usize, MPI_Request), MpiError> {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Vec::new());
            self.slots.len() - 1
        });
        let copy = &mut self.slots[slot];
        copy.clear();
        copy.extend(bytes);
        let span = TypedMemory::of_bytes(copy.as_mut_ptr(), copy.len());
        // SAFETY: the slot is left alone until it is released, and its heap
        // memory does not move with the table.
        let request = unsafe { comm.send(span, to, tag)? };
        Ok((slot, request))
    }

    pub(crate) fn release(&mut self, slot: usize) {
        self.free.push(slot);
    }
}
