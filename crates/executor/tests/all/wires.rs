//! Wires to devices beside a network in memory: all that a network promises, wherever payloads begin and
//! end; what comes about between nodes of which not all have windows; and what goes wrong.
#![allow(unsafe_code)]

use std::sync::Arc;

use celerity_cdag::{NodeId, TransferId};
use celerity_executor::{
    BasePtr, CommEvent, CommunicationError, Communicator, CpuPool, DeviceWindows, ElementArray,
    Handshake, Waker, WindowSize, WirePayload, Wired, local_cluster,
};
use celerity_idag::{DeviceId, MemoryId, MessageId, Pilot};
use celerity_regions::Box3;
use celerity_tdag::{BufferId, TaskId};
use celerity_testkit::conformance::{self, OnDevices, PayloadEnds};
use celerity_testkit::wires::{FakeHost, wire, wire_with};

const N0: NodeId = NodeId::from_index(0);
const N1: NodeId = NodeId::from_index(1);
const D0: MemoryId = MemoryId::of_device(DeviceId::from_index(0));

/// Small ones, so that payloads are cut and wait for slots.
const SMALL: WindowSize = WindowSize { windows: 1, slots: 3, slot_bytes: 1 << 16, least: 1 };

fn local(nodes: usize) -> Vec<Box<dyn Communicator>> {
    let pool = CpuPool::new(2).unwrap();
    let ends = local_cluster((0..nodes).map(|_| Arc::new(|| {}) as Waker).collect(), &pool);
    ends.into_iter().map(|end| Box::new(end) as Box<dyn Communicator>).collect()
}

fn conforms(places: PayloadEnds) {
    let mut seed = 0;
    conformance::check(|nodes| {
        seed += 1;
        let ends = wire(local(nodes), &FakeHost::new(SMALL), seed);
        ends.into_iter().map(|end| OnDevices::new(end, places)).collect()
    });
}

#[test]
fn payloads_between_devices_conform() {
    conforms(PayloadEnds { begin: true, end: true });
}

#[test]
fn payloads_from_devices_to_hosts_conform() {
    conforms(PayloadEnds { begin: true, end: false });
}

#[test]
fn payloads_from_hosts_to_devices_conform() {
    conforms(PayloadEnds { begin: false, end: true });
}

#[test]
fn payloads_between_hosts_conform_beside_wires() {
    conforms(PayloadEnds { begin: false, end: false });
}

/// What a node finds out, by node.
fn shake(windows: impl Fn(NodeId) -> Result<Box<dyn DeviceWindows>, String>) -> Vec<Wired> {
    let shake = |end: Box<dyn Communicator>| {
        let node = end.node();
        Handshake::begin(end, windows(node), [N0, N1].into_iter().filter(|other| *other != node))
    };
    let mut shakes: Vec<_> = local(2).into_iter().map(shake).collect();
    assert_eq!(shakes[0].missing(), [N1]);
    // All of them take each step.
    while shakes.iter_mut().filter_map(|shake| (!shake.step()).then_some(())).count() > 0 {}
    assert_eq!(shakes[0].missing(), []);
    shakes.into_iter().map(Handshake::finish).collect()
}

#[test]
fn nodes_reach_each_other_or_neither_does() {
    let host = FakeHost::new(SMALL);
    let both = shake(|node| Ok(Box::new(host.windows(node, 1))));
    assert_eq!((&both[0].reached[..], &both[1].reached[..]), (&[N1][..], &[N0][..]));
    assert!(both.iter().all(|one| one.obstacle.is_none() && one.is_complete && one.least == 1));
    assert!(!both[0].end.wakes(), "copies end without waking anybody");

    let one = shake(|node| match node {
        N0 => Ok(Box::new(host.windows(node, 1)) as Box<dyn DeviceWindows>),
        _ => Err("it has no devices".to_owned()),
    });
    assert!(one.iter().all(|one| one.reached.is_empty() && !one.is_complete));
    assert_eq!(one[0].obstacle.as_deref(), Some("N1 has no windows"));
    assert_eq!(one[1].obstacle.as_deref(), Some("it has no devices"));
    assert!(one[0].end.wakes(), "the end is as it was");

    let other = FakeHost::new(WindowSize { slot_bytes: 1 << 17, ..SMALL });
    let sizes = shake(|node| {
        let host = if node == N0 { &host } else { &other };
        Ok(Box::new(host.windows(node, 1)))
    });
    assert!(sizes.iter().all(|one| one.reached.is_empty()));
    let obstacle = sizes[0].obstacle.as_deref().unwrap();
    assert!(obstacle.contains("another size"), "{obstacle}");
}

fn pilot(message: u64, elements: Box3) -> Pilot {
    let transfer = TransferId { consumer: TaskId::from_index(5), buffer: BufferId::from_index(1) };
    let message = MessageId::from_index(message);
    Pilot { to: N1, message, transfer, elements, from_device: true }
}

fn payload(memory: &mut [u8], elements: Box3, elem_size: u64) -> WirePayload {
    let memory = ElementArray { base: BasePtr::of_mut_slice(memory), extent: elements };
    WirePayload { message: MessageId::from_index(0), at: D0, memory, elements, elem_size }
}

/// The first thing that goes wrong on either side.
fn fault(ends: &mut [Box<dyn Communicator>]) -> CommunicationError {
    for _ in 0..10_000 {
        for end in &mut *ends {
            if let Some(CommEvent::Failed(error)) = end.poll() {
                return error;
            }
        }
    }
    panic!("nothing goes wrong")
}

#[test]
fn sides_that_disagree_are_told() {
    let all = Box3::from_range([8]);
    let wired = || wire(local(2), &FakeHost::new(SMALL), 3);
    let (mut source, mut target) = (vec![1; 64], vec![2; 64]);

    let mut ends = wired();
    ends[0].send_pilot(&pilot(0, all), 0);
    // SAFETY: the memory outlives the ends.
    unsafe { ends[1].receive(N0, payload(&mut target, Box3::from_range([7]), 4)) };
    assert!(matches!(fault(&mut ends), CommunicationError::Mismatch { .. }));
    drop(ends);

    let mut ends = wired();
    ends[0].send_pilot(&pilot(0, all), 0);
    // SAFETY: as above.
    unsafe { ends[0].send(N1, payload(&mut source, all, 4)) };
    // SAFETY: as above.
    unsafe { ends[1].receive(N0, payload(&mut target, all, 8)) };
    let error = fault(&mut ends);
    let sizes =
        matches!(error, CommunicationError::Mismatch { sent_size: 4, received_size: 8, .. });
    assert!(sizes, "{error}");
    drop(ends);

    let mut ends = wired();
    ends[0].send_pilot(&pilot(0, all), 0);
    ends[0].send_pilot(&pilot(0, all), 0);
    assert!(matches!(fault(&mut ends), CommunicationError::Reused { .. }));
    assert_eq!(target, [2; 64], "nothing has moved");
}

#[test]
fn notes_that_make_no_sense_are_told() {
    for note in [&[5][..], &[5, 99], &[5, 4, 1], &[5, 5, 0, 0, 0, 0], &[5, 0]] {
        let mut ends = wire(local(2), &FakeHost::new(SMALL), 5);
        ends[0].send_note(N1, note);
        let error = fault(&mut ends);
        assert!(
            matches!(error, CommunicationError::Malformed { from: N0, .. }),
            "{note:?}: {error}"
        );
    }
}

#[test]
fn copies_that_fail_are_told_and_leave_nobody_waiting() {
    let host = FakeHost::new(SMALL);
    let mut ends = wire_with(local(2), |node| Ok(Box::new(host.windows(node, 7).broken())));
    let all = Box3::from_range([1 << 20]);
    let (mut source, mut target) = (vec![1; 1 << 20], vec![2; 1 << 20]);
    ends[0].send_pilot(&pilot(0, all), 0);
    // SAFETY: the memory outlives the ends.
    unsafe { ends[0].send(N1, payload(&mut source, all, 1)) };
    // SAFETY: as above.
    unsafe { ends[1].receive(N0, payload(&mut target, all, 1)) };
    let error = fault(&mut ends);
    assert!(error.to_string().contains("a copy has failed"), "{error}");
    std::thread::scope(|scope| {
        for end in ends {
            scope.spawn(move || drop(end));
        }
    });
    assert!(target.iter().all(|byte| *byte == 2));
}
