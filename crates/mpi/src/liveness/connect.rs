//! How the side channel comes up: everybody connects to the hub. Knows nothing
//! of how addresses travel.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use celerity_cdag::NodeId;

use super::frame::Frame;
use super::link::Link;

/// How often a connection is tried again, and a newcomer is looked for.
const RETRY: Duration = Duration::from_millis(2);

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

    /// Waits for all others of so many nodes. Strangers are turned away.
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
        while members.len() + 1 < nodes {
            let now = Instant::now();
            if now >= deadline {
                let (here, all) = (members.len(), nodes - 1);
                return Err(format!("{here} of {all} nodes connected within {patience:?}"));
            }
            while let Ok((stream, _)) = self.listener.accept() {
                callers.extend(Link::new(stream, now));
            }
            let mut waiting = Vec::new();
            for mut link in callers.drain(..) {
                match self.greeting(&mut link, now, patience) {
                    Greeting::Awaited => waiting.push(link),
                    Greeting::Member(node) if (1..nodes).contains(&node.slot()) => {
                        members.push((node, link));
                    }
                    Greeting::Member(_) | Greeting::Stranger => {}
                }
            }
            callers = waiting;
            thread::sleep(RETRY);
        }
        members.sort_by_key(|(node, _)| *node);
        Ok(members)
    }

    fn greeting(&self, link: &mut Link, now: Instant, patience: Duration) -> Greeting {
        let mut frames = Vec::new();
        let heard = link.receive(now, patience, &mut frames);
        match frames.first() {
            Some(Frame::Hello { token, node }) if *token == self.token => Greeting::Member(*node),
            None if heard.is_ok() => Greeting::Awaited,
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
            match reach(address, hello, patience) {
                Ok(link) => return Ok(link),
                Err(error) => last = format!("{address}: {error}"),
            }
        }
        if Instant::now() >= deadline {
            return Err(format!("the hub does not answer on {} ({last})", hosts.join(", ")));
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
