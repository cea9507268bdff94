//! What only this communicator has: limits of messages and tags, and receivers
//! that do not believe what they are sent.

use std::thread;
use std::time::{Duration, Instant};

use celerity_cdag::{NodeId, TransferId};
use celerity_executor::{
    BasePtr, CommEvent, CommunicationError, Communicator, ElementArray, RunError, WirePayload,
};
use celerity_idag::{MemoryId, MessageId, Pilot, wire};
use celerity_mpi::{MpiCommunicator, MpiOptions, StartError, start};
use celerity_regions::Box3;
use celerity_tdag::{BufferId, TaskId};

use crate::world::World;

pub(crate) type Check = fn(&World);

pub(crate) const CHECKS: &[(&str, Check)] = &[
    ("payloads beyond the limit are sent in pieces", pieces_arrive),
    ("few tags serve many payloads", few_tags_serve_many_payloads),
    ("random payloads arrive", random_payloads_arrive),
    ("pilots of wrong lengths are errors", bad_pilots_are_errors),
    ("payloads of wrong lengths are errors", wrong_lengths_are_errors),
    ("mistakes of the node itself are errors", own_mistakes_are_errors),
    ("a process is one node at a time", one_node_at_a_time),
    ("ends that are dropped stop the others", dropped_ends_stop_the_others),
];

pub(crate) fn node(index: usize) -> NodeId {
    NodeId::from_index(index as u64)
}

pub(crate) fn pilot(to: NodeId, message: u64, elements: Box3) -> Pilot {
    let transfer = TransferId { consumer: TaskId::from_index(5), buffer: BufferId::from_index(1) };
    let (message, region) = (MessageId::from_index(message), elements.into());
    Pilot { to, message, transfer, region, from_device: false }
}

/// Memory that holds `extent`, one byte per element.
pub(crate) fn payload(
    memory: &mut [u8],
    extent: Box3,
    elements: Box3,
    message: u64,
) -> WirePayload {
    let memory = ElementArray { base: BasePtr::of_mut_slice(memory), extent };
    let message = MessageId::from_index(message);
    WirePayload { message, at: MemoryId::HOST, memory, elements, elem_size: 1 }
}

pub(crate) fn next_event(end: &mut MpiCommunicator) -> CommEvent {
    let start = Instant::now();
    loop {
        if let Some(event) = end.poll() {
            return event;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{} hears nothing", end.node());
        thread::yield_now();
    }
}

pub(crate) fn next_but_pilots(end: &mut MpiCommunicator) -> CommEvent {
    loop {
        match next_event(end) {
            CommEvent::Pilot { .. } => {}
            event => return event,
        }
    }
}

/// What went wrong; then ends the run, on all nodes.
fn failure(end: &mut MpiCommunicator) -> CommunicationError {
    let CommEvent::Failed(error) = next_but_pilots(end) else { panic!("{} succeeds", end.node()) };
    error
}

fn abort(world: &World, mut end: MpiCommunicator) {
    world.meet();
    end.abort(&RunError::Internal { message: "enough".to_owned() });
    while !matches!(next_event(&mut end), CommEvent::Aborted(_)) {}
}

fn pieces_arrive(world: &World) {
    for max_message in [1, 100, 1000] {
        let mut end = world.connect(&MpiOptions { max_message, ..MpiOptions::default() });
        exchange(
            world,
            &mut end,
            Box3::from_range([7, 9, 11]),
            &[
                Box3::from_range([7, 9, 11]),
                Box3::new([1, 2, 3], [6, 8, 9]),
                Box3::new([0, 0, 10], [7, 9, 11]),
            ],
        );
    }
}

fn few_tags_serve_many_payloads(world: &World) {
    let lines: Vec<_> = (0..50).map(|line| Box3::new([line, 0, 0], [line + 1, 600, 1])).collect();
    for max_tags in [1, 2, 5] {
        let mut end = world.connect(&MpiOptions { max_tags, ..MpiOptions::default() });
        exchange(world, &mut end, Box3::from_range([50, 600]), &lines);
    }
}

/// `N0` sends boxes to `N1`, which asks for them in the opposite order.
fn exchange(world: &World, end: &mut MpiCommunicator, extent: Box3, boxes: &[Box3]) {
    if world.size < 2 || world.rank > 1 {
        return world.meet();
    }
    let len = usize::try_from(extent.volume()).expect("small");
    let byte = |at: usize| u8::try_from(at % 251).expect("below 251");
    let mut memory: Vec<u8> =
        (0..len).map(|at| if world.rank == 0 { byte(at) } else { 255 }).collect();
    let numbered = (0..).zip(boxes);
    if world.rank == 0 {
        numbered.clone().for_each(|(message, elements)| {
            end.send_pilot(&pilot(node(1), message, *elements), 0);
        });
    }
    for (message, elements) in numbered {
        let last = boxes.len() as u64 - 1;
        // SAFETY: the memory outlives the reports, awaited below.
        unsafe {
            match world.rank {
                0 => end.send(node(1), payload(&mut memory, extent, *elements, message)),
                _ => {
                    let elements = boxes[boxes.len() - 1 - usize::try_from(message).expect("few")];
                    let payload = payload(&mut memory, extent, elements, last - message);
                    end.receive(node(0), payload);
                }
            }
        }
    }
    for _ in boxes {
        let event = next_but_pilots(end);
        assert!(matches!(event, CommEvent::Sent { .. } | CommEvent::Received { .. }), "{event:?}");
    }
    let inside = |at: usize| {
        let [_, lines, columns] = extent.range();
        let at = at as u64;
        let point = [at / (lines * columns), at / columns % lines, at % columns];
        boxes.iter().any(|elements| elements.contains_point(point))
    };
    for (at, value) in memory.iter().enumerate().filter(|_| world.rank == 1) {
        assert_eq!(*value, if inside(at) { byte(at) } else { 255 }, "byte {at}");
    }
    world.meet();
}

/// A simple generator, the same on all nodes.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Each node sends to each other one, all at once, in an order of its own.
fn random_payloads_arrive(world: &World) {
    let mut random = Random(7);
    let mut end = world.connect(&MpiOptions { max_tags: 7, ..MpiOptions::default() });
    let size = world.size;
    // Message ids grow per sender, over all its receivers.
    let plan: Vec<(usize, usize, usize)> = (0..400)
        .map(|_| {
            let mut draw =
                |bound: usize| usize::try_from(random.below(bound as u64)).expect("small");
            let from = draw(size);
            (from, (from + 1 + draw(size.max(2) - 1)) % size, 1 + draw(3) * draw(30_000))
        })
        .filter(|(from, to, _)| from != to)
        .collect();
    let mut memory: Vec<Vec<u8>> = Vec::new();
    let mut mine = Vec::new();
    for (message, &(from, to, len)) in (0_u64..).zip(&plan) {
        let elements = Box3::from_range([len]);
        let fill = u8::try_from(message % 251).expect("below 251");
        if from == world.rank {
            end.send_pilot(&pilot(node(to), message, elements), 0);
            mine.push((message, to, true));
            memory.push(vec![fill; len]);
        } else if to == world.rank {
            mine.push((message, from, false));
            memory.push(vec![255; len]);
        }
    }
    let mut order: Vec<usize> = (0..mine.len()).collect();
    let mut shuffle = Random(world.rank as u64);
    for at in (1..order.len()).rev() {
        order.swap(at, usize::try_from(shuffle.below(at as u64 + 1)).expect("small"));
    }
    for at in order {
        let (message, peer, outward) = mine[at];
        let extent = Box3::from_range([memory[at].len()]);
        let payload = payload(&mut memory[at], extent, extent, message);
        // SAFETY: the memory outlives the reports, awaited below.
        unsafe {
            match outward {
                true => end.send(node(peer), payload),
                false => end.receive(node(peer), payload),
            }
        }
    }
    for _ in &mine {
        let event = next_but_pilots(&mut end);
        assert!(matches!(event, CommEvent::Sent { .. } | CommEvent::Received { .. }), "{event:?}");
    }
    for ((message, ..), bytes) in mine.iter().zip(&memory) {
        assert!(bytes.iter().all(|byte| u64::from(*byte) == message % 251), "{message}");
    }
    world.meet();
}

/// Too short, too long for the room that there is, or not a pilot at all.
fn bad_pilots_are_errors(world: &World) {
    if world.size < 2 {
        return;
    }
    let message = |to, from| {
        let pilot = wire::encode(&pilot(node(to), 0, Box3::from_range([1])), node(from));
        [&pilot[..], &0_u64.to_le_bytes()].concat()
    };
    let (good, elsewhere) = (message(1, 0), message(0, 1));
    let cases: [&[u8]; 5] = [&[], &good[1..], &[7; 105], &[7; 1000], &elsewhere];
    for bytes in cases {
        let mut end = world.connect(&MpiOptions::default());
        match world.rank {
            0 => end.send_instead_of_pilot(node(1), bytes),
            1 => {
                let error = failure(&mut end);
                let from = node(0);
                assert!(
                    matches!(error, CommunicationError::Malformed { from: node, .. } if node == from),
                    "{error}"
                );
            }
            _ => {}
        }
        abort(world, end);
    }
}

/// The pilot says one thing, the payload another.
fn wrong_lengths_are_errors(world: &World) {
    if world.size < 2 {
        return;
    }
    for (announced, sent, expected) in [(8, 4, 8), (4, 8, 4), (4, 4, 8), (90_000, 100_000, 90_000)]
    {
        let mut end = world.connect(&MpiOptions::default());
        let whole = |len: usize| Box3::from_range([len]);
        let mut memory = vec![0; 100_000];
        match world.rank {
            0 => {
                end.send_pilot(&pilot(node(1), 3, whole(announced)), 0);
                // SAFETY: the memory outlives the end.
                unsafe { end.send(node(1), payload(&mut memory, whole(sent), whole(sent), 3)) };
            }
            1 => {
                let payload = payload(&mut memory, whole(expected), whole(expected), 3);
                // SAFETY: as above.
                unsafe { end.receive(node(0), payload) };
                match failure(&mut end) {
                    CommunicationError::Mismatch { .. } => assert_ne!(announced, expected),
                    CommunicationError::Length { expected: bytes, received, .. } => {
                        assert_eq!(bytes, expected as u64);
                        let longer = (sent < expected).then_some(sent as u64);
                        assert_eq!(received, longer);
                    }
                    error => panic!("{error}"),
                }
            }
            _ => {}
        }
        abort(world, end);
    }
}

fn own_mistakes_are_errors(world: &World) {
    let mut end = world.connect(&MpiOptions::default());
    let mut memory = [0; 4];
    let (size, whole) = (world.size, Box3::from_range([4]));
    let payload = payload(&mut memory, whole, whole, 9);
    // SAFETY: the memory outlives the end.
    unsafe { end.send(node(size), payload) };
    assert!(matches!(failure(&mut end), CommunicationError::NoSuchNode { .. }));
    // SAFETY: as above.
    unsafe { end.send(node(0), payload) };
    assert!(matches!(failure(&mut end), CommunicationError::Unannounced { .. }));
    abort(world, end);
}

fn one_node_at_a_time(world: &World) {
    let end = world.connect(&MpiOptions::default());
    let second = start(&MpiOptions::default(), std::sync::Arc::new(|| {}));
    assert_eq!(second.err(), Some(StartError::InUse));
    drop(end);
}

/// The last node forgets a receive.
fn dropped_ends_stop_the_others(world: &World) {
    let mut end = world.connect(&MpiOptions::default());
    let mut memory = [7; 4];
    let whole = Box3::from_range([4]);
    let last = world.size - 1;
    if world.rank == last {
        let payload = payload(&mut memory, whole, whole, 0);
        // SAFETY: the memory outlives the end.
        unsafe { end.receive(node(0), payload) };
        return drop(end);
    }
    let CommEvent::Aborted(RunError::Internal { message }) = next_event(&mut end) else {
        panic!("{} should hear of the abort", end.node())
    };
    assert!(message.starts_with(&format!("N{last} was dropped")), "{message}");
}
