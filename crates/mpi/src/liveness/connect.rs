//! How the side channel comes up: everybody connects to the hub. Knows nothing
//! of how addresses travel.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use celerity_cdag::NodeId;

use super::frame::Frame;
use super::link::Link;
use super::wait::Sockets;
use crate::polling::RETRY;

/// Callers of whom nothing is known yet, beside as many as there are nodes: of more, the
/// oldest are turned away, since members say at once who they are.
const MOST_STRANGERS: usize = 64;

/// The hub's open door.
pub(crate) struct Door {
    listener: TcpListener,
    token: u64,
}

impl Door {
    /// Opens a port on `host`, or on all addresses of this machine.
    ///
    /// # Errors
    /// If the system grants none.
    pub(crate) fn open(host: Option<&str>, token: u64) -> io::Result<Self> {
        let listener = match host {
            Some(host) => TcpListener::bind((host, 0))?,
            None => TcpListener::bind(
                &[
                    SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
                    SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
                ][..],
            )?,
        };
        listener.set_nonblocking(true)?;
        Ok(Self { listener, token })
    }

    /// The port that it is open on.
    ///
    /// # Errors
    /// If the system does not know.
    pub(crate) fn port(&self) -> io::Result<u16> {
        Ok(self.listener.local_addr()?.port())
    }

    /// Waits for all others of so many nodes. Strangers are turned away, and cost no more
    /// than what a hello has and a socket each, of which there are not many.
    ///
    /// # Errors
    /// If somebody does not come in time.
    pub(super) fn admit(
        &self,
        nodes: usize,
        patience: Duration,
    ) -> Result<Vec<(NodeId, Link)>, String> {
        let deadline = Instant::now() + patience;
        let (mut callers, mut members) = (Vec::new(), Vec::<(NodeId, Link)>::new());
        let mut sockets = Sockets::default();
        while members.len() + 1 < nodes {
            let now = Instant::now();
            if now >= deadline {
                return Err(absent(nodes, &members, patience));
            }
            self.accept(&mut callers, nodes, now);
            for mut link in std::mem::take(&mut callers) {
                match self.greeting(&mut link, now) {
                    Greeting::Awaited => callers.push(link),
                    Greeting::Member(node) if is_expected(node, nodes, &members) => {
                        members.push((node, link));
                    }
                    Greeting::Member(_) | Greeting::Stranger => {}
                }
            }
            sockets.clear();
            sockets.add(&self.listener, false);
            callers.iter().for_each(|link| link.wait_in(&mut sockets));
            if members.len() + 1 < nodes {
                sockets.wait(Some(deadline.min(now + RETRY)));
            }
            members.iter_mut().for_each(|(_, link)| link.beat(now, RETRY));
        }
        members.sort_by_key(|(node, _)| *node);
        Ok(members)
    }

    /// Lets callers in, as many as may wait.
    fn accept(&self, callers: &mut Vec<Link>, nodes: usize, now: Instant) {
        let most = nodes + MOST_STRANGERS;
        for _ in 0..most {
            let Ok((stream, _)) = self.listener.accept() else { break };
            callers.extend(Link::new(stream, now));
        }
        callers.drain(..callers.len().saturating_sub(most));
    }

    fn greeting(&self, link: &mut Link, now: Instant) -> Greeting {
        match link.greeting(now) {
            Ok(Some(Frame::Hello { token, node })) if token == self.token => Greeting::Member(node),
            Ok(None) => Greeting::Awaited,
            _ => Greeting::Stranger,
        }
    }
}

/// What the hub makes of a caller.
enum Greeting {
    Awaited,
    Member(NodeId),
    Stranger,
}

fn is_expected(node: NodeId, nodes: usize, members: &[(NodeId, Link)]) -> bool {
    (1..nodes).contains(&node.slot()) && members.iter().all(|(known, _)| *known != node)
}

/// Who has not come: by name, if those are few.
fn absent(nodes: usize, members: &[(NodeId, Link)], patience: Duration) -> String {
    let is_absent = |node: &NodeId| members.iter().all(|(known, _)| known != node);
    let absent = (1..nodes as u64).map(NodeId::from_index).filter(is_absent);
    let absent: Vec<_> = absent.map(|node| node.to_string()).collect();
    let who = match absent.len() {
        1..=4 => absent.join(", "),
        many => format!("{many} of {nodes} nodes"),
    };
    let have = if absent.len() == 1 { "has" } else { "have" };
    format!("{who} {have} not connected to N0 within {patience:?}")
}

/// Connects to the hub, at whichever of its possible hosts answers first.
///
/// # Errors
/// If none does in time, with what the last one said.
pub(super) fn call(
    hosts: &[String],
    port: u16,
    hello: &Frame,
    patience: Duration,
) -> Result<Link, String> {
    let deadline = Instant::now() + patience;
    loop {
        let mut last = String::from("its host has no address");
        let addresses =
            hosts.iter().filter_map(|host| (host.as_str(), port).to_socket_addrs().ok());
        for address in addresses.flatten() {
            // One that swallows everything leaves time for the others.
            match reach(address, hello, patience / 4) {
                Ok(link) => return Ok(link),
                Err(error) => last = format!("{address}: {error}"),
            }
        }
        if Instant::now() >= deadline {
            let hosts = hosts.join(", ");
            return Err(format!("N0 does not answer on {hosts} within {patience:?} ({last})"));
        }
        thread::sleep(RETRY);
    }
}

fn reach(address: SocketAddr, hello: &Frame, patience: Duration) -> io::Result<Link> {
    let stream = TcpStream::connect_timeout(&address, patience)?;
    let now = Instant::now();
    let mut link = Link::new(stream, now)?;
    link.send(hello, now);
    Ok(link)
}
