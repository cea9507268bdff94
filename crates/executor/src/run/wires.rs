//! Wires of a run: whom the devices of this process's nodes reach, and what to say of it. Owns when a run
//! does not begin for want of them.

use celerity_cdag::NodeId;
use celerity_cpd::Collectives;
use celerity_idag::InstructionGraph;

use super::Run;
use crate::backend::Backend;
use crate::communicator::Communicator;
use crate::error::RunError;
use crate::wires::{DeviceCollectives, DeviceWindows, Handshake, WindowError, Wired, Wires};

/// A node of this process, before it is known whom its devices reach.
type Unwired = (Box<dyn Communicator>, Box<dyn Backend>);

/// The same, when it is known.
type Found = (Wired, Box<dyn Backend>);

/// What all nodes find out together, since node 0's process wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WantedWires {
    /// Whether processes of one host reach each other's devices.
    windows: bool,
    /// Whether devices have collective operations.
    collectives: bool,
}

impl WantedWires {
    pub(super) const fn to_word(self) -> u64 {
        self.windows as u64 | (self.collectives as u64) << 1
    }

    pub(super) const fn of_word(word: u64) -> Self {
        Self { windows: word & 1 == 1, collectives: word & 2 == 2 }
    }
}

impl Run<'_> {
    /// What this process asks for. Where devices have no memory of a kind that could be reached, nobody is
    /// bothered, unless wires are asked for by name; nor are devices asked for collective operations if all of
    /// them are on one host, where messages from device to device are faster.
    pub(super) fn wanted_wires(&self) -> WantedWires {
        let wires = self.config.wires;
        let can = wires != Wires::Auto || self.devices.have_windows();
        let needed = match wires {
            Wires::Auto => self.network.spans_hosts(),
            _ => self.network.nodes() > 1,
        };
        WantedWires {
            windows: can && wires.have_windows(),
            collectives: can && wires.have_collectives() && needed,
        }
    }

    /// Finds out whom the devices of this process's nodes reach, and whether they have collective operations:
    /// nobody and none, unless node 0's process wants that. If it does, all processes find out at the same
    /// time, whatever they want themselves: a network tells of those that are gone, so none waits for ever.
    pub(super) fn wire(
        &self,
        nodes: impl IntoIterator<Item = Unwired>,
        wanted: WantedWires,
    ) -> Result<Vec<Found>, RunError> {
        let mut shakes: Vec<_> = nodes.into_iter().map(|node| self.shake(node, wanted)).collect();
        // All of them take each step.
        while shakes.iter_mut().filter_map(|(_, shake, _)| (!shake.step()).then_some(())).count()
            > 0
        {
            std::thread::yield_now();
        }
        let finish =
            |(neighbours, shake, backend): (_, Handshake, _)| (neighbours, shake.finish(), backend);
        let shakes: Vec<_> = shakes.into_iter().map(finish).collect();
        let missing = shakes.iter().find_map(|(neighbours, wired, _)| self.lack(neighbours, wired));
        if let Some(error) = missing {
            shakes.into_iter().for_each(|(_, mut wired, _)| wired.end.abort(&error));
            return Err(error);
        }
        shakes.iter().for_each(|(neighbours, wired, _)| self.tell(neighbours, wired));
        Ok(shakes.into_iter().map(|(_, wired, backend)| (wired, backend)).collect())
    }

    fn shake(
        &self,
        (end, mut backend): Unwired,
        wanted: WantedWires,
    ) -> (Vec<NodeId>, Handshake, Box<dyn Backend>) {
        let neighbours =
            if wanted.windows { self.network.neighbours(end.node()) } else { Vec::new() };
        let windows = match neighbours.is_empty() {
            true if !wanted.windows => Err("wires are off on N0".to_owned()),
            true => Err("no other process is on its host".to_owned()),
            false => self.windows_of(&mut *backend),
        };
        let mut shake = Handshake::begin(end, windows, neighbours.iter().copied());
        if wanted.collectives {
            shake = shake.with_collectives(self.collectives_of(&mut *backend));
        }
        (neighbours, shake, backend)
    }

    fn windows_of(&self, backend: &mut dyn Backend) -> Result<Box<dyn DeviceWindows>, WindowError> {
        match (self.config.wires, backend.windows()) {
            (Wires::Host, _) => Err("wires are off".to_owned()),
            (_, Some(windows)) => windows,
            (_, None) => Err("its devices have no memory that other processes reach".to_owned()),
        }
    }

    fn collectives_of(
        &self,
        backend: &mut dyn Backend,
    ) -> Result<Box<dyn DeviceCollectives>, WindowError> {
        match (self.config.wires.have_collectives(), backend.collectives()) {
            (false, _) => Err("its wires have no collective operations".to_owned()),
            (_, Some(collectives)) => collectives,
            (_, None) => Err("its devices have no collective operations".to_owned()),
        }
    }

    /// Why a run does not begin whose wires were asked for by name, if they are not there.
    fn lack(&self, neighbours: &[NodeId], wired: &Wired) -> Option<RunError> {
        let all = wired.reached.len() == neighbours.len();
        let others = self.network.nodes() > 1;
        if let (Wires::Nccl, true, Err(why)) = (self.config.wires, others, &wired.collectives) {
            let what = format!(
                "devices of {others} nodes have no collective operations: {why}; with `Wires::Auto` \
                 (`CELERITY_WIRES=auto`), these go through host memory then",
                others = self.network.nodes(),
            );
            return Some(RunError::Start { what });
        }
        if self.config.wires != Wires::Ipc || !others || all && !neighbours.is_empty() {
            return None;
        }
        let (node, why) = (wired.end.node(), obstacle(wired));
        let what = format!(
            "{node} cannot reach the devices of other processes: {why}; with `Wires::Auto` \
             (`CELERITY_WIRES=auto`), data goes through host memory then"
        );
        Some(RunError::Start { what })
    }

    /// Says what is good to know: once per host.
    fn tell(&self, neighbours: &[NodeId], wired: &Wired) {
        let Wired { end, reached, collectives, .. } = wired;
        tracing::debug!(node = %end.node(), ?reached, ?collectives, "device wires");
        let is_first = neighbours.iter().all(|other| end.node() < *other);
        let wanted = self.config.wires == Wires::Auto && self.devices.have_windows();
        if wanted && is_first && reached.len() < neighbours.len() {
            let why = obstacle(wired);
            (self.inform)(&format!("data between processes goes through host memory: {why}"));
        }
        let asked = self.wanted_wires().collectives && self.config.wires == Wires::Auto;
        if let (true, 0, Err(why)) = (asked, end.node().index(), collectives) {
            (self.inform)(&format!("collective operations go through host memory: {why}"));
        }
    }

    /// Which collective operations are looked for. Where devices have none, those of the network go through
    /// host memory, so if all devices reach each other, data goes straight there, unless collectives are asked
    /// for by name.
    pub(super) fn collectives(&self, wired: &Wired) -> Collectives {
        match self.config.collectives {
            Collectives::Auto if wired.is_complete && wired.collectives.is_err() => {
                Collectives::Off
            }
            asked => asked,
        }
    }

    /// What makes the instructions of a node with these wires.
    pub(super) fn instruction_graph(&self, wired: &Wired) -> InstructionGraph {
        let graph = self.devices.instruction_graph();
        let graph = match &wired.collectives {
            Ok(terms) => graph.with_device_collectives(terms.least, terms.least_row),
            Err(_) => graph,
        };
        match wired.reached.is_empty() {
            true => graph,
            false => {
                let reached = wired.reached.iter().copied();
                graph.with_device_wires(reached, self.network.nodes(), wired.least)
            }
        }
    }
}

fn obstacle(wired: &Wired) -> &str {
    wired.obstacle.as_deref().unwrap_or("another process cannot reach the devices of this one")
}
