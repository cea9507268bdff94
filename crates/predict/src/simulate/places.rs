//! Who does what: the servers of a cluster, and which of them a lane of a node is. A pure table.

use super::server::{Server, ServerId};
use crate::cluster::{ClusterModel, EngineThreads, Processor};
use crate::span::Lane;

/// Host tasks and fences that run at once on a node, as the executor's lanes.
const HOST_TASKS: usize = 4;
const FENCES: usize = 2;

/// Where the servers of each node and host stand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places<'m> {
    model: &'m ClusterModel,
    nodes: usize,
    devices: usize,
}

impl<'m> Places<'m> {
    pub(super) fn new(model: &'m ClusterModel, nodes: usize, devices: usize) -> Self {
        Self { model, nodes, devices }
    }

    /// All servers, idle: those of each node, then a processor and an engine of each host.
    pub(super) fn servers(self) -> Vec<Server> {
        let mut servers = Vec::new();
        for _ in 0..self.nodes {
            let ones = 4 + 2 * self.devices;
            servers.extend((0..ones).map(|_| Server::new(1)));
            servers.extend([Server::new(HOST_TASKS), Server::new(FENCES)]);
        }
        let hosts = self.nodes.div_ceil(self.model.nodes.per_host);
        servers.extend((0..2 * hosts).map(|_| Server::new(1)));
        servers
    }

    /// The server that a lane of a node is; none for the network's.
    pub(super) fn server(self, node: usize, lane: Lane) -> Option<ServerId> {
        let own = |slot| Some(ServerId(node * self.per_node() + slot));
        let devices = self.devices;
        let threads = self.model.engine.threads;
        match (lane, threads) {
            (Lane::Program | Lane::Scheduler | Lane::Engine, EngineThreads::Processor) => {
                self.server(node, Lane::Kernels(0))
            }
            (Lane::Scheduler | Lane::Engine, EngineThreads::Host) => Some(self.of_host(node, 1)),
            (Lane::Program, _) => own(0),
            (Lane::Scheduler, EngineThreads::Own) => own(1),
            (Lane::Engine, EngineThreads::Own) => own(2),
            (Lane::Kernels(device), _) => match self.model.device.processor {
                Processor::Host => Some(self.of_host(node, 0)),
                Processor::Own => own(4 + device),
            },
            (Lane::Copies(None), _) => own(3),
            (Lane::Copies(Some(device)), _) => own(4 + devices + device),
            (Lane::HostTasks, _) => own(4 + 2 * devices),
            (Lane::Fences, _) => own(5 + 2 * devices),
            (Lane::Payload | Lane::Collective | Lane::Barrier, _) => None,
        }
    }

    fn of_host(self, node: usize, which: usize) -> ServerId {
        ServerId(self.nodes * self.per_node() + 2 * self.model.host_of(node) + which)
    }

    /// Servers of a node.
    fn per_node(self) -> usize {
        6 + 2 * self.devices
    }
}
