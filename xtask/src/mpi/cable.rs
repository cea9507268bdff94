//! A cable between two network namespaces, as slow as one between hosts: whatever an interface in
//! one of them sends arrives at the other late, and no faster than the cable is. Owns the
//! interfaces and the threads that carry frames between them. Refuses to know what is in a frame.

mod line;
mod proof;
mod system;

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use line::Line;

pub(super) use proof::Proof;

/// What the interface in either namespace is called.
pub(super) const INTERFACE: &str = "cable";

/// How long each direction takes.
const DELAY: Duration = Duration::from_millis(1);

/// What each direction carries: 400 Mbit/s.
const BYTES_PER_SECOND: u32 = 50_000_000;

/// Frames that wait in each direction; further ones are lost, as in a switch. Enough for 30 ms of
/// full ones.
const ROOM: usize = 1000;

/// The largest frame on an Ethernet, with a tag.
const FRAME: usize = 1518;

/// Joins two namespaces, which `ip netns` knows by these names. Each gets an [`INTERFACE`], which is
/// down and has no address. It is there until it is deleted: its namespace does not go before.
///
/// # Errors
/// If this process may not enter the namespaces or make interfaces there.
pub(super) fn join(names: &[String; 2]) -> io::Result<()> {
    let [a, b] = names.each_ref().map(|name| system::inside(name, || system::tap(INTERFACE)));
    let (a, b) = (Arc::new(a?), Arc::new(b?));
    for (from, to) in [(a.clone(), b.clone()), (b, a)] {
        let direction = thread::Builder::new().name("cable".to_owned());
        direction.spawn(move || carry(&from, &to))?;
    }
    Ok(())
}

/// Carries frames in one direction until the interface that they come from is deleted.
fn carry(mut from: &File, mut to: &File) {
    let mut line = Line::new(DELAY, BYTES_PER_SECOND, ROOM);
    let mut frame = [0; FRAME];
    loop {
        let due = line.next_due().map(|due| due.saturating_duration_since(Instant::now()));
        let arrived = match system::readable(from, due) {
            Ok(true) => from.read(&mut frame).map(Some),
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        };
        let now = Instant::now();
        match arrived {
            Ok(Some(bytes)) => line.push(now, &frame[..bytes]),
            Ok(None) => {}
            Err(_) => return,
        }
        while let Some(frame) = line.pop(now) {
            // An interface that is down takes nothing; nor does a host that is off.
            let _ = to.write(&frame);
        }
    }
}
