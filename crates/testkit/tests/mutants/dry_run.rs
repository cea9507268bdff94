//! A whole cluster without data: the instructions of all nodes go through the real engine and the
//! real arbiter, in an order that a seed decides. Owns what a backend and a network would do;
//! judges when instructions start and end. No threads, so that what hangs is a deadlock that is
//! seen.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use celerity_cdag::{NodeId, TransferId};
use celerity_executor::{
    Arbiter, Assignment, Engine, LaneId, LaneLayout, PostReceive, Step as Progress,
};
use celerity_idag::{Inbound, Instruction, InstructionId, InstructionKind, MessageId, Pilot};
use celerity_regions::{Coord3, Region};
use celerity_tdag::{EpochAction, TaskId};
use celerity_testkit::check::Configuration;
use celerity_testkit::element;
use celerity_testkit::hash::Mixer;
use celerity_testkit::program::Program;
use celerity_testkit::trace::InstructionTrace;

/// What went wrong.
type Outcome = Result<(), String>;

/// Executes a program without its data.
///
/// # Errors
/// An instruction that starts too early, ends without its data, or never does.
pub(crate) fn check(program: &Program, configuration: &Configuration) -> Outcome {
    let text = |violation: celerity_testkit::violation::Violation| violation.to_string();
    let traces = InstructionTrace::of_program(program, configuration).map_err(text)?;
    let mut cluster = Cluster::new(&traces, configuration.devices);
    let mut random = Mixer::for_item(1, [configuration.seed, 0, 0]);
    while let Some(step) = cluster.choose(&mut random) {
        cluster.take(step)?;
    }
    cluster.check_finished()
}

/// Something that can happen next.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A node's engine is given the next instruction.
    Submit(usize),
    /// A node starts what its engine lets start.
    Issue(usize),
    /// The first job of a lane ends.
    Finish(usize, usize),
    /// An announcement reaches its receiver.
    Announce(usize),
    /// A payload that both sides have posted arrives.
    Deliver(usize),
}

struct Cluster<'a> {
    nodes: Vec<Node<'a>>,
    pilots: Vec<(NodeId, Pilot)>,
    /// Offered by senders, by sender and message.
    offers: BTreeMap<(NodeId, MessageId), (InstructionId, Region)>,
    /// Asked for by receivers, with whom to tell.
    posts: Vec<Post>,
}

/// A receive that has been posted.
struct Post {
    to: usize,
    from: NodeId,
    message: MessageId,
    region: Region,
}

struct Node<'a> {
    instructions: &'a [Instruction],
    engine: Engine,
    arbiter: Arbiter,
    layout: LaneLayout,
    submitted: usize,
    /// The engine has said that something can start.
    may_issue: bool,
    in_barrier: Option<(InstructionId, TaskId)>,
    /// By instruction; `None` until it starts.
    started: Vec<Option<Option<LaneId>>>,
    complete: Vec<bool>,
    lanes: Vec<VecDeque<InstructionId>>,
    arrived: BTreeMap<TransferId, BTreeSet<Coord3>>,
}

impl<'a> Cluster<'a> {
    fn new(traces: &'a [InstructionTrace], devices: usize) -> Self {
        let nodes = traces.iter().map(|trace| Node::new(trace, devices)).collect();
        let announced = |trace: &'a InstructionTrace| {
            trace.pilots.iter().map(|pilot| (trace.node, pilot.clone()))
        };
        Self {
            nodes,
            pilots: traces.iter().flat_map(announced).collect(),
            offers: BTreeMap::new(),
            posts: Vec::new(),
        }
    }

    fn choose(&self, random: &mut Mixer) -> Option<Step> {
        let mut steps = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            if node.submitted < node.instructions.len() {
                steps.push(Step::Submit(at));
            }
            if node.may_issue {
                steps.push(Step::Issue(at));
            }
            let busy = (0..node.lanes.len()).filter(|&lane| !node.lanes[lane].is_empty());
            steps.extend(busy.map(|lane| Step::Finish(at, lane)));
        }
        steps.extend((0..self.pilots.len()).map(Step::Announce));
        let offered = |post: &Post| self.offers.contains_key(&(post.from, post.message));
        let ready = self.posts.iter().enumerate().filter(|(_, post)| offered(post));
        steps.extend(ready.map(|(at, _)| Step::Deliver(at)));
        *random = random.with(0);
        steps.get(random.below(steps.len().max(1))).copied()
    }

    fn take(&mut self, step: Step) -> Outcome {
        match step {
            Step::Submit(node) => {
                self.nodes[node].submit();
                Ok(())
            }
            Step::Issue(node) => self.issue(node),
            Step::Finish(node, lane) => {
                let first = self.nodes[node].lanes[lane].pop_front();
                self.nodes[node].complete(first.expect("the step was possible"))
            }
            Step::Announce(pilot) => self.announce(pilot),
            Step::Deliver(post) => self.deliver(post),
        }
    }

    fn issue(&mut self, node: usize) -> Outcome {
        self.nodes[node].may_issue = false;
        while let Some(assignment) = self.nodes[node].engine.next_assignment() {
            self.nodes[node].start(&assignment)?;
            if assignment.lane.is_none() {
                self.run_here(node, assignment.instruction)?;
            }
        }
        Ok(())
    }

    /// What a node does itself.
    fn run_here(&mut self, at: usize, instruction: InstructionId) -> Outcome {
        let node = &mut self.nodes[at];
        let sender = NodeId::from_index(at as u64);
        let outcome = match &node.instructions[slot(instruction)].kind {
            InstructionKind::Send { message, region, .. } => {
                self.offers.insert((sender, *message), (instruction, region.clone()));
                return Ok(());
            }
            InstructionKind::Receive(inbound) => node.arbiter.begin_receive(instruction, inbound),
            InstructionKind::AwaitReceive { transfer, region } => {
                node.arbiter.begin_await(instruction, *transfer, region)
            }
            InstructionKind::SplitReceive(inbound) => {
                let outcome = node.arbiter.begin_split_receive(instruction, inbound);
                self.nodes[at].complete(instruction)?;
                outcome
            }
            InstructionKind::Epoch { task, action } if *action != EpochAction::Init => {
                node.in_barrier = Some((instruction, *task));
                return self.open_barrier();
            }
            InstructionKind::Horizon { task } | InstructionKind::Epoch { task, .. } => {
                let outcome = node.arbiter.close_before(*task);
                self.nodes[at].complete(instruction)?;
                outcome
            }
            _ => return self.nodes[at].complete(instruction),
        };
        outcome.map_err(|error| error.to_string())?;
        self.hear(at)
    }

    /// Passes on what a node's arbiter has decided.
    fn hear(&mut self, at: usize) -> Outcome {
        while let Some(post) = self.nodes[at].arbiter.next_post() {
            let PostReceive { from, message, ref parts, .. } = post;
            let region = Region::from_boxes(parts.iter().map(|(part, _)| *part));
            self.posts.push(Post { to: at, from, message, region });
        }
        while let Some(instruction) = self.nodes[at].arbiter.next_completed() {
            self.nodes[at].check_arrived(instruction)?;
            self.nodes[at].complete(instruction)?;
        }
        Ok(())
    }

    fn announce(&mut self, pilot: usize) -> Outcome {
        let (from, pilot) = self.pilots.swap_remove(pilot);
        let to = pilot.to.slot();
        self.nodes[to].arbiter.pilot(from, pilot).map_err(|error| error.to_string())?;
        self.hear(to)
    }

    fn deliver(&mut self, post: usize) -> Outcome {
        let Post { to, from, message, region } = self.posts.swap_remove(post);
        let (send, sent) = self.offers.remove(&(from, message)).expect("the step was possible");
        if sent != region {
            return Err(format!("{message} from {from} carries {sent}, not {region}"));
        }
        let InstructionKind::Send { transfer, .. } =
            &self.nodes[from.slot()].instructions[slot(send)].kind
        else {
            unreachable!("only sends offer payloads")
        };
        let node = &mut self.nodes[to];
        let arrived = node.arrived.entry(*transfer).or_default();
        arrived.extend(sent.boxes().iter().flat_map(element::points));
        node.arbiter.arrived(from, message).map_err(|error| error.to_string())?;
        self.nodes[from.slot()].complete(send)?;
        self.hear(to)
    }

    /// Lets all nodes out of the barrier, once all are in it.
    fn open_barrier(&mut self) -> Outcome {
        if self.nodes.iter().any(|node| node.in_barrier.is_none()) {
            return Ok(());
        }
        for at in 0..self.nodes.len() {
            let (epoch, task) = self.nodes[at].in_barrier.take().expect("checked above");
            let closed = self.nodes[at].arbiter.close_before(task);
            closed.map_err(|error| error.to_string())?;
            self.nodes[at].complete(epoch)?;
        }
        Ok(())
    }

    /// Nothing can happen any more.
    fn check_finished(&self) -> Outcome {
        for (at, node) in self.nodes.iter().enumerate() {
            if let Some(waits) = node.complete.iter().position(|complete| !complete) {
                return Err(format!("no progress: N{at} I{waits} never ends"));
            }
        }
        Ok(())
    }
}

impl<'a> Node<'a> {
    fn new(trace: &'a InstructionTrace, devices: usize) -> Self {
        let layout = LaneLayout::new(devices);
        let count = trace.instructions.len();
        Self {
            instructions: &trace.instructions,
            engine: Engine::new(layout.count()),
            arbiter: Arbiter::new(trace.node),
            layout,
            submitted: 0,
            may_issue: false,
            in_barrier: None,
            started: vec![None; count],
            complete: vec![false; count],
            lanes: vec![VecDeque::new(); layout.count()],
            arrived: BTreeMap::new(),
        }
    }

    fn submit(&mut self) {
        let Instruction { id, kind, dependencies } = &self.instructions[self.submitted];
        let next = self.engine.submit(*id, dependencies, self.layout.target(kind.effects().lane));
        self.may_issue |= next == Progress::Issue;
        self.submitted += 1;
    }

    /// Every dependency has ended, or comes earlier on the same lane.
    fn start(&mut self, &Assignment { instruction, lane, .. }: &Assignment) -> Outcome {
        let before = &self.instructions[slot(instruction)].dependencies;
        let kept = |on: &&InstructionId| {
            let same_lane = lane.is_some() && self.started[slot(**on)] == Some(lane);
            self.complete[slot(**on)] || same_lane
        };
        if let Some(on) = before.iter().find(|on| !kept(on)) {
            return Err(format!("{instruction} starts before {on} has ended"));
        }
        if self.started[slot(instruction)].replace(lane).is_some() {
            return Err(format!("{instruction} starts twice"));
        }
        lane.into_iter().for_each(|lane| self.lanes[lane.slot()].push_back(instruction));
        Ok(())
    }

    fn complete(&mut self, instruction: InstructionId) -> Outcome {
        if std::mem::replace(&mut self.complete[slot(instruction)], true) {
            return Err(format!("{instruction} ends twice"));
        }
        self.may_issue |= self.engine.complete(instruction) == Progress::Issue;
        Ok(())
    }

    /// A receive ends when all that it brings is there.
    fn check_arrived(&self, instruction: InstructionId) -> Outcome {
        let (transfer, region): (TransferId, &Region) =
            match &self.instructions[slot(instruction)].kind {
                InstructionKind::Receive(Inbound { transfer, region, .. })
                | InstructionKind::AwaitReceive { transfer, region } => (*transfer, region),
                other => return Err(format!("{instruction} is completed as a receive: {other:?}")),
            };
        let arrived = self.arrived.get(&transfer);
        let is_there = |at: Coord3| arrived.is_some_and(|arrived| arrived.contains(&at));
        match region.boxes().iter().flat_map(element::points).find(|at| !is_there(*at)) {
            Some(at) => Err(format!("{instruction} ends before {at:?} has arrived")),
            None => Ok(()),
        }
    }
}

fn slot(instruction: InstructionId) -> usize {
    usize::try_from(instruction.index()).expect("test graphs are small")
}
