//! One connection of the side channel: frames in and out of a socket that never
//! blocks. Knows nothing of what frames mean, but that a goodbye is the last one.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use super::frame::{Frame, HELLO_LEN};
use super::wait::Sockets;

/// Bytes that are read at a time, at most: others want to be heard, too.
const MOST_AT_ONCE: usize = 64 << 10;

/// A connection to another node.
#[derive(Debug)]
pub(super) struct Link {
    stream: TcpStream,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
    heard: Instant,
    sent: Instant,
    /// The other side has said goodbye.
    left: bool,
}

/// How a connection is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// It can bring more.
    Open,
    /// It brings no more, by this sign. The other side is gone, unless it
    /// [has left](Link::has_left).
    Closed(String),
}

impl Link {
    /// # Errors
    /// If the socket cannot be set up.
    pub(super) fn new(stream: TcpStream, now: Instant) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let (inbox, outbox) = (Vec::new(), Vec::new());
        Ok(Self { stream, inbox, outbox, heard: now, sent: now, left: false })
    }

    /// Adds the socket to those that are waited for.
    pub(super) fn wait_in(&self, sockets: &mut Sockets) {
        sockets.add(&self.stream, !self.outbox.is_empty());
    }

    /// Queues a frame and sends as much as the socket takes. A broken
    /// connection is noticed by [`receive`](Self::receive).
    pub(super) fn send(&mut self, frame: &Frame, now: Instant) {
        if !self.left {
            frame.write(&mut self.outbox);
            self.sent = now;
            self.flush();
        }
    }

    /// Sends a beat if nothing else has been sent for so long.
    pub(super) fn beat(&mut self, now: Instant, interval: Duration) {
        if now.duration_since(self.sent) >= interval {
            self.send(&Frame::Beat, now);
        }
    }

    /// Appends frames that have come, and says how the connection is.
    pub(super) fn receive(&mut self, now: Instant, frames: &mut Vec<Frame>) -> Health {
        self.flush();
        let ended = self.fill(MOST_AT_ONCE, now);
        loop {
            match Frame::read(&mut self.inbox) {
                Ok(Some(frame)) => {
                    self.left |= frame == Frame::Goodbye;
                    frames.push(frame);
                }
                Ok(None) => break,
                Err(why) => return Health::Closed(format!("it sent nonsense: {}", why.0)),
            }
        }
        ended.map_or_else(Health::Closed, |()| Health::Open)
    }

    /// Whether the other side has said goodbye.
    pub(super) fn has_left(&self) -> bool {
        self.left
    }

    /// The first frame of somebody of whom nothing is known: a hello, or nothing as yet.
    ///
    /// # Errors
    /// If it is anything else. No more is read than a hello has.
    pub(super) fn greeting(&mut self, now: Instant) -> Result<Option<Frame>, ()> {
        let ended = self.fill(HELLO_LEN.saturating_sub(self.inbox.len()), now);
        match Frame::read(&mut self.inbox).map_err(drop)? {
            Some(hello @ Frame::Hello { .. }) => Ok(Some(hello)),
            Some(_) => Err(()),
            None if ended.is_err() || self.inbox.len() >= HELLO_LEN => Err(()),
            None => Ok(None),
        }
    }

    /// What there is to say of a silence of so long, if there is one.
    pub(super) fn silence(&self, now: Instant, timeout: Duration) -> Option<String> {
        let is_silent = !self.left && now.duration_since(self.heard) >= timeout;
        is_silent.then(|| {
            format!(
                "it has been silent for {timeout:?}, as long as a process may be \
                 (CELERITY_PEER_TIMEOUT)"
            )
        })
    }

    /// Takes back a part of the silence, in which nobody here has listened.
    pub(super) fn excuse(&mut self, part: Duration, now: Instant) {
        self.heard = (self.heard + part).min(now);
    }

    /// Whatever the other side still says, or that it closes, means nothing any more.
    pub(super) fn forgive(&mut self) {
        self.left = true;
    }

    /// Says goodbye. The link still takes what the other side has to say.
    pub(super) fn close(&mut self, now: Instant) {
        self.send(&Frame::Goodbye, now);
        // Whoever has closed already does not mind.
        drop(self.stream.shutdown(Shutdown::Write));
    }

    /// Whether the other side has closed as well. Throws away what it says.
    pub(super) fn is_over(&mut self, now: Instant) -> bool {
        let over = self.fill(MOST_AT_ONCE, now).is_err();
        self.inbox.clear();
        over
    }

    /// Reads so many bytes at most. An error means that no more will come.
    fn fill(&mut self, most: usize, now: Instant) -> Result<(), String> {
        let mut chunk = [0; 4096];
        let mut left = most;
        while left > 0 {
            let room = left.min(chunk.len());
            match self.stream.read(&mut chunk[..room]) {
                Ok(0) => return Err("it closed its connection".to_owned()),
                Ok(count) => {
                    self.heard = now;
                    self.inbox.extend(&chunk[..count]);
                    left -= count;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("its connection broke: {error}")),
            }
        }
        Ok(())
    }

    fn flush(&mut self) {
        while !self.outbox.is_empty() {
            match self.stream.write(&self.outbox) {
                Ok(count) => drop(self.outbox.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A full socket is tried again, a broken one shows in `fill`.
                Err(_) => return,
            }
        }
    }
}
