//! Waiting for several sockets, and for somebody who rings: `poll(2)`. Knows no frames.
#![allow(unsafe_code)]

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use crate::polling::NO_WAIT;

/// Sockets to wait for, added anew for each wait.
#[derive(Default)]
pub(super) struct Sockets(Vec<libc::pollfd>);

impl Sockets {
    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds one: until it can be read, or also until it can be written.
    pub(super) fn add(&mut self, socket: &impl AsFd, writes: bool) {
        let events = if writes { libc::POLLIN | libc::POLLOUT } else { libc::POLLIN };
        let fd = socket.as_fd().as_raw_fd();
        self.0.push(libc::pollfd { fd, events, revents: 0 });
    }

    /// Blocks until something can be done with one of them, but not beyond `deadline`. May
    /// return without a reason.
    pub(super) fn wait(&mut self, deadline: Option<Instant>) {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // Up, so that the deadline has passed when the wait is over.
        let millis = left
            .map_or(-1, |left| left.as_nanos().div_ceil(1_000_000).try_into().unwrap_or(i32::MAX));
        let count = self.0.len().try_into().expect("a process has no more sockets");
        // SAFETY: the list has so many entries. A socket that is closed by now is an event.
        let outcome = unsafe { libc::poll(self.0.as_mut_ptr(), count, millis) };
        if outcome < 0 {
            // A signal, or no memory: the caller looks at all sockets, and comes back.
            self.0.iter_mut().for_each(|socket| socket.revents = libc::POLLIN);
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                std::thread::sleep(NO_WAIT);
            }
        }
    }

    /// Whether there is something to be done with the socket that was added at a position.
    pub(super) fn is_ready(&self, position: usize) -> bool {
        self.0[position].revents != 0
    }
}

/// Ends a wait, from any thread.
pub(super) struct Bell {
    button: UnixStream,
    sound: UnixStream,
}

impl Bell {
    /// # Errors
    /// If the system gives no sockets.
    pub(super) fn new() -> io::Result<Self> {
        let (button, sound) = UnixStream::pair()?;
        button.set_nonblocking(true)?;
        sound.set_nonblocking(true)?;
        Ok(Self { button, sound })
    }

    /// Ends the wait that is under way, or else the next one.
    pub(super) fn ring(&self) {
        // If there is no room, it has rung often enough.
        drop((&self.button).write(&[1]));
    }

    /// What to wait for.
    pub(super) fn sound(&self) -> &UnixStream {
        &self.sound
    }

    /// Forgets that it has rung.
    pub(super) fn silence(&self) {
        let mut rings = [0; 64];
        while (&self.sound).read(&mut rings).is_ok_and(|count| count == rings.len()) {}
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_bell_ends_one_wait() {
        let (bell, mut sockets) = (Bell::new().unwrap(), Sockets::default());
        for _ in 0..1000 {
            bell.ring();
        }
        sockets.add(bell.sound(), false);
        sockets.wait(None);
        assert!(sockets.is_ready(0));
        bell.silence();
        let deadline = Instant::now() + Duration::from_millis(3);
        while Instant::now() < deadline {
            sockets.wait(Some(deadline));
        }
        assert!(!sockets.is_ready(0));
    }

    #[test]
    fn the_socket_that_is_ready_is_named() {
        let (one, other) = (Bell::new().unwrap(), Bell::new().unwrap());
        let mut sockets = Sockets::default();
        sockets.add(one.sound(), false);
        sockets.add(other.sound(), false);
        std::thread::scope(|scope| {
            scope.spawn(|| other.ring());
            sockets.wait(None);
        });
        assert_eq!([sockets.is_ready(0), sockets.is_ready(1)], [false, true]);
        sockets.clear();
        sockets.add(one.sound(), true);
        sockets.wait(None);
        assert!(sockets.is_ready(0), "it can be written");
    }
}
