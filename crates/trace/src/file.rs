//! A trace on its way to disk: a thread that takes records from all recorders, puts
//! them into words and writes them. Knows no other file.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use crate::encode::{END, Encoder, clock_line};
use crate::error::TraceError;
use crate::record::TraceRecord;
use crate::recorder::{Recorder, ToWriter};
use crate::target;

/// How often the writer fetches what recorders have, so that little is lost with a
/// process that dies. Looking costs a lock per recorder, and a small write if there is
/// anything.
const FETCH_EVERY: Duration = Duration::from_millis(500);

type Recorders = Mutex<Vec<Arc<Recorder>>>;

/// A trace that is being written.
///
/// The file is an array of lines, and viewers read one whose end is missing: what was
/// recorded up to half a second before survives whatever happens to the process. Records
/// wait in memory without a bound if the disk is slower than they are made.
#[derive(Debug)]
pub struct TraceFile {
    path: PathBuf,
    sender: Sender<ToWriter>,
    recorders: Arc<Recorders>,
    writer: Option<JoinHandle<io::Result<()>>>,
}

impl TraceFile {
    /// Creates or empties the file at `path`, and starts a thread that writes to it.
    /// All times count from `started`, by which parts of other machines are brought
    /// into line.
    ///
    /// # Errors
    /// [`TraceError::Create`] if there can be no such file, or no thread.
    pub fn create(path: &Path, started: SystemTime) -> Result<Self, TraceError> {
        let create = || {
            let file = target::create(path)?;
            let (sender, records) = channel();
            let recorders = Arc::<Recorders>::default();
            let fetched = recorders.clone();
            let write = move || write_all(BufWriter::new(file), started, &records, &fetched);
            let writer = Builder::new().name("celerity-trace".to_owned()).spawn(write)?;
            Ok((sender, recorders, writer))
        };
        let path = path.to_owned();
        match create() {
            Ok((sender, recorders, writer)) => {
                Ok(Self { path, sender, recorders, writer: Some(writer) })
            }
            Err(source) => Err(TraceError::Create { path, source }),
        }
    }

    /// A recorder of a process of the trace; there may be several of one.
    #[must_use]
    pub fn recorder(&self, process: u32) -> Arc<Recorder> {
        let recorder = Arc::new(Recorder::new(process, self.sender.clone()));
        lock(&self.recorders).push(recorder.clone());
        recorder
    }

    /// Writes what all recorders have, and ends the file. What they get later is
    /// dropped. Dropping the trace does the same, in silence.
    ///
    /// # Errors
    /// [`TraceError::Write`] if a part of it could not be written.
    pub fn finish(mut self) -> Result<(), TraceError> {
        let outcome = self.end();
        outcome.map_err(|source| TraceError::Write { path: self.path.clone(), source })
    }

    fn end(&mut self) -> io::Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        lock(&self.recorders).drain(..).for_each(|recorder| recorder.flush());
        // A writer that is gone has an error to tell.
        drop(self.sender.send(ToWriter::Finish));
        writer.join().unwrap_or_else(|_| Err(io::Error::other("the writer's thread panicked")))
    }
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        // Nobody is left to be told.
        drop(self.end());
    }
}

fn lock(recorders: &Recorders) -> MutexGuard<'_, Vec<Arc<Recorder>>> {
    recorders.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write_all(
    mut file: impl Write,
    started: SystemTime,
    records: &Receiver<ToWriter>,
    recorders: &Recorders,
) -> io::Result<()> {
    write!(file, "[\n{}", clock_line(started))?;
    // Of a process that dies from here on, what is there is a part of a trace.
    file.flush()?;
    let mut encoder = Encoder::default();
    let mut fetch_at = Instant::now() + FETCH_EVERY;
    loop {
        match records.recv_timeout(fetch_at.saturating_duration_since(Instant::now())) {
            Ok(ToWriter::Records { process, records }) => {
                write_batch(&mut file, &mut encoder, process, &records)?;
            }
            Ok(ToWriter::Finish) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        // Also while batches come: other recorders may have little.
        if Instant::now() >= fetch_at {
            lock(recorders).iter().for_each(|recorder| recorder.flush());
            fetch_at = Instant::now() + FETCH_EVERY;
        }
    }
    file.write_all(END)?;
    file.flush()
}

fn write_batch(
    file: &mut impl Write,
    encoder: &mut Encoder,
    process: u32,
    records: &[TraceRecord],
) -> io::Result<()> {
    let mut outcome = Ok(());
    let mut write = |line: String| {
        if outcome.is_ok() {
            outcome = write!(file, ",\n{line}");
        }
    };
    for record in records {
        encoder.encode(process, record, &mut write);
    }
    outcome?;
    file.flush()
}
