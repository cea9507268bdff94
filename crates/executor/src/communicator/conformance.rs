//! What every [`Communicator`] must do, as a function that an implementation's
//! own tests call with a way to make clusters.

use std::time::{Duration, Instant};

use celerity_cdag::{NodeId, TransferId};
use celerity_idag::{MessageId, Pilot};
use celerity_regions::Box3;
use celerity_tdag::{BufferId, TaskId};

use super::{CommEvent, CommunicationError, Communicator, Payload};
use crate::copy::ElementArray;
use crate::error::RunError;
use crate::memory::BasePtr;

/// Checks an implementation of [`Communicator`]. `cluster` makes connected ends
/// for so many nodes, in order of their ids; it is called several times.
///
/// # Panics
/// If the contract is broken, saying how; also if nothing happens for a minute.
pub fn check<C: Communicator>(mut cluster: impl FnMut(usize) -> Vec<C>) {
    ends_know_their_place(&cluster(3));
    pilots_arrive_once(cluster(3));
    for size in [1, 40, 400] {
        for order in [Order::SendFirst, Order::ReceiveFirst] {
            payloads_move_between_strided_boxes(cluster(2), size, order);
        }
    }
    payloads_are_told_apart_by_sender_and_message(cluster(3));
    barriers_wait_for_everybody(cluster(3));
    barriers_of_different_epochs_are_told_apart(cluster(3));
    aborts_reach_everybody_with_one_error(cluster(3));
    nothing_completes_after_an_abort(cluster(2));
}

#[derive(Clone, Copy, PartialEq)]
enum Order {
    SendFirst,
    ReceiveFirst,
}

/// A square of elements in the memory of one end.
struct Square {
    bytes: Vec<u8>,
    extent: Box3,
}

const ELEM_SIZE: u64 = 4;

impl Square {
    fn new(side: usize, fill: impl Fn(usize) -> u8) -> Self {
        let bytes = (0..side * side * 4).map(fill).collect();
        Self { bytes, extent: Box3::from_range([side, side]) }
    }

    fn payload(&mut self, message: u64, elements: Box3) -> Payload {
        let base = BasePtr::of_mut_slice(&mut self.bytes);
        Payload {
            message: MessageId::from_index(message),
            memory: ElementArray { base, extent: self.extent },
            elements,
            elem_size: ELEM_SIZE,
        }
    }

    /// The bytes of an element.
    fn element(&self, y: u64, x: u64) -> &[u8] {
        let (min, range) = (self.extent.min(), self.extent.range());
        let index =
            usize::try_from((y - min[0]) * range[1] + x - min[1]).expect("squares are small");
        &self.bytes[index * 4..index * 4 + 4]
    }
}

fn node(index: usize) -> NodeId {
    NodeId::from_index(index as u64)
}

/// Polls until the end reports something.
fn next_event(end: &mut impl Communicator) -> CommEvent {
    let start = Instant::now();
    loop {
        if let Some(event) = end.poll() {
            return event;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{} hears nothing", end.node());
        std::thread::yield_now();
    }
}

fn assert_silent(end: &mut impl Communicator) {
    for _ in 0..100 {
        assert_eq!(end.poll(), None, "{} should hear nothing", end.node());
    }
}

fn ends_know_their_place(ends: &[impl Communicator]) {
    for (index, end) in ends.iter().enumerate() {
        assert_eq!((end.node(), end.nodes()), (node(index), ends.len()));
    }
}

fn pilots_arrive_once(mut ends: Vec<impl Communicator>) {
    let pilots: Vec<_> = (0..10)
        .map(|message| Pilot {
            to: node(2),
            message: MessageId::from_index(message),
            transfer: TransferId {
                consumer: TaskId::from_index(5),
                buffer: BufferId::from_index(1),
            },
            elements: Box3::from_range([3, 4]),
        })
        .collect();
    pilots.iter().for_each(|pilot| ends[1].send_pilot(pilot));
    let mut expected: Vec<_> =
        pilots.into_iter().map(|pilot| CommEvent::Pilot { from: node(1), pilot }).collect();
    while !expected.is_empty() {
        let event = next_event(&mut ends[2]);
        let position = expected.iter().position(|pilot| *pilot == event);
        expected.remove(position.unwrap_or_else(|| panic!("{event:?} is not expected")));
    }
    ends.iter_mut().for_each(assert_silent);
}

fn payloads_move_between_strided_boxes(
    mut ends: Vec<impl Communicator>,
    side: usize,
    order: Order,
) {
    let mut source = Square::new(side + 2, |byte| u8::try_from(byte % 253).expect("below 253"));
    let mut target = Square::new(side + 1, |_| 255);
    let elements = Box3::from_offset_range([1, 1], [side, side]);
    target.extent = Box3::from_offset_range([1, 0], [side + 1, side + 1]);
    let (offer, accept) = (source.payload(7, elements), target.payload(7, elements));
    for step in 0..2 {
        // SAFETY: both squares outlive both ends' reports, awaited below, and
        // are not touched meanwhile.
        unsafe {
            match (order, step) {
                (Order::SendFirst, 0) | (Order::ReceiveFirst, 1) => ends[0].send(node(1), offer),
                _ => ends[1].receive(node(0), accept),
            }
        }
        if step == 0 {
            ends.iter_mut().for_each(assert_silent);
        }
    }
    let message = MessageId::from_index(7);
    assert_eq!(next_event(&mut ends[0]), CommEvent::Sent { message });
    assert_eq!(next_event(&mut ends[1]), CommEvent::Received { from: node(0), message });
    drop(ends);
    for y in 1..=side as u64 + 1 {
        for x in 0..=side as u64 {
            let inside = elements.contains_point([y, x, 0]);
            let expected = if inside { source.element(y, x) } else { &[255; 4] };
            assert_eq!(target.element(y, x), expected, "element {y}, {x} of {side}");
        }
    }
}

fn payloads_are_told_apart_by_sender_and_message(mut ends: Vec<impl Communicator>) {
    let whole = Box3::from_range([3, 3]);
    let mut sources = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(from, message)| {
        let value = u8::try_from(from * 2 + message).expect("a small number");
        (from, message, Square::new(3, move |_| value))
    });
    let mut targets = [0, 1, 2, 3].map(|_| Square::new(3, |_| 255));
    for (from, message, source) in &mut sources {
        let payload = source.payload(*message as u64, whole);
        // SAFETY: sources and targets outlive the ends' reports, awaited below.
        unsafe { ends[*from].send(node(2), payload) };
    }
    for (index, target) in targets.iter_mut().enumerate().rev() {
        let (from, message) = (index / 2, index % 2);
        let payload = target.payload(message as u64, whole);
        // SAFETY: as above.
        unsafe { ends[2].receive(node(from), payload) };
    }
    for _ in 0..4 {
        let event = next_event(&mut ends[2]);
        assert!(matches!(event, CommEvent::Received { .. }), "{event:?}");
    }
    for from in [0, 0, 1, 1] {
        let event = next_event(&mut ends[from]);
        assert!(matches!(event, CommEvent::Sent { .. }), "{event:?}");
    }
    drop(ends);
    for (value, target) in targets.iter().enumerate() {
        assert!(target.bytes.iter().all(|&byte| usize::from(byte) == value), "payload {value}");
    }
}

fn barriers_wait_for_everybody(mut ends: Vec<impl Communicator>) {
    for round in 0..3 {
        let (last, epoch) = ((round + 2) % 3, TaskId::from_index(round as u64));
        for entering in [round % 3, (round + 1) % 3] {
            ends[entering].enter_barrier(epoch);
            ends.iter_mut().for_each(assert_silent);
        }
        ends[last].enter_barrier(epoch);
        for end in &mut ends {
            assert_eq!(next_event(end), CommEvent::BarrierReached);
        }
    }
}

fn barriers_of_different_epochs_are_told_apart(mut ends: Vec<impl Communicator>) {
    for (end, epoch) in ends.iter_mut().zip([4, 4, 6]) {
        end.enter_barrier(TaskId::from_index(epoch));
    }
    for end in &mut ends {
        let event = next_event(end);
        let CommEvent::Failed(CommunicationError::Diverged { epoch, other_epoch, .. }) = event
        else {
            panic!("{event:?}")
        };
        assert_ne!(epoch, other_epoch);
    }
}

fn failure(message: &str) -> RunError {
    RunError::Stopped { node: node(1), message: message.to_owned() }
}

fn aborts_reach_everybody_with_one_error(mut ends: Vec<impl Communicator>) {
    ends[1].abort(&failure("first"));
    ends[1].abort(&failure("second"));
    for end in &mut ends {
        assert_eq!(next_event(end), CommEvent::Aborted(failure("first")));
        assert_silent(end);
    }
}

fn nothing_completes_after_an_abort(mut ends: Vec<impl Communicator>) {
    let whole = Box3::from_range([3, 3]);
    let (mut source, mut target) = (Square::new(3, |_| 1), Square::new(3, |_| 2));
    let (offer, accept) = (source.payload(0, whole), target.payload(0, whole));
    ends[0].enter_barrier(TaskId::from_index(1));
    // SAFETY: the squares outlive the ends.
    unsafe { ends[0].send(node(1), offer) };
    ends[1].abort(&failure("over"));
    for end in &mut ends {
        assert_eq!(next_event(end), CommEvent::Aborted(failure("over")));
    }
    ends[1].enter_barrier(TaskId::from_index(1));
    // SAFETY: as above.
    unsafe { ends[1].receive(node(0), accept) };
    ends.iter_mut().for_each(assert_silent);
    assert!(ends.iter().all(Communicator::is_quiet));
    drop(ends);
    assert!(target.bytes.iter().all(|&byte| byte == 2), "an aborted payload arrived");
}
