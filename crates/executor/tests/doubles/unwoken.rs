//! A network in memory whose driver is not woken. The names that it needs are those of who includes
//! it: the crate's own tests call them otherwise than those of its interface.

use super::{
    CollectiveExchange, CommEvent, Communicator, LocalCommunicator, NodeId, Pilot, RunError,
    TaskId, WirePayload,
};

/// An end that does not wake, so that it has to be looked at.
pub(super) struct Unwoken {
    pub(super) end: LocalCommunicator,
    /// Whether it says so at all times.
    pub(super) needs_polling: bool,
}

// SAFETY: it passes everything on.
unsafe impl Communicator for Unwoken {
    fn node(&self) -> NodeId {
        self.end.node()
    }

    fn nodes(&self) -> usize {
        self.end.nodes()
    }

    fn send_pilot(&mut self, pilot: &Pilot, reached: u64) {
        self.end.send_pilot(pilot, reached);
    }

    fn send_note(&mut self, to: NodeId, note: &[u8]) {
        self.end.send_note(to, note);
    }

    unsafe fn send(&mut self, to: NodeId, payload: WirePayload) {
        // SAFETY: passed on.
        unsafe { self.end.send(to, payload) }
    }

    unsafe fn receive(&mut self, from: NodeId, payload: WirePayload) {
        // SAFETY: passed on.
        unsafe { self.end.receive(from, payload) }
    }

    unsafe fn exchange(&mut self, exchange: CollectiveExchange) {
        // SAFETY: passed on.
        unsafe { self.end.exchange(exchange) }
    }

    fn enter_barrier(&mut self, epoch: TaskId) {
        self.end.enter_barrier(epoch);
    }

    fn abort(&mut self, error: &RunError) {
        self.end.abort(error);
    }

    fn poll(&mut self) -> Option<CommEvent> {
        self.end.poll()
    }

    fn needs_polling(&self) -> bool {
        self.needs_polling
    }

    fn wakes(&self) -> bool {
        false
    }

    fn is_quiet(&self) -> bool {
        self.end.is_quiet()
    }
}
