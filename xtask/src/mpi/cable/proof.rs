//! Whether a cable is as slow as it should be, by what plain TCP makes of it.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::{BYTES_PER_SECOND, DELAY, system};

const ROUNDS: usize = 10;

/// What goes through the cable at once: 100 ms of it.
const BULK: usize = BYTES_PER_SECOND as usize / 10;

/// After which a cable is cut.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a cable has been measured to do.
pub(in super::super) struct Proof {
    /// Of a byte, there and back; the shortest of several.
    round_trip: Duration,
    /// Of [`BULK`] there, and a byte back.
    bulk: Duration,
}

impl Proof {
    /// Measures the cable between two namespaces; the second has this address.
    ///
    /// # Errors
    /// If nothing gets through.
    pub(in super::super) fn of(names: &[String; 2], address: &str) -> io::Result<Self> {
        let listener = system::inside(&names[1], || TcpListener::bind((address, 0)))?;
        let there = listener.local_addr()?;
        let mut near = system::inside(&names[0], || connect(there))?;
        // It waits to be accepted.
        let (mut far, _) = listener.accept()?;
        thread::scope(|scope| {
            let answers = scope.spawn(move || answer(&mut far));
            let round_trips = (0..ROUNDS).map(|_| ask(&mut near, 1));
            let round_trips = round_trips.collect::<io::Result<Vec<_>>>()?;
            let round_trip = round_trips.into_iter().min().unwrap_or_default();
            let bulk = ask(&mut near, BULK)?;
            answers.join().expect("answering does not panic")?;
            Ok(Self { round_trip, bulk })
        })
    }

    /// Whether the cable is no better than it should be. How much worse it is depends on this
    /// machine's load.
    pub(in super::super) fn holds(&self) -> bool {
        let bandwidth = Duration::from_secs(BULK as u64) / BYTES_PER_SECOND;
        self.round_trip >= 2 * DELAY && self.bulk >= bandwidth + 2 * DELAY
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let round_trip = self.round_trip.as_secs_f64() * 1e3;
        let megabits = BULK as f64 * 8e-6 / self.bulk.as_secs_f64();
        write!(f, "there and back in {round_trip:.2} ms, {megabits:.0} Mbit/s")
    }
}

fn connect(there: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&there, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Sends so many bytes, and waits for the answer.
fn ask(stream: &mut TcpStream, bytes: usize) -> io::Result<Duration> {
    let bytes = vec![0; bytes];
    let start = Instant::now();
    stream.write_all(&bytes)?;
    stream.read_exact(&mut [0])?;
    Ok(start.elapsed())
}

/// The other end of [`ask`], of all that are asked.
fn answer(stream: &mut TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    for bytes in [1; ROUNDS].into_iter().chain([BULK]) {
        stream.read_exact(&mut vec![0; bytes])?;
        stream.write_all(&[0])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{DELAY, Proof};

    #[test]
    fn a_cable_must_be_slow_in_both_ways() {
        let proof = |round_trip, bulk| Proof { round_trip, bulk: Duration::from_millis(bulk) };
        assert!(proof(2 * DELAY, 102).holds());
        assert!(!proof(DELAY, 102).holds());
        assert!(!proof(2 * DELAY, 101).holds());
        assert_eq!(proof(2 * DELAY, 125).to_string(), "there and back in 2.00 ms, 320 Mbit/s");
    }
}
