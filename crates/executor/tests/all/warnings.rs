//! What a run is warned of: nodes that stand still, and devices that starve. Times
//! are the tests' own, but for one run that stands still for good.
#![allow(unsafe_code)]

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use celerity_executor::{
    Activity, BoundMemory, ClusterConfig, Collectives, CpuBackend, CpuPool, DeviceKernel,
    Lookahead, NodeMachine, OnLane, Payload, Phase, RunError, Stall, Submission, Time, WaitsFor,
    Waker, Warning, WarningSink, local_cluster,
};
use celerity_regions::Box3;
use celerity_tdag::{
    Access, AccessMode, BufferId, EpochAction, IndexSpace, Mapper, NewBuffer, Task, TaskGraph,
    TaskGraphConfig, TaskSpec, Work,
};

use crate::common::{
    Outcome, PerNode, View, buffer, cluster, fence, host_task, kernel, run, updates, writes,
};

/// A sink, and what it is told.
fn sink() -> (WarningSink, Receiver<Warning>) {
    let (told, warnings) = channel();
    let told = Mutex::new(told);
    (WarningSink::new(move |warning| drop(told.lock().unwrap().send(warning.clone()))), warnings)
}

#[test]
fn a_stuck_peer_is_reported_by_all_who_wait() {
    let (warnings, told) = sink();
    let watchdog = Duration::from_millis(20);
    let collectives = Collectives::Off;
    let config = ClusterConfig { watchdog, warnings, collectives, ..cluster(2, 1) };
    let (release, gate) = channel();
    let (told, gate, release) = (Mutex::new(told), Mutex::new(gate), Mutex::new(release));
    let (gate, texts) = (Arc::new(gate), PerNode::default());
    let reported = texts.clone();
    let outcome: Outcome<()> = run(&config, move |node| {
        let extent = Box3::from_range([8]);
        let u = buffer(node, extent);
        node.rename_buffer(u, "u");
        let gate = gate.clone();
        // Host functions run on node 0.
        let stick = move |_: &[View<'_>]| gate.lock().unwrap().recv().unwrap();
        host_task(node, "stick", vec![writes(u, Mapper::All)], stick)?;
        let update = vec![updates(u, Mapper::OneToOne)];
        kernel(node, "update", extent, update, |at, u| u[0].set(at, 1))?;
        let all = fence(node, u, extent)?;
        if node.node().index() == 0 {
            let told = told.lock().unwrap();
            reported.push(node, first_stalls(&told));
            release.lock().unwrap().send(()).unwrap();
        }
        assert_eq!(all.wait(node)?, [1; 8]);
        Ok(())
    });
    outcome.unwrap();
    let text = texts.take().remove(0).join("\n");
    for part in [
        "N0 has made no progress for",
        "(host function of T1 \"stick\") has been running for ",
        " on thread celerity-host",
        "N1 has made no progress for",
        "(receive of \"u\" for T2 \"update\") waits for elements {[4..8]}, announced by N0",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
}

/// The first reports of both nodes of a cluster.
fn first_stalls(told: &Receiver<Warning>) -> [String; 2] {
    let mut texts = [None, None];
    while let Some(missing) = texts.iter().position(Option::is_none) {
        let warning = told.recv_timeout(Duration::from_secs(60));
        let warning = warning.unwrap_or_else(|_| panic!("N{missing} says nothing: {texts:?}"));
        if let Warning::Stalled(Stall { node, .. }) = &warning {
            texts[node.slot()].get_or_insert(warning.to_string());
        }
    }
    texts.map(Option::unwrap_or_default)
}

/// Runs when it is told to.
struct Gated(Mutex<Receiver<()>>);

impl DeviceKernel for Gated {
    unsafe fn run(&self, _: &Box3, _: &[BoundMemory<'_>]) {
        // Without a sender it is open.
        let _ = self.0.lock().unwrap().recv();
    }
}

/// A single node, driven by the test.
struct Alone {
    machine: NodeMachine,
    graph: TaskGraph,
    warnings: Receiver<Warning>,
    /// What its backend says whenever there is something to poll.
    wakes: Receiver<()>,
}

impl Alone {
    fn new(change: impl FnOnce(NodeMachine) -> NodeMachine) -> Self {
        let pool = CpuPool::new(1).unwrap();
        let wakers: Vec<Waker> = vec![Arc::new(|| {})];
        let end = local_cluster(wakers, &pool).remove(0);
        let (wake, wakes) = channel();
        let wake = Mutex::new(wake);
        let waker: Waker = Arc::new(move || {
            // Tests that do not listen have dropped the other end.
            let _ = wake.lock().unwrap().send(());
        });
        let backend = CpuBackend::new(1, None, &pool, waker);
        let (warnings, told) = sink();
        let machine = NodeMachine::new(1, Box::new(end), Box::new(backend), Arc::default());
        let machine = change(machine).with_warnings(warnings);
        let mut graph = TaskGraph::new(TaskGraphConfig::default());
        let start = graph.start();
        let mut alone = Self { machine, graph, warnings: told, wakes };
        alone.submit(start, None);
        alone
    }

    fn submit(&mut self, task: Arc<Task>, payload: Option<Payload>) {
        self.machine.submit(Submission::Task { task, payload });
    }

    fn buffer(&mut self) -> BufferId {
        let info = self.graph.create_buffer(NewBuffer {
            name: Some("u".into()),
            dims: 1,
            extent: Box3::from_range([8]),
            elem_size: 8,
            elem_align: 8,
            host_initialized: false,
        });
        let buffer = info.id;
        self.machine.submit(Submission::Buffer { info, element_type: "", data: None });
        buffer
    }

    /// A kernel that overwrites a buffer, and what opens its gate.
    fn write(&mut self, name: &str, buffer: BufferId) -> Sender<()> {
        let (open, gate) = channel();
        let space = IndexSpace::new(1, Box3::from_range([8]));
        let accesses = vec![Access::buffer(buffer, AccessMode::Write, Mapper::OneToOne)];
        let work = Work::Device(space);
        let spec = TaskSpec { name: name.into(), work, accesses, location: None };
        let mut tasks = Vec::new();
        self.graph.commit(self.graph.declare(spec).unwrap(), &mut tasks);
        let mut kernel = Some(Payload::Kernel(Arc::new(Gated(Mutex::new(gate)))));
        tasks.into_iter().for_each(|task| self.submit(task, kernel.take()));
        open
    }

    fn shut_down(&mut self) {
        let mut tasks = Vec::new();
        self.graph.epoch(EpochAction::Shutdown, &mut tasks);
        tasks.into_iter().for_each(|task| self.submit(task, None));
        self.machine.submit(Submission::Closed);
    }

    /// Polls at one time until nothing happens any more and `reached` holds.
    fn poll_until(&mut self, now: Time, reached: impl Fn(&NodeMachine) -> bool) {
        while self.machine.poll(now) == Activity::Busy || !reached(&self.machine) {
            std::thread::yield_now();
        }
    }

    fn poll(&mut self, now: Time) {
        self.poll_until(now, |_| true);
    }
}

fn at(seconds: u64) -> Time {
    Time::START + Duration::from_secs(seconds)
}

#[test]
fn a_node_complains_at_its_deadlines_while_something_is_open() {
    let mut node = Alone::new(|machine| machine.with_watchdog(Duration::from_secs(30)));
    node.poll(at(1));
    assert_eq!(node.machine.deadline(), None, "there is nothing to wait for");
    let u = node.buffer();
    let gate = node.write("slow", u);
    node.poll_until(at(2), is_at_work);
    assert_eq!(node.machine.deadline(), Some(at(32)));
    node.poll(at(31));
    assert_eq!(node.warnings.try_iter().count(), 0);
    node.poll(at(32));
    let text = node.warnings.try_recv().unwrap().to_string();
    assert!(text.starts_with("N0 has made no progress for 30.0s"), "{text}");
    let running = "(kernel of T1 \"slow\" on D0) has been running for 30.0s on thread celerity-0";
    assert!(text.contains(running), "{text}");
    assert_eq!(node.machine.deadline(), Some(at(62)), "then at doubling intervals");
    node.poll(at(62));
    assert_eq!((node.warnings.try_iter().count(), node.machine.deadline()), (1, Some(at(122))));
    drop(gate);
    node.poll_until(at(63), |machine| machine.waiting().is_empty());
    assert_eq!(node.machine.deadline(), None);
    node.poll(at(1000));
    assert_eq!(node.warnings.try_iter().count(), 0);
}

/// Until one of its threads is at something.
fn is_at_work(machine: &NodeMachine) -> bool {
    let runs =
        |reason: &WaitsFor| matches!(reason, WaitsFor::Lane(OnLane { running: Some(_), .. }));
    machine.waiting().iter().any(|waiting| runs(&waiting.reason))
}

#[test]
fn what_is_queued_behind_a_kernel_waits_for_its_lane() {
    let mut node = Alone::new(|machine| machine.with_watchdog(Duration::from_secs(30)));
    let u = node.buffer();
    let gates = ["first", "second"].map(|name| node.write(name, u));
    node.poll_until(at(2), is_at_work);
    node.poll(at(32));
    let text = node.warnings.try_recv().unwrap().to_string();
    for part in [
        "(kernel of T1 \"first\" on D0) has been running for 30.0s on thread celerity-0",
        "(kernel of T2 \"second\" on D0) waits for its lane, D0 kernels 1, since 30.0s",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    drop(gates);
    node.poll_until(at(33), |machine| machine.waiting().is_empty());
}

#[test]
fn a_failed_run_says_what_its_end_waits_for() {
    let mut node = Alone::new(|machine| machine.with_watchdog(Duration::from_secs(30)));
    let u = node.buffer();
    let gate = node.write("slow", u);
    node.poll_until(at(2), is_at_work);
    let signal = "SIGINT".to_owned();
    node.machine.submit(Submission::Abort(Box::new(RunError::Interrupted { signal })));
    node.poll_until(at(3), |machine| machine.phase() == Phase::Stopped);
    assert_eq!(node.machine.deadline(), Some(at(4)), "not after 30 s");
    node.poll(at(4));
    let text = node.warnings.try_recv().unwrap().to_string();
    let expected = "interrupted by SIGINT; N0 waits for kernel of T1 \"slow\" on D0, which has been \
                    running for ";
    assert!(text.starts_with(expected), "{text}");
    let expected = "on thread celerity-0; and for its program, which has not returned; interrupt \
                    again to end at once";
    assert!(text.ends_with(expected), "{text}");
    assert_eq!(node.machine.deadline(), Some(at(5)), "then at doubling intervals");
    node.machine.submit(Submission::Closed);
    node.poll(at(5));
    let text = node.warnings.try_recv().unwrap().to_string();
    assert!(text.ends_with(" on thread celerity-0; interrupt again to end at once"), "{text}");
    assert_eq!(node.machine.deadline(), Some(at(7)));
    drop(gate);
    node.poll_until(at(6), NodeMachine::is_done);
    node.poll(at(100));
    assert_eq!((node.machine.deadline(), node.warnings.try_iter().count()), (None, 0));
}

#[test]
fn who_does_not_want_to_be_warned_is_not_warned_of_the_end_either() {
    let mut node = Alone::new(|machine| machine.with_watchdog(Duration::ZERO));
    let u = node.buffer();
    let gate = node.write("slow", u);
    node.poll_until(at(2), is_at_work);
    let error = RunError::Internal { message: "test".to_owned() };
    node.machine.submit(Submission::Abort(Box::new(error)));
    node.poll_until(at(3), |machine| machine.phase() == Phase::Stopped);
    node.machine.submit(Submission::Closed);
    node.poll(at(100));
    assert_eq!((node.machine.deadline(), node.warnings.try_iter().count()), (None, 0));
    drop(gate);
    node.poll_until(at(101), NodeMachine::is_done);
}

#[test]
fn what_nobody_woke_a_node_for_is_found_and_reported() {
    let mut node = Alone::new(|machine| machine.with_watchdog(Duration::from_secs(30)));
    let u = node.buffer();
    let gate = node.write("slow", u);
    node.poll(at(2));
    drop(gate);
    node.wakes.recv().unwrap();
    node.poll(at(32));
    assert!(node.machine.waiting().is_empty());
    let text = node.warnings.try_recv().unwrap().to_string();
    assert!(text.starts_with("nothing woke N0 for 30.0s"), "{text}");
}

#[test]
fn what_the_lookahead_holds_back_is_reported_and_starves_devices() {
    let watched = |machine: NodeMachine| {
        machine.with_watchdog(Duration::from_secs(3)).with_lookahead(Lookahead::Infinite)
    };
    let mut node = Alone::new(watched);
    let (u, v) = (node.buffer(), node.buffer());
    drop(node.write("first", u));
    node.machine.submit(Submission::Flush);
    node.poll_until(at(1), |machine| machine.waiting().is_empty());
    drop(node.write("second", v));
    node.poll(at(2));
    node.poll(at(5));
    let text = node.warnings.try_recv().unwrap().to_string();
    assert!(text.contains("T2 \"second\" is held back to see what follows"), "{text}");
    assert_eq!(node.machine.starvation().held_back, Duration::from_secs(3));
    node.shut_down();
    node.poll_until(at(7), NodeMachine::is_done);
    let starvation = node.machine.starvation();
    assert_eq!(
        (starvation.held_back, starvation.unscheduled),
        (Duration::from_secs(5), Duration::ZERO)
    );
    let warning = node.warnings.try_iter().find(|one| matches!(one, Warning::Starved { .. }));
    let text = warning.expect("most of the run was lost").to_string();
    assert!(text.starts_with("the devices of N0 stood idle for 71 % of 7.00s"), "{text}");
}
