//! A trace on its way to disk: a thread that takes records from all recorders, puts
//! them into words and writes them. Knows no other file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::SystemTime;

use crate::encode::{END, Encoder, clock_line};
use crate::error::TraceError;
use crate::recorder::{Recorder, ToWriter};

/// A trace that is being written.
///
/// The file is an array of lines, and viewers read one whose end is missing: what
/// has been handed over survives whatever happens to the process. Records wait in
/// memory without a bound if the disk is slower than they are made.
#[derive(Debug)]
pub struct TraceFile {
    path: PathBuf,
    sender: Sender<ToWriter>,
    recorders: Mutex<Vec<Arc<Recorder>>>,
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
            let file = File::create(path)?;
            let (sender, records) = channel();
            let write = move || write_all(BufWriter::new(file), started, &records);
            let writer = Builder::new().name("celerity-trace".to_owned()).spawn(write)?;
            Ok((sender, writer))
        };
        let path = path.to_owned();
        match create() {
            Ok((sender, writer)) => {
                Ok(Self { path, sender, recorders: Mutex::default(), writer: Some(writer) })
            }
            Err(source) => Err(TraceError::Create { path, source }),
        }
    }

    /// A recorder of a process of the trace; there may be several of one.
    #[must_use]
    pub fn recorder(&self, process: u32) -> Arc<Recorder> {
        let recorder = Arc::new(Recorder::new(process, self.sender.clone()));
        self.lock().push(recorder.clone());
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
        self.lock().drain(..).for_each(|recorder| recorder.flush());
        // A writer that is gone has an error to tell.
        drop(self.sender.send(ToWriter::Finish));
        writer.join().unwrap_or_else(|_| Err(io::Error::other("the writer's thread panicked")))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Recorder>>> {
        self.recorders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        // Nobody is left to be told.
        drop(self.end());
    }
}

fn write_all(
    mut file: impl Write,
    started: SystemTime,
    records: &Receiver<ToWriter>,
) -> io::Result<()> {
    write!(file, "[\n{}", clock_line(started))?;
    let mut encoder = Encoder::default();
    while let Ok(ToWriter::Records { process, records }) = records.recv() {
        let mut outcome = Ok(());
        let mut write = |line: String| {
            if outcome.is_ok() {
                outcome = write!(file, ",\n{line}");
            }
        };
        for record in &records {
            encoder.encode(process, record, &mut write);
        }
        outcome?;
        file.flush()?;
    }
    file.write_all(END)?;
    file.flush()
}
