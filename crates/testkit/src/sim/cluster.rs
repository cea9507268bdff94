//! A whole run: the machines and programs of all nodes, driven event by event
//! until nothing can happen any more, and what there is to say about it then.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use celerity_cdag::CommandGraphConfig;
use celerity_executor::{
    Activity, Attention, Executor, LaneLayout, NodeMachine, Progress, RunError, Scheduler, Stall,
    Time, Warning, WarningSink, contain,
};
use celerity_idag::{InstructionGraph, InstructionGraphConfig};

use super::breach::{Breach, Stuck};
use super::communicator::SimCommunicator;
use super::conditions::{Conditions, Fault};
use super::log::{Log, What};
use super::threads::Threads;
use super::user::{GIVES_UP, User};
use super::world::{Event, FAULT, Shared, Watch, World, node_id};
use super::{SimBackend, Simulation};
use crate::check::compare;
use crate::random::Random;
use crate::twin::{Observation, interpret};

/// Runs that take more events than this are taken for endless; ordinary ones
/// take some thousands.
const MOST_EVENTS: u64 = 2_000_000;

/// Simulated time without progress after which a node complains: longer than any
/// delay.
const WATCHDOG: Duration = Duration::from_secs(1);

/// All nodes and the world between them.
pub(super) struct Cluster<'a> {
    simulation: &'a Simulation<'a>,
    pub(super) world: Shared,
    nodes: Vec<Node<'a>>,
}

struct Node<'a> {
    machine: NodeMachine,
    user: User<'a>,
    progress: Arc<Progress>,
    /// What the machine's watchdog has said last.
    stall: Arc<Mutex<Option<Stall>>>,
}

impl<'a> Cluster<'a> {
    pub(super) fn new(simulation: &'a Simulation<'a>) -> Self {
        let configuration = simulation.configuration;
        let mut random = Random::new(simulation.seed);
        let ops = simulation.program.ops.len();
        let mut conditions = Conditions::draw(&mut random, configuration, ops);
        match simulation.slow_node {
            Some(slow) => conditions.slow_down(slow),
            None => conditions.threads = Threads::draw(simulation.seed, configuration.nodes),
        }
        let lanes = LaneLayout::new(configuration.devices).count();
        let log = Log::new(simulation.keeps_log);
        let world = World::new(random, conditions, configuration.nodes, lanes, log);
        let world = Shared::new(world);
        let nodes = (0..configuration.nodes).map(|node| Node::new(node, simulation, &world));
        let nodes = nodes.collect();
        Self { simulation, world, nodes }
    }

    /// Lets happen what can, and judges it.
    pub(super) fn run(&mut self) -> Result<(), Breach> {
        for (index, node) in self.nodes.iter_mut().enumerate() {
            node.user.start(&mut node.machine);
            let mut world = self.world.lock();
            world.wake(index);
            world.wake_user(index);
        }
        while let Some(event) = self.next()? {
            match event {
                Event::Poll(node) => self.poll(node)?,
                Event::User(node) => self.go_on(node)?,
                Event::Lane(node, lane) => self.world.lock().lane_event(node, lane),
                Event::Network(delivery) => self.world.lock().deliver(delivery),
            }
        }
        self.judge()
    }

    fn next(&self) -> Result<Option<Event>, Breach> {
        let mut world = self.world.lock();
        if let Some(breach) = world.breach.take() {
            return Err(breach);
        }
        match world.log.count() {
            events if events > MOST_EVENTS => Err(Breach::Endless { events }),
            _ => Ok(world.next()),
        }
    }

    fn poll(&mut self, index: usize) -> Result<(), Breach> {
        let now = self.world.lock().now;
        let Node { machine, user, progress, .. } = &mut self.nodes[index];
        let activity = contain::caught(|| machine.poll(now))
            .map_err(|message| Breach::Panicked { node: node_id(index), message })?;
        let looks = matches!(machine.attention(), Attention::Close(_));
        let mut world = self.world.lock();
        world.note(index, What::Polled { busy: activity == Activity::Busy });
        world.ledger.reached(index, progress.horizons());
        // Who looks at the network without rest polls again, also if nothing has happened. All that
        // may come of it, but for what is delivered, is that the node computes.
        if activity == Activity::Busy || looks && world.devices[index].waits_to_compute() {
            world.wake(index);
        }
        if user.may_go_on() {
            world.wake_user(index);
        }
        Ok(())
    }

    fn go_on(&mut self, index: usize) -> Result<(), Breach> {
        let Node { machine, user, .. } = &mut self.nodes[index];
        user.step(machine)?;
        let mut world = self.world.lock();
        world.wake(index);
        if user.may_go_on() {
            world.wake_user(index);
        }
        Ok(())
    }

    /// Nothing can happen any more: was that the end, and the right one?
    fn judge(&mut self) -> Result<(), Breach> {
        let now = self.world.lock().now;
        let nodes = self.nodes.iter_mut().enumerate();
        let stuck = nodes.filter(|(_, node)| !node.is_done());
        let stuck: Vec<_> = stuck.map(|(index, node)| node.stuck(index, now)).collect();
        if !stuck.is_empty() {
            return Err(Breach::Deadlock { stuck });
        }
        let expected = interpret(self.simulation.program);
        match self.error()? {
            None => self.judge_success(&expected),
            Some(error) => self.judge_failure(&error, &expected),
        }
    }

    /// What the run has ended with, on all nodes alike.
    pub(super) fn error(&self) -> Result<Option<RunError>, Breach> {
        let mut errors = self.nodes.iter().map(|node| node.progress.error()).enumerate();
        let (_, first) = errors.next().expect("a cluster has nodes");
        match errors.find(|(_, error)| *error != first) {
            None => Ok(first),
            Some((node, found)) => Err(Breach::Disagreement {
                node: node_id(node),
                found: Box::new(found),
                first: Box::new(first),
            }),
        }
    }

    fn judge_success(&self, expected: &Observation) -> Result<(), Breach> {
        for (index, node) in self.nodes.iter().enumerate() {
            compare(node_id(index), &node.user.observation(), expected)?;
        }
        let world = self.world.lock();
        if let Some((from, message)) = world.network.half_open() {
            return Err(Breach::Unmatched { what: format!("{message} of {from}") });
        }
        match world.faults_met {
            0 => Ok(()),
            _ => Err(Breach::Swallowed { what: format!("{:?}", world.conditions.faults) }),
        }
    }

    /// All nodes have ended with `error`. What fences have seen until then must
    /// be right all the same.
    fn judge_failure(&self, error: &RunError, expected: &Observation) -> Result<(), Breach> {
        for (index, node) in self.nodes.iter().enumerate() {
            let found = node.user.observation();
            let taken = |op| found.snapshots.iter().any(|snapshot| snapshot.op == op);
            let snapshots = expected.snapshots.iter().filter(|snapshot| taken(snapshot.op));
            compare(
                node_id(index),
                &found,
                &Observation { snapshots: snapshots.cloned().collect() },
            )?;
        }
        let world = self.world.lock();
        if !world.conditions.faults.iter().any(|fault| fault.explains(error)) {
            return Err(Breach::Unexplained { error: Box::new(error.clone()) });
        }
        let most = world.conditions.longest_end();
        let took = world.network.aborted().map_or(most, |start| world.now.since(start));
        if took > most {
            return Err(Breach::Late { took, most });
        }
        Ok(())
    }
}

impl<'a> Node<'a> {
    fn new(index: usize, simulation: &'a Simulation<'a>, world: &Shared) -> Self {
        let configuration = simulation.configuration;
        let progress = Arc::<Progress>::default();
        let end = SimCommunicator::new(index, configuration.nodes, world.clone());
        let backend = SimBackend::new(index, configuration.devices, world.clone());
        let (end, backend) = (simulation.doubles)(end, backend);
        let stall = Arc::<Mutex<_>>::default();
        let commands = CommandGraphConfig { nodes: end.nodes(), local: end.node() };
        let devices = InstructionGraphConfig { devices: configuration.devices };
        let instructions =
            InstructionGraph::new(devices).with_device_memory(configuration.device_memory);
        let instructions = configuration.wire(instructions, node_id(index));
        let scheduler = Scheduler::new(commands, instructions);
        let lead = world.lock().conditions.lead;
        let mut executor = Executor::new(end, backend, progress.clone()).with_lead(lead);
        if world.lock().conditions.threads.share_core[index] {
            executor = executor.sharing_core();
        }
        let machine = NodeMachine::of(scheduler, executor)
            .with_lookahead(configuration.lookahead)
            .with_observer(Box::new(Watch { node: index, world: world.clone() }))
            .with_watchdog(WATCHDOG)
            .with_warnings(listen(&stall));
        let mut user =
            User::new(index, simulation.program, configuration, world.clone(), progress.clone());
        for fault in &world.lock().conditions.faults {
            if let Fault::Stop { node, op } = *fault
                && node == index
            {
                user.stop_at(op);
            }
        }
        Self { machine, user, progress, stall }
    }

    fn is_done(&self) -> bool {
        self.machine.is_done() && self.user.has_ended()
    }

    /// Describes a node on which nothing will happen after `now`, but that its
    /// watchdog wants to look.
    fn stuck(&mut self, index: usize, now: Time) -> Stuck {
        let mut stuck = Stuck {
            node: node_id(index),
            phase: self.machine.phase(),
            program: self.user.describe(),
            waiting: self.machine.waiting(),
            stall: None,
        };
        if let Some(deadline) = self.machine.deadline() {
            // What this poll does, if anything, comes too late.
            let _ = self.machine.poll(deadline.max(now));
            stuck.stall = self.stall.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
        stuck
    }
}

/// Keeps the latest stall that a node is warned of.
fn listen(stall: &Arc<Mutex<Option<Stall>>>) -> WarningSink {
    let stall = stall.clone();
    WarningSink::new(move |warning| {
        if let Warning::Stalled(found) = warning {
            *stall.lock().unwrap_or_else(PoisonError::into_inner) = Some(found.clone());
        }
    })
}

impl Fault {
    /// Whether a run with this fault may end with `error`.
    fn explains(&self, error: &RunError) -> bool {
        match (self, error) {
            (Self::Job { node, .. }, RunError::TaskPanicked { node: at, message, .. }) => {
                at.slot() == *node && message == FAULT
            }
            (Self::Job { node, .. }, RunError::TaskFailed { node: at, error, .. }) => {
                at.slot() == *node && error.to_string() == FAULT
            }
            // A copy has no task; one that fails is the runtime's own failure.
            (Self::Job { .. }, RunError::Internal { message }) => message.ends_with(FAULT),
            (Self::OutOfMemory { node, .. }, RunError::OutOfMemory { node: at, .. }) => {
                at.slot() == *node
            }
            (Self::Stop { node, .. }, RunError::Stopped { node: at, message }) => {
                at.slot() == *node && message == GIVES_UP
            }
            _ => false,
        }
    }
}
