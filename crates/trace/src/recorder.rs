//! Where one process of a trace leaves its records: cheap, from any thread. Puts
//! nothing into words.

use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};

use crate::record::{Counter, Text, TimeSlice, TraceRecord, TrackId};

/// Records that travel together: handing over costs a message, so it is done for
/// many at once. The writer's thread fetches those that wait for others too long.
const BATCH: usize = 1024;

/// One process of a trace, such as a node of a cluster, or a part of one that
/// records on its own.
///
/// A record costs a lock that nobody else holds for long and a move. Recorders of
/// the same process share its tracks, counters and ids of slices; ids are looked
/// up in the order of records, so slices that name each other belong into one
/// recorder.
#[derive(Debug)]
pub struct Recorder {
    process: u32,
    batch: Mutex<Vec<TraceRecord>>,
    writer: Sender<ToWriter>,
}

/// What the writer's thread is told.
#[derive(Debug)]
pub(crate) enum ToWriter {
    Records { process: u32, records: Vec<TraceRecord> },
    Finish,
}

impl Recorder {
    pub(crate) fn new(process: u32, writer: Sender<ToWriter>) -> Self {
        Self { process, batch: Mutex::default(), writer }
    }

    /// Says what the process is called.
    pub fn name_process(&self, name: impl Into<Text>) {
        self.add(TraceRecord::Process { name: name.into() });
    }

    /// Says what a track is called.
    pub fn name_track(&self, track: TrackId, name: impl Into<Text>) {
        self.add(TraceRecord::Track { track, name: name.into() });
    }

    /// Adds something that took time, once it is over.
    pub fn slice(&self, slice: TimeSlice) {
        self.add(TraceRecord::Slice(slice));
    }

    /// Adds new values of a counter.
    pub fn counter(&self, counter: Counter) {
        self.add(TraceRecord::Counter(counter));
    }

    /// Promises that no later slice names one whose id is less than `before`, so
    /// that the writer may forget them.
    pub fn forget_before(&self, before: u64) {
        self.add(TraceRecord::Forget { before });
    }

    /// Hands over what has been recorded, if anything has.
    pub(crate) fn flush(&self) {
        let mut batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
        if !batch.is_empty() {
            // The batch keeps its memory: whoever records next does not have to grow it.
            let records = batch.drain(..).collect();
            self.send(records);
        }
    }

    fn add(&self, record: TraceRecord) {
        let mut batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
        batch.push(record);
        if batch.len() >= BATCH {
            self.send(std::mem::replace(&mut *batch, Vec::with_capacity(BATCH)));
        }
    }

    /// Called with the batch locked, so that records arrive in order.
    fn send(&self, records: Vec<TraceRecord>) {
        // A writer that has finished takes nothing more, and nobody waits for it.
        drop(self.writer.send(ToWriter::Records { process: self.process, records }));
    }
}
