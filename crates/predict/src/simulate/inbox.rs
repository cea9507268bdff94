//! What comes to a node for one buffer of one task: messages meet receives, by the elements that they
//! share. Owns who still waits for how many; knows no time.

use celerity_regions::Box3;

use crate::span::SpanId;

/// A message on its way: its sender and the position of the send there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parcel {
    pub(super) from: usize,
    pub(super) step: u32,
    pub(super) elements: Box3,
    pub(super) bytes: u64,
}

/// One transfer's messages and receives on one node. Operations are linear in what it holds.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    /// What there is memory for.
    posted: Vec<Box3>,
    /// What has come, and as which span.
    arrived: Vec<(Box3, SpanId)>,
    /// Who waits.
    waiting: Vec<Waiting>,
    /// Messages that leave when there is memory for them, with why they have not before.
    kept: Vec<(Parcel, Option<SpanId>)>,
}

#[derive(Debug)]
struct Waiting {
    step: u32,
    elements: Vec<Box3>,
    missing: u64,
}

impl Inbox {
    /// There is memory for these elements. Returns the messages that may leave now.
    pub(super) fn post(&mut self, elements: &[Box3]) -> Vec<(Parcel, Option<SpanId>)> {
        self.posted.extend_from_slice(elements);
        let kept = std::mem::take(&mut self.kept);
        let (ready, kept) = kept.into_iter().partition(|(parcel, _)| self.has_room(parcel));
        self.kept = kept;
        ready
    }

    /// Whether there is memory for all of a message.
    pub(super) fn has_room(&self, parcel: &Parcel) -> bool {
        shared(&self.posted, parcel.elements) == parcel.elements.volume()
    }

    /// Keeps a message until there is memory for it.
    pub(super) fn keep(&mut self, parcel: Parcel, cause: Option<SpanId>) {
        self.kept.push((parcel, cause));
    }

    /// An instruction waits for these elements. Returns whether they are there, and since which span.
    pub(super) fn wait(&mut self, step: u32, elements: &[Box3]) -> Option<Option<SpanId>> {
        let mut missing = elements.iter().map(Box3::volume).sum::<u64>();
        let mut last = None;
        for (arrived, span) in &self.arrived {
            let common = shared(elements, *arrived);
            if common > 0 {
                (missing, last) = (missing.saturating_sub(common), Some(*span));
            }
        }
        if missing == 0 {
            return Some(last);
        }
        self.waiting.push(Waiting { step, elements: elements.to_vec(), missing });
        None
    }

    /// Elements have come. Returns the instructions whose last ones they are.
    pub(super) fn arrive(&mut self, elements: Box3, span: SpanId) -> Vec<u32> {
        self.arrived.push((elements, span));
        let mut complete = Vec::new();
        self.waiting.retain_mut(|waiting| {
            let common = shared(&waiting.elements, elements);
            waiting.missing = waiting.missing.saturating_sub(common);
            if waiting.missing == 0 {
                complete.push(waiting.step);
            }
            waiting.missing > 0
        });
        complete
    }

    /// How many elements an instruction still waits for; `None` if it does not wait.
    pub(super) fn missing(&self, step: u32) -> Option<u64> {
        let waiting = self.waiting.iter().find(|waiting| waiting.step == step);
        waiting.map(|waiting| waiting.missing)
    }
}

/// How many elements disjoint boxes have in common with one.
fn shared(boxes: &[Box3], one: Box3) -> u64 {
    boxes.iter().map(|other| other.intersection(&one).volume()).sum()
}
