//! What a node records while it executes: each instruction from when it was issued,
//! or from when its job began, to when it completed; payloads; memory. Reads a clock,
//! which nothing of the node does.

use std::sync::Arc;
use std::time::Duration;

use celerity_cdag::NodeId;
use celerity_idag::{Effects, ExchangePart, InstructionId, MemoryId, MessageId, Synchronization};
use celerity_regions::Region;
use celerity_trace::{Counter, Message, Recorder, Text, TimeSlice, TrackId, Value};

use super::label::Label;
use super::tracks::{self, BARRIERS, COLLECTIVES, NODE, PAYLOADS, RECEIVES, SENDS, Slots};
use crate::arbiter::PostReceive;
use crate::engine::LaneId;
use crate::lanes::LaneLayout;
use crate::time::{Clock, Span, Time};
use crate::window::{IdMap, Window};

/// One node's side of a trace.
pub(crate) struct NodeProfile {
    node: NodeId,
    lanes: LaneLayout,
    clock: Clock,
    recorder: Arc<Recorder>,
    /// By lane: when its latest job ended; `None` before the first.
    ends: Vec<Option<Time>>,
    has_name: [bool; 2],
    open: Window<Open>,
    sends: Slots,
    receives: Slots,
    payloads: Slots,
    collectives: Slots,
    arriving: IdMap<(NodeId, MessageId), Arriving>,
    /// Bytes by memory.
    resident: Vec<u64>,
    /// Instructions on lanes and others, tasks held back: as they were last told.
    told: [u64; 3],
    on_lanes: u64,
    horizon: Option<InstructionId>,
}

/// An instruction that has not completed.
struct Open {
    after: Vec<u64>,
    issued: Option<Issued>,
}

struct Issued {
    at: Time,
    place: TrackKind,
    label: Label,
    /// When its job ran, if it has and the backend says so.
    span: Option<Span>,
    synchronizes: Option<Synchronization>,
}

/// On which kind of track an instruction is shown.
#[derive(Clone, Copy)]
enum TrackKind {
    Lane(LaneId),
    Send(TrackId),
    Receive(TrackId),
    Collective(TrackId),
    Barrier,
    Node,
}

struct Arriving {
    since: Time,
    track: TrackId,
    label: Label,
}

/// The number of the arrow from a payload's sender to its receiver.
fn arrow(from: NodeId, message: MessageId) -> u64 {
    (from.index() & 0xfff) << 40 | (message.index() & 0xff_ffff_ffff)
}

fn point(time: Time) -> Duration {
    time.since(Time::START)
}

impl NodeProfile {
    pub(super) fn new(
        node: NodeId,
        lanes: LaneLayout,
        clock: Clock,
        recorder: Arc<Recorder>,
    ) -> Self {
        Self {
            node,
            lanes,
            clock,
            recorder,
            ends: vec![None; lanes.count()],
            has_name: [false; 2],
            open: Window::default(),
            sends: Slots::new(SENDS, "send"),
            receives: Slots::new(RECEIVES, "receive"),
            payloads: Slots::new(PAYLOADS, "payload"),
            collectives: Slots::new(COLLECTIVES, "collective"),
            arriving: IdMap::default(),
            resident: vec![0; lanes.devices() + 2],
            told: [0; 3],
            on_lanes: 0,
            horizon: None,
        }
    }

    /// The clock by which jobs are timed.
    pub(crate) fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// An instruction has been generated.
    pub(crate) fn admitted(&mut self, id: InstructionId, dependencies: &[InstructionId]) {
        let after = dependencies.iter().map(|before| before.index()).collect();
        self.open.insert(id.index(), Open { after, issued: None });
    }

    /// An instruction begins, or goes on a lane.
    pub(crate) fn issued(
        &mut self,
        id: InstructionId,
        lane: Option<LaneId>,
        effects: &Effects<'_>,
        label: Label,
    ) {
        let place = match lane {
            Some(lane) => TrackKind::Lane(lane),
            None => self.place(effects),
        };
        let synchronizes = effects.synchronizes;
        self.on_lanes += u64::from(lane.is_some());
        let issued = Issued { at: (self.clock)(), place, label, span: None, synchronizes };
        let open = self.open.get_mut(id.index()).expect("instructions are admitted first");
        open.issued = Some(issued);
    }

    /// Where an instruction is shown that the node does itself.
    fn place(&mut self, effects: &Effects<'_>) -> TrackKind {
        match (effects.exchange.map(|exchange| exchange.part), effects.synchronizes) {
            (Some(ExchangePart::Send { .. }), _) => {
                TrackKind::Send(self.sends.take(&self.recorder))
            }
            (Some(ExchangePart::Receive | ExchangePart::Await), _) => {
                TrackKind::Receive(self.receives.take(&self.recorder))
            }
            (Some(ExchangePart::Collective { .. }), _) => {
                TrackKind::Collective(self.collectives.take(&self.recorder))
            }
            (_, Some(Synchronization::Epoch { .. })) => TrackKind::Barrier,
            (Some(ExchangePart::Begin) | None, _) => TrackKind::Node,
        }
    }

    /// The backend says when a job ran.
    pub(crate) fn timed(&mut self, id: InstructionId, span: Span) {
        if let Some(Open { issued: Some(issued), .. }) = self.open.get_mut(id.index()) {
            issued.span = Some(span);
        }
    }

    /// An issued instruction has completed, or failed.
    pub(crate) fn retired(&mut self, id: InstructionId) {
        let Some(Open { after, issued: Some(issued) }) = self.open.remove(id.index()) else {
            return;
        };
        let span = self.span(&issued);
        let track = self.leave(issued.place, span);
        let Label { name, category, mut details, sends } = issued.label;
        details.push(("instruction", Value::Text(Text::shown(id))));
        if let TrackKind::Lane(_) = issued.place {
            let waited = span.start.since(issued.at);
            let nanos = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
            details.push(("queued_ns", Value::Number(nanos)));
        }
        self.recorder.slice(TimeSlice {
            track,
            start: point(span.start),
            end: point(span.end),
            name,
            category,
            details,
            id: Some(id.index()),
            after,
            message: sends.map(|message| Message::Sent(arrow(self.node, message))),
        });
        self.forget(id, issued.synchronizes);
    }

    /// A payload's sender is known, and the payload asked for.
    pub(crate) fn posted(&mut self, post: &PostReceive, buffer: Arc<str>) {
        let PostReceive { from, message, ref parts, elem_size, .. } = *post;
        let track = self.payloads.take(&self.recorder);
        let region = Region::from_boxes(parts.iter().map(|(part, _)| *part));
        let label = Label::payload(from, buffer, &region, elem_size);
        let arriving = Arriving { since: (self.clock)(), track, label };
        self.arriving.insert((from, message), arriving);
    }

    /// A payload is in place.
    pub(crate) fn arrived(&mut self, from: NodeId, message: MessageId) {
        let Some(Arriving { since, track, label }) = self.arriving.remove(&(from, message)) else {
            return;
        };
        self.payloads.give_back(track);
        let Label { name, category, details, .. } = label;
        self.recorder.slice(TimeSlice {
            track,
            start: point(since),
            end: point((self.clock)()),
            name,
            category,
            details,
            id: None,
            after: Vec::new(),
            message: Some(Message::Received(arrow(from, message))),
        });
    }

    /// So many bytes have been allocated.
    pub(crate) fn allocated(&mut self, memory: MemoryId, bytes: u64) {
        self.resident[memory.slot()] += bytes;
        self.count_memory(memory);
    }

    /// So many bytes have been given back.
    pub(crate) fn freed(&mut self, memory: MemoryId, bytes: u64) {
        self.resident[memory.slot()] -= bytes;
        self.count_memory(memory);
    }

    /// How things are after a round: incomplete instructions, and tasks that are
    /// held back.
    pub(crate) fn polled(&mut self, incomplete: usize, held_back: u64) {
        let now = [self.on_lanes, incomplete as u64 - self.on_lanes, held_back];
        if now == self.told {
            return;
        }
        let at = point((self.clock)());
        if now[..2] != self.told[..2] {
            let values = vec![("on lanes", now[0]), ("others", now[1])];
            self.recorder.counter(Counter { at, name: "instructions".into(), values });
        }
        if now[2] != self.told[2] {
            let values = vec![("tasks", now[2])];
            self.recorder.counter(Counter { at, name: "held back".into(), values });
        }
        self.told = now;
    }

    /// When an instruction that completes now was at it. A job of which the backend
    /// does not say so began when it was issued, or when the one before it ended.
    fn span(&self, issued: &Issued) -> Span {
        issued.span.unwrap_or_else(|| {
            let end = (self.clock)();
            let before = match issued.place {
                TrackKind::Lane(lane) => self.ends[lane.slot()],
                _ => None,
            };
            Span { start: before.map_or(issued.at, |before| before.max(issued.at)), end }
        })
    }

    /// Frees what the instruction had of a place; returns its track.
    fn leave(&mut self, place: TrackKind, span: Span) -> TrackId {
        match place {
            TrackKind::Lane(lane) => {
                self.on_lanes -= 1;
                let track = tracks::lane(lane);
                if self.ends[lane.slot()].replace(span.end).is_none() {
                    self.recorder.name_track(track, Text::shown(self.lanes.name(lane)));
                }
                track
            }
            TrackKind::Send(track) => {
                self.sends.give_back(track);
                track
            }
            TrackKind::Receive(track) => {
                self.receives.give_back(track);
                track
            }
            TrackKind::Collective(track) => {
                self.collectives.give_back(track);
                track
            }
            TrackKind::Barrier => self.named(0, BARRIERS, "barriers"),
            TrackKind::Node => self.named(1, NODE, "executor"),
        }
    }

    fn named(&mut self, index: usize, track: TrackId, name: &'static str) -> TrackId {
        if !std::mem::replace(&mut self.has_name[index], true) {
            self.recorder.name_track(track, name);
        }
        track
    }

    /// Lets the trace forget what no later instruction depends on.
    fn forget(&mut self, id: InstructionId, synchronizes: Option<Synchronization>) {
        match synchronizes {
            None => {}
            Some(Synchronization::Epoch { .. }) => self.recorder.forget_before(id.index()),
            Some(Synchronization::Horizon { .. }) => {
                if let Some(last) = self.horizon.replace(id) {
                    self.recorder.forget_before(last.index());
                }
            }
        }
    }

    fn count_memory(&self, memory: MemoryId) {
        let name = match memory.device() {
            Some(device) => Text::shown(format!("{memory} ({device})")),
            None if memory == MemoryId::USER => Text::shown(format!("{memory} (user)")),
            None => Text::shown(format!("{memory} (host)")),
        };
        let values = vec![("bytes", self.resident[memory.slot()])];
        self.recorder.counter(Counter { at: point((self.clock)()), name, values });
    }
}
