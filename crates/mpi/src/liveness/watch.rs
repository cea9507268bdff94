//! The thread of the side channel: owns the sockets, and carries what is said to where it
//! is decided and what is decided to where it counts. Decides nothing but who is dead.

use std::sync::Arc;
use std::time::{Duration, Instant};

use celerity_cdag::NodeId;

use super::HUB;
use super::frame::Frame;
use super::hub::Hub;
use super::link::{Health, Link};
use super::record::Loss;
use super::shared::{Order, Shared};
use super::wait::Sockets;
use crate::polling::{FAREWELL, SLOWEST_BEAT};

pub(super) struct Watch {
    node: NodeId,
    /// All other nodes at the hub, the hub elsewhere; as far as they live.
    links: Vec<(NodeId, Link)>,
    /// `Some` at the hub.
    hub: Option<Hub>,
    shared: Arc<Shared>,
    sockets: Sockets,
    /// After how much silence a node is dead.
    timeout: Duration,
    /// When beats and silences are looked at next.
    tick: Instant,
}

impl Watch {
    pub(super) fn new(
        node: NodeId,
        links: Vec<(NodeId, Link)>,
        timeout: Duration,
        shared: Arc<Shared>,
    ) -> Self {
        let hub = (node == HUB).then(|| Hub::new(links.len() + 1));
        let (sockets, tick) = (Sockets::default(), Instant::now());
        Self { node, links, hub, shared, sockets, timeout, tick }
    }

    pub(super) fn run(mut self) {
        let _end = End(self.shared.clone());
        loop {
            let ready = self.wait();
            let now = Instant::now();
            self.excuse_silence(now);
            if !self.take_orders(now) {
                return self.leave();
            }
            self.hear(&ready, now);
            if now >= self.tick {
                self.tick = now + self.beat() / 2;
                self.look_after(now);
            }
        }
    }

    /// After how much silence of its own a node says that it lives: often enough that
    /// being stopped for most of the timeout is not yet death.
    fn beat(&self) -> Duration {
        (self.timeout / 8).min(SLOWEST_BEAT)
    }

    /// Waits for something to do. Returns the positions of links that have something.
    fn wait(&mut self) -> Vec<usize> {
        self.sockets.clear();
        self.sockets.add(self.shared.bell().sound(), false);
        self.links.iter().for_each(|(_, link)| link.wait_in(&mut self.sockets));
        // Alone there is nobody to look after.
        self.sockets.wait((!self.links.is_empty()).then_some(self.tick));
        (0..self.links.len()).filter(|at| self.sockets.is_ready(at + 1)).collect()
    }

    /// While this thread has not run, as when its process was stopped, nobody was heard: that
    /// is no silence of theirs.
    fn excuse_silence(&mut self, now: Instant) {
        let late = now.saturating_duration_since(self.tick);
        if late > self.beat() && !self.links.is_empty() {
            self.links.iter_mut().for_each(|(_, link)| link.excuse(late, now));
        }
    }

    /// Does what this node wants; `false` once it wants nothing any more.
    fn take_orders(&mut self, now: Instant) -> bool {
        self.shared.bell().silence();
        for order in self.shared.take_orders() {
            match order {
                Order::Say(frame) => self.say(frame, now),
                Order::Timeout(timeout) => {
                    self.timeout = timeout;
                    self.tick = now;
                }
                Order::Part => return false,
            }
        }
        true
    }

    /// This node says something to the hub.
    fn say(&mut self, frame: Frame, now: Instant) {
        if let Some(hub) = &mut self.hub {
            let decided = hub.hear(self.node, frame);
            return self.decide(decided, now);
        }
        match self.links.first_mut() {
            Some((_, hub)) => hub.send(&frame, now),
            None => self.decide_alone(frame),
        }
    }

    /// Without a hub, each node's own error is the run's.
    fn decide_alone(&mut self, frame: Frame) {
        if let Frame::Abort { run, error } = frame {
            self.shared.apply(self.node, Frame::Aborted { run, error });
        }
    }

    /// Tells all nodes what the hub has decided, also this one.
    fn decide(&mut self, decided: Vec<Frame>, now: Instant) {
        for frame in decided {
            self.links.iter_mut().for_each(|(_, link)| link.send(&frame, now));
            self.shared.apply(self.node, frame);
        }
        self.note_missing();
    }

    /// Whoever waits for others wants to know for whom.
    fn note_missing(&self) {
        if let Some(hub) = &self.hub {
            self.shared.note_missing(|run| hub.missing(run));
        }
    }

    fn hear(&mut self, ready: &[usize], now: Instant) {
        let mut frames = Vec::new();
        // From the back, so that those in front stay where they are.
        for &at in ready.iter().rev() {
            let (node, link) = &mut self.links[at];
            let node = *node;
            let health = link.receive(now, &mut frames);
            frames.drain(..).for_each(|frame| self.heard(node, frame, now));
            match health {
                Health::Open => {}
                Health::Closed(_) if self.links[at].1.has_left() => drop(self.links.remove(at)),
                Health::Closed(sign) => self.lose(node, sign, now),
            }
        }
    }

    fn heard(&mut self, from: NodeId, frame: Frame, now: Instant) {
        match (&mut self.hub, frame) {
            // It does not wait for what happens next, and is no news to others.
            (Some(_), Frame::Died { node, sign }) if node == HUB => {
                if let Some((_, link)) = self.links.iter_mut().find(|(node, _)| *node == from) {
                    link.forgive();
                }
                self.shared.lose(Loss::GivenUp { by: from, sign: sign.clone() });
                self.tell_of_death(from, format!("it has given N0 up: {sign}"), now);
            }
            (Some(hub), frame) => {
                let decided = hub.hear(from, frame);
                self.decide(decided, now);
            }
            (None, frame) => self.shared.apply(self.node, frame),
        }
    }

    /// Signs of life, and silences.
    fn look_after(&mut self, now: Instant) {
        let (beat, timeout) = (self.beat(), self.timeout);
        self.links.iter_mut().for_each(|(_, link)| link.beat(now, beat));
        let silent = self.links.iter().filter_map(|(node, link)| {
            let sign = link.silence(now, timeout)?;
            Some((*node, sign))
        });
        for (node, sign) in silent.collect::<Vec<_>>() {
            self.lose(node, sign, now);
        }
    }

    /// A node is gone. It is told so, for it may only have been stopped.
    fn lose(&mut self, node: NodeId, sign: String, now: Instant) {
        let at = self.links.iter().position(|(known, _)| *known == node);
        let Some(at) = at else { return };
        let (_, mut link) = self.links.remove(at);
        link.send(&Frame::Died { node, sign: sign.clone() }, now);
        self.tell_of_death(node, sign, now);
    }

    fn tell_of_death(&mut self, node: NodeId, sign: String, now: Instant) {
        let death = Frame::Died { node, sign };
        match &mut self.hub {
            Some(hub) => {
                hub.lost();
                self.decide(vec![death], now);
            }
            None => self.shared.apply(self.node, death),
        }
    }

    /// Leaves so that nobody mistakes it for a death: closes a connection only
    /// when the other side has, or takes too long.
    fn leave(&mut self) {
        let start = Instant::now();
        self.links.iter_mut().for_each(|(_, link)| link.close(start));
        let deadline = start + FAREWELL;
        while !self.links.is_empty() && Instant::now() < deadline {
            self.sockets.clear();
            self.links.iter().for_each(|(_, link)| link.wait_in(&mut self.sockets));
            self.sockets.wait(Some(deadline));
            let now = Instant::now();
            self.links.retain_mut(|(_, link)| !link.is_over(now));
        }
    }
}

/// Says that the thread has ended, also if it has panicked.
struct End(Arc<Shared>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.end();
    }
}
