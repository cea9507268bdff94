//! The tracks of a node in a trace: which there are, in which order they are shown,
//! and which are free.

use celerity_trace::{Recorder, Text, TrackId};

use crate::engine::LaneId;

/// The first user thread; the others follow.
pub(super) const PROGRAM: u32 = 1;

/// The last number for user threads, which more than so many share.
pub(super) const LAST_PROGRAM: u32 = 9;

/// The scheduler.
pub(super) const SCHEDULER: TrackId = TrackId::from_index(10);

/// What a node does itself, such as allocating.
pub(super) const NODE: TrackId = TrackId::from_index(11);

/// Waiting for other nodes.
pub(super) const BARRIERS: TrackId = TrackId::from_index(12);

const LANES: u32 = 100;

/// Sends; as many tracks as there are at a time.
pub(super) const SENDS: u32 = 100_000;

/// Receives: instructions, from when they are issued.
pub(super) const RECEIVES: u32 = 200_000;

/// Payloads: parts of receives, from when their senders are known.
pub(super) const PAYLOADS: u32 = 300_000;

/// Collective operations that overlap: instructions, from when they are issued.
pub(super) const COLLECTIVES: u32 = 400_000;

/// The track of a lane.
pub(super) fn lane(lane: LaneId) -> TrackId {
    TrackId::from_index(LANES + u32::try_from(lane.slot()).expect("lanes have small slots"))
}

/// Tracks for things of one kind that overlap: each takes the first free one.
#[derive(Debug)]
pub(super) struct Slots {
    first: u32,
    name: &'static str,
    taken: Vec<bool>,
}

impl Slots {
    pub(super) fn new(first: u32, name: &'static str) -> Self {
        Self { first, name, taken: Vec::new() }
    }

    /// A free track. O(tracks in use).
    pub(super) fn take(&mut self, recorder: &Recorder) -> TrackId {
        let free = self.taken.iter().position(|taken| !taken);
        let slot = free.unwrap_or(self.taken.len());
        let track = TrackId::from_index(self.first + u32::try_from(slot).expect("slots are few"));
        if free.is_none() {
            self.taken.push(false);
            recorder.name_track(track, Text::shown(format!("{} {}", self.name, slot + 1)));
        }
        self.taken[slot] = true;
        track
    }

    /// What was taken is free again.
    pub(super) fn give_back(&mut self, track: TrackId) {
        let slot = usize::try_from(track.index() - self.first).expect("slots are few");
        self.taken[slot] = false;
    }
}
