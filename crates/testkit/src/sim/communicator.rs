//! One node's end of the simulated network: the trait, as calls of the world.
#![allow(unsafe_code)]

use celerity_cdag::NodeId;
use celerity_executor::{
    CollectiveExchange, CommEvent, Communicator, ElementArray, RunError, WirePayload,
};
use celerity_idag::Pilot;
use celerity_tdag::TaskId;

use super::world::{PostedBy, Shared, node_id};

/// One node's end of a simulated network.
pub struct SimCommunicator {
    node: usize,
    nodes: usize,
    world: Shared,
}

impl SimCommunicator {
    pub(super) fn new(node: usize, nodes: usize, world: Shared) -> Self {
        Self { node, nodes, world }
    }
}

// SAFETY: payloads, and what collectives move, are copied by the simulated network before either end
// is told.
unsafe impl Communicator for SimCommunicator {
    fn node(&self) -> NodeId {
        node_id(self.node)
    }

    fn nodes(&self) -> usize {
        self.nodes
    }

    fn send_pilot(&mut self, pilot: &Pilot, reached: u64) {
        self.world.lock().send_pilot(self.node, pilot, reached);
    }

    fn send_note(&mut self, to: NodeId, note: &[u8]) {
        self.world.lock().send_note(self.node, to, note);
    }

    unsafe fn send(&mut self, to: NodeId, payload: WirePayload) {
        self.world.lock().post(PostedBy::Sender, self.node, to, payload);
    }

    unsafe fn receive(&mut self, from: NodeId, payload: WirePayload) {
        self.world.lock().post(PostedBy::Receiver, self.node, from, payload);
    }

    unsafe fn scatter(&mut self, from: NodeId, parts: &[(ElementArray, WirePayload)]) {
        self.world.lock().scatter(self.node, from, parts);
    }

    unsafe fn exchange(&mut self, exchange: CollectiveExchange) {
        self.world.lock().exchange(self.node, exchange);
    }

    fn enter_barrier(&mut self, epoch: TaskId) {
        self.world.lock().enter_barrier(self.node, epoch);
    }

    fn abort(&mut self, error: &RunError) {
        self.world.lock().abort(self.node, error);
    }

    fn poll(&mut self) -> Option<CommEvent> {
        self.world.lock().hear(self.node)
    }

    fn needs_polling(&self) -> bool {
        let world = self.world.lock();
        !world.conditions.threads.network_wakes && world.network.has_begun(self.node)
    }

    fn wakes(&self) -> bool {
        self.world.lock().conditions.threads.network_wakes
    }

    fn sends_ahead(&self) -> bool {
        self.world.lock().conditions.eager > 0
    }

    fn is_quiet(&self) -> bool {
        self.world.lock().network.is_quiet(self.node)
    }
}

impl Drop for SimCommunicator {
    /// What moves need not be waited for: nothing moves any more once a
    /// simulation drops its nodes.
    fn drop(&mut self) {
        self.world.lock().network.withdraw(self.node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Configuration;
    use crate::conformance;
    use crate::random::Random;
    use crate::sim::conditions::Conditions;
    use crate::sim::log::Log;
    use crate::sim::world::{Event, World};

    /// An end that lets time pass whenever somebody listens.
    struct Driven(SimCommunicator);

    // SAFETY: it passes everything on.
    unsafe impl Communicator for Driven {
        fn node(&self) -> NodeId {
            self.0.node()
        }

        fn nodes(&self) -> usize {
            self.0.nodes()
        }

        fn send_pilot(&mut self, pilot: &Pilot, reached: u64) {
            self.0.send_pilot(pilot, reached);
        }

        fn send_note(&mut self, to: NodeId, note: &[u8]) {
            self.0.send_note(to, note);
        }

        unsafe fn send(&mut self, to: NodeId, payload: WirePayload) {
            // SAFETY: passed on.
            unsafe { self.0.send(to, payload) }
        }

        unsafe fn receive(&mut self, from: NodeId, payload: WirePayload) {
            // SAFETY: passed on.
            unsafe { self.0.receive(from, payload) }
        }

        unsafe fn exchange(&mut self, exchange: CollectiveExchange) {
            // SAFETY: passed on.
            unsafe { self.0.exchange(exchange) }
        }

        fn enter_barrier(&mut self, epoch: TaskId) {
            self.0.enter_barrier(epoch);
        }

        fn abort(&mut self, error: &RunError) {
            self.0.abort(error);
        }

        fn poll(&mut self) -> Option<CommEvent> {
            let mut world = self.0.world.lock();
            if let Some(Event::Network(delivery)) = world.next() {
                world.deliver(delivery);
            }
            drop(world);
            self.0.poll()
        }

        fn sends_ahead(&self) -> bool {
            self.0.sends_ahead()
        }

        fn is_quiet(&self) -> bool {
            self.0.is_quiet()
        }
    }

    impl Drop for Driven {
        fn drop(&mut self) {
            // The contract: memory of this end is out of use when it is gone.
            while !self.is_quiet() {
                drop(self.poll());
            }
        }
    }

    fn cluster(nodes: usize, seed: u64) -> Vec<Driven> {
        let mut random = Random::new(seed);
        let conditions = Conditions::draw(&mut random, &Configuration::new(nodes, 1), 1);
        let world = World::new(random, conditions, nodes, 0, Log::new(false));
        let world = Shared::new(world);
        (0..nodes).map(|node| Driven(SimCommunicator::new(node, nodes, world.clone()))).collect()
    }

    #[test]
    fn conforms_whatever_the_seed() {
        for seed in 0..8 {
            conformance::check(|nodes| cluster(nodes, seed));
        }
    }
}
