//! What all nodes of a simulated cluster share: time, chance, memory, network,
//! devices. Says what happens next; knows neither nodes' machines nor programs.

mod agenda;
mod delivery;
mod devices;
mod exchanges;
mod execution;
mod ledger;
mod memory;
mod network;
mod objects;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use celerity_cdag::NodeId;
use celerity_executor::{LaneId, Time};

use super::breach::Breach;
use super::conditions::Conditions;
use super::log::{Log, LogEntry, What};
use crate::random::Random;

use agenda::Agenda;
use delivery::Delivery;
use devices::Devices;
use ledger::Ledger;
use memory::Memory;
use network::SimNetwork;
use objects::Objects;

pub(super) use devices::Queued;
pub(super) use execution::FAULT;
pub(super) use network::PostedBy;
pub(super) use objects::Watch;

/// The world, as all ends of networks and all backends hold it. The lock is for
/// the types' sake: a simulation has one thread.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<World>>);

impl Shared {
    pub(super) fn new(world: World) -> Self {
        Self(Arc::new(Mutex::new(world)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, World> {
        // Whoever panics while holding it has failed the run anyway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct World {
    pub(super) now: Time,
    pub(super) random: Random,
    pub(super) conditions: Conditions,
    pub(super) log: Log,
    pub(super) memory: Memory,
    pub(super) network: SimNetwork,
    pub(super) ledger: Ledger,
    pub(super) objects: Objects,
    /// By node.
    pub(super) devices: Vec<Devices>,
    /// Faults that have happened.
    pub(super) faults_met: usize,
    /// The first thing that must not have happened.
    pub(super) breach: Option<Breach>,
    agenda: Agenda<Event>,
    /// By node: until when the thread that polls it computes.
    away: Vec<Time>,
    /// Jobs that such threads have run.
    pub(super) computed: usize,
    /// By node: whether it is going to be polled, and its program to go on.
    poll_due: Vec<bool>,
    user_due: Vec<bool>,
}

/// Something that happens at a point in time.
pub(super) enum Event {
    /// A node's machine is polled.
    Poll(usize),
    /// A node's program goes on.
    User(usize),
    /// A job on a lane starts or ends.
    Lane(usize, LaneId),
    /// Something moves in the network.
    Network(Delivery),
}

impl World {
    pub(super) fn new(
        random: Random,
        conditions: Conditions,
        nodes: usize,
        lanes: usize,
        log: Log,
    ) -> Self {
        Self {
            now: Time::START,
            random,
            conditions,
            log,
            memory: Memory::default(),
            network: SimNetwork::new(nodes),
            ledger: Ledger::new(nodes),
            objects: Objects::new(nodes),
            devices: (0..nodes).map(|_| Devices::new(lanes)).collect(),
            faults_met: 0,
            breach: None,
            agenda: Agenda::default(),
            away: vec![Time::START; nodes],
            computed: 0,
            poll_due: vec![false; nodes],
            user_due: vec![false; nodes],
        }
    }

    /// Moves on to the next event.
    pub(super) fn next(&mut self) -> Option<Event> {
        let (at, event) = self.agenda.next()?;
        self.now = at;
        match event {
            Event::Poll(node) if at < self.away[node] => {
                self.agenda.add(self.away[node], event);
                return self.next();
            }
            Event::Poll(node) => self.poll_due[node] = false,
            Event::User(node) => self.user_due[node] = false,
            Event::Lane(..) | Event::Network(_) => {}
        }
        Some(event)
    }

    /// Lets something happen later.
    pub(super) fn after(&mut self, delay: Duration, event: Event) {
        self.agenda.add(self.now + delay, event);
    }

    /// What a [waker](celerity_executor::Waker) does.
    pub(super) fn wake(&mut self, node: usize) {
        if !std::mem::replace(&mut self.poll_due[node], true) {
            let delay = self.random.delay(self.conditions.poll[node]);
            self.after(delay, Event::Poll(node));
        }
    }

    /// A node is not polled for so long.
    pub(super) fn stay_away(&mut self, node: usize, delay: Duration) {
        self.away[node] = self.now + delay;
    }

    /// Lets a node's program go on.
    pub(super) fn wake_user(&mut self, node: usize) {
        if !std::mem::replace(&mut self.user_due[node], true) {
            let delay = self.random.delay(self.conditions.user[node]);
            self.after(delay, Event::User(node));
        }
    }

    pub(super) fn note(&mut self, node: usize, what: What) {
        self.log.add(LogEntry { at: self.now, node: node_id(node), what });
    }

    /// Something has happened that the contracts forbid; the first counts.
    pub(super) fn object(&mut self, node: usize, what: String) {
        self.breach.get_or_insert(Breach::Contract { node: node_id(node), what });
    }
}

pub(super) fn node_id(index: usize) -> NodeId {
    NodeId::from_index(index as u64)
}
