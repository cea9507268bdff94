//! Links between nodes: each carries one message at a time, in the order in which they are offered. Owns
//! when a message leaves and arrives; what it is for is the inbox's business.

use crate::cluster::{ClusterModel, Nanos, WayModel};
use crate::span::SpanId;

/// One direction of a link.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    free_at: Nanos,
    last: Option<SpanId>,
}

/// All links of a cluster: of each node within its host, and of each host.
#[derive(Debug)]
pub(super) struct Links<'m> {
    model: &'m ClusterModel,
    /// Nodes' links to others of their hosts: out and in.
    within: Vec<[Link; 2]>,
    /// Hosts' links.
    between: Vec<[Link; 2]>,
}

/// When a message is where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// When it begins to leave.
    pub(super) begins: Nanos,
    /// When its sender's memory is free again.
    pub(super) has_left: Nanos,
    /// When all of it is there.
    pub(super) arrives: Nanos,
    /// What it had to wait for.
    pub(super) cause: Option<SpanId>,
}

impl<'m> Links<'m> {
    pub(super) fn new(model: &'m ClusterModel, nodes: usize) -> Self {
        let hosts = nodes.div_ceil(model.nodes.per_host);
        let idle = |links| vec![[Link::default(); 2]; links];
        Self { model, within: idle(nodes), between: idle(hosts) }
    }

    /// Sends a message that is ready `now`, because of `cause`. The caller says as which span with
    /// [`taken`](Self::taken).
    pub(super) fn send(
        &mut self,
        now: Nanos,
        (from, to): (usize, usize),
        bytes: u64,
        cause: Option<SpanId>,
    ) -> Passage {
        let (way, [out, into]) = self.path(from, to);
        let lasts = way.bytes(bytes);
        let (begins, cause) = later((now, cause), (out.free_at, out.last));
        let reaches = begins.saturating_add(way.latency_ns);
        let (reaches, cause) = later((reaches, cause), (into.free_at, into.last));
        let has_left = begins.saturating_add(lasts);
        let arrives = reaches.saturating_add(lasts);
        (out.free_at, into.free_at) = (has_left, arrives);
        Passage { begins, has_left, arrives, cause }
    }

    /// The message that was sent last between two nodes is this span.
    pub(super) fn taken(&mut self, (from, to): (usize, usize), span: SpanId) {
        let (_, links) = self.path(from, to);
        links.into_iter().for_each(|link| link.last = Some(span));
    }

    fn path(&mut self, from: usize, to: usize) -> (WayModel, [&mut Link; 2]) {
        let network = &self.model.network;
        let ends = [from, to].map(|node| self.model.host_of(node));
        let (way, links, [from, to]) = match ends[0] == ends[1] {
            true => (network.same_host, &mut self.within, [from, to]),
            false => (network.between_hosts, &mut self.between, ends),
        };
        let [sender, receiver] =
            links.get_disjoint_mut([from, to]).expect("a message has two ends");
        (way, [&mut sender[0], &mut receiver[1]])
    }
}

/// The later time, with its cause; the first of two that are the same.
fn later<T>(one: (Nanos, T), other: (Nanos, T)) -> (Nanos, T) {
    if other.0 > one.0 { other } else { one }
}
