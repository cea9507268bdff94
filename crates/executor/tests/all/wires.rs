//! Wires to devices beside a network in memory: all that a network promises, wherever payloads begin and
//! end; what comes about between nodes of which not all have windows; and what goes wrong.
#![allow(unsafe_code)]

use std::sync::Arc;

use celerity_cdag::{NodeId, TransferId};
use celerity_cpd::{Collective, Ends, Members};
use celerity_executor::{
    BasePtr, CollectiveExchange, CollectiveTerms, CommEvent, CommunicationError, Communicator,
    CpuPool, DeviceCollectives, DeviceWindows, ElementArray, Handshake, MemoryPart, Waker,
    WindowSize, WirePayload, Wired, local_cluster,
};
use celerity_idag::{DeviceId, MemoryId, MessageId, Pilot};
use celerity_regions::{Box3, Region};
use celerity_tdag::{BufferId, TaskId};
use celerity_testkit::conformance::{self, OnDevices, PayloadEnds};
use celerity_testkit::fabric::FakeFabric;
use celerity_testkit::wires::{FakeHost, assemble, wire, wire_with};

const N0: NodeId = NodeId::from_index(0);
const N1: NodeId = NodeId::from_index(1);
const N2: NodeId = NodeId::from_index(2);
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
    conforms(PayloadEnds { begin: true, end: true, collectives: false });
}

#[test]
fn payloads_from_devices_to_hosts_conform() {
    conforms(PayloadEnds { begin: true, end: false, collectives: false });
}

#[test]
fn payloads_from_hosts_to_devices_conform() {
    conforms(PayloadEnds { begin: false, end: true, collectives: false });
}

#[test]
fn payloads_between_hosts_conform_beside_wires() {
    conforms(PayloadEnds { begin: false, end: false, collectives: false });
}

#[test]
fn collectives_between_devices_conform() {
    let places = PayloadEnds { begin: false, end: false, collectives: true };
    let mut seed = 0;
    conformance::check(|nodes| {
        seed += 1;
        let fabric = FakeFabric::default();
        let device = |node: NodeId| Ok(Box::new(fabric.device(node, seed ^ node.index())) as _);
        let wired = assemble(local(nodes), device);
        assert!(wired.iter().all(|one| one.collectives.is_ok()));
        wired.into_iter().map(|one| OnDevices::new(one.end, places)).collect()
    });
}

#[test]
fn all_devices_have_collectives_or_none_has() {
    let terms = CollectiveTerms { least: 1 << 20, least_row: 64 };
    let fabric = FakeFabric::default().with_terms(terms);
    type Device = Result<Box<dyn DeviceCollectives>, String>;
    let whole = |node| Ok(Box::new(fabric.device(node, 1)) as Box<dyn DeviceCollectives>);
    let all = assemble(local(3), whole);
    assert!(all.iter().all(|one| one.collectives == Ok(terms) && !one.end.wakes()));
    let outcomes = |device: &dyn Fn(NodeId) -> Device| {
        let wired = assemble(local(3), device);
        assert!(wired.iter().all(|one| one.end.wakes()), "the end is as it was");
        wired.into_iter().map(|one| one.collectives.unwrap_err()).collect::<Vec<_>>()
    };
    // Whoever cannot join, and whenever that is known, all get the same reason.
    for missing in [N0, N1] {
        let none = outcomes(&|node| match node == missing {
            true => Err("it has no library".to_owned()),
            false => whole(node),
        });
        assert!(none.iter().all(|why| why.contains("it has no library")), "{none:?}");
        assert!(missing == N0 || none[2].starts_with("N1: "), "{none:?}");
        let refusing = outcomes(&|node| match node == missing {
            true => Ok(Box::new(fabric.device(node, 1).refusing())),
            false => whole(node),
        });
        assert!(refusing.iter().all(|why| why.contains("does not join")), "{refusing:?}");
    }
}

#[test]
fn who_has_not_come_to_a_collective_of_devices_is_known() {
    let fabric = FakeFabric::default();
    let wired = assemble(local(3), |node| Ok(Box::new(fabric.device(node, 1))));
    let mut ends: Vec<_> = wired.into_iter().map(|one| one.end).collect();
    let extent = Box3::from_range([8]);
    let region = Region::from(extent);
    let (members, from, to) = (Members::all(), Ends::One(N0), Ends::All);
    let collective = Arc::new(Collective { members, region: region.clone(), from, to });
    let transfer = TransferId { consumer: TaskId::from_index(7), buffer: BufferId::from_index(0) };
    let mut memory = [[1_u8; 8], [0; 8], [0; 8]];
    let part = |bytes: &mut [u8; 8]| {
        let memory = ElementArray { base: BasePtr::of_mut_slice(bytes), extent };
        Box::from([MemoryPart { memory, region: region.clone() }])
    };
    let [first, second, third] = &mut memory;
    let collective = || collective.clone();
    let exchange = |sources: Box<[MemoryPart]>, targets: Box<[MemoryPart]>| {
        let (collective, at) = (collective(), D0);
        CollectiveExchange { transfer, collective, elem_size: 1, at, sources, targets }
    };
    // SAFETY: the memory outlives the ends.
    unsafe {
        ends[0].exchange(exchange(part(first), Box::default()));
        ends[1].exchange(exchange(Box::default(), part(second)));
    }
    for _ in 0..100 {
        assert!(ends.iter_mut().all(|end| end.poll().is_none()));
    }
    assert!(ends[0].needs_polling() && ends[0].bytes_under_way() == 8);
    assert_eq!(
        (&ends[0].absent(transfer)[..], &ends[1].absent(transfer)[..]),
        (&[N2][..], &[][..])
    );
    // SAFETY: as above.
    unsafe { ends[2].exchange(exchange(Box::default(), part(third))) };
    let mut over = 0;
    for _ in 0..1000 {
        for end in &mut ends {
            over += usize::from(end.poll() == Some(CommEvent::Exchanged { transfer }));
        }
    }
    assert_eq!((over, ends[0].absent(transfer)), (3, Vec::new()));
    drop(ends);
    assert_eq!(memory, [[1; 8]; 3]);
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
    Pilot { to: N1, message, transfer, region: elements.into(), from_device: true }
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
fn boxes_that_have_arrived_are_brought_to_devices_and_told_once() {
    let mut ends = wire(local(2), &FakeHost::new(SMALL), 4);
    let extent = Box3::from_range([100]);
    let (mut row, mut target) = ((0..9).collect::<Vec<u8>>(), vec![99; 100]);
    let boxes = [[3, 5], [20, 21], [60, 66]];
    let mut first = 0;
    let parts = boxes.map(|[start, end]| {
        let elements = Box3::from_offset_range([start], [end - start]);
        let dense = &mut row[first..][..end - start];
        first += end - start;
        let source = ElementArray { base: BasePtr::of_mut_slice(dense), extent: elements };
        let memory = ElementArray { base: BasePtr::of_mut_slice(&mut target), extent };
        (source, WirePayload { memory, ..payload(&mut [], elements, 1) })
    });
    // SAFETY: the memory outlives the ends.
    unsafe { ends[1].scatter(N0, &parts) };
    let mut events = Vec::new();
    for _ in 0..10_000 {
        events.extend(ends[1].poll());
        assert!(ends[1].needs_polling() != (events.len() == 1), "while it is under way");
    }
    assert_eq!(events, [CommEvent::Received { from: N0, message: MessageId::from_index(0) }]);
    drop(ends);
    let mut expected = vec![99; 100];
    let places = boxes.into_iter().flat_map(|[start, end]| start..end);
    places.zip(0..).for_each(|(place, value)| expected[place] = value);
    assert_eq!(target, expected);
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
