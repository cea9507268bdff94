//! An end of a network whose payloads begin or end in the memory of a device, or whose collective operations
//! take place there, as far as the network can tell: so that all that is checked of others is checked of these.
#![allow(unsafe_code)]

use celerity_cdag::{NodeId, TransferId};
use celerity_executor::{
    CollectiveExchange, CommEvent, Communicator, ElementArray, RunError, WirePayload,
};
use celerity_idag::{DeviceId, MemoryId, Pilot};
use celerity_tdag::TaskId;

/// Where payloads are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadEnds {
    /// Whether they begin in a device's memory.
    pub begin: bool,
    /// Whether they end in one.
    pub end: bool,
    /// Whether collective operations take place between devices.
    pub collectives: bool,
}

/// An end whose payloads are elsewhere than its user says. Windows that copy between places of this
/// process do not notice.
pub struct OnDevices<C> {
    inner: C,
    places: PayloadEnds,
}

impl<C: Communicator> OnDevices<C> {
    /// An end with payloads in these places.
    pub fn new(inner: C, places: PayloadEnds) -> Self {
        Self { inner, places }
    }
}

fn place(payload: WirePayload, on_device: bool) -> WirePayload {
    let device = MemoryId::of_device(DeviceId::from_index(0));
    WirePayload { at: if on_device { device } else { payload.at }, ..payload }
}

// SAFETY: it passes everything on.
unsafe impl<C: Communicator> Communicator for OnDevices<C> {
    fn node(&self) -> NodeId {
        self.inner.node()
    }

    fn nodes(&self) -> usize {
        self.inner.nodes()
    }

    fn send_pilot(&mut self, pilot: &Pilot, reached: u64) {
        let from_device = self.places.begin;
        self.inner.send_pilot(&Pilot { from_device, ..pilot.clone() }, reached);
    }

    fn send_note(&mut self, to: NodeId, note: &[u8]) {
        self.inner.send_note(to, note);
    }

    unsafe fn send(&mut self, to: NodeId, payload: WirePayload) {
        // SAFETY: passed on.
        unsafe { self.inner.send(to, place(payload, self.places.begin)) }
    }

    unsafe fn receive(&mut self, from: NodeId, payload: WirePayload) {
        // SAFETY: passed on.
        unsafe { self.inner.receive(from, place(payload, self.places.end)) }
    }

    unsafe fn scatter(&mut self, from: NodeId, parts: &[(ElementArray, WirePayload)]) {
        // SAFETY: passed on.
        unsafe { self.inner.scatter(from, parts) }
    }

    unsafe fn exchange(&mut self, exchange: CollectiveExchange) {
        let device = MemoryId::of_device(DeviceId::from_index(0));
        let at = if self.places.collectives { device } else { exchange.at };
        // SAFETY: passed on.
        unsafe { self.inner.exchange(CollectiveExchange { at, ..exchange }) }
    }

    fn absent(&self, transfer: TransferId) -> Vec<NodeId> {
        self.inner.absent(transfer)
    }

    fn enter_barrier(&mut self, epoch: TaskId) {
        self.inner.enter_barrier(epoch);
    }

    fn abort(&mut self, error: &RunError) {
        self.inner.abort(error);
    }

    fn poll(&mut self) -> Option<CommEvent> {
        match self.inner.poll()? {
            CommEvent::Pilot { from, pilot, reached } => {
                assert_eq!(pilot.from_device, self.places.begin, "pilots arrive as they were");
                let pilot = Pilot { from_device: false, ..pilot };
                Some(CommEvent::Pilot { from, pilot, reached })
            }
            event => Some(event),
        }
    }

    fn needs_polling(&self) -> bool {
        self.inner.needs_polling()
    }

    fn bytes_under_way(&self) -> u64 {
        self.inner.bytes_under_way()
    }

    fn wakes(&self) -> bool {
        self.inner.wakes()
    }

    fn sends_ahead(&self) -> bool {
        self.inner.sends_ahead()
    }

    fn is_quiet(&self) -> bool {
        self.inner.is_quiet()
    }
}
