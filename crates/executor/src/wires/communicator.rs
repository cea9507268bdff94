//! A node's end of a network with wires to the devices of other processes: what begins in a device's memory
//! goes there by wire, and everything else by the network below. Brings together what goes out, what comes
//! in, and the copies in between.
#![allow(unsafe_code)]

use std::collections::VecDeque;

use celerity_cdag::{NodeId, TransferId};
use celerity_idag::{MessageId, Pilot};
use celerity_tdag::TaskId;

use super::assembly::Assembly;
use super::incoming::{Incoming, Way};
use super::note::{Note, is_of_wires};
use super::outgoing::{Outgoing, Packing};
use super::{Copied, CopyId, DeviceWindows, MemoryArray, Slot, WindowSize, WireCopy};
use crate::communicator::{CollectiveExchange, CommEvent, Communicator, WirePayload};
use crate::copy::ElementArray;
use crate::error::{CommunicationError, RunError};
use crate::window::IdMap;

type Outcome = Result<(), Box<CommunicationError>>;

/// One node's end of a network, with wires beside it; made by a [`Handshake`](super::Handshake).
pub struct WiredCommunicator {
    // Field order is drop order: it returns when the other nodes have dropped theirs, who have given up
    // this node's windows before, and when nothing is received in memory of `wires` any more.
    inner: Box<dyn Communicator>,
    wires: Option<Connected>,
    /// Collective operations of devices, where all nodes have them.
    assembly: Option<Assembly>,
    events: VecDeque<CommEvent>,
    /// Whether the run has been aborted.
    is_over: bool,
    /// Whether this end has failed: others may not have given up this node's windows.
    has_failed: bool,
}

/// Wires to at least one other node.
struct Connected {
    windows: Box<dyn DeviceWindows>,
    /// Ascending.
    reached: Vec<NodeId>,
    outgoing: Outgoing,
    incoming: Incoming,
    copies: IdMap<u64, Purpose>,
    next_copy: u64,
}

/// What a copy is for.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Pack { to: NodeId, message: MessageId, piece: u32, slot: Slot },
    Unpack { from: NodeId, message: MessageId, slot: Slot },
    Scatter { from: NodeId, message: MessageId },
}

impl WiredCommunicator {
    /// Wires to `reached`, if there is anybody, and collective operations; `early` is what has been heard from
    /// the network already.
    pub(super) fn new(
        inner: Box<dyn Communicator>,
        windows: Option<(Box<dyn DeviceWindows>, WindowSize)>,
        reached: Vec<NodeId>,
        assembly: Option<Assembly>,
        early: VecDeque<CommEvent>,
    ) -> Self {
        let node = inner.node();
        let wires = windows.filter(|_| !reached.is_empty()).map(|(windows, size)| Connected {
            outgoing: Outgoing::new(node, size),
            incoming: Incoming::new(node, size.slot_bytes),
            windows,
            reached,
            copies: IdMap::default(),
            next_copy: 0,
        });
        let events = VecDeque::new();
        let mut end = Self { inner, wires, assembly, events, is_over: false, has_failed: false };
        for event in early {
            let event = end.heard(event);
            end.events.extend(event);
        }
        end
    }

    fn fail(&mut self, error: CommunicationError) {
        let was_known = self.has_failed;
        self.has_failed |= may_lose_nodes(&error);
        if !self.is_over && !was_known {
            self.events.push_back(CommEvent::Failed(error));
        }
    }

    /// Does something with the wires, if there are any, and reports what goes wrong.
    fn act(
        &mut self,
        act: impl FnOnce(&mut Connected, &mut dyn Communicator, &mut VecDeque<CommEvent>) -> Outcome,
    ) {
        if self.is_over {
            return;
        }
        let Some(wires) = &mut self.wires else { return };
        if let Err(error) = act(wires, &mut *self.inner, &mut self.events) {
            self.fail(*error);
        }
    }

    /// What an event of the network means to the node.
    fn heard(&mut self, event: CommEvent) -> Option<CommEvent> {
        match event {
            CommEvent::Note { from, note } if is_of_wires(&note) => {
                self.noted(from, &note);
                None
            }
            CommEvent::Aborted(_) => {
                self.end();
                Some(event)
            }
            CommEvent::Failed(ref error) => {
                self.has_failed |= may_lose_nodes(error);
                Some(event)
            }
            _ => self.heard_of_payload(event),
        }
    }

    /// What a pilot or an arrival means to the node.
    fn heard_of_payload(&mut self, event: CommEvent) -> Option<CommEvent> {
        let Some(wires) = &mut self.wires else { return Some(event) };
        match event {
            CommEvent::Pilot { from, ref pilot, .. } if wires.reaches(from) => {
                self.act(|wires, inner, _| wires.announced(inner, from, pilot));
                Some(event)
            }
            CommEvent::Received { from, message } => {
                let stopped = wires.incoming.arrived(from, message);
                let Some((source, payload)) = stopped else { return Some(event) };
                if !self.is_over {
                    let copy = wires.copy(Purpose::Scatter { from, message }, &payload);
                    // SAFETY: `Incoming` keeps the source until the copy has ended; the target is kept by
                    // the contract of `receive`, since the node is told only then.
                    unsafe { wires.windows.scatter(copy, source, payload.located()) };
                }
                None
            }
            _ => Some(event),
        }
    }

    /// The run has been aborted: nothing begins any more.
    fn end(&mut self) {
        self.is_over = true;
        self.events.clear();
        if let Some(wires) = &mut self.wires {
            wires.outgoing.clear();
            wires.incoming.clear();
        }
        if let Some(assembly) = &mut self.assembly {
            assembly.abort();
        }
    }

    /// Does something with collective operations, if devices have any, and reports what goes wrong.
    fn assemble(&mut self, act: impl FnOnce(&mut Assembly, &mut dyn Communicator) -> Outcome) {
        if self.is_over {
            return;
        }
        let Some(assembly) = &mut self.assembly else { return };
        if let Err(error) = act(assembly, &mut *self.inner) {
            self.fail(*error);
        }
    }

    fn noted(&mut self, from: NodeId, note: &[u8]) {
        let place = (from, self.inner.node());
        match Note::decode(note, place, self.inner.nodes()) {
            Ok(Note::Announced { pilot, reached }) => {
                self.act(|wires, inner, events| {
                    let announced = wires.announced(inner, from, &pilot);
                    events.push_back(CommEvent::Pilot { from, pilot, reached });
                    announced
                });
            }
            Ok(Note::Came { transfer, hash }) => {
                self.assemble(|assembly, inner| assembly.came(inner, from, (transfer, hash)));
            }
            Ok(Note::Entered { epoch, latest }) => {
                self.assemble(|assembly, inner| assembly.entered(inner, from, (epoch, latest)));
            }
            Ok(Note::Apart((node, task), (other, other_task))) => {
                self.fail(CommunicationError::Apart { node, task, other, other_task });
            }
            Ok(note) => self.act(|wires, _, _| wires.noted(from, note)),
            Err(what) => self.fail(CommunicationError::Malformed { from, what }),
        }
    }

    /// Lets copies begin, and acts on those that have ended.
    fn progress(&mut self) {
        while let Some(Copied { id, outcome }) =
            self.wires.as_mut().and_then(|wires| wires.windows.poll())
        {
            let Some(wires) = &mut self.wires else { return };
            let purpose = wires.copies.remove(&id.0).expect("copies end once");
            match outcome {
                Ok(()) => self.act(|wires, inner, events| {
                    wires.copied(inner, events, purpose);
                    Ok(())
                }),
                Err(what) => self.fail(CommunicationError::Network { what }),
            }
        }
        self.act(|wires, _, _| {
            wires.pack_some();
            Ok(())
        });
        while let Some(ended) = self.assembly.as_mut().and_then(Assembly::poll) {
            match ended {
                Ok(event) if !self.is_over => self.events.push_back(event),
                Ok(_) => {}
                Err(error) => self.fail(*error),
            }
        }
    }

    fn is_moving(&self) -> bool {
        self.wires.as_ref().is_some_and(|wires| !wires.copies.is_empty())
            || self.assembly.as_ref().is_some_and(Assembly::is_busy)
    }

    fn is_busy(&self) -> bool {
        let busy = |wires: &Connected| wires.outgoing.is_busy() || wires.incoming.is_busy();
        self.is_moving() || !self.is_over && self.wires.as_ref().is_some_and(busy)
    }
}

/// Whether nodes may be gone, or a device does nothing any more.
fn may_lose_nodes(error: &CommunicationError) -> bool {
    matches!(
        error,
        CommunicationError::Died { .. }
            | CommunicationError::GivenUp { .. }
            | CommunicationError::Network { .. }
    )
}

impl Connected {
    fn reaches(&self, node: NodeId) -> bool {
        self.reached.binary_search(&node).is_ok()
    }

    /// Names a copy.
    fn copy(&mut self, purpose: Purpose, payload: &WirePayload) -> WireCopy {
        let id = self.next_copy;
        self.next_copy += 1;
        self.copies.insert(id, purpose);
        WireCopy { id: CopyId(id), elements: payload.elements, elem_size: payload.elem_size }
    }

    fn announced(&mut self, inner: &mut dyn Communicator, from: NodeId, pilot: &Pilot) -> Outcome {
        if let Some((payload, way)) = self.incoming.announce(from, pilot)? {
            self.accept(inner, from, payload, way);
        }
        Ok(())
    }

    /// Lets a payload come the way that it comes.
    fn accept(
        &mut self,
        inner: &mut dyn Communicator,
        from: NodeId,
        payload: WirePayload,
        way: Way,
    ) {
        let WirePayload { message, elem_size, .. } = payload;
        match way {
            Way::Wire => {
                let wanted = Note::Wanted { message, elem_size };
                inner.send_note(from, &wanted.encode(inner.node()));
            }
            // SAFETY: the contract of `receive`, by which the payload has come here.
            Way::Host => unsafe { inner.receive(from, payload) },
            // SAFETY: `Incoming` keeps the memory until the payload has passed, or this end is dropped,
            // and nobody else knows it.
            Way::Stop(stop) => unsafe { inner.receive(from, stop) },
        }
    }

    fn noted(&mut self, from: NodeId, note: Note) -> Outcome {
        match note {
            Note::Wanted { message, elem_size } => self.outgoing.want(from, message, elem_size),
            Note::Free(slot) => self.outgoing.free(from, slot),
            Note::Packed { message, piece, slot } if self.reaches(from) => {
                let (payload, elements) = self.incoming.piece(from, message, piece)?;
                let part = WirePayload { elements, ..payload };
                let copy = self.copy(Purpose::Unpack { from, message, slot }, &part);
                // SAFETY: the target is kept by the contract of `receive`, and pieces are disjoint. The
                // sender has said that the piece is there, and keeps the slot until it is told.
                unsafe { self.windows.unpack(copy, from, slot, payload.located()) };
                Ok(())
            }
            other => {
                let what = format!("{other:?} does not belong here");
                Err(CommunicationError::Malformed { from, what }.into())
            }
        }
    }

    fn pack_some(&mut self) {
        while let Some(Packing { to, payload, piece, elements, slot }) = self.outgoing.next() {
            let part = WirePayload { elements, ..payload };
            let message = payload.message;
            let copy = self.copy(Purpose::Pack { to, message, piece, slot }, &part);
            // SAFETY: the source is kept by the contract of `send`, since the node is told when all
            // pieces have been packed; `Outgoing` gives a slot to one piece at a time, of its size.
            unsafe { self.windows.pack(copy, payload.located(), slot) };
        }
    }

    fn copied(
        &mut self,
        inner: &mut dyn Communicator,
        events: &mut VecDeque<CommEvent>,
        purpose: Purpose,
    ) {
        let node = inner.node();
        match purpose {
            Purpose::Pack { to, message, piece, slot } => {
                inner.send_note(to, &Note::Packed { message, piece, slot }.encode(node));
                let is_last = self.outgoing.packed(message);
                events.extend(is_last.then_some(CommEvent::Sent { message }));
            }
            Purpose::Unpack { from, message, slot } => {
                inner.send_note(from, &Note::Free(slot).encode(node));
                let is_last = self.incoming.unpacked(from, message);
                events.extend(is_last.then_some(CommEvent::Received { from, message }));
            }
            Purpose::Scatter { from, message } => {
                let is_last = self.incoming.passed(from, message);
                events.extend(is_last.then_some(CommEvent::Received { from, message }));
            }
        }
    }
}

impl WirePayload {
    fn located(&self) -> MemoryArray {
        MemoryArray { at: self.at, array: self.memory }
    }
}

// SAFETY: what goes by the network below is what that reports. Payloads that go by wire are reported when
// all copies of their pieces have succeeded, and an end is quiet when no copy is under way.
unsafe impl Communicator for WiredCommunicator {
    fn node(&self) -> NodeId {
        self.inner.node()
    }

    fn nodes(&self) -> usize {
        self.inner.nodes()
    }

    fn send_pilot(&mut self, pilot: &Pilot, reached: u64) {
        if !pilot.from_device {
            return self.inner.send_pilot(pilot, reached);
        }
        self.act(|wires, inner, _| {
            wires.outgoing.announce(pilot)?;
            let note = Note::Announced { pilot: pilot.clone(), reached };
            inner.send_note(pilot.to, &note.encode(inner.node()));
            Ok(())
        });
    }

    fn send_note(&mut self, to: NodeId, note: &[u8]) {
        self.inner.send_note(to, note);
    }

    unsafe fn send(&mut self, to: NodeId, payload: WirePayload) {
        let by_wire =
            |wires: &Connected| !self.is_over && wires.outgoing.has_announced(payload.message);
        if !self.wires.as_ref().is_some_and(by_wire) {
            // SAFETY: passed on.
            return unsafe { self.inner.send(to, payload) };
        }
        self.act(|wires, _, _| {
            wires.outgoing.offer(to, payload)?;
            wires.pack_some();
            Ok(())
        });
    }

    unsafe fn receive(&mut self, from: NodeId, payload: WirePayload) {
        if self.wires.is_none() || self.is_over {
            // SAFETY: passed on.
            return unsafe { self.inner.receive(from, payload) };
        }
        self.act(|wires, inner, _| {
            let way = match wires.reaches(from) {
                true => wires.incoming.expect(from, payload)?,
                false => Some(wires.incoming.stop(from, payload).map_or(Way::Host, Way::Stop)),
            };
            if let Some(way) = way {
                wires.accept(inner, from, payload, way);
            }
            Ok(())
        });
    }

    unsafe fn scatter(&mut self, from: NodeId, parts: &[(ElementArray, WirePayload)]) {
        debug_assert!(self.wires.is_some(), "nothing is received in memory of devices");
        self.act(|wires, _, _| {
            let Some((_, WirePayload { message, .. })) = parts.first() else { return Ok(()) };
            wires.incoming.scatter(from, *message, parts.len());
            for (source, payload) in parts {
                let copy = wires.copy(Purpose::Scatter { from, message: *message }, payload);
                // SAFETY: passed on.
                unsafe { wires.windows.scatter(copy, *source, payload.located()) };
            }
            Ok(())
        });
    }

    unsafe fn exchange(&mut self, exchange: CollectiveExchange) {
        if exchange.at.device().is_none() {
            // SAFETY: passed on.
            return unsafe { self.inner.exchange(exchange) };
        }
        // SAFETY: passed on.
        self.assemble(|assembly, inner| unsafe { assembly.begin(inner, &exchange) });
    }

    fn absent(&self, transfer: TransferId) -> Vec<NodeId> {
        let absent = self.assembly.as_ref().and_then(|assembly| assembly.absent(transfer));
        absent.map_or_else(|| self.inner.absent(transfer), |node| vec![node])
    }

    fn enter_barrier(&mut self, epoch: TaskId) {
        self.assemble(|assembly, inner| {
            assembly.enter_barrier(inner, epoch);
            Ok(())
        });
        self.inner.enter_barrier(epoch);
    }

    fn abort(&mut self, error: &RunError) {
        self.inner.abort(error);
    }

    fn poll(&mut self) -> Option<CommEvent> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            match self.inner.poll() {
                Some(event) => {
                    let event = self.heard(event);
                    if event.is_some() {
                        return event;
                    }
                }
                None => {
                    self.progress();
                    return self.events.pop_front();
                }
            }
        }
    }

    fn needs_polling(&self) -> bool {
        self.inner.needs_polling() || self.is_busy() || !self.events.is_empty()
    }

    fn bytes_under_way(&self) -> u64 {
        let bytes = |wires: &Connected| wires.outgoing.bytes() + wires.incoming.bytes();
        self.inner.bytes_under_way()
            + self.wires.as_ref().map_or(0, bytes)
            + self.assembly.as_ref().map_or(0, Assembly::bytes)
    }

    /// Copies end without waking anybody.
    fn wakes(&self) -> bool {
        let alone = self.wires.is_none() && self.assembly.is_none();
        self.inner.wakes() && alone && self.events.is_empty()
    }

    fn sends_ahead(&self) -> bool {
        self.inner.sends_ahead()
    }

    fn is_quiet(&self) -> bool {
        self.inner.is_quiet() && !self.is_moving()
    }
}

impl Drop for WiredCommunicator {
    fn drop(&mut self) {
        if self.is_busy() && !self.is_over {
            let message = format!("{} was dropped in the middle of its work", self.node());
            self.inner.abort(&RunError::Internal { message });
            self.is_over = true;
        }
        if self.is_over
            && let Some(assembly) = &mut self.assembly
        {
            assembly.abort();
        }
        let Some(wires) = &mut self.wires else { return };
        while !wires.copies.is_empty() {
            while let Some(Copied { id, .. }) = wires.windows.poll() {
                wires.copies.remove(&id.0);
            }
            std::thread::yield_now();
        }
        wires.windows.close();
        if self.has_failed {
            // Others may never come to give this node's windows up: these stay, as does what the
            // network may still write.
            std::mem::forget(self.wires.take());
        }
    }
}
