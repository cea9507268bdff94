//! A cluster in simulated time: the schedules of all nodes, executed by servers that take as long as the
//! calibration says. Owns what follows from what; nothing here computes, and no clock is read.
//!
//! The same schedules and constants lead to the same prediction, event by event: events at the same time
//! happen in the order in which they were brought about. O(e log e) time for e instructions, dependencies
//! and messages of all nodes, and memory in proportion.

mod check;
mod inbox;
mod network;
mod node;
mod places;
mod plan;
mod server;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::cluster::{ClusterModel, Nanos};
use crate::costs::WorkCosts;
use crate::error::PredictError;
use crate::pace::{Act, Pace};
use crate::prediction::{Prediction, StretchedKernel};
use crate::schedule::{Action, NodeSchedule, ReceivePart, ScheduledKind, TransferKey};
use crate::span::{Lane, SimulatedSpan, SpanId, Spans, Subject};
use check::check;
use inbox::Parcel;
use network::Links;
use node::Node;
use places::Places;
use plan::{Plan, plan, queues_on};
use server::{Job, Server, ServerId};

/// How many nodes an error of a deadlock tells of.
const TOLD: usize = 8;

/// Predicts how the schedules of all nodes of a cluster are executed.
///
/// # Errors
/// [`PredictError::Mismatch`] if these are not the schedules of all nodes of one cluster, in order, with
/// a pace each; [`PredictError::NoCost`] for a kernel without a cost; [`PredictError::Deadlock`] if
/// instructions wait for each other or for data that nobody sends.
pub fn predict(
    model: &ClusterModel,
    costs: &WorkCosts,
    schedules: &[NodeSchedule],
    paces: &[Pace],
) -> Result<Prediction, PredictError> {
    check(schedules, paces)?;
    let plans = schedules.iter().map(|schedule| plan(model, costs, schedule));
    let plans = plans.collect::<Result<Vec<_>, _>>()?;
    let guessed = plans.iter().map(|plan| plan.guessed).sum();
    let stretched = plans.iter().filter_map(|plan| plan.stretched.clone());
    let stretched = stretched.max_by_key(StretchedKernel::factor);
    let mut simulation = Simulation::new(model, schedules, paces, plans);
    simulation.run()?;
    let Simulation { spans, last, now, .. } = simulation;
    let prediction = Prediction::new(schedules, spans, (now, last));
    Ok(Prediction { guessed, stretched, ..prediction })
}

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A server is done with a span.
    Done(ServerId, SpanId),
    /// A message has left: the instruction of its sender completes.
    Left(usize, u32, SpanId),
    /// A message is there.
    Arrived(usize, SpanId),
    /// An instruction of a node completes, of those that all nodes take part in.
    Met(usize, u32, SpanId),
}

/// Those who have come to something that all nodes take part in.
#[derive(Debug, Default)]
struct Meeting {
    come: Vec<(usize, u32)>,
    busiest: u64,
}

/// What all nodes take part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum MeetingId {
    Collective(u64),
    Epoch(u64),
}

struct Simulation<'a> {
    model: &'a ClusterModel,
    places: Places<'a>,
    servers: Vec<Server>,
    links: Links<'a>,
    nodes: Vec<Node<'a>>,
    meetings: HashMap<MeetingId, Meeting>,
    spans: Spans,
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    /// Numbers events.
    sequence: u64,
    now: Nanos,
    /// The span behind the last instruction that has completed.
    last: Option<SpanId>,
}

impl<'a> Simulation<'a> {
    fn new(
        model: &'a ClusterModel,
        schedules: &'a [NodeSchedule],
        paces: &'a [Pace],
        plans: Vec<Plan>,
    ) -> Self {
        let devices = schedules.first().map_or(1, |schedule| schedule.devices);
        let places = Places::new(model, schedules.len(), devices);
        let all = schedules.iter().zip(paces).zip(plans);
        Self {
            model,
            places,
            servers: places.servers(),
            links: Links::new(model, schedules.len()),
            nodes: all.map(|((schedule, pace), plan)| Node::new(schedule, pace, plan)).collect(),
            meetings: HashMap::new(),
            spans: Spans::default(),
            events: BinaryHeap::new(),
            sequence: 0,
            now: 0,
            last: None,
        }
    }

    fn run(&mut self) -> Result<(), PredictError> {
        (0..self.nodes.len()).for_each(|node| self.act(node, None));
        while let Some(Reverse((now, _, event))) = self.events.pop() {
            self.now = now;
            match event {
                Event::Done(server, span) => {
                    let next = self.servers[server.0].leave(span);
                    self.done(span);
                    next.into_iter().for_each(|job| self.begin(server, job));
                }
                Event::Left(node, step, span) | Event::Met(node, step, span) => {
                    self.complete(node, step, Some(span));
                }
                Event::Arrived(to, span) => self.arrived(to, span),
            }
        }
        match self.nodes.iter().all(|node| node.left == 0) {
            true => Ok(()),
            false => Err(self.deadlock()),
        }
    }

    fn at(&mut self, time: Nanos, event: Event) {
        self.events.push(Reverse((time, self.sequence, event)));
        self.sequence += 1;
    }

    fn enter(&mut self, job: Job) {
        let server = self.places.server(job.node, job.lane).expect("the network takes no jobs");
        if let Some(job) = self.servers[server.0].enter(job) {
            self.begin(server, job);
        }
    }

    fn begin(&mut self, server: ServerId, job: Job) {
        let Job { node, lane, subject, took, cause } = job;
        let (start, end) = (self.now, self.now.saturating_add(took));
        let span = self.spans.push(SimulatedSpan { node, lane, subject, start, end, cause });
        self.at(end, Event::Done(server, span));
    }

    /// A server has done something.
    fn done(&mut self, span: SpanId) {
        let SimulatedSpan { node, lane, subject, .. } = *self.spans.get(span);
        match subject {
            Subject::Program => {
                self.submitted(node, span);
                self.act(node, Some(span));
            }
            Subject::Task(task) => self.release(node, task, span),
            Subject::Step(step) if lane == Lane::Engine => self.issued(node, step, span),
            Subject::Step(step) => self.complete(node, step, Some(span)),
            Subject::Message { .. } => self.delivered(node, span),
        }
    }

    /// The program goes on.
    fn act(&mut self, node: usize, cause: Option<SpanId>) {
        let state = &mut self.nodes[node];
        let Some(act) = state.pace.acts.get(state.act) else { return };
        state.act += 1;
        match *act {
            Act::Submit { took, .. } => {
                let (lane, subject) = (Lane::Program, Subject::Program);
                self.enter(Job { node, lane, subject, took, cause });
            }
            Act::Wait { until } => {
                let bound = until.checked_sub(1).map_or(0, |last| {
                    u32::try_from(state.schedule.tasks[last].steps_until).expect("as positions")
                });
                if state.has_delivered(bound) {
                    self.act(node, cause);
                } else {
                    state.parked = Some(bound);
                }
            }
        }
    }

    /// The program has submitted the tasks of its last act.
    fn submitted(&mut self, node: usize, cause: SpanId) {
        let state = &mut self.nodes[node];
        let Act::Submit { until, .. } = state.pace.acts[state.act - 1] else { return };
        let until = until.min(state.schedule.tasks.len());
        let tasks = state.submitted..until;
        state.submitted = state.submitted.max(until);
        for task in tasks {
            let took = self.nodes[node].pace.scheduling[task];
            let (lane, subject) = (Lane::Scheduler, Subject::Task(task));
            self.enter(Job { node, lane, subject, took, cause: Some(cause) });
        }
    }

    /// A task's instructions are known.
    fn release(&mut self, node: usize, task: usize, cause: SpanId) {
        let tasks = &self.nodes[node].schedule.tasks;
        let first = task.checked_sub(1).map_or(0, |before| tasks[before].steps_until);
        for step in first..tasks[task].steps_until {
            self.satisfy(node, u32::try_from(step).expect("as positions"), Some(cause));
        }
    }

    /// One of those is there that an instruction waits for.
    fn satisfy(&mut self, node: usize, step: u32, cause: Option<SpanId>) {
        let state = &mut self.nodes[node];
        state.waiting[step as usize] -= 1;
        if state.waiting[step as usize] > 0 {
            return;
        }
        let engine = &self.model.engine;
        let more = match &state.schedule.steps[step as usize].action {
            Action::Memory { bytes } if *bytes > 0 => engine.allocation_ns,
            Action::Send { .. } => self.model.network.message_ns,
            _ => 0,
        };
        let took = engine.instruction_ns.saturating_add(more);
        self.enter(Job { node, lane: Lane::Engine, subject: Subject::Step(step), took, cause });
    }

    /// An instruction is under way.
    fn issued(&mut self, node: usize, step: u32, span: SpanId) {
        let schedule = self.nodes[node].schedule;
        let action = &schedule.steps[step as usize].action;
        match action {
            Action::Memory { .. } | Action::Horizon | Action::Epoch { meets: false } => {
                self.complete(node, step, Some(span));
            }
            Action::Run { device: None, task, .. } => {
                let lane = host_lane(schedule, *task);
                self.work(node, step, lane, span);
            }
            Action::Run { .. } | Action::Copy { .. } => {
                let lane = queues_on(action).expect("kernels and copies have lanes");
                self.work(node, step, lane, span);
                self.followers(node, step, true, Some(span));
            }
            Action::Send { to, transfer, elements, bytes } => {
                let parcel = Parcel { from: node, step, elements: *elements, bytes: *bytes };
                self.offer(*to, *transfer, parcel, span);
            }
            Action::Receive { transfer, elements, part } => {
                self.receive(node, step, *transfer, elements, *part, span);
            }
            Action::Collective { pattern, number, bytes } => {
                let nodes = self.nodes.len() as u64;
                let rounds = if pattern == "all-to-all" { nodes - 1 } else { log2(nodes) };
                self.meet((node, step), MeetingId::Collective(*number), rounds, *bytes, span);
            }
            Action::Epoch { meets: true } => {
                let task = schedule.tasks.partition_point(|task| task.steps_until <= step as usize);
                let (id, rounds) = (schedule.tasks[task].id, log2(self.nodes.len() as u64));
                self.meet((node, step), MeetingId::Epoch(id), rounds, 0, span);
            }
        }
    }

    fn work(&mut self, node: usize, step: u32, lane: Lane, cause: SpanId) {
        let took = self.nodes[node].plan.took[step as usize];
        self.enter(Job { node, lane, subject: Subject::Step(step), took, cause: Some(cause) });
    }

    /// An instruction has completed.
    fn complete(&mut self, node: usize, step: u32, cause: Option<SpanId>) {
        let state = &mut self.nodes[node];
        state.complete[step as usize] = true;
        state.left -= 1;
        self.last = cause;
        let may_go_on = state.parked.is_some_and(|bound| state.has_delivered(bound));
        if may_go_on {
            self.nodes[node].parked = None;
            self.act(node, cause);
        }
        self.followers(node, step, false, cause);
    }

    /// Those that wait for an instruction: once it is under way, those behind it on its lane; once it has
    /// completed, the others.
    fn followers(&mut self, node: usize, step: u32, on_lane: bool, cause: Option<SpanId>) {
        let state = &self.nodes[node];
        let steps = &state.schedule.steps;
        let lane = queues_on(&steps[step as usize].action);
        let is_behind =
            |after: u32| lane.is_some() && queues_on(&steps[after as usize].action) == lane;
        let dependents = state.plan.dependents.of_step(step).iter().copied();
        let chosen: Vec<_> = dependents.filter(|after| is_behind(*after) == on_lane).collect();
        chosen.into_iter().for_each(|after| self.satisfy(node, after, cause));
    }

    /// A message may leave, as soon as its receiver is ready if it is large.
    fn offer(&mut self, to: usize, transfer: TransferKey, parcel: Parcel, cause: SpanId) {
        let inbox = self.nodes[to].inboxes.entry(transfer).or_default();
        if parcel.bytes > self.model.network.eager_bytes && !inbox.has_room(&parcel) {
            return inbox.keep(parcel, Some(cause));
        }
        self.send(to, parcel, Some(cause));
    }

    fn send(&mut self, to: usize, parcel: Parcel, cause: Option<SpanId>) {
        let Parcel { from, step, bytes, .. } = parcel;
        let passage = self.links.send(self.now, (from, to), bytes, cause);
        let (lane, subject) = (Lane::Payload, Subject::Message { from, step });
        let (start, end, cause) = (passage.begins, passage.arrives, passage.cause);
        let span = self.spans.push(SimulatedSpan { node: to, lane, subject, start, end, cause });
        self.links.taken((from, to), span);
        let is_eager = bytes <= self.model.network.eager_bytes;
        let has_left = if is_eager { passage.has_left } else { passage.arrives };
        self.at(has_left, Event::Left(from, step, span));
        self.at(passage.arrives, Event::Arrived(to, span));
    }

    /// The receiver's thread has to handle a message.
    fn arrived(&mut self, node: usize, span: SpanId) {
        let subject = self.spans.get(span).subject;
        let took = self.model.network.message_ns;
        self.enter(Job { node, lane: Lane::Engine, subject, took, cause: Some(span) });
    }

    /// It has handled it.
    fn delivered(&mut self, node: usize, span: SpanId) {
        let message = self.spans.get(span).subject;
        let Subject::Message { from, step } = message else { return };
        let Action::Send { transfer, elements, .. } =
            &self.nodes[from].schedule.steps[step as usize].action
        else {
            unreachable!("messages are sent")
        };
        let inbox = self.nodes[node].inboxes.entry(*transfer).or_default();
        for waited in inbox.arrive(*elements, span) {
            self.complete(node, waited, Some(span));
        }
    }

    fn receive(
        &mut self,
        node: usize,
        step: u32,
        transfer: TransferKey,
        elements: &[celerity_regions::Box3],
        part: ReceivePart,
        span: SpanId,
    ) {
        let inbox = self.nodes[node].inboxes.entry(transfer).or_default();
        if part != ReceivePart::Await {
            for (parcel, _) in inbox.post(elements) {
                self.send(node, parcel, Some(span));
            }
        }
        if part == ReceivePart::Begin {
            return self.complete(node, step, Some(span));
        }
        let inbox = self.nodes[node].inboxes.entry(transfer).or_default();
        if inbox.wait(step, elements).is_some() {
            self.complete(node, step, Some(span));
        }
    }

    /// A node has come to something that all nodes take part in.
    fn meet(&mut self, who: (usize, u32), what: MeetingId, rounds: u64, bytes: u64, cause: SpanId) {
        let meeting = self.meetings.entry(what).or_default();
        meeting.come.push(who);
        meeting.busiest = meeting.busiest.max(bytes);
        if meeting.come.len() < self.nodes.len() {
            return;
        }
        let Meeting { come, busiest } = self.meetings.remove(&what).unwrap_or_default();
        let is_alone = self.nodes.len() == 1;
        let took = if is_alone { 0 } else { self.model.network.collective(rounds, busiest) };
        let (start, end) = (self.now, self.now.saturating_add(took));
        let lane = match what {
            MeetingId::Collective(_) => Lane::Collective,
            MeetingId::Epoch(_) => Lane::Barrier,
        };
        for (node, step) in come {
            let (subject, cause) = (Subject::Step(step), Some(cause));
            let span = self.spans.push(SimulatedSpan { node, lane, subject, start, end, cause });
            self.at(end, Event::Met(node, step, span));
        }
    }

    /// Nothing happens any more, and not all is done.
    fn deadlock(&self) -> PredictError {
        let waits = self.nodes.iter().filter_map(Node::stuck).take(TOLD).collect();
        PredictError::Deadlock { at_ns: self.now, waits }
    }
}

/// Where a function of the host runs.
fn host_lane(schedule: &NodeSchedule, task: u64) -> Lane {
    let position = schedule.tasks.binary_search_by_key(&task, |task| task.id);
    match position.map(|position| schedule.tasks[position].kind) {
        Ok(ScheduledKind::Fence | ScheduledKind::Combine) => Lane::Fences,
        _ => Lane::HostTasks,
    }
}

/// The logarithm of a number of nodes, rounded up.
fn log2(nodes: u64) -> u64 {
    u64::from(nodes.max(1).next_power_of_two().trailing_zeros())
}
