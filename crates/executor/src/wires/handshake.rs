//! How wires come about, before a run begins: nodes of one host tell each other of their windows, open
//! them, and agree whom each of them reaches. Knows no clock: who drives it gives up when it likes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use celerity_cdag::NodeId;

use super::assembly::Assembly;
use super::collectives::{CollectiveTerms, DeviceCollectives};
use super::communicator::WiredCommunicator;
use super::founding::Founding;
use super::note::{Note, is_of_wires};
use super::{DeviceWindows, WindowError, WindowSize};
use crate::communicator::{CommEvent, Communicator};
use crate::error::CommunicationError;

/// A node that finds out whom its wires reach. All nodes that share a host take part, also those without
/// windows.
pub struct Handshake {
    end: Box<dyn Communicator>,
    windows: Option<(Box<dyn DeviceWindows>, WindowSize)>,
    peers: BTreeMap<NodeId, Peer>,
    /// Why somebody is not reached, as far as it is known here.
    obstacle: Option<String>,
    early: VecDeque<CommEvent>,
    /// Whether all nodes have collective operations of devices, if that is to be found out.
    founding: Option<Founding>,
    /// Whether this node reaches all others, once that has been told to those of the host.
    is_complete: Option<bool>,
    /// Whether nothing more is to be heard.
    is_over: bool,
}

/// What is known of another node of the host.
#[derive(Clone, Copy, Debug, Default)]
struct Peer {
    /// Whether its windows could be opened here, once it has told of them.
    opened: Option<bool>,
    /// Whether it will say, or has said, that it could open those of this node.
    answers: bool,
    has_opened: Option<bool>,
    /// Whether it reaches all other nodes, once it has said so.
    is_complete: Option<bool>,
}

/// An end of a network, with the wires that there are.
pub struct Wired {
    /// This node's end of the network, which uses the wires.
    pub end: Box<dyn Communicator>,
    /// The nodes whose devices are reached, ascending; they reach this node's, too.
    pub reached: Vec<NodeId>,
    /// Whether all nodes of the cluster reach each other: the same on all of them.
    pub is_complete: bool,
    /// Payloads of less bytes are faster through host memory.
    pub least: u64,
    /// Why not all nodes of the host are reached, if they are not and somebody here knows.
    pub obstacle: Option<String>,
    /// Which collective operations take place between devices, the same on all nodes. If none do, why, as far
    /// as anybody has asked.
    pub collectives: Result<CollectiveTerms, String>,
}

impl Handshake {
    /// Begins, at one end of a network: `neighbours` are the other nodes of the host. Without `windows`
    /// the node reaches nobody, for the reason given.
    #[must_use]
    pub fn begin(
        mut end: Box<dyn Communicator>,
        windows: Result<Box<dyn DeviceWindows>, WindowError>,
        neighbours: impl IntoIterator<Item = NodeId>,
    ) -> Self {
        let obstacle = windows.as_ref().err().cloned();
        let windows = windows.ok().map(|windows| {
            let size = windows.size();
            (windows, size)
        });
        let hello = Note::Hello(windows.as_ref().map(|(windows, size)| (*size, windows.card())));
        let (node, mut peers) = (end.node(), BTreeMap::new());
        for neighbour in neighbours {
            end.send_note(neighbour, &hello.encode(node));
            peers.insert(neighbour, Peer::default());
        }
        let early = VecDeque::new();
        let (founding, is_complete) = (None, None);
        Self { end, windows, peers, obstacle, early, founding, is_complete, is_over: false }
    }

    /// Finds out as well whether devices have collective operations: if `device` is an error, nobody's do. All
    /// nodes of the cluster take part, or none.
    #[must_use]
    pub fn with_collectives(
        mut self,
        device: Result<Box<dyn DeviceCollectives>, WindowError>,
    ) -> Self {
        self.founding = Some(Founding::begin(&mut *self.end, device));
        self
    }

    /// Goes on as far as is possible now. Whether all is known, or the run has ended before.
    pub fn step(&mut self) -> bool {
        self.tell_complete();
        if let Some(founding) = &mut self.founding {
            founding.step(&mut *self.end);
        }
        while !self.is_done()
            && let Some(event) = self.end.poll()
        {
            self.hear(event);
            self.tell_complete();
        }
        self.is_done()
    }

    /// The nodes that have not said what they have to, ascending.
    #[must_use]
    pub fn missing(&self) -> Vec<NodeId> {
        let agree = self.is_complete.is_some();
        let knows = |peer: &Peer| peer.is_known() && (!agree || peer.is_complete.is_some());
        let missing = self.peers.iter().filter(|(_, peer)| !knows(peer)).map(|(node, _)| *node);
        let local = self.end.node();
        let unfounded = self.founding.iter().flat_map(|founding| founding.missing(local));
        missing.chain(unfounded).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The end, when all is known: the same as before if nobody is reached.
    #[must_use]
    pub fn finish(self) -> Wired {
        let all_agree = self.is_complete == Some(true)
            && self.peers.values().all(|peer| peer.is_complete == Some(true));
        let Self { end, windows, peers, obstacle, early, founding, .. } = self;
        let nobody_asks = || Err("nobody has asked for them".to_owned());
        let founded = founding.map_or_else(nobody_asks, Founding::finish);
        let collectives = founded.as_ref().map(|(_, terms)| *terms).map_err(Clone::clone);
        let assembly = founded.ok().map(|(device, _)| Assembly::new(device));
        let is_complete = all_agree && peers.len() + 1 == end.nodes();
        let reached: Vec<_> =
            peers.iter().filter(|(_, peer)| peer.is_reached()).map(|(node, _)| *node).collect();
        let obstacle = obstacle.filter(|_| peers.is_empty() || reached.len() < peers.len());
        let least = windows.as_ref().map_or(0, |(_, size)| size.least);
        if reached.is_empty() && early.is_empty() && assembly.is_none() {
            return Wired { end, reached, is_complete, least, obstacle, collectives };
        }
        let end = WiredCommunicator::new(end, windows, reached.clone(), assembly, early);
        Wired { end: Box::new(end), reached, is_complete, least, obstacle, collectives }
    }

    fn is_done(&self) -> bool {
        let agree = !self.peers.is_empty() && self.all_have_windows();
        let knows = |peer: &Peer| peer.is_known() && (!agree || peer.is_complete.is_some());
        let founded = self.founding.as_ref().is_none_or(Founding::is_over);
        self.is_over || founded && self.peers.values().all(knows)
    }

    /// Whether all nodes of the host have windows, as far as is known: once all have told of them, all
    /// know the same.
    fn all_have_windows(&self) -> bool {
        self.windows.is_some() && self.peers.values().all(|peer| peer.answers)
    }

    /// Tells the nodes of the host, once, whether this one reaches all of them. They do not have to agree
    /// where some have no windows.
    fn tell_complete(&mut self) {
        let known = self.peers.values().all(Peer::is_known) && self.all_have_windows();
        if self.is_over || !known || self.is_complete.is_some() {
            return;
        }
        let complete = self.peers.values().all(Peer::is_reached);
        self.is_complete = Some(complete);
        let note = Note::Complete(complete).encode(self.end.node());
        self.peers.keys().for_each(|peer| self.end.send_note(*peer, &note));
    }

    fn hear(&mut self, event: CommEvent) {
        match event {
            CommEvent::Note { from, ref note } if is_of_wires(note) => {
                match Note::decode(note, (from, self.end.node()), self.end.nodes()) {
                    Ok(Note::Hello(theirs)) => self.greeted(from, theirs),
                    Ok(Note::Verdict(opened)) => {
                        self.peers.entry(from).or_default().has_opened = Some(opened);
                    }
                    Ok(Note::Complete(complete)) => {
                        self.peers.entry(from).or_default().is_complete = Some(complete);
                    }
                    Ok(note @ (Note::Invited(..) | Note::Joined(_) | Note::Settled(_))) => {
                        if let Some(founding) = &mut self.founding {
                            founding.hear(&mut *self.end, from, note);
                        }
                    }
                    // The sender knows all that it has to.
                    Ok(_) => self.early.push_back(event),
                    Err(what) => {
                        let error = CommunicationError::Malformed { from, what };
                        self.early.push_back(CommEvent::Failed(error));
                    }
                }
            }
            CommEvent::Aborted(_) | CommEvent::Failed(_) => {
                self.is_over = true;
                self.early.push_back(event);
            }
            _ => self.early.push_back(event),
        }
    }

    fn greeted(&mut self, from: NodeId, theirs: Option<(WindowSize, Vec<u8>)>) {
        let peer = self.peers.entry(from).or_default();
        let ((windows, own), (size, card)) = match (&mut self.windows, theirs) {
            (Some((windows, own)), Some(theirs)) => ((windows, *own), theirs),
            (ours, _) => {
                peer.opened = Some(false);
                if ours.is_some() {
                    self.obstacle.get_or_insert_with(|| format!("{from} has no windows"));
                }
                return;
            }
        };
        let opened = match (size.slot_bytes, size.least) == (own.slot_bytes, own.least) {
            true => windows.open(from, &card),
            false => Err("its windows have another size".to_owned()),
        };
        (peer.opened, peer.answers) = (Some(opened.is_ok()), true);
        self.end.send_note(from, &Note::Verdict(opened.is_ok()).encode(self.end.node()));
        if let Err(error) = opened {
            self.obstacle.get_or_insert_with(|| format!("{from} is out of reach: {error}"));
        }
    }
}

impl Peer {
    fn is_known(&self) -> bool {
        self.opened.is_some() && (!self.answers || self.has_opened.is_some())
    }

    fn is_reached(&self) -> bool {
        self.opened == Some(true) && self.has_opened == Some(true)
    }
}
