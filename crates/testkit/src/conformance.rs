//! What every [`Communicator`] must do, as programs that each node of a cluster
//! runs for itself: on threads of one process, or in processes of its own. An
//! implementation's own tests say how to get an end.
#![allow(unsafe_code)]

mod collectives;
mod on_devices;

use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use celerity_cdag::{NodeId, TransferId};
use celerity_executor::{
    BasePtr, CommEvent, CommunicationError, Communicator, ElementArray, NOTE_LEN, RunError,
    WirePayload,
};
use celerity_idag::{MemoryId, MessageId, Pilot};
use celerity_regions::Box3;
use celerity_tdag::{BufferId, TaskId};

use self::collectives::some_nodes;

pub use on_devices::{OnDevices, PayloadEnds};

/// Checks an implementation of [`Communicator`] whose ends share this process.
/// `cluster` makes connected ends for so many nodes, in order of their ids; it
/// is called several times.
///
/// # Panics
/// If the contract is broken, saying how; also if nothing happens for a minute.
pub fn check<C: Communicator>(mut cluster: impl FnMut(usize) -> Vec<C>) {
    for nodes in 1..=4 {
        let meeting = Meeting::new(nodes);
        for (_, program) in programs() {
            let mut clusters = [(); ENDS].map(|()| cluster(nodes).into_iter());
            thread::scope(|scope| {
                for _ in 0..nodes {
                    let meeting = &meeting;
                    let ends = clusters.each_mut().map(|ends| ends.next().expect("one per node"));
                    scope.spawn(move || {
                        let mut ends = ends.into_iter();
                        let mut connect = || ends.next().expect("a check uses so many ends");
                        program(&mut connect, &|| meeting.wait());
                    });
                }
            });
        }
    }
}

/// The most ends, one after the other, that a check uses of a node.
const ENDS: usize = 3;

/// Checks one end of a cluster, while the other nodes do the same elsewhere.
/// `connect` makes this node's end of a new cluster; it is called several times,
/// in step with the other nodes. `meet` returns once all nodes have called it.
/// `passed` is told the name of each check.
///
/// # Panics
/// As [`check`]. The other nodes then wait for this one, in vain.
pub fn check_node<C: Communicator>(
    mut connect: impl FnMut() -> C,
    meet: impl Fn(),
    mut passed: impl FnMut(&str),
) {
    for (name, program) in programs() {
        program(&mut connect, &meet);
        meet();
        passed(name);
    }
}

/// A check: what one node does with its end of a new cluster, or with one after
/// the other. All nodes run the same.
type Program<C> = fn(&mut dyn FnMut() -> C, &dyn Fn());

fn programs<C: Communicator>() -> [(&'static str, Program<C>); 22] {
    [
        ("ends know their place", ends_know_their_place),
        ("pilots arrive once", pilots_arrive_once),
        ("notes arrive once", notes_arrive_once),
        ("payloads sent first arrive", payloads_sent_first_arrive),
        ("payloads expected first arrive", payloads_expected_first_arrive),
        ("empty rims of payloads are left alone", odd_shapes_arrive),
        ("payloads are told apart", payloads_are_told_apart),
        ("barriers wait for everybody", barriers_wait_for_everybody),
        ("barriers of different epochs are told apart", different_epochs_are_told_apart),
        ("aborts reach everybody with one error", aborts_reach_everybody_with_one_error),
        ("one of several aborts wins", one_of_several_aborts_wins),
        ("nothing completes after an abort", nothing_completes_after_an_abort),
        ("collectives move what they should", collectives::move_what_they_should),
        ("large collectives move what they should", collectives::large_ones_too),
        ("collectives wait for everybody", collectives::wait_for_everybody),
        ("collectives overlap each other and payloads", collectives::overlap),
        ("different collectives are told apart", collectives::are_told_apart),
        ("no collective takes place after an abort", collectives::do_not_outlive_an_abort),
        ("an abort may come in the middle of collectives", collectives::may_be_aborted),
        ("collectives go on among some nodes", some_nodes::go_on_among_some),
        ("different ones among some nodes are told apart", some_nodes::among_some_are_told_apart),
        (
            "no collective among some nodes takes place after an abort",
            some_nodes::among_some_do_not_outlive_an_abort,
        ),
    ]
}

/// Where the threads of one check wait for each other.
struct Meeting {
    nodes: usize,
    arrivals: Mutex<usize>,
    changed: Condvar,
}

impl Meeting {
    fn new(nodes: usize) -> Self {
        Self { nodes, arrivals: Mutex::new(0), changed: Condvar::new() }
    }

    /// # Panics
    /// If others stay away, since one of them has failed.
    fn wait(&self) {
        let mut arrivals = self.arrivals.lock().expect("nobody panics with the lock");
        *arrivals += 1;
        let all = arrivals.div_ceil(self.nodes) * self.nodes;
        self.changed.notify_all();
        let (_arrivals, waited) = self
            .changed
            .wait_timeout_while(arrivals, PATIENCE, |arrivals| *arrivals < all)
            .expect("nobody panics with the lock");
        assert!(!waited.timed_out(), "another node does not come");
    }
}

/// How long nodes wait for each other: for others on a busy machine, or for what a deliberate bug lets never come.
const PATIENCE: Duration = Duration::from_secs(if cfg!(feature = "mutants") { 15 } else { 60 });

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

    fn payload(&mut self, message: u64, elements: Box3) -> WirePayload {
        let base = BasePtr::of_mut_slice(&mut self.bytes);
        WirePayload {
            message: MessageId::from_index(message),
            at: MemoryId::HOST,
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

/// The last node of the cluster.
fn last(end: &impl Communicator) -> NodeId {
    node(end.nodes() - 1)
}

fn pilot(to: NodeId, message: u64, elements: Box3) -> Pilot {
    let transfer = TransferId { consumer: TaskId::from_index(5), buffer: BufferId::from_index(1) };
    let (message, region) = (MessageId::from_index(message), elements.into());
    Pilot { to, message, transfer, region, from_device: false }
}

/// Polls until the end reports something.
fn next_event(end: &mut impl Communicator) -> CommEvent {
    let start = Instant::now();
    loop {
        if let Some(event) = end.poll() {
            return event;
        }
        assert!(start.elapsed() < PATIENCE, "{} hears nothing", end.node());
        thread::yield_now();
    }
}

/// Polls until the end reports something that is no pilot.
fn next_but_pilots(end: &mut impl Communicator) -> CommEvent {
    loop {
        match next_event(end) {
            CommEvent::Pilot { .. } => {}
            event => return event,
        }
    }
}

fn assert_silent(end: &mut impl Communicator) {
    for _ in 0..100 {
        assert_eq!(end.poll(), None, "{} should hear nothing", end.node());
    }
}

fn ends_know_their_place<C: Communicator>(connect: &mut dyn FnMut() -> C, meet: &dyn Fn()) {
    let mut end = connect();
    assert!(end.node().slot() < end.nodes());
    meet();
    assert_silent(&mut end);
}

fn pilots_arrive_once<C: Communicator>(connect: &mut dyn FnMut() -> C, meet: &dyn Fn()) {
    let mut end = connect();
    let (me, to) = (end.node(), last(&end));
    let pilots = |from: usize| {
        let box_of = move |lines| Box3::from_range([lines, from + 1]);
        (0..200).map(move |message| pilot(to, message as u64, box_of(message + 1)))
    };
    if me != to {
        for (reached, pilot) in (0..).zip(pilots(me.slot())) {
            end.send_pilot(&pilot, reached);
        }
    } else {
        let all = (0..to.slot()).flat_map(|from| {
            let event =
                move |(reached, pilot)| CommEvent::Pilot { from: node(from), pilot, reached };
            (0..).zip(pilots(from)).map(event)
        });
        let mut expected: Vec<_> = all.collect();
        while !expected.is_empty() {
            let event = next_event(&mut end);
            let position = expected.iter().position(|pilot| *pilot == event);
            expected.remove(position.unwrap_or_else(|| panic!("{event:?} is not expected")));
        }
    }
    meet();
    assert_silent(&mut end);
}

fn notes_arrive_once<C: Communicator>(connect: &mut dyn FnMut() -> C, meet: &dyn Fn()) {
    let mut end = connect();
    let (me, to) = (end.node(), last(&end));
    let notes = |from: usize| {
        [0, 1, 7, NOTE_LEN].map(|len| vec![u8::try_from(from).expect("a small cluster"); len])
    };
    if me != to {
        notes(me.slot()).iter().for_each(|note| end.send_note(to, note));
    } else {
        let all = (0..to.slot())
            .flat_map(|from| notes(from).map(|note| CommEvent::Note { from: node(from), note }));
        let mut expected: Vec<_> = all.collect();
        while !expected.is_empty() {
            let event = next_event(&mut end);
            let position = expected.iter().position(|note| *note == event);
            expected.remove(position.unwrap_or_else(|| panic!("{event:?} is not expected")));
        }
    }
    meet();
    assert_silent(&mut end);
}

#[derive(Clone, Copy, PartialEq)]
enum Order {
    SendFirst,
    ReceiveFirst,
}

fn payloads_sent_first_arrive<C: Communicator>(connect: &mut dyn FnMut() -> C, meet: &dyn Fn()) {
    let mut end = connect();
    for (message, side) in [1, 40, 400].into_iter().enumerate() {
        move_square(&mut end, message as u64, side, Order::SendFirst, meet);
    }
}

fn payloads_expected_first_arrive<C: Communicator>(
    connect: &mut dyn FnMut() -> C,
    meet: &dyn Fn(),
) {
    let mut end = connect();
    for (message, side) in [1, 40, 400].into_iter().enumerate() {
        move_square(&mut end, message as u64, side, Order::ReceiveFirst, meet);
    }
}

/// Moves a square of elements from `N0` into a larger one on `N1`.
fn move_square(
    end: &mut impl Communicator,
    message: u64,
    side: usize,
    order: Order,
    meet: &dyn Fn(),
) {
    let mut source = Square::new(side + 2, |byte| u8::try_from(byte % 253).expect("below 253"));
    let mut target = Square::new(side + 1, |_| 255);
    let elements = Box3::from_offset_range([1, 1], [side, side]);
    target.extent = Box3::from_offset_range([1, 0], [side + 1, side + 1]);
    let role = if end.nodes() < 2 { 2 } else { end.node().slot() };
    if role == 0 {
        end.send_pilot(&pilot(node(1), message, elements), 0);
    }
    let turn = match (order, role) {
        (_, 2..) => usize::MAX,
        (Order::SendFirst, role) => role,
        (Order::ReceiveFirst, role) => 1 - role,
    };
    for step in 0..2 {
        if step == turn && role == 0 {
            // SAFETY: the square outlives the report, awaited below, and is not
            // touched meanwhile.
            unsafe { end.send(node(1), source.payload(message, elements)) };
        } else if step == turn {
            // SAFETY: as above.
            unsafe { end.receive(node(0), target.payload(message, elements)) };
        }
        meet();
    }
    let name = MessageId::from_index(message);
    match role {
        0 => assert_eq!(next_but_pilots(end), CommEvent::Sent { message: name }),
        1 => {
            let received = CommEvent::Received { from: node(0), message: name };
            assert_eq!(next_but_pilots(end), received);
            assert_moved(&source, &target, &elements);
        }
        _ => assert_silent(end),
    }
    meet();
}

/// `target` holds the `elements` of `source`, and 255 around them.
fn assert_moved(source: &Square, target: &Square, elements: &Box3) {
    let (min, max) = (target.extent.min(), target.extent.max());
    for y in min[0]..max[0] {
        for x in min[1]..max[1] {
            let inside = elements.contains_point([y, x, 0]);
            let expected = if inside { source.element(y, x) } else { &[255; 4] };
            assert_eq!(target.element(y, x), expected, "element {y}, {x} of {elements}");
        }
    }
}

/// Columns, rows and single elements, between arrays of different shapes.
fn odd_shapes_arrive<C: Communicator>(connect: &mut dyn FnMut() -> C, meet: &dyn Fn()) {
    let mut end = connect();
    let shapes = [([0, 0], [9, 1]), ([0, 8], [9, 1]), ([4, 0], [1, 9]), ([8, 8], [1, 1])];
    for (message, (offset, range)) in shapes.into_iter().enumerate() {
        let elements = Box3::from_offset_range(offset, range);
        let mut source = Square::new(9, |byte| u8::try_from(byte % 253).expect("below 253"));
        let mut target = Square::new(11, |_| 255);
        match (end.nodes(), end.node().slot()) {
            (2.., 0) => {
                end.send_pilot(&pilot(node(1), message as u64, elements), 0);
                // SAFETY: the square outlives the report, awaited below.
                unsafe { end.send(node(1), source.payload(message as u64, elements)) };
                assert!(matches!(next_event(&mut end), CommEvent::Sent { .. }));
            }
            (2.., 1) => {
                // SAFETY: as above.
                unsafe { end.receive(node(0), target.payload(message as u64, elements)) };
                assert!(matches!(next_but_pilots(&mut end), CommEvent::Received { .. }));
                assert_moved(&source, &target, &elements);
            }
            _ => {}
        }
        meet();
    }
}

/// All nodes but the last send it two payloads each; it asks for them in the
/// opposite order.
fn payloads_are_told_apart<C: Communicator>(connect: &mut dyn FnMut() -> C, meet: &dyn Fn()) {
    let mut end = connect();
    let whole = Box3::from_range([3, 3]);
    let (me, to) = (end.node(), last(&end));
    let value = |from: usize, message: u64| u8::try_from(from as u64 * 2 + message).expect("small");
    let mut squares: Vec<_> = Vec::new();
    if me != to {
        squares.extend([0, 1].map(|message| Square::new(3, |_| value(me.slot(), message))));
        for (message, square) in (0..).zip(&mut squares) {
            end.send_pilot(&pilot(to, message, whole), 0);
            // SAFETY: the squares outlive the reports, awaited below.
            unsafe { end.send(to, square.payload(message, whole)) };
        }
    } else {
        let senders = (0..to.slot()).flat_map(|from| [(from, 0), (from, 1)]);
        squares.extend(senders.clone().map(|_| Square::new(3, |_| 255)));
        for ((from, message), square) in senders.rev().zip(squares.iter_mut().rev()) {
            // SAFETY: as above.
            unsafe { end.receive(node(from), square.payload(message, whole)) };
        }
    }
    for _ in 0..squares.len() {
        match next_but_pilots(&mut end) {
            CommEvent::Received { .. } if me == to => {}
            CommEvent::Sent { .. } if me != to => {}
            event => panic!("{event:?}"),
        }
    }
    for (index, square) in squares.iter().enumerate().filter(|_| me == to) {
        let expected = value(index / 2, index as u64 % 2);
        assert!(square.bytes.iter().all(|&byte| byte == expected), "payload {index}");
    }
    meet();
}

fn barriers_wait_for_everybody<C: Communicator>(connect: &mut dyn FnMut() -> C, meet: &dyn Fn()) {
    let mut end = connect();
    for round in 0..end.nodes() + 2 {
        let late = end.node().slot() == round % end.nodes();
        let epoch = TaskId::from_index(round as u64);
        if !late {
            end.enter_barrier(epoch);
        }
        assert_silent(&mut end);
        meet();
        if late {
            end.enter_barrier(epoch);
        }
        assert_eq!(next_event(&mut end), CommEvent::BarrierReached);
    }
    meet();
}

fn different_epochs_are_told_apart<C: Communicator>(
    connect: &mut dyn FnMut() -> C,
    meet: &dyn Fn(),
) {
    let mut end = connect();
    let odd = end.nodes() > 1 && end.node() == last(&end);
    end.enter_barrier(TaskId::from_index(if odd { 6 } else { 4 }));
    match next_event(&mut end) {
        CommEvent::BarrierReached => assert_eq!(end.nodes(), 1),
        CommEvent::Failed(CommunicationError::Diverged { node, epoch, other, other_epoch }) => {
            let epoch_of = |node| TaskId::from_index(if node == last(&end) { 6 } else { 4 });
            assert_eq!((epoch, other_epoch), (epoch_of(node), epoch_of(other)));
            assert_ne!(epoch, other_epoch);
        }
        event => panic!("{event:?}"),
    }
    meet();
}

fn failure(node: NodeId, message: &str) -> RunError {
    RunError::Stopped { node, message: message.to_owned() }
}

fn aborts_reach_everybody_with_one_error<C: Communicator>(
    connect: &mut dyn FnMut() -> C,
    meet: &dyn Fn(),
) {
    let mut end = connect();
    let first = failure(last(&end), "first");
    if end.node() == last(&end) {
        end.abort(&first);
        end.abort(&failure(last(&end), "second"));
    }
    assert_eq!(next_event(&mut end), CommEvent::Aborted(first));
    assert_silent(&mut end);
    meet();
}

fn one_of_several_aborts_wins<C: Communicator>(connect: &mut dyn FnMut() -> C, meet: &dyn Fn()) {
    let mut end = connect();
    meet();
    let mine = failure(end.node(), "a failure of many words, as they are in practice");
    end.abort(&mine);
    let CommEvent::Aborted(RunError::Stopped { node, .. }) = next_event(&mut end) else {
        panic!("{} should hear of an abort first", end.node())
    };
    assert_silent(&mut end);
    drop(end);
    // In a barrier they find out whether they all have heard the same.
    let mut end = connect();
    end.enter_barrier(TaskId::from_index(node.index()));
    assert_eq!(next_event(&mut end), CommEvent::BarrierReached);
    meet();
}

fn nothing_completes_after_an_abort<C: Communicator>(
    connect: &mut dyn FnMut() -> C,
    meet: &dyn Fn(),
) {
    let mut end = connect();
    let whole = Box3::from_range([300, 300]);
    let (mut source, mut target) = (Square::new(300, |_| 1), Square::new(300, |_| 2));
    let (me, to) = (end.node(), last(&end));
    if me == node(0) && me != to {
        end.send_pilot(&pilot(to, 0, whole), 0);
        end.enter_barrier(TaskId::from_index(1));
        // SAFETY: the square outlives the end.
        unsafe { end.send(to, source.payload(0, whole)) };
    }
    meet();
    if me == to {
        end.abort(&failure(me, "over"));
    }
    let mut event = next_but_pilots(&mut end);
    if matches!(event, CommEvent::Sent { .. }) {
        event = next_event(&mut end);
    }
    assert_eq!(event, CommEvent::Aborted(failure(to, "over")));
    if me == to && me != node(0) {
        end.enter_barrier(TaskId::from_index(1));
        // SAFETY: as above.
        unsafe { end.receive(node(0), target.payload(0, whole)) };
    }
    let start = Instant::now();
    while !end.is_quiet() {
        assert_silent(&mut end);
        assert!(start.elapsed() < PATIENCE, "{me} does not become quiet");
    }
    assert_silent(&mut end);
    drop(end);
    assert!(target.bytes.iter().all(|&byte| byte == 2), "an aborted payload arrived");
    meet();
}
