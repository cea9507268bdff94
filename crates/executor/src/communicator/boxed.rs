//! A box of an end of a network is one: for wrappers and checks that take any.
#![allow(unsafe_code)]

use celerity_cdag::{NodeId, TransferId};
use celerity_idag::Pilot;
use celerity_tdag::TaskId;

use super::{CollectiveExchange, CommEvent, Communicator, WirePayload};
use crate::copy::ElementArray;
use crate::error::RunError;

// SAFETY: it passes everything on.
unsafe impl<C: Communicator + ?Sized> Communicator for Box<C> {
    fn node(&self) -> NodeId {
        (**self).node()
    }

    fn nodes(&self) -> usize {
        (**self).nodes()
    }

    fn send_pilot(&mut self, pilot: &Pilot, reached: u64) {
        (**self).send_pilot(pilot, reached);
    }

    fn send_note(&mut self, to: NodeId, note: &[u8]) {
        (**self).send_note(to, note);
    }

    unsafe fn send(&mut self, to: NodeId, payload: WirePayload) {
        // SAFETY: passed on.
        unsafe { (**self).send(to, payload) }
    }

    unsafe fn receive(&mut self, from: NodeId, payload: WirePayload) {
        // SAFETY: passed on.
        unsafe { (**self).receive(from, payload) }
    }

    unsafe fn scatter(&mut self, from: NodeId, parts: &[(ElementArray, WirePayload)]) {
        // SAFETY: passed on.
        unsafe { (**self).scatter(from, parts) }
    }

    unsafe fn exchange(&mut self, exchange: CollectiveExchange) {
        // SAFETY: passed on.
        unsafe { (**self).exchange(exchange) }
    }

    fn absent(&self, transfer: TransferId) -> Vec<NodeId> {
        (**self).absent(transfer)
    }

    fn enter_barrier(&mut self, epoch: TaskId) {
        (**self).enter_barrier(epoch);
    }

    fn abort(&mut self, error: &RunError) {
        (**self).abort(error);
    }

    fn poll(&mut self) -> Option<CommEvent> {
        (**self).poll()
    }

    fn needs_polling(&self) -> bool {
        (**self).needs_polling()
    }

    fn bytes_under_way(&self) -> u64 {
        (**self).bytes_under_way()
    }

    fn wakes(&self) -> bool {
        (**self).wakes()
    }

    fn sends_ahead(&self) -> bool {
        (**self).sends_ahead()
    }

    fn is_quiet(&self) -> bool {
        (**self).is_quiet()
    }
}
