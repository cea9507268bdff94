//! Defects planted between a node and its simulated network or devices: the
//! simulation finds each of them, and says what it should.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::time::Duration;

use celerity_cdag::NodeId;
use celerity_executor::{
    AllocError, Backend, BasePtr, CollectiveExchange, CommEvent, Communicator, Completion,
    ElementArray, Job, LaneGroup, LaneId, LaneJob, LaneLayout, RunError, Stall, WaitsFor,
    WirePayload, copy_elements,
};
use celerity_idag::{InstructionId, MemoryId, MessageId, Pilot};
use celerity_tdag::TaskId;
use celerity_testkit::check::Configuration;
use celerity_testkit::corpus;
use celerity_testkit::sim::{Breach, SimBackend, SimCommunicator, Simulation};

/// What is wrong with a node's surroundings.
#[derive(Clone, Copy, PartialEq)]
enum Defect {
    /// Nothing.
    None,
    /// A payload is reported as received, and put in place some polls later.
    ReceivedTooEarly,
    /// A payload is reported as sent when it has been offered.
    SentTooEarly,
    /// The first pilot of each node is lost.
    PilotLost,
    /// Jobs that are queued on one lane change places.
    LaneReordered,
    /// Lanes do not wait for each other when they should.
    WaitsIgnored,
    /// The fifth job of each node is never reported.
    CompletionLost,
    /// Jobs are reported when they have been queued.
    CompletedTooEarly,
}

/// Simulates the corpus with a defect in place; returns what is found.
fn breaches(defect: Defect) -> Vec<Breach> {
    let configuration = Configuration::new(3, 2);
    let mut breaches = Vec::new();
    for (_, program) in corpus::all(3) {
        for seed in 0..10 {
            let simulation = Simulation::new(&program, &configuration, seed);
            let outcome = simulation
                .with_doubles(|end, backend| {
                    let backend = DefectiveBackend::new(backend, defect);
                    (Box::new(DefectiveEnd::new(end, defect)), Box::new(backend))
                })
                .run();
            breaches.extend(outcome.err().map(|failure| failure.breach));
        }
    }
    breaches
}

fn is_wrong_data(breach: &Breach) -> bool {
    matches!(breach, Breach::Observed(_) | Breach::Contract { .. })
}

/// Whether nothing can happen any more because somebody waits for such a thing.
fn is_deadlock(breach: &Breach, awaited: impl Fn(&WaitsFor) -> bool) -> bool {
    let Breach::Deadlock { stuck } = breach else { return false };
    stuck.iter().flat_map(|node| &node.waiting).any(|waiting| awaited(&waiting.reason))
}

#[test]
fn doubles_without_a_defect_pass() {
    assert_eq!(breaches(Defect::None), []);
}

#[test]
fn a_payload_that_is_reported_before_it_is_in_place_is_found() {
    let breaches = breaches(Defect::ReceivedTooEarly);
    assert!(breaches.iter().filter(|breach| is_wrong_data(breach)).count() > 10, "{breaches:?}");
}

#[test]
fn a_payload_that_is_reported_before_it_has_left_is_found() {
    let breaches = breaches(Defect::SentTooEarly);
    assert!(breaches.iter().any(is_wrong_data), "{breaches:?}");
}

#[test]
fn a_lost_pilot_is_a_receive_that_waits_for_elements() {
    let breaches = breaches(Defect::PilotLost);
    let waits = |breach: &&Breach| {
        is_deadlock(
            breach,
            |reason| matches!(reason, WaitsFor::Elements { missing, .. } if !missing.is_empty()),
        )
    };
    assert!(breaches.iter().filter(waits).count() > 10, "{breaches:?}");
}

#[test]
fn a_lost_pilot_is_reported_by_the_watchdog() {
    let breaches = breaches(Defect::PilotLost);
    let stalls: Vec<_> = breaches
        .iter()
        .flat_map(|breach| match breach {
            Breach::Deadlock { stuck } => &stuck[..],
            _ => &[],
        })
        .filter_map(|stuck| stuck.stall.as_ref())
        .collect();
    assert!(stalls.iter().all(|stall| stall.lasting >= Duration::from_secs(1)), "{stalls:?}");
    let unannounced = |stall: &&&Stall| stall.to_string().contains("which no node has announced");
    let lost: Vec<_> = stalls.iter().filter(unannounced).collect();
    assert!(lost.len() > 10, "{breaches:?}");
    let named = lost.iter().filter(|stall| stall.to_string().contains(" for T"));
    assert_eq!(named.count(), lost.len(), "all name the task that waits for data");
}

#[test]
fn lanes_out_of_order_are_found() {
    let breaches = breaches(Defect::LaneReordered);
    assert!(breaches.iter().any(is_wrong_data), "{breaches:?}");
}

#[test]
fn lanes_that_do_not_wait_for_others_are_found() {
    let breaches = breaches(Defect::WaitsIgnored);
    assert!(breaches.iter().any(is_wrong_data), "{breaches:?}");
}

#[test]
fn a_lost_completion_is_a_job_that_waits_for_its_lane() {
    let breaches = breaches(Defect::CompletionLost);
    let waits =
        |breach: &&Breach| is_deadlock(breach, |reason| matches!(reason, WaitsFor::Lane(_)));
    assert!(breaches.iter().filter(waits).count() > 10, "{breaches:?}");
    let text = breaches.iter().find(waits).expect("as just seen").to_string();
    assert!(
        text.contains(" waits for its lane, ") && text.contains("its program waits for"),
        "{text}"
    );
}

#[test]
fn a_job_that_is_reported_before_it_has_run_is_found() {
    let breaches = breaches(Defect::CompletedTooEarly);
    assert!(breaches.iter().filter(|breach| is_wrong_data(breach)).count() > 10, "{breaches:?}");
}

/// A node's end of the network.
struct DefectiveEnd {
    inner: SimCommunicator,
    defect: Defect,
    pilots: usize,
    /// What has been offered and not been reported, for [`Defect::SentTooEarly`].
    offered: Vec<MessageId>,
    /// For [`Defect::ReceivedTooEarly`]: what arrives beside its target, by
    /// sender and message, and what has arrived, with the polls to wait for.
    staged: HashMap<(NodeId, MessageId), Staged>,
    late: Vec<(usize, Staged)>,
}

struct Staged {
    bytes: Vec<u8>,
    target: WirePayload,
}

/// Polls between the report of a payload and its arrival.
const LATE: usize = 3;

impl Staged {
    fn array(&mut self) -> ElementArray {
        let base = BasePtr::of_mut_slice(&mut self.bytes);
        ElementArray { base, extent: self.target.elements }
    }

    fn settle(mut self) {
        let (array, WirePayload { memory, elements, elem_size, .. }) = (self.array(), self.target);
        // SAFETY: memory of a simulation stays allocated until its end, and
        // nothing runs at the same time.
        unsafe { copy_elements(array, memory, &elements, elem_size) };
    }
}

impl DefectiveEnd {
    fn new(inner: SimCommunicator, defect: Defect) -> Self {
        let (offered, staged, late) = (Vec::new(), HashMap::new(), Vec::new());
        Self { inner, defect, pilots: 0, offered, staged, late }
    }

    /// Nothing else has happened: one poll more for what is late.
    fn let_time_pass(&mut self) {
        let (due, late) =
            std::mem::take(&mut self.late).into_iter().partition(|(left, _)| *left == 0);
        let due: Vec<(usize, Staged)> = due;
        due.into_iter().for_each(|(_, staged)| staged.settle());
        self.late = late;
        self.late.iter_mut().for_each(|(left, _)| *left -= 1);
    }
}

// SAFETY: what it lies about, the simulation notices before memory is used: see `Memory`.
unsafe impl Communicator for DefectiveEnd {
    fn node(&self) -> NodeId {
        self.inner.node()
    }

    fn nodes(&self) -> usize {
        self.inner.nodes()
    }

    fn send_pilot(&mut self, pilot: &Pilot, reached: u64) {
        self.pilots += 1;
        if self.defect != Defect::PilotLost || self.pilots > 1 {
            self.inner.send_pilot(pilot, reached);
        }
    }

    fn send_note(&mut self, to: NodeId, note: &[u8]) {
        self.inner.send_note(to, note);
    }

    unsafe fn send(&mut self, to: NodeId, payload: WirePayload) {
        if self.defect == Defect::SentTooEarly {
            self.offered.push(payload.message);
        }
        // SAFETY: passed on.
        unsafe { self.inner.send(to, payload) }
    }

    unsafe fn receive(&mut self, from: NodeId, payload: WirePayload) {
        let mut memory = payload.memory;
        if self.defect == Defect::ReceivedTooEarly {
            let bytes = vec![0; (payload.elements.volume() * payload.elem_size) as usize];
            let mut staged = Staged { bytes, target: payload };
            memory = staged.array();
            self.staged.insert((from, payload.message), staged);
        }
        // SAFETY: passed on; what is staged is kept until it has arrived, or
        // with the end itself.
        unsafe { self.inner.receive(from, WirePayload { memory, ..payload }) }
    }

    unsafe fn exchange(&mut self, exchange: CollectiveExchange) {
        // SAFETY: passed on.
        unsafe { self.inner.exchange(exchange) }
    }

    fn enter_barrier(&mut self, epoch: TaskId) {
        self.inner.enter_barrier(epoch);
    }

    fn abort(&mut self, error: &RunError) {
        self.inner.abort(error);
    }

    fn poll(&mut self) -> Option<CommEvent> {
        if let Some(message) = self.offered.pop() {
            return Some(CommEvent::Sent { message });
        }
        loop {
            let event = self.inner.poll();
            match event {
                Some(CommEvent::Sent { .. }) if self.defect == Defect::SentTooEarly => continue,
                Some(CommEvent::Received { from, message }) => {
                    let staged = self.staged.remove(&(from, message));
                    self.late.extend(staged.map(|staged| (LATE, staged)));
                }
                None => self.let_time_pass(),
                _ => {}
            }
            return event;
        }
    }

    fn sends_ahead(&self) -> bool {
        self.inner.sends_ahead()
    }

    fn is_quiet(&self) -> bool {
        self.inner.is_quiet()
    }
}

/// A node's devices.
struct DefectiveBackend {
    inner: SimBackend,
    defect: Defect,
    completions: usize,
    /// For [`Defect::LaneReordered`]: held back until another job of the lane has
    /// been queued, or until the next poll.
    held: Vec<(LaneId, InstructionId, Job, Vec<LaneJob>)>,
    /// For [`Defect::CompletedTooEarly`]: queued and not reported.
    queued: Vec<InstructionId>,
}

impl DefectiveBackend {
    fn new(inner: SimBackend, defect: Defect) -> Self {
        Self { inner, defect, completions: 0, held: Vec::new(), queued: Vec::new() }
    }

    fn release(&mut self, lane: Option<LaneId>) {
        let (passed, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.held)
            .into_iter()
            .partition(|held| lane.is_none_or(|lane| held.0 == lane));
        self.held = kept;
        for (lane, instruction, job, after) in passed {
            // SAFETY: passed on, but for the order, which is the defect.
            unsafe { self.inner.enqueue(lane, instruction, job, &after) };
        }
    }
}

// SAFETY: as above.
unsafe impl Backend for DefectiveBackend {
    fn layout(&self) -> LaneLayout {
        self.inner.layout()
    }

    fn joins(&self) -> Option<LaneGroup> {
        self.inner.joins()
    }

    fn alloc(
        &mut self,
        memory: MemoryId,
        bytes: u64,
        alignment: u64,
    ) -> Result<BasePtr, AllocError> {
        self.inner.alloc(memory, bytes, alignment)
    }

    unsafe fn free(&mut self, memory: MemoryId, base: BasePtr) {
        // SAFETY: passed on.
        unsafe { self.inner.free(memory, base) }
    }

    unsafe fn enqueue(
        &mut self,
        lane: LaneId,
        instruction: InstructionId,
        job: Job,
        after: &[LaneJob],
    ) {
        if self.defect == Defect::LaneReordered && self.held.iter().all(|held| held.0 != lane) {
            return self.held.push((lane, instruction, job, after.to_vec()));
        }
        let after = if self.defect == Defect::WaitsIgnored { &[] } else { after };
        if self.defect == Defect::CompletedTooEarly {
            self.queued.push(instruction);
        }
        // SAFETY: passed on.
        unsafe { self.inner.enqueue(lane, instruction, job, after) };
        self.release(Some(lane));
    }

    fn poll(&mut self, out: &mut Vec<Completion>) {
        self.release(None);
        let known = out.len();
        self.inner.poll(out);
        match self.defect {
            Defect::CompletionLost => {
                let fifth = 4_usize.checked_sub(self.completions).map(|after| known + after);
                self.completions += out.len() - known;
                if let Some(fifth) = fifth.filter(|&fifth| fifth < out.len()) {
                    out.remove(fifth);
                }
            }
            Defect::CompletedTooEarly => {
                out.truncate(known);
                let early = self.queued.drain(..);
                out.extend(early.map(|instruction| Completion {
                    instruction,
                    failure: None,
                    span: None,
                }));
            }
            _ => {}
        }
    }

    fn share_core(&mut self) {
        self.inner.share_core();
    }

    fn compute(&mut self) -> bool {
        self.inner.compute()
    }

    fn next_to_compute(&self) -> Option<InstructionId> {
        self.inner.next_to_compute()
    }

    fn cancel(&mut self) {
        self.held.clear();
        self.inner.cancel();
    }

    fn is_quiet(&self) -> bool {
        self.inner.is_quiet()
    }
}
