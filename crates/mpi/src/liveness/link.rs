//! One connection of the side channel: frames in and out of a socket that never
//! blocks. Knows nothing of what frames mean.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use super::frame::Frame;

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

impl Link {
    /// # Errors
    /// If the socket cannot be set up.
    pub(super) fn new(stream: TcpStream, now: Instant) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let (inbox, outbox) = (Vec::new(), Vec::new());
        Ok(Self { stream, inbox, outbox, heard: now, sent: now, left: false })
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

    /// Appends the frames that have come.
    ///
    /// # Errors
    /// Why the other side counts as gone. Never after its goodbye.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        timeout: Duration,
        frames: &mut Vec<Frame>,
    ) -> Result<(), String> {
        self.flush();
        let ended = self.fill(now);
        while let Some(frame) =
            Frame::read(&mut self.inbox).map_err(|why| format!("it sent nonsense: {}", why.0))?
        {
            self.left |= frame == Frame::Goodbye;
            frames.push(frame);
        }
        if self.left {
            return Ok(());
        }
        ended?;
        match now.duration_since(self.heard) >= timeout {
            true => Err(format!("it has been silent for {timeout:?}")),
            false => Ok(()),
        }
    }

    /// Says goodbye. The link still takes what the other side has to say.
    pub(super) fn close(&mut self, now: Instant) {
        self.send(&Frame::Goodbye, now);
        // Whoever has closed already does not mind.
        drop(self.stream.shutdown(Shutdown::Write));
    }

    /// Whether the other side has closed as well. Throws away what it says.
    pub(super) fn is_over(&mut self, now: Instant) -> bool {
        let over = self.fill(now).is_err();
        self.inbox.clear();
        over
    }

    fn fill(&mut self, now: Instant) -> Result<(), String> {
        let mut chunk = [0; 4096];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err("it closed its connection".to_owned()),
                Ok(count) => {
                    self.heard = now;
                    self.inbox.extend(&chunk[..count]);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("its connection broke: {error}")),
            }
        }
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
