//! Node machines under a driver of the test's own: what they report while they
//! wait, what they do first, and that polling is all it takes.
#![allow(unsafe_code)]

#[path = "../doubles/unwoken.rs"]
mod unwoken;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use celerity_cdag::NodeId;
use celerity_executor::{
    Activity, BoundMemory, CollectiveExchange, CommEvent, Communicator, CpuBackend, CpuPool,
    DeviceKernel, LocalCommunicator, NodeMachine, Payload, Phase, Progress, RunError, Submission,
    Time, Waiting, WaitsFor, Waker, WirePayload, local_cluster,
};
use celerity_idag::Pilot;
use celerity_regions::Box3;
use celerity_tdag::{
    Access, AccessMode, EpochAction, IndexSpace, Mapper, NewBuffer, Task, TaskGraph,
    TaskGraphConfig, TaskId, TaskSpec, Work,
};

use crate::common::OnTask;
use unwoken::Unwoken;

/// Says that it has started, and runs when it is told to.
struct Gated {
    started: Sender<()>,
    gate: Mutex<Receiver<()>>,
}

impl DeviceKernel for Gated {
    unsafe fn run(&self, _: &Box3, _: &[BoundMemory<'_>]) {
        // A test may not want to know.
        let _ = self.started.send(());
        // Without a sender it is open.
        let _ = self.gate.lock().unwrap().recv();
    }
}

/// Machines of a cluster, their wakers asleep: the tests poll.
fn machines(nodes: usize) -> Vec<(NodeMachine, Arc<Progress>)> {
    machines_on(nodes, |end| Box::new(end))
}

/// The same on ends that something has been done to.
fn machines_on(
    nodes: usize,
    end: impl Fn(LocalCommunicator) -> Box<dyn Communicator>,
) -> Vec<(NodeMachine, Arc<Progress>)> {
    let pool = CpuPool::new(2).unwrap();
    let wakers = (0..nodes).map(|_| Arc::new(|| {}) as Waker).collect();
    let ends = local_cluster(wakers, &pool);
    let machine = |local| {
        let backend = CpuBackend::new(1, None, &pool, Arc::new(|| {}));
        let progress = Arc::<Progress>::default();
        (NodeMachine::new(1, end(local), Box::new(backend), progress.clone()), progress)
    };
    ends.into_iter().map(machine).collect()
}

/// Writes eight words, each node its own, and reads all of them on each node.
/// Returns what opens the first kernel, and what tells that a kernel has started.
fn submit_program(machine: &mut NodeMachine) -> (Sender<()>, Receiver<()>) {
    let mut graph = TaskGraph::new(TaskGraphConfig::default());
    let mut tasks = vec![graph.start()];
    let extent = Box3::from_range([8]);
    let info = graph.create_buffer(NewBuffer {
        name: None,
        dims: 1,
        extent,
        elem_size: 8,
        elem_align: 8,
        host_initialized: false,
    });
    let buffer = info.id;
    machine.submit(Submission::Buffer { info, element_type: "", data: None });
    let accesses = [(AccessMode::Write, Mapper::OneToOne), (AccessMode::Read, Mapper::All)];
    for (mode, mapper) in accesses {
        let work = Work::Device(IndexSpace::new(1, extent));
        let accesses = vec![Access::buffer(buffer, mode, mapper)];
        let spec = TaskSpec { name: "kernel".into(), work, accesses, location: None };
        graph.commit(graph.declare(spec).unwrap(), &mut tasks);
    }
    graph.epoch(EpochAction::Shutdown, &mut tasks);
    let ((open, gate), (starts, started)) = (channel(), channel());
    let mut gates = vec![channel().1, gate];
    let mut payload = |task: &Task| {
        let kernel = matches!(task.work, Work::Device(_));
        let gated = || Gated { started: starts.clone(), gate: gates.pop().unwrap().into() };
        kernel.then(gated).map(|gated| Payload::Kernel(Arc::new(gated)))
    };
    for task in tasks {
        let payload = payload(&task);
        machine.submit(Submission::Task { task, payload });
    }
    (open, started)
}

fn at(micros: u64) -> Time {
    Time::START + Duration::from_micros(micros)
}

/// What has been issued: all else waits for that.
fn issued(machine: &NodeMachine) -> Vec<Waiting> {
    let waiting = machine.waiting().into_iter();
    waiting.filter(|waiting| !matches!(waiting.reason, WaitsFor::Instructions(_))).collect()
}

/// Polls until nothing happens any more and `reached` holds.
fn poll_until(machine: &mut NodeMachine, now: Time, reached: impl Fn(&NodeMachine) -> bool) {
    while machine.poll(now) == Activity::Busy || !reached(machine) {
        std::thread::yield_now();
    }
}

#[test]
fn a_node_says_what_each_instruction_waits_for_and_since_when() {
    let mut machines = machines(2);
    let [first, second] = [0, 1].map(|index| submit_program(&mut machines[index].0).0);
    let [(node, progress), (other, _)] = &mut machines[..] else { unreachable!() };

    poll_until(node, at(5), |_| true);
    let [kernel, receive] = &issued(node)[..] else { panic!("{:?}", issued(node)) };
    assert!(matches!(kernel.reason, WaitsFor::Lane(_)), "{kernel}");
    assert_eq!((&*kernel.what, kernel.since), ("kernel of T1 \"kernel\" on D0", at(5)));
    let missing = Box3::from_offset_range([4], [4]).into();
    let announced_by = Vec::new();
    assert_eq!(receive.reason, WaitsFor::Elements { missing, announced_by });
    let text = "(receive of \"B0\" for T2 \"kernel\") waits for elements {[4..8]}, which no node has announced";
    assert!(receive.to_string().ends_with(text), "{receive}");
    let later = "kernel of T2 \"kernel\" on D0";
    let behind = node.waiting().into_iter().find(|waiting| waiting.what == later);
    let behind = behind.expect("the second kernel is known, too");
    assert!(matches!(&behind.reason, WaitsFor::Instructions(others) if !others.is_empty()));

    drop(first);
    let sends = |node: &NodeMachine| {
        issued(node).iter().any(|waiting| matches!(waiting.reason, WaitsFor::Receiver(_)))
    };
    poll_until(node, at(9), sends);
    let send = issued(node).into_iter().find(|waiting| waiting.what.starts_with("send of msg0"));
    assert_eq!(send.map(|send| send.since), Some(at(9)));

    drop(second);
    node.submit(Submission::Closed);
    other.submit(Submission::Closed);
    let mut was_in_barrier = false;
    while !node.is_done() || !other.is_done() {
        let _ = node.poll(at(20));
        // Whoever enters a barrier is in it until the next poll.
        was_in_barrier |= issued(node).iter().any(|waiting| waiting.reason == WaitsFor::Barrier);
        let _ = other.poll(at(20));
    }
    assert!(was_in_barrier);
    assert_eq!((node.phase(), node.waiting()), (Phase::Finished, Vec::new()));
    assert_eq!((progress.error(), progress.horizons()), (None, 0));
}

#[test]
fn a_stopped_node_waits_for_nothing_but_what_runs() {
    let mut machines = machines(1);
    let (node, progress) = &mut machines[0];
    let (gate, started) = submit_program(node);
    poll_until(node, at(1), |node| !issued(node).is_empty());
    // What has not started is dropped.
    started.recv().unwrap();
    let error = RunError::Internal { message: "enough".to_owned() };
    node.submit(Submission::Abort(Box::new(error.clone())));
    node.submit(Submission::Closed);
    poll_until(node, at(2), |node| node.phase() == Phase::Stopped);
    assert_eq!((node.waiting(), progress.error()), (Vec::new(), Some(error)));
    assert!(!node.is_done(), "a kernel runs");
    drop(gate);
    poll_until(node, at(3), NodeMachine::is_done);
}

#[test]
fn what_peers_send_goes_before_tasks_which_are_scheduled_one_at_a_time() {
    let mut machines = machines_on(2, |end| Box::new(Unwoken { end, needs_polling: true }));
    let (mut other, _) = machines.pop().unwrap();
    let (node, _) = machines.pop().unwrap();
    let scheduled = Arc::new(AtomicUsize::new(0));
    let counter = scheduled.clone();
    let count = move || {
        counter.fetch_add(1, Ordering::Relaxed);
    };
    let mut node = node.with_observer(Box::new(OnTask(count)));
    let _gates = [&mut node, &mut other].map(submit_program);
    let after_poll = |node: &mut NodeMachine| {
        assert_eq!(node.poll(at(1)), Activity::Busy);
        scheduled.load(Ordering::Relaxed)
    };
    assert_eq!([after_poll(&mut node), after_poll(&mut node)], [1, 2]);
    // Its pilot, for the second kernel, arrives.
    poll_until(&mut other, at(1), |_| true);
    assert_eq!([after_poll(&mut node), after_poll(&mut node)], [2, 3]);
}
